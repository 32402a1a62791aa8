/* SPDX-License-Identifier: Apache-2.0 */
/* cairn why: a report about addresses of a file, of a data directory, or of a service. */
#include "cli/why.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/service.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "server/why.h"
#include "symbolizer/explain.h"
#include "symbolizer/extract_find.h"

#define NAME "why"

struct why_command {
        struct service_options service;
        const char *data, *debug_directory, *object;
        bool json, second_opinion;
        uint64_t addresses[EXPLAIN_ADDRESSES_MAX];
        size_t count;
};

static const struct usage usage = {
        .synopsis = "cairn why [OPTION]... FILE ADDRESS...\n"
                    "       cairn why (--data DIR | --server URL) [OPTION]... BUILD-ID ADDRESS...",
        .about = "Print how addresses are resolved: the files, the source that answered and what the next one would\n"
                 "have said, the unit, the DIEs and the line row behind each frame, the symbol, the block of the index;\n"
                 "or the reason why an address has no frames. Addresses are the object's own, hexadecimal.",
        .examples = "  cairn why /usr/bin/python3.11 0x58f1e0\n"
                    "  cairn why --second-opinion ./server 0x401136\n"
                    "  cairn why --data ./cairn-data 93ac61ec5a8eb1396f9fbd350e3169a558528a40 0x98958",
};

/* ---- a file ---- */

/* How a file was found, told by where it is: the search takes build-ids first (symbolizer/extract_find.h). */
static void describe(const struct why_command *c, int fd, const char *role, bool given, char path[PATH_MAX],
                     struct why_origin *ret)
{
        char link[64], by_id[PATH_MAX];
        ssize_t n;

        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, path, PATH_MAX - 1);
        path[n > 0 ? n : 0] = 0;
        snprintf(by_id, sizeof by_id, "%s/.build-id/", c->debug_directory);
        *ret = (struct why_origin){ .role = role, .name = path };
        ret->found = given                                       ? "as named" :
                     strncmp(path, by_id, strlen(by_id)) == 0 ? "by build-id" :
                     strcmp(role, "dwz") == 0                    ? "by .gnu_debugaltlink" :
                                                                   "by .gnu_debuglink";
}

static enum status explain_file(const struct why_command *c, struct buf *ret, struct error *err)
{
        const struct why_question q = { c->addresses, c->count, c->second_opinion, NULL };
        char paths[3][PATH_MAX];
        struct why_origin origins[3];
        struct extract_inputs in;
        size_t count = 0;
        enum status st = extract_inputs_find(c->object, c->debug_directory, &in, err);

        if (st)
                return st;
        describe(c, in.debuginfo_fd, "debuginfo", in.executable_fd < 0, paths[count], &origins[count]);
        count++;
        if (in.executable_fd >= 0) {
                describe(c, in.executable_fd, "executable", true, paths[count], &origins[count]);
                count++;
        }
        if (in.altlink_fd >= 0) {
                describe(c, in.altlink_fd, "dwz", false, paths[count], &origins[count]);
                count++;
        }
        st = why_files(&in, origins, count, &q, ret, err);
        extract_inputs_close(&in);
        return st;
}

/* ---- a data directory ---- */

static enum status explain_stored(const struct why_command *c, const struct build_id *id, struct buf *ret,
                                  struct error *err)
{
        _cleanup_free_ char *index_dir = path_join(c->data, "index"), *objects_dir = path_join(c->data, "debuginfo");
        const struct why_question q = { c->addresses, c->count, c->second_opinion, NULL };
        struct debuginfo_store *objects = NULL;
        struct symbol_index *index = NULL;
        enum status st = index_dir && objects_dir ? symbol_index_open(index_dir, true, &index, err) : error_no_memory(err);

        if (!st) {
                st = debuginfo_store_open(objects_dir, true, &objects, err);
                if (st == ST_NOT_FOUND)
                        st = ST_OK; /* an index made by cairn index has no stored files */
        }
        if (!st)
                st = why_stored(index, objects, id, &q, ret, err);
        if (objects)
                debuginfo_store_close(objects);
        symbol_index_close(index);
        return st;
}

