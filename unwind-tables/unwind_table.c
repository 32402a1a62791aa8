/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input are the FDEs of a cfi_source, sorted and disjoint, and the ranges of find_uncovered_code(), which lie between
 * them. build_table_rows() merges both by address; code in between gets the gap rule, in Go programs that of Go code.
 *
 * A row sets a rule from its address on, until the next row. Consecutive equal rules are one row. Rows are grouped in
 * pages of 64 KiB, so that a row needs 16 bits of its address; put_row() repeats the current rule at the start of a
 * page, so that each page is searched alone. Rules are interned in a set that all tables share. When that is full, a
 * row gets UNWIND_RULE_FULL, and the build continues.
 *
 * Order: code without CFI, pages and rows, FDEs, the merge, statistics and checks, build and find.
 */
#include "unwind-tables/unwind_table.h"

#include <assert.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "common/search.h"
#include "unwind-tables/cfi_program.h"
#include "unwind-tables/cfi_source.h"

/*
 * Code without CFI whose rule is known from its instructions or its role:
 * signal return trampolines (musl writes no CFI for them), searched for in files
 * that need no other library and in Go programs, and the program's entry point,
 * which has no caller.
 */

struct uncovered_range {
        uint64_t start, end;
        struct unwind_rule rule;
};

struct uncovered {
        struct uncovered_range *items; /* owned; by start, disjoint, outside of every FDE */
        size_t count;
        uint64_t trampolines, entries;
};

#define _cleanup_uncovered_ _cleanup_(uncovered_deinit)

#define ENTRY_BYTES 64 /* longer than any entry code up to its first call */

static bool add_uncovered_range(struct uncovered *u, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
        if (u->count == LIMIT_UNWIND_UNCOVERED)
                return false;
        u->items[u->count++] = (struct uncovered_range){ .start = start, .end = end, .rule = *rule };
        return true;
}

/* Search [start, end), which no FDE covers. */
static void search_trampolines(const struct cfi_source *source, const struct elf_image *img, uint64_t start,
                               uint64_t end, struct uncovered *u)
{
        const struct cfi_arch *arch = source->arch;
        const uint8_t *bytes, *at, *hit;

        if (end - start < arch->sigreturn_size || !elf_image_bytes_at(img, start, end - start, &bytes))
                return;
        for (at = bytes;
             (hit = memmem(at, (size_t)(bytes + (end - start) - at), arch->sigreturn, arch->sigreturn_size));
             at = hit + arch->sigreturn_size) {
                uint64_t address = start + (uint64_t)(hit - bytes);

                if (!add_uncovered_range(u, address, address + arch->sigreturn_size, &arch->signal))
                        return;
                u->trampolines++;
        }
}

/* Trampolines without CFI occur only in a C library, in programs without libraries, and in the Go runtime. */
static bool needs_libraries(const struct elf_image *img)
{
        for (size_t i = 0; i < img->segment_count; i++) {
                const struct elf_segment *g = &img->segments[i];
                struct reader r;
                uint64_t tag, value;

                if (g->type != PT_DYNAMIC || g->offset > img->size || g->file_size > img->size - g->offset)
                        continue;
                reader_init(&r, img->data + g->offset, g->file_size);
                while (reader_u64(&r, &tag) && reader_u64(&r, &value) && tag != DT_NULL) {
                        if (tag == DT_NEEDED)
                                return true;
                }
        }
        return false;
}

static bool has_go_runtime(const struct elf_image *img)
{
        static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (elf_image_section(img, names[i]))
                        return true;
        return false;
}

/* The next part of [*pos, end) outside of every FDE; false at the end. */
static bool next_uncovered_gap(const struct cfi_source *source, size_t *fde, uint64_t *pos, uint64_t end,
                               uint64_t *start_ret, uint64_t *end_ret)
{
        while (*pos < end) {
                bool more = *fde < source->fde_count && source->fdes[*fde].start < end;
                uint64_t start = *pos, stop = more ? source->fdes[*fde].start : end;

                *pos = more ? source->fdes[*fde].end : end;
                *fde += more;
                if (start < stop) {
                        *start_ret = start;
                        *end_ret = stop;
                        return true;
                }
        }
        return false;
}

