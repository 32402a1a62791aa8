/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the stacks of one or two sides: each frame in a target function adds to the row of its (name, line),
 * to its file, and to the call site of the frame inlined into it. `seen`, of a row, file or site, is the last entry
 * that was added, so that a recursive function counts once per stack; the entries of both sides have one numbering
 * for this.
 *
 * build_line_table() has the sequence: target functions (loaded_sides.h), numbers of files, sums, align_lines(), which
 * in a diff moves costs before to the lines after that correspond to them (line_alignment.h), sort_lines(), which
 * applies the limit and leaves rows by file and line, sort_files(), and texts of the files with the greatest cost. Call
 * sites refer to row numbers, which do not change when rows are sorted; file_of_frame is invalid once files are sorted.
 *
 * In the file: files; sums; the two sorts; source texts; alignment, of which only whole files stay loaded, others are
 * loaded while their rows are visited; rows; the operation. query/formats/lines_out.c writes the answer.
 */
#include "query/engine/lines.h"

#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/search.h"
#include "query/engine/top.h"

#define ALIGNED_FILES 16 /* whose texts are compared, by falling cost */
#define SHOWN_TEXTS 4    /* whole files in an answer, by falling cost */

static void line_table_deinit(struct line_table *t)
{
        function_targets_deinit(&t->targets);
        number_map_deinit(&t->numbers);
        number_map_deinit(&t->site_numbers);
        for (size_t i = 0; i < t->file_count; i++) {
                source_lines_deinit(&t->files[i].source);
                source_lines_deinit(&t->files[i].base_source);
                line_alignment_deinit(&t->files[i].alignment);
        }
        free(t->rows);
        free(t->sites);
        free(t->file_of_frame);
        free(t->files);
        memory_release(&t->memory);
}

/* ---- files ---- */

struct frame_file {
        const char *file;
        uint32_t frame;
};

static int compare_frame_files(const void *x, const void *y, void *context)
{
        const struct frame_file *a = x, *b = y;

        (void)context;
        return strcmp(a->file, b->file);
}

static enum status number_files(struct line_table *t)
{
        const struct frame_table *frames = &t->l->frames;
        _cleanup_free_ struct frame_file *items = NULL;
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_QUERIES }; /* of items */
        size_t count = 0;
        enum status st = ST_OK;

        if (frames->count > ARRAY_UNCHARGED)
                st = memory_reserve(&memory, frames->count * sizeof *items, t->q->err);
        if (!st && frames->count > ARRAY_UNCHARGED)
                st = memory_reserve(&t->memory, frames->count * (sizeof *t->file_of_frame + sizeof *t->files),
                                    t->q->err);
        if (st)
                return st;
        items = calloc(frames->count + (size_t)1, sizeof *items);
        t->file_of_frame = calloc(frames->count + (size_t)1, sizeof *t->file_of_frame);
        if (!items || !t->file_of_frame)
                return error_no_memory(t->q->err);
        for (uint32_t i = 0; i < frames->count; i++)
                if (t->targets.is_target[i])
                        items[count++] = (struct frame_file){ frames->items[i].file, i };
        st = work_meter_sort(t->q->meter, items, count, sizeof *items, compare_frame_files, NULL, t->q->err);
        t->files = calloc(count + 1, sizeof *t->files);
        if (!t->files)
                return error_no_memory(t->q->err);
        for (size_t i = 0; !st && i < count; i++) {
                if (i == 0 || strcmp(items[i].file, items[i - 1].file) != 0)
                        t->files[t->file_count++] =
                                (struct line_file){ .file = items[i].file, .location = { NO_LOCATION, NO_LOCATION } };
                t->file_of_frame[items[i].frame] = (uint32_t)(t->file_count - 1);
        }
        return st;
}

/* ---- sums ---- */

static enum status find_or_add_line(struct line_table *t, uint32_t frame, int64_t line, bool is_removed,
                                    struct line_row **ret)
{
        const struct number_key key = { { t->l->frames.items[frame].name, (uint32_t)line,
                                          (uint32_t)((uint64_t)line >> 32) ^ (is_removed ? UINT32_C(1) << 31 : 0) } };
        uint32_t number;
        bool fresh = false;
        enum status st = number_map_get(&t->numbers, &key, &number, &fresh, t->q->err);

