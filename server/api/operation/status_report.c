/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each put_*() writes one member of the document from a copy of the statistics; the three writers at the ends of their
 * sections assemble them: write_tenant_senders(), write_tenant_status(), write_service_status(). No member reads the
 * disk: statistics of stores and free space are those that the thread of readiness.c published, so that the status of
 * a service with a hanging disk can be read. Conditions and limits are visited under the locks of their owners.
 *
 * A tenant sees the conditions of its own store and of the service; the whole service lists those of all stores, and
 * all metrics.
 *
 * Order: conditions, ingest, profile store, the tenant's status, the whole service.
 */
#include "server/api/operation/status_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json/json_out.h"
#include "common/metrics.h"
#include "common/program/metrics_write.h"
#include "profile-store/scan.h"

#define NS_PER_S 1000000000

/* Omit 0: unknown, or never. */
static void put_unix_s(struct json_out *j, const char *key, int64_t unix_ns)
{
        if (unix_ns)
                json_out_int(j, key, unix_ns / NS_PER_S);
}

static void put_text_if_any(struct json_out *j, const char *key, const char *text)
{
        if (*text)
                json_out_str(j, key, text);
}

/* ---- conditions ---- */

struct condition_list {
        struct json_out *j;
        size_t store;  /* list the conditions of this store and of the service */
        bool is_whole; /* list the conditions of all stores */
};

static void put_condition(void *context, const struct readiness_condition *c)
{
        const struct condition_list *list = context;
        struct json_out *j = list->j;

        if (!list->is_whole && c->store != list->store && c->store != READINESS_SERVICE)
                return;
        json_out_object(j, NULL);
        json_out_str(j, "name", c->name);
        json_out_str(j, "severity", c->is_error ? "error" : "warning");
        if (list->is_whole && c->tenant)
                json_out_str(j, "tenant", c->tenant);
        json_out_str(j, "text", c->text);
        json_out_str(j, "next_step", c->next_step);
        json_out_object_end(j);
}

static void put_conditions(struct server *s, const struct condition_list *list)
{
        json_out_array(list->j, "conditions");
        readiness_visit(s->readiness, put_condition, (void *)list);
        json_out_array_end(list->j);
}

/* ---- ingest ---- */