static bool is_covered_by_range(const struct uncovered *u, uint64_t address)
{
        for (size_t i = 0; i < u->count; i++) {
                if (address >= u->items[i].start && address < u->items[i].end)
                        return true;
        }
        return false;
}

static int compare_uncovered_starts(const void *a, const void *b)
{
        const struct uncovered_range *x = a, *y = b;

        return x->start < y->start ? -1 : x->start > y->start;
}

static void add_entry_point(const struct cfi_source *source, const struct elf_image *img, struct uncovered *u)
{
        static const struct unwind_rule STOP = { .cfa = UNWIND_CFA_STOP };
        uint64_t start = img->entry, end = 0;
        size_t next = cfi_source_find_fde(source, start);

        for (size_t i = 0; i < source->code_count; i++) {
                if (start >= source->code[i].start && start < source->code[i].end)
                        end = source->code[i].end;
        }
        if (start == 0 || end == 0 || is_covered_by_range(u, start) ||
            (next < source->fde_count && source->fdes[next].start <= start))
                return;
        if (end - start > ENTRY_BYTES)
                end = start + ENTRY_BYTES;
        if (next < source->fde_count && source->fdes[next].start < end)
                end = source->fdes[next].start;
        for (size_t i = 0; i < u->count; i++) {
                if (u->items[i].start >= start && u->items[i].start < end)
                        end = u->items[i].start;
        }
        u->entries += add_uncovered_range(u, start, end, &STOP);
}

static enum status find_uncovered_code(const struct cfi_source *source, const struct elf_image *img, bool is_go,
                                       struct uncovered *ret, struct error *err)
{
        size_t searched = is_go || !needs_libraries(img) ? source->code_count : 0;
        uint64_t done = 0, start, end;

        ret->items = calloc(LIMIT_UNWIND_UNCOVERED, sizeof *ret->items);
        if (!ret->items)
                return error_no_memory(err);
        for (size_t i = 0; i < searched; i++) { /* sorted by start; overlaps are searched once */
                const struct cfi_code *c = &source->code[i];
                uint64_t pos = c->start > done ? c->start : done;
                size_t fde = cfi_source_find_fde(source, pos);

                while (next_uncovered_gap(source, &fde, &pos, c->end, &start, &end))
                        search_trampolines(source, img, start, end, ret);
                done = c->end > done ? c->end : done;
        }
        add_entry_point(source, img, ret);
        qsort(ret->items, ret->count, sizeof *ret->items, compare_uncovered_starts);
        return ST_OK;
}

static void uncovered_deinit(struct uncovered *u)
{
        free(u->items);
        *u = (struct uncovered){ 0 };
}

#define TRAMPOLINE_BYTES_MAX 64 /* one system call and padding */

struct builder {
        struct unwind_table t;
        struct unwind_rules *rules;
        const struct elf_image *img; /* NULL: only CFI is available */
        uint64_t at;                 /* everything below is done */
        uint16_t rule;               /* of the last row */
        uint16_t gap_rule;           /* for code without CFI */
        struct error *err;
};

static enum status append_page(struct builder *b, uint64_t number)
{
        struct unwind_table *t = &b->t;

        if (t->page_count == LIMIT_UNWIND_PAGES)
                return error_set(b->err, ST_TOO_BIG, "code of more than %u pages of 64 KiB",
                                 (unsigned)LIMIT_UNWIND_PAGES);
        if (!array_reserve(&t->pages, &t->page_capacity, t->page_count))
                return error_no_memory(b->err);
        t->pages[t->page_count++] = (struct unwind_page){ .number = number, .first_row = (uint32_t)t->row_count };
        return ST_OK;
}

