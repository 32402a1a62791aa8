/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api/debuginfo/object_code.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash/number_table.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/metrics.h"
#include "disassembler/disassemble_job.h"
#include "server/api/debuginfo/debuginfod_answer.h"
#include "server/api/debuginfo/source_text.h"

#define JOBS_MAX 2

static struct metric disassemblies =
        METRIC_COUNTER("cairn_disassemblies_total", "Disassemblies of functions or ranges of stored executables.", "");
static _Atomic unsigned jobs;

/* ---- the executable ---- */

/* ST_NOT_FOUND: neither in the store nor in a scanned tree. */
static enum status open_local_object(struct debuginfo_space *s, const struct build_id *id, enum object_kind kind,
                                     const atomic_bool *cancel, int *fd_ret, struct error *err)
{
        const struct package_scan_wait wait = { .cancel = cancel };
        struct stored_object stored;
        struct package_opened o;
        enum status st = s->objects ? debuginfo_store_stat(s->objects, id, kind, &stored, err) : ST_NOT_FOUND;

        if (!st) {
                record_object_use(s, id, kind);
                return debuginfo_store_unpack(s->objects, id, kind, fd_ret, err);
        }
        if (st != ST_NOT_FOUND || !s->scan_demand.scan)
                return st;
        st = package_scan_open(s->scan_demand.scan, id, kind, &wait, &o, err);
        if (!st)
                *fd_ret = o.fd;
        return st;
}

static enum status fetch_executable(struct query_fetches *f, const struct build_id *id, int *fd_ret, struct error *err)
{
        const struct federation_client client = query_fetches_make_client(f);
        struct debuginfo_space *s = f->space;
        enum status st;

        if (!s->federation || !s->objects)
                return ST_NOT_FOUND;
        st = http_begin_wait(err);
        if (st)
                return st;
        st = federation_fetch(s->federation, id, OBJECT_EXECUTABLE, &client, NULL, err);
        http_end_wait();
        return st ? st : debuginfo_store_unpack(s->objects, id, OBJECT_EXECUTABLE, fd_ret, err);
}

/* @param is_debuginfo_ret  whether it is the debuginfo, which for some senders is the unstripped executable. */
static enum status open_executable(struct query_fetches *f, const struct build_id *id, int *fd_ret,
                                   bool *is_debuginfo_ret, struct error *err)
{
        const atomic_bool *cancel = http_request_cancelled(f->req);
        enum status st = open_local_object(f->space, id, OBJECT_EXECUTABLE, cancel, fd_ret, err);

        *is_debuginfo_ret = false;
        if (st == ST_NOT_FOUND)
                st = fetch_executable(f, id, fd_ret, err);
        if (st != ST_NOT_FOUND)
                return st;
        *is_debuginfo_ret = true;
        return open_local_object(f->space, id, OBJECT_DEBUGINFO, cancel, fd_ret, err);
}

/* Debuginfo with the function names of a stored executable that is known to have no .symtab. -1: none. */
static int open_separate_symbols(struct debuginfo_space *s, const struct build_id *id)
{
        struct object_reader *reader;
        struct stored_object stored;
        uint64_t offset, size;
        int fd = -1;
        enum status st;

        if (!s->objects || object_reader_open(s->objects, id, OBJECT_EXECUTABLE, &reader, &stored, NULL))
                return -1;
        st = object_reader_find_section(reader, ".symtab", &offset, &size, NULL);
        object_reader_close(reader);
        if (st != ST_NOT_FOUND || debuginfo_store_stat(s->objects, id, OBJECT_DEBUGINFO, &stored, NULL) ||
            stored.size_bytes > LIMIT_DISASSEMBLY_SYMBOLS_BYTES ||
            debuginfo_store_unpack(s->objects, id, OBJECT_DEBUGINFO, &fd, NULL))
                return -1;
        return fd;
}

static enum status run_disassembly(struct query_fetches *f, const struct build_id *id,
                                   const struct query_code_request *q, struct disassembly *ret, struct error *err)
{
        _cleanup_close_ int executable = -1, symbols = -1;
        struct disassemble_request job = { .addresses = q->addresses,
                                           .address_count = q->address_count,
                                           .start = q->start,
                                           .end = q->end,
                                           .is_att = q->is_att,
                                           .cancel = http_request_cancelled(f->req) };
        char hex[BUILD_ID_HEX_MAX];
        bool is_debuginfo;
        enum status st = open_executable(f, id, &executable, &is_debuginfo, err);

        if (!st) {
                if (q->address_count && !is_debuginfo)
                        symbols = open_separate_symbols(f->space, id);
                job.executable_fd = executable;
                job.symbols_fd = symbols;
                st = disassemble_file(&job, ret, err);
        }
        if (st == ST_NOT_FOUND && is_debuginfo)
                return error_set(err, ST_NOT_FOUND, "no executable of build-id %s is stored%s", build_id_hex(id, hex),
                                 f->space->federation ? ", and no upstream has it" : "");
        if (!st)
                metric_add(&disassemblies, 1);
        return st;
}

enum status disassemble_object(void *fetches, const struct query_code_request *q, struct disassembly *ret,
                               struct error *err)
{
        struct query_fetches *f = fetches;
        struct build_id owner = *q->id;
        enum status st;

