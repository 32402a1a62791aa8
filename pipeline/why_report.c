/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report is merged from parts that are made separately and are JSON text in struct why_parts: the worker's reading
 * of the files (object), that of libdw in a second worker (second_opinion), the index, the origins of the files, and
 * the stored symbol file. An absent part is empty. merge_why_parts() parses them with json-c and attaches the results
 * of the same address to each other; without the object part, the index has the results.
 *
 * The workers read hostile files, so their output is untrusted too: its depth is bounded, and a member of another type
 * counts as absent (get_typed_member()). A failed worker becomes a text of the report of a stored object, and a failed
 * second opinion one of any report.
 *
 * Order: merging, the workers and explain_files(), the part from the index, the part from stored files with
 * explain_stored_object().
 */
#include "pipeline/why_report.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "pipeline/elf_job.h"
#include "pipeline/stored_dwo.h"
#include "symbol-index/index_explain.h"
#include "symbol-index/symbol_state.h"
#include "symbolizer/explain/explain.h"

/* ---- merging the parts of a report ---- */

#define DEPTH_MAX 16

/* Parts of a report as JSON text; empty: absent. */
struct why_parts {
        struct buf object, second_opinion, index, origins;
        struct buf symbols; /* the stored symbol file, if it is better than the stored ELF files */
        char second_opinion_error[256], object_error[256]; /* "": none */
};

static struct json_object *parse_why_part(struct buf *part)
{
        struct json_tokener *t = part->size ? json_tokener_new_ex(DEPTH_MAX) : NULL;
        struct json_object *o = NULL;

        if (t)
                o = json_tokener_parse_ex(t, (const char *)part->data, (int)part->size);
        if (t)
                json_tokener_free(t);
        if (!json_object_is_type(o, json_type_object)) {
                json_object_put(o);
                return NULL;
        }
        return o;
}

static struct json_object *get_typed_member(struct json_object *o, const char *key, enum json_type type)
{
        struct json_object *v;

        return json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, key, &v) &&
                               json_object_is_type(v, type)
                       ? v
                       : NULL;
}

static struct json_object *get_array_object(struct json_object *o, const char *array, size_t i)
{
        struct json_object *a = get_typed_member(o, array, json_type_array);
        struct json_object *v = a && i < json_object_array_length(a) ? json_object_array_get_idx(a, i) : NULL;

        return json_object_is_type(v, json_type_object) ? v : NULL;
}

static const char *get_text_member(struct json_object *o, const char *key)
{
        struct json_object *v = get_typed_member(o, key, json_type_string);

        return v ? json_object_get_string(v) : "";
}

static int64_t get_number_member(struct json_object *o, const char *key)
{
        struct json_object *v = get_typed_member(o, key, json_type_int);

        return v ? json_object_get_int64(v) : 0;
}

/* Our names of functions without a linkage name are qualified with namespaces; libdw's are not. */
static bool same_function(struct json_object *ours, struct json_object *theirs)
{
        const char *name = *get_text_member(ours, "linkage_name") ? get_text_member(ours, "linkage_name")
                                                                  : get_text_member(ours, "function");
        const char *other = get_text_member(theirs, "function");
        size_t n = strlen(name), m = strlen(other);

        return strcmp(name, other) == 0 ||
               (n > m + 2 && strcmp(name + n - m, other) == 0 && strncmp(name + n - m - 2, "::", 2) == 0);
}

/* A name from a symbol table is not compared, because libdw reads only DWARF. */
static bool do_results_agree(struct json_object *ours, struct json_object *theirs)
{
        bool named_elsewhere = *get_text_member(ours, "name_source");

        for (size_t i = 0;; i++) {
                struct json_object *x = get_array_object(ours, "frames", i), *y = get_array_object(theirs, "frames", i);

                if (!x || !y)
                        return !x && !y;
                if ((!same_function(x, y) && !(named_elsewhere && !get_array_object(ours, "frames", i + 1))) ||
                    get_number_member(x, "line") != get_number_member(y, "line") ||
                    strcmp(path_base(get_text_member(x, "file")), path_base(get_text_member(y, "file"))) != 0)
                        return false;
        }
}

