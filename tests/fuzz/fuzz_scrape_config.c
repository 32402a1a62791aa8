/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration of cairn scrape, and the same bytes as a target file: accepted settings must be within their
 * documented ranges.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "scrape/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
        if (!ok)
                abort();
}

static void check_target(const struct scrape_target *t)
{
        require(strncmp(t->base_url, "http://", 7) == 0 || strncmp(t->base_url, "https://", 8) == 0);
        require(!strpbrk(t->base_url, " \r\n"));
        require(t->labels.count <= LIMIT_RELABEL_LABELS && *label_set_get(&t->labels, "instance"));
        for (size_t i = 0; i < t->labels.count; i++) {
                require(*t->labels.items[i].value && strncmp(t->labels.items[i].name, "__", 2) != 0);
                require(i == 0 || strcmp(t->labels.items[i - 1].name, t->labels.items[i].name) < 0);
        }
}

static void check_group(const struct scrape_config *c, const struct scrape_job *job, const struct target_group *group)
{
        for (size_t i = 0; i < group->count && i < 16; i++) {
                _cleanup_scrape_target_ struct scrape_target t = { 0 };
                bool keep;

                if (scrape_target_build(c, job, group, group->addresses[i], &t, &keep, NULL) == ST_OK && keep)
                        check_target(&t);
        }
}

static void check_config(const struct scrape_config *c, const struct target_groups *more)
{
        for (size_t i = 0; i < c->job_count; i++) {
                const struct scrape_job *job = &c->jobs[i];

                require(job->interval_ms >= 100 && job->timeout_ms <= job->interval_ms);
                require(job->http.body_max_bytes && job->http.body_max_bytes <= LIMIT_HTTP_BODY_BYTES);
                require(job->rules.count <= LIMIT_RELABEL_RULES && job->groups.address_count <= LIMIT_SCRAPE_TARGETS);
                for (size_t j = 0; j < job->profile_count; j++)
                        require(job->profiles[j].path[0] == '/' && job->profiles[j].seconds * 1000 <= job->interval_ms);
                for (size_t j = 0; j < job->groups.count && j < 16; j++)
                        check_group(c, job, &job->groups.items[j]);
                for (size_t j = 0; j < more->count && j < 16; j++)
                        check_group(c, job, &more->items[j]);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char standard[] = "{scrape_configs: [{job_name: a}]}";
        _cleanup_close_ int fd = memfd_create("config", 0), standard_fd = memfd_create("config", 0);
        _cleanup_scrape_config_ struct scrape_config c = { 0 };
        _cleanup_target_groups_ struct target_groups groups = { 0 };
        char path[64];

        require(fd >= 0 && file_write_all(fd, data, size, "config", NULL) == ST_OK);
        require(file_write_all(fd, "\n", 1, "config", NULL) == ST_OK); /* else nearly all are refused as cut off */
        require(standard_fd >= 0 && file_write_all(standard_fd, standard, strlen(standard), "config", NULL) == ST_OK);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (target_file_read(path, &groups, NULL) == ST_OK)
                require(groups.address_count <= LIMIT_SCRAPE_TARGETS);
        if (scrape_config_read(path, &c, NULL)) {
                snprintf(path, sizeof path, "/proc/self/fd/%d", standard_fd);
                require(scrape_config_read(path, &c, NULL) == ST_OK);
        }
        check_config(&c, &groups);
        return 0;
}
