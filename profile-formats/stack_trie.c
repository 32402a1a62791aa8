/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/stack_trie.h"

#include <stdlib.h>

#include "common/memory/array.h"
#include "common/memory/buf.h"
#include "common/limits.h"
#include "common/reader.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/stack_builder.h"

/* An ancestor of the next node: the path that ends with it. */
struct open_node {
        uint64_t children_left;
        size_t text_size, frame_start;
        size_t frame_count;
};

/*
 * The path to the current node is the numbers of its complete frames and the text of the last, incomplete one, so that
 * a node costs its own text and not that of its ancestors.
 */
struct trie_walk {
        struct stack_builder stacks;
        enum stack_trie_kind kind;
        uint32_t type;
        struct open_node *open;
        size_t depth, capacity;
        uint32_t *frames; /* root first */
        size_t frame_count, frame_capacity;
        struct buf path;
        size_t frame_start; /* of the incomplete frame, in path */
};

/* Add the frame that ends at `end` of the path, unless it is empty. */
static enum status push_trie_frame(struct trie_walk *w, size_t end, struct error *err)
{
        uint32_t number;
        enum status st;

        if (end == w->frame_start)
                return ST_OK;
        st = stack_builder_add_frame(&w->stacks, (const char *)w->path.data + w->frame_start, end - w->frame_start,
                                     &number, err);
        if (st)
                return st;
        if (!array_reserve(&w->frames, &w->frame_capacity, w->frame_count))
                return error_no_memory(err);
        w->frames[w->frame_count++] = number;
        return ST_OK;
}

/* Add the frames that are complete now that the path has been extended from `from`. */
static enum status push_complete_frames(struct trie_walk *w, size_t from, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = from; !st && i < w->path.size; i++) {
                if (w->path.data[i] != ';')
                        continue;
                st = push_trie_frame(w, i, err);
                w->frame_start = i + 1;
        }
        return st;
}

static enum status add_trie_sample(struct trie_walk *w, uint64_t value, struct error *err)
{
        uint32_t leaf_first[LIMIT_STACK_FRAMES + 1]; /* one more, so that profile_add_stack() detects truncation */
        struct profile_sample s = { .type = w->type, .value = (int64_t)value };
        const size_t complete = w->frame_count;
        uint32_t count = 0, at;
        enum status st;

        if (value > INT64_MAX)
                return error_set(err, ST_BAD_DATA, "a value of the trie is over 63 bits");
        st = push_trie_frame(w, w->path.size, err);
        if (st)
                return st;
        for (; count < w->frame_count && count <= LIMIT_STACK_FRAMES; count++)
                leaf_first[count] = w->frames[w->frame_count - 1 - count];
        w->frame_count = complete;
        st = profile_add_stack(w->stacks.p, leaf_first, count, &s.stack, err);
        return st ? st : profile_add_sample(w->stacks.p, &s, &at, err);
}

/* Close the nodes that have no children left; the path is then that of the next node's parent. */
static void close_trie_nodes(struct trie_walk *w)
{
        struct open_node parent = { 0 };

        while (w->depth && !w->open[w->depth - 1].children_left)
                w->depth--;
        if (w->depth)
                parent = w->open[w->depth - 1];
        w->path.size = parent.text_size;
        w->frame_start = parent.frame_start;
        w->frame_count = parent.frame_count;
}

static enum status read_trie_node(struct trie_walk *w, struct reader *r, struct error *err)
{
        const size_t start = w->path.size;
        uint64_t size, value, children;
        const uint8_t *text;
        enum status st;

        if (!reader_uleb128(r, &size) || !reader_bytes(r, size, &text) || !reader_uleb128(r, &value) ||
            !reader_uleb128(r, &children))
                return reader_error(r, err, "trie");
        if (w->kind == STACK_TREE && w->depth > 1)
                buf_append_u8(&w->path, ';');
        if (w->kind == STACK_TRIE || w->depth)
                buf_append(&w->path, text, (size_t)size);
        st = buf_status(&w->path, err, "a stack of the trie");
        if (!st)
                st = profile_count_work(w->stacks.p, 1 + (w->path.size - start), err);
        if (!st)
                st = push_complete_frames(w, start, err);
        if (!st && value)
                st = add_trie_sample(w, value, err);
        if (st)
                return st;
        if (w->depth)
                w->open[w->depth - 1].children_left--;
        if (w->depth == LIMIT_TRIE_DEPTH)
                return error_set(err, ST_TOO_BIG, "the trie has more than %d nodes inside one another",
                                 LIMIT_TRIE_DEPTH);
        if (!array_reserve(&w->open, &w->capacity, w->depth))
                return error_no_memory(err);
        w->open[w->depth++] = (struct open_node){ children, w->path.size, w->frame_start, w->frame_count };
        close_trie_nodes(w);
        return ST_OK;
}

static enum status walk_trie(struct trie_walk *w, const void *data, size_t n, const char *type_id, struct error *err)
{
        struct reader r;
        enum status st = profile_type_add_id(w->stacks.p, type_id, 0, &w->type, err);

        reader_init(&r, data, n);
        if (st || !n)
                return st;
        do
                st = read_trie_node(w, &r, err);
        while (!st && w->depth);
        if (!st && reader_left(&r))
                st = error_set(err, ST_BAD_DATA, "%zu bytes follow the end of the trie", reader_left(&r));
        return st;
}

enum status stack_trie_decode(const void *data, size_t n, enum stack_trie_kind kind, const char *type_id,
                              struct profile *ret, struct error *err)
{
        struct profile p;
        struct trie_walk w = { .stacks = { .p = &p }, .kind = kind };
        enum status st = profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, err);

        if (st)
                return st;
        profile_limit_work(&p, n);
        buf_init(&w.path, LIMIT_TRIE_STACK_BYTES);
        st = walk_trie(&w, data, n, type_id, err);
        stack_builder_deinit(&w.stacks);
        buf_deinit(&w.path);
        free(w.open);
        free(w.frames);
        p.max_work = 0; /* additions by the caller are not part of the input */
        if (st)
                profile_deinit(&p);
        else
                *ret = p;
        return st;
}
