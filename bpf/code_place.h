/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_CODE_PLACE_H
#define CAIRN_BPF_CODE_PLACE_H

/* Shared by bpf/programs.bpf.c and user space. Its types are those of linux/types.h, or of linux/bpf.h. */

/* KSYM_NAME_LEN; newer kernels have room for 512, but make names of at most 24 + 128. */
#define BPF_CODE_NAME_BYTES 128
#define BPF_CODE_FILE_BYTES 256

/** The function of a BPF program that has an address. */
struct bpf_code_place {
        __u64 start, end; /* of the code with the same function and line, around the address */
        __u32 found;
        __u32 line;                     /* 0: the program has no lines */
        char name[BPF_CODE_NAME_BYTES]; /* its symbol, as in /proc/kallsyms */
        char file[BPF_CODE_FILE_BYTES]; /* as the compiler was given it; "" without lines */
};

#endif
