/* SPDX-License-Identifier: Apache-2.0 */
#include "query/frames.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/array.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/hash_table.h"
#include "common/huge_pages.h"
#include "common/limits.h"
#include "symbol-index/short_name.h"

#define UNCOUNTED_FRAMES 1024 /* memory for so few is not reserved: a small query needs no budget */

const char *frame_kind_name(enum frame_kind k)
{
        static const char *const names[] = {
                [FRAME_NATIVE] = "native",         [FRAME_INLINED] = "inlined", [FRAME_KERNEL] = "kernel",
                [FRAME_UNRESOLVED] = "unresolved", [FRAME_LABEL] = "label",
        };

        return names[k];
}

bool query_frame_has_name(const struct query_frame *f, const char *text)
{
        return strcmp(f->function, text) == 0 || strcmp(f->linkage_name, text) == 0 || strcmp(f->short_name, text) == 0;
}

void frame_table_init(struct frame_table *t, struct work_meter *meter)
{
        *t = (struct frame_table){ .meter = meter, .memory.use = MEMORY_QUERIES };
        arena_init_budget(&t->arena, LIMIT_PROFILE_MEMORY_BYTES, MEMORY_QUERIES);
        buf_init(&t->scratch, LIMIT_NAME_BYTES + 1);
}

void frame_table_deinit(struct frame_table *t)
{
        number_map_deinit(&t->names);
        free(t->name_frames);
        free(t->items);
        memory_release(&t->memory);
        buf_deinit(&t->scratch);
        arena_deinit(&t->arena);
}

/* The identity of two texts as a key. */
static struct number_key make_name_key(const char *a, const char *b)
{
        struct hash128 ha = hash_bytes128(a, strlen(a)), hb = hash_bytes128(b, strlen(b));
        struct number_key key = { 0 };
        uint64_t x[2], y[2];

        memcpy(x, ha.bytes, sizeof x);
        memcpy(y, hb.bytes, sizeof y);
        x[0] ^= y[0] * 0x9e3779b97f4a7c15u; /* not symmetric: (a, b) differs from (b, a) */
        x[1] ^= y[1] * 0xc2b2ae3d27d4eb4fu;
        memcpy(key.parts, x, sizeof x);
        return key;
}

static enum status copy_frame_text(struct frame_table *t, const char *text, const char **ret, struct error *err)
{
        *ret = *text ? arena_strndup(&t->arena, text, strlen(text)) : "";
        return *ret ? ST_OK : arena_error(&t->arena, err, "the frames");
}

static enum status copy_repeated_text(struct frame_table *t, struct copied_text *last, const char *text,
                                      const char **ret, struct error *err)
{
        enum status st = ST_OK;

        if (last->from != text) {
                st = copy_frame_text(t, text, &last->copy, err);
                last->from = st ? NULL : text;
        }
        *ret = last->copy;
        return st;
}

/* The same text when it is that of the function, as in C. */
static enum status copy_linkage_name(struct frame_table *t, const char *name, struct query_frame *f, struct error *err)
{
        f->linkage_name = f->function;
        return strcmp(name, f->function) == 0 ? ST_OK : copy_frame_text(t, name, &f->linkage_name, err);
}

/* Unresolved frames and labels have no shorter name. */
static enum status copy_short_name(struct frame_table *t, struct query_frame *f, struct error *err)
{
        bool is_plain = f->kind == FRAME_UNRESOLVED || f->kind == FRAME_LABEL;
        const char *text = is_plain ? f->function : symbol_short_name(f->function, f->linkage_name, &t->scratch);

        f->short_name = f->function;
        return text == f->function ? ST_OK : copy_frame_text(t, text, &f->short_name, err);
}

/* Room for one more frame, and for its name, which are at most as many and grow in the same steps. */
static enum status reserve_frame(struct frame_table *t, struct error *err)
{
        size_t grown = t->capacity + t->capacity / 2;
        enum status st = ST_OK;

        if (t->count < t->capacity)
                return ST_OK;
        if (grown > UNCOUNTED_FRAMES)
                st = memory_resize(&t->memory,
                                   grown * (sizeof *t->items + sizeof *t->name_frames + NUMBER_MAP_KEY_BYTES), err);
        if (st)
                return st;
        return array_reserve(&t->items, &t->capacity, t->count) ? ST_OK : error_no_memory(err);
}

