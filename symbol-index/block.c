/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/block.h"
#include <assert.h>

#include "common/hash.h"
#include "symbol-index/block_bits.h"

/* ---- open ---- */

static enum status set_block_error(struct error *err, uint32_t number, const char *how)
{
        return error_set(err, ST_BAD_DATA, "index block %u %s; index its files again", number, how);
}

static bool are_widths_valid(const struct block *b)
{
        return b->low_width <= 32 && b->function_width <= 32 && b->file_width <= 32 && b->start_width <= 32 &&
               b->line_high_width <= 32 && b->site_width <= 16 && b->line_width <= 16 && b->scope_width <= 16 &&
               (b->delta_width == 0 || (b->delta_width >= 2 && b->delta_width <= 4));
}

static bool are_counts_valid(const struct block *b)
{
        return b->row_count > 0 && b->row_count + b->node_count <= BLOCK_RECORDS_MAX && b->run_count > 0 &&
               b->run_count <= b->row_count && b->scope_count > 0 && b->scope_count <= BLOCK_RECORDS_MAX &&
               b->site_count > 0 && b->high_bits > b->row_count &&
               (b->delta_width ? b->delta_count < b->row_count : b->delta_count == 0);
}

/* Locate the tables after the header; true when they end at the checksum. */
static bool locate_tables(struct block *b, const uint8_t *p, size_t size)
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
                { &b->scope_sites, (uint64_t)b->scope_count * (b->site_width + b->line_high_width) },
                { &b->node_bits, (uint64_t)b->node_count + b->scope_count },
                { &b->node_lines, (uint64_t)b->node_count * b->line_width },
                { &b->sites, (uint64_t)b->site_count * (b->function_width + b->file_width + b->start_width) },
        };
        uint64_t at = BLOCK_HEADER_BYTES;

        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
                *tables[i].table = p + (at <= size ? at : size);
                at += bits_to_bytes(tables[i].bits);
        }
        return at + BLOCK_CHECKSUM_BYTES == size;
}

/* The invariants that the decoders rely on, in debug builds. */
static void block_check(const struct block *b)
{
        assert(b->row_count > 0 && b->row_count + b->node_count <= BLOCK_RECORDS_MAX);
        assert(b->run_count > 0 && b->run_count <= b->row_count);
        assert(b->scope_count > 0 && b->scope_count <= BLOCK_RECORDS_MAX && b->site_count > 0);
        assert(b->low_width <= 32 && b->line_width <= 16 && b->delta_width <= 4);
        assert(b->low <= b->high && b->high < b->run_bits && b->run_bits < b->runs && b->lines <= b->scope_bits);
        assert(b->scope_bits < b->scope_sites && b->node_bits <= b->node_lines && b->node_lines <= b->sites);
}

enum status block_open(struct block *b, uint32_t number, const void *value, size_t size, struct error *err)
{
        const uint8_t *p = value;

        if (size < BLOCK_HEADER_BYTES + BLOCK_CHECKSUM_BYTES)
                return set_block_error(err, number, "is cut off");
        if ((load_le64(p + size - BLOCK_CHECKSUM_BYTES) ^ number) != hash_bytes64(p, size - BLOCK_CHECKSUM_BYTES))
                return set_block_error(err, number, "does not match its checksum");
        return block_open_verified(b, number, value, size, err);
}

enum status block_open_verified(struct block *b, uint32_t number, const void *value, size_t size, struct error *err)
{
        const uint8_t *p = value;
        struct block r;

        if (size < BLOCK_HEADER_BYTES + BLOCK_CHECKSUM_BYTES)
                return set_block_error(err, number, "is cut off");
        if (p[0] != BLOCK_VERSION)
                return set_block_error(err, number, "has an unknown version");
        r = (struct block){
                .low_width = p[1],
                .line_width = p[2],
                .site_width = p[3],
                .scope_width = p[4],
                .function_width = p[5],
                .file_width = p[6],
                .line_high_width = p[7],
                .span = load_le64(p + 8),
                .row_count = load_le16(p + 16),
                .run_count = load_le16(p + 18),
                .node_count = load_le16(p + 20),
                .scope_count = load_le16(p + 22),
                .site_count = load_le16(p + 24),
                .high_bits = load_le16(p + 26),
                .function_base = load_le32(p + 28),
                .file_base = load_le32(p + 32),
                .line_base = load_le32(p + 36),
                .anchor = load_le32(p + 40),
                .delta_count = load_le16(p + 44),
                .delta_width = p[46],
                .start_width = p[47],
                .start_base = load_le32(p + 48),
        };
        r.is_counted_from_start = p[52] == 1;
        if (p[52] > 1 || !are_widths_valid(&r) || !are_counts_valid(&r) || r.span == UINT64_MAX)
                return set_block_error(err, number, "has impossible sizes");
        if (!locate_tables(&r, p, size))
                return set_block_error(err, number, "has tables that do not match its size");
        block_check(&r);
        *b = r;
        return ST_OK;
}

