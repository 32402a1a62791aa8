/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds blocks range by range. What decides the size a block would have is
 * kept up to date for every choice of line_width, so that it is known exactly,
 * and for the best choice, when the next range no longer fits. What the last
 * range added to the sets is taken back then.
 */
#include "symbolizer/block_builder.h"

#include <assert.h>

#include "symbolizer/block_bits.h"

#define SPAN_MAX ((uint64_t)UINT32_MAX - 1)

static const uint8_t line_widths[BLOCK_CHOICES] = { 0, 3, 4, 5, 6, 7, 8, 10 };

static_assert(BLOCK_SET_SLOTS > 2 * BLOCK_RECORDS_MAX, "a set is never full");

static uint32_t key_slot(const struct block_key4 *k)
{
        uint64_t h = ((uint64_t)k->a << 32 | k->b) * 0x9e3779b97f4a7c15;

        h ^= ((uint64_t)k->c << 32 | k->d) * 0xc2b2ae3d27d4eb4f;
        h ^= h >> 32;
        h *= 0x9e3779b97f4a7c15;
        return (uint32_t)(h >> 40) & (BLOCK_SET_SLOTS - 1);
}

uint32_t block_set_insert(struct block_set *s, const struct block_key4 *k, bool *added)
{
        uint32_t i = key_slot(k);

        for (;; i = (i + 1) & (BLOCK_SET_SLOTS - 1)) {
                if (s->slots[i].epoch != s->epoch) {
                        s->slots[i].key = *k;
                        s->slots[i].epoch = s->epoch;
                        s->slots[i].value = s->count++;
                        *added = true;
                        return i;
                }
                if (memcmp(&s->slots[i].key, k, sizeof *k) == 0) {
                        *added = false;
                        return i;
                }
        }
}

static void set_clear(struct block_set *s)
{
        s->count = 0;
        if (++s->epoch == 0) {
                memset(s->slots, 0, sizeof s->slots);
                s->epoch = 1;
        }
}

void block_builder_clear(struct block_builder *b)
{
        set_clear(&b->node_set);
        for (unsigned i = 0; i < BLOCK_CHOICES; i++) {
                set_clear(&b->choices[i].sites);
                set_clear(&b->choices[i].scopes);
                b->choices[i].run_count = 0;
                memset(b->choices[i].delta_counts, 0, sizeof b->choices[i].delta_counts);
        }
        b->row_count = b->node_count = 0;
        b->extremes.min = (struct block_frame){ UINT32_MAX, UINT32_MAX, UINT32_MAX };
        b->extremes.max = (struct block_frame){ 0 };
}

enum status block_builder_create(size_t max_bytes, struct block_builder **ret, struct error *err)
{
        struct block_builder *b = calloc(1, sizeof *b);

        if (!b)
                return error_no_memory(err);
        b->max_bytes = max_bytes;
        block_builder_clear(b);
        *ret = b;
        return ST_OK;
}

void block_builder_destroy(struct block_builder *b)
{
        free(b);
}

bool block_builder_empty(const struct block_builder *b)
{
        return b->row_count == 0;
}

uint64_t block_builder_first(const struct block_builder *b)
{
        return b->start;
}

uint64_t block_builder_last(const struct block_builder *b)
{
        return b->end - 1;
}

uint32_t block_builder_anchor(const struct block_builder *b)
{
        return b->anchor;
}

uint32_t block_anchor(uint64_t length, const struct block_frame *frames, uint32_t frame_count)
{
        uint64_t h = length * 0x9e3779b97f4a7c15;

        for (uint32_t i = 0; i < frame_count; i++) {
                h = (h ^ ((uint64_t)frames[i].function << 32 | frames[i].line)) * 0xc2b2ae3d27d4eb4f;
                h = (h ^ h >> 29 ^ frames[i].file) * 0x9e3779b97f4a7c15;
        }
        return (uint32_t)(h >> 32);
}

/* Add to the set of a number; the slot it takes is given back when the range does not fit. */
static uint32_t add_to_set(struct block_builder *b, struct block_set *s, unsigned set, const struct block_key4 *key, bool *added)
{
        uint32_t slot = block_set_insert(s, key, added);

        if (*added)
                b->undo[b->undo_count++] = (struct block_undo){ (uint16_t)set, (uint16_t)slot };
        return s->slots[slot].value;
}

static void widen(struct block_extremes *e, const struct block_frame *f)
{
        e->min.function = f->function < e->min.function ? f->function : e->min.function;
        e->min.file = f->file < e->min.file ? f->file : e->min.file;
        e->min.line = f->line < e->min.line ? f->line : e->min.line;
        e->max.function = f->function > e->max.function ? f->function : e->max.function;
        e->max.file = f->file > e->max.file ? f->file : e->max.file;
        e->max.line = f->line > e->max.line ? f->line : e->max.line;
}

