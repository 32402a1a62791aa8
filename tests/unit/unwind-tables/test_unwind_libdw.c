/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares unwind tables with libdw's CFI: both compute the caller's CFA, frame pointer and return address from the
 * same registers and the same random memory, at the start, the middle and the last byte of each row of either, and at
 * both edges of every function.
 *
 *     test_unwind_libdw [FILE...]     default: this program and libraries that it uses
 *
 * Prints a line per file and the totals; files that are not ELF files of this architecture are skipped.
 */
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "unwind-tables/cfi_source.h"
#include "unwind-tables/unwind_table.h"
#include "unwind-tables/unwind_step.h"

#define ROWS_PER_UNKNOWN 1000 /* at most one row in this many may be unknown */
#define SHOWN 5

struct answer {
        enum unwind_status status; /* UNWIND_STEPPED: the values are set */
        uint64_t cfa, fp, ra;
};

struct sums {
        uint64_t files, rows, functions, addresses, differ, ours_only, by_layout, unknown[UNWIND_REASON_COUNT];
};

struct pair {
        const char *path;
        struct elf_image img;
        struct cfi_source source;
        struct unwind_table t;
        Dwarf_CFI *eh,
                *debug; /* through libdwfl, which applies the ABI's rules for registers not mentioned in the CFI */
        Dwarf_Addr eh_bias, debug_bias, bias;
        struct sums *sums;
};

static struct unwind_rules rules;

static uint64_t mix(uint64_t v)
{
        v = (v ^ (v >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
        return v ^ (v >> 29);
}

static int read_memory(void *ctx, __u64 addr, __u64 *ret)
{
        (void)ctx;
        *ret = mix(addr);
        return 0;
}

static struct unwind_regs registers(uint64_t pc)
{
        struct unwind_regs regs = { .pc = pc,
                                    .sp = 0x7ffe00001000,
                                    .fp = 0x7ffe00012340,
                                    .lr = 0x55550000aaaa,
                                    .code_mask = UINT64_MAX,
                                    .scratch_known = 1 };

        for (size_t i = 0; i < UNWIND_SCRATCH_MAX; i++)
                regs.scratch[i] = mix(i + 1000);
        return regs;
}

static uint64_t register_value(const struct pair *p, const struct unwind_regs *regs, uint64_t number)
{
        const struct cfi_arch *arch = p->source.arch;

        if (number == arch->sp)
                return regs->sp;
        if (number == arch->fp)
                return regs->fp;
        if (number == arch->ra)
                return arch->ra_is_register ? regs->lr : regs->pc;
        return number < UNWIND_SCRATCH_MAX ? regs->scratch[number] : mix(number);
}

/* A small DWARF expression evaluator: false for an unsupported operation. */
static bool evaluate(const struct pair *p, const struct unwind_regs *regs, uint64_t cfa, const Dwarf_Op *ops, size_t n,
                     bool *is_value, uint64_t *ret)
{
        uint64_t stack[32] = { 0 };
        size_t depth = 0;

        *is_value = false;
        for (size_t i = 0; i < n; i++) {
                const Dwarf_Op *op = &ops[i];

                if (depth > 30)
                        return false;
                if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
                        stack[depth++] = register_value(p, regs, op->atom - DW_OP_breg0) + op->number;
                        continue;
                }
                if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
                        stack[depth++] = register_value(p, regs, op->atom - DW_OP_reg0);
                        *is_value = true;
                        continue;
                }
                if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
                        stack[depth++] = op->atom - DW_OP_lit0;
                        continue;
                }
                switch (op->atom) {
                case DW_OP_call_frame_cfa:
                        stack[depth++] = cfa;
                        continue;
                case DW_OP_bregx:
                        stack[depth++] = register_value(p, regs, op->number) + op->number2;
                        continue;
                case DW_OP_regx:
                        stack[depth++] = register_value(p, regs, op->number);
                        *is_value = true;
                        continue;
                case DW_OP_stack_value:
                        *is_value = true;
                        continue;
                default:
                        break;
                }
                if (depth < 1)
                        return false;
                if (op->atom == DW_OP_plus_uconst) {
                        stack[depth - 1] += op->number;
                        continue;
                }
                if (op->atom == DW_OP_deref) {
                        stack[depth - 1] = mix(stack[depth - 1]);
                        continue;
                }
                if (depth < 2)
                        return false;
                depth--;
                switch (op->atom) {
                case DW_OP_plus:
                        stack[depth - 1] += stack[depth];
                        break;
                case DW_OP_mul:
                        stack[depth - 1] *= stack[depth];
                        break;
                case DW_OP_and:
                        stack[depth - 1] &= stack[depth];
                        break;
                case DW_OP_ge:
                        stack[depth - 1] = (int64_t)stack[depth - 1] >= (int64_t)stack[depth];
                        break;
                case DW_OP_shl:
                        stack[depth - 1] <<= stack[depth] & 63;
                        break;
                default:
                        return false;
                }
        }
        if (depth == 0)
                return false;
        *ret = stack[depth - 1];
        return true;
}