/* Add a member to `to`, sharing it with its previous parent. */
static void move_member(struct json_object *to, const char *key, struct json_object *from)
{
        if (from)
                json_object_object_add(to, key, json_object_get(from));
}

static void add_origins(struct json_object *object, struct json_object *origins)
{
        struct json_object *file;

        for (size_t i = 0; (file = get_array_object(object, "files", i)); i++) {
                struct json_object *origin = get_typed_member(origins, get_text_member(file, "role"), json_type_object);

                move_member(file, "name", get_typed_member(origin, "name", json_type_string));
                move_member(file, "found", get_typed_member(origin, "found", json_type_string));
        }
}

/* The index was built from the symbol file, so the index has the results. */
static void add_symbol_file(struct json_object *report, struct json_object *symbols)
{
        struct json_object *files = json_object_new_array(), *result;

        json_object_array_add(files, json_object_get(symbols));
        json_object_object_add(report, "files", files);
        for (size_t i = 0; (result = get_array_object(report, "results", i)); i++)
                if (strcmp(get_text_member(result, "state"), "resolved") == 0)
                        json_object_object_add(result, "source", json_object_new_string("symbols"));
}

static void add_to_results(struct json_object *report, struct json_object *index, struct json_object *second)
{
        struct json_object *result;

        for (size_t i = 0; (result = get_array_object(report, "results", i)); i++) {
                struct json_object *indexed = get_array_object(index, "results", i),
                                   *other = get_array_object(second, "results", i);

                if (indexed && indexed != result) {
                        move_member(result, "file_offset", get_typed_member(indexed, "file_offset", json_type_string));
                        json_object_object_del(indexed, "file_offset");
                        move_member(result, "index", indexed);
                }
                if (other) {
                        json_object_object_add(other, "agrees",
                                               json_object_new_boolean(do_results_agree(result, other)));
                        move_member(result, "second_opinion", other);
                }
        }
}

static void add_text_member(struct json_object *o, const char *key, const char *value)
{
        if (value[0])
                json_object_object_add(o, key, json_object_new_string(value));
}

static enum status merge_why_parts(struct why_parts *p, struct buf *ret, struct error *err)
{
        struct json_object *object = parse_why_part(&p->object), *second = parse_why_part(&p->second_opinion);
        struct json_object *index = parse_why_part(&p->index), *origins = parse_why_part(&p->origins), *report;
        struct json_object *symbols = parse_why_part(&p->symbols);

