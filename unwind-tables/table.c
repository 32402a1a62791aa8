/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind-tables/table.h"

#include <string.h>

#include "common/limits.h"
#include "unwind-tables/cfi_program.h"
#include "unwind-tables/uncovered.h"

#define TRAMPOLINE_BYTES_MAX 64 /* one system call, and what fills up behind it */

struct builder {
        struct unwind_table t;
        struct unwind_rules *rules;
        const struct elf_image *img; /* NULL: only its CFI is at hand */
        uint64_t at;   /* everything below is in the table */
        uint16_t rule; /* what holds from the last row on */
        uint16_t hole; /* what holds in code without CFI */
        struct error *err;
};

static enum status add_page(struct builder *b, uint64_t number)
{
        struct unwind_table *t = &b->t;

        if (t->page_count == t->page_capacity) {
                size_t capacity = t->page_capacity ? t->page_capacity * 2 : 64;
                struct unwind_page *pages;

                if (capacity > LIMIT_UNWIND_PAGES)
                        return error_set(b->err, ST_TOO_BIG, "code of more than %u pages of 64 KiB",
                                         (unsigned)LIMIT_UNWIND_PAGES);
                pages = realloc(t->pages, capacity * sizeof *pages);
                if (!pages)
                        return error_no_memory(b->err);
                t->pages = pages;
                t->page_capacity = capacity;
        }
        t->pages[t->page_count++] = (struct unwind_page){ .number = number, .first_row = (uint32_t)t->row_count };
        return ST_OK;
}

static enum status add_row(struct builder *b, uint64_t address, uint16_t rule)
{
        struct unwind_table *t = &b->t;
        uint64_t page = address >> UNWIND_PAGE_BITS;

        if (!t->page_count || t->pages[t->page_count - 1].number != page) {
                enum status st = add_page(b, page);

                if (st)
                        return st;
        }
        if (t->row_count == t->row_capacity) {
                size_t capacity = t->row_capacity ? t->row_capacity * 2 : 4096;
                struct unwind_row *rows;

                if (capacity > LIMIT_UNWIND_ROWS)
                        return error_set(b->err, ST_TOO_BIG, "more than %u unwind rows", (unsigned)LIMIT_UNWIND_ROWS);
                rows = realloc(t->rows, capacity * sizeof *rows);
                if (!rows)
                        return error_no_memory(b->err);
                t->rows = rows;
                t->row_capacity = capacity;
        }
        t->rows[t->row_count++] = (struct unwind_row){ .offset = (uint16_t)address, .rule = rule };
        t->pages[t->page_count - 1].row_count++;
        return ST_OK;
}

/* From address on, rule holds; addresses come in rising order. Pages that begin in between repeat what holds there. */
static enum status put(struct builder *b, uint64_t address, uint16_t rule)
{
        enum status st = ST_OK;

        if (rule == b->rule)
                return ST_OK;
        if (b->rule != UNWIND_RULE_GAP) {
                uint64_t page = (b->t.pages[b->t.page_count - 1].number + 1) << UNWIND_PAGE_BITS;

                for (; page < address && !st; page += UNWIND_PAGE_SIZE)
                        st = add_row(b, page, b->rule);
        }
        /* A gap at a page's first byte needs no row there. */
        if (!st && (rule != UNWIND_RULE_GAP || (address & (UNWIND_PAGE_SIZE - 1))))
                st = add_row(b, address, rule);
        b->rule = rule;
        return st;
}

static enum status put_rule(struct builder *b, uint64_t address, const struct unwind_rule *rule)
{
        uint16_t index = UNWIND_RULE_FULL;
        enum status st = unwind_rules_intern(b->rules, rule, &index);

        return st && st != ST_TOO_BIG ? error_no_memory(b->err) : put(b, address, index);
}

static bool is_debug_frame(const struct cfi_source *source, const struct cfi_fde *fde)
{
        return source->debug.size && fde->program >= source->debug.data &&
               fde->program <= source->debug.data + source->debug.size;
}