/* The frame of that name and kind. False: there is none yet. */
static bool find_frame_of_name(const struct frame_table *t, uint32_t name, enum frame_kind kind, uint32_t *ret)
{
        uint32_t i = t->name_frames[name];

        while (t->items[i].kind != kind && t->items[i].next)
                i = t->items[i].next - 1;
        *ret = i;
        return t->items[i].kind == kind;
}

static enum status copy_frame(struct frame_table *t, const struct query_frame *from, struct query_frame *f,
                              struct error *err)
{
        enum status st = copy_frame_text(t, from->function, &f->function, err);

        if (!st)
                st = copy_linkage_name(t, from->linkage_name, f, err);
        if (!st)
                st = copy_short_name(t, f, err);
        if (!st)
                st = copy_repeated_text(t, &t->file, from->file, &f->file, err);
        if (!st)
                st = copy_repeated_text(t, &t->mapping, from->mapping, &f->mapping, err);
        return st;
}

static enum status find_or_add_frame(struct frame_table *t, const struct query_frame *frame, uint32_t *ret,
                                     struct error *err)
{
        struct number_key key = make_name_key(frame->function, frame->file);
        struct query_frame *f;
        uint32_t name;
        bool fresh = false;
        enum status st = work_meter_add(t->meter, 32, err);

        if (!st)
                st = reserve_frame(t, err);
        if (!st && !array_reserve(&t->name_frames, &t->name_capacity, t->names.count))
                st = error_no_memory(err);
        if (!st)
                st = number_map_get(&t->names, &key, &name, &fresh, err);
        if (st || (!fresh && find_frame_of_name(t, name, frame->kind, ret)))
                return st;
        f = &t->items[t->count];
        *f = *frame;
        f->name = name;
        f->next = 0;
        st = copy_frame(t, frame, f, err);
        if (st)
                return st;
        if (fresh)
                t->name_frames[name] = t->count;
        else
                t->items[*ret].next = t->count + 1;
        t->name_count = t->names.count;
        *ret = t->count++;
        return ST_OK;
}

enum status frame_table_add_label(struct frame_table *t, const char *text, uint32_t *ret, struct error *err)
{
        const struct query_frame f = {
                .function = text, .linkage_name = "", .file = "", .mapping = "", .state = "", .kind = FRAME_LABEL
        };

        return find_or_add_frame(t, &f, ret, err);
}

static enum status add_unresolved_frame(struct frame_table *t, const struct scan_location *l, uint32_t *ret,
                                        struct error *err)
{
        struct query_frame f = {
                .linkage_name = "", .file = "", .mapping = l->mapping, .state = l->state, .kind = FRAME_UNRESOLVED
        };
        const char *base = path_base(l->mapping);
        char text[LIMIT_PATH_BYTES + 32];

        if (*base)
                snprintf(text, sizeof text, "0x%" PRIx64 " [%s]", l->address, base);
        else if (l->address)
                snprintf(text, sizeof text, "0x%" PRIx64, l->address);
        else
                snprintf(text, sizeof text, "[unknown]");
        f.function = text;
        return find_or_add_frame(t, &f, ret, err);
}

static enum status add_location_frames(struct frame_table *t, const struct scan_location *l, uint32_t *frames,
                                       int64_t *lines, int64_t *start_lines, struct error *err)
{
        enum status st = ST_OK;

        if (l->frame_count == 0) {
                lines[0] = 0;
                return add_unresolved_frame(t, l, frames, err);
        }
        for (uint32_t i = 0; !st && i < l->frame_count; i++) {
                const struct scan_frame *s = &l->frames[l->frame_count - 1 - i];
                struct query_frame f = {
                        .linkage_name = s->linkage_name, .file = s->file, .mapping = l->mapping, .state = l->state
                };

                f.function = *s->function ? s->function : *s->linkage_name ? s->linkage_name : "[no name]";
                f.kind = l->is_kernel ? FRAME_KERNEL : s->inlined ? FRAME_INLINED : FRAME_NATIVE;
                lines[i] = s->line;
                start_lines[i] = s->start_line;
                st = find_or_add_frame(t, &f, &frames[i], err);
        }
        return st;
}

/* Locations that share an array of frames, and are both of the kernel or not, have equal frames in the table. */
struct shared_frames {
        const struct scan_frame *frames;
        uint64_t is_kernel;
};

struct sharing {
        const struct scan_stacks *stacks;
        struct hash_table table; /* locations by their frames */
};