void block_add_sizes(const struct block *b, struct block_sizes *sizes)
{
        unsigned site_bits = b->function_width + b->file_width + b->start_width;

        sizes->starts += (uint64_t)(b->run_bits - b->low);
        sizes->runs += (uint64_t)(b->delta_bits - b->run_bits);
        sizes->lines += (uint64_t)(b->scope_bits - b->delta_bits);
        sizes->scopes += (uint64_t)(b->node_bits - b->scope_bits);
        sizes->nodes += (uint64_t)(b->sites - b->node_bits);
        sizes->sites += bits_to_bytes((uint64_t)b->site_count * site_bits);
        sizes->heads += BLOCK_HEADER_BYTES + BLOCK_CHECKSUM_BYTES;
}

/* ---- decoding one row ---- */

/* Decodes one row of a block and its chain of scopes and nodes. */

/* -- rank -- */

static BLOCK_BODY void count_ones(struct block_counts *c, const uint8_t *bits, uint32_t bit_count)
{
        uint32_t ones = 0, words = bit_count / 64, w;

        for (w = 0; w < words; w++) {
                c->before[w] = (uint16_t)ones;
                ones += popcount64(load_le64(bits + 8 * (size_t)w));
        }
        if (bit_count % 64)
                c->before[w++] = (uint16_t)ones;
        c->word_count = w;
        c->bit_count = bit_count;
        do
                c->before[w++] = UINT16_MAX;
        while (w % 16);
}

static BLOCK_BODY void cursor_init_rows(struct block_cursor *c, const struct block *b)
{
        c->row = c->bit = 0;
        count_ones(&c->runs, b->run_bits, b->row_count);
        if (b->delta_width)
                count_ones(&c->deltas, b->delta_bits, b->row_count);
}

static BLOCK_BODY void cursor_init(struct block_cursor *c, const struct block *b)
{
        cursor_init_rows(c, b);
        count_ones(&c->scopes, b->scope_bits, b->scope_count + b->node_count + 1);
        count_ones(&c->nodes, b->node_bits, b->node_count + b->scope_count);
}

/* The run of a row, counted from 1. */
static BLOCK_BODY uint32_t find_run(const struct block *b, const struct block_cursor *c, uint32_t row)
{
        uint64_t word = load_le64(b->run_bits + row / 64 * 8);

        return c->runs.before[row / 64] + popcount64(word & low_mask(row % 64 + 1));
}

/* Number of zeros before the one with number `index` (from 0); bit_count if there is no such one. */
static BLOCK_BODY uint32_t read_unary(const uint8_t *bits, const struct block_counts *c, uint32_t index, bool fast)
{
        uint32_t word = 0, at = 0, left;
        uint64_t ones;

        /* The last word with at most `index` ones before it. */
        do {
                uint16_t less = 0;

                for (uint32_t i = 0; i < 16; i++)
                        less = (uint16_t)(less + (c->before[at + i] <= index));
                word += less;
                at += 16;
                if (less < 16)
                        break;
        } while (at < c->word_count);
        word--;
        ones = load_le64(bits + 8 * (size_t)word);
        if (c->bit_count - word * 64 < 64)
                ones &= low_mask(c->bit_count - word * 64);
        left = index + 1 - c->before[word];
        if (popcount64(ones) < left)
                return c->bit_count;
        return word * 64 + select64(ones, left, fast) - index;
}

/* -- rows -- */

static BLOCK_BODY uint64_t read_low_bits(const struct block *b, uint32_t row)
{
        return load_bits(b->low, (uint64_t)row * b->low_width) & low_mask(b->low_width);
}