        if (st)
                return st;
        if (fresh) {
                st = array_charge_growth(&t->memory, t->capacity, t->count, sizeof *t->rows + NUMBER_MAP_KEY_BYTES,
                                         t->q->err);
                if (st)
                        return st;
                if (!array_reserve(&t->rows, &t->capacity, t->count))
                        return error_no_memory(t->q->err);
                t->rows[t->count++] = (struct line_row){ .frame = frame,
                                                         .location = { NO_LOCATION, NO_LOCATION },
                                                         .number = number,
                                                         .line = line,
                                                         .is_removed = is_removed,
                                                         .place = 2 * line };
        }
        *ret = &t->rows[number];
        return ST_OK;
}

static enum status find_or_add_site(struct line_table *t, const struct line_row *row, uint32_t frame,
                                    struct call_site **ret)
{
        const struct number_key key = { { row->number, t->l->frames.items[frame].name } };
        uint32_t number;
        bool fresh = false;
        enum status st = number_map_get(&t->site_numbers, &key, &number, &fresh, t->q->err);

        if (st)
                return st;
        if (fresh) {
                st = array_charge_growth(&t->memory, t->site_capacity, t->site_count,
                                         sizeof *t->sites + NUMBER_MAP_KEY_BYTES, t->q->err);
                if (st)
                        return st;
                if (!array_reserve(&t->sites, &t->site_capacity, t->site_count))
                        return error_no_memory(t->q->err);
                t->sites[t->site_count++] = (struct call_site){ .row = row->number, .frame = frame };
        }
        *ret = &t->sites[number];
        return ST_OK;
}

/* Add a value to a sum that counts each entry once. */
static void add_entry_value(int64_t *cumulative, size_t *seen, size_t entry, int64_t value)
{
        if (*seen != entry + 1)
                add_saturating(cumulative, value);
        *seen = entry + 1;
}

/* A stack while it is added. */
struct counted_entry {
        unsigned side;
        size_t position; /* among the entries of both sides */
        int64_t value;
};

/*
 * Add frame k of a location of an entry's stack. `is_leaf`: it is the stack's innermost frame; `is_top`: it belongs to
 * the stack's innermost location, so that time was spent in the calls inlined into it.
 */
static enum status add_line_frame(struct line_table *t, const struct counted_entry *e, uint32_t location, uint32_t k,
                                  bool is_leaf, bool is_top)
{
        const struct location_frames *l = &t->l->sides[e->side].locations;
        struct line_file *file = &t->files[t->file_of_frame[l->frames[k]]];
        struct line_row *row = NULL;
        struct call_site *site = NULL;
        enum status st = find_or_add_line(t, l->frames[k], l->lines[k], false, &row);

        if (st)
                return st;
        if (row->location[e->side] == NO_LOCATION)
                row->location[e->side] = location;
        if (is_leaf) {
                add_saturating(&row->flat[e->side], e->value);
                add_saturating(&file->flat[e->side], e->value);
                add_saturating(&t->flat[e->side], e->value);
        }
        add_entry_value(&row->cumulative[e->side], &row->seen, e->position, e->value);
        add_entry_value(&file->cumulative[e->side], &file->seen, e->position, e->value);
        if (k + 1 == l->end[location])
                return ST_OK;
        st = find_or_add_site(t, row, l->frames[k + 1], &site);
        if (st)
                return st;
        if (is_top && site->seen != e->position + 1) /* recursive calls may be inlined several times at one location */
                add_saturating(&site->flat[e->side], e->value);
        add_entry_value(&site->cumulative[e->side], &site->seen, e->position, e->value);
        return ST_OK;
}

static enum status add_entry_lines(struct line_table *t, unsigned side, size_t entry)
{
        const struct merged_profile *m = &t->l->sides[side];
        const struct merged_entry *e = &m->entries[entry];
        const struct location_frames *l = &m->locations;
        const struct counted_entry counted = { side, side ? t->l->sides[0].count + entry : entry, e->value };
        bool is_top = true, is_hit = false;
        enum status st = ST_OK;