/* Whether a row's line can be a difference of each width, should its run go on. */
static void find_deltas(const struct block_builder *b, const struct block_record *row,
                        uint32_t can[static BLOCK_DELTAS])
{
        uint32_t before = b->row_count ? b->rows[b->row_count - 1].frame.line : 0;

        for (unsigned i = 0; i < BLOCK_DELTAS; i++)
                can[i] = block_line_code(before, row->frame.line, b->row_count, BLOCK_DELTA_LEAST + i) != UINT32_MAX;
}

/* The site and the scope of a row or node, for each choice. */
static void add_record(struct block_builder *b, const struct block_record *r, bool is_row)
{
        uint32_t can_be_delta[BLOCK_DELTAS];

        find_deltas(b, r, can_be_delta);
        for (unsigned i = 0; i < BLOCK_CHOICES; i++) {
                struct block_choice *c = &b->choices[i];
                struct block_key4 site = block_site_key(&r->frame, line_widths[i]), scope = block_scope_key(r, line_widths[i]);
                bool added;
                uint32_t number = add_to_set(b, &c->scopes, 2 * i, &scope, &added);

                if (added)
                        add_to_set(b, &c->sites, 2 * i + 1, &site, &added);
                if (is_row) {
                        if (b->row_count == 0 || number != c->last_scope)
                                c->run_count++;
                        else
                                for (unsigned k = 0; k < BLOCK_DELTAS; k++)
                                        c->delta_counts[k] += can_be_delta[k];
                        c->last_scope = number;
                }
        }
        widen(&b->extremes, &r->frame);
}

/* Number of the node (frame, parent), made when it is new. */
static uint32_t add_node(struct block_builder *b, const struct block_frame *f, uint32_t parent)
{
        struct block_key4 key = { f->function, f->file, f->line, parent };
        bool added;
        uint32_t number = add_to_set(b, &b->node_set, 2 * BLOCK_CHOICES, &key, &added);

        if (added) {
                b->nodes[b->node_count++] = (struct block_record){ *f, parent };
                add_record(b, &b->nodes[number], false);
        }
        return number + 1;
}

static void take_back(struct block_builder *b)
{
        while (b->undo_count) {
                struct block_undo u = b->undo[--b->undo_count];
                struct block_choice *c = &b->choices[u.set / 2 % BLOCK_CHOICES];
                struct block_set *s = u.set == 2 * BLOCK_CHOICES ? &b->node_set : u.set % 2 ? &c->sites : &c->scopes;

                s->slots[u.slot].epoch = 0;
                s->count--;
        }
}

/* Lines as differences, where that makes them smaller. */
static void choose_delta(struct block_layout *l, const struct block_choice *c, uint32_t row_count)
{
        uint64_t least = (uint64_t)row_count * l->line_width;

        l->lines = bits_to_bytes(least);
        for (unsigned i = 0; i < BLOCK_DELTAS; i++) {
                uint32_t count = c->delta_counts[i];
                unsigned width = BLOCK_DELTA_LEAST + i;
                uint64_t lines = (uint64_t)(row_count - count) * l->line_width, deltas = (uint64_t)count * width;

                if (row_count + lines + deltas < least) {
                        least = row_count + lines + deltas;
                        l->delta_width = width;
                        l->delta_count = count;
                        l->delta_bits = bits_to_bytes(row_count);
                        l->deltas = bits_to_bytes(deltas);
                        l->lines = bits_to_bytes(lines);
                }
        }
}

struct block_layout block_layout_of(const struct block_builder *b, unsigned choice)
{
        uint64_t last_start = b->row_start[b->row_count - 1] - b->start;
        const struct block_choice *c = &b->choices[choice];
        const struct block_extremes *e = &b->extremes;
        struct block_layout l = { .line_width = line_widths[choice], .run_count = c->run_count,
                            .scope_count = c->scopes.count, .site_count = c->sites.count };
        unsigned ratio_width = bit_width(last_start / b->row_count);