/* ---- a service ---- */

static enum status explain_server(const struct why_command *c, const struct build_id *id, struct buf *ret,
                                  struct error *err)
{
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        _cleanup_buf_ struct buf path = { 0 };
        const struct http_client_options how = { .size = sizeof how };
        struct http_client_request request = { .method = "GET", .max_response = EXPLAIN_REPORT_BYTES_MAX * 2 };
        char hex[BUILD_ID_HEX_MAX];
        enum status st;

        buf_init(&path, KiB(8));
        buf_printf(&path, "/api/v1/why?build_id=%s&address=", build_id_hex(id, hex));
        for (size_t i = 0; i < c->count; i++)
                buf_printf(&path, "%s0x%" PRIx64, i ? "," : "", c->addresses[i]);
        buf_append_str(&path, c->second_opinion ? "&second_opinion=true" : "");
        st = buf_status(&path, err, "the request");
        request.path = buf_cstr(&path);
        if (!st)
                st = service_connect(&c->service, &how, &client, err);
        if (!st)
                st = http_client_send(client, &request, &response, err);
        if (!st)
                buf_append(ret, response.body.data, response.body.size);
        return st ? st : buf_status(ret, err, "answer");
}

/* ---- the command ---- */

static enum status parse(struct why_command *c, int argc, char **argv, struct error *err)
{
        const struct option_spec specs[] = {
                OPTION_STRING("data", 0, "DIR", &c->data, "read the index and the objects of a service's directory"),
                OPTION_STRING("server", 0, "URL", &c->service.server, "ask a service"),
                SERVICE_OPTIONS(&c->service),
                OPTION_STRING("debug-dir", 0, "DIR", &c->debug_directory, "where debug files are (" DEBUG_DIRECTORY ")"),
                OPTION_FLAG("second-opinion", 0, &c->second_opinion, "ask libdw as well, and say whether it agrees"),
                OPTION_FLAG("json", 0, &c->json, "print JSON"),
                OPTION_END,
        };
        enum status st = options_parse(&usage, specs, &argc, &argv, err);

        if (st)
                return st;
        if (c->data && c->service.server)
                return error_set(err, ST_USAGE, "--data and --server exclude each other");
        if (argc < 2)
                return error_set(err, ST_USAGE, "name a file or a build-id, and addresses (try --help)");
        c->object = argv[0];
        if (argc - 1 > EXPLAIN_ADDRESSES_MAX)
                return error_set(err, ST_USAGE, "more than %d addresses; ask several times", EXPLAIN_ADDRESSES_MAX);
        for (int i = 1; i < argc; i++)
                if (!parse_hex(argv[i], &c->addresses[c->count++]))
                        return error_set(err, ST_USAGE, "'%s' is not a hexadecimal address", argv[i]);
        return ST_OK;
}

static enum status explain(const struct why_command *c, struct buf *ret, struct error *err)
{
        struct build_id id;

        if (!c->data && !c->service.server)
                return explain_file(c, ret, err);
        if (!build_id_from_hex(&id, c->object, strlen(c->object)))
                return error_set(err, ST_USAGE, "'%s' is not a build-id", c->object);
        return c->data ? explain_stored(c, &id, ret, err) : explain_server(c, &id, ret, err);
}

int command_why(int argc, char **argv)
{
        struct why_command c = { .debug_directory = DEBUG_DIRECTORY };
        _cleanup_buf_ struct buf report = { 0 };
        size_t unresolved = 0;
        struct error err;
        enum status st = parse(&c, argc, argv, &err);

        buf_init(&report, EXPLAIN_REPORT_BYTES_MAX * 2);
        if (!st)
                st = explain(&c, &report, &err);
        if (!st)
                st = why_print(&report, c.json, &unresolved, &err);
        if (!st && (fflush(stdout) || ferror(stdout)))
                st = error_set(&err, ST_OS, "cannot write standard output");
        if (st)
                return command_fail(NAME, st, &err);
        return unresolved ? EXIT_FAILED : EXIT_DONE;
}
