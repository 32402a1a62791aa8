/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/location_rows.h"

#include <string.h>

#include "common/limits.h"
#include "common/metrics.h"
#include "profile-store/frame_chains.h"
#include "profile-store/key_map.h"

/*
 * Keys that are looked up at a time. Their frames, copied per range of the
 * index, take SLICE_KEYS * LIMIT_LOCATION_FRAMES * 16 bytes at worst: 128 MiB.
 */
#define SLICE_KEYS 32768u

static struct metric damaged =
        METRIC_COUNTER("cairn_lookup_damaged_total", "Lookups that met a damaged record or block of the index.", "");

int64_t location_rows_damaged(void)
{
        return metric_get(&damaged);
}

const char *address_kind_name(enum profile_address_kind kind)
{
        switch (kind) {
        case ADDRESS_OBJECT:
                return "object";
        case ADDRESS_FILE_OFFSET:
                return "file_offset";
        case ADDRESS_NONE:
                break;
        }
        return "none";
}

int location_row_compare(const void *a, const void *b)
{
        const struct location_row *x = a, *y = b;
        int order = build_id_compare(&x->shown.build_id, &y->shown.build_id);

        if (order)
                return order;
        if (x->shown.address != y->shown.address)
                return x->shown.address < y->shown.address ? -1 : 1;
        return (x->shown.location_id > y->shown.location_id) - (x->shown.location_id < y->shown.location_id);
}

static void set_state(struct location_row *row, enum symbol_state state)
{
        row->state = state;
        row->shown.state = symbol_state_name(state);
}

static bool can_be_looked_up(const struct location_row *row)
{
        return row->shown.build_id.size && row->kind != ADDRESS_NONE;
}

enum status location_row_of_batch(struct location_row *row, const struct batch_location *from, struct arena *a,
                                  struct error *err)
{
        const struct location_identity *what = &from->what;
        struct scan_frame *frames = arena_alloc_array(a, what->frame_count, sizeof *frames);

        *row = (struct location_row){ .kind = what->kind };
        row->shown = (struct scan_location){ .location_id = from->id,
                                             .address = what->address,
                                             .mapping = what->mapping,
                                             .is_kernel = what->is_kernel,
                                             .frames = frames,
                                             .frame_count = what->frame_count };
        if (what->build_id)
                row->shown.build_id = *what->build_id;
        if (what->frame_count && !frames)
                return error_no_memory(err);
        for (uint32_t i = 0; i < what->frame_count; i++) {
                const struct sent_frame *f = &what->frames[i];

                frames[i] = (struct scan_frame){ .function = f->function,
                                                 .linkage_name = f->linkage_name,
                                                 .file = f->file,
                                                 .line = f->line,
                                                 .inlined = i + 1 < what->frame_count };
        }
        set_state(row, what->frame_count           ? SYMBOL_SENDER
                       : !row->shown.build_id.size ? SYMBOL_NO_BUILD_ID
                       : can_be_looked_up(row)     ? SYMBOL_NO_DEBUGINFO
                                                   : SYMBOL_NO_ADDRESS);
        return ST_OK;
}

/* ---- texts of a view, copied once per number --------------------------------- */

struct texts {
        struct symbol_view *view;
        struct arena *arena;
        struct key_map functions, files; /* number to const char *[2], const char * */
};

/* A full arena leaves locations raw; a system without memory fails the flush. */
static enum status explain_full_arena(const struct arena *a, size_t n, struct error *err)
{
        return arena_fits(a, n) ? error_no_memory(err)
                                : error_set(err, ST_TOO_BIG, "names of locations need more than %zu bytes", a->max);
}

static enum status copy_text(struct arena *a, const char *s, const char **ret, struct error *err)
{
        size_t n = strlen(s);

        *ret = n ? arena_strndup(a, s, n) : "";
        return *ret ? ST_OK : explain_full_arena(a, n + 1, err);
}

static void texts_deinit(struct texts *t)
{
        key_map_deinit(&t->functions);
        key_map_deinit(&t->files);
        if (t->view)
                symbol_view_end(t->view);
}

static enum status function_text(struct texts *t, uint32_t number, struct scan_frame *frame, struct error *err)
{
        struct hash128 key = key_of_u64(number);
        const char *name, *linkage_name, **pair;
        uint64_t *known = key_map_find(&t->functions, &key);
        enum status st;

        if (!known) {
                st = symbol_view_function(t->view, number, &name, &linkage_name, err);
                if (st)
                        return st;
                pair = arena_alloc(t->arena, 2 * sizeof *pair);
                if (!pair)
                        return explain_full_arena(t->arena, 2 * sizeof *pair, err);
                st = copy_text(t->arena, name, &pair[0], err);
                if (!st)
                        st = copy_text(t->arena, linkage_name, &pair[1], err);
                if (!st)
                        st = key_map_put(&t->functions, &key, (uintptr_t)pair, NULL, &known, err);
                if (st)
                        return st;
        }
        pair = (const char **)(uintptr_t)*known;
        frame->function = pair[0];
        frame->linkage_name = pair[1];
        return ST_OK;
}

