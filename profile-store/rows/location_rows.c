/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/rows/location_rows.h"

#include <string.h>

#include "common/limits.h"
#include "common/metrics.h"
#include "profile-store/rows/frame_chains.h"
#include "profile-store/rows/view_texts.h"

/*
 * Keys looked up at a time. Their frames, copied per range of the index, take at most SLICE_KEYS *
 * LIMIT_LOCATION_FRAMES * 16 bytes: 128 MiB. They are reserved from the budget after the lookup, when their number is
 * known.
 */
#define SLICE_KEYS 32768u
#define KERNEL_ADDRESSES (UINT64_C(1) << 63) /* of the kernel image; modules are looked up from address 0 */

static struct metric damaged =
        METRIC_COUNTER("cairn_lookup_damaged_total", "Lookups that found a damaged record or block of the index.", "");

int64_t location_rows_count_damaged(void)
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

int compare_location_rows(const void *a, const void *b)
{
        const struct location_row *x = a, *y = b;
        int order = build_id_compare(x->shown.build_id, y->shown.build_id);

        if (order)
                return order;
        if (x->shown.address != y->shown.address)
                return x->shown.address < y->shown.address ? -1 : 1;
        return (x->shown.location_id > y->shown.location_id) - (x->shown.location_id < y->shown.location_id);
}

static void set_row_state(struct location_row *row, enum symbol_state state)
{
        row->state = state;
        row->shown.state = symbol_state_name(state);
}

static bool is_lookup_possible(const struct location_row *row)
{
        return !row->is_excluded && row->shown.build_id->size && row->kind != ADDRESS_NONE;
}

enum status location_row_from_batch(struct location_row *row, const struct batch_location *from, struct arena *a,
                                    struct error *err)
{
        const struct location_identity *identity = &from->identity;
        struct scan_frame *frames = arena_alloc_array(a, identity->frame_count, sizeof *frames);

        *row = (struct location_row){ .kind = identity->kind, .sender = from->sender };
        row->shown = (struct scan_location){ .location_id = from->id,
                                             .build_id = identity->build_id ? identity->build_id : &unknown_build_id,
                                             .address = identity->address,
                                             .mapping = identity->mapping,
                                             .is_kernel = identity->is_kernel,
                                             .is_file_offset = identity->kind == ADDRESS_FILE_OFFSET,
                                             .frames = frames,
                                             .frame_count = identity->frame_count };
        if (identity->frame_count && !frames)
                return report_full_arena(a, identity->frame_count * sizeof *frames, "frames of locations", err);
        for (uint32_t i = 0; i < identity->frame_count; i++) {
                const struct sent_frame *f = &identity->frames[i];

                frames[i] = (struct scan_frame){ .function = f->function,
                                                 .linkage_name = f->linkage_name,
                                                 .file = f->file,
                                                 .line = f->line,
                                                 .start_line = f->start_line,
                                                 .inlined = i + 1 < identity->frame_count };
        }
        set_row_state(row, identity->frame_count        ? SYMBOL_SENDER
                           : !row->shown.build_id->size ? SYMBOL_NO_BUILD_ID
                           : is_lookup_possible(row)    ? SYMBOL_NO_DEBUGINFO
                                                        : SYMBOL_NO_ADDRESS);
        return ST_OK;
}

/* ---- resolve --------------------------------------------------------------------- */

static bool is_better_result(const struct location_row *row, const struct symbol_result *result)
{
        if (result->state != SYMBOL_RESOLVED)
                return false;
        if (row->state == SYMBOL_SENDER)
                return result->quality >= QUALITY_GO_PCLNTAB;
        /*
         * Each index counts generations from 1: that of a row may be another node's, and equal by chance. Another node
         * may also have had better symbols than this one has so far.
         */
        if (row->state != SYMBOL_RESOLVED || result->quality > row->shown.quality)
                return true;
        return row->generation != result->generation && (row->is_own || result->quality == row->shown.quality);
}

/*
 * Frames of one call of location_rows_resolve(). Locations with few frames take precedence: deeper ones share the rest
 * of LIMIT_FLUSH_FRAMES.
 */
