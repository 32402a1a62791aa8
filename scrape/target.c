/* SPDX-License-Identifier: Apache-2.0 */
#include "scrape/target.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/text/utf8.h"
#include "common/text.h"

void scrape_target_deinit(struct scrape_target *t)
{
        label_set_deinit(&t->labels);
        free(t->base_url);
        *t = (struct scrape_target){ 0 };
}

static enum status set_target_origin(const struct scrape_job *job, const struct target_group *group,
                                     const char *address, struct label_set *l, struct error *err)
{
        enum status st = label_set_put_all(l, &group->labels, err);

        if (!st)
                st = label_set_put(l, "__address__", address, err);
        if (!st && !*label_set_get(l, "__scheme__"))
                st = label_set_put(l, "__scheme__", job->scheme ? job->scheme : "http", err);
        if (!st && !*label_set_get(l, "job"))
                st = label_set_put(l, "job", job->name, err);
        return st;
}

static enum status set_default_label(struct label_set *l, const char *name, const char *value, struct error *err)
{
        return *label_set_get(l, name) ? ST_OK : label_set_put(l, name, value, err);
}

static enum status set_final_labels(const struct scrape_config *c, struct label_set *l, struct error *err)
{
        enum status st = set_default_label(l, "instance", label_set_get(l, "__address__"), err);

        for (size_t i = 0; !st && i < c->external.count; i++)
                st = set_default_label(l, c->external.items[i].name, c->external.items[i].value, err);
        if (!st && !*label_set_get(l, "service.name"))
                st = set_default_label(l, "service_name", label_set_get(l, "job"), err);
        for (size_t i = l->count; !st && i-- > 0;)
                if (starts_with(l->items[i].name, "__"))
                        st = label_set_put(l, l->items[i].name, "", err);
        return st;
}

/* Only HOST or HOST:PORT, so that an address cannot add a path or user to its URL. */
static bool is_target_address(const char *text)
{
        _cleanup_free_ char *url = NULL;
        CURLU *parsed;
        bool ok;

        if (!*text || strpbrk(text, "/?#@\\ \t\r\n") || asprintf(&url, "http://%s", text) < 0)
                return false;
        parsed = curl_url();
        ok = parsed && !curl_url_set(parsed, CURLUPART_URL, url, 0);
        curl_url_cleanup(parsed);
        return ok;
}

static enum status make_target_url(const struct scrape_job *job, const struct label_set *l, char **ret,
                                   struct error *err)
{
        const char *scheme = label_set_get(l, "__scheme__"), *address = label_set_get(l, "__address__");
        size_t prefix_size = job->prefix ? strlen(job->prefix) : 0;

        if (!is_target_address(address))
                return error_set(err, ST_USAGE, "'%.80s' is not HOST:PORT", PRINTABLE(address));
        if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
                return error_set(err, ST_USAGE, "'%.80s': scheme '%.20s' is neither http nor https", PRINTABLE(address),
                                 PRINTABLE(scheme));
        while (prefix_size && job->prefix[prefix_size - 1] == '/')
                prefix_size--;
        if (asprintf(ret, "%s://%s%.*s", scheme, address, (int)prefix_size, prefix_size ? job->prefix : "") < 0) {
                *ret = NULL;
                return error_no_memory(err);
        }
        return ST_OK;
}

enum status scrape_target_build(const struct scrape_config *c, const struct scrape_job *job,
                                const struct target_group *group, const char *address, struct scrape_target *ret,
                                bool *keep_ret, struct error *err)
{
        _cleanup_scrape_target_ struct scrape_target t = { .job = job };
        bool keep = true;
        enum status st = set_target_origin(job, group, address, &t.labels, err);

        if (!st)
                st = relabel_apply(job->rules.items, job->rules.count, &t.labels, &keep, err);
        if (!st && keep)
                st = make_target_url(job, &t.labels, &t.base_url, err);
        if (!st && keep)
                st = set_final_labels(c, &t.labels, err);
        if (st)
                return error_prefix(err, st, "job '%.40s': target '%.60s'", PRINTABLE(job->name), PRINTABLE(address));
        *keep_ret = keep;
        if (keep) {
                *ret = t;
                memset(&t, 0, sizeof t); /* moved to *ret */
        }
        return ST_OK;
}

char *scrape_target_url(const struct scrape_target *t, const struct scrape_profile *p)
{
        uint64_t seconds = scrape_profile_seconds(t->job, p);
        char query[40] = "";
        char *url;

        if (seconds)
                snprintf(query, sizeof query, "%cseconds=%" PRIu64, strchr(p->path, '?') ? '&' : '?', seconds);
        return asprintf(&url, "%s%s%s", t->base_url, p->path, query) < 0 ? NULL : url;
}

bool scrape_target_equal(const struct scrape_target *a, const struct scrape_target *b)
{
        return a->job == b->job && strcmp(a->base_url, b->base_url) == 0 && label_set_equal(&a->labels, &b->labels);
}

uint64_t scrape_target_hash(const struct scrape_target *t, const struct scrape_profile *p)
{
        _cleanup_buf_ struct buf text;

        buf_init(&text, MiB(1));
        buf_printf(&text, "%s%s", t->base_url, p->path);
        for (size_t i = 0; i < t->labels.count; i++)
                buf_printf(&text, "%c%s%c%s", 0, t->labels.items[i].name, 0, t->labels.items[i].value);
        return hash_bytes64(text.data, text.size);
}
