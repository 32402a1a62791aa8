/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames are processed in slices: several threads hash the names of a slice's frames, which has many cache misses, and
 * then one thread numbers the frames, so that the numbers do not depend on scheduling. Short names are set at the end.
 */
#include "query/engine/location_frames.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/files/file.h"
#include "common/hash/hash_table.h"
#include "common/limits.h"
#include "common/memory/huge_pages.h"
#include "common/threads/work_threads.h"

#define UNCOUNTED_FRAMES 1024  /* up to this many, memory is not charged to the budget */
#define SLICE_FRAMES 262144    /* a slice ends with the location that reaches it */
#define LOCATIONS_AT_ONCE 4096 /* batch of one thread; for fewer a second thread is not worthwhile */

/* ---- one location ---- */

/* Buffer for the name of an unresolved frame. */
struct address_name {
        char text[LIMIT_PATH_BYTES + 32];
};

static uint32_t count_frames(const struct scan_location *l)
{
        return l->frame_count ? l->frame_count : 1;
}

static const char *format_address_name(const struct scan_location *l, struct address_name *name)
{
        const char *base = path_base(l->mapping);

        if (*base)
                snprintf(name->text, sizeof name->text, "0x%" PRIx64 " [%s]", l->address, base);
        else if (l->address)
                snprintf(name->text, sizeof name->text, "0x%" PRIx64, l->address);
        else
                snprintf(name->text, sizeof name->text, "[unknown]");
        return name->text;
}

/* Frame i, counted from the outermost; texts are borrowed from the location or `name`. */
static struct query_frame make_frame(const struct scan_location *l, uint32_t i, struct address_name *name)
{
        struct query_frame f = { .linkage_name = "", .file = "", .mapping = l->mapping, .state = l->state };
        const struct scan_frame *s;

        if (!l->frame_count) {
                f.function = format_address_name(l, name);
                f.kind = FRAME_UNRESOLVED;
                return f;
        }
        s = &l->frames[l->frame_count - 1 - i];
        f.function = *s->function ? s->function : *s->linkage_name ? s->linkage_name : "[no name]";
        f.linkage_name = s->linkage_name;
        f.file = s->file;
        f.kind = l->is_kernel ? FRAME_KERNEL : s->inlined ? FRAME_INLINED : FRAME_NATIVE;
        return f;
}

/* ---- ranges of frames ---- */

/* Locations with this key in common have the same frames in the table. */
struct shared_frames {
        const struct scan_frame *frames;
        uint64_t is_kernel;
};

struct sharing {
        const struct scan_stacks *stacks;
        struct hash_table table; /* locations by shared_frames */
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

/* Find an earlier location with the frames of location i; if none, add i. */
static enum status find_shared_location(struct sharing *s, uint32_t i, uint32_t *ret, bool *found_ret,
                                        struct error *err)
{
        const struct shared_frames key = get_shared_frames(&s->stacks->locations[i]); /* 16 bytes, as an id */
        uint32_t hash = (uint32_t)keyed_hash_id((const uint8_t *)&key);
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
                uint32_t count = count_frames(&stacks->locations[i]), other;
                bool found = false;

                if (stacks->locations[i].frame_count)
                        st = find_shared_location(&sharing, (uint32_t)i, &other, &found, err);
                l->first[i] = found ? l->first[other] : (uint32_t)total;
                l->end[i] = l->first[i] + count;
                total += found ? 0 : count;
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

static enum status allocate_ranges(struct location_frames *l, size_t count, struct error *err)
{
        enum status st = ST_OK;

        if (count > UNCOUNTED_FRAMES)
                st = memory_reserve(&l->memory, (count + 1) * (sizeof *l->first + sizeof *l->end), err);
        if (st)
                return st;
        l->first = calloc_huge(count + 1, sizeof *l->first);
        l->end = calloc_huge(count + 1, sizeof *l->end);
        return l->first && l->end ? ST_OK : error_no_memory(err);
}

static enum status allocate_frames(struct location_frames *l, uint64_t count, struct error *err)
{
        enum status st = ST_OK;

        if (count > UNCOUNTED_FRAMES)
                st = memory_reserve(&l->memory, count * LOCATION_FRAME_BYTES, err);
        if (st)
                return st;
        l->frames = calloc_huge(count + 1, sizeof *l->frames);
        l->lines = calloc_huge(count + 1, sizeof *l->lines);
        l->start_lines = calloc_huge(count + 1, sizeof *l->start_lines);
        return l->frames && l->lines && l->start_lines ? ST_OK : error_no_memory(err);
}

/* ---- slices ---- */

/* Locations with consecutive ranges of frames; of locations that share a range, the first. */
struct frame_slice {
        const struct scan_stacks *stacks;
        const struct location_frames *l;
        uint32_t *locations; /* owned */
        size_t count;
        struct number_key *keys; /* of the frames; owned */
        size_t key_capacity;
        uint32_t first, end;       /* range of its frames in l */
        struct work_ranges ranges; /* of locations */
        struct memory_reservation memory;
};

static void frame_slice_deinit(struct frame_slice *s)
{
        free(s->locations);
        free(s->keys);
        memory_release(&s->memory);
}

static enum status frame_slice_init(struct frame_slice *s, uint64_t frame_count, struct error *err)
{
        size_t count =
                frame_count < SLICE_FRAMES ? frame_count : SLICE_FRAMES; /* each location has at least one frame */
        enum status st = ST_OK;

