/* SPDX-License-Identifier: Apache-2.0 */
/* cairn why: explain how addresses of a file, a data directory or a service are resolved. */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/command.h"
#include "cli/shared/service.h"
#include "cli/symbols/debug_files.h"
#include "cli/symbols/named_file.h"
#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/json/json_node.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "pipeline/why_report.h"
#include "profile-formats/name_class.h"
#include "symbolizer/explain/explain.h"
#include "symbolizer/extraction/debug_file_search.h"

/* ---- printing a report (docs/formats/why.md) ---- */

/* ---- texts ---- */

static void print_escaped(const char *s)
{
        _cleanup_buf_ struct buf text;

        buf_init(&text, SIZE_MAX / 2);
        utf8_append_escaped(&text, s);
        if (text.size)
                fwrite(text.data, 1, text.size, stdout);
}

/* Control characters above 0x7e, which JSON text may contain in strings, are escaped. */
static void print_report_json(const char *s, size_t left)
{
        while (left && s[left - 1] == '\n')
                left--;
        for (; left; s++, left--) {
                if ((unsigned char)*s == 0x7f) {
                        fputs("\\u007f", stdout);
                } else if (utf8_is_c1(s, left)) {
                        printf("\\u00%02x", (unsigned char)s[1]);
                        s++;
                        left--;
                } else {
                        putchar(*s);
                }
        }
        putchar('\n');
}

static const struct json_node *get_first_item(const struct json_node *object, const char *key)
{
        struct json_node_list items = json_node_list(object, key);

        return json_node_next(&items);
}

/* ---- lines ---- */

/* Print "  label:   ...". Arguments of %s are escaped; other conversions are %d with int64_t. */
static void print_why_line(const char *label, const char *format, ...)
{
        va_list args;

        printf("  %-12s ", label);
        va_start(args, format);
        for (const char *p = format; *p; p++) {
                if (p[0] == '%' && p[1] == 's') {
                        print_escaped(va_arg(args, const char *));
                        p++;
                } else if (p[0] == '%' && p[1] == 'd') {
                        printf("%" PRId64, va_arg(args, int64_t));
                        p++;
                } else {
                        putchar(*p);
                }
        }
        va_end(args);
        putchar('\n');
}

static const char *text_or_unknown(const char *s)
{
        return *s ? s : "??";
}

static void print_why_frames(const char *label, const struct json_node *o)
{
        const struct json_node *f;

        for (struct json_node_list l = json_node_list(o, "frames"); (f = json_node_next(&l)); label = "") {
                print_why_line(label, "%s%s at %s:%d%s%s", text_or_unknown(json_node_text(f, "function")),
                               json_node_flag(f, "inlined") ? " (inlined)" : "",
                               text_or_unknown(json_node_text(f, "file")), json_node_int(f, "line"),
                               *json_node_text(f, "die") ? ", DIE " : "", json_node_text(f, "die"));
        }
}

static void print_why_files(const struct json_node *report)
{
        const struct json_node *f;

        for (struct json_node_list l = json_node_list(report, "files"); (f = json_node_next(&l));) {
                bool found = *json_node_text(f, "found");

                print_why_line(json_node_text(f, "role"), "%s%s%s%s, %s, build-id %s",
                               text_or_unknown(json_node_text(f, "name")), found ? " (" : "",
                               json_node_text(f, "found"), found ? ")" : "", json_node_text(f, "quality"),
                               text_or_unknown(json_node_text(f, "build_id")));
                if (strcmp(json_node_text(f, "role"), "symbols") == 0)
                        print_why_line("", "sent in place of debuginfo: there are no DIEs, rows and symbols to show");
        }
}