struct frame_budget {
        uint32_t depth; /* locations with at most this many frames have room, */
        uint64_t more;  /* and this number of locations with next_depth frames */
        uint32_t next_depth;
};

struct resolver {
        struct location_row *rows;
        size_t count;
        uint8_t *changed;
        struct frame_budget budget;
        struct view_texts texts;
        struct frame_chains chains;
        /* Of one slice. */
        struct symbol_key *keys;
        size_t *key_rows;
        size_t key_count;
        struct symbol_batch batch;
        struct memory_reservation memory; /* of the members above; not counted for MEMORY_BASE, as for the arena */
        uint32_t last_first;              /* first_frame of the last converted result, and its frames */
        const struct scan_frame *last_frames;
        uint32_t last_count;
};

static void resolver_deinit(struct resolver *r)
{
        free(r->keys);
        free(r->key_rows);
        symbol_batch_deinit(&r->batch);
        frame_chains_deinit(&r->chains);
        view_texts_deinit(&r->texts);
        memory_release(&r->memory);
}

static bool admit_frames(struct frame_budget *b, uint32_t frame_count)
{
        if (frame_count <= b->depth)
                return true;
        if (frame_count != b->next_depth || !b->more)
                return false;
        b->more--;
        return true;
}

static enum status convert_result_frames(struct resolver *r, const struct symbol_result *result, struct error *err)
{
        struct scan_frame *frames = frame_chain_begin(&r->chains, result->frame_count);

        if (!frames)
                return error_no_memory(err);
        for (uint32_t i = 0; i < result->frame_count; i++) {
                enum status st =
                        view_texts_convert_frame(&r->texts, &r->batch.frames[result->first_frame + i], &frames[i], err);

                if (st)
                        return st;
        }
        return frame_chain_end(&r->chains, result->frame_count, &r->last_frames, err);
}

/* Assign the frames of a result to the row. ST_TOO_BIG when there is no room for them. */
static enum status assign_row_frames(struct resolver *r, struct location_row *row, const struct symbol_result *result,
                                     struct error *err)
{
        if (!admit_frames(&r->budget, result->frame_count))
                return error_set(err, ST_TOO_BIG, "locations have more than %u frames", LIMIT_FLUSH_FRAMES);
        if (result->first_frame != r->last_first || result->frame_count != r->last_count) {
                enum status st = convert_result_frames(r, result, err);

                if (st)
                        return st;
                r->last_first = result->first_frame;
                r->last_count = result->frame_count;
        }
        row->shown.frames = r->last_frames;
        row->shown.frame_count = result->frame_count;
        row->shown.quality = result->quality;
        row->generation = result->generation;
        set_row_state(row, SYMBOL_RESOLVED);
        return ST_OK;
}

/* Re-indexing mostly yields the same frames: do not rewrite parts for these. */
static bool has_same_answer(const struct location_row *a, const struct location_row *b)
{
        if (a->state != b->state || a->shown.quality != b->shown.quality ||
            a->shown.frame_count != b->shown.frame_count)
                return false;
        for (uint32_t i = 0; i < a->shown.frame_count; i++) {
                const struct scan_frame *x = &a->shown.frames[i], *y = &b->shown.frames[i];

                if (x->line != y->line || x->start_line != y->start_line || x->inlined != y->inlined ||
                    strcmp(x->function, y->function) != 0 || strcmp(x->linkage_name, y->linkage_name) != 0 ||
                    strcmp(x->file, y->file) != 0)
                        return false;
        }
        return true;
}

/* Whether two names are equal except for compiler suffixes (".isra.0", ".cold"). */
static bool is_same_symbol(const char *a, const char *b)
{
        size_t n = strcspn(a, ".");

        return n && n == strcspn(b, ".") && memcmp(a, b, n) == 0;
}

