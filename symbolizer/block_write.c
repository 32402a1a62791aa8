/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds blocks range by range. The size a block would have is kept up to
 * date for every choice of line_width, so that it is known exactly, and for
 * the best choice, when the next range no longer fits. What the last range
 * added to the sets is taken back then.
 */
#include "symbolizer/block.h"

#include <assert.h>

#include "common/hash.h"
#include "symbolizer/block_bits.h"

static const uint8_t line_widths[] = { 0, 3, 4, 5, 6, 7, 8, 10 };
#define CHOICES (sizeof line_widths)
#define SET_SLOTS 8192u /* a power of two, over twice BLOCK_RECORDS_MAX */
#define SPAN_MAX ((uint64_t)UINT32_MAX - 1)

static_assert(SET_SLOTS > 2 * BLOCK_RECORDS_MAX, "a set is never full");

struct key4 {
        uint32_t a, b, c, d;
};

/* Open addressing; a slot is in use when its epoch is the set's. The last slot taken can be given back. */
struct set {
        struct {
                struct key4 key;
                uint32_t value, epoch;
        } slots[SET_SLOTS];
        uint32_t count, epoch;
};

struct record {
        struct block_frame frame;
        uint32_t parent; /* number of a node, 0 none */
};

struct undo {
        uint16_t set; /* number of the set; the nodes' is the last */
        uint16_t slot;
};

/* What depends on the choice of line_width. */
struct choice {
        struct set sites, scopes;
        uint32_t run_count;
        uint32_t last_scope; /* of the last row: value in scopes, GAP for a gap */
};

struct extremes {
        struct block_frame min, max;
};

struct block_builder {
        size_t max_bytes;
        uint64_t start, end;                    /* covered so far */
        uint64_t row_start[BLOCK_RECORDS_MAX];
        struct record rows[BLOCK_RECORDS_MAX];  /* a gap has parent UINT32_MAX */
        struct record nodes[BLOCK_RECORDS_MAX];
        uint32_t row_count, node_count;
        struct extremes extremes;
        unsigned best;                          /* choice of line width with the least size */
        uint32_t anchor;
        uint32_t undo_count;
        struct undo undo[(2 * CHOICES + 1) * (BLOCK_FRAMES_MAX + 1)];
        struct set node_set;
        struct choice choices[CHOICES];
        /* Of block_builder_finish(): scopes and nodes in breadth-first order. */
        struct key4 scopes[BLOCK_RECORDS_MAX];
        uint16_t node_scope[BLOCK_RECORDS_MAX];
        uint16_t first_scope[BLOCK_RECORDS_MAX + 1], next_scope[BLOCK_RECORDS_MAX];
        uint16_t first_node[BLOCK_RECORDS_MAX], next_node[BLOCK_RECORDS_MAX];
        uint16_t scope_order[BLOCK_RECORDS_MAX], node_order[BLOCK_RECORDS_MAX];
        uint16_t scope_number[BLOCK_RECORDS_MAX], node_number[BLOCK_RECORDS_MAX + 1];
};

#define GAP UINT32_MAX
#define NONE UINT16_MAX

static uint32_t key_slot(const struct key4 *k)
{
        uint64_t h = ((uint64_t)k->a << 32 | k->b) * 0x9e3779b97f4a7c15;

        h ^= ((uint64_t)k->c << 32 | k->d) * 0xc2b2ae3d27d4eb4f;
        h ^= h >> 32;
        h *= 0x9e3779b97f4a7c15;
        return (uint32_t)(h >> 40) & (SET_SLOTS - 1);
}