        for (size_t j = m->stacks->first[e->stack]; !st && j < m->stacks->first[e->stack + 1]; j++) {
                uint32_t location = m->stacks->indexes[j];

                st = work_meter_add(t->q->meter, 1 + (uint64_t)(l->end[location] - l->first[location]), t->q->err);
                for (uint32_t k = l->end[location]; !st && k-- > l->first[location];) {
                        if (!t->targets.is_target[l->frames[k]])
                                continue;
                        st = add_line_frame(t, &counted, location, k, is_top && k + 1 == l->end[location], is_top);
                        is_hit = true;
                }
                is_top = is_top && l->end[location] == l->first[location];
        }
        if (is_hit)
                add_saturating(&t->cumulative[side], e->value);
        return st;
}

/* By falling cost, in a diff by falling change. */
static int compare_side_costs(const struct line_table *t, const int64_t x[2], const int64_t y[2])
{
        const int64_t totals[2] = { t->l->sides[0].total, t->l->sides[1].total };

        if (t->l->side_count == 1)
                return x[0] > y[0] ? -1 : x[0] < y[0];
        return compare_changes(x, y, t->q->r.by_value ? NULL : totals);
}

static int compare_line_costs(const void *x, const void *y, void *t)
{
        const struct line_row *a = x, *b = y;
        int c = compare_side_costs(t, a->flat, b->flat);

        if (!c)
                c = compare_side_costs(t, a->cumulative, b->cumulative);
        if (c)
                return c;
        return a->frame < b->frame ? -1 : a->frame > b->frame ? 1 : a->line < b->line ? -1 : a->line > b->line;
}

static int compare_line_places(const void *x, const void *y, void *context)
{
        const struct query_frame *frames = context;
        const struct line_row *a = x, *b = y;
        int c = strcmp(frames[a->frame].file, frames[b->frame].file);

        if (!c)
                c = a->place < b->place ? -1 : a->place > b->place;
        if (!c)
                c = a->line < b->line ? -1 : a->line > b->line;
        return c ? c : strcmp(frames[a->frame].function, frames[b->frame].function);
}

/* Keep the lines with the greatest cost, sorted by file and line. */
static enum status sort_lines(struct line_table *t, uint64_t limit)
{
        enum status st =
                work_meter_sort(t->q->meter, t->rows, t->count, sizeof *t->rows, compare_line_costs, t, t->q->err);

        if (limit && limit < t->count)
                t->count = (size_t)limit;
        for (size_t i = 0; !st && i < t->count; i++) { /* rows are still sorted by cost */
                struct line_file *f = &t->files[t->file_of_frame[t->rows[i].frame]];

                for (unsigned side = 0; side < 2; side++)
                        if (f->location[side] == NO_LOCATION)
                                f->location[side] = t->rows[i].location[side];
                f->end = f->first + 1;
        }
        if (!st)
                st = work_meter_sort(t->q->meter, t->rows, t->count, sizeof *t->rows, compare_line_places,
                                     t->l->frames.items, t->q->err);
        for (size_t i = t->count; !st && i-- > 0;) {
                struct line_file *f = &t->files[t->file_of_frame[t->rows[i].frame]];

                if (i + 1 == t->count || strcmp(f->file, t->l->frames.items[t->rows[i + 1].frame].file) != 0)
                        f->end = i + 1;
                f->first = i;
        }
        return st;
}

static int compare_sites(const void *x, const void *y, void *t)
{
        const struct call_site *a = x, *b = y;
        int c;

        if (a->row != b->row)
                return a->row < b->row ? -1 : 1;
        c = compare_side_costs(t, a->cumulative, b->cumulative);
        return c ? c : a->frame < b->frame ? -1 : a->frame > b->frame;
}

static int compare_file_costs(const void *x, const void *y, void *t)
{
        const struct line_file *a = x, *b = y;
        int c = compare_side_costs(t, a->cumulative, b->cumulative);

        if (!c)
                c = compare_side_costs(t, a->flat, b->flat);
        return c ? c : strcmp(a->file, b->file);
}

static int compare_file_pointers(const void *x, const void *y, void *t)
{
        return compare_file_costs(*(const struct line_file *const *)x, *(const struct line_file *const *)y, t);
}

