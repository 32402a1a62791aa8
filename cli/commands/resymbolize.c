/* SPDX-License-Identifier: Apache-2.0 */
/* cairn resymbolize: look stored locations up again, at a service or in a data directory. */
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "cli/commands/command.h"
#include "cli/service.h"
#include "common/file.h"
#include "common/limits.h"
#include "profile-store/store.h"

static const struct usage usage = {
        .synopsis = "cairn resymbolize [--server URL | --data DIR] [BUILD-ID]...",
        .about = "Look the stored locations of these objects, by default of all objects, up again and rewrite "
                 "those "
                 "whose answer improved. The service does this by itself when better debuginfo arrives.",
        .examples = "  cairn resymbolize\n"
                    "  cairn resymbolize --data ./cairn-data 5f2c9a5e3d3d1b0d8f1c2ab1d3f8d0c9a7b6e5f4\n",
};

struct resymbolize_options {
        struct service_options service;
        const char *data;
        bool json;
};

static enum status parse_resymbolize_arguments(char **texts, size_t count, struct build_id *ret, struct error *err)
{
        for (size_t i = 0; i < count; i++) {
                if (!build_id_from_hex(&ret[i], texts[i], strlen(texts[i])))
                        return error_set(err, ST_USAGE,
                                         "'%s' is not a build-id: expected hexadecimal digits, as 'file' or "
                                         "'readelf -n' print them",
                                         texts[i]);
        }
        return ST_OK;
}

/* ---- in a directory ----------------------------------------------------------------------------- */

static void show_resymbolize_progress(void *context, uint64_t done, uint64_t all)
{
        (void)context;
        if (isatty(STDERR_FILENO))
                fprintf(stderr, "\rcairn resymbolize: %" PRIu64 " of %" PRIu64 " locations%s", done, all,
                        done == all ? "\n" : "");
}

static enum status resymbolize_directory(const char *data, const struct build_id *ids, size_t count,
                                         struct resymbolize_result *ret, struct error *err)
{
        _cleanup_free_ char *profiles = path_join(data, "profiles"), *index = path_join(data, "index");
        struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        struct profile_store *store = NULL;
        enum status st =
                profiles && index ? symbol_index_open(index, true, &options.symbols, err) : error_no_memory(err);

        if (st)
                return st;
        st = profile_store_open(profiles, &options, &store, err);
        if (!st)
                st = profile_store_resymbolize(store, ids, count, show_resymbolize_progress, NULL, ret, err);
        profile_store_close(store);
        symbol_index_close(options.symbols);
        return st;
}

/* ---- at a server ---------------------------------------------------------------------------------- */

static enum status write_resymbolize_request(const struct build_id *ids, size_t count, struct buf *to,
                                             struct error *err)
{
        buf_append_str(to, "{\"build_ids\":[");
        for (size_t i = 0; i < count; i++) {
                char hex[BUILD_ID_HEX_MAX];

                buf_printf(to, "%s\"%s\"", i ? "," : "", build_id_hex(&ids[i], hex));
        }
        buf_append_str(to, "]}");
        return buf_status(to, err, "the request");
}

static enum status parse_resymbolize_answer(const struct buf *body, struct resymbolize_result *ret, struct error *err)
{
        struct json_tokener *tokener = json_tokener_new();
        struct json_object *answer = NULL, *seen, *changed, *files;
        enum status st = ST_OK;

        if (!tokener)
                return error_no_memory(err);
        if (body->size <= INT32_MAX)
                answer = json_tokener_parse_ex(tokener, (const char *)body->data, (int)body->size);
        if (json_object_object_get_ex(answer, "locations_seen", &seen) &&
            json_object_object_get_ex(answer, "locations_changed", &changed) &&
            json_object_object_get_ex(answer, "files_rewritten", &files))
                *ret = (struct resymbolize_result){ .locations_seen = json_object_get_uint64(seen),
                                                    .locations_changed = json_object_get_uint64(changed),
                                                    .files_rewritten = json_object_get_uint64(files) };
        else
                st = error_set(err, ST_BAD_DATA,
                               "unexpected response of /api/v1/resymbolize; is the server a Cairn service?");
        json_object_put(answer);
        json_tokener_free(tokener);
        return st;
}

static enum status resymbolize_at_server(const struct resymbolize_options *o, const struct build_id *ids, size_t count,
                                         struct resymbolize_result *ret, struct error *err)
{
        static const char *const headers[] = { "Content-Type: application/json", NULL };
        _cleanup_buf_ struct buf body;
        _cleanup_http_client_ struct http_client *client = NULL;
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        const struct http_client_options how = { .size = sizeof how, .idle_timeout_s = 3600 };
        enum status st;

        buf_init(&body, LIMIT_HTTP_JSON_BYTES);
        st = write_resymbolize_request(ids, count, &body, err);
        if (!st)
                st = service_connect(&o->service, &how, &client, err);
        if (!st) {
                /* Re-symbolization has no time limit, and the service sends nothing until it is done. */
                const struct http_client_request request = { .method = "POST",
                                                             .path = "/api/v1/resymbolize",
                                                             .headers = headers,
                                                             .body = body.data,
                                                             .body_size = body.size,
                                                             .repeatable = true };

                st = http_client_send(client, &request, &response, err);
        }
        if (st)
                return st;
        return parse_resymbolize_answer(&response.body, ret, err);
}

int command_resymbolize(int argc, char **argv)
{
        struct resymbolize_options o = { 0 };
        const struct option_spec specs[] = {
                OPTION_STRING("server", 0, "URL", &o.service.server, "the service (default " DEFAULT_SERVER ")"),
                OPTION_STRING("data", 0, "DIR", &o.data, "a data directory that no service is running on"),
                SERVICE_OPTIONS(&o.service),
                OPTION_FLAG("json", 0, &o.json, "print JSON"),
                OPTION_END,
        };
        struct resymbolize_result result = { 0 };
        struct build_id *ids = NULL;
        struct error err;
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);

        if (!st && !(ids = calloc((size_t)argc + 1, sizeof *ids)))
                st = error_no_memory(&err);
        if (!st)
                st = parse_resymbolize_arguments(argv, (size_t)argc, ids, &err);
        if (!st)
                st = o.data ? resymbolize_directory(o.data, ids, (size_t)argc, &result, &err)
                            : resymbolize_at_server(&o, ids, (size_t)argc, &result, &err);
        free(ids);
        if (st)
                return command_fail("resymbolize", st, &err);
        printf(o.json ? "{\"locations_seen\":%" PRIu64 ",\"locations_changed\":%" PRIu64 ",\"files_rewritten\":%" PRIu64
                        "}\n"
                      : "%" PRIu64 " locations looked up, %" PRIu64 " changed, %" PRIu64 " files rewritten\n",
               result.locations_seen, result.locations_changed, result.files_rewritten);
        return EXIT_DONE;
}
