/* SPDX-License-Identifier: Apache-2.0 */
/* cairn resymbolize: look stored locations up again, at a service or in a data directory. */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "cli/commands/command.h"
#include "cli/shared/service.h"
#include "common/clock.h"
#include "common/files/file.h"
#include "common/json/json_node.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "common/threads/condition.h"
#include "pipeline/resymbolize_report.h"
#include "query/engine/unit_text.h"

#define PROGRESS_INTERVAL_NS 500000000

static const struct usage usage = {
        .synopsis = "cairn resymbolize [--server URL | --data DIR] [--since TIME] [--build-id ID] [--dry-run] "
                    "[BUILD-ID]...",
        .about = "Look up the stored locations of these objects (default: all objects) again, and rewrite those\n"
                 "whose symbols improved. The service does so by itself when better debuginfo arrives.",
        .examples = "  cairn resymbolize\n"
                    "  cairn resymbolize --since now-1d --dry-run\n"
                    "  cairn resymbolize --data ./cairn-data 5f2c9a5e3d3d1b0d8f1c2ab1d3f8d0c9a7b6e5f4\n",
};

struct resymbolize_options {
        struct service_options service;
        const char *data;
        const char *build_id, *since;
        bool dry_run, json;
        struct build_id *ids; /* owned */
        size_t id_count;
};

static enum status add_build_id(struct resymbolize_options *o, const char *text, struct error *err)
{
        if (!build_id_from_hex(&o->ids[o->id_count++], text, strlen(text)))
                return error_set(err, ST_USAGE,
                                 "'%s' is not a build-id: expected hexadecimal digits, as 'file' or "
                                 "'readelf -n' print them",
                                 text);
        return ST_OK;
}

static enum status parse_build_ids(struct resymbolize_options *o, char **texts, size_t count, struct error *err)
{
        enum status st = ST_OK;

        o->ids = calloc(count + 1, sizeof *o->ids);
        if (!o->ids)
                return error_no_memory(err);
        if (o->build_id)
                st = add_build_id(o, o->build_id, err);
        for (size_t i = 0; !st && i < count; i++)
                st = add_build_id(o, texts[i], err);
        return st;
}

/* ---- progress ------------------------------------------------------------------------------------ */

static void show_resymbolize_progress(void *context, uint64_t done, uint64_t all)
{
        (void)context;
        if (isatty(STDERR_FILENO))
                fprintf(stderr, "\rcairn resymbolize: %" PRIu64 " of %" PRIu64 " locations%s", done, all,
                        done == all ? "\n" : "");
}

/* ---- in a directory ----------------------------------------------------------------------------- */

static enum status resymbolize_directory(const struct resymbolize_options *o, struct buf *report, struct error *err)
{
        _cleanup_free_ char *profiles = NULL, *base = NULL, *index = NULL;
        struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        struct resymbolize_request request = {
                .ids = o->ids, .count = o->id_count, .dry_run = o->dry_run, .progress = show_resymbolize_progress
        };
        struct profile_store *store = NULL;
        int64_t since_ns = 0;
        enum status st = o->since ? time_text_parse(o->since, wall_clock_ns(), &since_ns, err) : ST_OK;

        if (o->since)
                request.indexed_since_unix_s = since_ns > 1000000000 ? since_ns / 1000000000 : 1;
        if (!st)
                st = service_profiles_path(&o->service, o->data, &profiles, err);
        if (!st)
                st = service_debuginfo_path(&o->service, o->data, &base, err);
        index = st ? NULL : path_join(base, "index");
        if (!st)
                st = index ? profile_store_check_exists(profiles, err) : error_no_memory(err);
        if (!st)
                st = symbol_index_open(index, true, &options.symbols, err);
        if (st)
                return st;
        st = profile_store_open(profiles, &options, &store, err);
        if (!st)
                st = resymbolize_and_report(store, &request, NULL, report, err);
        profile_store_close(store);
        symbol_index_close(options.symbols);
        return st;
}

/* ---- at a server ---------------------------------------------------------------------------------- */

static enum status write_resymbolize_request(const struct resymbolize_options *o, struct buf *to, struct error *err)
{
        struct json_out j;

        json_out_init(&j, to);
        json_out_object(&j, NULL);
        json_out_array(&j, "build_ids");
        for (size_t i = 0; i < o->id_count; i++) {
                char hex[BUILD_ID_HEX_MAX];

                json_out_str(&j, NULL, build_id_hex(&o->ids[i], hex));
        }
        json_out_array_end(&j);
        if (o->since)
                json_out_str(&j, "since", o->since);
        json_out_bool(&j, "dry_run", o->dry_run);
        json_out_object_end(&j);
        return buf_status(to, err, "the request");
}

/* A thread that polls the server's progress while the main thread waits for the response. */
struct progress_poll {
        const struct service_options *service;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool started, stop;
};

static void poll_progress_once(struct http_client *client)
{
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        const struct http_client_request request = { .method = "GET", .path = "/api/v1/resymbolize" };
        _cleanup_arena_ struct arena memory = { 0 };
        const struct json_node *answer;

        if (http_client_send(client, &request, &response, NULL))
                return;
        answer = json_node_parse(response.body.data, response.body.size, &memory);
        if (json_node_uint(answer, "running") && json_node_uint(answer, "locations_all"))
                show_resymbolize_progress(NULL, json_node_uint(answer, "locations_done"),
                                          json_node_uint(answer, "locations_all"));
}

