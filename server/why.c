/* SPDX-License-Identifier: Apache-2.0 */
#include "server/why.h"

#include <inttypes.h>
#include <string.h>

#include "common/json_out.h"
#include "common/limits.h"
#include "server/elf_job.h"
#include "server/stored_dwo.h"
#include "symbolizer/explain.h"
#include "symbolizer/index_explain.h"
#include "symbolizer/symbol_reason.h"

static void parts_init(struct why_parts *p)
{
        *p = (struct why_parts){ 0 };
        buf_init(&p->object, EXPLAIN_REPORT_BYTES_MAX);
        buf_init(&p->second_opinion, EXPLAIN_REPORT_BYTES_MAX);
        buf_init(&p->index, EXPLAIN_REPORT_BYTES_MAX);
        buf_init(&p->origins, MiB(1));
        buf_init(&p->symbols, MiB(1));
}

static void parts_deinit(struct why_parts *p)
{
        buf_deinit(&p->object);
        buf_deinit(&p->second_opinion);
        buf_deinit(&p->index);
        buf_deinit(&p->origins);
        buf_deinit(&p->symbols);
}

static enum status put_origins(struct why_parts *p, const struct why_origin *origins, size_t count, struct error *err)
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

/* A second opinion that cannot be had is told and no failure. */
static enum status ask_workers(struct why_parts *p, const struct extract_inputs *in, const struct why_question *q,
                               struct error *err)
{
        enum status st = explain_confined(in, EXPLAIN_OBJECT, q->addresses, q->count, q->cancel, &p->object, err);
        struct error second;

        if (!st && q->second_opinion &&
            explain_confined(in, EXPLAIN_SECOND_OPINION, q->addresses, q->count, q->cancel, &p->second_opinion, &second))
                snprintf(p->second_opinion_error, sizeof p->second_opinion_error, "%s", second.text);
        return st;
}

enum status why_files(const struct extract_inputs *in, const struct why_origin *origins, size_t origin_count,
                      const struct why_question *q, struct buf *ret, struct error *err)
{
        _cleanup_(parts_deinit) struct why_parts p;
        enum status st;

        parts_init(&p);
        st = put_origins(&p, origins, origin_count, err);
        if (!st)
                st = ask_workers(&p, in, q, err);
        return st ? st : why_merge(&p, ret, err);
}

/* ---- what the index says ---- */

static void put_hex(struct json_out *j, const char *key, uint64_t v)
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
        put_hex(j, "anchor", f.anchor);
        json_out_uint(j, "bytes", f.block_bytes);
        json_out_uint(j, "users", f.users);
        put_hex(j, "start", f.block_start);
        put_hex(j, "last", f.block_last);
        json_out_uint(j, "row", f.row);
        json_out_uint(j, "rows", f.row_count);
        put_hex(j, "row_end", f.row_end);
        json_out_bool(j, "is_gap", f.frame_count == 0);
        put_hex(j, "map_page", f.page_last);
        json_out_uint(j, "map_entry", f.entry);
        json_out_uint(j, "map_entries", f.entry_count);
        json_out_object_end(j);
}