static void print_why_unit(const struct json_node *r)
{
        const struct json_node *u = json_node_member(r, "unit"), *half = json_node_member(r, "split_unit"), *other;

        if (!u)
                return;
        print_why_line("unit", "%s to %s, DWARF %d, %d-bit offsets, %s%s%s", json_node_text(u, "offset"),
                       json_node_text(u, "end"), json_node_int(u, "version"), 8 * json_node_int(u, "offset_bytes"),
                       json_node_text(u, "tag"), json_node_flag(u, "split") ? ", split" : "",
                       json_node_flag(u, "damaged") ? ", partly damaged" : "");
        print_why_line("", "name %s, in %s", text_or_unknown(json_node_text(u, "name")),
                       text_or_unknown(json_node_text(u, "comp_dir")));
        print_why_line("", "by %s", text_or_unknown(json_node_text(u, "producer")));
        if (*json_node_text(u, "dwo_name"))
                print_why_line("", "its split part is %s%s", json_node_text(u, "dwo_name"),
                               half ? "" : ", which is missing");
        if (half)
                print_why_line("", "%s to %s there: name %s, by %s", json_node_text(half, "offset"),
                               json_node_text(half, "end"), text_or_unknown(json_node_text(half, "name")),
                               text_or_unknown(json_node_text(half, "producer")));
        for (struct json_node_list l = json_node_list(r, "other_units"); (other = json_node_next(&l));)
                print_why_line("", "the unit at %s also covers the address but was not used",
                               text_or_unknown(json_node_string(other)));
        if (!json_node_flag(r, "unit_gives_frames"))
                print_why_line("", "this unit alone would give other frames");
}

static void print_why_scope(const struct json_node *s)
{
        const struct json_node *range = json_node_member(s, "range"), *call = json_node_member(s, "call"), *hop;

        print_why_line("scope", "%s at %s: %s", json_node_text(s, "tag"), json_node_text(s, "die"),
                       text_or_unknown(json_node_text(s, "name")));
        if (!range)
                print_why_line("", "none of its own ranges covers the address");
        else if (*json_node_text(range, "list"))
                print_why_line("", "covers %s to %s: entry %d of the list at %s of %s", json_node_text(range, "start"),
                               json_node_text(range, "end"), json_node_int(range, "entry"),
                               json_node_text(range, "list"), json_node_text(range, "from"));
        else
                print_why_line("", "covers %s to %s: low_pc and high_pc", json_node_text(range, "start"),
                               json_node_text(range, "end"));
        if (call)
                print_why_line("", "called at %s:%d, column %d", text_or_unknown(json_node_text(call, "file")),
                               json_node_int(call, "line"), json_node_int(call, "column"));
        for (struct json_node_list l = json_node_list(s, "names"); (hop = json_node_next(&l));)
                print_why_line("", "%s: %s at %s of the unit at %s%s%s%s", json_node_text(hop, "by"),
                               json_node_text(hop, "tag"), json_node_text(hop, "die"), json_node_text(hop, "unit"),
                               strcmp(json_node_text(hop, "file"), "dwz") == 0 ? " of the dwz file" : "",
                               *json_node_text(hop, "gave") ? ", gave the " : "", json_node_text(hop, "gave"));
}

static void print_why_row(const struct json_node *r)
{
        const struct json_node *row = json_node_member(r, "line_row");

        if (!row)
                return;
        print_why_line("line row", "%s to %s: %s:%d, column %d%s", json_node_text(row, "address"),
                       json_node_text(row, "end"), text_or_unknown(json_node_text(row, "file")),
                       json_node_int(row, "line"), json_node_int(row, "column"),
                       json_node_flag(row, "is_stmt") ? ", is_stmt" : ", not is_stmt");
        print_why_line("", "table at %s of .debug_line, opcode at %s, sequence %s to %s", json_node_text(row, "table"),
                       json_node_text(row, "opcode"), json_node_text(row, "sequence_start"),
                       json_node_text(row, "sequence_end"));
        if (json_node_int(row, "rows_at_address") > 1)
                print_why_line("", "the last of %d rows at that address", json_node_int(row, "rows_at_address"));
        if (json_node_int(row, "other_sequences"))
                print_why_line("", "%s the address and begin later",
                               COUNTED(json_node_int(row, "other_sequences"), "other sequence covers",
                                       "other sequences cover"));
}

static void print_why_symbol(const struct json_node *r)
{
        const struct json_node *s = json_node_member(r, "symbol"), *go = json_node_member(r, "go"), *alias;

        if (s) {
                print_why_line("symbol", "%s: value %s, size %d, %s, %s, section %s", json_node_text(s, "name"),
                               json_node_text(s, "value"), json_node_int(s, "size"), json_node_text(s, "binding"),
                               json_node_text(s, "type"), text_or_unknown(json_node_text(s, "section")));
                print_why_line("", "in %s of the %s", json_node_text(s, "table"), json_node_text(s, "file"));
                for (struct json_node_list l = json_node_list(s, "aliases"); (alias = json_node_next(&l));)
                        print_why_line("", "also called %s", text_or_unknown(json_node_string(alias)));
        }
        if (go)
                print_why_line("go", "%s: %s to %s, function %d of the pclntab at %s, layout of Go %s",
                               json_node_text(go, "name"), json_node_text(go, "entry"), json_node_text(go, "end"),
                               json_node_int(go, "function_number"), json_node_text(go, "table"),
                               json_node_text(go, "layout"));
}

