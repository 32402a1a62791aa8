/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree is an array of nodes in order of creation, so parents precede children; a hash table finds the child of a
 * node by its frame. tree_add() writes each stack as a path of frames, root first, reduces it to the focus, and walks
 * down from the node of its label group. Totals are summed in one pass from the last node to the first.
 *
 * Drawing: weight_bound_build() finds the weight of the least node to show by quickselect, which needs no sort of all
 * nodes; the nodes that remain are sorted by parent and falling weight, and order_descendants() makes that a
 * depth-first order. A parent weighs at least as much as a child unless values are negative; a node whose parent is
 * omitted is not reached, and omitted too. tree_draw() copies the nodes and adds the omitted rest of each as one more
 * child.
 *
 * In the file: nodes; paths and tree_add(); totals; order; drawing.
 * No lock. Work is charged to the meter, memory above UNCOUNTED_NODES nodes to the budget of queries.
 */
#include "query/engine/call_tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"

#define UNCOUNTED_NODES 1024 /* up to this many, memory is not charged to the budget */

enum status tree_init(struct tree *t, struct work_meter *meter, struct error *err)
{
        *t = (struct tree){ .meter = meter, .memory.use = MEMORY_QUERIES };
        if (!array_reserve(&t->nodes, &t->capacity, 0))
                return error_no_memory(err);
        t->nodes[t->count++] = (struct tree_node){ 0 };
        return ST_OK;
}

void tree_deinit(struct tree *t)
{
        free(t->nodes);
        hash_table_deinit(&t->children);
        memory_release(&t->memory);
        *t = (struct tree){ 0 };
}

struct child_key {
        uint32_t parent, frame;
};

static bool is_child(const void *context, uint32_t number, const void *key, size_t size)
{
        const struct tree_node *n = &((const struct tree *)context)->nodes[number];
        const struct child_key *k = key;

        (void)size;
        return n->parent == k->parent && n->frame == k->frame;
}

/* Make room for one more node. While slots grow, the old and the new ones exist at the same time. */
static enum status reserve_node(struct tree *t, struct error *err)
{
        bool grows = t->children.count >= t->children.slot_count / 2;
        size_t capacity = t->count < t->capacity ? t->capacity : t->capacity + t->capacity / 2;
        size_t slots = (size_t)t->children.slot_count * (grows ? 3 : 1);
        enum status st = ST_OK;

        if (t->count < t->capacity && !grows)
                return ST_OK;
        if (t->count >= UNCOUNTED_NODES)
                st = memory_resize(&t->memory, capacity * sizeof *t->nodes + slots * sizeof *t->children.slots, err);
        if (st)
                return st;
        if (!array_reserve(&t->nodes, &t->capacity, t->count))
                return error_no_memory(err);
        st = hash_table_reserve(&t->children, err);
        memory_shrink(&t->memory, t->capacity * sizeof *t->nodes + t->children.slot_count * sizeof *t->children.slots);
        return st;
}

static enum status find_or_add_child(struct tree *t, uint32_t parent, uint32_t frame, uint32_t *ret, struct error *err)
{
        const struct child_key key = { parent, frame };
        uint32_t hash = hash_table_hash(&key, sizeof key);
        enum status st;

        if (hash_table_find(&t->children, hash, is_child, t, &key, sizeof key, ret))
                return ST_OK;
        if (t->count == LIMIT_TREE_NODES)
                return error_set(err, ST_TOO_BIG,
                                 "the merged stacks have more than %u nodes; narrow the time range or the labels",
                                 LIMIT_TREE_NODES);
        st = reserve_node(t, err);
        if (st)
                return st;
        t->nodes[t->count] =
                (struct tree_node){ .frame = frame, .parent = parent, .depth = t->nodes[parent].depth + 1 };
        hash_table_insert(&t->children, hash, t->count);
        *ret = t->count++;
        return ST_OK;
}

/* Assert the invariants: parents precede children, depths, one table entry per node except the root. */
static void check_call_tree(const struct tree *t)
{
        assert(t->count >= 1 && t->count <= t->capacity);
        assert(t->children.count == t->count - 1);
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
        for (uint32_t i = 1; i < t->count; i++) {
                assert(t->nodes[i].parent < i);
                assert(t->nodes[i].depth == t->nodes[t->nodes[i].parent].depth + 1);
        }
#endif
}

