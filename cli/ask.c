/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask.h"

#include <string.h>
#include <time.h>

#include "common/file.h"
#include "common/limits.h"
#include "http/client.h"
#include "query/query.h"

void ask_param(struct ask_params *p, const char *name, const char *value)
{
        if (!value || !*value || p->count == ASK_PARAMS)
                return;
        p->names[p->count] = name;
        p->values[p->count++] = value;
}

enum status ask_selector(int argc, char **argv, const char **ret, struct error *err)
{
        if (argc > 1)
                return error_set(err, ST_USAGE, "one selector at most; '%s' is too much (quote it for the shell)",
                                 argv[1]);
        *ret = argc ? argv[0] : "";
        return ST_OK;
}

const char *ask_param_value(void *context, const char *name)
{
        const struct ask_params *p = context;

        for (size_t i = 0; i < p->count; i++)
                if (strcmp(p->names[i], name) == 0)
                        return p->values[i];
        return NULL;
}

static enum status ask_directory(const char *data, const char *operation, struct ask_params *params,
                                 struct buf *ret, struct error *err)
{
        _cleanup_free_ char *profiles = path_join(data, "profiles"), *index = path_join(data, "index");
        struct profile_store_options options = { .size = sizeof options, .read_only = true };
        struct profile_store *store = NULL;
        const char *content_type;
        struct timespec now;
        enum status st;

        if (!profiles || !index)
                return error_no_memory(err);
        clock_gettime(CLOCK_REALTIME, &now);
        /* Samples that wait in the queue are resolved with the index; without one they show as addresses. */
        st = symbol_index_open(index, true, &options.symbols, err);
        if (st == ST_NOT_FOUND)
                options.symbols = NULL;
        else if (st)
                return st;
        st = profile_store_open(profiles, &options, &store, err);
        if (!st)
                st = query_run(store, operation, ask_param_value, params,
                               now.tv_sec * INT64_C(1000000000) + now.tv_nsec, NULL, ret, &content_type, err);
        if (store)
                profile_store_close(store);
        if (options.symbols)
                symbol_index_close(options.symbols);
        return st;
}

static enum status make_path(const char *operation, const struct ask_params *params, struct buf *path,
                             struct error *err)
{
        const char *name = ask_param_value((void *)params, "name");
        char separator = '?';

        buf_append_str(path, "/api/v1/query/");
        if (strcmp(operation, "values") == 0 && name) {
                buf_append_str(path, "label/");
                http_client_escape(path, name);
                buf_append_str(path, "/values");
        } else {
                buf_append_str(path, operation);
        }
        for (size_t i = 0; i < params->count; i++) {
                if (params->values[i] == name)
                        continue;
                buf_printf(path, "%c%s=", separator, params->names[i]);
                http_client_escape(path, params->values[i]);
                separator = '&';
        }
        if (!buf_cstr(path))
                return buf_status(path, err, "query");
        return ST_OK;
}

static enum status ask_server(const struct ask_options *o, const char *operation, const struct ask_params *params,
                              struct buf *ret, struct error *err)
{
        const struct http_client_options how = { .size = sizeof how, .attempts = 2 };
        struct http_client_request request = { .method = "GET", .max_response = LIMIT_RESPONSE_BYTES };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        _cleanup_buf_ struct buf path;
        char reason[32], text[200];
        enum status st;

        buf_init(&path, LIMIT_HTTP_HEADER_BYTES);
        st = make_path(operation, params, &path, err);
        if (!st)
                st = service_connect(&o->service, &how, &client, err);
        if (st)
                return st;
        request.path = (const char *)path.data;
        st = http_client_send(client, &request, &response, err);
        if (st == ST_BAD_DATA &&
            strcmp(http_client_error_member(&response, "reason", reason, sizeof reason), "usage") == 0)
                return error_set(err, ST_USAGE, "%s",
                                 http_client_error_member(&response, "error", text, sizeof text));
        if (st)
                return st;
        buf_append(ret, response.body.data, response.body.size);
        return buf_status(ret, err, "answer");
}

enum status ask(const struct ask_options *o, const char *operation, struct ask_params *params, struct buf *ret,
                struct error *err)
{
        ask_param(params, "from", o->from);
        ask_param(params, "to", o->to);
        ask_param(params, "type", o->type);
        if (!!o->service.server + !!o->data + !!o->profile > 1)
                return error_set(err, ST_USAGE, "--server, --data and --profile exclude each other");
        if (o->profile)
                return ask_file(o->profile, operation, params, ret, err);
        if (o->data)
                return ask_directory(o->data, operation, params, ret, err);
        return ask_server(o, operation, params, ret, err);
}

enum status ask_write(const struct buf *answer, const char *output, struct error *err)
{
        enum status st;

        if (output && strcmp(output, "-") != 0)
                return file_write_durable(output, answer->data, answer->size, err);
        st = file_write_all(STDOUT_FILENO, answer->data, answer->size, "standard output", err);
        if (!st && answer->size && answer->data[answer->size - 1] != '\n' && isatty(STDOUT_FILENO))
                putchar('\n');
        return st;
}

enum status ask_and_write(const struct ask_options *o, const char *operation, struct ask_params *params,
                          const char *output, struct error *err)
{
        _cleanup_buf_ struct buf answer;
        enum status st;

        buf_init(&answer, LIMIT_RESPONSE_BYTES);
        st = ask(o, operation, params, &answer, err);
        return st ? st : ask_write(&answer, output, err);
}