/* 64 of the high bits; bits beyond the end are 0. */
static BLOCK_BODY uint64_t load_high_word(const struct block *b, uint32_t bit)
{
        uint64_t word = load_le64(b->high + bit / 8);

        return b->high_bits - bit < 64 ? word & low_mask(b->high_bits - bit) : word;
}

/* Move forward to the start of an existing bucket: after the zero that ends the previous bucket. */
static BLOCK_BODY bool enter_bucket(const struct block *b, struct block_cursor *c, uint64_t bucket, bool fast)
{
        uint64_t need = bucket - (c->bit - c->row);
        uint32_t at = c->bit & ~63u;
        uint64_t zeros = ~load_high_word(b, at) & ~low_mask(c->bit & 63);

        for (;;) {
                unsigned count = popcount64(zeros);

                if (count >= need)
                        break;
                need -= count;
                at += 64;
                if (at >= b->high_bits)
                        return false;
                zeros = ~load_high_word(b, at);
        }
        c->bit = at + select64(zeros, (unsigned)need, fast) + 1;
        if (c->bit > b->high_bits || c->bit < bucket)
                return false;
        c->row = c->bit - (uint32_t)bucket;
        return c->row > 0 && c->row <= b->row_count;
}

/* Start of row c->row. */
static BLOCK_BODY bool find_next_start(const struct block *b, const struct block_cursor *c, uint64_t *ret)
{
        uint32_t at = c->bit & ~63u;
        uint64_t ones;

        if (c->bit >= b->high_bits)
                return false;
        ones = load_high_word(b, at) & ~low_mask(c->bit & 63);
        while (!ones) {
                at += 64;
                if (at >= b->high_bits)
                        return false;
                ones = load_high_word(b, at);
        }
        at += (uint32_t)__builtin_ctzll(ones);
        *ret = ((uint64_t)(at - c->row) << b->low_width) | read_low_bits(b, c->row);
        return true;
}

static BLOCK_BODY enum status seek_row(const struct block *b, struct block_cursor *c, uint64_t offset,
                                       uint32_t *row_ret, uint64_t *end_ret, bool fast)
{
        uint64_t bucket = offset >> b->low_width, low = offset & low_mask(b->low_width), start;

        if (bucket >= b->high_bits - b->row_count) {
                c->bit = b->high_bits;
                c->row = b->row_count;
        } else {
                if (bucket > c->bit - c->row && !enter_bucket(b, c, bucket, fast))
                        return ST_BAD_DATA;
                while (c->row < b->row_count && c->bit < b->high_bits && (b->high[c->bit / 8] >> (c->bit & 7) & 1) &&
                       read_low_bits(b, c->row) <= low) {
                        c->row++;
                        c->bit++;
                }
        }
        if (c->row == 0)
                return ST_BAD_DATA;
        if (c->row == b->row_count) {
                *end_ret = b->span + 1;
        } else {
                if (!find_next_start(b, c, &start) || start <= offset)
                        return ST_BAD_DATA;
                *end_ret = start;
        }
        *row_ret = c->row - 1;
        return ST_OK;
}

/* -- frames -- */

/* Low bits of a row's line: the last whole line at or before it in its word, plus the differences from there. */
static BLOCK_BODY bool read_row_line(const struct block *b, const struct block_cursor *c, uint32_t row, uint32_t *ret)
{
        uint32_t word_at = row / 64, whole, deltas, line;
        unsigned below = line_codes_below(b->delta_width);
        uint64_t word, wholes;

        if (!b->delta_width) {
                *ret = (uint32_t)(load_bits(b->lines, (uint64_t)row * b->line_width) & low_mask(b->line_width));
                return true;
        }
        word = load_le64(b->delta_bits + (size_t)word_at * 8);
        wholes = ~word & low_mask(row % 64 + 1);
        if (!wholes)
                return false;
        whole = word_at * 64 + 63 - (uint32_t)__builtin_clzll(wholes);
        deltas = c->deltas.before[word_at] + popcount64(word & low_mask(whole % 64));
        if (deltas > whole || deltas + (row - whole) > b->delta_count ||
            whole - deltas >= b->row_count - b->delta_count)
                return false;
        line = (uint32_t)load_bits(b->lines, (uint64_t)(whole - deltas) * b->line_width);
        for (; whole < row; whole++, deltas++) {
                uint64_t code = load_bits(b->deltas, (uint64_t)deltas * b->delta_width) & low_mask(b->delta_width);

                line += (uint32_t)line_of_code((uint32_t)code, below);
        }
        *ret = line & (uint32_t)low_mask(b->line_width);
        return true;
}

