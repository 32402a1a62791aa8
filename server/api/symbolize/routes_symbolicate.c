/* SPDX-License-Identifier: Apache-2.0 */
/* POST /symbolicate/v5: docs/formats/symbolicate.md */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "http/http_server.h"
#include "server/api/symbolize/symbolicate_request.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/core/symbolize_text.h"
#include "symbol-index/lookup.h"

/*
 * Function starts. The index maps address ranges to chains of frames, not to functions; a function is a run of
 * addresses with the same outermost frame. Its start is found by galloping, then binary search, for all addresses of a
 * batch together: about 30 lookups each, without reading names. If a function was split (hot and cold parts), the
 * result is the start of the part that contains the address.
 */

struct start_search {
        size_t key;
        uint32_t function; /* of the outermost frame */
        uint64_t inside;   /* lowest address known to belong to the function */
        uint64_t outside;  /* highest lower address known not to belong to it, plus one; 0: none known */
        uint64_t step;     /* distance of the next probe; 0: binary search */
};

static uint32_t get_outermost_symbol_frame(const struct symbol_batch *b, size_t i)
{
        const struct symbol_result *r = &b->results[i];

        return r->frame_count ? b->frames[r->first_frame + r->frame_count - 1].function : 0;
}

static uint64_t get_probe_address(const struct start_search *s)
{
        if (!s->step)
                return s->outside + (s->inside - s->outside) / 2;
        return s->inside < s->step ? 0 : s->inside - s->step;
}

static void apply_probe(struct start_search *s, uint64_t probe, bool same)
{
        if (same) {
                s->inside = probe;
                s->step *= 2;
                return;
        }
        s->outside = probe + 1;
        s->step = 0;
}

/* The searches of a batch. */
struct start_finder {
        struct symbol_view *view;
        const struct symbol_key *keys; /* of the batch */
        struct start_search *searches; /* unfinished; owned */
        size_t count;
        struct symbol_key *probes; /* one for each search; owned */
        struct symbol_batch found; /* results of the probes */
};

static void start_finder_deinit(struct start_finder *f)
{
        symbol_batch_deinit(&f->found);
        free(f->searches);
        free(f->probes);
}

/* One probe for each search; finished ones are removed. @param starts  of all keys */
static enum status run_start_probes(struct start_finder *f, uint64_t *starts, struct error *err)
{
        size_t left = 0;
        enum status st;

        for (size_t i = 0; i < f->count; i++)
                f->probes[i] = (struct symbol_key){ .build_id = f->keys[f->searches[i].key].build_id,
                                                    .address = get_probe_address(&f->searches[i]) };
        st = symbol_view_lookup(f->view, f->probes, f->count, &f->found, err);
        for (size_t i = 0; !st && i < f->count; i++) {
                struct start_search s = f->searches[i];

                apply_probe(&s, f->probes[i].address, get_outermost_symbol_frame(&f->found, i) == s.function);
                if (s.inside == s.outside || s.inside == 0)
                        starts[s.key] = s.inside;
                else
                        f->searches[left++] = s;
        }
        f->count = left;
        return st;
}

static enum status find_function_starts(struct symbol_view *view, const struct symbol_key *keys,
                                        const struct symbol_batch *batch, uint64_t *ret, struct error *err)
{
        size_t n = batch->result_count;
        _cleanup_(start_finder_deinit) struct start_finder f = { .view = view,
                                                                 .keys = keys,
                                                                 .searches = calloc(n + 1, sizeof *f.searches),
                                                                 .probes = calloc(n + 1, sizeof *f.probes) };
        enum status st = f.searches && f.probes ? ST_OK : error_no_memory(err);

        for (size_t i = 0; !st && i < n; i++) {
                uint32_t function = get_outermost_symbol_frame(batch, i);

                ret[i] = batch->results[i].address;
                if (function && ret[i])
                        f.searches[f.count++] =
                                (struct start_search){ .key = i, .function = function, .inside = ret[i], .step = 1 };
        }
        while (!st && f.count)
                st = run_start_probes(&f, ret, err);
        return st;
}

#define PIECE_BYTES MiB(1)
#define SLICE 8192        /* frames looked up at a time */
#define CANDIDATES_MAX 16 /* objects whose build-ids have the 16 bytes of one debug id */

struct symbolicate_stream {
        struct symbol_index *index;
        struct text_cache *texts;
        struct symbolicate_request request;
        size_t frame, stack, job; /* next to write */
        bool began, in_job, in_stack;
        /* the slice of frames that begins at slice_begin */
        size_t slice_begin, slice_count;
        struct symbol_key *keys;
        uint32_t *key_indexes; /* index in keys of each frame; UINT32_MAX: none */
        uint64_t *starts;      /* start address of each key's function */
        struct symbol_batch batch;
        const atomic_bool *cancel;
};

