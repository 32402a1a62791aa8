/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/block.h"

#include "common/hash.h"
#include "symbolizer/block_bits.h"

static enum status broken(struct error *err, uint32_t number, const char *how)
{
        return error_set(err, ST_BAD_DATA, "index block %u %s; index its files again", number, how);
}

static bool widths_hold(const struct block *b)
{
        return b->low_width <= 32 && b->function_width <= 32 && b->file_width <= 32 && b->line_high_width <= 32 &&
               b->site_width <= 16 && b->line_width <= 16 && b->scope_width <= 16 &&
               (b->delta_width == 0 || (b->delta_width >= 2 && b->delta_width <= 4));
}

static bool counts_hold(const struct block *b)
{
        return b->row_count > 0 && b->row_count + b->node_count <= BLOCK_RECORDS_MAX && b->run_count > 0 &&
               b->run_count <= b->row_count && b->scope_count > 0 && b->scope_count <= BLOCK_RECORDS_MAX &&
               b->site_count > 0 && b->high_bits > b->row_count &&
               (b->delta_width ? b->delta_count < b->row_count : b->delta_count == 0);
}

/* The place of each table behind the header; true when they end where the checksum begins. */
static bool place_tables(struct block *b, const uint8_t *p, size_t size)
{
        const struct {
                const uint8_t **table;
                uint64_t bits;
        } tables[] = {
                /* Counts have 16 bits and widths at most 32: nothing wraps. */
                { &b->low, (uint64_t)b->row_count * b->low_width },
                { &b->high, b->high_bits },
                { &b->run_bits, b->row_count },
                { &b->runs, (uint64_t)b->run_count * b->scope_width },
                { &b->delta_bits, b->delta_width ? b->row_count : 0 },
                { &b->deltas, (uint64_t)b->delta_count * b->delta_width },
                { &b->lines, (uint64_t)(b->row_count - b->delta_count) * b->line_width },
                { &b->scope_bits, (uint64_t)b->scope_count + b->node_count + 1 },
                { &b->scope_sites, (uint64_t)b->scope_count * b->site_width },
                { &b->node_bits, (uint64_t)b->node_count + b->scope_count },
                { &b->node_lines, (uint64_t)b->node_count * b->line_width },
                { &b->sites, (uint64_t)b->site_count * (b->function_width + b->file_width + b->line_high_width) },
        };
        uint64_t at = BLOCK_HEADER_BYTES;

        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
                *tables[i].table = p + (at <= size ? at : size);
                at += bits_to_bytes(tables[i].bits);
        }
        return at + BLOCK_CHECKSUM_BYTES == size;
}

enum status block_open(struct block *b, uint32_t number, const void *value, size_t size, struct error *err)
{
        const uint8_t *p = value;

        if (size < BLOCK_HEADER_BYTES + BLOCK_CHECKSUM_BYTES)
                return broken(err, number, "is cut off");
        if ((load_le64(p + size - BLOCK_CHECKSUM_BYTES) ^ number) != hash64(p, size - BLOCK_CHECKSUM_BYTES))
                return broken(err, number, "does not match its checksum");
        return block_open_again(b, number, value, size, err);
}

enum status block_open_again(struct block *b, uint32_t number, const void *value, size_t size, struct error *err)
{
        const uint8_t *p = value;
        struct block r;

        if (size < BLOCK_HEADER_BYTES + BLOCK_CHECKSUM_BYTES)
                return broken(err, number, "is cut off");
        if (p[0] != BLOCK_VERSION)
                return broken(err, number, "has an unknown version");
        r = (struct block){
                .low_width = p[1], .line_width = p[2], .site_width = p[3], .scope_width = p[4],
                .function_width = p[5], .file_width = p[6], .line_high_width = p[7],
                .span = load_le64(p + 8),
                .row_count = load_le16(p + 16), .run_count = load_le16(p + 18), .node_count = load_le16(p + 20),
                .scope_count = load_le16(p + 22), .site_count = load_le16(p + 24), .high_bits = load_le16(p + 26),
                .function_base = load_le32(p + 28), .file_base = load_le32(p + 32), .line_base = load_le32(p + 36),
                .anchor = load_le32(p + 40), .delta_count = load_le16(p + 44), .delta_width = p[46],
        };
        if (!widths_hold(&r) || !counts_hold(&r) || r.span == UINT64_MAX)
                return broken(err, number, "has impossible sizes");
        if (!place_tables(&r, p, size))
                return broken(err, number, "has tables of another size than it");
        *b = r;
        return ST_OK;
}

void block_add_sizes(const struct block *b, struct block_sizes *sizes)
{
        unsigned site_bits = b->function_width + b->file_width + b->line_high_width;

        sizes->starts += (uint64_t)(b->run_bits - b->low);
        sizes->runs += (uint64_t)(b->delta_bits - b->run_bits);
        sizes->lines += (uint64_t)(b->scope_bits - b->delta_bits);
        sizes->scopes += (uint64_t)(b->node_bits - b->scope_bits);
        sizes->nodes += (uint64_t)(b->sites - b->node_bits);
        sizes->sites += bits_to_bytes((uint64_t)b->site_count * site_bits);
        sizes->heads += BLOCK_HEADER_BYTES + BLOCK_CHECKSUM_BYTES;
}