/* The caller's value of a register. */
static enum unwind_status libdw_register(const struct pair *p, const struct unwind_regs *regs, Dwarf_Frame *frame,
                                         int number, uint64_t cfa, uint64_t *ret)
{
        Dwarf_Op memory[3], *ops;
        bool is_value;
        size_t n;

        if (dwarf_frame_register(frame, number, memory, &ops, &n) != 0)
                return UNWIND_UNKNOWN_RULE;
        if (n == 0 && ops) { /* undefined; NULL: unchanged */
                *ret = 0;
                return UNWIND_DONE;
        }
        if (n == 0) {
                *ret = register_value(p, regs, (uint64_t)number);
                return UNWIND_STEPPED;
        }
        if (!evaluate(p, regs, cfa, ops, n, &is_value, ret))
                return UNWIND_UNKNOWN_RULE;
        if (!is_value)
                *ret = mix(*ret);
        return UNWIND_STEPPED;
}

/* sp_differs: libdw's sp of the caller is not the CFA. */
static struct answer step_with_libdw(const struct pair *p, uint64_t pc, uint64_t *end_ret, bool *sp_differs)
{
        struct answer a = { .status = UNWIND_NO_RULE };
        struct unwind_regs regs = registers(pc);
        Dwarf_Frame *frame = NULL;
        Dwarf_Addr start, end;
        Dwarf_Op *ops;
        bool is_value, is_signal;
        uint64_t sp, bias;
        size_t n;
        int ra;

        *sp_differs = false;
        if (p->eh && dwarf_cfi_addrframe(p->eh, pc + p->bias - p->eh_bias, &frame) == 0)
                bias = p->eh_bias;
        else if (p->debug && dwarf_cfi_addrframe(p->debug, pc + p->bias - p->debug_bias, &frame) == 0)
                bias = p->debug_bias;
        else
                return a;
        ra = dwarf_frame_info(frame, &start, &end, &is_signal);
        *end_ret = end + bias - p->bias;
        a.status = UNWIND_UNKNOWN_RULE;
        if (libdw_register(p, &regs, frame, ra, 0, &a.ra) == UNWIND_DONE) {
                a.status = UNWIND_DONE;
        } else if (dwarf_frame_cfa(frame, &ops, &n) == 0 && n && evaluate(p, &regs, 0, ops, n, &is_value, &a.cfa)) {
                enum unwind_status st = libdw_register(p, &regs, frame, (int)p->source.arch->fp, a.cfa, &a.fp);

                a.status = libdw_register(p, &regs, frame, ra, a.cfa, &a.ra);
                if (st == UNWIND_UNKNOWN_RULE)
                        a.status = st;
                *sp_differs = libdw_register(p, &regs, frame, (int)p->source.arch->sp, a.cfa, &sp) != UNWIND_STEPPED ||
                              sp != a.cfa;
        }
        free(frame);
        return a;
}

static struct answer step_with_table(const struct pair *p, uint64_t pc, const struct unwind_rule **rule_ret)
{
        struct answer a = { .status = UNWIND_NO_RULE };
        struct unwind_regs regs = registers(pc);
        const struct unwind_row *row;