static void symbolicate_stream_close(void *state)
{
        struct symbolicate_stream *s = state;

        symbolicate_request_deinit(&s->request);
        symbol_batch_deinit(&s->batch);
        free(s->keys);
        free(s->key_indexes);
        free(s->starts);
        free(s);
}

/* ---- from debug ids to objects */

/* Choose the newest object with symbols among those with this debug id. */
static enum status choose_newest_object(struct symbol_view *view, const struct build_id *ids, size_t count,
                                        struct symbolicate_module *m, struct error *err)
{
        int64_t newest = INT64_MIN;

        for (size_t i = 0; i < count; i++) {
                struct symbol_object o;
                enum status st = symbol_view_get_object(view, &ids[i], &o, err);

                if (st == ST_BAD_DATA)
                        continue;
                if (st)
                        return st;
                if (!o.generation || o.indexed_unix_s < newest)
                        continue;
                newest = o.indexed_unix_s;
                m->build_id = ids[i];
                m->image_base = o.image_base;
        }
        return ST_OK;
}

/* A debug id made from a shorter build-id is padded with zeros. */
static enum status find_module_object(struct symbol_view *view, struct symbolicate_module *m, struct error *err)
{
        struct build_id ids[CANDIDATES_MAX];
        size_t n = DEBUG_ID_GUID_BYTES, count;
        enum status st = symbol_view_find_objects(view, m->guid, n, ids, CANDIDATES_MAX, &count, err);

        while (!st && count == 0 && --n > 0 && m->guid[n] == 0) {
                st = symbol_view_find_objects(view, m->guid, n, ids, 1, &count, err);
                count = count && ids[0].size == n;
        }
        return st ? st : choose_newest_object(view, ids, count, m, err);
}

static enum status find_module_objects(struct symbolicate_stream *s, struct error *err)
{
        struct symbol_view *view;
        enum status st = symbol_view_begin(s->index, &view, err);

        if (st)
                return st;
        for (size_t i = 0; !st && i < s->request.module_count; i++) {
                if (atomic_load(s->cancel))
                        st = error_set(err, ST_BUSY, "the request was cancelled");
                else if (s->request.modules[i].is_valid)
                        st = find_module_object(view, &s->request.modules[i], err);
        }
        symbol_view_end(view);
        return st;
}

/* ---- writing */

static enum status look_up_frames(struct symbolicate_stream *s, struct symbol_view *view, struct error *err)
{
        size_t left = s->request.frame_count - s->frame, count = left < SLICE ? left : SLICE;
        uint32_t key_count = 0;
        enum status st;

        for (size_t i = 0; i < count; i++) {
                const struct symbolicate_frame *f = &s->request.frames[s->frame + i];
                const struct symbolicate_module *m = f->module == UINT32_MAX ? NULL : &s->request.modules[f->module];

                s->key_indexes[i] = UINT32_MAX;
                if (!m || !m->build_id.size)
                        continue;
                s->keys[key_count] =
                        (struct symbol_key){ .build_id = &m->build_id, .address = m->image_base + f->offset };
                s->key_indexes[i] = key_count++;
        }
        s->slice_begin = s->frame;
        s->slice_count = count;
        st = symbol_view_lookup(view, s->keys, key_count, &s->batch, err);
        return st ? st : find_function_starts(view, s->keys, &s->batch, s->starts, err);
}

/* Write the known ones of "function", "file" and "line", each preceded by a comma, the first only if `comma`. */
static enum status write_symbolicate_place(struct text_reader *texts, const struct symbol_frame *f, bool comma,
                                           struct buf *to, struct error *err)
{
        const struct rendered_text *function, *file;
        enum status st = text_reader_get_function(texts, f->function, &function, err);
        struct json_out j = { .buf = to, .comma = comma };

        if (!st)
                st = text_reader_get_file(texts, f->file, &file, err);
        if (st)
                return st;
        if (function->name_size)
                json_out_strn(&j, "function", function->name, function->name_size);
        if (file->name_size)
                json_out_strn(&j, "file", file->name, file->name_size);
        if (f->line)
                json_out_uint(&j, "line", f->line);
        return ST_OK;
}

static enum status write_symbolicate_symbols(struct symbolicate_stream *s, struct text_reader *texts, uint32_t key,
                                             struct buf *to, struct error *err)
{
        const struct symbol_result *r = &s->batch.results[key];
        const struct symbol_frame *frames = s->batch.frames + r->first_frame;
        enum status st;