/* One stack as frames from the root to the leaf. */
struct frame_path {
        uint32_t *frames;
        int64_t *lines;
        size_t count, capacity;
};

static enum status load_stack_path(struct frame_path *p, const struct location_frames *l,
                                   const struct scan_stacks *stacks, size_t i, struct error *err)
{
        size_t need = 0;

        for (size_t j = stacks->first[i]; j < stacks->first[i + 1]; j++)
                need += l->end[stacks->indexes[j]] - l->first[stacks->indexes[j]];
        if (need > p->capacity) {
                uint32_t *frames = reallocarray(p->frames, need, sizeof *frames);
                int64_t *lines = frames ? reallocarray(p->lines, need, sizeof *lines) : NULL;

                if (frames)
                        p->frames = frames;
                if (!lines)
                        return error_no_memory(err);
                p->lines = lines;
                p->capacity = need;
        }
        p->count = 0;
        for (size_t j = stacks->first[i + 1]; j-- > stacks->first[i];) {
                uint32_t location = stacks->indexes[j];

                for (uint32_t k = l->first[location]; k < l->end[location]; k++) {
                        assert(p->frames && p->lines);
                        p->frames[p->count] = l->frames[k];
                        p->lines[p->count++] = l->lines[k];
                }
        }
        return ST_OK;
}

/* Reduce a path to the focus; false when it does not contain the function. */
static bool apply_tree_focus(struct frame_path *p, const struct tree_focus *focus)
{
        size_t at;

        if (focus->view == TREE_ALL)
                return true;
        if (focus->view == TREE_CALLEES) {
                for (at = 0; at < p->count && !focus->is_target[p->frames[at]]; at++)
                        ;
                if (at == p->count)
                        return false;
                p->count -= at;
                memmove(p->frames, p->frames + at, p->count * sizeof *p->frames);
                memmove(p->lines, p->lines + at, p->count * sizeof *p->lines);
                return true;
        }
        for (at = p->count; at > 0 && !focus->is_target[p->frames[at - 1]]; at--)
                ;
        p->count = at;
        for (size_t i = 0; i < at / 2; i++) {
                uint32_t frame = p->frames[i];
                int64_t line = p->lines[i];

                p->frames[i] = p->frames[at - 1 - i];
                p->frames[at - 1 - i] = frame;
                p->lines[i] = p->lines[at - 1 - i];
                p->lines[at - 1 - i] = line;
        }
        return at > 0;
}

/* The node below which a group's stacks are added; the root if there are no labels. */
static enum status find_or_add_group_node(struct tree *t, const struct tree_roots *roots, uint32_t group, uint32_t *ret,
                                          struct error *err)
{
        size_t labels = roots->groups->labels->count;
        const uint32_t *frames = roots->frames + roots->groups->shown_as[group] * labels;
        uint32_t node = 0;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < labels; i++)
                st = find_or_add_child(t, node, frames[i], &node, err);
        *ret = node;
        return st;
}

static enum status add_frame_path(struct tree *t, const struct frame_path *p, uint32_t node, int64_t value,
                                  unsigned side, struct error *err)
{
        size_t most = LIMIT_TREE_DEPTH - t->nodes[node].depth, count = p->count < most ? p->count : most;
        enum status st = work_meter_add(t->meter, 2 * p->count + 8, err);

        if (st)
                return st;
        for (size_t i = 0; i < count; i++) {
                st = find_or_add_child(t, node, p->frames[i], &node, err);
                if (st)
                        return st;
                if (p->lines[i] && value > t->nodes[node].line_value) {
                        t->nodes[node].line = p->lines[i];
                        t->nodes[node].line_value = value;
                }
        }
        add_saturating(&t->nodes[node].self[side], value);
        return ST_OK;
}

