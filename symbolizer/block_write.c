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
#define SPAN_MAX ((uint64_t)UINT32_MAX)

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
        uint16_t set; /* CHOICES: the nodes' set */
        uint16_t slot;
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
        uint32_t undo_count;
        struct undo undo[(CHOICES + 1) * (BLOCK_FRAMES_MAX + 1)];
        struct set node_set, site_sets[CHOICES];
};

#define GAP UINT32_MAX

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
        for (unsigned i = 0; i < CHOICES; i++)
                set_clear(&b->site_sets[i]);
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

static struct key4 site_key(const struct block_frame *f, unsigned line_width)
{
        return (struct key4){ f->function, f->file, f->line >> line_width, 0 };
}

static void note_undo(struct block_builder *b, unsigned set, uint32_t slot)
{
        b->undo[b->undo_count++] = (struct undo){ (uint16_t)set, (uint16_t)slot };
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

static void add_sites(struct block_builder *b, const struct block_frame *f)
{
        for (unsigned i = 0; i < CHOICES; i++) {
                struct key4 key = site_key(f, line_widths[i]);
                bool added;
                uint32_t slot = set_insert(&b->site_sets[i], &key, &added);

                if (added)
                        note_undo(b, i, slot);
        }
        widen(&b->extremes, f);
}

/* Number of the node (frame, parent), made when it is new. */
static uint32_t add_node(struct block_builder *b, const struct block_frame *f, uint32_t parent)
{
        struct key4 key = { f->function, f->file, f->line, parent };
        bool added;
        uint32_t slot = set_insert(&b->node_set, &key, &added);

        if (added) {
                note_undo(b, CHOICES, slot);
                b->nodes[b->node_count++] = (struct record){ *f, parent };
                add_sites(b, f);
        }
        return b->node_set.slots[slot].value + 1;
}

static void take_back(struct block_builder *b)
{
        while (b->undo_count) {
                struct undo u = b->undo[--b->undo_count];
                struct set *s = u.set == CHOICES ? &b->node_set : &b->site_sets[u.set];

                s->slots[u.slot].epoch = 0;
                s->count--;
        }
}

struct layout {
        unsigned low_width, site_width, line_width, parent_width, function_width, file_width, line_high_width;
        uint32_t high_bits, site_count;
        size_t low_bytes, high_bytes, record_bytes, site_bytes, size;
};

static struct layout layout_of(const struct block_builder *b, unsigned choice)
{
        uint64_t last_start = b->row_start[b->row_count - 1] - b->start;
        const struct extremes *e = &b->extremes;
        struct layout l = { .line_width = line_widths[choice], .site_count = b->site_sets[choice].count };
        unsigned ratio_width = bit_width(last_start / b->row_count);

        l.low_width = ratio_width ? ratio_width - 1 : 0;
        l.high_bits = b->row_count + (uint32_t)(last_start >> l.low_width) + 1;
        l.site_width = bit_width(l.site_count);
        l.parent_width = bit_width(b->node_count);
        l.function_width = bit_width(e->max.function - e->min.function);
        l.file_width = bit_width(e->max.file - e->min.file);
        l.line_high_width = bit_width((e->max.line >> l.line_width) - (e->min.line >> l.line_width));
        l.low_bytes = bits_to_bytes((uint64_t)b->row_count * l.low_width);
        l.high_bytes = bits_to_bytes(l.high_bits);
        l.record_bytes = bits_to_bytes(((uint64_t)b->row_count + b->node_count) *
                                       (l.site_width + l.line_width + l.parent_width));
        l.site_bytes = bits_to_bytes((uint64_t)l.site_count *
                                     (l.function_width + l.file_width + l.line_high_width));
        l.size = BLOCK_HEADER_BYTES + l.low_bytes + l.high_bytes + l.record_bytes + l.site_bytes +
                 BLOCK_CHECKSUM_BYTES;
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
        }
        for (uint32_t i = frame_count; i-- > 1;)
                parent = add_node(b, &frames[i], parent);
        b->row_start[b->row_count] = start;
        b->rows[b->row_count++] = (struct record){ frames[0], parent };
        add_sites(b, &frames[0]);
}

enum status block_builder_add(struct block_builder *b, uint64_t start, uint64_t end, const struct block_frame *frames,
                              uint32_t frame_count, struct error *err)
{
        uint32_t row_count = b->row_count, node_count = b->node_count;
        struct extremes extremes = b->extremes;
        unsigned best = b->best;

        assert(start < end && frame_count > 0 && (row_count == 0 || start >= b->end));
        if (frame_count > BLOCK_FRAMES_MAX)
                return error_set(err, ST_TOO_BIG, "a chain of %u frames at 0x%llx is longer than %u", frame_count,
                                 (unsigned long long)start, BLOCK_FRAMES_MAX);
        if (row_count && (row_count + node_count + 2 + frame_count > BLOCK_RECORDS_MAX ||
                          start - b->start > SPAN_MAX))
                return ST_BUSY;
        if (row_count == 0)
                b->start = start;
        b->undo_count = 0;
        add_rows(b, start, frames, frame_count);
        if (best_size(b) > b->max_bytes && row_count > 0) {
                take_back(b);
                b->row_count = row_count;
                b->node_count = node_count;
                b->extremes = extremes;
                b->best = best;
                return ST_BUSY;
        }
        b->end = end;
        return ST_OK;
}