static enum status file_text(struct texts *t, uint32_t number, struct scan_frame *frame, struct error *err)
{
        struct hash128 key = key_of_u64(number);
        const char *path;
        uint64_t *known = key_map_find(&t->files, &key);
        enum status st;

        if (!known) {
                st = symbol_view_file(t->view, number, &path, err);
                if (st)
                        return st;
                st = copy_text(t->arena, path, &path, err);
                if (!st)
                        st = key_map_put(&t->files, &key, (uintptr_t)path, NULL, &known, err);
                if (st)
                        return st;
        }
        frame->file = (const char *)(uintptr_t)*known;
        return ST_OK;
}

/* ---- resolve --------------------------------------------------------------------- */

static bool names_a_file(const struct location_row *row)
{
        for (uint32_t i = 0; i < row->shown.frame_count; i++) {
                if (*row->shown.frames[i].file)
                        return true;
        }
        return false;
}

static bool replaces(const struct location_row *row, const struct symbol_result *result)
{
        if (result->state != SYMBOL_RESOLVED)
                return false;
        if (row->state == SYMBOL_SENDER)
                return result->quality >= QUALITY_LINES && !names_a_file(row);
        return row->state != SYMBOL_RESOLVED || row->generation != result->generation;
}

/*
 * Frames of one call of location_rows_resolve(). Locations with few frames
 * come first: deeper ones share what is left of LIMIT_FLUSH_FRAMES.
 */
struct frame_budget {
        uint32_t depth; /* locations with at most so many frames have room, */
        uint64_t more;  /* and so many with one depth more */
        uint32_t next_depth;
};

struct resolver {
        struct location_row *rows;
        size_t count;
        uint8_t *changed;
        struct frame_budget budget;
        struct texts texts;
        struct frame_chains chains;
        /* Of one slice */
        struct symbol_key *keys;
        size_t *key_rows;
        size_t key_count;
        struct symbol_batch batch;
        uint32_t last_first; /* the result whose frames were converted last, and these */
        const struct scan_frame *last_frames;
        uint32_t last_count;
};

static void resolver_deinit(struct resolver *r)
{
        free(r->keys);
        free(r->key_rows);
        symbol_batch_deinit(&r->batch);
        frame_chains_deinit(&r->chains);
        texts_deinit(&r->texts);
}

static bool budget_admits(struct frame_budget *b, uint32_t frame_count)
{
        if (frame_count <= b->depth)
                return true;
        if (frame_count != b->next_depth || !b->more)
                return false;
        b->more--;
        return true;
}

static enum status convert_frames(struct resolver *r, const struct symbol_result *result, struct error *err)
{
        struct scan_frame *frames = frame_chains_begin(&r->chains, result->frame_count);

        if (!frames)
                return error_no_memory(err);
        for (uint32_t i = 0; i < result->frame_count; i++) {
                const struct symbol_frame *f = &r->batch.frames[result->first_frame + i];
                enum status st = function_text(&r->texts, f->function, &frames[i], err);

                if (!st)
                        st = file_text(&r->texts, f->file, &frames[i], err);
                if (st)
                        return st;
                frames[i].line = f->line;
                frames[i].inlined = f->inlined;
        }
        return frame_chains_end(&r->chains, result->frame_count, &r->last_frames, err);
}

/* Give the row the frames of a result. ST_TOO_BIG when there is no room for them. */
static enum status take_frames(struct resolver *r, struct location_row *row, const struct symbol_result *result,
                               struct error *err)
{
        if (!budget_admits(&r->budget, result->frame_count))
                return error_set(err, ST_TOO_BIG, "locations have more than %u frames", LIMIT_FLUSH_FRAMES);
        if (result->first_frame != r->last_first || result->frame_count != r->last_count) {
                enum status st = convert_frames(r, result, err);

                if (st)
                        return st;
                r->last_first = result->first_frame;
                r->last_count = result->frame_count;
        }
        row->shown.frames = r->last_frames;
        row->shown.frame_count = result->frame_count;
        row->shown.quality = result->quality;
        row->generation = result->generation;
        set_state(row, SYMBOL_RESOLVED);
        return ST_OK;
}

/* Indexing an object again mostly gives what is there already; that is no reason to rewrite a part. */
static bool same_answer(const struct location_row *a, const struct location_row *b)
{
        if (a->state != b->state || a->shown.quality != b->shown.quality || a->shown.frame_count != b->shown.frame_count)
                return false;
        for (uint32_t i = 0; i < a->shown.frame_count; i++) {
                const struct scan_frame *x = &a->shown.frames[i], *y = &b->shown.frames[i];

                if (x->line != y->line || x->inlined != y->inlined || strcmp(x->function, y->function) != 0 ||
                    strcmp(x->linkage_name, y->linkage_name) != 0 || strcmp(x->file, y->file) != 0)
                        return false;
        }
        return true;
}

