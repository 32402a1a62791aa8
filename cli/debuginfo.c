/* SPDX-License-Identifier: Apache-2.0 */
/* cairn debuginfo list|missing: the JSON of the service, or made here from its directory, as it is or as a table. */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "http/client.h"
#include "server/debuginfo_list.h"

struct debuginfo_command {
        const char *server, *data, *token_file;
        bool json;
};

static const struct usage usage = {
        .synopsis = "cairn debuginfo list|missing [--server URL | --data DIR] [--json]",
        .about = "list shows the objects that are stored and the state of their symbols;\n"
                 "missing shows the objects that samples mention and whose symbols nobody has, the most needed first.",
        .examples = "cairn debuginfo list\n"
                    "cairn debuginfo missing --server http://cairn:7700 --json | jq -r '.missing[].build_id'",
};

static enum status ask_server(const struct debuginfo_command *c, const char *path, struct buf *ret, struct error *err)
{
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        _cleanup_free_ char *token = NULL;
        struct http_client_options options = { .size = sizeof options, .base_url = c->server };
        const struct http_client_request request = { .method = "GET", .path = path, .max_response = LIMIT_RESPONSE_BYTES };
        enum status st = c->token_file ? http_client_read_token(c->token_file, &token, err) : ST_OK;

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

static enum status missing_dir(const char *dir, struct buf *ret, struct error *err)
{
        const struct profile_store_options o = { .size = sizeof o, .read_only = true };
        _cleanup_free_ char *profiles_dir = path_join(dir, "profiles");
        struct profile_store *profiles;
        enum status st = profiles_dir ? profile_store_open(profiles_dir, &o, &profiles, err) : error_no_memory(err);

        if (st)
                return st;
        st = debuginfo_missing_json(profiles, INT64_MIN, INT64_MAX, ret, err);
        profile_store_close(profiles);
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

static void print_missing(struct json_object *o)
{
        printf("%-40s  %12" PRId64 "  %12" PRId64 "  %-12s  %s\n", *text(o, "build_id") ? text(o, "build_id") : "(none)",
               number(o, "samples"), number(o, "locations"), text(o, "state"), text(o, "mapping"));
}

static enum status print_table(struct buf *body, bool missing, struct error *err)
{
        struct json_object *root = buf_cstr(body) ? json_tokener_parse(buf_cstr(body)) : NULL, *items;

        if (!json_object_object_get_ex(root, missing ? "missing" : "objects", &items) ||
            !json_object_is_type(items, json_type_array)) {
                json_object_put(root);
                return error_set(err, ST_BAD_DATA, "the service's answer is not what was asked for");
        }
        if (missing)
                printf("%-40s  %12s  %12s  %-12s  %s\n", "build-id", "samples", "locations", "state", "file");
        else
                printf("%-40s  %-10s  %-13s  %12s  %-8s  %s\n", "build-id", "kind", "quality", "bytes", "index", "name");
        for (size_t i = 0; i < json_object_array_length(items); i++)
                (missing ? print_missing : print_object)(json_object_array_get_idx(items, i));
        json_object_put(root);
        return ST_OK;
}

int command_debuginfo(int argc, char **argv)
{
        struct debuginfo_command c = { .server = "http://127.0.0.1:7700" };
        _cleanup_buf_ struct buf body;
        struct error err;
        bool missing = false;
        enum status st;
        const struct option_spec specs[] = {
                OPTION_STRING("server", 0, "URL", &c.server, "the service (http://127.0.0.1:7700)"),
                OPTION_STRING("data", 0, "DIR", &c.data, "read the service's directory instead"),
                OPTION_STRING("token-file", 0, "FILE", &c.token_file, "file whose first line is the token"),
                OPTION_FLAG("json", 0, &c.json, "print the JSON of the service"),
                OPTION_END,
        };

        buf_init(&body, LIMIT_RESPONSE_BYTES);
        st = options_parse(&usage, specs, &argc, &argv, &err);
        if (!st) {
                missing = argc == 1 && strcmp(argv[0], "missing") == 0;
                if (argc != 1 || (!missing && strcmp(argv[0], "list") != 0))
                        st = error_set(&err, ST_USAGE, "say list or missing (try --help)");
        }
        if (!st && c.data)
                st = missing ? missing_dir(c.data, &body, &err) : list_dir(c.data, &body, &err);
        else if (!st)
                st = ask_server(&c, missing ? "/api/v1/debuginfo/missing" : "/api/v1/debuginfo", &body, &err);
        if (!st && c.json)
                printf("%.*s%s", (int)body.size, (const char *)body.data,
                       body.size && body.data[body.size - 1] == '\n' ? "" : "\n");
        else if (!st)
                st = print_table(&body, missing, &err);
        return st ? command_fail("debuginfo", st, &err) : EXIT_DONE;
}
