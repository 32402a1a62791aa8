/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/code_alignment.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "query/engine/line_alignment.h"

#define SHOWN_NAME_BYTES 200     /* of a name in a text that is compared */
#define ADDRESS_LEAST 0x10000    /* smaller numbers are constants */
#define ADDRESS_DISTANCE MiB(64) /* of numbers from the instruction, which are taken for addresses */
#define INSTRUCTION_UNITS 16     /* of work for the text of each instruction */

void code_alignment_deinit(struct code_alignment *a)
{
        memory_release(&a->memory);
        free(a->pairs);
        free(a->rows);
        *a = (struct code_alignment){ 0 };
}

/* ---- instructions as text ---- */

static bool is_before(const char *text, const char *at, const char *what)
{
        const size_t n = strlen(what);

        return (size_t)(at - text) >= n && memcmp(at - n, what, n) == 0;
}

/* Whether the number at `at` is relative to the program counter, as in [rip + 0x10] and 0x10(%rip). */
static bool is_relative_number(const char *text, const char *at, const char *end)
{
        return is_before(text, at, "rip + ") || is_before(text, at, "rip - ") || strncmp(end, "(%rip)", 6) == 0;
}

static bool is_address_number(const struct code_instruction *in, const char *at, const char *end, uint64_t value)
{
        const uint64_t distance = value > in->address ? value - in->address : in->address - value;

        if (in->has_target && (value == in->target || is_relative_number(in->operands, at, end)))
                return true;
        return value >= ADDRESS_LEAST && distance <= ADDRESS_DISTANCE;
}

/* A distance from the program counter may be negative in one build only. */
static bool is_relative_sign(const struct code_instruction *in, const char *at)
{
        char *end;

        if (!in->has_target || *at != '-')
                return false;
        if (is_before(in->operands, at, "rip "))
                return true;
        if (!isdigit((unsigned char)at[1]))
                return false;
        strtoull(at + 1, &end, 0);
        return strncmp(end, "(%rip)", 6) == 0;
}

void code_put_without_addresses(const struct code_instruction *in, const char *target_name, struct buf *ret)
{
        const char *at = in->operands;

        buf_append_str(ret, in->mnemonic);
        buf_append_u8(ret, ' ');
        while (*at) {
                const bool is_inside = at > in->operands && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
                char *end = NULL;
                uint64_t value = 0;

                if (isdigit((unsigned char)*at) && !is_inside)
                        value = strtoull(at, &end, 0);
                if (!end || end == at) {
                        if (!is_relative_sign(in, at))
                                buf_append_u8(ret, (uint8_t)*at);
                        else if (at[1] == ' ')
                                buf_append_u8(ret, '+');
                        at++;
                        continue;
                }
                if (is_address_number(in, at, end, value))
                        buf_printf(ret, "%.*s", SHOWN_NAME_BYTES, target_name ? target_name : "*");
                else
                        buf_append(ret, at, (size_t)(end - at));
                at = end;
        }
}

/* The instructions of a range as the lines of a text; none without a range. */
static enum status make_code_lines(const struct code_side *side, uint32_t range, struct work_meter *meter,
                                   struct source_lines *ret, struct error *err)
{
        const struct code_range *r = range == NO_CODE ? NULL : &side->code->ranges[range];
        const uint32_t count = r ? r->count : 0;
        enum status st = memory_resize(&ret->memory, (count + 1) * sizeof *ret->starts, err);

        if (!st)
                st = work_meter_add(meter, INSTRUCTION_UNITS * (uint64_t)count, err);
        if (st)
                return st;
        ret->starts = calloc(count + (size_t)1, sizeof *ret->starts);
        if (!ret->starts)
                return error_no_memory(err);
        for (uint32_t i = 0; i < count; i++) {
                ret->starts[ret->count++] = (uint32_t)ret->text.size;
                code_put_without_addresses(&side->code->instructions[r->first + i], side->target_names[r->first + i],
                                           &ret->text);
                buf_append_u8(&ret->text, '\n');
        }
        return buf_status(&ret->text, err, "the instructions to align");
}

/* ---- rows ---- */

static bool are_code_lines_equal(const struct source_lines *lines, uint32_t before, uint32_t after)
{
        size_t n[2] = { 0 };
        const char *a = source_lines_get(&lines[0], before, &n[0]), *b = source_lines_get(&lines[1], after, &n[1]);

        return a && b && n[0] == n[1] && memcmp(a, b, n[0]) == 0;
}