/* Sort files by falling cost; file_of_frame is invalid afterwards. */
static enum status sort_files(struct line_table *t)
{
        size_t kept = 0;
        enum status st;

        for (size_t i = 0; i < t->file_count; i++) /* drop files whose lines are all beyond the limit */
                if (t->files[i].first < t->files[i].end)
                        t->files[kept++] = t->files[i];
        t->file_count = kept;
        st = work_meter_sort(t->q->meter, t->files, kept, sizeof *t->files, compare_file_costs, t, t->q->err);
        return st ? st
                  : work_meter_sort(t->q->meter, t->sites, t->site_count, sizeof *t->sites, compare_sites, t,
                                    t->q->err);
}

/* ---- source ---- */

static const struct scan_location *get_side_location(const struct line_table *t, const struct line_file *f,
                                                     unsigned side)
{
        return &t->l->sides[side].stacks->locations[f->location[side]];
}

const struct scan_location *line_table_find_location(const struct line_table *t, const struct line_file *f)
{
        return get_side_location(t, f, f->location[1] != NO_LOCATION);
}

static void load_file_source(const struct line_table *t, struct line_file *f, bool may_fetch)
{
        source_lines_load(&f->source, t->q->sources, line_table_find_location(t, f)->build_id, f->file, may_fetch);
}

/* Whether the sides have the file in two objects, such as two versions of a program. */
static bool has_other_base(const struct line_table *t, const struct line_file *f)
{
        return f->location[0] != NO_LOCATION && f->location[1] != NO_LOCATION &&
               !build_id_equal(get_side_location(t, f, 0)->build_id, get_side_location(t, f, 1)->build_id);
}

const char *line_file_get_row_text(const struct line_file *f, const struct line_row *r, size_t *n_ret)
{
        bool is_of_base = f->is_aligned ? r->is_removed : f->has_base_source && r->location[1] == NO_LOCATION;

        return source_lines_get(is_of_base ? &f->base_source : &f->source, r->line, n_ret);
}

/* How many characters two paths have in common at their ends. */
static size_t count_common_end(const char *a, const char *b)
{
        size_t i = strlen(a), k = strlen(b), count = 0;

        for (; i > count && k > count && a[i - 1 - count] == b[k - 1 - count]; count++)
                ;
        return count;
}

/* The path that the side before has of the file: builds may be made in different directories. */
static const char *find_base_path(const struct line_table *t, const struct line_file *f)
{
        const struct scan_location *l = get_side_location(t, f, 0);
        const char *best = f->file;
        size_t most = 0;

        for (uint32_t i = 0; i < l->frame_count; i++) {
                size_t count = count_common_end(l->frames[i].file, f->file);

                if (strcmp(path_base(l->frames[i].file), path_base(f->file)) == 0 && count > most) {
                        most = count;
                        best = l->frames[i].file;
                }
        }
        return best;
}

static void load_base_source(const struct line_table *t, struct line_file *f)
{
        source_lines_load(&f->base_source, t->q->sources, get_side_location(t, f, 0)->build_id, find_base_path(t, f),
                          false);
        f->has_base_source = true;
}

/* Load and keep the whole texts of the files with the greatest cost, as long as they fit. */
static enum status load_whole_files(struct line_table *t)
{
        size_t total = 0;
        enum status st = ST_OK;

        for (size_t i = 0; !st && t->form == SOURCE_FILE && i < t->file_count && i < SHOWN_TEXTS; i++) {
                struct line_file *f = &t->files[i];

                load_file_source(t, f, true);
                if (f->source.state == ST_OK && total + f->source.text.size > LIMIT_SHOWN_SOURCE_BYTES) {
                        source_lines_deinit(&f->source);
                        f->source = (struct source_lines){ .state = ST_TOO_BIG };
                        error_set(&f->source.why, ST_TOO_BIG, "other files use up the answer's limit of %d MiB",
                                  (int)(LIMIT_SHOWN_SOURCE_BYTES >> 20));
                }
                f->has_text = true;
                total += f->source.text.size;
                if (f->is_aligned && f->source.state == ST_OK) {
                        load_base_source(t, f);
                        total += f->base_source.text.size;
                }
                st = work_meter_check(t->q->meter, t->q->err); /* a request to an upstream may take long */
        }
        return st;
}