/* The slot of a key; *added tells whether it is new. */
static uint32_t set_insert(struct set *s, const struct key4 *k, bool *added)
{
        uint32_t i = key_slot(k);

        for (;; i = (i + 1) & (SET_SLOTS - 1)) {
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

static void set_clear(struct set *s)
{
        s->count = 0;
        if (++s->epoch == 0) {
                memset(s->slots, 0, sizeof s->slots);
                s->epoch = 1;
        }
}

static void builder_clear(struct block_builder *b)
{
        set_clear(&b->node_set);
        for (unsigned i = 0; i < CHOICES; i++) {
                set_clear(&b->choices[i].sites);
                set_clear(&b->choices[i].scopes);
                b->choices[i].run_count = 0;
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
        builder_clear(b);
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

static struct key4 site_key(const struct block_frame *f, unsigned line_width)
{
        return (struct key4){ f->function, f->file, f->line >> line_width, 0 };
}

static struct key4 scope_key(const struct record *r, unsigned line_width)
{
        return (struct key4){ r->frame.function, r->frame.file, r->frame.line >> line_width, r->parent };
}

/* Add to the set of a number; the slot it takes is given back when the range does not fit. */
static uint32_t add_to_set(struct block_builder *b, struct set *s, unsigned set, const struct key4 *key, bool *added)
{
        uint32_t slot = set_insert(s, key, added);

        if (*added)
                b->undo[b->undo_count++] = (struct undo){ (uint16_t)set, (uint16_t)slot };
        return s->slots[slot].value;
}

static void widen(struct extremes *e, const struct block_frame *f)
{
        e->min.function = f->function < e->min.function ? f->function : e->min.function;
        e->min.file = f->file < e->min.file ? f->file : e->min.file;
        e->min.line = f->line < e->min.line ? f->line : e->min.line;
        e->max.function = f->function > e->max.function ? f->function : e->max.function;
        e->max.file = f->file > e->max.file ? f->file : e->max.file;
        e->max.line = f->line > e->max.line ? f->line : e->max.line;
}

/* The site and the scope of a row or node, for each choice. */
static void add_record(struct block_builder *b, const struct record *r, bool is_row)
{
        for (unsigned i = 0; i < CHOICES; i++) {
                struct choice *c = &b->choices[i];
                struct key4 site = site_key(&r->frame, line_widths[i]), scope = scope_key(r, line_widths[i]);
                bool added;
                uint32_t number = add_to_set(b, &c->scopes, 2 * i, &scope, &added);

                if (added)
                        add_to_set(b, &c->sites, 2 * i + 1, &site, &added);
                if (is_row) {
                        c->run_count += b->row_count == 0 || number != c->last_scope;
                        c->last_scope = number;
                }
        }
        widen(&b->extremes, &r->frame);
}

/* Number of the node (frame, parent), made when it is new. */
static uint32_t add_node(struct block_builder *b, const struct block_frame *f, uint32_t parent)
{
        struct key4 key = { f->function, f->file, f->line, parent };
        bool added;
        uint32_t number = add_to_set(b, &b->node_set, 2 * CHOICES, &key, &added);

        if (added) {
                b->nodes[b->node_count++] = (struct record){ *f, parent };
                add_record(b, &b->nodes[number], false);
        }
        return number + 1;
}

static void take_back(struct block_builder *b)
{
        while (b->undo_count) {
                struct undo u = b->undo[--b->undo_count];
                struct choice *c = &b->choices[u.set / 2 % CHOICES];
                struct set *s = u.set == 2 * CHOICES ? &b->node_set : u.set % 2 ? &c->sites : &c->scopes;

                s->slots[u.slot].epoch = 0;
                s->count--;
        }
}

struct layout {
        unsigned low_width, line_width, site_width, scope_width, function_width, file_width, line_high_width;
        uint32_t high_bits, run_count, scope_count, site_count;
        size_t low, high, run_bits, runs, lines, scope_bits, scope_sites, node_bits, node_lines, sites; /* bytes */
        size_t size;
};

static struct layout layout_of(const struct block_builder *b, unsigned choice)
{
        uint64_t last_start = b->row_start[b->row_count - 1] - b->start;
        const struct choice *c = &b->choices[choice];
        const struct extremes *e = &b->extremes;
        struct layout l = { .line_width = line_widths[choice], .run_count = c->run_count,
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
        l.lines = bits_to_bytes((uint64_t)b->row_count * l.line_width);
        l.scope_bits = bits_to_bytes(l.scope_count + b->node_count + 1);
        l.scope_sites = bits_to_bytes((uint64_t)l.scope_count * l.site_width);
        l.node_bits = bits_to_bytes(b->node_count + l.scope_count);
        l.node_lines = bits_to_bytes((uint64_t)b->node_count * l.line_width);
        l.sites = bits_to_bytes((uint64_t)l.site_count * (l.function_width + l.file_width + l.line_high_width));
        l.size = BLOCK_HEADER_BYTES + l.low + l.high + l.run_bits + l.runs + l.lines + l.scope_bits + l.scope_sites +
                 l.node_bits + l.node_lines + l.sites + BLOCK_CHECKSUM_BYTES;
        return l;
}

static size_t best_size(struct block_builder *b)
{
        size_t best = SIZE_MAX;

        for (unsigned i = 0; i < CHOICES; i++) {
                size_t size = layout_of(b, i).size;

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
                b->rows[b->row_count++] = (struct record){ { 0 }, GAP };
                for (unsigned i = 0; i < CHOICES; i++) {
                        b->choices[i].run_count++;
                        b->choices[i].last_scope = GAP;
                }
        }
        for (uint32_t i = frame_count; i-- > 1;)
                parent = add_node(b, &frames[i], parent);
        b->row_start[b->row_count] = start;
        b->rows[b->row_count] = (struct record){ frames[0], parent };
        add_record(b, &b->rows[b->row_count], true);
        b->row_count++;
}

/* The counts and extremes before a range was added, in case it does not fit. */
struct mark {
        uint32_t row_count, node_count;
        struct extremes extremes;
        unsigned best;
        struct {
                uint32_t run_count, last_scope;
        } choices[CHOICES];
};

static struct mark set_mark(const struct block_builder *b)
{
        struct mark m = { b->row_count, b->node_count, b->extremes, b->best, { { 0 } } };

        for (unsigned i = 0; i < CHOICES; i++) {
                m.choices[i].run_count = b->choices[i].run_count;
                m.choices[i].last_scope = b->choices[i].last_scope;
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
        for (unsigned i = 0; i < CHOICES; i++) {
                b->choices[i].run_count = m->choices[i].run_count;
                b->choices[i].last_scope = m->choices[i].last_scope;
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
        if (best_size(b) > b->max_bytes && mark.row_count > 0) {
                go_back(b, &mark);
                return ST_BUSY;
        }
        b->end = end;
        return ST_OK;
}

/* ---- finishing */

/* Number of a key that is in the set. */
static uint32_t set_value(struct set *s, const struct key4 *key)
{
        bool added;
        uint32_t slot = set_insert(s, key, &added);

        assert(!added);
        return s->slots[slot].value;
}

static void link_children(struct block_builder *b, struct set *scopes, unsigned line_width)
{
        memset(b->first_scope, 0xff, sizeof b->first_scope);
        memset(b->first_node, 0xff, sizeof b->first_node);
        for (uint32_t i = 0; i < SET_SLOTS; i++)
                if (scopes->slots[i].epoch == scopes->epoch)
                        b->scopes[scopes->slots[i].value] = scopes->slots[i].key;
        for (uint32_t i = scopes->count; i-- > 0;) {
                b->next_scope[i] = b->first_scope[b->scopes[i].d];
                b->first_scope[b->scopes[i].d] = (uint16_t)i;
        }
        for (uint32_t i = b->node_count; i-- > 0;) {
                struct key4 key = scope_key(&b->nodes[i], line_width);
                uint32_t scope = set_value(scopes, &key);

                b->node_scope[i] = (uint16_t)scope;
                b->next_node[i] = b->first_node[scope];
                b->first_node[scope] = (uint16_t)i;
        }
}

/* Number scopes and nodes (from 1) so that neither a scope's node nor a node's scope ever decreases. */
static void number_breadth_first(struct block_builder *b, struct set *scopes, unsigned line_width)
{
        uint32_t scope_count = 0, node_count = 0, scope = 0, node = 0;

        link_children(b, scopes, line_width);
        b->node_number[0] = 0;
        for (uint16_t s = b->first_scope[0]; s != NONE; s = b->next_scope[s])
                b->scope_order[scope_count++] = s;
        while (scope < scope_count || node < node_count) {
                for (; scope < scope_count; scope++) {
                        uint16_t s = b->scope_order[scope];

                        b->scope_number[s] = (uint16_t)scope;
                        for (uint16_t n = b->first_node[s]; n != NONE; n = b->next_node[n])
                                b->node_order[node_count++] = n;
                }
                for (; node < node_count; node++) {
                        uint16_t n = b->node_order[node];

                        b->node_number[n + 1] = (uint16_t)(node + 1);
                        for (uint16_t s = b->first_scope[n + 1]; s != NONE; s = b->next_scope[s])
                                b->scope_order[scope_count++] = s;
                }
        }
        assert(scope_count == scopes->count && node_count == b->node_count);
}

/* Bits are ORed into zeroed memory that goes on for eight bytes. */
static void store_bits(uint8_t *p, uint64_t bit, uint64_t value)
{
        uint64_t word = load_le64(p + (bit >> 3)) | value << (bit & 7);

        word = htole64(word);
        memcpy(p + (bit >> 3), &word, sizeof word);
}

static void store_header(const struct block_builder *b, const struct layout *l, uint8_t *p)
{
        const uint16_t counts[] = { htole16((uint16_t)b->row_count), htole16((uint16_t)l->run_count),
                                    htole16((uint16_t)b->node_count), htole16((uint16_t)l->scope_count),
                                    htole16((uint16_t)l->site_count), htole16((uint16_t)l->high_bits) };
        const uint32_t bases[] = { htole32(b->extremes.min.function), htole32(b->extremes.min.file),
                                   htole32(b->extremes.min.line >> l->line_width), htole32(b->anchor) };
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
}

static uint8_t *store_rows(struct block_builder *b, const struct layout *l, struct set *scopes, uint8_t *low)
{
        uint8_t *high = low + l->low, *run_bits = high + l->high, *runs = run_bits + l->run_bits;
        uint8_t *lines = runs + l->runs;
        uint64_t last = UINT64_MAX;
        uint32_t run = 0;

        for (uint32_t i = 0; i < b->row_count; i++) {
                const struct record *r = &b->rows[i];
                uint64_t offset = b->row_start[i] - b->start, scope = 0;
                uint64_t bit = (offset >> l->low_width) + i;

                store_bits(low, (uint64_t)i * l->low_width, offset & low_mask(l->low_width));
                high[bit / 8] |= (uint8_t)(1 << (bit & 7));
                if (r->parent != GAP) {
                        struct key4 key = scope_key(r, l->line_width);

                        scope = b->scope_number[set_value(scopes, &key)] + 1u;
                        store_bits(lines, (uint64_t)i * l->line_width, r->frame.line & low_mask(l->line_width));
                }
                if (scope != last) {
                        run_bits[i / 8] |= (uint8_t)(1 << (i & 7));
                        store_bits(runs, (uint64_t)run++ * l->scope_width, scope);
                        last = scope;
                }
        }
        assert(run == l->run_count);
        return lines + l->lines;
}

static uint8_t *store_scopes(struct block_builder *b, const struct layout *l, struct set *sites, uint8_t *bits)
{
        uint8_t *numbers = bits + l->scope_bits;

        for (uint32_t i = 0; i < l->scope_count; i++) {
                struct key4 key = b->scopes[b->scope_order[i]];
                uint32_t bit = b->node_number[key.d] + i;

                key.d = 0;
                bits[bit / 8] |= (uint8_t)(1 << (bit & 7));
                store_bits(numbers, (uint64_t)i * l->site_width, set_value(sites, &key));
        }
        return numbers + l->scope_sites;
}

static uint8_t *store_nodes(const struct block_builder *b, const struct layout *l, uint8_t *bits)
{
        uint8_t *lines = bits + l->node_bits;

        for (uint32_t i = 0; i < b->node_count; i++) {
                uint16_t node = b->node_order[i];
                uint32_t bit = b->scope_number[b->node_scope[node]] + i;

                bits[bit / 8] |= (uint8_t)(1 << (bit & 7));
                store_bits(lines, (uint64_t)i * l->line_width, b->nodes[node].frame.line & low_mask(l->line_width));
        }
        return lines + l->node_lines;
}

static void store_sites(const struct block_builder *b, const struct layout *l, const struct set *sites, uint8_t *p)
{
        unsigned width = l->function_width + l->file_width + l->line_high_width;
        uint32_t line_base = b->extremes.min.line >> l->line_width;

        for (uint32_t i = 0; i < SET_SLOTS; i++) {
                const struct key4 *k = &sites->slots[i].key;
                uint64_t bit = (uint64_t)sites->slots[i].value * width;

                if (sites->slots[i].epoch != sites->epoch)
                        continue;
                store_bits(p, bit, k->a - b->extremes.min.function);
                store_bits(p, bit + l->function_width, k->b - b->extremes.min.file);
                store_bits(p, bit + l->function_width + l->file_width, k->c - line_base);
        }
}

enum status block_builder_finish(struct block_builder *b, uint32_t number, struct buf *out, struct error *err)
{
        struct layout l = layout_of(b, b->best);
        struct choice *c = &b->choices[b->best];
        uint64_t checksum;
        uint8_t *p, *at;

        assert(b->row_count > 0);
        buf_clear(out);
        p = buf_reserve(out, l.size);
        if (!p)
                return buf_status(out, err, "an index block");
        memset(p, 0, l.size);
        number_breadth_first(b, &c->scopes, l.line_width);
        store_header(b, &l, p);
        at = store_rows(b, &l, &c->scopes, p + BLOCK_HEADER_BYTES);
        at = store_scopes(b, &l, &c->sites, at);
        at = store_nodes(b, &l, at);
        store_sites(b, &l, &c->sites, at);
        checksum = htole64(hash64(p, l.size - BLOCK_CHECKSUM_BYTES) ^ number);
        memcpy(p + l.size - BLOCK_CHECKSUM_BYTES, &checksum, sizeof checksum);
        buf_commit(out, l.size);
        builder_clear(b);
        return ST_OK;
}