        *rule_ret = &rules.items[UNWIND_RULE_GAP];
        if (unwind_table_find(&p->t, pc, &row))
                return a;
        *rule_ret = &rules.items[row->rule];
        a.status = unwind_apply(&regs, *rule_ret, read_memory, NULL);
        if (a.status == UNWIND_STEPPED) {
                a.cfa = regs.sp;
                a.fp = regs.fp;
                a.ra = regs.pc;
        }
        return a;
}

/* Returns the end of libdw's row, 0 if there is none. */
static uint64_t compare(struct pair *p, uint64_t pc)
{
        const struct unwind_rule *rule;
        struct answer ours = step_with_table(p, pc, &rule), theirs;
        uint64_t end = 0;
        bool sp_differs;

        theirs = step_with_libdw(p, pc, &end, &sp_differs);
        p->sums->addresses++;
        if (ours.status == UNWIND_UNKNOWN_RULE)
                return end;
        if (rule->cfa == UNWIND_CFA_DEREF && (rule->flags & UNWIND_FLAG_SIGNAL_LR)) {
                p->sums->by_layout++;
                return end;
        }
        if (p->t.is_go && ((theirs.status == UNWIND_NO_RULE && rule == &rules.items[UNWIND_RULE_GO]) ||
                           (rule->flags & UNWIND_FLAG_SIGNAL))) {
                p->sums->ours_only++;
                return end;
        }
        if (theirs.status == UNWIND_NO_RULE && (ours.status == UNWIND_DONE || (rule->flags & UNWIND_FLAG_SIGNAL))) {
                p->sums->ours_only++;
                return end;
        }
        /*
         * The CIE specifies another return address column; libdw follows the ABI, in which calls overwrite that
         * register.
         */
        if (theirs.status == UNWIND_DONE && rule->ra == UNWIND_IN_REGISTER && p->source.arch->ra_is_register) {
                p->sums->ours_only++;
                return end;
        }
        if (ours.status == theirs.status &&
            (ours.status != UNWIND_STEPPED ||
             (ours.cfa == theirs.cfa && ours.fp == theirs.fp && ours.ra == theirs.ra && !sp_differs)))
                return end;
        if (p->sums->differ++ < SHOWN)
                printf("# %s 0x%" PRIx64 ": ours %d cfa %" PRIx64 " fp %" PRIx64 " ra %" PRIx64
                       ", libdw %d cfa %" PRIx64 " fp %" PRIx64 " ra %" PRIx64 "%s\n",
                       p->path, pc, ours.status, ours.cfa, ours.fp, ours.ra, theirs.status, theirs.cfa, theirs.fp,
                       theirs.ra, sp_differs ? " sp differs" : "");
        return end;
}

static void compare_range(struct pair *p, uint64_t start, uint64_t end)
{
        compare(p, start);
        if (end - start > 2)
                compare(p, start + (end - start) / 2);
        if (end - start > 1)
                compare(p, end - 1);
}

static void compare_all(struct pair *p)
{
        for (size_t i = 0; i < p->source.fde_count; i++) { /* rows of libdw */
                const struct cfi_fde *fde = &p->source.fdes[i];
                uint64_t pc = fde->start;

                compare(p, fde->start - 1);
                while (pc < fde->end) {
                        uint64_t end = compare(p, pc);

                        if (end <= pc || end > fde->end)
                                break;
                        compare_range(p, pc, end);
                        pc = end;
                }
                compare(p, fde->end);
        }
        for (size_t i = 0; i < p->t.page_count; i++) { /* rows of Cairn */
                const struct unwind_page *page = &p->t.pages[i];
                uint64_t base = page->number << UNWIND_PAGE_BITS;

                for (uint32_t k = 0; k < page->row_count; k++) {
                        const struct unwind_row *row = &p->t.rows[page->first_row + k];
                        uint64_t end = k + 1 < page->row_count ? row[1].offset : UNWIND_PAGE_SIZE;

                        compare_range(p, base + row->offset, base + end);
                }
        }
}

/* Only the file, not the debuginfo installed for it. */
static int no_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, const char *file,
                        const char *link, GElf_Word crc, char **ret)
{
        (void)module, (void)user, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)ret;
        return -1;
}

static const Dwfl_Callbacks CALLBACKS = { .find_elf = dwfl_build_id_find_elf,
                                          .find_debuginfo = no_debuginfo,
                                          .section_address = dwfl_offline_section_address };

