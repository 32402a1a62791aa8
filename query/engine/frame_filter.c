/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/frame_filter.h"

#include <stdlib.h>
#include <string.h>

#include "common/text/regex_match.h"

enum status frame_filter_parse(const struct query_param_source *params, struct frame_filter *ret, struct error *err)
{
        struct frame_filter f = { .meter = params->meter };
        const struct {
                const char *name;
                struct regex_match **to;
        } patterns[] = { { "focus", &f.focus }, { "ignore", &f.ignore }, { "hide", &f.hide }, { "show", &f.show } };

        for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
                const char *pattern = query_param_get(params, "", patterns[i].name);
                enum status st =
                        pattern ? regex_match_create_search(pattern, params->meter, patterns[i].to, err) : ST_OK;

                if (st) {
                        frame_filter_deinit(&f);
                        return error_prefix(err, st, "%s", patterns[i].name);
                }
        }
        *ret = f;
        return ST_OK;
}

void frame_filter_deinit(struct frame_filter *f)
{
        regex_match_destroy(f->focus);
        regex_match_destroy(f->ignore);
        regex_match_destroy(f->hide);
        regex_match_destroy(f->show);
        *f = (struct frame_filter){ 0 };
}

/* ---- matching ---- */

enum { FOCUSED = 1, IGNORED = 2, HIDDEN = 4, SHOWN = 8 };

static bool matches_text(struct regex_match *pattern, const char *text)
{
        return *text && regex_match_text(pattern, text, strlen(text));
}

static bool matches_frame(struct regex_match *pattern, const struct query_frame *f)
{
        return pattern && (matches_text(pattern, f->function) || matches_text(pattern, f->file) ||
                           (f->short_name != f->function && matches_text(pattern, f->short_name)) ||
                           (f->linkage_name != f->function && matches_text(pattern, f->linkage_name)));
}

static uint8_t get_frame_marks(const struct frame_filter *f, const struct query_frame *frame)
{
        return (uint8_t)((matches_frame(f->focus, frame) ? FOCUSED : 0) |
                         (matches_frame(f->ignore, frame) ? IGNORED : 0) |
                         (matches_frame(f->hide, frame) ? HIDDEN : 0) | (matches_frame(f->show, frame) ? SHOWN : 0));
}

static uint8_t get_object_marks(const struct frame_filter *f, const char *path)
{
        return (uint8_t)((f->focus && matches_text(f->focus, path) ? FOCUSED : 0) |
                         (f->ignore && matches_text(f->ignore, path) ? IGNORED : 0) |
                         (f->hide && matches_text(f->hide, path) ? HIDDEN : 0) |
                         (f->show && matches_text(f->show, path) ? SHOWN : 0));
}

/* ---- filtering of frames ---- */

#define UNCOUNTED_FRAMES 1024 /* up to this many, memory is not charged to the budget */

/* Locations share ranges of frames: a range has up to two filtered copies, the second for objects that match "show". */
struct frame_ranges {
        struct location_frames *l;
        uint32_t (*copies)[2][2]; /* [start of a range]: { first, end } of both copies; end 0: not copied */
        uint32_t *frames;
        int64_t *lines, *start_lines;
        size_t count;
};

static bool is_frame_kept(const struct frame_filter *f, uint8_t marks)
{
        return !(marks & HIDDEN) && (!f->show || marks & SHOWN);
}

/* Copy the frames of a range that are kept. */
static void copy_frame_range(const struct frame_filter *f, struct frame_ranges *r, const uint8_t *marks,
                             uint8_t object_marks, uint32_t first, uint32_t end, uint32_t to[2])
{
        to[0] = (uint32_t)r->count;
        for (uint32_t k = first; k < end; k++) {
                if (!is_frame_kept(f, marks[r->l->frames[k]] | object_marks))
                        continue;
                r->frames[r->count] = r->l->frames[k];
                r->lines[r->count] = r->l->lines[k];
                r->start_lines[r->count++] = r->l->start_lines[k];
        }
        to[1] = (uint32_t)r->count;
}

static void frame_ranges_deinit(struct frame_ranges *r)
{
        free(r->copies);
        free(r->frames);
        free(r->lines);
        free(r->start_lines);
}