/* Results of the sources with lower priority than the one in use. */
static void print_why_sources(const struct json_node *r)
{
        const char *answered = json_node_text(r, "source"), *named = json_node_text(r, "name_source");
        const struct json_node *s;

        for (struct json_node_list l = json_node_list(r, "sources"); (s = json_node_next(&l));) {
                const struct json_node *f = get_first_item(s, "frames");

                if (strcmp(json_node_text(s, "source"), answered) == 0 ||
                    strcmp(json_node_text(s, "source"), named) == 0)
                        continue;
                print_why_line("otherwise", "%s would give %s at %s:%d", json_node_text(s, "source"),
                               text_or_unknown(json_node_text(f, "function")),
                               text_or_unknown(json_node_text(f, "file")), json_node_int(f, "line"));
        }
}

static void print_why_place(const struct json_node *r)
{
        const struct json_node *p = json_node_member(r, "place");

        if (!p)
                return;
        if (*json_node_text(p, "section"))
                print_why_line("place", "section %s%s", json_node_text(p, "section"),
                               json_node_flag(p, "section_is_code") ? "" : ", which is not code");
        if (*json_node_text(p, "segment"))
                print_why_line(*json_node_text(p, "section") ? "" : "place", "segment at %s, %d bytes%s",
                               json_node_text(p, "segment"), json_node_int(p, "segment_bytes"),
                               json_node_flag(p, "segment_is_code") ? "" : ", which is not code");
        if (!*json_node_text(p, "section") && !*json_node_text(p, "segment"))
                print_why_line("place", "in no section and no segment");
}

static void print_why_index(const struct json_node *r)
{
        const struct json_node *of = json_node_member(r, "index"), *b = json_node_member(of ? of : r, "block");

        if (of && strcmp(json_node_text(of, "state"), json_node_text(r, "state")) != 0)
                print_why_line("index", "%s, unlike the files", json_node_text(of, "state"));
        if (!b)
                return;
        print_why_line("block", "%d, %d bytes, anchor %s, %s to %s, used %s", json_node_int(b, "number"),
                       json_node_int(b, "bytes"), json_node_text(b, "anchor"), json_node_text(b, "start"),
                       json_node_text(b, "last"), COUNTED(json_node_int(b, "users"), "time", "times"));
        print_why_line("", "row %d of %d, to %s%s", json_node_int(b, "row"), json_node_int(b, "rows"),
                       json_node_text(b, "row_end"), json_node_flag(b, "is_gap") ? ": a gap" : "");
        print_why_line("", "entry %d of %d of the map page %s", json_node_int(b, "map_entry"),
                       json_node_int(b, "map_entries"), json_node_text(b, "map_page"));
}

static void print_second_opinion(const struct json_node *r)
{
        const struct json_node *s = json_node_member(r, "second_opinion");

        if (!s)
                return;
        print_why_line("libdw", json_node_flag(s, "agrees")   ? "agrees"
                                : get_first_item(s, "frames") ? "differs"
                                                              : "has no frames");
        print_why_frames("", s);
}

static void print_why_result(const struct json_node *r)
{
        const struct json_node *s, *range = json_node_member(r, "range");
        bool resolved = strcmp(json_node_text(r, "state"), "resolved") == 0;

        putchar('\n');
        print_escaped(json_node_text(r, "address"));
        if (resolved && *json_node_text(r, "source"))
                printf(": resolved by "), print_escaped(json_node_text(r, "source"));
        else
                printf(": "), print_escaped(json_node_text(r, "state"));
        if (*json_node_text(r, "name_source"))
                printf(", the function by "), print_escaped(json_node_text(r, "name_source"));
        putchar('\n');
        if (*json_node_text(r, "meaning")) {
                print_why_line("meaning", "%s", json_node_text(r, "meaning"));
                if (*json_node_text(r, "next_step"))
                        print_why_line("next step", "%s", json_node_text(r, "next_step"));
        }
        print_why_frames("frame", r);
        if (range)
                print_why_line("range", "%s to %s", json_node_text(range, "start"), json_node_text(range, "end"));
        print_why_place(r);
        print_why_unit(r);
        for (struct json_node_list l = json_node_list(r, "scopes"); (s = json_node_next(&l));)
                print_why_scope(s);
        print_why_row(r);
        print_why_symbol(r);
        print_why_sources(r);
        print_why_index(r);
        print_second_opinion(r);
}