static enum status put_frames(struct json_out *j, struct symbol_view *view, const struct symbol_batch *batch,
                              const struct symbol_result *r, struct error *err)
{
        enum status st = ST_OK;

        json_out_array(j, "frames");
        for (uint32_t i = 0; !st && i < r->frame_count; i++) {
                const struct symbol_frame *f = &batch->frames[r->first_frame + i];
                const char *name, *linkage_name, *file;

                st = symbol_view_function(view, f->function, &name, &linkage_name, err);
                if (!st)
                        st = symbol_view_file(view, f->file, &file, err);
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

static enum status put_results(struct json_out *j, struct symbol_view *view, const struct build_id *id,
                               const struct why_question *q, struct error *err)
{
        struct symbol_key keys[EXPLAIN_ADDRESSES_MAX];
        struct symbol_batch batch = { 0 };
        enum status st;

        for (size_t i = 0; i < q->count; i++)
                keys[i] = (struct symbol_key){ .build_id = id, .address = q->addresses[i] };
        st = symbol_view_lookup(view, keys, q->count, &batch, err);
        json_out_array(j, "results");
        for (size_t i = 0; !st && i < q->count; i++) {
                const struct symbol_result *r = &batch.results[i];

                json_out_object(j, NULL);
                put_hex(j, "address", q->addresses[i]);
                json_out_str(j, "state", symbol_state_name(r->state));
                if (symbol_state_is_reason(r->state)) {
                        json_out_str(j, "meaning", symbol_state_meaning(r->state));
                        json_out_str(j, "next_step", symbol_state_next_step(r->state));
                }
                st = put_frames(j, view, &batch, r, err);
                put_block(j, view, id, q->addresses[i]);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        symbol_batch_deinit(&batch);
        return st;
}

static enum status put_index(struct why_parts *p, struct symbol_index *symbols, const struct build_id *id,
                             const struct why_question *q, struct error *err)
{
        char hex[BUILD_ID_HEX_MAX];
        struct symbol_object o;
        struct symbol_view *view;
        struct json_out j;
        enum status st = symbol_view_begin(symbols, &view, err);

        if (st)
                return st;
        st = symbol_view_object(view, id, &o, err);
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
                st = put_results(&j, view, id, q, err);
        }
        json_out_object_end(&j);
        symbol_view_end(view);
        return st ? st : buf_status(&p->index, err, "the report");
}

/* ---- what the stored files say ---- */

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

static enum status take(struct stored_files *f, struct debuginfo_store *objects, const struct build_id *id,
                        enum object_kind kind, const char *role, int *fd_ret, struct error *err)
{
        struct stored_object *o = &f->objects[f->count];
        enum status st = debuginfo_store_find(objects, id, kind, o, err);

        if (!st)
                st = debuginfo_store_unpack(objects, id, kind, fd_ret, err);
        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        f->origins[f->count++] = (struct why_origin){ role, o->name, o->source == SOURCE_UPLOAD ? "upload" : "upstream" };
        return ST_OK;
}

/* A dwz file that is not stored is no failure: the report tells which files there were. */
static enum status take_altlink(struct stored_files *f, struct debuginfo_store *objects, const struct why_question *q,
                                struct error *err)
{
        struct elf_supplement found;
        enum status st;

        if (f->in.debuginfo_fd < 0)
                return ST_OK;
        st = elf_job_supplement(f->in.debuginfo_fd, NULL, q->cancel, &found, err);
        if (st || !found.needed.size)
                return st;
        return take(f, objects, &found.needed, OBJECT_SUPPLEMENTARY, "dwz", &f->in.altlink_fd, err);
}

/* Symbols that were sent without debuginfo answer where nothing else that is stored is as good. */
static bool symbols_answer(struct stored_files *f, struct debuginfo_store *objects, const struct build_id *id,
                           struct stored_object *ret)
{
        if (debuginfo_store_stat(objects, id, OBJECT_SYMBOLS, ret, NULL))
                return false;
        for (size_t i = 0; i < f->count; i++)
                if (f->objects[i].quality >= ret->quality)
                        return false;
        return true;
}

static enum status put_symbols(struct why_parts *p, const struct stored_object *o, struct error *err)
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

static enum status ask_stored(struct why_parts *p, struct debuginfo_store *objects, const struct build_id *id,
                              const struct why_question *q, struct error *err)
{
        _cleanup_(stored_files_close) struct stored_files f = { .in = { .debuginfo_fd = -1, .executable_fd = -1,
                                                                        .altlink_fd = -1, .dwp_fd = -1 } };
        struct stored_object symbols;
        enum status st = take(&f, objects, id, OBJECT_DEBUGINFO, "debuginfo", &f.in.debuginfo_fd, err);

        f.in.name = build_id_hex(id, f.name);
        f.dwo.objects = objects;
        f.in.dwo = (struct dwarf_dwo_source){ stored_dwo_open, &f.dwo };
        if (!st)
                st = take(&f, objects, id, OBJECT_EXECUTABLE, "executable", &f.in.executable_fd, err);
        if (!st && symbols_answer(&f, objects, id, &symbols))
                return put_symbols(p, &symbols, err);
        if (!st)
                st = take(&f, objects, id, OBJECT_DWP, "dwp", &f.in.dwp_fd, err);
        if (!st && f.count)
                st = take_altlink(&f, objects, q, err);
        if (!st)
                st = put_origins(p, f.origins, f.count, err);
        return st || !f.count ? st : ask_workers(p, &f.in, q, err);
}

enum status why_stored(struct symbol_index *symbols, struct debuginfo_store *objects, const struct build_id *id,
                       const struct why_question *q, struct buf *ret, struct error *err)
{
        _cleanup_(parts_deinit) struct why_parts p;
        struct build_id owner;
        enum status st;

        if (objects && debuginfo_store_resolve(objects, id, &owner, NULL) == ST_OK)
                id = &owner;
        parts_init(&p);
        if (q->count > EXPLAIN_ADDRESSES_MAX)
                return error_set(err, ST_USAGE, "more than %d addresses; ask several times", EXPLAIN_ADDRESSES_MAX);
        st = put_index(&p, symbols, id, q, err);
        if (st)
                return st;
        if (objects && ask_stored(&p, objects, id, q, err)) {
                snprintf(p.object_error, sizeof p.object_error, "%s", err->text);
                buf_clear(&p.object);
        }
        return why_merge(&p, ret, err);
}
