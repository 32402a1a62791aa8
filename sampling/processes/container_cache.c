/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/container_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/hash/hash_table.h"
#include "sampling/containers/cgroup.h"
#include "sampling/processes/process_read.h"

#define ANCESTORS_MAX 32

struct container_entry {
        struct lru_entry lru; /* first, for the table */
        char id[CGROUP_CONTAINER_SIZE];
        bool is_known; /* names are valid */
        struct container_names names;
};

enum status container_cache_init(struct container_cache *c, struct error *err)
{
        *c = (struct container_cache){ .reads_left = LIMIT_CONTAINER_READS };
        return lru_table_init(&c->entries, LIMIT_CONTAINERS, err);
}

void container_cache_deinit(struct container_cache *c)
{
        struct lru_entry *entry;

        if (!c->entries.buckets)
                return;
        while ((entry = lru_table_oldest(&c->entries))) {
                lru_table_remove(&c->entries, entry);
                free(entry);
        }
        lru_table_deinit(&c->entries);
}

void container_cache_begin_drain(struct container_cache *c)
{
        c->reads_left = LIMIT_CONTAINER_READS;
}

static bool equal_container_id(const struct lru_entry *entry, const void *key)
{
        return strcmp(((const struct container_entry *)entry)->id, key) == 0;
}

/* ---- the engine ---- */

/* conmon's "-b DIR" is the container's directory in containers/storage. */
static void read_bundle_argument(int proc_fd, char *ret, size_t size)
{
        char text[KiB(8)];
        _cleanup_close_ int fd = openat(proc_fd, "cmdline", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
        const char *end = text + (n > 0 ? n : 0);

        ret[0] = 0;
        text[n > 0 ? n : 0] = 0;
        for (const char *at = text; at < end; at += strlen(at) + 1) {
                const char *next = at + strlen(at) + 1;

                if (strcmp(at, "-b") == 0 && next < end && next[0] == '/' && strlen(next) < size)
                        snprintf(ret, size, "%s", next);
        }
}

/* Open /proc/PID of the nearest ancestor that is not in this container; -1: none is left. */
static int open_monitor(int proc_fd, const char *id)
{
        struct process_stat stat;
        bool has_stat = process_read_stat(proc_fd, &stat);

        for (int i = 0; i < ANCESTORS_MAX && has_stat && stat.parent; i++) {
                struct cgroup_names cgroup;
                char path[32];
                _cleanup_close_ int fd = -1;

                snprintf(path, sizeof path, "/proc/%u", stat.parent);
                fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (fd < 0 || !process_read_cgroup(fd, &cgroup))
                        return -1;
                if (strcmp(cgroup.container, id) != 0)
                        return steal_fd(&fd);
                has_stat = process_read_stat(fd, &stat);
        }
        return -1;
}

static bool read_container_names(int proc_fd, const char *id, struct container_names *ret)
{
        char bundle[LIMIT_PATH_BYTES / 2] = "";
        _cleanup_close_ int monitor = open_monitor(proc_fd, id), host = -1;

        if (monitor >= 0) {
                read_bundle_argument(monitor, bundle, sizeof bundle);
                if (container_state_read(monitor, id, bundle, ret))
                        return true;
        }
        host = open("/proc/1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return host >= 0 && container_state_read(host, id, bundle, ret);
}

/* ---- lookup ---- */

static struct container_entry *add_container_entry(struct container_cache *c, uint64_t hash, const char *id)
{
        struct container_entry *entry;

        if (c->entries.count >= LIMIT_CONTAINERS) {
                struct lru_entry *oldest = lru_table_oldest(&c->entries);

                lru_table_remove(&c->entries, oldest);
                free(oldest);
        }
        entry = calloc(1, sizeof *entry);
        if (!entry)
                return NULL;
        snprintf(entry->id, sizeof entry->id, "%s", id);
        lru_table_insert(&c->entries, &entry->lru, hash);
        return entry;
}

bool container_cache_find(struct container_cache *c, int proc_fd, const char *id, struct container_names *ret)
{
        uint64_t hash = keyed_hash(id, strlen(id));
        struct container_entry *entry =
                (struct container_entry *)lru_table_find(&c->entries, hash, equal_container_id, id);

        if (strspn(id, "0123456789abcdef") != CGROUP_CONTAINER_SIZE - 1)
                return false;
        if (entry) {
                lru_table_touch(&c->entries, &entry->lru);
        } else {
                if (!c->reads_left)
                        return false;
                c->reads_left--;
                entry = add_container_entry(c, hash, id);
                if (!entry)
                        return false;
                entry->is_known = read_container_names(proc_fd, id, &entry->names);
        }
        if (entry->is_known)
                *ret = entry->names;
        return entry->is_known;
}