static void *run_progress_poll(void *arg)
{
        const struct http_client_options how = { .size = sizeof how };
        _cleanup_http_client_ struct http_client *client = NULL;
        struct progress_poll *p = arg;

        if (service_connect(p->service, &how, &client, NULL))
                return NULL;
        pthread_mutex_lock(&p->lock);
        while (!p->stop) {
                int64_t until = monotonic_ns() + PROGRESS_INTERVAL_NS;

                pthread_mutex_unlock(&p->lock);
                poll_progress_once(client);
                pthread_mutex_lock(&p->lock);
                while (!p->stop && condition_wait_until(&p->changed, &p->lock, until))
                        ;
        }
        pthread_mutex_unlock(&p->lock);
        return NULL;
}

static void start_progress_poll(struct progress_poll *p)
{
        pthread_mutex_init(&p->lock, NULL);
        pthread_cond_init(&p->changed, NULL);
        p->started = isatty(STDERR_FILENO) && pthread_create(&p->thread, NULL, run_progress_poll, p) == 0;
}

static void stop_progress_poll(struct progress_poll *p)
{
        pthread_mutex_lock(&p->lock);
        p->stop = true;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
        if (p->started)
                pthread_join(p->thread, NULL);
        pthread_cond_destroy(&p->changed);
        pthread_mutex_destroy(&p->lock);
}

static enum status resymbolize_at_server(const struct resymbolize_options *o, struct buf *report, struct error *err)
{
        struct progress_poll progress = { .service = &o->service };
        _cleanup_buf_ struct buf body;
        enum status st;

        buf_init(&body, LIMIT_HTTP_JSON_BYTES);
        st = write_resymbolize_request(o, &body, err);
        if (st)
                return st;
        start_progress_poll(&progress);
        st = service_post_json(&o->service, "/api/v1/resymbolize", &body, report, err);
        stop_progress_poll(&progress);
        return st;
}

/* ---- report --------------------------------------------------------------------------------------- */

/* One line per reason, with the counts before and after. @param heading  printed before the first; then NULL. */
static void print_reasons(const char *what, const struct json_node *counts, const char **heading)
{
        const struct json_node *before = json_node_member(counts, "before");
        const struct json_node *after = json_node_member(counts, "after");

        for (int i = 0; i < SYMBOL_STATE_COUNT; i++) {
                const char *reason = symbol_state_name(i);
                uint64_t was = json_node_uint(before, reason), is = json_node_uint(after, reason);

                if (!symbol_state_is_reason(i) || (!was && !is))
                        continue;
                printf("%s", *heading ? *heading : "");
                *heading = NULL;
                if (after)
                        printf("  %-14s %12" PRIu64 " %s before, %" PRIu64 " after\n", reason, was, what, is);
                else
                        printf("  %-14s %12" PRIu64 " %s\n", reason, was, what);
        }
}

static enum status print_report(const struct resymbolize_options *o, const struct buf *report, struct error *err)
{
        _cleanup_arena_ struct arena memory = { 0 };
        const struct json_node *answer, *samples, *why;
        const char *heading = "without symbols, by reason:\n";

        answer = json_node_parse(report->data, report->size, &memory);
        if (!json_node_member(answer, "locations_seen"))
                return error_set(err, ST_BAD_DATA,
                                 "unexpected response of /api/v1/resymbolize; is the server a Cairn service?");
        samples = json_node_member(answer, "unresolved_samples");
        why = json_node_member(samples, "not_counted");
        if (o->json) {
                printf("%.*s\n", (int)report->size - (report->data[report->size - 1] == '\n'),
                       (const char *)report->data);
        } else {
                printf("%s up, %" PRIu64 " %s, %s %s\n",
                       COUNTED(json_node_uint(answer, "locations_seen"), "location looked", "locations looked"),
                       json_node_uint(answer, "locations_changed"), o->dry_run ? "would change" : "changed",
                       COUNTED(json_node_uint(answer, "files_rewritten"), "file", "files"),
                       o->dry_run ? "would be rewritten" : "rewritten");
                print_reasons("of these locations", json_node_member(answer, "locations"), &heading);
                if (why)
                        printf("%s  samples are not counted: %s\n", heading ? heading : "", json_node_string(why));
                else
                        print_reasons("samples", samples, &heading);
                if (heading && !why)
                        printf("no locations or samples are without symbols\n");
        }
        return ST_OK;
}

int command_resymbolize(int argc, char **argv)
{
        struct resymbolize_options o = { 0 };
        const struct option_spec specs[] = {
                OPTION_STRING("server", 0, "URL", &o.service.server, "URL of the service (default " DEFAULT_SERVER ")"),
                OPTION_STRING("data", 0, "DIR", &o.data,
                              "use this data directory instead; its service must be stopped"),
                SERVICE_OPTIONS(&o.service),
                TENANT_OPTION(&o.service),
                OPTION_STRING("since", 0, "TIME", &o.since, "only objects indexed since then"),
                OPTION_STRING("build-id", 0, "ID", &o.build_id, "only this object; same as the argument BUILD-ID"),
                OPTION_FLAG("dry-run", 0, &o.dry_run, "look up and count, write nothing"),
                OPTION_FLAG("json", 0, &o.json, "print JSON"),
                OPTION_END,
        };
        _cleanup_buf_ struct buf report;
        struct error err;
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);

        buf_init(&report, LIMIT_HTTP_JSON_BYTES);
        if (!st && o.service.server && o.data)
                st = error_set(&err, ST_USAGE, "--server and --data exclude each other");
        if (!st)
                st = parse_build_ids(&o, argv, (size_t)argc, &err);
        if (!st)
                st = o.data ? resymbolize_directory(&o, &report, &err) : resymbolize_at_server(&o, &report, &err);
        free(o.ids);
        if (!st)
                st = print_report(&o, &report, &err);
        return st ? command_fail("resymbolize", st, &err) : EXIT_DONE;
}