        if (p->object.size && !object)
                snprintf(p->object_error, sizeof p->object_error, "the worker's report is malformed");
        report = object ? json_object_get(object) : json_object_new_object();
        add_origins(object, origins);
        if (!object) {
                move_member(report, "build_id", get_typed_member(index, "build_id", json_type_string));
                move_member(report, "results", get_typed_member(index, "results", json_type_array));
        }
        if (symbols && !object)
                add_symbol_file(report, symbols);
        add_to_results(report, index, second);
        if (index) {
                json_object_object_del(index, "results");
                move_member(report, "index", index);
        }
        add_text_member(report, "error", p->object_error);
        add_text_member(report, "second_opinion_error", p->second_opinion_error);
        buf_append_str(ret,
                       json_object_to_json_string_ext(report, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
        json_object_put(report);
        json_object_put(object);
        json_object_put(second);
        json_object_put(index);
        json_object_put(origins);
        json_object_put(symbols);
        return buf_status(ret, err, "the report");
}

static void init_why_parts(struct why_parts *p)
{
        *p = (struct why_parts){ 0 };
        buf_init(&p->object, EXPLAIN_REPORT_BYTES_MAX);
        buf_init(&p->second_opinion, EXPLAIN_REPORT_BYTES_MAX);
        buf_init(&p->index, EXPLAIN_REPORT_BYTES_MAX);
        buf_init(&p->origins, MiB(1));
        buf_init(&p->symbols, MiB(1));
}

static void deinit_why_parts(struct why_parts *p)
{
        buf_deinit(&p->object);
        buf_deinit(&p->second_opinion);
        buf_deinit(&p->index);
        buf_deinit(&p->origins);
        buf_deinit(&p->symbols);
}

static enum status write_origins(struct why_parts *p, const struct why_origin *origins, size_t count, struct error *err)
{
        struct json_out j;

        json_out_init(&j, &p->origins);
        json_out_object(&j, NULL);
        for (size_t i = 0; i < count; i++) {
                json_out_object(&j, origins[i].role);
                json_out_str(&j, "name", origins[i].name);
                json_out_str(&j, "found", origins[i].found);
                json_out_object_end(&j);
        }
        json_out_object_end(&j);
        return buf_status(&p->origins, err, "the report");
}

/* A failed second opinion is reported, but is not a failure of the report. */
static enum status run_explain_workers(struct why_parts *p, const struct extract_inputs *in,
                                       const struct why_request *q, struct error *err)
{
        enum status st = explain_run_worker(in, EXPLAIN_OBJECT, q->addresses, q->count, q->cancel, &p->object, err);
        struct error second;

        if (!st && q->second_opinion &&
            explain_run_worker(in, EXPLAIN_SECOND_OPINION, q->addresses, q->count, q->cancel, &p->second_opinion,
                               &second))
                snprintf(p->second_opinion_error, sizeof p->second_opinion_error, "%s", second.text);
        return st;
}

enum status explain_files(const struct extract_inputs *in, const struct why_origin *origins, size_t origin_count,
                          const struct why_request *q, struct buf *ret, struct error *err)
{
        _cleanup_(deinit_why_parts) struct why_parts p;
        enum status st;

        init_why_parts(&p);
        st = write_origins(&p, origins, origin_count, err);
        if (!st)
                st = run_explain_workers(&p, in, q, err);
        return st ? st : merge_why_parts(&p, ret, err);
}

/* ---- explanation from the index ---- */

static void write_hex_member(struct json_out *j, const char *key, uint64_t v)
{
        char text[24];

        snprintf(text, sizeof text, "0x%" PRIx64, v);
        json_out_str(j, key, text);
}

static void put_block(struct json_out *j, struct symbol_view *view, const struct build_id *id, uint64_t address)
{
        struct index_row_found f;

        if (symbol_view_explain(view, id, address, &f, NULL))
                return;
        json_out_object(j, "block");
        json_out_uint(j, "number", f.block);
        write_hex_member(j, "anchor", f.anchor);
        json_out_uint(j, "bytes", f.block_bytes);
        json_out_uint(j, "users", f.users);
        write_hex_member(j, "start", f.block_start);
        write_hex_member(j, "last", f.block_last);
        json_out_uint(j, "row", f.row);
        json_out_uint(j, "rows", f.row_count);
        write_hex_member(j, "row_end", f.row_end);
        json_out_bool(j, "is_gap", f.frame_count == 0);
        write_hex_member(j, "map_page", f.page_last);
        json_out_uint(j, "map_entry", f.entry);
        json_out_uint(j, "map_entries", f.entry_count);
        json_out_object_end(j);
}

static enum status write_index_frames(struct json_out *j, struct symbol_view *view, const struct symbol_batch *batch,
                                      const struct symbol_result *r, struct error *err)
{
        enum status st = ST_OK;

        json_out_array(j, "frames");
        for (uint32_t i = 0; !st && i < r->frame_count; i++) {
                const struct symbol_frame *f = &batch->frames[r->first_frame + i];
                const char *name, *linkage_name, *file;

                st = symbol_view_get_function(view, f->function, &name, &linkage_name, err);
                if (!st)
                        st = symbol_view_get_file(view, f->file, &file, err);
                if (st)
                        break;
                json_out_object(j, NULL);
                json_out_str(j, "function", name);
                json_out_str(j, "linkage_name", linkage_name);
                json_out_str(j, "file", file);
                json_out_uint(j, "line", f->line);
                json_out_bool(j, "inlined", f->inlined);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        return st;
}

/* The addresses in the ELF file. */
struct addresses_found {
        uint64_t items[EXPLAIN_ADDRESSES_MAX];
        bool are_all;
};

static enum status write_index_results(struct json_out *j, struct symbol_view *view, const struct build_id *id,
                                       const struct why_request *q, struct addresses_found *found, struct error *err)
{
        struct symbol_key keys[EXPLAIN_ADDRESSES_MAX];
        struct symbol_batch batch = { 0 };
        enum status st;

        for (size_t i = 0; i < q->count; i++)
                keys[i] = (struct symbol_key){ id, q->addresses[i], q->are_file_offsets };
        st = symbol_view_lookup(view, keys, q->count, &batch, err);
        json_out_array(j, "results");
        for (size_t i = 0; !st && i < q->count; i++) {
                const struct symbol_result *r = &batch.results[i];

                found->items[i] = r->address;
                found->are_all = found->are_all && (!q->are_file_offsets || is_offset_translated(r));
                json_out_object(j, NULL);
                write_hex_member(j, "address", r->address);
                if (q->are_file_offsets)
                        write_hex_member(j, "file_offset", q->addresses[i]);
                json_out_str(j, "state", symbol_state_name(r->state));
                if (symbol_state_is_reason(r->state)) {
                        json_out_str(j, "meaning", symbol_state_meaning(r->state));
                        json_out_str(j, "next_step", symbol_state_next_step(r->state));
                }
                st = write_index_frames(j, view, &batch, r, err);
                put_block(j, view, id, r->address);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        symbol_batch_deinit(&batch);
        return st;
}

static enum status explain_from_index(struct why_parts *p, struct symbol_index *symbols, const struct build_id *id,
                                      const struct why_request *q, struct addresses_found *found, struct error *err)
{
        char hex[BUILD_ID_HEX_MAX];
        struct symbol_object o;
        struct symbol_view *view;
        struct json_out j;
        enum status st = symbol_view_begin(symbols, &view, err);

        if (st)
                return st;
        st = symbol_view_get_object(view, id, &o, err);
        json_out_init(&j, &p->index);
        json_out_object(&j, NULL);
        if (!st) {
                json_out_str(&j, "build_id", build_id_hex(id, hex));
                json_out_str(&j, "state", symbol_object_state_name(o.state));
                if (o.reason[0])
                        json_out_str(&j, "error", o.reason);
                json_out_str(&j, "quality", symbol_quality_name(o.quality));
                json_out_uint(&j, "generation", o.generation);
                json_out_uint(&j, "ranges", o.range_count);
                json_out_int(&j, "indexed_unix_s", o.indexed_unix_s);
                st = write_index_results(&j, view, id, q, found, err);
        }
        json_out_object_end(&j);
        symbol_view_end(view);
        return st ? st : buf_status(&p->index, err, "the report");
}

/* ---- explanation from stored files ---- */

struct stored_files {
        struct extract_inputs in;
        struct stored_object objects[4];
        struct why_origin origins[4];
        struct stored_dwo dwo;
        size_t count;
        char name[BUILD_ID_HEX_MAX];
};

static void stored_files_close(struct stored_files *f)
{
        cleanup_close(&f->in.debuginfo_fd);
        cleanup_close(&f->in.executable_fd);
        cleanup_close(&f->in.altlink_fd);
        cleanup_close(&f->in.dwp_fd);
}

static enum status unpack_stored_file(struct stored_files *f, struct debuginfo_store *objects,
                                      const struct build_id *id, enum object_kind kind, const char *role, int *fd_ret,
                                      struct error *err)
{
        struct stored_object *o = &f->objects[f->count];
        enum status st = debuginfo_store_find(objects, id, kind, o, err);

        if (!st)
                st = debuginfo_store_unpack(objects, id, kind, fd_ret, err);
        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        f->origins[f->count++] =
                (struct why_origin){ role, o->name, o->source == SOURCE_UPLOAD ? "upload" : "upstream" };
        return ST_OK;
}

/* A missing dwz file is not a failure: the report lists the files that were read. */
static enum status unpack_dwz_file(struct stored_files *f, struct debuginfo_store *objects, const struct why_request *q,
                                   struct error *err)
{
        struct elf_supplement found;
        enum status st;

        if (f->in.debuginfo_fd < 0)
                return ST_OK;
        st = elf_job_read_supplement(f->in.debuginfo_fd, NULL, q->cancel, &found, err);
        if (st || !found.needed.size)
                return st;
        return unpack_stored_file(f, objects, &found.needed, OBJECT_SUPPLEMENTARY, "dwz", &f->in.altlink_fd, err);
}

/* Whether a stored symbol file is better than all stored ELF files. */
static bool is_symbol_file_best(struct stored_files *f, struct debuginfo_store *objects, const struct build_id *id,
                                struct stored_object *ret)
{
        if (debuginfo_store_stat(objects, id, OBJECT_SYMBOLS, ret, NULL))
                return false;
        for (size_t i = 0; i < f->count; i++)
                if (f->objects[i].quality >= ret->quality)
                        return false;
        return true;
}

static enum status write_symbol_file(struct why_parts *p, const struct stored_object *o, struct error *err)
{
        char hex[BUILD_ID_HEX_MAX];
        struct json_out j;

        json_out_init(&j, &p->symbols);
        json_out_object(&j, NULL);
        json_out_str(&j, "role", object_kind_name(o->kind));
        json_out_str(&j, "name", o->name);
        json_out_str(&j, "found", object_source_name(o->source));
        json_out_str(&j, "build_id", build_id_hex(&o->build_id, hex));
        json_out_str(&j, "quality", symbol_quality_name(o->quality));
        json_out_uint(&j, "bytes", o->size_bytes);
        json_out_object_end(&j);
        return buf_status(&p->symbols, err, "the report");
}

static enum status explain_from_stored_files(struct why_parts *p, struct debuginfo_store *objects,
                                             const struct build_id *id, const struct why_request *q, struct error *err)
{
        _cleanup_(stored_files_close) struct stored_files f = {
                .in = { .debuginfo_fd = -1, .executable_fd = -1, .altlink_fd = -1, .dwp_fd = -1 }
        };
        struct stored_object symbols;
        enum status st = unpack_stored_file(&f, objects, id, OBJECT_DEBUGINFO, "debuginfo", &f.in.debuginfo_fd, err);

        f.in.name = build_id_hex(id, f.name);
        f.dwo.objects = objects;
        f.in.dwo = (struct dwarf_dwo_source){ stored_dwo_open, &f.dwo };
        if (!st)
                st = unpack_stored_file(&f, objects, id, OBJECT_EXECUTABLE, "executable", &f.in.executable_fd, err);
        if (!st && is_symbol_file_best(&f, objects, id, &symbols))
                return write_symbol_file(p, &symbols, err);
        if (!st)
                st = unpack_stored_file(&f, objects, id, OBJECT_DWP, "dwp", &f.in.dwp_fd, err);
        if (!st && f.count)
                st = unpack_dwz_file(&f, objects, q, err);
        if (!st)
                st = write_origins(p, f.origins, f.count, err);
        return st || !f.count ? st : run_explain_workers(p, &f.in, q, err);
}

enum status explain_stored_object(struct symbol_index *symbols, struct debuginfo_store *objects,
                                  const struct build_id *id, const struct why_request *q, struct buf *ret,
                                  struct error *err)
{
        _cleanup_(deinit_why_parts) struct why_parts p;
        struct addresses_found found = { .are_all = true };
        struct why_request of_files = *q;
        struct build_id owner;
        enum status st;

        if (objects && debuginfo_store_resolve_alias(objects, id, &owner, NULL) == ST_OK)
                id = &owner;
        init_why_parts(&p);
        if (q->count > EXPLAIN_ADDRESSES_MAX)
                return error_set(err, ST_USAGE, "more than %d addresses; split them into several requests",
                                 EXPLAIN_ADDRESSES_MAX);
        st = explain_from_index(&p, symbols, id, q, &found, err);
        if (st)
                return st;
        of_files.addresses = found.items;
        if (!found.are_all) {
                snprintf(p.object_error, sizeof p.object_error,
                         "a file offset has no address: no segment of the file has it, or the object is not indexed");
        } else if (objects && explain_from_stored_files(&p, objects, id, &of_files, err)) {
                snprintf(p.object_error, sizeof p.object_error, "%s", err->text);
                buf_clear(&p.object);
        }
        return merge_why_parts(&p, ret, err);
}