static void put_minutes(struct json_out *j, struct ingest_history *h)
{
        struct ingest_minute minutes[INGEST_HISTORY_MINUTES];

        ingest_history_get_minutes(h, ingest_time_now(), minutes);
        json_out_array(j, "minutes");
        for (int i = 0; i < INGEST_HISTORY_MINUTES; i++) {
                json_out_object(j, NULL);
                json_out_int(j, "start_unix_s", minutes[i].start_unix_s);
                json_out_uint(j, "batches", minutes[i].batches);
                json_out_uint(j, "samples", minutes[i].samples);
                json_out_uint(j, "refused", minutes[i].refused);
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

static void put_problems(struct json_out *j, struct ingest_history *h)
{
        json_out_array(j, "problems");
        for (enum ingest_problem i = 0; i < INGEST_PROBLEM_COUNT; i++) {
                struct ingest_problem_state p;

                ingest_history_get_problem(h, i, &p);
                if (!p.count)
                        continue;
                json_out_object(j, NULL);
                json_out_str(j, "reason", ingest_problem_name(i));
                json_out_str(j, "of", ingest_problem_is_of_batches(i) ? "batches" : "samples");
                json_out_uint(j, "count", p.count);
                put_unix_s(j, "last_unix_s", p.last_unix_ns);
                json_out_str(j, "text", p.text);
                put_text_if_any(j, "agent", p.agent);
                put_text_if_any(j, "address", p.address);
                json_out_str(j, "next_step", ingest_problem_next_step(i));
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

static void put_ingest(struct json_out *j, struct ingest_history *h)
{
        struct ingest_totals totals;
        uint64_t forgotten;
        size_t kept;

        ingest_history_get_totals(h, &totals);
        senders_count(ingest_history_get_senders(h), &kept, &forgotten);
        json_out_object(j, "ingest");
        put_unix_s(j, "since_unix_s", totals.since_unix_ns);
        json_out_uint(j, "batches", totals.batches);
        json_out_uint(j, "duplicate_batches", totals.duplicates);
        json_out_uint(j, "samples", totals.samples);
        json_out_uint(j, "rejected_samples", totals.rejected);
        json_out_uint(j, "senders", kept);
        json_out_uint(j, "forgotten_senders", forgotten);
        put_minutes(j, h);
        put_problems(j, h);
        json_out_object_end(j);
}

enum status write_tenant_senders(struct tenant *t, size_t limit, struct buf *ret, struct error *err)
{
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_ANSWERS };
        _cleanup_free_ struct sender_record *items = NULL;
        struct senders *senders = ingest_history_get_senders(t->ingested);
        uint64_t forgotten;
        struct json_out j;
        size_t count, kept;
        enum status st;

        senders_count(senders, &kept, &forgotten);
        limit = limit < kept ? limit : kept;
        st = memory_reserve(&memory, limit * sizeof *items, err);
        if (!st)
                st = senders_copy(senders, limit, &items, &count, err);
        if (st)
                return st;
        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_int(&j, "now_unix_s", wall_clock_ns() / NS_PER_S);
        json_out_uint(&j, "kept", kept);
        json_out_uint(&j, "forgotten", forgotten);
        json_out_array(&j, "senders");
        for (size_t i = 0; i < count; i++) {
                const struct sender_record *e = &items[i];

                json_out_object(&j, NULL);
                json_out_str(&j, "host", e->host);
                json_out_str(&j, "agent", e->agent);
                json_out_str(&j, "address", e->address);
                put_unix_s(&j, "first_unix_s", e->first_unix_ns);
                put_unix_s(&j, "last_unix_s", e->last_unix_ns);
                put_unix_s(&j, "newest_sample_unix_s", e->newest_unix_ns);
                json_out_uint(&j, "batches", e->batches);
                json_out_uint(&j, "samples", e->samples);
                json_out_uint(&j, "rejected_samples", e->rejected);
                json_out_uint(&j, "last_samples", e->last_samples);
                json_out_object_end(&j);
        }
        json_out_array_end(&j);
        json_out_object_end(&j);
        return buf_status(ret, err, "the list of senders");
}

/* ---- the profile store ---- */

static void put_table_status(struct json_out *j, const char *name, const struct profile_store_table_stat *t)
{
        json_out_object(j, NULL);
        json_out_str(j, "table", name);
        json_out_uint(j, "rows", t->rows);
        json_out_uint(j, "files", t->files);
        json_out_uint(j, "bytes", t->bytes);
        put_unix_s(j, "oldest_unix_s", t->oldest_unix_ns);
        put_unix_s(j, "newest_unix_s", t->newest_unix_ns);
        json_out_object_end(j);
}

static void put_failure(struct json_out *j, int64_t since_unix_ns, const char *text)
{
        put_unix_s(j, "failing_since_unix_s", since_unix_ns);
        if (since_unix_ns)
                json_out_str(j, "failure", text);
}

static void put_store(struct json_out *j, const struct profile_store_stat *stat)
{
        const struct profile_store_health *health = &stat->health;

        json_out_object(j, "queue");
        json_out_uint(j, "batches", stat->queued_batches);
        json_out_uint(j, "bytes", stat->queued_bytes);
        json_out_uint(j, "limit_bytes", health->queue_limit_bytes);
        json_out_uint(j, "disk_bytes", stat->queue_disk_bytes);
        json_out_uint(j, "quarantined_batches", health->quarantined_batches);
        json_out_uint(j, "quarantined_bytes", health->quarantined_bytes);
        put_failure(j, health->flush_failing_since, health->flush_failure);
        json_out_object_end(j);
        json_out_object(j, "storage");
        json_out_uint(j, "bytes", stat->bytes);
        put_unix_s(j, "oldest_unix_s", stat->oldest_unix_ns);
        put_unix_s(j, "newest_unix_s", stat->newest_unix_ns);
        json_out_array(j, "tables");
        put_table_status(j, "samples", &stat->samples);
        put_table_status(j, "stacks", &stat->stacks);
        put_table_status(j, "locations", &stat->locations);
        put_table_status(j, "function_history", &stat->history);
        json_out_array_end(j);
        json_out_object_end(j);
        json_out_object(j, "compaction");
        json_out_uint(j, "backlog_files", stat->compaction_backlog_files);
        json_out_uint(j, "backlog_bytes", stat->compaction_backlog_bytes);
        put_failure(j, health->compaction_failing_since, health->compaction_failure);
        json_out_object_end(j);
}

static void put_resymbolization(struct json_out *j, struct tenant *t, const struct profile_store_stat *stat)
{
        json_out_object(j, "resymbolization");
        json_out_uint(j, "unresolved_locations", stat->unresolved_locations);
        json_out_uint(j, "requests_running", atomic_load(&t->resymbolize_running));
        json_out_uint(j, "locations_done", atomic_load(&t->resymbolize_done));
        json_out_uint(j, "locations_all", atomic_load(&t->resymbolize_all));
        json_out_object_end(j);
}

/* Format the selector of a rule in the syntax of rules; the original text is not kept. */
static void put_rule_selector(struct json_out *j, const struct label_rule *rule)
{
        static const char *const operators[] = {
                [LABEL_EQUAL] = "=", [LABEL_NOT_EQUAL] = "!=", [LABEL_REGEX] = "=~", [LABEL_NOT_REGEX] = "!~"
        };
        _cleanup_buf_ struct buf text;
        struct buf *to = &text;

        buf_init(to, KiB(64));
        buf_append_str(to, "{");
        if (rule->type)
                metric_label(to, "__profile_type__", rule->type);
        for (size_t i = 0; i < rule->matcher_count; i++) {
                const struct label_matcher *m = &rule->matchers[i];

                buf_printf(to, "%s%s%s\"", i || rule->type ? ", " : "", m->key, operators[m->op]);
                for (const char *p = m->value; *p; p++)
                        buf_printf(to, *p == '\\' || *p == '"' ? "\\%c" : "%c", *p);
                buf_append_str(to, "\"");
        }
        buf_append_str(to, "}");
        json_out_str(j, "selector", buf_cstr(to));
}

static void put_sample_limits(void *context, const struct sample_limits *limits)
{
        struct json_out *j = context;

        json_out_uint(j, "age_s", limits->age_s);
        json_out_uint(j, "size_bytes", limits->size_bytes);
        json_out_array(j, "rules");
        for (size_t i = 0; i < limits->rule_count; i++) {
                json_out_object(j, NULL);
                put_rule_selector(j, &limits->rules[i]);
                json_out_uint(j, "age_s", limits->rules[i].age_s);
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

static void put_retention(struct json_out *j, struct server *s, struct tenant *t,
                          const struct profile_store_health *health)
{
        json_out_object(j, "retention");
        tenants_visit_limits(s->tenants, t, put_sample_limits, j);
        json_out_uint(j, "accepted_age_s", atomic_load(&t->max_age_s));
        json_out_uint(j, "accepted_ahead_s", atomic_load(&t->max_ahead_s));
        put_failure(j, health->label_expiry_failing_since, health->label_expiry_failure);
        json_out_object_end(j);
}

static void put_service_head(struct json_out *j, const struct server *s)
{
        json_out_str(j, "version", CAIRN_VERSION);
        json_out_int(j, "now_unix_s", wall_clock_ns() / NS_PER_S);
        json_out_bool(j, "read_only", s->options->read_only);
        json_out_bool(j, "ready", atomic_load(&s->ready));
        json_out_array(j, "roles");
        for (unsigned role = 1; role < ROLE_ANY; role <<= 1)
                if (s->options->roles & role)
                        json_out_str(j, NULL, node_role_name(role));
        json_out_array_end(j);
}

enum status write_tenant_status(struct server *s, struct tenant *t, bool may_see_service, struct buf *ret,
                                struct error *err)
{
        _cleanup_free_ struct profile_store_stat *stats = calloc(tenants_count(s->tenants), sizeof *stats);
        const char *name = tenants_get_name(s->tenants, t->lane);
        struct condition_list list = { .store = t->lane };
        struct json_out j;

        if (!stats)
                return error_no_memory(err);
        readiness_get_store_stats(s->readiness, stats);
        json_out_init(&j, ret);
        list.j = &j;
        json_out_object(&j, NULL);
        put_service_head(&j, s);
        if (name)
                json_out_str(&j, "tenant", name);
        json_out_bool(&j, "may_see_service", may_see_service);
        put_conditions(s, &list);
        put_ingest(&j, t->ingested);
        put_store(&j, &stats[t->lane]);
        put_resymbolization(&j, t, &stats[t->lane]);
        put_retention(&j, s, t, &stats[t->lane].health);
        json_out_object_end(&j);
        return buf_status(ret, err, "the status");
}

/* ---- the whole service ---- */

static void put_metric(void *context, struct metric *m)
{
        struct json_out *j = context;

        json_out_object(j, NULL);
        json_out_str(j, "name", m->name);
        put_text_if_any(j, "labels", m->labels);
        if (m->parts)
                json_out_double(j, "value", (double)metric_get(m) / (double)m->parts);
        else
                json_out_int(j, "value", metric_get(m));
        if (strcmp(m->type, "counter") == 0)
                json_out_str(j, "help", m->help);
        json_out_object_end(j);
}

static void put_disk(struct json_out *j, struct server *s)
{
        uint64_t free_bytes, size_bytes;

        if (!readiness_get_disk(s->readiness, &free_bytes, &size_bytes))
                return;
        json_out_object(j, "disk");
        json_out_uint(j, "free_bytes", free_bytes);
        json_out_uint(j, "size_bytes", size_bytes);
        json_out_object_end(j);
}

/* Selectors that match everything are omitted. */
static void put_debuginfo_rules(struct json_out *j, struct server *s)
{
        struct gc_thread *gc = atomic_load(&debuginfo_spaces_find(s->spaces, 0)->gc_thread);
        struct gc_rules rules = { 0 };

        if (gc) /* NULL: read-only */
                gc_thread_get_rules(gc, &rules);
        json_out_array(j, "debuginfo_rules");
        for (size_t i = 0; i < rules.count; i++) {
                const struct retention_rule *r = &rules.items[i];

                json_out_object(j, NULL);
                put_text_if_any(j, "tag", r->tag);
                put_text_if_any(j, "token", r->token);
                put_text_if_any(j, "source", r->source ? r->source : "");
                put_text_if_any(j, "kind", r->kind ? r->kind : "");
                json_out_uint(j, "age_s", r->age_s);
                json_out_uint(j, "unused_s", r->unused_s);
                json_out_uint(j, "size_bytes", r->size_bytes);
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

void write_service_status(struct server *s, struct buf *ret)
{
        struct condition_list list = { .is_whole = true };
        struct json_out j;

        json_out_init(&j, ret);
        list.j = &j;
        json_out_object(&j, NULL);
        put_service_head(&j, s);
        put_conditions(s, &list);
        put_disk(&j, s);
        put_debuginfo_rules(&j, s);
        json_out_array(&j, "metrics");
        metrics_visit(put_metric, &j);
        json_out_array_end(&j);
        json_out_object_end(&j);
}
