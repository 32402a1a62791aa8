/* SPDX-License-Identifier: Apache-2.0 */
/* cairn debuginfo list|missing: what is stored, and what should be; of a service or of its directory. */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/command.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "http/client.h"
#include "server/debuginfo_list.h"

static const struct usage usage = {
        .synopsis = "cairn debuginfo list|missing [--server URL | --data DIR] [--from T] "
                    "[--to T] [--type T] [--limit N] [--json]",
        .about = "list shows the objects that are stored and the state of their symbols;\n"
                 "missing shows the objects whose debuginfo would resolve most samples if somebody uploaded it, with the\n"
                 "command to do so; apart from them those that have names and would gain lines and inlined frames.\n"
                 "It looks at all samples unless --from and --to say otherwise.",
        .examples = "cairn debuginfo list\n"
                    "cairn debuginfo missing --from now-1d --limit 10\n"
                    "cairn debuginfo missing --server http://cairn:7700 --json | jq -r '.missing[].build_id'",
};

static enum status list_server(const struct ask_options *o, struct buf *ret, struct error *err)
{
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        _cleanup_free_ char *token = NULL;
        struct http_client_options options = { .size = sizeof options,
                                               .base_url = o->server ? o->server : DEFAULT_SERVER };
        const struct http_client_request request = { .method = "GET",
                                                     .path = "/api/v1/debuginfo",
                                                     .max_response = LIMIT_RESPONSE_BYTES };
        enum status st = o->token_file ? http_client_read_token(o->token_file, &token, err) : ST_OK;

        options.token = token;
        if (!st)
                st = http_client_create(&options, &client, err);
        if (!st)
                st = http_client_send(client, &request, &response, err);
        if (!st)
                buf_append(ret, response.body.data, response.body.size);
        return st ? st : buf_status(ret, err, "answer");
}

static enum status list_dir(const char *dir, struct buf *ret, struct error *err)
{
        _cleanup_free_ char *index_dir = path_join(dir, "index"), *objects_dir = path_join(dir, "debuginfo");
        struct debuginfo_store *objects = NULL;
        struct symbol_index *index = NULL;
        enum status st = index_dir && objects_dir ? symbol_index_open(index_dir, true, &index, err) : error_no_memory(err);

        if (!st)
                st = debuginfo_store_open(objects_dir, true, &objects, err);
        if (!st)
                st = debuginfo_list_json(objects, index, ret, err);
        if (objects)
                debuginfo_store_close(objects);
        if (index)
                symbol_index_close(index);
        return st;
}

static const char *text(struct json_object *o, const char *key)
{
        struct json_object *v;

        return json_object_object_get_ex(o, key, &v) ? json_object_get_string(v) : "";
}

static int64_t number(struct json_object *o, const char *key)
{
        struct json_object *v;

        return json_object_object_get_ex(o, key, &v) ? json_object_get_int64(v) : 0;
}

static void print_object(struct json_object *o)
{
        struct json_object *index = NULL;

        json_object_object_get_ex(o, "index", &index);
        printf("%-40s  %-10s  %-13s  %12" PRId64 "  %-8s  %s\n", text(o, "build_id"), text(o, "kind"), text(o, "quality"),
               number(o, "size"), index ? text(index, "state") : "", text(o, "name"));
        if (index && *text(index, "error"))
                printf("%-40s  %s\n", "", text(index, "error"));
        if (index && *text(index, "partial"))
                printf("%-40s  partial: %s\n", "", text(index, "partial"));
}

static enum status print_table(struct buf *body, struct error *err)
{
        struct json_object *root = buf_cstr(body) ? json_tokener_parse(buf_cstr(body)) : NULL, *items;

        if (!json_object_object_get_ex(root, "objects", &items) || !json_object_is_type(items, json_type_array)) {
                json_object_put(root);
                return error_set(err, ST_BAD_DATA, "the service's answer is not what was asked for");
        }
        printf("%-40s  %-10s  %-13s  %12s  %-8s  %s\n", "build-id", "kind", "quality", "bytes", "index", "name");
        for (size_t i = 0; i < json_object_array_length(items); i++)
                print_object(json_object_array_get_idx(items, i));
        json_object_put(root);
        return ST_OK;
}

static enum status list(const struct ask_options *o, bool json, struct error *err)
{
        _cleanup_buf_ struct buf body = { 0 };
        enum status st;

        if (o->server && o->data)
                return error_set(err, ST_USAGE, "--server and --data exclude each other");
        if (o->from || o->to || o->type)
                return error_set(err, ST_USAGE, "--from, --to and --type choose samples: they are for missing");
        buf_init(&body, LIMIT_RESPONSE_BYTES);
        st = o->data ? list_dir(o->data, &body, err) : list_server(o, &body, err);
        if (st || !json)
                return st ? st : print_table(&body, err);
        printf("%.*s\n", (int)body.size, (const char *)body.data);
        return ST_OK;
}

/* Of all samples, where nothing else is said: what is missing is as a rule missing for long. */
static enum status missing(const struct ask_options *options, const char *limit, bool json, struct error *err)
{
        struct ask_options o = *options;
        struct ask_params params = { 0 };
        _cleanup_buf_ struct buf body;
        enum status st;

        if (!o.from)
                o.from = "0";
        ask_param(&params, "limit", limit);
        ask_param(&params, "server", o.server);
        ask_param(&params, "format", json ? "json" : "text");
        buf_init(&body, LIMIT_RESPONSE_BYTES);
        st = ask(&o, "uploads", &params, &body, err);
        if (!st)
                printf("%.*s%s", (int)body.size, (const char *)body.data, json ? "\n" : "");
        return st;
}

int command_debuginfo(int argc, char **argv)
{
        struct ask_options o = { 0 };
        const char *limit = NULL;
        bool json = false;
        struct error err;
        enum status st;
        const struct option_spec specs[] = {
                ASK_OPTIONS(&o),
                OPTION_STRING("limit", 'n', "N", &limit, "of missing: objects at most (tables show 30)"),
                OPTION_FLAG("json", 0, &json, "print the JSON of the service"),
                OPTION_END,
        };

        st = options_parse(&usage, specs, &argc, &argv, &err);
        if (!st && argc == 1 && strcmp(argv[0], "missing") == 0)
                st = missing(&o, limit, json, &err);
        else if (!st && argc == 1 && strcmp(argv[0], "list") == 0)
                st = list(&o, json, &err);
        else if (!st)
                st = error_set(&err, ST_USAGE, "say list or missing (try --help)");
        return st ? command_fail("debuginfo", st, &err) : EXIT_DONE;
}