static BLOCK_BODY enum status read_row_scope(const struct block *b, const struct block_cursor *c, uint32_t row,
                                             uint32_t *scope_ret, uint32_t *line_ret)
{
        uint32_t run = find_run(b, c, row), scope;

        if (run == 0 || run > b->run_count)
                return ST_BAD_DATA;
        scope = (uint32_t)(load_bits(b->runs, (uint64_t)(run - 1) * b->scope_width) & low_mask(b->scope_width));
        if (scope > b->scope_count)
                return ST_BAD_DATA;
        *scope_ret = scope;
        return read_row_line(b, c, row, line_ret) ? ST_OK : ST_BAD_DATA;
}

/* Widths and masks of scopes and sites, computed once. */
struct site_fields {
        unsigned scope_bits, site_bits, file_at, start_at;
        uint64_t site_mask, line_mask, function_mask, file_mask, start_mask;
        uint32_t counted_mask; /* for start lines in lines: all bits or none */
};

static BLOCK_BODY struct site_fields get_site_fields(const struct block *b)
{
        unsigned start_at = (unsigned)b->function_width + b->file_width;

        return (struct site_fields){ .scope_bits = (unsigned)b->site_width + b->line_high_width,
                                     .site_bits = start_at + b->start_width,
                                     .file_at = b->function_width,
                                     .start_at = start_at,
                                     .site_mask = low_mask(b->site_width),
                                     .line_mask = low_mask(b->line_high_width),
                                     .function_mask = low_mask(b->function_width),
                                     .file_mask = low_mask(b->file_width),
                                     .start_mask = low_mask(b->start_width),
                                     .counted_mask = b->is_counted_from_start ? UINT32_MAX : 0 };
}

/* The frame of a scope, with the low bits of its line; false if it has none. */
static BLOCK_BODY bool load_scope_frame(const struct block *b, const struct site_fields *f, uint32_t scope,
                                        uint32_t line_low, bool inlined, struct symbol_frame *ret)
{
        uint64_t bits = load_bits(b->scope_sites, (uint64_t)scope * f->scope_bits), function, file, start, bit;
        uint32_t site = (uint32_t)(bits & f->site_mask), code = (uint32_t)(bits >> b->site_width & f->line_mask);
        uint32_t start_line, line;

        if (site >= b->site_count)
                return false;
        bit = (uint64_t)site * f->site_bits;
        function = load_bits(b->sites, bit);
        if (f->site_bits <= 57) {
                file = function >> f->file_at;
                start = function >> f->start_at;
        } else {
                file = load_bits(b->sites, bit + f->file_at);
                start = load_bits(b->sites, bit + f->start_at);
        }
        start &= f->start_mask;
        start_line = (start ? b->start_base + (uint32_t)start - 1 : 0) & BLOCK_START_LINE_MAX;
        line = b->line_base + code + (start_line >> b->line_width & f->counted_mask);
        line = code || !f->counted_mask ? line : 0;
        *ret = (struct symbol_frame){ .function = b->function_base + (uint32_t)(function & f->function_mask),
                                      .file = b->file_base + (uint32_t)(file & f->file_mask),
                                      .line = line << b->line_width | line_low,
                                      .inlined = inlined,
                                      .start_line = start_line & BLOCK_START_LINE_MAX };
        return true;
}

static BLOCK_BODY enum status read_row_frames(const struct block *b, const struct block_cursor *c, uint32_t row,
                                              struct symbol_frame *out, uint32_t *count_ret, bool fast)
{
        const struct site_fields fields = get_site_fields(b);
        uint32_t bound = b->node_count + 1, count = 0, scope, line;