static void open_file_text(struct line_table *t, struct line_file *f)
{
        if (t->form == SOURCE_NONE) {
                f->source.state = ST_NOT_FOUND;
                return;
        }
        if (!f->has_text)
                load_file_source(t, f, false);
        if (!f->has_base_source && has_other_base(t, f))
                load_base_source(t, f);
}

static void close_file_text(struct line_file *f)
{
        if (f->has_text && f->is_aligned)
                return;
        source_lines_deinit(&f->base_source);
        f->base_source = (struct source_lines){ .state = ST_NOT_FOUND };
        f->has_base_source = false;
        if (f->has_text)
                return;
        source_lines_deinit(&f->source);
        f->source.text = (struct buf){ 0 };
}

/* ---- alignment ---- */

/* What a line costs before. */
struct moved_line {
        uint32_t frame, location, old_row, new_row;
        int64_t line, flat, cumulative;
};

struct moved_lines {
        struct moved_line *items; /* owned */
        uint32_t *item_of_row;    /* of the rows before the move, plus one; 0: none. Owned */
        size_t count, row_count;
};

/* The objects of both sides, of the row with the greatest cost on each. */
static enum status find_side_objects(struct line_table *t)
{
        _cleanup_free_ int64_t *greatest = calloc(2 * t->file_count + 1, sizeof *greatest);

        if (!greatest)
                return error_no_memory(t->q->err);
        for (size_t i = 0; i < t->count; i++) {
                const uint32_t file = t->file_of_frame[t->rows[i].frame];
                struct line_file *f = &t->files[file];

                for (unsigned side = 0; side < 2; side++)
                        if (t->rows[i].location[side] != NO_LOCATION &&
                            (f->location[side] == NO_LOCATION ||
                             t->rows[i].cumulative[side] > greatest[2 * file + side])) {
                                f->location[side] = t->rows[i].location[side];
                                greatest[2 * file + side] = t->rows[i].cumulative[side];
                        }
        }
        return ST_OK;
}

/* Files without both texts, or of too many lines, stay as they are: their lines are compared by number. */
static enum status align_file(struct line_table *t, struct line_file *f)
{
        struct source_lines sides[2] = { 0 };
        enum status st = ST_OK;

        if (!*f->file || !has_other_base(t, f))
                return ST_OK;
        for (unsigned side = 0; side < 2; side++)
                source_lines_load(&sides[side], t->q->sources, get_side_location(t, f, side)->build_id,
                                  side ? f->file : find_base_path(t, f), t->form == SOURCE_FILE);
        if (sides[0].state == ST_OK && sides[1].state == ST_OK && sides[0].count <= LIMIT_ALIGNED_LINES &&
            sides[1].count <= LIMIT_ALIGNED_LINES) {
                st = line_alignment_make(&sides[0], &sides[1], t->q->meter, &f->alignment, t->q->err);
                f->is_aligned = !st;
        }
        source_lines_deinit(&sides[0]);
        source_lines_deinit(&sides[1]);
        return st ? st : work_meter_check(t->q->meter, t->q->err);
}

/* Twice the line after which a removed line was, plus one: before the next line. */
static int64_t find_removed_place(const struct line_alignment *a, int64_t line)
{
        return 2 * (int64_t)a->after_until[line - 1] + 1;
}

/* Take the costs before out of the rows of aligned files. */
static enum status take_lines_before(struct line_table *t, struct moved_lines *m)
{
        m->row_count = t->count;
        m->items = calloc(t->count + 1, sizeof *m->items);
        m->item_of_row = calloc(t->count + 1, sizeof *m->item_of_row);
        if (!m->items || !m->item_of_row)
                return error_no_memory(t->q->err);
        for (size_t i = 0; i < t->count; i++) {
                struct line_row *r = &t->rows[i];
                const struct line_file *f = &t->files[t->file_of_frame[r->frame]];

                if (!f->is_aligned || r->location[0] == NO_LOCATION || r->line < 1 ||
                    r->line > f->alignment.before_count)
                        continue;
                m->items[m->count] = (struct moved_line){ r->frame, r->location[0], r->number,       0,
                                                          r->line,  r->flat[0],     r->cumulative[0] };
                m->item_of_row[i] = (uint32_t)++m->count;
                r->location[0] = NO_LOCATION;
                r->flat[0] = r->cumulative[0] = 0;
        }
        return ST_OK;
}