static void print_why_report(const struct json_node *report)
{
        const struct json_node *index = json_node_member(report, "index"), *r;

        print_why_line("build-id", "%s", text_or_unknown(json_node_text(report, "build_id")));
        if (*json_node_text(report, "quality"))
                print_why_line("quality", "%s%s%s", json_node_text(report, "quality"),
                               *json_node_text(report, "partial") ? ", partial: " : "",
                               json_node_text(report, "partial"));
        print_why_files(report);
        if (index)
                print_why_line("index", "%s, %s, generation %d, %s%s%s", json_node_text(index, "state"),
                               json_node_text(index, "quality"), json_node_int(index, "generation"),
                               COUNTED(json_node_int(index, "ranges"), "range", "ranges"),
                               *json_node_text(index, "error") ? ": " : "", json_node_text(index, "error"));
        if (*json_node_text(report, "error"))
                print_why_line("files", "cannot be explained: %s", json_node_text(report, "error"));
        if (*json_node_text(report, "second_opinion_error"))
                print_why_line("libdw", "failed: %s", json_node_text(report, "second_opinion_error"));
        for (struct json_node_list l = json_node_list(report, "results"); (r = json_node_next(&l));)
                print_why_result(r);
}

static enum status why_print(struct buf *report, bool json, size_t *unresolved_ret, struct error *err)
{
        _cleanup_arena_ struct arena memory = { 0 };
        const struct json_node *root, *r;

        root = json_node_parse(report->data, report->size, &memory);
        if (!get_first_item(root, "results"))
                return error_set(err, ST_BAD_DATA, "the response is not a report");
        *unresolved_ret = 0;
        for (struct json_node_list l = json_node_list(root, "results"); (r = json_node_next(&l));)
                *unresolved_ret += strcmp(json_node_text(r, "state"), "resolved") != 0;
        if (json)
                print_report_json((const char *)report->data, report->size);
        else
                print_why_report(root);
        return ST_OK;
}

/* ---- the command ---- */

#define NAME "why"

struct why_command {
        struct service_options service;
        const char *data, *object;
        const struct name_class *name; /* to be explained; NULL: addresses are */
        struct debug_files debug_files;
        bool json, second_opinion;
        uint64_t addresses[EXPLAIN_ADDRESSES_MAX];
        size_t count;
};

static const struct usage usage = {
        .synopsis = "cairn why [OPTION]... FILE ADDRESS...\n"
                    "       cairn why (--data DIR | --server URL) [OPTION]... BUILD-ID ADDRESS...\n"
                    "       cairn why [--json] NAME",
        .about = "Explain how addresses are resolved: the files, the source in use and the result of the next one,\n"
                 "the unit, the DIEs and the line row of each frame, the symbol, the block of the index; or the\n"
                 "reason why an address has no frames. Addresses are link-time addresses, hexadecimal.\n"
                 "NAME is that of a frame without a function, such as '[jit]', or of generated code.",
        .examples = "  cairn why /usr/bin/python3.11 0x58f1e0\n"
                    "  cairn why --second-opinion ./server 0x401136\n"
                    "  cairn why --data ./cairn-data 93ac61ec5a8eb1396f9fbd350e3169a558528a40 0x98958\n"
                    "  cairn why '[jit]'",
};

/* ---- a file ---- */

/* How a file was found, derived from its path: the search tries build-ids first
 * (symbolizer/extraction/debug_file_search.h).
 */