        if (read_row_scope(b, c, row, &scope, &line))
                return ST_BAD_DATA;
        if (scope == 0) {
                *count_ret = 0;
                return ST_OK;
        }
        for (;;) {
                uint32_t parent;

                if (scope > b->scope_count)
                        return ST_BAD_DATA;
                parent = read_unary(b->scope_bits, &c->scopes, scope - 1, fast);
                if (parent >= bound || !load_scope_frame(b, &fields, scope - 1, line, parent != 0, &out[count++]))
                        return ST_BAD_DATA;
                if (parent == 0)
                        break;
                bound = parent;
                line = (uint32_t)(load_bits(b->node_lines, (uint64_t)(parent - 1) * b->line_width) &
                                  low_mask(b->line_width));
                scope = read_unary(b->node_bits, &c->nodes, parent - 1, fast) + 1;
        }
        *count_ret = count;
        return ST_OK;
}

/* -- both variants -- */

BLOCK_BITS_TARGET static void cursor_init_fast(struct block_cursor *c, const struct block *b)
{
        cursor_init(c, b);
}

void block_cursor_init(struct block_cursor *c, const struct block *b)
{
        if (BLOCK_HAS_BITS)
                cursor_init_fast(c, b);
        else
                cursor_init(c, b);
}

BLOCK_BITS_TARGET static void cursor_init_rows_fast(struct block_cursor *c, const struct block *b)
{
        cursor_init_rows(c, b);
}

void block_cursor_init_rows(struct block_cursor *c, const struct block *b)
{
        if (BLOCK_HAS_BITS)
                cursor_init_rows_fast(c, b);
        else
                cursor_init_rows(c, b);
}

BLOCK_BITS_TARGET static enum status read_row_scope_fast(const struct block *b, const struct block_cursor *c,
                                                         uint32_t row, uint32_t *scope_ret, uint32_t *line_ret)
{
        return read_row_scope(b, c, row, scope_ret, line_ret);
}

enum status block_get_row_scope(const struct block *b, const struct block_cursor *c, uint32_t row, uint32_t *scope_ret,
                                uint32_t *line_ret)
{
        return BLOCK_HAS_BITS ? read_row_scope_fast(b, c, row, scope_ret, line_ret)
                              : read_row_scope(b, c, row, scope_ret, line_ret);
}

BLOCK_BITS_TARGET static enum status seek_row_fast(const struct block *b, struct block_cursor *c, uint64_t offset,
                                                   uint32_t *row_ret, uint64_t *end_ret)
{
        return seek_row(b, c, offset, row_ret, end_ret, true);
}

enum status block_seek(const struct block *b, struct block_cursor *c, uint64_t offset, uint32_t *row_ret,
                       uint64_t *end_ret)
{
        return BLOCK_HAS_BITS ? seek_row_fast(b, c, offset, row_ret, end_ret)
                              : seek_row(b, c, offset, row_ret, end_ret, false);
}

BLOCK_BITS_TARGET static enum status read_row_frames_fast(const struct block *b, const struct block_cursor *c,
                                                          uint32_t row, struct symbol_frame *out, uint32_t *count_ret)
{
        return read_row_frames(b, c, row, out, count_ret, true);
}

enum status block_get_frames(const struct block *b, const struct block_cursor *c, uint32_t row,
                             struct symbol_frame *out, uint32_t *count_ret)
{
        return BLOCK_HAS_BITS ? read_row_frames_fast(b, c, row, out, count_ret)
                              : read_row_frames(b, c, row, out, count_ret, false);
}

/* ---- decoding all rows ---- */

/*
 * Decoding a whole block into arrays, for batches with many keys in it. Every table is read once, sequentially; the
 * checks that decoding one row makes are made for each entry.
 */

static BLOCK_BODY bool unpack_starts(const struct block *b, struct block_rows *r)
{
        uint64_t mask = low_mask(b->low_width), last = 0;
        uint32_t row = 0;

        for (uint32_t at = 0; at < b->high_bits; at += 64) {
                uint64_t word = load_le64(b->high + at / 8);

                if (b->high_bits - at < 64)
                        word &= low_mask(b->high_bits - at);
                for (; word; word &= word - 1) {
                        uint64_t bucket = at + (unsigned)__builtin_ctzll(word) - row, start;

                        if (row == b->row_count)
                                return false;
                        start = bucket << b->low_width | (load_bits(b->low, (uint64_t)row * b->low_width) & mask);
                        if (row ? start <= last : start != 0)
                                return false;
                        r->starts[row++] = (uint32_t)start;
                        last = start;
                }
        }
        for (uint32_t i = 0; i < BLOCK_STARTS_AHEAD; i++)
                r->starts[row + i] = UINT32_MAX;
        return row == b->row_count && last <= b->span && last < UINT32_MAX;
}