static enum status put_lines_before(struct line_table *t, struct moved_lines *m)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < m->count; i++) {
                struct moved_line *from = &m->items[i];
                const struct line_alignment *a = &t->files[t->file_of_frame[from->frame]].alignment;
                const uint32_t after = a->after_of[from->line];
                struct line_row *to;

                st = find_or_add_line(t, from->frame, after ? after : from->line, !after, &to);
                if (st)
                        break;
                from->new_row = to->number;
                to->location[0] = from->location;
                to->flat[0] = from->flat;
                to->cumulative[0] = from->cumulative;
                to->line_before = from->line;
                if (!after)
                        to->place = find_removed_place(a, from->line);
                st = work_meter_add(t->q->meter, 16, t->q->err);
        }
        return st;
}

/* Of the lines of the text after, whether or not the line before has a cost. */
static void set_lines_before(struct line_table *t)
{
        for (size_t i = 0; i < t->count; i++) {
                struct line_row *r = &t->rows[i];
                const struct line_file *f = &t->files[t->file_of_frame[r->frame]];

                if (f->is_aligned && !r->is_removed && r->line > 0 && r->line <= f->alignment.after_count)
                        r->line_before = f->alignment.before_of[r->line];
        }
}

static enum status move_sites_before(struct line_table *t, const struct moved_lines *m)
{
        const size_t count = t->site_count;
        struct call_site *taken = calloc(count + 1, sizeof *taken);
        size_t taken_count = 0;
        enum status st = ST_OK;

        if (!taken)
                return error_no_memory(t->q->err);
        for (size_t i = 0; i < count; i++) {
                struct call_site *s = &t->sites[i];

                if (s->row >= m->row_count || !m->item_of_row[s->row])
                        continue;
                taken[taken_count] = *s;
                taken[taken_count++].row = m->items[m->item_of_row[s->row] - 1].new_row;
                s->flat[0] = s->cumulative[0] = 0;
        }
        for (size_t i = 0; !st && i < taken_count; i++) {
                struct call_site *to;

                st = find_or_add_site(t, &t->rows[taken[i].row], taken[i].frame, &to);
                if (!st) {
                        to->flat[0] = taken[i].flat[0];
                        to->cumulative[0] = taken[i].cumulative[0];
                }
        }
        free(taken);
        return st;
}

static void drop_empty_lines(struct line_table *t)
{
        size_t kept = 0;

        for (size_t i = 0; i < t->count; i++)
                if (t->rows[i].location[0] != NO_LOCATION || t->rows[i].location[1] != NO_LOCATION)
                        t->rows[kept++] = t->rows[i];
        t->count = kept;
        kept = 0;
        for (size_t i = 0; i < t->site_count; i++) {
                const struct call_site *s = &t->sites[i];

                if (s->flat[0] || s->flat[1] || s->cumulative[0] || s->cumulative[1])
                        t->sites[kept++] = *s;
        }
        t->site_count = kept;
}

/* In a diff with texts, move the costs before to the lines after to which they correspond. */
static enum status align_lines(struct line_table *t)
{
        struct moved_lines m = { 0 };
        _cleanup_free_ struct line_file **order = NULL;
        enum status st;

        if (t->l->side_count < 2 || t->form == SOURCE_NONE || !t->q->sources)
                return ST_OK;
        order = calloc(t->file_count + 1, sizeof *order);
        if (!order)
                return error_no_memory(t->q->err);
        for (size_t i = 0; i < t->file_count; i++)
                order[i] = &t->files[i];
        qsort_r(order, t->file_count, sizeof *order, compare_file_pointers, t);
        st = find_side_objects(t);
        for (size_t i = 0; !st && i < t->file_count && i < ALIGNED_FILES; i++)
                st = align_file(t, order[i]);
        if (!st)
                st = take_lines_before(t, &m);
        if (!st)
                st = put_lines_before(t, &m);
        set_lines_before(t);
        if (!st)
                st = move_sites_before(t, &m);
        if (!st)
                drop_empty_lines(t);
        free(m.items);
        free(m.item_of_row);
        return st;
}

