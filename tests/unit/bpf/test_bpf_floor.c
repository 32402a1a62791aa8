/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF programs use only features of Linux 5.15, independent of the kernel on which they are tested. Numbers of
 * helpers and of map types increase over time, so the last one of 5.15 is the limit. Source: include/uapi/linux/bpf.h
 * of v5.15; Documentation/bpf/standardization.
 */
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <string.h>

#include "bpf/sample.skel.h"
#include "tests/support/suite.h"

#define LAST_HELPER BPF_FUNC_task_pt_regs
#define LAST_MAP_TYPE BPF_MAP_TYPE_TASK_STORAGE
/* limit of the verifier; make check-kernels measures the instructions processed */
#define INSTRUCTIONS_MAX 1000000

static int suppress_log(enum libbpf_print_level level, const char *fmt, va_list args)
{
        (void)level, (void)fmt, (void)args;
        return 0;
}

static struct sample_bpf *open_programs(void)
{
        struct sample_bpf *bpf;

        libbpf_set_print(suppress_log);
        bpf = sample_bpf__open();
        ck_assert_ptr_nonnull(bpf);
        return bpf;
}

static void check_atomic(const char *name, size_t at, const struct bpf_insn *i)
{
        static const int known[] = { BPF_ADD, BPF_AND, BPF_OR, BPF_XOR, BPF_XCHG, BPF_CMPXCHG & ~BPF_FETCH };
        bool is_known = false;

        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
                is_known = is_known || (i->imm & ~BPF_FETCH) == (known[k] & ~BPF_FETCH);
        ck_assert_msg(is_known, "%s, instruction %zu: atomic operation %#x", name, at, (unsigned)i->imm);
}

/*
 * Newer instructions: sign-extending moves, loads and divisions, unconditional byte swaps, long jumps (all 6.6), kernel
 * functions.
 */
static void check_instruction(const char *name, size_t at, const struct bpf_insn *i)
{
        unsigned class = BPF_CLASS(i->code), op = BPF_OP(i->code);
        bool is_new = false;

        if (class == BPF_JMP && op == BPF_CALL) {
                ck_assert_msg(i->src_reg == 0 || i->src_reg == BPF_PSEUDO_CALL,
                              "%s, instruction %zu: a call of kind %d", name, at, i->src_reg);
                ck_assert_msg(i->src_reg || (i->imm > 0 && i->imm <= LAST_HELPER), "%s, instruction %zu: helper %d",
                              name, at, i->imm);
        }
        if (class == BPF_ALU || class == BPF_ALU64)
                is_new = i->off != 0 || (class == BPF_ALU64 && op == BPF_END);
        if (class == BPF_LDX)
                is_new = BPF_MODE(i->code) != BPF_MEM;
        if (class == BPF_JMP32)
                is_new = op == BPF_JA;
        ck_assert_msg(!is_new, "%s, instruction %zu: code %#x offset %d", name, at, i->code, i->off);
        if (class == BPF_STX && BPF_MODE(i->code) == BPF_ATOMIC)
                check_atomic(name, at, i);
}

START_TEST(programs_use_instructions_and_helpers_of_5_15)
{
        struct sample_bpf *bpf = open_programs();
        struct bpf_program *p;
        size_t count = 0;

        bpf_object__for_each_program(p, bpf->obj)
        {
                const struct bpf_insn *insns = bpf_program__insns(p);
                size_t n = bpf_program__insn_cnt(p);

                ck_assert_uint_gt(n, 0);
                for (size_t i = 0; i < n; i++) {
                        check_instruction(bpf_program__name(p), i, &insns[i]);
                        if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW))
                                i++; /* its second half has opcode 0 */
                }
                count += n;
        }
        ck_assert_uint_lt(count, INSTRUCTIONS_MAX);
        sample_bpf__destroy(bpf);
}
END_TEST

static void check_map(const struct bpf_map *m)
{
        const unsigned known = BPF_F_NO_PREALLOC | BPF_F_NO_COMMON_LRU | BPF_F_NUMA_NODE | BPF_F_RDONLY | BPF_F_WRONLY |
                               BPF_F_STACK_BUILD_ID | BPF_F_ZERO_SEED | BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG |
                               BPF_F_CLONE | BPF_F_MMAPABLE | BPF_F_PRESERVE_ELEMS | BPF_F_INNER_MAP;

        ck_assert_msg(bpf_map__type(m) <= LAST_MAP_TYPE, "map %s: type %d", bpf_map__name(m), bpf_map__type(m));
        ck_assert_msg(!(bpf_map__map_flags(m) & ~known), "map %s: flags %#x", bpf_map__name(m), bpf_map__map_flags(m));
        ck_assert_msg(!bpf_map__map_extra(m), "map %s", bpf_map__name(m));
}

START_TEST(maps_are_of_types_that_5_15_has)
{
        struct sample_bpf *bpf = open_programs();
        struct bpf_map *m;

        bpf_object__for_each_map(m, bpf->obj)
        {
                check_map(m);
                if (bpf_map__inner_map(m))
                        check_map(bpf_map__inner_map(m));
        }
        sample_bpf__destroy(bpf);
}
END_TEST

START_TEST(programs_are_of_types_that_5_15_has)
{
        struct sample_bpf *bpf = open_programs();
        struct bpf_program *p;

        bpf_object__for_each_program(p, bpf->obj)
        {
                enum bpf_prog_type type = bpf_program__type(p);

                ck_assert_msg(type == BPF_PROG_TYPE_PERF_EVENT || type == BPF_PROG_TYPE_RAW_TRACEPOINT ||
                                      (type == BPF_PROG_TYPE_TRACING &&
                                       bpf_program__expected_attach_type(p) == BPF_TRACE_RAW_TP), /* 5.5 */
                              "%s: type %d", bpf_program__name(p), type);
                ck_assert_msg(!bpf_program__flags(p), "%s: flags %#x", bpf_program__name(p), bpf_program__flags(p));
        }
        sample_bpf__destroy(bpf);
}
END_TEST

TEST_SUITE("bpf-floor", programs_use_instructions_and_helpers_of_5_15, maps_are_of_types_that_5_15_has,
           programs_are_of_types_that_5_15_has)
