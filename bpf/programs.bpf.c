/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names an address in the machine code of a BPF program: an iterator over all programs, which user space runs by
 * reading its descriptor. bpf_prog_get_info_by_fd() gives the same, but needs a descriptor of the program, for which
 * the kernel demands CAP_SYS_ADMIN; this needs what the sampler needs. Programs without BTF have no lines.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "bpf/code_place.h"

#define FUNCTIONS_MAX 256 /* BPF_MAX_SUBPROGS */
#define SEARCH_STEPS 20   /* of a program with at most a million instructions */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Written by user space before it reads, and read after it. */
volatile __u64 wanted_address;
struct bpf_code_place place;

/* The fields that are read; libbpf relocates them, as in bpf/kernel_types.h. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct btf_header {
        __u32 str_len;
};

struct btf {
        const char *strings;
        struct btf_header hdr;
};

struct bpf_ksym {
        unsigned long start, end;
        char name[BPF_CODE_NAME_BYTES];
};

struct bpf_prog_aux {
        __u32 func_cnt, linfo_idx, nr_linfo;
        struct bpf_prog **func;
        struct bpf_ksym ksym;
        struct btf *btf;
        struct bpf_line_info *linfo; /* of all functions, each one's in the order of its code */
        void **jited_linfo;          /* addresses of the same */
};

struct bpf_prog {
        struct bpf_prog_aux *aux;
};

struct bpf_iter__bpf_prog {
        struct bpf_prog *prog;
};

#pragma clang attribute pop

static __always_inline int covers_address(const struct bpf_prog_aux *aux, __u64 address)
{
        return address >= BPF_CORE_READ(aux, ksym.start) && address < BPF_CORE_READ(aux, ksym.end);
}

static __always_inline __u64 read_line_address(void **addresses, __u32 i)
{
        void *ret = 0;

        bpf_probe_read_kernel(&ret, sizeof ret, addresses + i);
        return (__u64)ret;
}

/* Set the line, and the range, of the last entry of [from, to) at or before the address. */
static __always_inline void find_line(const struct bpf_prog_aux *aux, __u32 from, __u32 to, __u64 address)
{
        void **addresses = BPF_CORE_READ(aux, jited_linfo);
        struct bpf_line_info line = { 0 };
        __u32 first = from, end = to;

        if (!addresses || from >= to || read_line_address(addresses, from) > address)
                return;
        for (int i = 0; i < SEARCH_STEPS && to - from > 1; i++) {
                __u32 middle = from + (to - from) / 2;

                if (read_line_address(addresses, middle) <= address)
                        from = middle;
                else
                        to = middle;
        }
        if (bpf_probe_read_kernel(&line, sizeof line, BPF_CORE_READ(aux, linfo) + from) || from < first ||
            line.file_name_off >= BPF_CORE_READ(aux, btf, hdr.str_len))
                return;
        place.start = read_line_address(addresses, from);
        if (from + 1 < end)
                place.end = read_line_address(addresses, from + 1);
        place.line = BPF_LINE_INFO_LINE_NUM(line.line_col);
        bpf_probe_read_kernel_str(place.file, sizeof place.file, BPF_CORE_READ(aux, btf, strings) + line.file_name_off);
}

/* @param of  the function; aux itself if the program has one only. @param end  of its lines */
static __always_inline void set_place(const struct bpf_prog_aux *aux, const struct bpf_prog_aux *of, __u32 end,
                                      __u64 address)
{
        place.found = 1;
        place.start = BPF_CORE_READ(of, ksym.start);
        place.end = BPF_CORE_READ(of, ksym.end);
        place.line = 0;
        place.file[0] = 0;
        bpf_probe_read_kernel_str(place.name, sizeof place.name, &of->ksym.name);
        find_line(aux, of == aux ? 0 : BPF_CORE_READ(of, linfo_idx), end, address);
}

static __always_inline const struct bpf_prog_aux *read_function(struct bpf_prog **functions, __u32 i)
{
        struct bpf_prog *function = 0;

        bpf_probe_read_kernel(&function, sizeof function, functions + i);
        return function ? BPF_CORE_READ(function, aux) : 0;
}

SEC("iter/bpf_prog")
int find_bpf_code(struct bpf_iter__bpf_prog *ctx)
{
        struct bpf_prog *program = ctx->prog;
        const struct bpf_prog_aux *aux = program ? BPF_CORE_READ(program, aux) : 0;
        __u32 count = aux ? BPF_CORE_READ(aux, func_cnt) : 0;
        struct bpf_prog **functions = aux ? BPF_CORE_READ(aux, func) : 0;
        __u64 address = wanted_address;

        if (!aux || place.found)
                return 0;
        if (!count || !functions) {
                if (covers_address(aux, address))
                        set_place(aux, aux, BPF_CORE_READ(aux, nr_linfo), address);
                return 0;
        }
        for (__u32 i = 0; i < FUNCTIONS_MAX && i < count; i++) {
                const struct bpf_prog_aux *of = read_function(functions, i), *next;

                if (!i && covers_address(aux, address)) /* the symbol of the first one is that of the program */
                        of = aux;
                if (!of || !covers_address(of, address))
                        continue;
                next = i + 1 < count ? read_function(functions, i + 1) : 0;
                set_place(aux, of, next ? BPF_CORE_READ(next, linfo_idx) : BPF_CORE_READ(aux, nr_linfo), address);
                return 0;
        }
        return 0;
}