/* Whether the outermost function of a row's new frames may be the one that the sender named. */
static bool is_function_possible(const struct location_row *row, const struct location_row *better,
                                 const struct symbol_result *result)
{
        const struct scan_frame *sent, *found;

        if (row->state != SYMBOL_SENDER || !row->shown.is_kernel || result->address >= KERNEL_ADDRESSES ||
            !row->shown.frame_count || !better->shown.frame_count)
                return true;
        sent = &row->shown.frames[row->shown.frame_count - 1];
        found = &better->shown.frames[better->shown.frame_count - 1];
        return is_same_symbol(sent->function, found->function) || is_same_symbol(sent->function, found->linkage_name);
}

static int64_t find_start_line(const struct location_row *row, const struct scan_frame *f)
{
        for (uint32_t i = 0; i < row->shown.frame_count; i++)
                if (row->shown.frames[i].start_line && strcmp(row->shown.frames[i].function, f->function) == 0)
                        return row->shown.frames[i].start_line;
        return 0;
}

/*
 * Keep the start lines sent with functions where the index has none: go build -pgo needs them. They are dropped when
 * there is no room.
 */
static void keep_start_lines(struct resolver *r, const struct location_row *row, struct location_row *better)
{
        uint32_t count = better->shown.frame_count, kept = 0;
        struct scan_frame *frames;

        for (uint32_t i = 0; i < count; i++)
                kept += !better->shown.frames[i].start_line && find_start_line(row, &better->shown.frames[i]);
        frames = kept ? arena_alloc_array(r->chains.arena, count, sizeof *frames) : NULL;
        if (!frames)
                return;
        memcpy(frames, better->shown.frames, count * sizeof *frames);
        for (uint32_t i = 0; i < count; i++)
                if (!frames[i].start_line)
                        frames[i].start_line = find_start_line(row, &frames[i]);
        better->shown.frames = frames;
}

/* Set the reason why a row has no frames. A row with frames keeps them. */
static bool apply_row_state(struct location_row *row, const struct symbol_result *result, enum symbol_state state)
{
        if (row->state == SYMBOL_RESOLVED || row->state == SYMBOL_SENDER ||
            (row->state == state && row->shown.quality == result->quality))
                return false;
        row->shown.quality = result->quality;
        row->generation = result->generation;
        set_row_state(row, state);
        return true;
}

static enum status apply_lookup_result(struct resolver *r, struct location_row *row, const struct symbol_result *result,
                                       bool *changed_ret, struct error *err)
{
        struct location_row better = *row;
        enum status st;

        if (!is_better_result(row, result)) {
                *changed_ret = result->state != SYMBOL_RESOLVED && apply_row_state(row, result, result->state);
                return ST_OK;
        }
        st = assign_row_frames(r, &better, result, err);
        if (st == ST_TOO_BIG) {
                *changed_ret = apply_row_state(row, result, SYMBOL_TOO_LARGE);
                return ST_OK;
        }
        if (st)
                return st;
        *changed_ret = is_function_possible(row, &better, result);
        if (*changed_ret) {
                keep_start_lines(r, row, &better);
                *changed_ret = !has_same_answer(row, &better);
        }
        if (*changed_ret)
                *row = better;
        return ST_OK;
}

/* ST_BUSY when refused: fewer rows may succeed. */
static enum status reserve_slice_memory(struct resolver *r, struct error *err)
{
        const struct symbol_batch *b = &r->batch;
        size_t n = b->frame_capacity * sizeof *b->frames + b->result_capacity * sizeof *b->results + b->scratch_bytes +
                   r->key_count * (sizeof *r->keys + sizeof *r->key_rows);

        if (r->memory.use == MEMORY_BASE || !memory_resize(&r->memory, n, err))
                return ST_OK;
        return error_set(err, ST_BUSY, "the frames of %zu locations take %zu bytes, more than --memory has left",
                         r->key_count, n);
}

/* Look up the rows of the slice that begins at *next, and advance *next. */
static enum status look_up_slice(struct resolver *r, size_t *next, struct error *err)
{
        enum status st;