enum status tree_add(struct tree *t, const struct merged_profile *m, unsigned side, const struct tree_focus *focus,
                     const struct tree_roots *roots, struct error *err)
{
        struct frame_path p = { 0 };
        uint32_t node = 0;
        enum status st = ST_OK;

        assert(side < 2);
        assert((focus->view == TREE_ALL) == (focus->is_target == NULL));
        t->is_inverted = focus->view == TREE_CALLERS;
        for (size_t i = 0; !st && i < m->count; i++) {
                const struct merged_entry *e = &m->entries[i];

                st = load_stack_path(&p, &m->locations, m->stacks, e->stack, err);
                if (st || !apply_tree_focus(&p, focus))
                        continue;
                st = find_or_add_group_node(t, roots, e->group, &node, err);
                if (!st)
                        st = add_frame_path(t, &p, node, e->value, side, err);
        }
        free(p.frames);
        free(p.lines);
        return st;
}

void tree_drop_negative(struct tree *t)
{
        for (uint32_t i = 0; i < t->count; i++) {
                for (int side = 0; side < 2; side++) {
                        if (t->nodes[i].self[side] >= 0)
                                continue;
                        add_saturating(&t->negative[side], t->nodes[i].self[side]);
                        t->nodes[i].self[side] = 0;
                }
        }
}

void tree_sum_totals(struct tree *t)
{
        check_call_tree(t);
        for (uint32_t i = t->count; i-- > 0;) {
                for (int side = 0; side < 2; side++) {
                        add_saturating(&t->nodes[i].total[side], t->nodes[i].self[side]);
                        if (i)
                                add_saturating(&t->nodes[t->nodes[i].parent].total[side], t->nodes[i].total[side]);
                }
        }
}

/* ---- order ------------------------------------------------------------------------------- */

static int64_t get_node_weight(const struct tree_node *n)
{
        int64_t w = n->total[0];

        add_saturating(&w, n->total[1]);
        return w;
}

/* By parent, siblings by falling weight; ties by index. */
static int compare_siblings(const void *x, const void *y, void *context)
{
        const struct tree_node *nodes = context;
        uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
        int64_t wa = get_node_weight(&nodes[a]), wb = get_node_weight(&nodes[b]);

        if (nodes[a].parent != nodes[b].parent)
                return nodes[a].parent < nodes[b].parent ? -1 : 1;
        if (wa != wb)
                return wa > wb ? -1 : 1;
        return a < b ? -1 : a > b;
}

/*
 * Quickselect (Hoare): the k-th greatest weight; reorders the weights. Senders control the weights, so pivots are
 * chosen with the secret key of the process; otherwise input that takes quadratic time could be constructed.
 */
static enum status select_kth_greatest(struct work_meter *meter, int64_t *w, uint32_t count, uint32_t k,
                                       struct error *err)
{
        uint32_t low = 0, high = count - 1;

        for (uint64_t pass = 0; low < high; pass++) {
                /* Never the last element: the range might then not shrink. */
                int64_t pivot = w[low + keyed_hash(&pass, sizeof pass) % (high - low)];
                uint32_t i = low, j = high;
                enum status st = work_meter_add(meter, (uint64_t)high - low + 1, err);

                if (st)
                        return st;
                for (;;) {
                        while (w[i] > pivot)
                                i++;
                        while (w[j] < pivot)
                                j--;
                        if (i >= j)
                                break;
                        int64_t swap = w[i];

                        w[i++] = w[j];
                        w[j--] = swap;
                }
                if (k <= j)
                        high = j;
                else
                        low = j + 1;
        }
        return ST_OK;
}

/* Bound of the max_nodes heaviest nodes: all above a weight, and the first `equal` of exactly that weight. */
struct weight_bound {
        int64_t least;
        uint32_t equal;
};

/*
 * An inverted tree is read as a list of functions, its first level, whose nodes are light if there are many. They are
 * chosen first, up to half of all nodes, or more if there are fewer others; in other trees all nodes compete.
 */
struct node_choice {
        const struct tree *t;
        struct weight_bound functions, others;
};

static bool is_chosen_first(const struct tree *t, uint32_t node)
{
        return t->is_inverted && t->nodes[node].depth == 1;
}

