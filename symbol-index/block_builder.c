/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds blocks range by range. The counts that determine a block's size are maintained for every choice of line_width,
 * so that the exact size is known after each range; a range that does not fit is rolled back.
 */
#include "symbol-index/block.h"

#include <stdlib.h>
#include <assert.h>
#include <string.h>

#include "common/debug_check.h"
#include "common/hash.h"
#include "symbol-index/block_bits.h"

/* ---- data structures ---- */

#define BLOCK_CHOICES 8 /* candidates for line_width */
#define BLOCK_DELTAS 3  /* widths of differences: 2 to 4 */
#define BLOCK_DELTA_LEAST 2
#define BLOCK_SET_SLOTS 8192u /* a power of two, more than twice BLOCK_RECORDS_MAX */

/* A scope or node: site, line, parent; a site: function, file, start line. */
struct block_key3 {
        uint32_t a, b, c;
};

/* Open addressing; a slot is in use if its epoch is the set's. The last insertion can be undone. */
struct block_set {
        struct {
                struct block_key3 key;
                uint32_t value, epoch;
        } slots[BLOCK_SET_SLOTS];
        uint32_t count, epoch;
};

struct block_record {
        uint32_t site; /* number in the set of sites */
        uint32_t line;
        uint32_t parent; /* number of a node; 0: none */
};

struct block_undo {
        uint16_t set; /* scopes of this choice, SET_OF_NODES or SET_OF_SITES */
        uint16_t slot;
};

enum { SET_OF_NODES = BLOCK_CHOICES, SET_OF_SITES, BLOCK_SETS };

/* Counts for one choice of line_width. */
struct block_choice {
        struct block_set scopes;
        uint32_t run_count;
        uint32_t delta_counts[BLOCK_DELTAS]; /* rows whose line can be a difference, for each of these widths */
        uint32_t last_scope;                 /* scope of the last row; BLOCK_GAP for a gap */
        int64_t least, most;                 /* high bits of lines relative to the declaration; least > most: none */
};

struct block_extremes {
        struct block_frame min, max; /* for start lines: of the known ones */
};

struct block_builder {
        size_t max_bytes;
        uint64_t start, end; /* covered so far */
        uint64_t row_start[BLOCK_RECORDS_MAX];
        struct block_record rows[BLOCK_RECORDS_MAX]; /* a gap has parent UINT32_MAX */
        struct block_record nodes[BLOCK_RECORDS_MAX];
        uint32_t row_count, node_count;
        struct block_extremes extremes;
        unsigned best; /* the line width with the smallest size */
        uint32_t anchor;
        uint32_t undo_count;
        struct block_undo undo[BLOCK_SETS * (BLOCK_FRAMES_MAX + 1)];
        struct block_set node_set, site_set;
        struct block_choice choices[BLOCK_CHOICES];
        /* For block_builder_finish(): scopes and nodes in breadth-first order. */
        struct block_key3 scopes[BLOCK_RECORDS_MAX], sites[BLOCK_RECORDS_MAX];
        uint16_t node_scope[BLOCK_RECORDS_MAX];
        uint16_t first_scope[BLOCK_RECORDS_MAX + 1], next_scope[BLOCK_RECORDS_MAX];
        uint16_t first_node[BLOCK_RECORDS_MAX], next_node[BLOCK_RECORDS_MAX];
        uint16_t scope_order[BLOCK_RECORDS_MAX], node_order[BLOCK_RECORDS_MAX];
        uint16_t scope_number[BLOCK_RECORDS_MAX], node_number[BLOCK_RECORDS_MAX + 1];
};

#define BLOCK_GAP UINT32_MAX

/* Layout of the block with one choice of line_width. */
struct block_layout {
        unsigned low_width, line_width, site_width, scope_width, function_width, file_width, start_width,
                line_high_width;
        unsigned delta_width;
        bool is_counted_from_start; /* lines count from the line of the declaration */
        uint32_t line_base;
        uint32_t high_bits, run_count, scope_count, site_count, delta_count;
        size_t low, high, run_bits, runs, delta_bits, deltas, lines, scope_bits, scope_sites, node_bits, node_lines,
                sites; /* sizes in bytes */
        size_t size;
};
/** Code for a line as a difference of `width` bits from the previous line of its run; UINT32_MAX if it has none. */
static inline uint32_t block_line_code(uint32_t before, uint32_t line, uint32_t row, unsigned width)
{
        int64_t difference = (int64_t)line - before, below = line_codes_below(width);
        int64_t code = difference + below - (difference > 0);

        /* The first row of each 64 has a whole line, so that readers need not look further back. */
        return row % 64 == 0 || difference == 0 || code < 0 || code >= 1 << width ? UINT32_MAX : (uint32_t)code;
}