/* Go's CFI does not say that its trampoline is a signal frame; its instructions do. */
static bool is_go_trampoline(const struct builder *b, const struct cfi_source *source, const struct cfi_fde *fde)
{
        const struct cfi_arch *arch = source->arch;
        const uint8_t *code;

        return b->t.is_go && fde->end - fde->start <= TRAMPOLINE_BYTES_MAX && fde->end - fde->start >= arch->sigreturn_size &&
               elf_image_bytes_at(b->img, fde->start, arch->sigreturn_size, &code) &&
               memcmp(code, arch->sigreturn, arch->sigreturn_size) == 0;
}

/*
 * In Go's files a hole has a rule of its own, so the byte before a trampoline,
 * which a handler's return address is looked up for, must be the trampoline's.
 */
static enum status put_trampoline(struct builder *b, uint64_t start, const struct unwind_rule *rule)
{
        return put_rule(b, start - (b->t.is_go && b->at < start), rule);
}

static enum status put_fde(struct builder *b, const struct cfi_source *source, const struct cfi_fde *fde)
{
        static const struct unwind_rule BAD = { .cfa = UNWIND_CFA_UNKNOWN, .why = UNWIND_WHY_MALFORMED };
        struct cfi_program p;
        enum status st, put_st;
        uint64_t start;

        bool by_frame_pointer = b->t.is_go && is_debug_frame(source, fde);

        b->t.stats.functions++;
        if (is_go_trampoline(b, source, fde)) {
                b->t.stats.trampolines++;
                return put_trampoline(b, fde->start, &source->arch->signal);
        }
        cfi_program_init(&p, source->arch, fde);
        while (!(st = cfi_program_next(&p, &start))) {
                struct unwind_rule rule = cfi_row_rule(&p.row, source->arch, fde->cie->ra, fde->cie->is_signal);

                rule.flags |= by_frame_pointer && rule.cfa != UNWIND_CFA_STOP ? UNWIND_FLAG_CALLER_GO : 0;
                put_st = put_rule(b, start, &rule);
                if (put_st)
                        return put_st;
        }
        return st == ST_NOT_FOUND ? ST_OK : put_rule(b, p.loc, &BAD);
}

static enum status put_extra(struct builder *b, uint64_t start, const struct unwind_rule *rule)
{
        return rule->flags & UNWIND_FLAG_SIGNAL ? put_trampoline(b, start, rule) : put_rule(b, start, rule);
}

static enum status build(struct builder *b, const struct cfi_source *source, const struct uncovered *extra)
{
        uint64_t end_of_code = 0;
        size_t f = 0, e = 0;

        for (size_t i = 0; i < source->code_count; i++)
                if (source->code[i].end > end_of_code)
                        end_of_code = source->code[i].end;
        b->at = source->code_count ? source->code[0].start : 0;
        while (f < source->fde_count || e < extra->count) {
                bool is_extra = f == source->fde_count ||
                                (e < extra->count && extra->items[e].start < source->fdes[f].start);
                uint64_t start = is_extra ? extra->items[e].start : source->fdes[f].start;
                uint64_t end = is_extra ? extra->items[e].end : source->fdes[f].end;
                enum status st = ST_OK;

                if (b->at < start)
                        st = put(b, b->at, b->hole);
                if (!st)
                        st = is_extra ? put_extra(b, start, &extra->items[e++].rule) : put_fde(b, source, &source->fdes[f++]);
                if (st)
                        return st;
                b->at = end;
        }
        if (b->at < end_of_code) {
                enum status st = put(b, b->at, b->hole);

                if (st)
                        return st;
                b->at = end_of_code;
        }
        return put(b, b->at, UNWIND_RULE_GAP);
}

/* What the rows turned out to be. */
static enum status count_rows(struct builder *b)
{
        struct unwind_stats *stats = &b->t.stats;
        _cleanup_free_ uint8_t *seen = calloc(UNWIND_RULES_MAX, 1);