        if (!r->frame_count)
                return ST_OK;
        st = write_symbolicate_place(texts, &frames[r->frame_count - 1], true, to, err);
        if (frames[r->frame_count - 1].function)
                buf_printf(to, ",\"function_offset\":\"0x%" PRIx64 "\"", r->address - s->starts[key]);
        if (st || r->frame_count == 1)
                return st;
        buf_append_str(to, ",\"inlines\":[");
        for (uint32_t i = 0; !st && i + 1 < r->frame_count; i++) {
                buf_append_str(to, i ? ",{" : "{");
                st = write_symbolicate_place(texts, &frames[i], false, to, err);
                buf_append_u8(to, '}');
        }
        buf_append_u8(to, ']');
        return st;
}

static enum status write_symbolicate_frame(struct symbolicate_stream *s, struct text_reader *texts, struct buf *to,
                                           struct error *err)
{
        size_t first = s->stack ? s->request.stack_ends[s->stack - 1] : 0;
        const struct symbolicate_frame *f = &s->request.frames[s->frame];
        uint32_t key = s->key_indexes[s->frame - s->slice_begin];
        enum status st = ST_OK;

        buf_printf(to, "%s{\"frame\":%zu,\"module\":\"%s\",\"module_offset\":\"0x%" PRIx64 "\"",
                   s->frame > first ? "," : "", s->frame - first,
                   f->module == UINT32_MAX ? "<unknown>" : s->request.modules[f->module].name, f->offset);
        if (key != UINT32_MAX)
                st = write_symbolicate_symbols(s, texts, key, to, err);
        buf_append_u8(to, '}');
        s->frame++;
        return st;
}

static void write_job_end(struct symbolicate_stream *s, struct buf *to)
{
        size_t first = s->job ? s->request.jobs[s->job - 1].modules_end : 0;

        buf_append_str(to, "],\"found_modules\":{");
        for (size_t i = first; i < s->request.jobs[s->job].modules_end; i++) {
                const struct symbolicate_module *m = &s->request.modules[i];

                buf_printf(to, "%s\"%s/%s\":%s", i > first ? "," : "", m->name, m->debug_id,
                           m->build_id.size ? "true" : "false");
        }
        buf_append_str(to, "}}");
        s->job++;
        s->in_job = false;
}

/* Write the next bracket or frame. */
static enum status write_next_element(struct symbolicate_stream *s, struct symbol_view *view, struct text_reader *texts,
                                      struct buf *to, struct error *err)
{
        const struct symbolicate_job *job = &s->request.jobs[s->job];
        size_t first_stack = s->job ? job[-1].stacks_end : 0;
        enum status st = ST_OK;

        if (!s->in_job) {
                buf_append_str(to, s->job ? ",{\"stacks\":[" : "{\"stacks\":[");
                s->in_job = true;
        } else if (s->in_stack && s->frame == s->request.stack_ends[s->stack]) {
                buf_append_u8(to, ']');
                s->in_stack = false;
                s->stack++;
        } else if (s->in_stack) {
                if (s->frame >= s->slice_begin + s->slice_count)
                        st = look_up_frames(s, view, err);
                if (!st)
                        st = write_symbolicate_frame(s, texts, to, err);
        } else if (s->stack < job->stacks_end) {
                buf_append_str(to, s->stack > first_stack ? ",[" : "[");
                s->in_stack = true;
        } else {
                write_job_end(s, to);
        }
        return st;
}

static enum status make_symbolicate_piece(void *state, struct buf *to, bool *end, struct error *err)
{
        struct symbolicate_stream *s = state;
        struct text_reader *texts = NULL;
        struct symbol_view *view;
        enum status st = symbol_view_begin(s->index, &view, err);

        if (st)
                return st;
        st = text_reader_open(s->texts, view, &texts, err);
        if (!s->began)
                buf_append_str(to, "{\"results\":[");
        s->began = true;
        while (!st && s->job < s->request.job_count && to->size < PIECE_BYTES && !to->failed)
                st = atomic_load(s->cancel) ? error_set(err, ST_BUSY, "the request was cancelled")
                                            : write_next_element(s, view, texts, to, err);
        text_reader_close(texts);
        symbol_view_end(view);
        *end = s->job == s->request.job_count;
        if (*end)
                buf_append_str(to, "]}\n");
        return st;
}

static enum status symbolicate_stream_create(struct http_request *req, struct symbol_index *index,
                                             struct text_cache *texts, struct symbolicate_request *request,
                                             struct symbolicate_stream **ret, struct error *err)
{
        struct symbolicate_stream *s = calloc(1, sizeof *s);
        enum status st;