static enum status append_row(struct builder *b, uint64_t address, uint16_t rule)
{
        struct unwind_table *t = &b->t;
        uint64_t page = address >> UNWIND_PAGE_BITS;

        if (!t->page_count || t->pages[t->page_count - 1].number != page) {
                enum status st = append_page(b, page);

                if (st)
                        return st;
        }
        if (t->row_count == LIMIT_UNWIND_ROWS)
                return error_set(b->err, ST_TOO_BIG, "more than %u unwind rows", (unsigned)LIMIT_UNWIND_ROWS);
        if (!array_reserve(&t->rows, &t->row_capacity, t->row_count))
                return error_no_memory(b->err);
        t->rows[t->row_count++] = (struct unwind_row){ .offset = (uint16_t)address, .rule = rule };
        t->pages[t->page_count - 1].row_count++;
        return ST_OK;
}

/* Set the rule from address on; addresses must ascend. Pages that start in between repeat the current rule. */
static enum status put_row(struct builder *b, uint64_t address, uint16_t rule)
{
        enum status st = ST_OK;

        if (rule == b->rule)
                return ST_OK;
        if (b->rule != UNWIND_RULE_GAP) {
                uint64_t page = (b->t.pages[b->t.page_count - 1].number + 1) << UNWIND_PAGE_BITS;

                for (; page < address && !st; page += UNWIND_PAGE_SIZE)
                        st = append_row(b, page, b->rule);
        }
        /* A gap at the start of a page needs no row. */
        if (!st && (rule != UNWIND_RULE_GAP || (address & (UNWIND_PAGE_SIZE - 1))))
                st = append_row(b, address, rule);
        b->rule = rule;
        return st;
}

static enum status put_rule(struct builder *b, uint64_t address, const struct unwind_rule *rule)
{
        uint16_t index = UNWIND_RULE_FULL;
        enum status st = unwind_rules_intern(b->rules, rule, &index);

        return st && st != ST_TOO_BIG ? error_no_memory(b->err) : put_row(b, address, index);
}

static bool is_debug_frame(const struct cfi_source *source, const struct cfi_fde *fde)
{
        return source->debug.size && fde->program >= source->debug.data &&
               fde->program <= source->debug.data + source->debug.size;
}

/* The CFI of the Go trampoline lacks the signal frame flag; it is recognized by its instructions. */
static bool is_go_trampoline(const struct builder *b, const struct cfi_source *source, const struct cfi_fde *fde)
{
        const struct cfi_arch *arch = source->arch;
        const uint8_t *code;

        return b->t.is_go && fde->end - fde->start <= TRAMPOLINE_BYTES_MAX &&
               fde->end - fde->start >= arch->sigreturn_size &&
               elf_image_bytes_at(b->img, fde->start, arch->sigreturn_size, &code) &&
               memcmp(code, arch->sigreturn, arch->sigreturn_size) == 0;
}

/*
 * Go programs have a rule for gaps, so the byte before a trampoline, where the return address of a handler is
 * looked up, needs the rule of the trampoline.
 */
static enum status put_trampoline(struct builder *b, uint64_t start, const struct unwind_rule *rule)
{
        return put_rule(b, start - (b->t.is_go && b->at < start), rule);
}

static enum status put_fde(struct builder *b, const struct cfi_source *source, const struct cfi_fde *fde)
{
        static const struct unwind_rule BAD = { .cfa = UNWIND_CFA_UNKNOWN, .reason = UNWIND_REASON_MALFORMED };
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
                struct unwind_rule rule = cfi_row_to_rule(&p.row, source->arch, fde->cie->ra, fde->cie->is_signal);

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

static enum status build_table_rows(struct builder *b, const struct cfi_source *source, const struct uncovered *extra)
{
        uint64_t end_of_code = 0;
        size_t f = 0, e = 0;