static bool run(const char *path, struct sums *sums)
{
        struct pair p = { .path = path, .sums = sums };
        struct error err = { 0 };
        uint64_t differ = sums->differ;
        enum status st = elf_image_open(path, &p.img, &err);
        Dwfl *dwfl = NULL;
        Dwfl_Module *module;

        if (!st)
                st = cfi_source_open(&p.img, &p.source, &err);
        if (!st)
                st = unwind_table_build_from_cfi(&p.source, &p.img, &rules, &p.t, &err);
        if (!st && p.source.fde_count) {
                dwfl = dwfl_begin(&CALLBACKS);
                module = dwfl_report_offline(dwfl, path, path, -1);
                dwfl_report_end(dwfl, NULL, NULL);
                if (module && dwfl_module_getelf(module, &p.bias)) {
                        p.eh = dwfl_module_eh_cfi(module, &p.eh_bias);
                        p.debug = dwfl_module_dwarf_cfi(module, &p.debug_bias);
                        compare_all(&p);
                }
                dwfl_end(dwfl);
                sums->files++;
                sums->rows += p.t.row_count;
                sums->functions += p.t.stats.functions;
                for (size_t i = 0; i < UNWIND_REASON_COUNT; i++)
                        sums->unknown[i] += p.t.stats.unknown_rows[i];
                printf("# %s: %zu functions, %zu rows, %" PRIu64 " unknown, %" PRIu64 " differ\n", path,
                       p.source.fde_count, p.t.row_count, unwind_stats_count_unknown(&p.t.stats),
                       sums->differ - differ);
        } else if (st != ST_UNSUPPORTED && st != ST_OK) {
                printf("# %s\n", err.text);
        }
        unwind_table_deinit(&p.t);
        cfi_source_deinit(&p.source);
        elf_image_close(&p.img);
        return st == ST_OK || st == ST_UNSUPPORTED;
}

static const char *file_of(void *function)
{
        Dl_info info;

        return dladdr(function, &info) ? info.dli_fname : "/proc/self/exe";
}

int main(int argc, char **argv)
{
        const char *own[] = { "/proc/self/exe", file_of((void *)fopen), file_of((void *)dwarf_begin_elf) };
        const char **files = argc > 1 ? (const char **)(argv + 1) : own;
        size_t count = argc > 1 ? (size_t)argc - 1 : sizeof own / sizeof *own;
        struct sums sums = { 0 };
        uint64_t unknown = 0;
        bool opened = true;

        if (unwind_rules_init(&rules, NULL))
                return 1;
        for (size_t i = 0; i < count; i++)
                opened &= run(files[i], &sums);
        for (size_t i = 1; i < UNWIND_REASON_COUNT; i++) {
                unknown += sums.unknown[i];
                if (sums.unknown[i])
                        printf("# unknown because of %s: %" PRIu64 " rows\n", unwind_reason_to_text(i),
                               sums.unknown[i]);
        }
        printf("# %" PRIu64 " files, %" PRIu64 " functions, %" PRIu64 " rows, %zu rules in all, %" PRIu64
               " addresses compared\n",
               sums.files, sums.functions, sums.rows, rules.count, sums.addresses);
        printf("# %" PRIu64 " differ, %" PRIu64 " known to us only, %" PRIu64 " signal frames by their layout, %" PRIu64
               " unknown rows\n",
               sums.differ, sums.ours_only, sums.by_layout, unknown);
        printf("%s 1 - every file can be read\n", opened ? "ok" : "not ok");
        printf("%s 2 - there is something to compare\n", sums.addresses ? "ok" : "not ok");
        printf("%s 3 - the tables say what libdw says\n", sums.differ ? "not ok" : "ok");
        printf("%s 4 - fewer than one row in %d is unknown\n", unknown * ROWS_PER_UNKNOWN < sums.rows ? "ok" : "not ok",
               ROWS_PER_UNKNOWN);
        printf("1..4\n");
        unwind_rules_deinit(&rules);
        return !opened || !sums.addresses || sums.differ || unknown * ROWS_PER_UNKNOWN >= sums.rows;
}