static void describe_origin(const struct why_command *c, int fd, const char *role, bool given, char path[PATH_MAX],
                            struct why_origin *ret)
{
        char link[64], by_id[PATH_MAX];
        ssize_t n;

        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, path, PATH_MAX - 1);
        path[n > 0 ? n : 0] = 0;
        if (given && starts_with(path, "/memfd:")) /* the content of a compressed file */
                snprintf(path, PATH_MAX, "%s", c->object);
        snprintf(by_id, sizeof by_id, "%s/.build-id/", c->debug_files.directory);
        *ret = (struct why_origin){ .role = role, .name = path };
        ret->found = given                                           ? "as named"
                     : debug_files_is_fetched(&c->debug_files, path) ? "from debuginfod"
                     : starts_with(path, by_id)                      ? "by build-id"
                     : strcmp(role, "dwz") == 0                      ? "by .gnu_debugaltlink"
                                                                     : "by .gnu_debuglink";
}

static enum status explain_file(struct why_command *c, struct buf *ret, struct error *err)
{
        const struct why_request q = { .addresses = c->addresses,
                                       .count = c->count,
                                       .second_opinion = c->second_opinion };
        char paths[3][PATH_MAX];
        struct why_origin origins[3];
        struct extract_inputs in;
        size_t count = 0;
        const struct debug_file_search search = debug_files_search(&c->debug_files);
        enum status st = named_file_search(c->object, &search, &in, err);

        if (st)
                return st;
        describe_origin(c, in.debuginfo_fd, "debuginfo", in.executable_fd < 0, paths[count], &origins[count]);
        count++;
        if (in.executable_fd >= 0) {
                describe_origin(c, in.executable_fd, "executable", true, paths[count], &origins[count]);
                count++;
        }
        if (in.altlink_fd >= 0) {
                describe_origin(c, in.altlink_fd, "dwz", false, paths[count], &origins[count]);
                count++;
        }
        st = explain_files(&in, origins, count, &q, ret, err);
        extract_inputs_close(&in);
        return st;
}

/* ---- a data directory ---- */

static enum status explain_stored(const struct why_command *c, const struct build_id *id, struct buf *ret,
                                  struct error *err)
{
        _cleanup_free_ char *base = NULL, *index_dir = NULL, *objects_dir = NULL;
        const struct why_request q = { .addresses = c->addresses,
                                       .count = c->count,
                                       .second_opinion = c->second_opinion };
        struct debuginfo_store *objects = NULL;
        struct symbol_index *index = NULL;
        enum status st = service_debuginfo_path(&c->service, c->data, &base, err);

        if (st)
                return st;
        index_dir = path_join(base, "index");
        objects_dir = path_join(base, "debuginfo");
        st = index_dir && objects_dir ? symbol_index_open(index_dir, true, &index, err) : error_no_memory(err);
        if (!st) {
                st = debuginfo_store_open(objects_dir, true, &objects, err);
                if (st == ST_NOT_FOUND)
                        st = ST_OK; /* a directory filled by cairn index has no stored objects */
        }
        if (!st)
                st = explain_stored_object(index, objects, id, &q, ret, err);
        if (objects)
                debuginfo_store_close(objects);
        symbol_index_close(index);
        return st;
}

/* ---- a service ---- */

static enum status explain_server(const struct why_command *c, const struct build_id *id, struct buf *ret,
                                  struct error *err)
{
        _cleanup_buf_ struct buf path = { 0 };
        /* The service ends a request that takes too long (--symbolize-timeout). */
        struct http_client_request request = { .method = "GET",
                                               .max_response = EXPLAIN_REPORT_BYTES_MAX * 2,
                                               .no_timeout_retry = true };
        char hex[BUILD_ID_HEX_MAX];
        enum status st;

        buf_init(&path, KiB(8));
        buf_printf(&path, "/api/v1/why?build_id=%s&address=", build_id_hex(id, hex));
        for (size_t i = 0; i < c->count; i++)
                buf_printf(&path, "%s0x%" PRIx64, i ? "," : "", c->addresses[i]);
        buf_append_str(&path, c->second_opinion ? "&second_opinion=true" : "");
        st = buf_status(&path, err, "the request");
        request.path = buf_cstr(&path);
        return st ? st : service_call(&c->service, &request, ret, err);
}

/* ---- the command ---- */

