/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_PERF_RECORD_H
#define CAIRN_SAMPLING_SAMPLERS_PERF_RECORD_H

/**
 * @file
 * Parser of one record of a perf ring buffer, for events opened by
 * sampling/samplers/perf_event.h.
 *
 * Threads: any.
 * Source: perf_event_open(2), "Ring buffer layout";
 * include/uapi/linux/perf_event.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "sampling/samplers/sampler.h"

enum perf_record_kind {
        PERF_RECORD_OF_SAMPLE,
        PERF_RECORD_OF_FORK,    /* a thread or process started and inherited the event */
        PERF_RECORD_OF_EXIT,    /* the event left this thread: no further records of it */
        PERF_RECORD_OF_COMM,    /* the thread was renamed */
        PERF_RECORD_OF_EXEC,    /* the process executed another program and was renamed */
        PERF_RECORD_OF_MAPPING, /* it has a new executable mapping */
        PERF_RECORD_OF_LOSS,
        PERF_RECORD_OF_NOTHING, /* any other type */
};

struct perf_record {
        enum perf_record_kind kind;
        uint32_t tgid, tid;               /* the subject: of a fork, the child */
        uint32_t parent_tgid, parent_tid; /* of a fork */
        uint64_t time_ns;                 /* monotonic; 0 when unknown */
        uint64_t lost;                    /* records dropped by the kernel */
        char comm[SAMPLE_COMM_SIZE];
        const uint8_t *chain; /* borrowed from the record: chain_count addresses and context markers */
        uint64_t chain_count;
        bool in_syscall;    /* according to the registers, the user half is at a system call */
        bool has_registers; /* of a 64-bit process: registers is set */
        struct arch_regs registers;
        const uint8_t *stack; /* borrowed from the record: from the stack pointer upwards */
        uint64_t stack_bytes;
};

/** User data of a sample besides its call chain, as requested by sampling/samplers/perf_event.c. */
enum perf_record_user {
        PERF_RECORD_USER_NOTHING,
        PERF_RECORD_USER_SYSCALL, /* the registers that identify a system call */
        PERF_RECORD_USER_STACK,   /* PERF_RECORD_ALL_REGISTERS and a copy of the stack */
};

#if defined(__x86_64__)
#define PERF_RECORD_ALL_REGISTERS 0xff07ffull /* ax bx cx dx si di bp sp ip flags cs, r8 to r15; asm/perf_regs.h */
#else
#define PERF_RECORD_ALL_REGISTERS 0x1ffffffffull /* x0 to x29, lr, sp, pc */
#endif

/**
 * @param bytes  one complete record, header included.
 * @return ST_OK; ST_BAD_DATA when the record is shorter than its contents.
 */
enum status perf_record_parse(const void *bytes, size_t n, enum perf_record_user user, struct perf_record *ret,
                              struct error *err) MUST_CHECK;

/**
 * Split a sample's call chain at its context markers. Frames past SAMPLE_STACK_MAX of a half are
 * dropped, and so are hypervisor and guest addresses.
 */
void perf_record_split_chain(const struct perf_record *r, struct sample_frames *kernel_ret,
                             struct sample_frames *user_ret);

#endif