        if (!seen)
                return error_no_memory(b->err);
        for (size_t i = 0; i < b->t.row_count; i++) {
                uint16_t index = b->t.rows[i].rule;
                const struct unwind_rule *rule = &b->rules->items[index];

                stats->rules += !seen[index] && index != UNWIND_RULE_GAP;
                seen[index] = 1;
                stats->gap_rows += rule->cfa == UNWIND_CFA_NONE;
                stats->stop_rows += rule->cfa == UNWIND_CFA_STOP;
                if (rule->cfa == UNWIND_CFA_UNKNOWN)
                        stats->unknown_rows[rule->why]++;
        }
        return ST_OK;
}

static void give_back(struct unwind_table *t)
{
        struct unwind_row *rows = realloc(t->rows, (t->row_count ? t->row_count : 1) * sizeof *rows);
        struct unwind_page *pages = realloc(t->pages, (t->page_count ? t->page_count : 1) * sizeof *pages);

        if (rows)
                t->rows = rows;
        if (pages)
                t->pages = pages;
}

enum status unwind_table_build_from(const struct cfi_source *source, const struct elf_image *img,
                                    struct unwind_rules *rules, struct unwind_table *ret, struct error *err)
{
        _cleanup_uncovered_ struct uncovered extra = { 0 };
        struct builder b = { .rules = rules, .img = img, .err = err, .rule = UNWIND_RULE_GAP };
        bool is_go = img && uncovered_is_go(img);
        enum status st = img ? uncovered_find(source, img, is_go, &extra, err) : ST_OK;

        b.t.stats = (struct unwind_stats){
                .fdes = source->fdes_seen,
                .fdes_discarded = source->fdes_discarded,
                .fdes_outside = source->fdes_outside,
                .fdes_double = source->fdes_double,
                .fdes_unreadable = source->fdes_unreadable,
                .trampolines = extra.trampolines,
                .entries = extra.entries,
        };
        b.t.is_go = is_go;
        b.hole = b.t.is_go ? UNWIND_RULE_GO : UNWIND_RULE_GAP;
        if (!st)
                st = build(&b, source, &extra);
        if (!st)
                st = count_rows(&b);
        if (st) {
                unwind_table_deinit(&b.t);
                return st;
        }
        give_back(&b.t);
        *ret = b.t;
        return ST_OK;
}

enum status unwind_table_build(const struct elf_image *img, struct unwind_rules *rules, struct unwind_table *ret,
                               struct error *err)
{
        _cleanup_cfi_source_ struct cfi_source source = { 0 };
        enum status st = cfi_source_open(img, &source, err);

        if (st)
                return st;
        st = unwind_table_build_from(&source, img, rules, ret, err);
        return st ? error_prefix(err, st, "cannot build the unwind table of '%s'", img->name) : ST_OK;
}

void unwind_table_deinit(struct unwind_table *t)
{
        free(t->pages);
        free(t->rows);
        *t = (struct unwind_table){ 0 };
}

enum status unwind_table_find(const struct unwind_table *t, uint64_t pc, const struct unwind_row **ret)
{
        uint64_t number = pc >> UNWIND_PAGE_BITS;
        uint16_t offset = (uint16_t)pc;
        const struct unwind_row *rows;
        size_t low = 0, high = t->page_count;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (t->pages[mid].number < number)
                        low = mid + 1;
                else
                        high = mid;
        }
        if (low == t->page_count || t->pages[low].number != number)
                return ST_NOT_FOUND;
        rows = t->rows + t->pages[low].first_row;
        high = t->pages[low].row_count;
        for (low = 0; low < high;) { /* the number of rows that begin at pc or before */
                size_t mid = low + (high - low) / 2;

                if (rows[mid].offset <= offset)
                        low = mid + 1;
                else
                        high = mid;
        }
        if (low == 0 || rows[low - 1].rule == UNWIND_RULE_GAP)
                return ST_NOT_FOUND;
        *ret = &rows[low - 1];
        return ST_OK;
}

uint64_t unwind_stats_unknown(const struct unwind_stats *stats)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < UNWIND_WHY_COUNT; i++)
                sum += stats->unknown_rows[i];
        return sum;
}
