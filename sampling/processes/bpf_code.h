/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_BPF_CODE_H
#define CAIRN_SAMPLING_PROCESSES_BPF_CODE_H

/**
 * @file
 * Functions and source lines of the BPF programs that the kernel runs.
 *
 * /proc/kallsyms has the names of programs, but reading it takes tens of milliseconds, and programs come and go;
 * it has no lines. A lookup asks the kernel (bpf/programs.bpf.c) and costs some microseconds for each loaded program,
 * once for each line. Results are kept until bpf_code_forget(), since another program may have the address later.
 *
 * Requires CAP_BPF and CAP_PERFMON when opened, and CAP_BPF for lookups. Kernel 5.9.
 * Threads: one thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#include "bpf/code_place.h"
#include "common/error.h"
#include "common/hash/id_table.h"

struct bpf_code {
        struct programs_bpf *bpf; /* owned; NULL: closed */
        struct bpf_link *link;    /* owned */
        struct id_table by_address;
        struct bpf_code_place *places; /* owned; results since bpf_code_forget() */
        size_t count, capacity;
};

/** @return ST_OK; ST_OS: the kernel refuses the program, and there is nothing to close. */
enum status bpf_code_open(struct bpf_code *ret, struct error *err) MUST_CHECK;
/** Zeroed ones may be closed, too. */
void bpf_code_close(struct bpf_code *c);

/**
 * The function of a BPF program at an address; NULL when no program has it, or past LIMIT_AGENT_BPF_LOOKUPS.
 * Borrowed until the next call.
 */
const struct bpf_code_place *bpf_code_find(struct bpf_code *c, uint64_t address);

/** Ask again for each address from now on. */
void bpf_code_forget(struct bpf_code *c);

#endif