        if (!s) {
                symbolicate_request_deinit(request);
                return error_no_memory(err);
        }
        *s = (struct symbolicate_stream){
                .index = index, .texts = texts, .request = *request, .cancel = http_request_cancelled(req)
        };
        *request = (struct symbolicate_request){ 0 };
        s->keys = calloc(SLICE, sizeof *s->keys);
        s->key_indexes = calloc(SLICE, sizeof *s->key_indexes);
        s->starts = calloc(SLICE, sizeof *s->starts);
        st = s->keys && s->key_indexes && s->starts ? deadline_check(http_request_deadline(req), err)
                                                    : error_no_memory(err);
        if (!st)
                st = http_reserve_memory(req,
                                         s->request.frame_count * sizeof *s->request.frames +
                                                 s->request.stack_count * sizeof *s->request.stack_ends +
                                                 s->request.module_count * sizeof *s->request.modules +
                                                 s->request.arena.used,
                                         err);
        if (!st)
                st = find_module_objects(s, err);
        if (st)
                symbolicate_stream_close(s);
        else
                *ret = s;
        return st;
}

static void answer_symbolicate(struct http_request *req, struct symbol_index *index, struct text_cache *texts,
                               struct symbolicate_request *request)
{
        struct symbolicate_stream *s = NULL;
        struct error err;
        enum status st = symbolicate_stream_create(req, index, texts, request, &s, &err);

        if (st)
                http_fail(req, st, &err);
        else
                http_respond_pieces(req, "application/json", LIMIT_SYMBOLIZE_PIECE_BYTES, make_symbolicate_piece,
                                    symbolicate_stream_close, s);
}

#define ALLOWED_HEADERS "Authorization, Content-Type, User-Agent" /* the Firefox Profiler sends User-Agent */

static struct metric looked_up =
        METRIC_COUNTER("cairn_symbolicate_frames_total", "Frames requested over Mozilla's symbolication API.", "");

/*
 * CORS: pages of the configured origins may read the response (Fetch standard). By default there are none: otherwise
 * any web page opened on this network could read names and paths from a service without tokens.
 */
static bool allow_origin(struct http_request *req)
{
        bool allowed = http_is_origin_allowed(req);

        if (allowed) {
                http_set_header(req, "Access-Control-Allow-Origin", http_header(req, "Origin"));
                http_set_header(req, "Vary", "Origin");
        }
        return allowed;
}

static void handle_preflight(struct http_request *req)
{
        if (allow_origin(req)) {
                http_set_header(req, "Access-Control-Allow-Methods", "POST, OPTIONS");
                http_set_header(req, "Access-Control-Allow-Headers", ALLOWED_HEADERS);
                http_set_header(req, "Access-Control-Max-Age", "86400");
        }
        http_respond(req, 204, NULL, "", 0);
}

/* Objects of scanned trees are indexed on demand, so that the next request finds them. */
static enum status request_module_indexing(struct debuginfo_space *s, const struct symbolicate_request *r,
                                           const struct deadline *deadline, struct error *err)
{
        _cleanup_free_ bool *is_used = calloc(r->module_count + 1, sizeof *is_used);

        if (!is_used)
                return error_no_memory(err);
        for (size_t i = 0; i < r->frame_count; i++)
                if (r->frames[i].module != UINT32_MAX)
                        is_used[r->frames[i].module] = true;
        for (size_t i = 0; i < r->module_count && !deadline_expired(deadline); i++)
                if (is_used[i] && r->modules[i].is_valid)
                        scan_demand_request_prefix(&s->scan_demand, r->modules[i].guid, DEBUG_ID_GUID_BYTES);
        return ST_OK;
}

static void handle_symbolicate(struct http_request *req)
{
        struct debuginfo_space *s = get_request_space(req);
        struct symbolicate_request request;
        struct error err;
        const uint8_t *data;
        size_t n;
        enum status st;

        allow_origin(req);
        data = http_body(req, &n);
        st = symbolicate_request_read(data, n, &request, &err);
        http_free_body(req);
        if (!st && !s->symbols)
                st = error_set(&err, ST_NOT_FOUND, "this read-only service has no symbol index; use another service");
        if (!st && s->scan_demand.scan)
                st = request_module_indexing(s, &request, http_request_deadline(req), &err);
        if (st) {
                symbolicate_request_deinit(&request);
                http_fail(req, st, &err);
                return;
        }
        metric_add(&looked_up, (int64_t)request.frame_count);
        answer_symbolicate(req, s->symbols, s->symbol_texts, &request);
}

static const struct http_route routes[] = {
        { ROUTE("POST", "/symbolicate/v5", SCOPE_READ, TENANCY_SPACE), .pool = POOL_SYMBOLIZE,
          .max_body = LIMIT_HTTP_BODY_BYTES, .duration = &symbolize_duration, .handle = handle_symbolicate,
          .cross_origin = true },
        { OPEN_ROUTE("OPTIONS", "/symbolicate/v5"), .pool = POOL_SYMBOLIZE, .handle = handle_preflight,
          .cross_origin = true },
};
const struct route_table symbolicate_routes = ROUTE_TABLE(ROLE_SYMBOLIZE, routes);