/* Bound the nodes that are chosen first, or the others. @param count_ret  the number of nodes within the bound. */
static enum status weight_bound_build(const struct tree *t, bool first, uint32_t max_nodes, struct weight_bound *ret,
                                      uint32_t *count_ret, struct error *err)
{
        _cleanup_free_ int64_t *weights = calloc(t->count, sizeof *weights);
        uint32_t count = 0, above = 0;
        enum status st;

        if (!weights)
                return error_no_memory(err);
        for (uint32_t i = 0; i < t->count; i++)
                if (is_chosen_first(t, i) == first)
                        weights[count++] = get_node_weight(&t->nodes[i]);
        *ret = (struct weight_bound){ INT64_MIN, UINT32_MAX };
        *count_ret = count < max_nodes ? count : max_nodes;
        if (count <= max_nodes)
                return ST_OK;
        *ret = (struct weight_bound){ INT64_MAX, 0 };
        if (!max_nodes)
                return ST_OK;
        st = select_kth_greatest(t->meter, weights, count, max_nodes - 1, err);
        if (st)
                return st;
        ret->least = weights[max_nodes - 1];
        for (uint32_t i = 0; i < count; i++)
                above += weights[i] > ret->least;
        ret->equal = max_nodes - above;
        return ST_OK;
}

static enum status node_choice_make(const struct tree *t, uint32_t max_nodes, struct node_choice *ret,
                                    struct error *err)
{
        const struct weight_bound all = { INT64_MIN, UINT32_MAX };
        uint32_t functions = 0, others = 0, room = max_nodes / 2;
        enum status st = ST_OK;

        *ret = (struct node_choice){ t, all, all };
        if (t->count <= max_nodes)
                return ST_OK;
        if (t->is_inverted) {
                for (uint32_t i = 0; i < t->count; i++)
                        others += !is_chosen_first(t, i);
                room = others < max_nodes - room ? max_nodes - others : room;
                st = weight_bound_build(t, true, room, &ret->functions, &functions, err);
        }
        return st ? st : weight_bound_build(t, false, max_nodes - functions, &ret->others, &others, err);
}

static bool admit_weight(struct weight_bound *b, int64_t w)
{
        return w > b->least || (w == b->least && b->equal > 0 && b->equal--);
}

static bool admit_node(struct node_choice *c, uint32_t node)
{
        return admit_weight(is_chosen_first(c->t, node) ? &c->functions : &c->others,
                            get_node_weight(&c->t->nodes[node]));
}

/* Depth-first order of the nodes, siblings as in `sorted`, which is by parent. */
static uint32_t order_descendants(const struct tree *t, const uint32_t *sorted, uint32_t kept, uint32_t *first,
                                  uint32_t *stack, uint32_t *order)
{
        uint32_t count = 0, depth = 0;

        for (uint32_t i = 0, at = 0; i < t->count; i++) {
                first[i] = at;
                while (at < kept && t->nodes[sorted[at]].parent == i)
                        at++;
                first[i + 1] = at;
        }
        stack[depth++] = 0;
        while (depth) {
                uint32_t node = stack[--depth];

                assert(count < t->count);
                order[count++] = node;
                for (uint32_t i = first[node + 1]; i-- > first[node];)
                        stack[depth++] = sorted[i];
        }
        return count;
}

enum status tree_sort_for_drawing(const struct tree *t, uint32_t max_nodes, struct memory_reservation *memory,
                                  uint32_t **ret, uint32_t *count_ret, struct error *err)
{
        _cleanup_free_ uint32_t *sorted = NULL, *stack = NULL, *order = NULL;
        _cleanup_free_ uint32_t *first = NULL; /* start of each node's children in sorted */
        uint32_t kept = 0;
        size_t held = memory->bytes, weight = t->count > max_nodes ? sizeof(int64_t) : 0;
        struct node_choice choice;
        enum status st = ST_OK;

        if (t->count > UNCOUNTED_NODES)
                st = memory_reserve(memory, t->count * (4 * sizeof *order + weight), err);
        if (st)
                return st;
        sorted = calloc(t->count, sizeof *sorted);
        stack = calloc(t->count, sizeof *stack);
        order = calloc(t->count, sizeof *order);
        first = calloc(t->count + 1u, sizeof *first);
        if (!sorted || !first || !stack || !order)
                return error_no_memory(err);
        st = node_choice_make(t, max_nodes, &choice, err);
        if (st)
                return st;
        for (uint32_t i = 0; i < t->count; i++) /* the root is always kept, and counts */
                if (admit_node(&choice, i) && i)
                        sorted[kept++] = i;
        st = work_meter_sort(t->meter, sorted, kept, sizeof *sorted, compare_siblings, t->nodes, err);
        if (st)
                return st;
        *count_ret = order_descendants(t, sorted, kept, first, stack, order);
        *ret = steal_ptr(order);
        memory_shrink(memory, held + t->count * sizeof *order);
        return ST_OK;
}