/* Partners beside each other, and before them what was removed, then what is new. `first`: of the instructions. */
static void put_code_rows(const struct line_alignment *lines, const struct source_lines *texts, const uint32_t first[2],
                          struct code_alignment *a)
{
        for (uint32_t i = 1, k = 1; i <= lines->before_count || k <= lines->after_count;) {
                struct code_row *row = &a->rows[a->row_count++];

                *row = (struct code_row){ NO_CODE, NO_CODE, false };
                if (i <= lines->before_count && !lines->after_of[i]) {
                        row->before = first[0] + i++ - 1;
                } else if (k <= lines->after_count && !lines->before_of[k]) {
                        row->after = first[1] + k++ - 1;
                } else {
                        row->is_changed = !are_code_lines_equal(texts, i, k);
                        row->before = first[0] + i++ - 1;
                        row->after = first[1] + k++ - 1;
                }
        }
}

static enum status align_code_pair(const struct code_side sides[2], struct code_pair *pair, struct work_meter *meter,
                                   struct code_alignment *a, struct error *err)
{
        const uint32_t ranges[2] = { pair->before, pair->after };
        struct source_lines texts[2] = { { .state = ST_OK }, { .state = ST_OK } };
        struct line_alignment lines = { 0 };
        uint32_t first[2] = { 0 };
        enum status st = ST_OK;

        for (unsigned side = 0; side < 2; side++) {
                texts[side].memory.use = MEMORY_QUERIES;
                buf_init_budget(&texts[side].text, LIMIT_DISASSEMBLY_ANSWER_BYTES, MEMORY_QUERIES);
                if (ranges[side] != NO_CODE)
                        first[side] = sides[side].code->ranges[ranges[side]].first;
                if (!st)
                        st = make_code_lines(&sides[side], ranges[side], meter, &texts[side], err);
        }
        if (!st)
                st = line_alignment_make(&texts[0], &texts[1], meter, &lines, err);
        if (!st) {
                pair->first = a->row_count;
                put_code_rows(&lines, texts, first, a);
                pair->count = a->row_count - pair->first;
        }
        line_alignment_deinit(&lines);
        source_lines_deinit(&texts[0]);
        source_lines_deinit(&texts[1]);
        return st;
}

/* ---- functions ---- */

/* The first range before of this name that has no partner yet, NO_CODE: none. */
static uint32_t find_named_range(const struct code_side *before, const char *name, const bool *is_taken)
{
        for (uint32_t i = 0; i < before->code->range_count; i++)
                if (!is_taken[i] && strcmp(before->range_names[i], name) == 0)
                        return i;
        return NO_CODE;
}

/* A function that is alone on both sides was renamed, or has no name. */
static void pair_single_ranges(struct code_alignment *a, bool *is_taken, uint32_t before_count)
{
        uint32_t before = NO_CODE, after = NO_CODE, before_left = 0, after_left = 0;

        for (uint32_t i = 0; i < before_count; i++)
                if (!is_taken[i]) {
                        before = i;
                        before_left++;
                }
        for (uint32_t i = 0; i < a->pair_count; i++)
                if (a->pairs[i].before == NO_CODE) {
                        after = i;
                        after_left++;
                }
        if (before_left != 1 || after_left != 1)
                return;
        a->pairs[after].before = before;
        is_taken[before] = true;
}

static void pair_ranges(const struct code_side sides[2], bool *is_taken, struct code_alignment *a)
{
        const uint32_t before_count = sides[0].code->range_count;

        for (uint32_t i = 0; i < sides[1].code->range_count; i++) {
                const uint32_t before = find_named_range(&sides[0], sides[1].range_names[i], is_taken);

                a->pairs[a->pair_count++] = (struct code_pair){ .before = before, .after = i };
                if (before != NO_CODE)
                        is_taken[before] = true;
        }
        pair_single_ranges(a, is_taken, before_count);
        for (uint32_t i = 0; i < before_count; i++)
                if (!is_taken[i])
                        a->pairs[a->pair_count++] = (struct code_pair){ .before = i, .after = NO_CODE };
}

enum status code_alignment_make(const struct code_side sides[2], struct work_meter *meter, struct code_alignment *ret,
                                struct error *err)
{
        const struct disassembly *before = sides[0].code, *after = sides[1].code;
        const size_t ranges = (size_t)before->range_count + after->range_count,
                     rows = (size_t)before->instruction_count + after->instruction_count;
        struct code_alignment a = { .memory.use = MEMORY_QUERIES };
        _cleanup_free_ bool *is_taken = NULL;
        enum status st = memory_resize(&a.memory, ranges * sizeof *a.pairs + rows * sizeof *a.rows, err);

        if (st)
                return st;
        is_taken = calloc(before->range_count + (size_t)1, sizeof *is_taken);
        a.pairs = calloc(ranges + 1, sizeof *a.pairs);
        a.rows = calloc(rows + 1, sizeof *a.rows);
        if (is_taken && a.pairs && a.rows)
                pair_ranges(sides, is_taken, &a);
        else
                st = error_no_memory(err);
        for (uint32_t i = 0; !st && i < a.pair_count; i++)
                st = align_code_pair(sides, &a.pairs[i], meter, &a, err);
        if (st)
                code_alignment_deinit(&a);
        else
                *ret = a;
        return st;
}