/* Bits are ORed into zeroed memory that goes on for eight bytes. */
static void store_bits(uint8_t *p, uint64_t bit, uint64_t value)
{
        uint64_t word = load_le64(p + (bit >> 3)) | value << (bit & 7);

        word = htole64(word);
        memcpy(p + (bit >> 3), &word, sizeof word);
}

static uint64_t record_bits(struct set *sites, const struct layout *l, const struct record *r)
{
        struct key4 key = site_key(&r->frame, l->line_width);
        uint64_t site;
        bool added;

        if (r->parent == GAP)
                return 0;
        site = sites->slots[set_insert(sites, &key, &added)].value + 1;
        assert(!added);
        return site | (r->frame.line & low_mask(l->line_width)) << l->site_width |
               (uint64_t)r->parent << (l->site_width + l->line_width);
}

static void store_header(const struct block_builder *b, const struct layout *l, uint8_t *p)
{
        const uint16_t counts[] = { htole16((uint16_t)b->row_count), htole16((uint16_t)b->node_count),
                                    htole16((uint16_t)l->site_count), htole16((uint16_t)l->high_bits) };
        const uint32_t bases[] = { htole32(b->extremes.min.function), htole32(b->extremes.min.file),
                                   htole32(b->extremes.min.line >> l->line_width) };
        uint64_t span = htole64(b->end - 1 - b->start);

        p[0] = BLOCK_VERSION;
        p[1] = (uint8_t)l->low_width;
        p[2] = (uint8_t)l->site_width;
        p[3] = (uint8_t)l->line_width;
        p[4] = (uint8_t)l->parent_width;
        p[5] = (uint8_t)l->function_width;
        p[6] = (uint8_t)l->file_width;
        p[7] = (uint8_t)l->line_high_width;
        memcpy(p + 8, &span, sizeof span);
        memcpy(p + 16, counts, sizeof counts);
        memcpy(p + 24, bases, sizeof bases);
}

static void store_rows(struct block_builder *b, const struct layout *l, uint8_t *low)
{
        uint8_t *high = low + l->low_bytes, *records = high + l->high_bytes;
        unsigned width = l->site_width + l->line_width + l->parent_width;
        struct set *sites = &b->site_sets[b->best];

        for (uint32_t i = 0; i < b->row_count; i++) {
                uint64_t offset = b->row_start[i] - b->start;
                uint64_t bit = (offset >> l->low_width) + i;

                store_bits(low, (uint64_t)i * l->low_width, offset & low_mask(l->low_width));
                high[bit / 8] |= (uint8_t)(1 << (bit & 7));
                store_bits(records, (uint64_t)i * width, record_bits(sites, l, &b->rows[i]));
        }
        for (uint32_t i = 0; i < b->node_count; i++)
                store_bits(records, (uint64_t)(b->row_count + i) * width, record_bits(sites, l, &b->nodes[i]));
}

static void store_sites(const struct block_builder *b, const struct layout *l, uint8_t *p)
{
        const struct set *sites = &b->site_sets[b->best];
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

enum status block_builder_finish(struct block_builder *b, uint32_t object, struct block_key *key_ret, struct buf *out,
                                 struct error *err)
{
        struct layout l = layout_of(b, b->best);
        struct block_key key = block_key_make(object, b->end - 1);
        uint64_t checksum;
        uint8_t *p;

        assert(b->row_count > 0);
        buf_clear(out);
        p = buf_reserve(out, l.size);
        if (!p)
                return buf_status(out, err, "an index block");
        memset(p, 0, l.size);
        store_header(b, &l, p);
        store_rows(b, &l, p + BLOCK_HEADER_BYTES);
        store_sites(b, &l, p + BLOCK_HEADER_BYTES + l.low_bytes + l.high_bytes + l.record_bytes);
        checksum = htole64(hash64(p, l.size - BLOCK_CHECKSUM_BYTES) ^ hash64(key.bytes, sizeof key.bytes));
        memcpy(p + l.size - BLOCK_CHECKSUM_BYTES, &checksum, sizeof checksum);
        buf_commit(out, l.size);
        builder_clear(b);
        *key_ret = key;
        return ST_OK;
}
