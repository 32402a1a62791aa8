/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/stack_trie.h"

#include <stdlib.h>

#include "common/memory/array.h"
#include "common/memory/buf.h"
#include "common/limits.h"
#include "common/reader.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/stack_builder.h"

/* An ancestor of the next node. */
struct open_node {
        uint64_t children_left;
        size_t text_size; /* of the path that ends with it */
};

struct trie_walk {
        struct stack_builder stacks;
        enum stack_trie_kind kind;
        uint32_t type;
        struct open_node *open;
        size_t depth, capacity;
        struct buf path;
        uint64_t expanded_bytes;
};

static enum status add_trie_sample(struct trie_walk *w, uint64_t value, struct error *err)
{
        struct profile_sample s = { .type = w->type, .value = (int64_t)value };

        if (value > INT64_MAX)
                return error_set(err, ST_BAD_DATA, "a value of the trie is over 63 bits");
        w->expanded_bytes += w->path.size + 1;
        if (w->expanded_bytes > LIMIT_TRIE_TEXT_BYTES)
                return error_set(err, ST_TOO_BIG, "the stacks of the trie are more than %zu bytes as text",
                                 (size_t)LIMIT_TRIE_TEXT_BYTES);
        return stack_builder_add_text(&w->stacks, (const char *)w->path.data, w->path.size, &s, err);
}

/* Close the nodes that have no children left; the path is then that of the next node's parent. */
static void close_trie_nodes(struct trie_walk *w)
{
        while (w->depth && !w->open[w->depth - 1].children_left)
                w->depth--;
        w->path.size = w->depth ? w->open[w->depth - 1].text_size : 0;
}

static enum status read_trie_node(struct trie_walk *w, struct reader *r, struct error *err)
{
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
        w->open[w->depth++] = (struct open_node){ children, w->path.size };
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
        buf_init(&w.path, LIMIT_TRIE_STACK_BYTES);
        st = walk_trie(&w, data, n, type_id, err);
        stack_builder_deinit(&w.stacks);
        buf_deinit(&w.path);
        free(w.open);
        if (st)
                profile_deinit(&p);
        else
                *ret = p;
        return st;
}