/* ---- rows ---- */

static int compare_file_places(const void *x, const void *y)
{
        const struct line_file *const *a = x, *const *b = y;

        return (*a)->first < (*b)->first ? -1 : (*a)->first > (*b)->first;
}

enum status line_table_visit_rows(struct line_table *t, put_line_row *put, void *context)
{
        _cleanup_free_ struct line_file **order = calloc(t->file_count + 1, sizeof *order);
        enum status st = ST_OK;

        if (!order)
                return error_no_memory(t->q->err);
        for (size_t i = 0; i < t->file_count; i++)
                order[i] = &t->files[i];
        qsort(order, t->file_count, sizeof *order, compare_file_places);
        for (size_t i = 0; !st && i < t->file_count; i++) {
                open_file_text(t, order[i]);
                for (size_t k = order[i]->first; !st && k < order[i]->end; k++) {
                        st = work_meter_add(t->q->meter, 64, t->q->err);
                        if (!st)
                                put(t, order[i], &t->rows[k], context);
                }
                close_file_text(order[i]);
        }
        return st;
}

size_t line_table_find_first_site(const struct line_table *t, uint32_t row)
{
        size_t at = find_lower_bound(i, 0, t->site_count, t->sites[i].row < row);

        return at;
}

/* ---- the operation ---- */

static enum status parse_source_form(struct query_call *q, enum source_form *ret)
{
        static const char *const names[] = { "none", "line", "file" };
        const char *text = query_param_get(&q->params, "", "source");

        *ret = SOURCE_LINE;
        for (int i = SOURCE_NONE; text && i <= SOURCE_FILE; i++) {
                if (strcmp(text, names[i]) != 0)
                        continue;
                *ret = (enum source_form)i;
                return ST_OK;
        }
        return text ? error_set(q->err, ST_USAGE, "source must be none, line or file") : ST_OK;
}

static enum status check_line_params(const struct query_call *q)
{
        static const char *const choices[] = { "function", "function_name", "file", "file_name" };
        bool is_chosen = false;

        for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
                is_chosen = is_chosen || query_param_get(&q->params, "", choices[i]);
        if (!is_chosen)
                return error_set(q->err, ST_USAGE,
                                 "lines needs function (a regular expression for the whole name), file (one for a "
                                 "part of the path), function_name or file_name (exact)");
        return ST_OK;
}

static enum status build_line_table(struct line_table *t)
{
        enum status st = function_targets_find_asked(t->q, &t->l->frames, &t->targets);

        if (!st)
                st = number_files(t);
        for (unsigned side = 0; side < t->l->side_count; side++)
                for (size_t i = 0; !st && i < t->l->sides[side].count; i++)
                        st = add_entry_lines(t, side, i);
        if (!st)
                st = align_lines(t);
        if (!st)
                st = sort_lines(t, t->q->r.limit);
        if (!st)
                st = sort_files(t);
        return st ? st : load_whole_files(t);
}

/* @param base  the selection to compare with, or NULL. */
static enum status answer_lines(struct query_call *q, const struct query_selection *base)
{
        _cleanup_loaded_sides_ struct loaded_sides l = { 0 };
        _cleanup_(line_table_deinit) struct line_table t = { .q = q, .l = &l, .memory.use = MEMORY_QUERIES };
        enum status st = parse_source_form(q, &t.form);

        t.server = query_param_get(&q->params, "", "server");
        if (!st)
                st = loaded_sides_load(q, base, &l);
        if (!st)
                st = build_line_table(&t);
        return st ? st : line_table_put_answer(&t);
}

enum status query_answer_lines(struct query_call *q)
{
        struct query_selection base = { 0 };
        bool has_base = query_call_find_base(q) != NULL;
        enum status st = check_line_params(q);

        if (!st && has_base)
                st = query_selection_parse(&q->params, "base_", &q->r.selection, q->now_unix_ns, &base, q->err);
        if (!st)
                st = answer_lines(q, has_base ? &base : NULL);
        query_selection_deinit(&base);
        return st;
}