/* Set why a row has no frames. A row that has frames keeps them. */
static bool apply_state(struct location_row *row, const struct symbol_result *result, enum symbol_state state)
{
        if (row->state == SYMBOL_RESOLVED || row->state == SYMBOL_SENDER ||
            (row->state == state && row->shown.quality == result->quality))
                return false;
        row->shown.quality = result->quality;
        row->generation = result->generation;
        set_state(row, state);
        return true;
}

static enum status apply_result(struct resolver *r, struct location_row *row, const struct symbol_result *result,
                                bool *changed_ret, struct error *err)
{
        struct location_row better = *row;
        enum status st;

        if (!replaces(row, result)) {
                *changed_ret = result->state != SYMBOL_RESOLVED && apply_state(row, result, result->state);
                return ST_OK;
        }
        st = take_frames(r, &better, result, err);
        if (st == ST_TOO_BIG) {
                *changed_ret = apply_state(row, result, SYMBOL_TOO_LARGE);
                return ST_OK;
        }
        if (st)
                return st;
        *changed_ret = !same_answer(row, &better);
        if (*changed_ret)
                *row = better;
        return ST_OK;
}

/* Look up the rows of the slice from *next on, and advance it. */
static enum status look_up_slice(struct resolver *r, size_t *next, struct error *err)
{
        r->key_count = 0;
        for (; *next < r->count && r->key_count < SLICE_KEYS; ++*next) {
                const struct location_row *row = &r->rows[*next];

                if (!can_be_looked_up(row))
                        continue;
                r->keys[r->key_count] = (struct symbol_key){ .build_id = &row->shown.build_id,
                                                             .address = row->shown.address,
                                                             .is_file_offset = row->kind == ADDRESS_FILE_OFFSET };
                r->key_rows[r->key_count++] = *next;
        }
        r->last_count = UINT32_MAX; /* frames of the last slice are gone */
        return r->key_count ? symbol_view_lookup(r->texts.view, r->keys, r->key_count, &r->batch, err) : ST_OK;
}

static enum status apply_slice(struct resolver *r, struct error *err)
{
        metric_add(&damaged, (int64_t)r->batch.damaged_count);
        for (size_t k = 0; k < r->key_count; k++) {
                bool row_changed;
                enum status st = apply_result(r, &r->rows[r->key_rows[k]], &r->batch.results[k], &row_changed, err);

                if (st)
                        return st;
                if (r->changed)
                        r->changed[r->key_rows[k]] |= row_changed;
        }
        return ST_OK;
}

/* How many locations have how many frames decides up to which depth all have room. */
static void budget_from_depths(struct frame_budget *b, const uint64_t *depths)
{
        uint64_t left = LIMIT_FLUSH_FRAMES;

        for (uint32_t depth = 1; depth <= LIMIT_LOCATION_FRAMES; depth++) {
                if (depths[depth] > left / depth) {
                        *b = (struct frame_budget){ depth - 1, left / depth, depth };
                        return;
                }
                left -= depths[depth] * depth;
        }
}

/* A pass of its own, for calls whose frames may be too many. */
static enum status measure_depths(struct resolver *r, struct error *err)
{
        uint64_t depths[LIMIT_LOCATION_FRAMES + 1] = { 0 };
        enum status st = ST_OK;

        for (size_t next = 0; !st && next < r->count;) {
                st = look_up_slice(r, &next, err);
                for (size_t k = 0; !st && k < r->key_count; k++) {
                        const struct symbol_result *result = &r->batch.results[k];

                        if (result->frame_count <= LIMIT_LOCATION_FRAMES &&
                            replaces(&r->rows[r->key_rows[k]], result))
                                depths[result->frame_count]++;
                }
        }
        budget_from_depths(&r->budget, depths);
        return st;
}

enum status location_rows_resolve(struct location_row *rows, size_t count, struct symbol_index *symbols,
                                  struct arena *a, uint8_t *changed, struct error *err)
{
        _cleanup_(resolver_deinit) struct resolver r = { .rows = rows,
                                                         .count = count,
                                                         .changed = changed,
                                                         .budget = { .depth = LIMIT_LOCATION_FRAMES },
                                                         .texts.arena = a,
                                                         .chains.arena = a };
        size_t room = count < SLICE_KEYS ? count : SLICE_KEYS;
        enum status st;

        if (!symbols || !count)
                return ST_OK;
        r.keys = calloc(room, sizeof *r.keys);
        r.key_rows = calloc(room, sizeof *r.key_rows);
        if (!r.keys || !r.key_rows)
                return error_no_memory(err);
        st = symbol_view_begin(symbols, &r.texts.view, err);
        if (!st && count > LIMIT_FLUSH_FRAMES / LIMIT_LOCATION_FRAMES)
                st = measure_depths(&r, err);
        for (size_t next = 0; !st && next < count;) {
                st = look_up_slice(&r, &next, err);
                if (!st && r.key_count)
                        st = apply_slice(&r, err);
        }
        return st;
}