static struct shared_frames get_shared_frames(const struct scan_location *l)
{
        return (struct shared_frames){ l->frames, l->is_kernel };
}

static bool is_same_shared_frames(const void *context, uint32_t location, const void *key, size_t size)
{
        const struct sharing *s = context;
        const struct shared_frames have = get_shared_frames(&s->stacks->locations[location]);

        return memcmp(&have, key, size) == 0;
}

/* Find an earlier location with the frames of location i; without one, add i. */
static enum status find_shared_location(struct sharing *s, uint32_t i, uint32_t *ret, bool *found_ret,
                                        struct error *err)
{
        const struct shared_frames key = get_shared_frames(&s->stacks->locations[i]);
        uint32_t hash = hash_table_hash(&key, sizeof key);
        enum status st;

        *found_ret = hash_table_find(&s->table, hash, is_same_shared_frames, s, &key, sizeof key, ret) &&
                     s->stacks->locations[*ret].frame_count == s->stacks->locations[i].frame_count;
        if (*found_ret)
                return ST_OK;
        st = hash_table_reserve(&s->table, err);
        if (!st)
                hash_table_insert(&s->table, hash, i);
        return st;
}

/* Assign each location its range of frames. @param total_ret number of frames. */
static enum status assign_frame_ranges(const struct scan_stacks *stacks, struct location_frames *l, uint64_t *total_ret,
                                       struct error *err)
{
        struct sharing sharing = { .stacks = stacks };
        uint64_t total = 0;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < stacks->location_count; i++) {
                uint32_t count = stacks->locations[i].frame_count, other;
                bool found = false;

                if (count)
                        st = find_shared_location(&sharing, (uint32_t)i, &other, &found, err);
                l->first[i] = found ? l->first[other] : (uint32_t)total;
                l->end[i] = l->first[i] + (count ? count : 1);
                total += found ? 0 : count ? count : 1;
                if (total > LIMIT_QUERY_FRAMES && !st)
                        st = error_set(
                                err, ST_TOO_BIG,
                                "the locations have more than %u distinct frames; narrow the time range or the labels",
                                LIMIT_QUERY_FRAMES);
        }
        hash_table_deinit(&sharing.table);
        *total_ret = total;
        return st;
}

enum status location_frames_build(struct frame_table *t, const struct scan_stacks *stacks, struct location_frames *ret,
                                  struct error *err)
{
        struct location_frames l = { .memory.use = MEMORY_QUERIES };
        size_t ranges = (stacks->location_count + 1) * (sizeof *l.first + sizeof *l.end);
        uint64_t total = 0, done = 0;
        enum status st;

        t->file = t->mapping = (struct copied_text){ 0 }; /* addresses of another scan's texts mean nothing here */
        st = stacks->location_count > UNCOUNTED_FRAMES ? memory_reserve(&l.memory, ranges, err) : ST_OK;

        if (!st) {
                l.first = calloc_huge(stacks->location_count + 1, sizeof *l.first);
                l.end = calloc_huge(stacks->location_count + 1, sizeof *l.end);
                st = l.first && l.end ? assign_frame_ranges(stacks, &l, &total, err) : error_no_memory(err);
        }
        if (!st && total > UNCOUNTED_FRAMES)
                st = memory_reserve(&l.memory, total * LOCATION_FRAME_BYTES, err);
        if (!st) {
                l.frames = calloc_huge(total + 1, sizeof *l.frames);
                l.lines = calloc_huge(total + 1, sizeof *l.lines);
                l.start_lines = calloc_huge(total + 1, sizeof *l.start_lines);
                if (!l.frames || !l.lines || !l.start_lines)
                        st = error_no_memory(err);
        }
        for (size_t i = 0; !st && i < stacks->location_count; i++) {
                assert(l.first[i] < l.end[i] && l.end[i] <= total);
                if (l.first[i] < done)
                        continue;
                st = add_location_frames(t, &stacks->locations[i], l.frames + l.first[i], l.lines + l.first[i],
                                         l.start_lines + l.first[i], err);
                done = l.end[i];
        }
        if (st) {
                location_frames_deinit(&l);
                return st;
        }
        *ret = l;
        return ST_OK;
}

void location_frames_deinit(struct location_frames *l)
{
        free(l->first);
        free(l->end);
        free(l->frames);
        free(l->lines);
        free(l->start_lines);
        memory_release(&l->memory);
        *l = (struct location_frames){ 0 };
}