static inline struct block_key3 block_scope_key(const struct block_record *r, unsigned line_width)
{
        return (struct block_key3){ r->site, r->line >> line_width, r->parent };
}

/* ---- collecting ranges ---- */

#define SPAN_MAX ((uint64_t)UINT32_MAX - 1)

static const uint8_t line_widths[BLOCK_CHOICES] = { 0, 3, 4, 5, 6, 7, 8, 10 };

static_assert(BLOCK_SET_SLOTS > 2 * BLOCK_RECORDS_MAX, "a set is never full");

static uint32_t hash_block_key(const struct block_key3 *k)
{
        uint64_t h = ((uint64_t)k->a << 32 | k->b) * 0x9e3779b97f4a7c15;

        h ^= k->c * 0xc2b2ae3d27d4eb4f;
        h ^= h >> 32;
        h *= 0x9e3779b97f4a7c15;
        return (uint32_t)(h >> 40) & (BLOCK_SET_SLOTS - 1);
}

static uint32_t block_set_insert(struct block_set *s, const struct block_key3 *k, bool *added)
{
        uint32_t i = hash_block_key(k);

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

static void clear_block_set(struct block_set *s)
{
        s->count = 0;
        if (++s->epoch == 0) {
                memset(s->slots, 0, sizeof s->slots);
                s->epoch = 1;
        }
}

static void block_builder_clear(struct block_builder *b)
{
        clear_block_set(&b->node_set);
        clear_block_set(&b->site_set);
        for (unsigned i = 0; i < BLOCK_CHOICES; i++) {
                clear_block_set(&b->choices[i].scopes);
                b->choices[i].run_count = 0;
                b->choices[i].least = INT64_MAX;
                b->choices[i].most = INT64_MIN;
                memset(b->choices[i].delta_counts, 0, sizeof b->choices[i].delta_counts);
        }
        b->row_count = b->node_count = 0;
        b->extremes.min = (struct block_frame){ UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };
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

bool block_builder_is_empty(const struct block_builder *b)
{
        return b->row_count == 0;
}

uint64_t block_builder_first_address(const struct block_builder *b)
{
        assert(b->row_count > 0);
        return b->start;
}

uint64_t block_builder_last_address(const struct block_builder *b)
{
        assert(b->row_count > 0);
        return b->end - 1;
}

uint32_t block_builder_anchor(const struct block_builder *b)
{
        assert(b->row_count > 0);
        return b->anchor;
}

uint32_t block_compute_anchor(uint64_t length, const struct block_frame *frames, uint32_t frame_count)
{
        uint64_t h = length * 0x9e3779b97f4a7c15;

        for (uint32_t i = 0; i < frame_count; i++) {
                h = (h ^ ((uint64_t)frames[i].function << 32 | frames[i].line)) * 0xc2b2ae3d27d4eb4f;
                h = (h ^ h >> 29 ^ frames[i].file) * 0x9e3779b97f4a7c15;
        }
        return (uint32_t)(h >> 32);
}

/* Insert into set number `set`, recording an undo entry in case the range does not fit. */
static uint32_t add_to_set(struct block_builder *b, struct block_set *s, unsigned set, const struct block_key3 *key,
                           bool *added)
{
        uint32_t slot = block_set_insert(s, key, added);

        if (*added)
                b->undo[b->undo_count++] = (struct block_undo){ (uint16_t)set, (uint16_t)slot };
        return s->slots[slot].value;
}

static void widen_extremes(struct block_extremes *e, const struct block_frame *f)
{
        if (f->start_line) {
                e->min.start_line = f->start_line < e->min.start_line ? f->start_line : e->min.start_line;
                e->max.start_line = f->start_line > e->max.start_line ? f->start_line : e->max.start_line;
        }
        e->min.function = f->function < e->min.function ? f->function : e->min.function;
        e->min.file = f->file < e->min.file ? f->file : e->min.file;
        e->min.line = f->line < e->min.line ? f->line : e->min.line;
        e->max.function = f->function > e->max.function ? f->function : e->max.function;
        e->max.file = f->file > e->max.file ? f->file : e->max.file;
        e->max.line = f->line > e->max.line ? f->line : e->max.line;
}

/* For each width, whether the row's line can be a difference if its run continues. */
static void find_deltas(const struct block_builder *b, const struct block_record *row,
                        uint32_t can[static BLOCK_DELTAS])
{
        uint32_t before = b->row_count ? b->rows[b->row_count - 1].line : 0;

        for (unsigned i = 0; i < BLOCK_DELTAS; i++)
                can[i] = block_line_code(before, row->line, b->row_count, BLOCK_DELTA_LEAST + i) != UINT32_MAX;
}

/* High bits of 0 (usually line 0) do not count from the declaration: they have a separate code. */
static void widen_counted_lines(struct block_choice *c, uint32_t line_high, uint32_t start_high)
{
        int64_t n = (int64_t)line_high - start_high;

        if (!line_high)
                return;
        c->least = n < c->least ? n : c->least;
        c->most = n > c->most ? n : c->most;
}

/* Count the scope of a row or node, for each choice. */
static void add_record(struct block_builder *b, const struct block_record *r, uint32_t start_line, bool is_row)
{
        uint32_t can_be_delta[BLOCK_DELTAS];

        find_deltas(b, r, can_be_delta);
        for (unsigned i = 0; i < BLOCK_CHOICES; i++) {
                struct block_choice *c = &b->choices[i];
                struct block_key3 scope = block_scope_key(r, line_widths[i]);
                bool added;
                uint32_t number = add_to_set(b, &c->scopes, i, &scope, &added);

                if (added)
                        widen_counted_lines(c, scope.b, start_line >> line_widths[i]);
                if (is_row) {
                        if (b->row_count == 0 || number != c->last_scope)
                                c->run_count++;
                        else
                                for (unsigned k = 0; k < BLOCK_DELTAS; k++)
                                        c->delta_counts[k] += can_be_delta[k];
                        c->last_scope = number;
                }
        }
}

static struct block_record make_record(struct block_builder *b, const struct block_frame *f, uint32_t parent)
{
        struct block_key3 site = { f->function, f->file, f->start_line };
        bool added;

        assert(f->start_line <= BLOCK_START_LINE_MAX);
        widen_extremes(&b->extremes, f);
        return (struct block_record){ add_to_set(b, &b->site_set, SET_OF_SITES, &site, &added), f->line, parent };
}

/* The number of the node (frame, parent), which is added if it is new. */
static uint32_t add_block_node(struct block_builder *b, const struct block_frame *f, uint32_t parent)
{
        struct block_record node = make_record(b, f, parent);
        struct block_key3 key = block_scope_key(&node, 0);
        bool added;
        uint32_t number = add_to_set(b, &b->node_set, SET_OF_NODES, &key, &added);

        if (added) {
                b->nodes[b->node_count++] = node;
                add_record(b, &b->nodes[number], f->start_line, false);
        }
        return number + 1;
}

static void undo_insertions(struct block_builder *b)
{
        while (b->undo_count) {
                struct block_undo u = b->undo[--b->undo_count];
                struct block_set *s = u.set == SET_OF_NODES   ? &b->node_set
                                      : u.set == SET_OF_SITES ? &b->site_set
                                                              : &b->choices[u.set].scopes;

                s->slots[u.slot].epoch = 0;
                s->count--;
        }
}

/* Store lines as differences if that is smaller. */
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

/* Count lines from declarations if that is smaller. */
static void choose_line_base(struct block_layout *l, const struct block_choice *c, const struct block_extremes *e)
{
        unsigned width = c->least > c->most ? 0 : bit_width((uint64_t)(c->most - c->least) + 1);

        l->line_base = e->min.line >> l->line_width;
        l->line_high_width = bit_width((e->max.line >> l->line_width) - l->line_base);
        if (width >= l->line_high_width)
                return;
        l->is_counted_from_start = true;
        l->line_base = (uint32_t)(c->least - 1); /* modulo 2^32 */
        l->line_high_width = width;
}

static struct block_layout block_compute_layout(const struct block_builder *b, unsigned choice)
{
        uint64_t last_start = b->row_start[b->row_count - 1] - b->start;
        const struct block_choice *c = &b->choices[choice];
        const struct block_extremes *e = &b->extremes;
        struct block_layout l = { .line_width = line_widths[choice],
                                  .run_count = c->run_count,
                                  .scope_count = c->scopes.count,
                                  .site_count = b->site_set.count };
        unsigned ratio_width = bit_width(last_start / b->row_count);

        l.low_width = ratio_width ? ratio_width - 1 : 0;
        l.high_bits = b->row_count + (uint32_t)(last_start >> l.low_width) + 1;
        l.scope_width = bit_width(l.scope_count);
        l.site_width = bit_width(l.site_count - 1);
        l.function_width = bit_width(e->max.function - e->min.function);
        l.file_width = bit_width(e->max.file - e->min.file);
        l.start_width = e->max.start_line ? bit_width(e->max.start_line - e->min.start_line + 1) : 0;
        choose_line_base(&l, c, e);
        l.low = bits_to_bytes((uint64_t)b->row_count * l.low_width);
        l.high = bits_to_bytes(l.high_bits);
        l.run_bits = bits_to_bytes(b->row_count);
        l.runs = bits_to_bytes((uint64_t)l.run_count * l.scope_width);
        choose_delta(&l, c, b->row_count);
        l.scope_bits = bits_to_bytes(l.scope_count + b->node_count + 1);
        l.scope_sites = bits_to_bytes((uint64_t)l.scope_count * (l.site_width + l.line_high_width));
        l.node_bits = bits_to_bytes(b->node_count + l.scope_count);
        l.node_lines = bits_to_bytes((uint64_t)b->node_count * l.line_width);
        l.sites = bits_to_bytes((uint64_t)l.site_count * (l.function_width + l.file_width + l.start_width));
        l.size = BLOCK_HEADER_BYTES + l.low + l.high + l.run_bits + l.runs + l.delta_bits + l.deltas + l.lines +
                 l.scope_bits + l.scope_sites + l.node_bits + l.node_lines + l.sites + BLOCK_CHECKSUM_BYTES;
        return l;
}

static size_t block_builder_choose_line_width(struct block_builder *b)
{
        size_t best = SIZE_MAX;

        for (unsigned i = 0; i < BLOCK_CHOICES; i++) {
                size_t size = block_compute_layout(b, i).size;

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
                b->rows[b->row_count++] = (struct block_record){ 0, 0, BLOCK_GAP };
                for (unsigned i = 0; i < BLOCK_CHOICES; i++) {
                        b->choices[i].run_count++;
                        b->choices[i].last_scope = BLOCK_GAP;
                }
        }
        for (uint32_t i = frame_count; i-- > 1;)
                parent = add_block_node(b, &frames[i], parent);
        b->row_start[b->row_count] = start;
        b->rows[b->row_count] = make_record(b, &frames[0], parent);
        add_record(b, &b->rows[b->row_count], frames[0].start_line, true);
        b->row_count++;
}

/* Builder state before a range was added, restored if the range does not fit. */
struct builder_state {
        uint32_t row_count, node_count;
        struct block_extremes extremes;
        unsigned best;
        struct {
                uint32_t run_count, last_scope, delta_counts[BLOCK_DELTAS];
                int64_t least, most;
        } choices[BLOCK_CHOICES];
};

static struct builder_state save_builder_state(const struct block_builder *b)
{
        struct builder_state m = { b->row_count, b->node_count, b->extremes, b->best, { { 0, 0, { 0 }, 0, 0 } } };

        for (unsigned i = 0; i < BLOCK_CHOICES; i++) {
                m.choices[i].run_count = b->choices[i].run_count;
                m.choices[i].last_scope = b->choices[i].last_scope;
                m.choices[i].least = b->choices[i].least;
                m.choices[i].most = b->choices[i].most;
                memcpy(m.choices[i].delta_counts, b->choices[i].delta_counts, sizeof m.choices[i].delta_counts);
        }
        return m;
}

static void restore_builder_state(struct block_builder *b, const struct builder_state *m)
{
        undo_insertions(b);
        b->row_count = m->row_count;
        b->node_count = m->node_count;
        b->extremes = m->extremes;
        b->best = m->best;
        for (unsigned i = 0; i < BLOCK_CHOICES; i++) {
                b->choices[i].run_count = m->choices[i].run_count;
                b->choices[i].last_scope = m->choices[i].last_scope;
                b->choices[i].least = m->choices[i].least;
                b->choices[i].most = m->choices[i].most;
                memcpy(b->choices[i].delta_counts, m->choices[i].delta_counts, sizeof b->choices[i].delta_counts);
        }
}

enum status block_builder_add(struct block_builder *b, uint64_t start, uint64_t end, const struct block_frame *frames,
                              uint32_t frame_count, struct error *err)
{
        struct builder_state builder_state = save_builder_state(b);

        assert(start < end && frame_count > 0 && (b->row_count == 0 || start >= b->end));
        if (frame_count > BLOCK_FRAMES_MAX)
                return error_set(err, ST_TOO_BIG, "a chain of %u frames at 0x%llx is longer than %u", frame_count,
                                 (unsigned long long)start, BLOCK_FRAMES_MAX);
        if (b->row_count &&
            (b->row_count + b->node_count + 2 + frame_count > BLOCK_RECORDS_MAX || start - b->start > SPAN_MAX))
                return ST_BUSY;
        if (b->row_count == 0) {
                b->start = start;
                b->anchor = block_compute_anchor(end - start, frames, frame_count);
        }
        b->undo_count = 0;
        add_rows(b, start, frames, frame_count);
        /* The other choices are computed only if the previous best does not fit. */
        if (builder_state.row_count > 0 && block_compute_layout(b, b->best).size > b->max_bytes &&
            block_builder_choose_line_width(b) > b->max_bytes) {
                restore_builder_state(b, &builder_state);
                return ST_BUSY;
        }
        b->end = end;
        return ST_OK;
}

/* ---- writing the block ---- */

/* Numbers the scopes and nodes and writes the tables. */

#define NO_CHILD UINT16_MAX

/* The number of a key, which is in the set. */
static uint32_t find_set_value(struct block_set *s, const struct block_key3 *key)
{
        bool added;
        uint32_t slot = block_set_insert(s, key, &added);

        assert(!added);
        return s->slots[slot].value;
}

static void link_children(struct block_builder *b, struct block_set *scopes, unsigned line_width)
{
        memset(b->first_scope, 0xff, sizeof b->first_scope);
        memset(b->first_node, 0xff, sizeof b->first_node);
        for (uint32_t i = 0; i < BLOCK_SET_SLOTS; i++)
                if (scopes->slots[i].epoch == scopes->epoch)
                        b->scopes[scopes->slots[i].value] = scopes->slots[i].key;
        for (uint32_t i = 0; i < BLOCK_SET_SLOTS; i++)
                if (b->site_set.slots[i].epoch == b->site_set.epoch)
                        b->sites[b->site_set.slots[i].value] = b->site_set.slots[i].key;
        for (uint32_t i = scopes->count; i-- > 0;) {
                b->next_scope[i] = b->first_scope[b->scopes[i].c];
                b->first_scope[b->scopes[i].c] = (uint16_t)i;
        }
        for (uint32_t i = b->node_count; i-- > 0;) {
                struct block_key3 key = block_scope_key(&b->nodes[i], line_width);
                uint32_t scope = find_set_value(scopes, &key);

                b->node_scope[i] = (uint16_t)scope;
                b->next_node[i] = b->first_node[scope];
                b->first_node[scope] = (uint16_t)i;
        }
}

/* Number scopes and nodes (from 1) so that the node of scopes and the scope of nodes never decrease. */
static void number_breadth_first(struct block_builder *b, struct block_set *scopes, unsigned line_width)
{
        uint32_t scope_count = 0, node_count = 0, scope = 0, node = 0;

        link_children(b, scopes, line_width);
        b->node_number[0] = 0;
        for (uint16_t s = b->first_scope[0]; s != NO_CHILD; s = b->next_scope[s])
                b->scope_order[scope_count++] = s;
        while (scope < scope_count || node < node_count) {
                for (; scope < scope_count; scope++) {
                        uint16_t s = b->scope_order[scope];

                        b->scope_number[s] = (uint16_t)scope;
                        for (uint16_t n = b->first_node[s]; n != NO_CHILD; n = b->next_node[n])
                                b->node_order[node_count++] = n;
                }
                for (; node < node_count; node++) {
                        uint16_t n = b->node_order[node];

                        b->node_number[n + 1] = (uint16_t)(node + 1);
                        for (uint16_t s = b->first_scope[n + 1]; s != NO_CHILD; s = b->next_scope[s])
                                b->scope_order[scope_count++] = s;
                }
        }
        assert(scope_count == scopes->count && node_count == b->node_count);
}

/* Set bits in zeroed memory followed by at least eight more bytes. */
static void store_bits(uint8_t *p, uint64_t bit, uint64_t value)
{
        uint64_t word = load_le64(p + (bit >> 3)) | value << (bit & 7);

        word = htole64(word);
        memcpy(p + (bit >> 3), &word, sizeof word);
}

static void store_header(const struct block_builder *b, const struct block_layout *l, uint8_t *p)
{
        const uint16_t counts[] = { htole16((uint16_t)b->row_count),  htole16((uint16_t)l->run_count),
                                    htole16((uint16_t)b->node_count), htole16((uint16_t)l->scope_count),
                                    htole16((uint16_t)l->site_count), htole16((uint16_t)l->high_bits) };
        const uint32_t bases[] = { htole32(b->extremes.min.function), htole32(b->extremes.min.file),
                                   htole32(l->line_base), htole32(b->anchor) };
        const uint32_t start_base = htole32(l->start_width ? b->extremes.min.start_line : 0);
        const uint16_t delta_count = htole16((uint16_t)l->delta_count);
        uint64_t span = htole64(b->end - 1 - b->start);

        p[0] = BLOCK_VERSION;
        p[1] = (uint8_t)l->low_width;
        p[2] = (uint8_t)l->line_width;
        p[3] = (uint8_t)l->site_width;
        p[4] = (uint8_t)l->scope_width;
        p[5] = (uint8_t)l->function_width;
        p[6] = (uint8_t)l->file_width;
        p[7] = (uint8_t)l->line_high_width;
        memcpy(p + 8, &span, sizeof span);
        memcpy(p + 16, counts, sizeof counts);
        memcpy(p + 28, bases, sizeof bases);
        memcpy(p + 44, &delta_count, sizeof delta_count);
        p[46] = (uint8_t)l->delta_width;
        p[47] = (uint8_t)l->start_width;
        memcpy(p + 48, &start_base, sizeof start_base);
        p[52] = l->is_counted_from_start;
}

/* Write positions for lines: differences and whole lines. */
struct line_places {
        uint8_t *bits, *deltas, *lines;
        uint32_t delta_count, line_count;
};

static void store_line(const struct block_builder *b, const struct block_layout *l, struct line_places *p, uint32_t row,
                       bool run_goes_on)
{
        const struct block_record *r = &b->rows[row];
        uint32_t code = UINT32_MAX;

        if (l->delta_width && run_goes_on && r->parent != BLOCK_GAP)
                code = block_line_code(b->rows[row - 1].line, r->line, row, l->delta_width);
        if (code != UINT32_MAX) {
                p->bits[row / 8] |= (uint8_t)(1 << (row & 7));
                store_bits(p->deltas, (uint64_t)p->delta_count++ * l->delta_width, code);
        } else {
                uint64_t line = r->parent == BLOCK_GAP ? 0 : r->line & low_mask(l->line_width);

                store_bits(p->lines, (uint64_t)p->line_count++ * l->line_width, line);
        }
}

static uint8_t *store_rows(struct block_builder *b, const struct block_layout *l, struct block_set *scopes,
                           uint8_t *low)
{
        uint8_t *high = low + l->low, *run_bits = high + l->high, *runs = run_bits + l->run_bits;
        struct line_places places = { .bits = runs + l->runs };
        uint64_t last = UINT64_MAX;
        uint32_t run = 0;

        places.deltas = places.bits + l->delta_bits;
        places.lines = places.deltas + l->deltas;
        for (uint32_t i = 0; i < b->row_count; i++) {
                const struct block_record *r = &b->rows[i];
                uint64_t offset = b->row_start[i] - b->start, scope = 0;
                uint64_t bit = (offset >> l->low_width) + i;

                store_bits(low, (uint64_t)i * l->low_width, offset & low_mask(l->low_width));
                high[bit / 8] |= (uint8_t)(1 << (bit & 7));
                if (r->parent != BLOCK_GAP) {
                        struct block_key3 key = block_scope_key(r, l->line_width);

                        scope = b->scope_number[find_set_value(scopes, &key)] + 1u;
                }
                store_line(b, l, &places, i, scope == last);
                if (scope != last) {
                        run_bits[i / 8] |= (uint8_t)(1 << (i & 7));
                        store_bits(runs, (uint64_t)run++ * l->scope_width, scope);
                        last = scope;
                }
        }
        assert(run == l->run_count && places.delta_count == l->delta_count);
        return places.lines + l->lines;
}

/* The high bits of a scope's line as stored. */
static uint64_t make_line_code(const struct block_builder *b, const struct block_layout *l,
                               const struct block_key3 *scope)
{
        uint32_t start_high = b->sites[scope->a].c >> l->line_width;

        if (!l->is_counted_from_start)
                return scope->b - l->line_base;
        return scope->b ? scope->b - start_high - l->line_base : 0;
}

static uint8_t *store_scopes(const struct block_builder *b, const struct block_layout *l, uint8_t *bits)
{
        unsigned width = l->site_width + l->line_high_width;
        uint8_t *numbers = bits + l->scope_bits;

        for (uint32_t i = 0; i < l->scope_count; i++) {
                const struct block_key3 *key = &b->scopes[b->scope_order[i]];
                uint32_t bit = b->node_number[key->c] + i;

                bits[bit / 8] |= (uint8_t)(1 << (bit & 7));
                store_bits(numbers, (uint64_t)i * width, key->a | make_line_code(b, l, key) << l->site_width);
        }
        return numbers + l->scope_sites;
}

static uint8_t *store_nodes(const struct block_builder *b, const struct block_layout *l, uint8_t *bits)
{
        uint8_t *lines = bits + l->node_bits;

        for (uint32_t i = 0; i < b->node_count; i++) {
                uint16_t node = b->node_order[i];
                uint32_t bit = b->scope_number[b->node_scope[node]] + i;

                bits[bit / 8] |= (uint8_t)(1 << (bit & 7));
                store_bits(lines, (uint64_t)i * l->line_width, b->nodes[node].line & low_mask(l->line_width));
        }
        return lines + l->node_lines;
}

static void store_sites(const struct block_builder *b, const struct block_layout *l, uint8_t *p)
{
        unsigned width = l->function_width + l->file_width + l->start_width;

        for (uint32_t i = 0; i < l->site_count; i++) {
                const struct block_key3 *k = &b->sites[i];
                uint64_t bit = (uint64_t)i * width;

                store_bits(p, bit, k->a - b->extremes.min.function);
                store_bits(p, bit + l->function_width, k->b - b->extremes.min.file);
                store_bits(p, bit + l->function_width + l->file_width,
                           k->c ? k->c - b->extremes.min.start_line + 1 : 0);
        }
}

/* Debug builds read the block back: same rows, and every chain decodes. */
static void check_written_block(const struct block_builder *b, uint32_t number, const struct buf *out)
{
#if DEBUG_CHECKS
        struct block_rows *rows = malloc(sizeof *rows);
        struct block block;

        assert(block_open(&block, number, out->data, out->size, NULL) == ST_OK);
        assert(block.row_count == b->row_count && block.node_count == b->node_count && block.anchor == b->anchor);
        assert(!rows || block_unpack(&block, rows) == ST_OK);
        for (uint32_t i = 0; rows && i < b->row_count; i++)
                assert(rows->starts[i] == b->row_start[i] - b->start &&
                       (rows->row_scopes[i] == 0) == (b->rows[i].parent == BLOCK_GAP));
        free(rows);
#else
        (void)b;
        (void)number;
        (void)out;
#endif
}

enum status block_builder_finish(struct block_builder *b, uint32_t number, struct buf *out, struct error *err)
{
        struct block_layout l;
        struct block_choice *c;
        uint64_t checksum;
        uint8_t *p, *at;

        assert(b->row_count > 0);
        block_builder_choose_line_width(b);
        l = block_compute_layout(b, b->best);
        c = &b->choices[b->best];
        buf_clear(out);
        p = buf_reserve(out, l.size);
        if (!p)
                return buf_status(out, err, "an index block");
        memset(p, 0, l.size);
        number_breadth_first(b, &c->scopes, l.line_width);
        store_header(b, &l, p);
        at = store_rows(b, &l, &c->scopes, p + BLOCK_HEADER_BYTES);
        at = store_scopes(b, &l, at);
        at = store_nodes(b, &l, at);
        store_sites(b, &l, at);
        checksum = htole64(hash_bytes64(p, l.size - BLOCK_CHECKSUM_BYTES) ^ number);
        memcpy(p + l.size - BLOCK_CHECKSUM_BYTES, &checksum, sizeof checksum);
        buf_commit(out, l.size);
        check_written_block(b, number, out);
        block_builder_clear(b);
        return ST_OK;
}