        if (f->space->objects && debuginfo_store_resolve_alias(f->space->objects, q->id, &owner, NULL))
                owner = *q->id;
        if (atomic_fetch_add(&jobs, 1) >= JOBS_MAX)
                st = error_set(err, ST_BUSY, "%d files are being disassembled; retry later", JOBS_MAX);
        else
                st = run_disassembly(f, &owner, q, ret, err);
        atomic_fetch_sub(&jobs, 1);
        return st;
}

/* ---- names of addresses ---- */

/* Names of functions or files by their number in the index, each copied once. */
struct copied_texts {
        struct number_table numbers;
        const char **items; /* owned */
        uint32_t count;
        size_t capacity;
};

static void copied_texts_deinit(struct copied_texts *c)
{
        number_table_deinit(&c->numbers);
        free(c->items);
}

struct place_reader {
        struct symbol_view *view;
        struct symbol_batch batch;
        struct copied_texts functions, files;
        struct arena *texts;
};

static void place_reader_deinit(struct place_reader *r)
{
        symbol_batch_deinit(&r->batch);
        copied_texts_deinit(&r->functions);
        copied_texts_deinit(&r->files);
        symbol_view_end(r->view);
}

static enum status copy_index_text(struct place_reader *r, bool is_function, uint32_t number, const char **ret,
                                   struct error *err)
{
        struct copied_texts *c = is_function ? &r->functions : &r->files;
        const char *text, *linkage;
        uint32_t at;
        enum status st;

        if (!number) {
                *ret = "";
                return ST_OK;
        }
        if (number_table_get(&c->numbers, number, &at)) {
                *ret = c->items[at];
                return ST_OK;
        }
        st = is_function ? symbol_view_get_function(r->view, number, &text, &linkage, err)
                         : symbol_view_get_file(r->view, number, &text, err);
        if (st)
                return st;
        text = arena_strndup(r->texts, text, strlen(text));
        if (!text)
                return arena_error(r->texts, err, "names");
        if (!array_reserve(&c->items, &c->capacity, c->count) || !number_table_add(&c->numbers, number, c->count))
                return error_no_memory(err);
        c->items[c->count++] = text;
        *ret = text;
        return ST_OK;
}

static enum status fill_place(struct place_reader *r, const struct symbol_result *result, struct code_place *ret,
                              struct error *err)
{
        const struct symbol_frame *frames = &r->batch.frames[result->first_frame];
        enum status st;

        *ret = (struct code_place){ .function = "", .file = "", .outer = "" };
        if (!result->frame_count)
                return ST_OK;
        ret->line = frames[0].line;
        st = copy_index_text(r, true, frames[0].function, &ret->function, err);
        if (!st)
                st = copy_index_text(r, false, frames[0].file, &ret->file, err);
        return st ? st : copy_index_text(r, true, frames[result->frame_count - 1].function, &ret->outer, err);
}

static enum status fill_places(struct place_reader *r, const struct symbol_key *keys, size_t count,
                               struct code_place *ret, struct error *err)
{
        enum status st = symbol_view_lookup(r->view, keys, count, &r->batch, err);

        for (size_t i = 0; !st && i < count; i++)
                st = fill_place(r, &r->batch.results[i], &ret[i], err);
        return st;
}

enum status look_up_code_places(void *fetches, const struct build_id *id, const uint64_t *addresses, size_t count,
                                struct arena *texts, struct code_place *ret, struct error *err)
{
        struct query_fetches *f = fetches;
        _cleanup_free_ struct symbol_key *keys = calloc(count + 1, sizeof *keys);
        struct place_reader r = { .texts = texts };
        enum status st;

        if (!keys)
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++) {
                ret[i] = (struct code_place){ .function = "", .file = "", .outer = "" };
                keys[i] = (struct symbol_key){ .build_id = id, .address = addresses[i] };
        }
        if (!f->space->symbols || !count)
                return ST_OK;
        st = symbol_view_begin(f->space->symbols, &r.view, err);
        if (st)
                return st;
        st = fill_places(&r, keys, count, ret, err);
        place_reader_deinit(&r);
        return st;
}

/* ---- addresses of file offsets ---- */

enum status find_code_addresses(void *fetches, const struct scan_location *const *locations, size_t count,
                                uint64_t *ret, struct error *err)
{
        struct query_fetches *f = fetches;
        _cleanup_free_ struct symbol_key *keys = calloc(count + 1, sizeof *keys);
        struct symbol_batch batch = { 0 };
        struct symbol_view *view;
        enum status st;

        if (!keys)
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++) {
                keys[i] = (struct symbol_key){ locations[i]->build_id, locations[i]->address,
                                               locations[i]->is_file_offset };
                ret[i] = keys[i].is_file_offset ? UINT64_MAX : keys[i].address;
        }
        if (!f->space->symbols)
                return ST_OK;
        st = symbol_view_begin(f->space->symbols, &view, err);
        if (st)
                return st;
        st = symbol_view_lookup(view, keys, count, &batch, err);
        for (size_t i = 0; !st && i < count; i++)
                if (!keys[i].is_file_offset || is_offset_translated(&batch.results[i]))
                        ret[i] = batch.results[i].address;
        symbol_batch_deinit(&batch);
        symbol_view_end(view);
        return st;
}
