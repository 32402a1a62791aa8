/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/why.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

/* ---- texts ---- */

static void put_escaped(const char *s)
{
        _cleanup_buf_ struct buf text;

        buf_init(&text, SIZE_MAX / 2);
        utf8_put_escaped(&text, s);
        if (text.size)
                fwrite(text.data, 1, text.size, stdout);
}

/* Inside of JSON's strings only; json-c has escaped the others. */
static void put_json(const char *s)
{
        for (size_t left = strlen(s); left; s++, left--) {
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

/* ---- members ---- */

static struct json_object *member(struct json_object *o, const char *key)
{
        struct json_object *v;

        return json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, key, &v) ? v : NULL;
}

static const char *text(struct json_object *o, const char *key)
{
        struct json_object *v = member(o, key);

        return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";
}

static int64_t number(struct json_object *o, const char *key)
{
        struct json_object *v = member(o, key);

        return json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : 0;
}

static bool flag(struct json_object *o, const char *key)
{
        struct json_object *v = member(o, key);

        return json_object_is_type(v, json_type_boolean) && json_object_get_boolean(v);
}

static struct json_object *item(struct json_object *o, const char *key, size_t i)
{
        struct json_object *a = member(o, key);

        return json_object_is_type(a, json_type_array) && i < json_object_array_length(a) ?
                       json_object_array_get_idx(a, i) :
                       NULL;
}

/* ---- lines ---- */

/* A line "  label:   ..."; %s of the format are escaped, nothing else is allowed in it but %d of int64_t. */
static void put_line(const char *label, const char *format, ...)
{
        va_list args;

        printf("  %-12s ", label);
        va_start(args, format);
        for (const char *p = format; *p; p++) {
                if (p[0] == '%' && p[1] == 's') {
                        put_escaped(va_arg(args, const char *));
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

static const char *or_unknown(const char *s)
{
        return *s ? s : "??";
}

static void put_frames(const char *label, struct json_object *o)
{
        struct json_object *f;

        for (size_t i = 0; (f = item(o, "frames", i)); i++) {
                put_line(i ? "" : label, "%s%s at %s:%d%s%s", or_unknown(text(f, "function")), flag(f, "inlined") ? " (inlined)" : "",
                         or_unknown(text(f, "file")), number(f, "line"), *text(f, "die") ? ", DIE " : "", text(f, "die"));
        }
}

static void put_files(struct json_object *report)
{
        struct json_object *f;

        for (size_t i = 0; (f = item(report, "files", i)); i++) {
                bool found = *text(f, "found");

                put_line(text(f, "role"), "%s%s%s%s, %s, build-id %s", or_unknown(text(f, "name")), found ? " (" : "",
                         text(f, "found"), found ? ")" : "", text(f, "quality"), or_unknown(text(f, "build_id")));
                if (strcmp(text(f, "role"), "symbols") == 0)
                        put_line("", "sent in place of debuginfo: there are no DIEs, rows and symbols to show");
        }
}

static void put_unit(struct json_object *r)
{
        struct json_object *u = member(r, "unit"), *half = member(r, "split_unit"), *other;

        if (!u)
                return;
        put_line("unit", "%s to %s, DWARF %d, %d-bit offsets, %s%s%s", text(u, "offset"), text(u, "end"), number(u, "version"),
                 8 * number(u, "offset_bytes"), text(u, "tag"), flag(u, "split") ? ", split" : "",
                 flag(u, "damaged") ? ", partly damaged" : "");
        put_line("", "name %s, in %s", or_unknown(text(u, "name")), or_unknown(text(u, "comp_dir")));
        put_line("", "by %s", or_unknown(text(u, "producer")));
        if (*text(u, "dwo_name"))
                put_line("", "its split part is %s%s", text(u, "dwo_name"), half ? "" : ", which is missing");
        if (half)
                put_line("", "%s to %s there: name %s, by %s", text(half, "offset"), text(half, "end"),
                         or_unknown(text(half, "name")), or_unknown(text(half, "producer")));
        for (size_t i = 0; (other = item(r, "other_units", i)); i++)
                put_line("", "the unit at %s covers the address too and was not taken",
                         json_object_is_type(other, json_type_string) ? json_object_get_string(other) : "??");
        if (!flag(r, "unit_gives_frames"))
                put_line("", "this unit alone would give other frames");
}

static void put_scope(struct json_object *s)
{
        struct json_object *range = member(s, "range"), *call = member(s, "call"), *hop;

        put_line("scope", "%s at %s: %s", text(s, "tag"), text(s, "die"), or_unknown(text(s, "name")));
        if (!range)
                put_line("", "none of its own ranges covers the address");
        else if (*text(range, "list"))
                put_line("", "covers %s to %s: entry %d of the list at %s of %s", text(range, "start"), text(range, "end"),
                         number(range, "entry"), text(range, "list"), text(range, "from"));
        else
                put_line("", "covers %s to %s: low_pc and high_pc", text(range, "start"), text(range, "end"));
        if (call)
                put_line("", "called at %s:%d, column %d", or_unknown(text(call, "file")), number(call, "line"),
                         number(call, "column"));
        for (size_t i = 0; (hop = item(s, "names", i)); i++)
                put_line("", "%s: %s at %s of the unit at %s%s%s%s", text(hop, "by"), text(hop, "tag"), text(hop, "die"),
                         text(hop, "unit"), strcmp(text(hop, "file"), "dwz") == 0 ? " of the dwz file" : "",
                         *text(hop, "gave") ? ", gave the " : "", text(hop, "gave"));
}

static void put_row(struct json_object *r)
{
        struct json_object *row = member(r, "line_row");

        if (!row)
                return;
        put_line("line row", "%s to %s: %s:%d, column %d%s", text(row, "address"), text(row, "end"), or_unknown(text(row, "file")),
                 number(row, "line"), number(row, "column"), flag(row, "is_stmt") ? ", is_stmt" : ", not is_stmt");
        put_line("", "table at %s of .debug_line, opcode at %s, sequence %s to %s", text(row, "table"), text(row, "opcode"),
                 text(row, "sequence_start"), text(row, "sequence_end"));
        if (number(row, "rows_at_address") > 1)
                put_line("", "the last of %d rows at that address", number(row, "rows_at_address"));
        if (number(row, "other_sequences"))
                put_line("", "%d other sequences cover the address and begin later", number(row, "other_sequences"));
}

static void put_symbol(struct json_object *r)
{
        struct json_object *s = member(r, "symbol"), *go = member(r, "go"), *alias;

        if (s) {
                put_line("symbol", "%s: value %s, size %d, %s, %s, section %s", text(s, "name"), text(s, "value"), number(s, "size"),
                         text(s, "binding"), text(s, "type"), or_unknown(text(s, "section")));
                put_line("", "in %s of the %s", text(s, "table"), text(s, "file"));
                for (size_t i = 0; (alias = item(s, "aliases", i)); i++)
                        put_line("", "also called %s", json_object_is_type(alias, json_type_string) ?
                                                               json_object_get_string(alias) : "??");
        }
        if (go)
                put_line("go", "%s: %s to %s, function %d of the pclntab at %s, layout of Go %s", text(go, "name"), text(go, "entry"),
                         text(go, "end"), number(go, "function_number"), text(go, "table"), text(go, "layout"));
}

/* What the sources behind the one that answered would have said. */
static void put_sources(struct json_object *r)
{
        const char *answered = text(r, "source"), *named = text(r, "name_source");
        struct json_object *s;

        for (size_t i = 0; (s = item(r, "sources", i)); i++) {
                struct json_object *f = item(s, "frames", 0);

                if (strcmp(text(s, "source"), answered) == 0 || strcmp(text(s, "source"), named) == 0)
                        continue;
                put_line("otherwise", "%s would say %s at %s:%d", text(s, "source"), or_unknown(text(f, "function")),
                         or_unknown(text(f, "file")), number(f, "line"));
        }
}

static void put_place(struct json_object *r)
{
        struct json_object *p = member(r, "place");

        if (!p)
                return;
        if (*text(p, "section"))
                put_line("place", "section %s%s", text(p, "section"), flag(p, "section_is_code") ? "" : ", which is no code");
        if (*text(p, "segment"))
                put_line(*text(p, "section") ? "" : "place", "segment at %s, %d bytes%s", text(p, "segment"),
                         number(p, "segment_bytes"), flag(p, "segment_is_code") ? "" : ", which is no code");
        if (!*text(p, "section") && !*text(p, "segment"))
                put_line("place", "in no section and no segment");
}

static void put_index(struct json_object *r)
{
        struct json_object *of = member(r, "index"), *b = member(of ? of : r, "block");

        if (of && strcmp(text(of, "state"), text(r, "state")) != 0)
                put_line("index", "says %s, which the files do not", text(of, "state"));
        if (!b)
                return;
        put_line("block", "%d, %d bytes, anchor %s, %s to %s, used %d times", number(b, "number"), number(b, "bytes"),
                 text(b, "anchor"), text(b, "start"), text(b, "last"), number(b, "users"));
        put_line("", "row %d of %d, to %s%s", number(b, "row"), number(b, "rows"), text(b, "row_end"),
                 flag(b, "is_gap") ? ": a gap" : "");
        put_line("", "entry %d of %d of the map page %s", number(b, "map_entry"), number(b, "map_entries"), text(b, "map_page"));
}

static void put_second_opinion(struct json_object *r)
{
        struct json_object *s = member(r, "second_opinion");

        if (!s)
                return;
        put_line("libdw", flag(s, "agrees") ? "agrees" : item(s, "frames", 0) ? "differs" : "knows nothing");
        put_frames("", s);
}

static void put_result(struct json_object *r)
{
        struct json_object *s, *range = member(r, "range");
        bool resolved = strcmp(text(r, "state"), "resolved") == 0;

        putchar('\n');
        put_escaped(text(r, "address"));
        if (resolved && *text(r, "source"))
                printf(": resolved by "), put_escaped(text(r, "source"));
        else
                printf(": "), put_escaped(text(r, "state"));
        if (*text(r, "name_source"))
                printf(", the function by "), put_escaped(text(r, "name_source"));
        putchar('\n');
        if (!resolved) {
                put_line("meaning", "%s", text(r, "meaning"));
                put_line("next step", "%s", text(r, "next_step"));
        }
        put_frames("frame", r);
        if (range)
                put_line("range", "%s to %s", text(range, "start"), text(range, "end"));
        put_place(r);
        put_unit(r);
        for (size_t i = 0; (s = item(r, "scopes", i)); i++)
                put_scope(s);
        put_row(r);
        put_symbol(r);
        put_sources(r);
        put_index(r);
        put_second_opinion(r);
}

static void put_report(struct json_object *report)
{
        struct json_object *index = member(report, "index"), *r;

        put_line("build-id", "%s", or_unknown(text(report, "build_id")));
        if (*text(report, "quality"))
                put_line("quality", "%s%s%s", text(report, "quality"), *text(report, "partial") ? ", partial: " : "",
                         text(report, "partial"));
        put_files(report);
        if (index)
                put_line("index", "%s, %s, generation %d, %d ranges%s%s", text(index, "state"), text(index, "quality"),
                         number(index, "generation"), number(index, "ranges"), *text(index, "error") ? ": " : "",
                         text(index, "error"));
        if (*text(report, "error"))
                put_line("files", "cannot be explained: %s", text(report, "error"));
        if (*text(report, "second_opinion_error"))
                put_line("libdw", "failed: %s", text(report, "second_opinion_error"));
        for (size_t i = 0; (r = item(report, "results", i)); i++)
                put_result(r);
}

enum status why_print(struct buf *report, bool json, size_t *unresolved_ret, struct error *err)
{
        struct json_object *root = buf_cstr(report) ? json_tokener_parse(buf_cstr(report)) : NULL, *r;

        if (!item(root, "results", 0)) {
                json_object_put(root);
                return error_set(err, ST_BAD_DATA, "the answer is no report");
        }
        *unresolved_ret = 0;
        for (size_t i = 0; (r = item(root, "results", i)); i++)
                *unresolved_ret += strcmp(text(r, "state"), "resolved") != 0;
        if (json)
                put_json(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
        else
                put_report(root);
        json_object_put(root);
        return ST_OK;
}