/* About two rows per bucket when starts are evenly distributed. */
static BLOCK_BODY void make_buckets(const struct block *b, struct block_rows *r)
{
        uint32_t last = r->starts[b->row_count - 1];
        uint16_t most = 0;

        r->bucket_shift = b->low_width + 1 < 31 ? b->low_width + 1 : 31;
        while (last >> r->bucket_shift >= BLOCK_BUCKETS)
                r->bucket_shift++;
        r->last_bucket = last >> r->bucket_shift;
        memset(r->buckets, 0, (r->last_bucket + 2) * sizeof *r->buckets);
        for (uint32_t row = 0; row < b->row_count; row++)
                r->buckets[(r->starts[row] >> r->bucket_shift) + 1] = (uint16_t)row;
        for (uint32_t i = 0; i <= r->last_bucket; i++) {
                most = r->buckets[i] > most ? r->buckets[i] : most;
                r->buckets[i] = most;
        }
}

/* Ones in a bit table with one bit per row. */
static BLOCK_BODY uint32_t count_marked_rows(const struct block *b, const uint8_t *bits)
{
        uint32_t count = 0;

        for (uint32_t row = 0; row < b->row_count; row += 64) {
                uint64_t word = load_le64(bits + row / 8);

                count += popcount64(b->row_count - row < 64 ? word & low_mask(b->row_count - row) : word);
        }
        return count;
}

static BLOCK_BODY bool unpack_runs(const struct block *b, struct block_rows *r)
{
        uint64_t mask = low_mask(b->scope_width);
        uint16_t scopes[BLOCK_RECORDS_MAX + 1];
        uint32_t run = 0, row = 0;

        if (!(b->run_bits[0] & 1) || count_marked_rows(b, b->run_bits) != b->run_count)
                return false;
        for (uint32_t i = 0; i < b->run_count; i++) {
                scopes[i + 1] = (uint16_t)(load_bits(b->runs, (uint64_t)i * b->scope_width) & mask);
                if (scopes[i + 1] > b->scope_count)
                        return false;
        }
        for (row = 0; row < b->row_count;) {
                uint64_t word = load_le64(b->run_bits + row / 8);
                uint32_t end = row + 64 < b->row_count ? row + 64 : b->row_count;

                for (; row < end; row++, word >>= 1) {
                        run += word & 1;
                        r->row_scopes[row] = scopes[run];
                }
        }
        return true;
}

/* Branch-free: reads both the whole line and the difference of each row. */
static BLOCK_BODY bool unpack_lines(const struct block *b, struct block_rows *r)
{
        uint64_t line_mask = low_mask(b->line_width), delta_mask = low_mask(b->delta_width), word = 0;
        unsigned below = line_codes_below(b->delta_width);
        uint32_t deltas = 0, line = 0;

        if (!b->delta_width) {
                for (uint32_t row = 0; row < b->row_count; row++)
                        r->row_lines[row] = (uint16_t)(load_bits(b->lines, (uint64_t)row * b->line_width) & line_mask);
                return true;
        }
        /* Equal counts guarantee that no read goes beyond the end of the table. */
        if (count_marked_rows(b, b->delta_bits) != b->delta_count)
                return false;
        for (uint32_t row = 0; row < b->row_count; row++, word >>= 1) {
                uint64_t whole, code;
                bool is_delta;

                if (row % 64 == 0) {
                        word = load_le64(b->delta_bits + row / 8);
                        if (word & 1)
                                return false;
                }
                is_delta = word & 1;
                whole = load_bits(b->lines, (uint64_t)(row - deltas) * b->line_width);
                code = load_bits(b->deltas, (uint64_t)deltas * b->delta_width) & delta_mask;
                line = is_delta ? line + (uint32_t)line_of_code((uint32_t)code, below) : (uint32_t)whole;
                line &= (uint32_t)line_mask;
                r->row_lines[row] = (uint16_t)line;
                deltas += is_delta;
        }
        return true;
}