/* ---- drawing ----------------------------------------------------------------------------- */

void drawing_deinit(struct drawing *d)
{
        free(d->nodes);
        memory_release(&d->memory);
        *d = (struct drawing){ 0 };
}

/*
 * After all drawn descendants of a node: the rest of its total becomes one more child. A total that saturated may be
 * less than its parts: then there is none.
 */
static void close_drawn_node(struct drawing *d, uint32_t node, const int64_t rest[2])
{
        const int64_t left[2] = { rest[0] > 0 ? rest[0] : 0, rest[1] > 0 ? rest[1] : 0 };

        if (left[0] || left[1])
                d->nodes[d->count++] = (struct drawn_node){ .parent = node,
                                                            .frame = DRAWN_OTHER,
                                                            .depth = d->nodes[node].depth + 1,
                                                            .self = { left[0], left[1] },
                                                            .total = { left[0], left[1] } };
}

enum status tree_draw(const struct tree *t, uint32_t max_nodes, struct drawing *ret, struct error *err)
{
        _cleanup_free_ uint32_t *order = NULL, *position = NULL;
        _cleanup_free_ int64_t(*rest)[2] = NULL; /* by drawn node: its total without self and drawn children */
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_QUERIES };
        _cleanup_drawing_ struct drawing d = { .memory.use = MEMORY_QUERIES };
        uint32_t count, open = 0; /* the drawn node whose descendants are being added */
        enum status st = tree_sort_for_drawing(t, max_nodes, &memory, &order, &count, err);

        if (!st && t->count > UNCOUNTED_NODES)
                st = memory_reserve(&memory, t->count * sizeof *position + 2 * (size_t)count * sizeof *rest, err);
        if (!st && t->count > UNCOUNTED_NODES)
                st = memory_reserve(&d.memory, 2 * (size_t)count * sizeof *d.nodes, err);
        if (st)
                return st;
        position = calloc(t->count, sizeof *position);
        d.nodes = calloc(2 * (size_t)count, sizeof *d.nodes);
        rest = calloc(2 * (size_t)count, sizeof *rest);
        if (!position || !d.nodes || !rest)
                return error_no_memory(err);
        for (uint32_t i = 0; i < count && !work_meter_add(t->meter, 64, NULL); i++) {
                const struct tree_node *n = &t->nodes[order[i]];
                uint32_t parent = i ? position[n->parent] : UINT32_MAX, at;

                for (; i && open != parent; open = d.nodes[open].parent)
                        close_drawn_node(&d, open, rest[open]);
                at = open = position[order[i]] = d.count++;
                d.nodes[at] = (struct drawn_node){ .parent = parent,
                                                   .frame = n->frame,
                                                   .depth = n->depth,
                                                   .self = { n->self[0], n->self[1] },
                                                   .total = { n->total[0], n->total[1] },
                                                   .line = n->line };
                for (int side = 0; side < 2; side++) {
                        rest[at][side] = (int64_t)((uint64_t)n->total[side] - (uint64_t)n->self[side]);
                        if (i)
                                add_saturating(&rest[parent][side], (int64_t)(0 - (uint64_t)n->total[side]));
                }
        }
        for (; open != UINT32_MAX; open = d.nodes[open].parent)
                close_drawn_node(&d, open, rest[open]);
        d.left_out = t->count - count;
        st = t->meter ? work_meter_check(t->meter, err) : ST_OK;
        if (!st) {
                *ret = d;
                d = (struct drawing){ 0 };
        }
        return st;
}
