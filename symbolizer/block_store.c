/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers the scopes and nodes of a gathered block and writes its tables. */
#include "symbolizer/block_builder.h"

#include <assert.h>
#include <string.h>

#include "common/hash.h"
#include "symbolizer/block_bits.h"

#define NONE UINT16_MAX

/* Number of a key that is in the set. */
static uint32_t set_value(struct block_set *s, const struct block_key4 *key)
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
        for (uint32_t i = scopes->count; i-- > 0;) {
                b->next_scope[i] = b->first_scope[b->scopes[i].d];
                b->first_scope[b->scopes[i].d] = (uint16_t)i;
        }
        for (uint32_t i = b->node_count; i-- > 0;) {
                struct block_key4 key = block_scope_key(&b->nodes[i], line_width);
                uint32_t scope = set_value(scopes, &key);

                b->node_scope[i] = (uint16_t)scope;
                b->next_node[i] = b->first_node[scope];
                b->first_node[scope] = (uint16_t)i;
        }
}

/* Number scopes and nodes (from 1) so that neither a scope's node nor a node's scope ever decreases. */
static void number_breadth_first(struct block_builder *b, struct block_set *scopes, unsigned line_width)
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

static void store_header(const struct block_builder *b, const struct block_layout *l, uint8_t *p)
{
        const uint16_t counts[] = { htole16((uint16_t)b->row_count), htole16((uint16_t)l->run_count),
                                    htole16((uint16_t)b->node_count), htole16((uint16_t)l->scope_count),
                                    htole16((uint16_t)l->site_count), htole16((uint16_t)l->high_bits) };
        const uint32_t bases[] = { htole32(b->extremes.min.function), htole32(b->extremes.min.file),
                                   htole32(b->extremes.min.line >> l->line_width), htole32(b->anchor) };
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
}

/* Where the next line goes: among the differences, or whole among the others. */
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
                code = block_line_code(b->rows[row - 1].frame.line, r->frame.line, row, l->delta_width);
        if (code != UINT32_MAX) {
                p->bits[row / 8] |= (uint8_t)(1 << (row & 7));
                store_bits(p->deltas, (uint64_t)p->delta_count++ * l->delta_width, code);
        } else {
                uint64_t line = r->parent == BLOCK_GAP ? 0 : r->frame.line & low_mask(l->line_width);

                store_bits(p->lines, (uint64_t)p->line_count++ * l->line_width, line);
        }
}

static uint8_t *store_rows(struct block_builder *b, const struct block_layout *l, struct block_set *scopes, uint8_t *low)
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
                        struct block_key4 key = block_scope_key(r, l->line_width);

                        scope = b->scope_number[set_value(scopes, &key)] + 1u;
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

static uint8_t *store_scopes(struct block_builder *b, const struct block_layout *l, struct block_set *sites, uint8_t *bits)
{
        uint8_t *numbers = bits + l->scope_bits;

        for (uint32_t i = 0; i < l->scope_count; i++) {
                struct block_key4 key = b->scopes[b->scope_order[i]];
                uint32_t bit = b->node_number[key.d] + i;

                key.d = 0;
                bits[bit / 8] |= (uint8_t)(1 << (bit & 7));
                store_bits(numbers, (uint64_t)i * l->site_width, set_value(sites, &key));
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
                store_bits(lines, (uint64_t)i * l->line_width, b->nodes[node].frame.line & low_mask(l->line_width));
        }
        return lines + l->node_lines;
}

static void store_sites(const struct block_builder *b, const struct block_layout *l, const struct block_set *sites, uint8_t *p)
{
        unsigned width = l->function_width + l->file_width + l->line_high_width;
        uint32_t line_base = b->extremes.min.line >> l->line_width;

        for (uint32_t i = 0; i < BLOCK_SET_SLOTS; i++) {
                const struct block_key4 *k = &sites->slots[i].key;
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
        struct block_layout l;
        struct block_choice *c;
        uint64_t checksum;
        uint8_t *p, *at;

        assert(b->row_count > 0);
        block_builder_choose(b);
        l = block_layout_of(b, b->best);
        c = &b->choices[b->best];
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
        block_builder_clear(b);
        return ST_OK;
}