        l.low_width = ratio_width ? ratio_width - 1 : 0;
        l.high_bits = b->row_count + (uint32_t)(last_start >> l.low_width) + 1;
        l.scope_width = bit_width(l.scope_count);
        l.site_width = bit_width(l.site_count - 1);
        l.function_width = bit_width(e->max.function - e->min.function);
        l.file_width = bit_width(e->max.file - e->min.file);
        l.line_high_width = bit_width((e->max.line >> l.line_width) - (e->min.line >> l.line_width));
        l.low = bits_to_bytes((uint64_t)b->row_count * l.low_width);
        l.high = bits_to_bytes(l.high_bits);
        l.run_bits = bits_to_bytes(b->row_count);
        l.runs = bits_to_bytes((uint64_t)l.run_count * l.scope_width);
        choose_delta(&l, c, b->row_count);
        l.scope_bits = bits_to_bytes(l.scope_count + b->node_count + 1);
        l.scope_sites = bits_to_bytes((uint64_t)l.scope_count * l.site_width);
        l.node_bits = bits_to_bytes(b->node_count + l.scope_count);
        l.node_lines = bits_to_bytes((uint64_t)b->node_count * l.line_width);
        l.sites = bits_to_bytes((uint64_t)l.site_count * (l.function_width + l.file_width + l.line_high_width));
        l.size = BLOCK_HEADER_BYTES + l.low + l.high + l.run_bits + l.runs + l.delta_bits + l.deltas +
                 l.lines + l.scope_bits + l.scope_sites +
                 l.node_bits + l.node_lines + l.sites + BLOCK_CHECKSUM_BYTES;
        return l;
}

size_t block_builder_choose(struct block_builder *b)
{
        size_t best = SIZE_MAX;

        for (unsigned i = 0; i < BLOCK_CHOICES; i++) {
                size_t size = block_layout_of(b, i).size;

                if (size < best) {
                        best = size;
                        b->best = i;
                }
        }
        return best;
}

static void add_rows(struct block_builder *b, uint64_t start, const struct block_frame *frames, uint32_t frame_count)
{
        uint32_t parent = 0;

        if (b->row_count && start > b->end) {
                b->row_start[b->row_count] = b->end;
                b->rows[b->row_count++] = (struct block_record){ { 0 }, BLOCK_GAP };
                for (unsigned i = 0; i < BLOCK_CHOICES; i++) {
                        b->choices[i].run_count++;
                        b->choices[i].last_scope = BLOCK_GAP;
                }
        }
        for (uint32_t i = frame_count; i-- > 1;)
                parent = add_node(b, &frames[i], parent);
        b->row_start[b->row_count] = start;
        b->rows[b->row_count] = (struct block_record){ frames[0], parent };
        add_record(b, &b->rows[b->row_count], true);
        b->row_count++;
}

/* The counts and extremes before a range was added, in case it does not fit. */
struct mark {
        uint32_t row_count, node_count;
        struct block_extremes extremes;
        unsigned best;
        struct {
                uint32_t run_count, last_scope, delta_counts[BLOCK_DELTAS];
        } choices[BLOCK_CHOICES];
};

static struct mark set_mark(const struct block_builder *b)
{
        struct mark m = { b->row_count, b->node_count, b->extremes, b->best, { { 0, 0, { 0 } } } };

        for (unsigned i = 0; i < BLOCK_CHOICES; i++) {
                m.choices[i].run_count = b->choices[i].run_count;
                m.choices[i].last_scope = b->choices[i].last_scope;
                memcpy(m.choices[i].delta_counts, b->choices[i].delta_counts, sizeof m.choices[i].delta_counts);
        }
        return m;
}

static void go_back(struct block_builder *b, const struct mark *m)
{
        take_back(b);
        b->row_count = m->row_count;
        b->node_count = m->node_count;
        b->extremes = m->extremes;
        b->best = m->best;
        for (unsigned i = 0; i < BLOCK_CHOICES; i++) {
                b->choices[i].run_count = m->choices[i].run_count;
                b->choices[i].last_scope = m->choices[i].last_scope;
                memcpy(b->choices[i].delta_counts, m->choices[i].delta_counts, sizeof b->choices[i].delta_counts);
        }
}

enum status block_builder_add(struct block_builder *b, uint64_t start, uint64_t end, const struct block_frame *frames,
                              uint32_t frame_count, struct error *err)
{
        struct mark mark = set_mark(b);

        assert(start < end && frame_count > 0 && (b->row_count == 0 || start >= b->end));
        if (frame_count > BLOCK_FRAMES_MAX)
                return error_set(err, ST_TOO_BIG, "a chain of %u frames at 0x%llx is longer than %u", frame_count,
                                 (unsigned long long)start, BLOCK_FRAMES_MAX);
        if (b->row_count && (b->row_count + b->node_count + 2 + frame_count > BLOCK_RECORDS_MAX ||
                             start - b->start > SPAN_MAX))
                return ST_BUSY;
        if (b->row_count == 0) {
                b->start = start;
                b->anchor = block_anchor(end - start, frames, frame_count);
        }
        b->undo_count = 0;
        add_rows(b, start, frames, frame_count);
        /* While the choice that was best fits, whether another one is better now does not matter yet. */
        if (mark.row_count > 0 && block_layout_of(b, b->best).size > b->max_bytes &&
            block_builder_choose(b) > b->max_bytes) {
                go_back(b, &mark);
                return ST_BUSY;
        }
        b->end = end;
        return ST_OK;
}
