/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_BLOCK_BUILDER_H
#define CAIRN_SYMBOLIZER_BLOCK_BUILDER_H

/*
 * The inside of a block builder: gathered in block_write.c, written out in
 * block_store.c.
 */
#include "symbolizer/block.h"

#define BLOCK_CHOICES 8 /* of line_width */
#define BLOCK_DELTAS 3  /* widths of differences: 2 to 4 */
#define BLOCK_DELTA_LEAST 2
#define BLOCK_SET_SLOTS 8192u /* a power of two, over twice BLOCK_RECORDS_MAX */

struct block_key4 {
        uint32_t a, b, c, d;
};

/* Open addressing; a slot is in use when its epoch is the set's. The last slot taken can be given back. */
struct block_set {
        struct {
                struct block_key4 key;
                uint32_t value, epoch;
        } slots[BLOCK_SET_SLOTS];
        uint32_t count, epoch;
};

struct block_record {
        struct block_frame frame;
        uint32_t parent; /* number of a node, 0 none */
};

struct block_undo {
        uint16_t set; /* number of the set; the nodes' is the last */
        uint16_t slot;
};

/* What depends on the choice of line_width. */
struct block_choice {
        struct block_set sites, scopes;
        uint32_t run_count;
        uint32_t delta_counts[BLOCK_DELTAS]; /* rows whose line can be a difference, for each width of these */
        uint32_t last_scope; /* of the last row: value in scopes, BLOCK_GAP for a gap */
};

struct block_extremes {
        struct block_frame min, max;
};

struct block_builder {
        size_t max_bytes;
        uint64_t start, end;                    /* covered so far */
        uint64_t row_start[BLOCK_RECORDS_MAX];
        struct block_record rows[BLOCK_RECORDS_MAX];  /* a gap has parent UINT32_MAX */
        struct block_record nodes[BLOCK_RECORDS_MAX];
        uint32_t row_count, node_count;
        struct block_extremes extremes;
        unsigned best;                          /* choice of line width with the least size */
        uint32_t anchor;
        uint32_t undo_count;
        struct block_undo undo[(2 * BLOCK_CHOICES + 1) * (BLOCK_FRAMES_MAX + 1)];
        struct block_set node_set;
        struct block_choice choices[BLOCK_CHOICES];
        /* Of block_builder_finish(): scopes and nodes in breadth-first order. */
        struct block_key4 scopes[BLOCK_RECORDS_MAX];
        uint16_t node_scope[BLOCK_RECORDS_MAX];
        uint16_t first_scope[BLOCK_RECORDS_MAX + 1], next_scope[BLOCK_RECORDS_MAX];
        uint16_t first_node[BLOCK_RECORDS_MAX], next_node[BLOCK_RECORDS_MAX];
        uint16_t scope_order[BLOCK_RECORDS_MAX], node_order[BLOCK_RECORDS_MAX];
        uint16_t scope_number[BLOCK_RECORDS_MAX], node_number[BLOCK_RECORDS_MAX + 1];
};

#define BLOCK_GAP UINT32_MAX

/* What a block would be with one choice. */
struct block_layout {
        unsigned low_width, line_width, site_width, scope_width, function_width, file_width, line_high_width;
        unsigned delta_width;
        uint32_t high_bits, run_count, scope_count, site_count, delta_count;
        size_t low, high, run_bits, runs, delta_bits, deltas, lines, scope_bits, scope_sites, node_bits, node_lines, sites; /* bytes */
        size_t size;
};
struct block_layout block_layout_of(const struct block_builder *b, unsigned choice);

/** Code of a line that follows another one in its run as a difference of `width` bits; UINT32_MAX when it has none. */
static inline uint32_t block_line_code(uint32_t before, uint32_t line, uint32_t row, unsigned width)
{
        int64_t difference = (int64_t)line - before, below = line_codes_below(width);
        int64_t code = difference + below - (difference > 0);

        /* The first row of each word of the bits is no difference: a reader looks no further back. */
        return row % 64 == 0 || difference == 0 || code < 0 || code >= 1 << width ? UINT32_MAX : (uint32_t)code;
}

/** Make the choice with the least size the best one; returns the size. */
size_t block_builder_choose(struct block_builder *b);

/** The slot of a key; *added tells whether it is new. */
uint32_t block_set_insert(struct block_set *s, const struct block_key4 *k, bool *added);

/** Forget all ranges. */
void block_builder_clear(struct block_builder *b);

static inline struct block_key4 block_site_key(const struct block_frame *f, unsigned line_width)
{
        return (struct block_key4){ f->function, f->file, f->line >> line_width, 0 };
}

static inline struct block_key4 block_scope_key(const struct block_record *r, unsigned line_width)
{
        return (struct block_key4){ r->frame.function, r->frame.file, r->frame.line >> line_width, r->parent };
}

#endif
