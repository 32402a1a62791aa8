/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/frames.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/threads/work_threads.h"
#include "symbol-index/short_name.h"

#define UNCOUNTED_FRAMES 1024 /* up to this many, memory is not charged to the budget */

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
}

void frame_table_deinit(struct frame_table *t)
{
        number_map_deinit(&t->names);
        free(t->name_frames);
        free(t->items);
        free(t->replaced_by);
        memory_release(&t->memory);
        arena_deinit(&t->arena);
}

struct number_key make_frame_key(const char *function, const char *file)
{
        struct hash128 ha = hash_bytes128(function, strlen(function)), hb = hash_bytes128(file, strlen(file));
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

/* Share the function's text when both names are equal, as in C. */
static enum status copy_linkage_name(struct frame_table *t, const char *name, struct query_frame *f, struct error *err)
{
        f->linkage_name = f->function;
        return strcmp(name, f->function) == 0 ? ST_OK : copy_frame_text(t, name, &f->linkage_name, err);
}

/* Make room for one more frame and its name; names are at most as many and grow in the same steps. */
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

/* Find the frame with that name and kind. False if none; *ret is then the last frame with that name. */
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
        f->short_name = f->function;
        if (!st)
                st = copy_repeated_text(t, &t->file, from->file, &f->file, err);
        if (!st)
                st = copy_repeated_text(t, &t->mapping, from->mapping, &f->mapping, err);
        return st;
}

enum status frame_table_find_or_add(struct frame_table *t, const struct query_frame *frame,
                                    const struct number_key *key, uint32_t *ret, struct error *err)
{
        struct query_frame *f;
        uint32_t name;
        bool fresh = false;
        enum status st = work_meter_add(t->meter, 16, err);

        if (!st)
                st = reserve_frame(t, err);
        if (!st && !array_reserve(&t->name_frames, &t->name_capacity, t->names.count))
                st = error_no_memory(err);
        if (!st)
                st = number_map_get(&t->names, key, &name, &fresh, err);
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
        const struct number_key key = make_frame_key(text, "");

        return frame_table_find_or_add(t, &f, &key, ret, err);
}

/* ---- short names ---- */

#define FRAMES_AT_ONCE 1024 /* batch of one thread; for fewer a second thread is not worthwhile */

struct short_naming {
        struct frame_table *t;
        uint32_t first;
        struct work_ranges ranges; /* of the frames from `first` on */
        pthread_mutex_t lock;      /* protects the table's arena */
};

/* Unresolved frames and labels keep their name. */
static enum status set_short_name(struct query_frame *f, struct arena *a, struct buf *scratch, struct error *err)
{
        const char *text;

        if (f->kind == FRAME_UNRESOLVED || f->kind == FRAME_LABEL)
                return ST_OK;
        text = symbol_short_name(f->function, f->linkage_name, scratch);
        if (text == f->function)
                return ST_OK;
        text = arena_strndup(a, text, strlen(text));
        if (!text)
                return arena_error(a, err, "the frames");
        f->short_name = text;
        return ST_OK;
}

static enum status set_range_names(void *context, struct work_thread *w, struct error *err)
{
        struct short_naming *n = context;
        struct arena *all = &n->t->arena;
        _cleanup_arena_ struct arena mine;
        _cleanup_buf_ struct buf scratch;
        size_t i, end;
        enum status st = ST_OK;

        buf_init(&scratch, LIMIT_NAME_BYTES + 1);
        pthread_mutex_lock(&n->lock);
        arena_init_budget(&mine, all->max - all->used, MEMORY_QUERIES);
        pthread_mutex_unlock(&n->lock);
        while (!st && take_work_range(&n->ranges, &i, &end)) {
                for (; !st && i < end; i++) {
                        st = work_meter_add(&w->meter, 16, err);
                        if (!st)
                                st = set_short_name(&n->t->items[n->first + i], &mine, &scratch, err);
                }
        }
        pthread_mutex_lock(&n->lock);
        if (!st && !arena_absorb(all, &mine)) {
                all->failed = ST_TOO_BIG;
                st = arena_error(all, err, "the frames");
        }
        pthread_mutex_unlock(&n->lock);
        return st;
}

enum status frame_table_set_short_names(struct frame_table *t, uint32_t first, struct error *err)
{
        struct short_naming n = { .t = t,
                                  .first = first,
                                  .ranges = { .count = t->count - first, .step = FRAMES_AT_ONCE } };
        enum status st;

        assert(first <= t->count);
        pthread_mutex_init(&n.lock, NULL);
        st = share_work(t->meter, n.ranges.count / FRAMES_AT_ONCE, set_range_names, &n, err);
        pthread_mutex_destroy(&n.lock);
        return st;
}