static enum status hide_frames(const struct frame_filter *f, const struct scan_stacks *stacks, const uint8_t *marks,
                               const uint8_t *object_marks, struct location_frames *l, struct error *err)
{
        _cleanup_(frame_ranges_deinit) struct frame_ranges r = { .l = l };
        _cleanup_memory_ struct memory_reservation copies = { .use = MEMORY_QUERIES };
        size_t total = 0, held = l->memory.bytes;
        enum status st = ST_OK;

        for (size_t i = 0; i < stacks->location_count; i++)
                total = l->end[i] > total ? l->end[i] : total;
        if (total > UNCOUNTED_FRAMES) /* frames and copies exist at the same time */
                st = memory_reserve(&copies, total * sizeof *r.copies + 2 * total * LOCATION_FRAME_BYTES, err);
        if (st)
                return st;
        r.copies = calloc(total + 1, sizeof *r.copies);
        r.frames = calloc(2 * total + 1, sizeof *r.frames);
        r.lines = calloc(2 * total + 1, sizeof *r.lines);
        r.start_lines = calloc(2 * total + 1, sizeof *r.start_lines);
        if (!r.copies || !r.frames || !r.lines || !r.start_lines)
                return error_no_memory(err);
        r.count = 1; /* so that the end of a copy is never 0 */
        for (size_t i = 0; i < stacks->location_count; i++) {
                unsigned variant = object_marks[i] & SHOWN ? 1 : 0;
                uint32_t first = l->first[i], *copy = r.copies[first][variant];

                st = work_meter_add(f->meter, 4 + (uint64_t)(l->end[i] - first), err);
                if (st)
                        return st;
                if (object_marks[i] & HIDDEN) {
                        l->first[i] = l->end[i] = 0;
                        continue;
                }
                if (!copy[1])
                        copy_frame_range(f, &r, marks, object_marks[i] & SHOWN, first, l->end[i], copy);
                l->first[i] = copy[0];
                l->end[i] = copy[1];
        }
        free(l->frames);
        free(l->lines);
        free(l->start_lines);
        if (copies.bytes) {
                memory_release(&copies);
                st = memory_resize(&l->memory, held + total * LOCATION_FRAME_BYTES, err);
        }
        l->frames = steal_ptr(r.frames);
        l->lines = steal_ptr(r.lines);
        l->start_lines = steal_ptr(r.start_lines);
        return st;
}

/* ---- filtering of stacks ---- */

static bool is_stack_kept(const struct frame_filter *f, const struct scan_stacks *stacks, size_t i,
                          const uint8_t *location_marks, const struct location_frames *l)
{
        bool focused = !f->focus, any = !f->hide && !f->show;

        for (size_t j = stacks->first[i]; j < stacks->first[i + 1]; j++) {
                uint32_t location = stacks->indexes[j];

                if (location_marks[location] & IGNORED)
                        return false;
                focused |= (location_marks[location] & FOCUSED) != 0;
                any |= l->first[location] < l->end[location];
        }
        return focused && any;
}

/* Whether the stack's outermost frames are those of the call site. */
static bool begins_at_call_site(const struct frame_filter *f, const struct frame_table *frames,
                                const struct scan_stacks *stacks, size_t i, const struct location_frames *l)
{
        size_t found = 0;

        for (size_t j = stacks->first[i + 1]; found < f->call_site_count && j-- > stacks->first[i];) {
                uint32_t location = stacks->indexes[j];

                for (uint32_t k = l->first[location]; found < f->call_site_count && k < l->end[location]; k++)
                        if (strcmp(frames->items[l->frames[k]].function, f->call_site[found++]) != 0)
                                return false;
        }
        return found == f->call_site_count;
}

/* marks: by frame. location_marks: by location; those of its object on entry, with those of its frames on return. */
static enum status mark_locations(const struct frame_filter *f, const struct scan_stacks *stacks, const uint8_t *marks,
                                  const struct location_frames *l, uint8_t *location_marks, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < stacks->location_count; i++) {
                for (uint32_t k = l->first[i]; k < l->end[i]; k++)
                        location_marks[i] |= marks[l->frames[k]];
                st = work_meter_add(f->meter, 1 + (uint64_t)(l->end[i] - l->first[i]), err);
        }
        return st;
}

enum status frame_filter_apply(const struct frame_filter *f, const struct frame_table *frames,
                               const struct scan_stacks *stacks, struct location_frames *locations, uint8_t **kept_ret,
                               struct error *err)
{
        _cleanup_free_ uint8_t *marks = calloc(frames->count + (size_t)1, 1);
        _cleanup_free_ uint8_t *object_marks = calloc(stacks->location_count + 1, 1);
        _cleanup_free_ uint8_t *location_marks = calloc(stacks->location_count + 1, 1);
        _cleanup_free_ uint8_t *kept = calloc(stacks->count + 1, 1);
        enum status st = ST_OK;

        if (!marks || !object_marks || !location_marks || !kept)
                return error_no_memory(err);
        for (uint32_t i = 0; !st && i < frames->count; i++) {
                marks[i] = get_frame_marks(f, &frames->items[i]);
                st = work_meter_add(f->meter, 16, err);
        }
        for (size_t i = 0; !st && i < stacks->location_count; i++) {
                object_marks[i] = location_marks[i] = get_object_marks(f, stacks->locations[i].mapping);
                st = work_meter_add(f->meter, 16, err);
        }
        if (!st)
                st = mark_locations(f, stacks, marks, locations, location_marks, err);
        if (!st && (f->hide || f->show))
                st = hide_frames(f, stacks, marks, object_marks, locations, err);
        for (size_t i = 0; !st && i < stacks->count; i++) {
                kept[i] = is_stack_kept(f, stacks, i, location_marks, locations) &&
                          begins_at_call_site(f, frames, stacks, i, locations);
                st = work_meter_add(f->meter, 1 + stacks->first[i + 1] - stacks->first[i], err);
        }
        if (!st)
                *kept_ret = steal_ptr(kept);
        return st;
}