static BLOCK_BODY bool unpack_scopes(const struct block *b, struct block_rows *r)
{
        const struct site_fields fields = get_site_fields(b);
        uint32_t bit_count = b->scope_count + b->node_count + 1, scope = 0;

        for (uint32_t at = 0; at < bit_count; at += 64) {
                uint64_t word = load_le64(b->scope_bits + at / 8);

                if (bit_count - at < 64)
                        word &= low_mask(bit_count - at);
                for (; word; word &= word - 1) {
                        uint32_t parent = at + (unsigned)__builtin_ctzll(word) - scope;
                        struct block_entry *e = &r->scopes[scope + 1];

                        if (scope == b->scope_count || parent > b->node_count ||
                            !load_scope_frame(b, &fields, scope, 0, parent != 0, &e->frame))
                                return false;
                        e->parent = parent;
                        scope++;
                }
        }
        return scope == b->scope_count;
}

/* Frames of a node: its own, then those of its parent, which has a smaller number. */
static inline void add_node_chain(struct block_rows *r, uint32_t node)
{
        const struct block_entry *e = &r->nodes[node];

        memcpy(&r->chains[node][1], r->chains[e->parent], (BLOCK_CHAIN - 1) * sizeof(struct symbol_frame));
        r->chains[node][0] = e->frame;
        r->depths[node] = (uint16_t)(r->depths[e->parent] + 1);
        r->depth_max = r->depths[node] > r->depth_max ? r->depths[node] : r->depth_max;
}

static BLOCK_BODY bool unpack_nodes(const struct block *b, struct block_rows *r)
{
        uint32_t bit_count = b->node_count + b->scope_count, node = 0;
        uint64_t line_mask = low_mask(b->line_width);

        for (uint32_t at = 0; at < bit_count; at += 64) {
                uint64_t word = load_le64(b->node_bits + at / 8);

                if (bit_count - at < 64)
                        word &= low_mask(bit_count - at);
                for (; word; word &= word - 1) {
                        uint32_t scope = at + (unsigned)__builtin_ctzll(word) - node;

                        if (node == b->node_count || scope >= b->scope_count || r->scopes[scope + 1].parent > node)
                                return false;
                        r->nodes[node + 1] = r->scopes[scope + 1];
                        r->nodes[node + 1].frame.line |=
                                (uint32_t)(load_bits(b->node_lines, (uint64_t)node * b->line_width) & line_mask);
                        node++;
                        add_node_chain(r, node);
                }
        }
        return node == b->node_count;
}

static BLOCK_BODY enum status unpack_chains(const struct block *b, struct block_rows *ret)
{
        ret->node_count = b->node_count;
        ret->scope_count = b->scope_count;
        ret->scopes[0] = ret->nodes[0] = (struct block_entry){ 0 };
        memset(ret->chains[0], 0, sizeof ret->chains[0]);
        ret->depths[0] = 0;
        ret->depth_max = 0;
        return unpack_scopes(b, ret) && unpack_nodes(b, ret) ? ST_OK : ST_BAD_DATA;
}

static BLOCK_BODY enum status unpack_block(const struct block *b, struct block_rows *ret)
{
        ret->row_count = b->row_count;
        ret->end = b->span + 1;
        if (!unpack_starts(b, ret) || !unpack_runs(b, ret) || !unpack_lines(b, ret))
                return ST_BAD_DATA;
        make_buckets(b, ret);
        return unpack_chains(b, ret);
}

BLOCK_BITS_TARGET static enum status unpack_block_fast(const struct block *b, struct block_rows *ret)
{
        return unpack_block(b, ret);
}

static enum status unpack_block_portable(const struct block *b, struct block_rows *ret)
{
        return unpack_block(b, ret);
}

enum status block_unpack(const struct block *b, struct block_rows *ret)
{
        return BLOCK_HAS_BITS ? unpack_block_fast(b, ret) : unpack_block_portable(b, ret);
}

BLOCK_BITS_TARGET static enum status unpack_chains_fast(const struct block *b, struct block_rows *ret)
{
        return unpack_chains(b, ret);
}

static enum status unpack_chains_portable(const struct block *b, struct block_rows *ret)
{
        return unpack_chains(b, ret);
}

enum status block_unpack_chains(const struct block *b, struct block_rows *ret)
{
        return BLOCK_HAS_BITS ? unpack_chains_fast(b, ret) : unpack_chains_portable(b, ret);
}