        r->key_count = 0;
        for (; *next < r->count && r->key_count < SLICE_KEYS; ++*next) {
                const struct location_row *row = &r->rows[*next];

                if (!is_lookup_possible(row))
                        continue;
                r->keys[r->key_count] = (struct symbol_key){ .build_id = row->shown.build_id,
                                                             .address = row->shown.address,
                                                             .is_file_offset = row->kind == ADDRESS_FILE_OFFSET };
                r->key_rows[r->key_count++] = *next;
        }
        r->last_count = UINT32_MAX; /* frames of the last slice are invalid */
        if (!r->key_count)
                return ST_OK;
        st = symbol_view_lookup(r->texts.view, r->keys, r->key_count, &r->batch, err);
        return st ? st : reserve_slice_memory(r, err);
}

static enum status apply_slice_results(struct resolver *r, struct error *err)
{
        metric_add(&damaged, (int64_t)r->batch.damaged_count);
        for (size_t k = 0; k < r->key_count; k++) {
                bool row_changed;
                enum status st =
                        apply_lookup_result(r, &r->rows[r->key_rows[k]], &r->batch.results[k], &row_changed, err);

                if (st)
                        return st;
                if (r->changed)
                        r->changed[r->key_rows[k]] |= row_changed;
        }
        return ST_OK;
}

/* From the number of locations per frame count, compute the depth up to which all have room. */
static void make_frame_budget(struct frame_budget *b, const uint64_t *depths)
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

/*
 * First pass over the results of a slice: count locations per frame count, and collect the texts of the frames that
 * fit, so that the text pages of the index are read in order.
 */
static enum status collect_slice_frames(struct resolver *r, uint64_t *depths, uint64_t *noted, struct error *err)
{
        uint32_t last_first = 0, last_count = 0;
        enum status st = ST_OK;

        for (size_t k = 0; !st && k < r->key_count; k++) {
                const struct symbol_result *result = &r->batch.results[k];

                if (result->frame_count > LIMIT_LOCATION_FRAMES || !is_better_result(&r->rows[r->key_rows[k]], result))
                        continue;
                depths[result->frame_count]++;
                if ((result->first_frame == last_first && result->frame_count == last_count) ||
                    *noted + result->frame_count > LIMIT_FLUSH_FRAMES)
                        continue;
                last_first = result->first_frame;
                last_count = result->frame_count;
                *noted += result->frame_count;
                st = symbol_view_want_texts(r->texts.view, &r->batch.frames[last_first], last_count, err);
        }
        return st;
}

static enum status collect_frames(struct resolver *r, struct error *err)
{
        uint64_t depths[LIMIT_LOCATION_FRAMES + 1] = { 0 }, noted = 0;
        enum status st = ST_OK;

        for (size_t next = 0; !st && next < r->count;) {
                st = look_up_slice(r, &next, err);
                if (!st)
                        st = collect_slice_frames(r, depths, &noted, err);
        }
        make_frame_budget(&r->budget, depths);
        return st ? st : symbol_view_load_texts(r->texts.view, err);
}

enum status location_rows_resolve(struct location_row *rows, size_t count, struct symbol_index *symbols,
                                  struct arena *a, uint8_t *changed, struct error *err)
{
        _cleanup_(resolver_deinit) struct resolver r = { .rows = rows,
                                                         .count = count,
                                                         .changed = changed,
                                                         .budget = { .depth = LIMIT_LOCATION_FRAMES },
                                                         .memory.use = a->memory.use,
                                                         .chains.arena = a };
        size_t room = count < SLICE_KEYS ? count : SLICE_KEYS;
        enum status st;

        if (!symbols || !count)
                return ST_OK;
        r.keys = calloc(room, sizeof *r.keys);
        r.key_rows = calloc(room, sizeof *r.key_rows);
        if (!r.keys || !r.key_rows)
                return error_no_memory(err);
        st = view_texts_init(&r.texts, symbols, a, err);
        if (!st)
                st = collect_frames(&r, err);
        for (size_t next = 0; !st && next < count;) {
                if (count > SLICE_KEYS) /* otherwise the results of the first pass are still valid */
                        st = look_up_slice(&r, &next, err);
                else
                        next = count;
                if (!st && r.key_count)
                        st = apply_slice_results(&r, err);
        }
        return st;
}
