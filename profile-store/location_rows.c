/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/location_rows.h"

#include <string.h>

#include "common/metrics.h"
#include "profile-store/key_map.h"

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

static const char *copy(struct arena *a, const char *s)
{
        return *s ? arena_strndup(a, s, strlen(s)) : "";
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
                                             .mapping = copy(a, what->mapping),
                                             .is_kernel = what->is_kernel,
                                             .frames = frames,
                                             .frame_count = what->frame_count };
        if (what->build_id)
                row->shown.build_id = *what->build_id;
        if (!row->shown.mapping || (what->frame_count && !frames))
                return error_no_memory(err);
        for (uint32_t i = 0; i < what->frame_count; i++) {
                const struct sent_frame *f = &what->frames[i];

                frames[i] = (struct scan_frame){ .function = copy(a, f->function),
                                                 .linkage_name = copy(a, f->linkage_name),
                                                 .file = copy(a, f->file),
                                                 .line = f->line,
                                                 .inlined = i + 1 < what->frame_count };
                if (!frames[i].function || !frames[i].linkage_name || !frames[i].file)
                        return error_no_memory(err);
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
                if (!pair || !(pair[0] = copy(t->arena, name)) || !(pair[1] = copy(t->arena, linkage_name)))
                        return error_no_memory(err);
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
                path = copy(t->arena, path);
                if (!path)
                        return error_no_memory(err);
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

static enum status take_frames(struct location_row *row, const struct symbol_result *result,
                               const struct symbol_batch *batch, struct texts *t, struct error *err)
{
        struct scan_frame *frames = arena_alloc_array(t->arena, result->frame_count, sizeof *frames);

        if (result->frame_count && !frames)
                return error_no_memory(err);
        for (uint32_t i = 0; i < result->frame_count; i++) {
                const struct symbol_frame *f = &batch->frames[result->first_frame + i];
                enum status st = function_text(t, f->function, &frames[i], err);

                if (!st)
                        st = file_text(t, f->file, &frames[i], err);
                if (st)
                        return st;
                frames[i].line = f->line;
                frames[i].inlined = f->inlined;
        }
        row->shown.frames = frames;
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

static enum status apply(struct location_row *row, const struct symbol_result *result,
                         const struct symbol_batch *batch, struct texts *t, bool *changed_ret, struct error *err)
{
        *changed_ret = false;
        if (replaces(row, result)) {
                struct location_row better = *row;
                enum status st = take_frames(&better, result, batch, t, err);

                if (st)
                        return st;
                *changed_ret = !same_answer(row, &better);
                if (*changed_ret)
                        *row = better;
                return ST_OK;
        }
        if (row->state == SYMBOL_RESOLVED || row->state == SYMBOL_SENDER ||
            (row->state == result->state && row->shown.quality == result->quality))
                return ST_OK;
        *changed_ret = true;
        row->shown.quality = result->quality;
        row->generation = result->generation;
        set_state(row, result->state);
        return ST_OK;
}

struct lookup {
        struct symbol_key *keys;
        size_t *rows; /* key to row */
        size_t count;
        struct symbol_batch batch;
};

static void lookup_deinit(struct lookup *l)
{
        free(l->keys);
        free(l->rows);
        symbol_batch_deinit(&l->batch);
}

enum status location_rows_resolve(struct location_row *rows, size_t count, struct symbol_index *symbols,
                                  struct arena *a, uint8_t *changed, struct error *err)
{
        _cleanup_(lookup_deinit) struct lookup l = { 0 };
        _cleanup_(texts_deinit) struct texts t = { .arena = a };
        enum status st;

        if (!symbols || !count)
                return ST_OK;
        l.keys = calloc(count, sizeof *l.keys);
        l.rows = calloc(count, sizeof *l.rows);
        if (!l.keys || !l.rows)
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++) {
                if (!can_be_looked_up(&rows[i]))
                        continue;
                l.keys[l.count] = (struct symbol_key){ .build_id = &rows[i].shown.build_id,
                                                       .address = rows[i].shown.address,
                                                       .is_file_offset = rows[i].kind == ADDRESS_FILE_OFFSET };
                l.rows[l.count++] = i;
        }
        if (!l.count)
                return ST_OK;
        st = symbol_view_begin(symbols, &t.view, err);
        if (!st)
                st = symbol_view_lookup(t.view, l.keys, l.count, &l.batch, err);
        if (!st)
                metric_add(&damaged, (int64_t)l.batch.damaged_count);
        for (size_t k = 0; !st && k < l.count; k++) {
                bool row_changed;

                st = apply(&rows[l.rows[k]], &l.batch.results[k], &l.batch, &t, &row_changed, err);
                if (!st && changed)
                        changed[l.rows[k]] |= row_changed;
        }
        return st;
}