        for (size_t i = 0; i < source->code_count; i++)
                if (source->code[i].end > end_of_code)
                        end_of_code = source->code[i].end;
        b->at = source->code_count ? source->code[0].start : 0;
        while (f < source->fde_count || e < extra->count) {
                bool is_extra =
                        f == source->fde_count || (e < extra->count && extra->items[e].start < source->fdes[f].start);
                uint64_t start = is_extra ? extra->items[e].start : source->fdes[f].start;
                uint64_t end = is_extra ? extra->items[e].end : source->fdes[f].end;
                enum status st = ST_OK;

                if (b->at < start)
                        st = put_row(b, b->at, b->gap_rule);
                if (!st)
                        st = is_extra ? put_extra(b, start, &extra->items[e++].rule)
                                      : put_fde(b, source, &source->fdes[f++]);
                if (st)
                        return st;
                b->at = end;
        }
        if (b->at < end_of_code) {
                enum status st = put_row(b, b->at, b->gap_rule);

                if (st)
                        return st;
                b->at = end_of_code;
        }
        return put_row(b, b->at, UNWIND_RULE_GAP);
}

/* Count the rows by kind. */
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
                        stats->unknown_rows[rule->reason]++;
        }
        return ST_OK;
}

static void shrink_table_arrays(struct unwind_table *t)
{
        struct unwind_row *rows = realloc(t->rows, (t->row_count ? t->row_count : 1) * sizeof *rows);
        struct unwind_page *pages = realloc(t->pages, (t->page_count ? t->page_count : 1) * sizeof *pages);

        if (rows)
                t->rows = rows;
        if (pages)
                t->pages = pages;
}

/* Pages ascend, their rows are contiguous, and the rows of a page ascend. */
static void unwind_table_check(const struct unwind_table *t)
{
        size_t row = 0;

        for (size_t i = 0; i < t->page_count; i++) {
                assert(!i || t->pages[i - 1].number < t->pages[i].number);
                assert(t->pages[i].first_row == row && t->pages[i].row_count <= UNWIND_PAGE_SIZE);
                for (size_t k = 1; k < t->pages[i].row_count; k++)
                        assert(t->rows[row + k - 1].offset < t->rows[row + k].offset);
                row += t->pages[i].row_count;
        }
        assert(row == t->row_count);
}

enum status unwind_table_build_from_cfi(const struct cfi_source *source, const struct elf_image *img,
                                        struct unwind_rules *rules, struct unwind_table *ret, struct error *err)
{
        _cleanup_uncovered_ struct uncovered extra = { 0 };
        struct builder b = { .rules = rules, .img = img, .err = err, .rule = UNWIND_RULE_GAP };
        bool is_go = img && has_go_runtime(img);
        enum status st = img ? find_uncovered_code(source, img, is_go, &extra, err) : ST_OK;

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
        b.gap_rule = b.t.is_go ? UNWIND_RULE_GO : UNWIND_RULE_GAP;
        if (!st)
                st = build_table_rows(&b, source, &extra);
        if (!st)
                st = count_rows(&b);
        if (st) {
                unwind_table_deinit(&b.t);
                return st;
        }
        unwind_table_check(&b.t);
        shrink_table_arrays(&b.t);
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
        st = unwind_table_build_from_cfi(&source, img, rules, ret, err);
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
        size_t page = find_lower_bound(i, 0, t->page_count, t->pages[i].number < number), next;

        if (page == t->page_count || t->pages[page].number != number)
                return ST_NOT_FOUND;
        rows = t->rows + t->pages[page].first_row;
        next = find_lower_bound(i, 0, t->pages[page].row_count, rows[i].offset <= offset);
        if (next == 0 || rows[next - 1].rule == UNWIND_RULE_GAP)
                return ST_NOT_FOUND;
        *ret = &rows[next - 1];
        return ST_OK;
}

uint64_t unwind_stats_count_unknown(const struct unwind_stats *stats)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < UNWIND_REASON_COUNT; i++)
                sum += stats->unknown_rows[i];
        return sum;
}
