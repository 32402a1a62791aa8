/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/unwinding/unwind_result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/limits.h"

#define NAME "unwind table"

struct head {
        uint64_t rules, pages, rows;
        struct runtime_symbols runtimes;
};

enum status unwind_result_write(int fd, const struct unwind_table *t, const struct unwind_rules *rules,
                                const struct runtime_symbols *runtimes, struct error *err)
{
        const struct head h = { rules->count, t->page_count, t->row_count, *runtimes };
        enum status st = file_write_all(fd, &h, sizeof h, NAME, err);

        if (!st)
                st = file_write_all(fd, rules->items, rules->count * sizeof *rules->items, NAME, err);
        if (!st)
                st = file_write_all(fd, t->pages, t->page_count * sizeof *t->pages, NAME, err);
        return st ? st : file_write_all(fd, t->rows, t->row_count * sizeof *t->rows, NAME, err);
}

static enum status read_result_bytes(int fd, off_t *at, void *to, size_t n, struct error *err)
{
        while (n) {
                ssize_t got = pread(fd, to, n, *at);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0)
                        return error_set(err, ST_BAD_DATA, "the worker's unwind table is truncated");
                to = (uint8_t *)to + got;
                n -= (size_t)got;
                *at += got;
        }
        return ST_OK;
}

/* Pages ascend, their rows are contiguous and ascend within a page, and rule numbers are below the rule count. */
static bool is_valid_table(const struct unwind_table *t, size_t rules)
{
        size_t row = 0;

        for (size_t i = 0; i < t->page_count; i++) {
                const struct unwind_page *p = &t->pages[i];

                if ((i && p->number <= t->pages[i - 1].number) || p->first_row != row || !p->row_count ||
                    p->row_count > UNWIND_PAGE_SIZE || p->row_count > t->row_count - row)
                        return false;
                for (size_t end = row + p->row_count; row < end; row++)
                        if (t->rows[row].rule >= rules ||
                            (row > p->first_row && t->rows[row].offset <= t->rows[row - 1].offset))
                                return false;
        }
        return row == t->row_count;
}

/* Translate one of the worker's rules to a number in the shared array. */
static enum status translate_rule(const struct unwind_rule *theirs, struct unwind_rules *rules,
                                  struct unwind_rules_part *part, uint16_t *ret, struct error *err)
{
        enum status st;

        if (unwind_rules_find(rules, theirs, ret))
                return ST_OK;
        st = part->left ? unwind_rules_intern(rules, theirs, ret) : ST_TOO_BIG;
        if (st == ST_TOO_BIG) {
                *ret = UNWIND_RULE_FULL;
                part->refused++;
                return ST_OK;
        }
        if (st)
                return error_no_memory(err);
        part->left--;
        part->taken++;
        return ST_OK;
}

/* Translate all rows to numbers of the shared array. */
static enum status renumber_rules(struct unwind_table *t, const struct unwind_rule *theirs, size_t count,
                                  struct unwind_rules *rules, struct unwind_rules_part *part, struct error *err)
{
        _cleanup_free_ uint16_t *numbers = calloc(count + 1, sizeof *numbers);
        enum status st = numbers ? ST_OK : error_no_memory(err);

        for (size_t i = 0; !st && i < count && i < UNWIND_RULES_FIXED; i++)
                numbers[i] = (uint16_t)i;
        for (size_t i = UNWIND_RULES_FIXED; !st && i < count; i++)
                st = translate_rule(&theirs[i], rules, part, &numbers[i], err);
        for (size_t i = 0; !st && i < t->row_count; i++)
                t->rows[i].rule = numbers[t->rows[i].rule];
        return st;
}

enum status unwind_result_read(int fd, struct unwind_rules *rules, struct unwind_rules_part *part,
                               struct unwind_table *ret, struct runtime_symbols *runtimes_ret, struct error *err)
{
        _cleanup_unwind_table_ struct unwind_table t = { 0 };
        _cleanup_free_ struct unwind_rule *theirs = NULL;
        struct head h;
        off_t at = 0;
        enum status st = read_result_bytes(fd, &at, &h, sizeof h, err);

        if (st)
                return st;
        if (h.rules > UNWIND_RULES_MAX || h.pages > LIMIT_UNWIND_PAGES || h.rows > LIMIT_UNWIND_ROWS)
                return error_set(err, ST_TOO_BIG, "the worker's unwind table exceeds its limits");
        theirs = calloc(h.rules + 1, sizeof *theirs);
        t.pages = calloc(h.pages + 1, sizeof *t.pages);
        t.rows = calloc(h.rows + 1, sizeof *t.rows);
        if (!theirs || !t.pages || !t.rows)
                return error_no_memory(err);
        t.page_count = h.pages;
        t.row_count = h.rows;
        st = read_result_bytes(fd, &at, theirs, h.rules * sizeof *theirs, err);
        if (!st)
                st = read_result_bytes(fd, &at, t.pages, h.pages * sizeof *t.pages, err);
        if (!st)
                st = read_result_bytes(fd, &at, t.rows, h.rows * sizeof *t.rows, err);
        if (!st && !is_valid_table(&t, h.rules))
                st = error_set(err, ST_BAD_DATA, "the worker's unwind table is malformed");
        if (!st)
                st = renumber_rules(&t, theirs, h.rules, rules, part, err);
        if (st)
                return st;
        *ret = t;
        *runtimes_ret = h.runtimes;
        t = (struct unwind_table){ 0 };
        return ST_OK;
}