static enum status parse_why_options(struct why_command *c, int argc, char **argv, struct error *err)
{
        const struct option_spec specs[] = {
                OPTION_STRING("data", 0, "DIR", &c->data, "use the index and objects of this data directory"),
                OPTION_STRING("server", 0, "URL", &c->service.server, "use the service at URL"),
                SERVICE_OPTIONS(&c->service),
                DEBUGINFO_TENANT_OPTION(&c->service),
                DEBUG_FILES_OPTIONS(&c->debug_files),
                OPTION_FLAG("second-opinion", 0, &c->second_opinion, "also resolve with libdw, and compare"),
                OPTION_FLAG("json", 0, &c->json, "print JSON"),
                OPTION_END,
        };
        bool given[OPTION_SPECS_MAX] = { false };
        enum status st = options_parse_given(&usage, specs, &argc, &argv, given, err);

        if (st)
                return st;
        if (c->data && c->service.server)
                return error_set(err, ST_USAGE, "--data and --server exclude each other");
        if (c->service.tenant && !c->data && !c->service.server)
                return error_set(err, ST_USAGE, "--tenant needs --data or --server");
        if (c->data)
                st = options_check_given(specs, given, "data tenant second-opinion json", "cairn why --data", err);
        else if (c->service.server)
                st = options_check_given(specs, given, "server token-file ca tenant second-opinion json",
                                         "cairn why --server", err);
        else
                st = options_check_given(specs, given, "debug-dir no-debuginfod second-opinion json", "cairn why FILE",
                                         err);
        if (st)
                return st;
        c->name = argc == 1 ? name_class_find(argv[0]) : NULL;
        if (argc < 2 && !c->name)
                return error_set(err, ST_USAGE, "expected a file or a build-id, and addresses (try --help)");
        c->object = argv[0];
        if (argc - 1 > EXPLAIN_ADDRESSES_MAX)
                return error_set(err, ST_USAGE, "more than %d addresses; split them into several calls",
                                 EXPLAIN_ADDRESSES_MAX);
        for (int i = 1; i < argc; i++)
                if (!parse_hex(argv[i], &c->addresses[c->count++]))
                        return error_set(err, ST_USAGE, "'%s' is not a hexadecimal address", argv[i]);
        return ST_OK;
}

static void explain_name(const struct why_command *c)
{
        _cleanup_buf_ struct buf text = { 0 };
        struct json_out j;

        if (!c->json) {
                print_escaped(c->object);
                putchar('\n');
                print_why_line("meaning", "%s", c->name->meaning);
                if (c->name->next_step[0])
                        print_why_line("next step", "%s", c->name->next_step);
                return;
        }
        buf_init(&text, KiB(64));
        json_out_init(&j, &text);
        json_out_object(&j, NULL);
        json_out_str(&j, "name", c->object);
        json_out_str(&j, "meaning", c->name->meaning);
        json_out_str(&j, "next_step", c->name->next_step);
        json_out_object_end(&j);
        print_report_json((const char *)text.data, text.size);
}

static enum status explain_addresses(struct why_command *c, struct buf *ret, struct error *err)
{
        struct build_id id;

        if (!c->data && !c->service.server && (strchr(c->object, '/') || access(c->object, F_OK) == 0))
                return explain_file(c, ret, err);
        if (!c->data && !c->service.server)
                return error_set(err, ST_NOT_FOUND,
                                 "there is no file '%s' here; a build-id requires --data DIR or --server URL",
                                 c->object);
        if (!build_id_from_hex(&id, c->object, strlen(c->object)))
                return error_set(err, ST_USAGE, "'%s' is not a build-id", c->object);
        return c->data ? explain_stored(c, &id, ret, err) : explain_server(c, &id, ret, err);
}

int command_why(int argc, char **argv)
{
        struct why_command c = { .debug_files = { .directory = DEBUG_DIRECTORY } };
        _cleanup_buf_ struct buf report = { 0 };
        size_t unresolved = 0;
        struct error err;
        enum status st = parse_why_options(&c, argc, argv, &err);

        if (!st && c.name) {
                explain_name(&c);
                return EXIT_DONE;
        }
        buf_init(&report, EXPLAIN_REPORT_BYTES_MAX * 2);
        if (!st)
                st = debug_files_open(&c.debug_files, &err);
        if (!st)
                st = explain_addresses(&c, &report, &err);
        debug_files_close(&c.debug_files);
        if (!st)
                st = why_print(&report, c.json, &unresolved, &err);
        if (st)
                return command_fail(NAME, st, &err);
        return unresolved ? EXIT_FAILED : EXIT_DONE;
}