        if (frame_count > UNCOUNTED_FRAMES)
                st = memory_reserve(&s->memory, count * sizeof *s->locations, err);
        if (st)
                return st;
        s->locations = calloc(count + 1, sizeof *s->locations);
        return s->locations ? ST_OK : error_no_memory(err);
}

static enum status reserve_slice_keys(struct frame_slice *s, struct error *err)
{
        size_t count = s->end - s->first, more = count - s->key_capacity;
        enum status st = ST_OK;
        void *keys;

        if (count <= s->key_capacity)
                return ST_OK;
        if (count > UNCOUNTED_FRAMES)
                st = memory_reserve(&s->memory, more * sizeof *s->keys, err);
        if (st)
                return st;
        keys = reallocarray(s->keys, count, sizeof *s->keys);
        if (!keys)
                return error_no_memory(err);
        s->keys = keys;
        s->key_capacity = count;
        return ST_OK;
}

/* Fill the slice with locations from *next on. @return false: no location is left. */
static bool fill_frame_slice(struct frame_slice *s, size_t *next)
{
        s->first = s->end;
        s->count = 0;
        for (; *next < s->stacks->location_count && s->end - s->first < SLICE_FRAMES; ++*next) {
                if (s->l->first[*next] < s->end)
                        continue;
                assert(s->l->first[*next] == s->end);
                s->locations[s->count++] = (uint32_t)*next;
                s->end = s->l->end[*next];
        }
        return s->count > 0;
}

static enum status hash_slice_names(void *context, struct work_thread *w, struct error *err)
{
        struct frame_slice *s = context;
        struct address_name name;
        size_t i, end;
        enum status st = ST_OK;

        while (!st && take_work_range(&s->ranges, &i, &end)) {
                for (; !st && i < end; i++) {
                        const struct scan_location *l = &s->stacks->locations[s->locations[i]];
                        struct number_key *keys = s->keys + s->l->first[s->locations[i]] - s->first;
                        uint32_t count = count_frames(l);

                        st = work_meter_add(&w->meter, 8 * count, err);
                        for (uint32_t k = 0; !st && k < count; k++) {
                                struct query_frame f = make_frame(l, k, &name);

                                keys[k] = make_frame_key(f.function, f.file);
                        }
                }
        }
        return st;
}

static enum status number_slice_frames(const struct frame_slice *s, struct frame_table *t, struct location_frames *l,
                                       struct error *err)
{
        struct address_name name;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < s->count; i++) {
                const struct scan_location *from = &s->stacks->locations[s->locations[i]];
                uint32_t at = l->first[s->locations[i]], count = count_frames(from);

                for (uint32_t k = 0; !st && k < count; k++, at++) {
                        const struct query_frame f = make_frame(from, k, &name);

                        if (from->frame_count) {
                                const struct scan_frame *frame = &from->frames[from->frame_count - 1 - k];

                                l->lines[at] = frame->line;
                                l->start_lines[at] = frame->start_line;
                        }
                        st = frame_table_find_or_add(t, &f, &s->keys[at - s->first], &l->frames[at], err);
                }
        }
        return st;
}

static enum status add_slices(struct frame_table *t, const struct scan_stacks *stacks, struct location_frames *l,
                              uint64_t frame_count, struct error *err)
{
        _cleanup_(frame_slice_deinit) struct frame_slice s = { .stacks = stacks, .l = l, .memory.use = MEMORY_QUERIES };
        size_t next = 0;
        enum status st = frame_slice_init(&s, frame_count, err);

        while (!st && fill_frame_slice(&s, &next)) {
                s.ranges = (struct work_ranges){ .count = s.count, .step = LOCATIONS_AT_ONCE };
                st = reserve_slice_keys(&s, err);
                if (!st)
                        st = share_work(t->meter, s.count / LOCATIONS_AT_ONCE, hash_slice_names, &s, err);
                if (!st)
                        st = number_slice_frames(&s, t, l, err);
        }
        return st;
}

enum status location_frames_build(struct frame_table *t, const struct scan_stacks *stacks, struct location_frames *ret,
                                  struct error *err)
{
        struct location_frames l = { .memory.use = MEMORY_QUERIES };
        uint32_t first = t->count;
        uint64_t total = 0;
        enum status st = allocate_ranges(&l, stacks->location_count, err);

        t->file = t->mapping = (struct copied_text){ 0 }; /* cached addresses may be of another scan */
        if (!st)
                st = assign_frame_ranges(stacks, &l, &total, err);
        if (!st)
                st = allocate_frames(&l, total, err);
        if (!st)
                st = add_slices(t, stacks, &l, total, err);
        if (!st)
                st = frame_table_set_short_names(t, first, err);
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
