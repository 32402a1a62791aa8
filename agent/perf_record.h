/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_PERF_RECORD_H
#define CAIRN_AGENT_PERF_RECORD_H

/**
 * @file
 * One record of a perf ring buffer, for events opened by agent/perf_event.h.
 *
 * Threads: any.
 * Source: perf_event_open(2), "Ring buffer layout"; include/uapi/linux/perf_event.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler.h"
#include "common/error.h"

enum perf_record_kind {
        PERF_RECORD_OF_SAMPLE,
        PERF_RECORD_OF_FORK,    /* a thread or a process was born and inherited the event */
        PERF_RECORD_OF_EXIT,    /* the event left this thread: no record of it follows */
        PERF_RECORD_OF_COMM,    /* the thread has another name */
        PERF_RECORD_OF_EXEC,    /* it runs another program, and has that program's name */
        PERF_RECORD_OF_MAPPING, /* it has a new executable mapping */
        PERF_RECORD_OF_LOSS,
        PERF_RECORD_OF_NOTHING, /* a kind that nobody here asks for */
};

struct perf_record {
        enum perf_record_kind kind;
        uint32_t tgid, tid;   /* whom it is about: the child of a fork */
        uint32_t parent_tgid, parent_tid; /* of a fork */
        uint64_t time_ns;     /* monotonic; 0 when unknown */
        uint64_t lost;        /* records that found no room */
        char comm[SAMPLE_COMM_SIZE];
        const uint8_t *chain; /* borrowed from the record: chain_count addresses and context marks */
        uint64_t chain_count;
        bool in_syscall;      /* the registers tell that the user half is at a system call */
        bool has_registers;   /* of a 64-bit process; then these */
        struct arch_regs registers;
        const uint8_t *stack; /* borrowed from the record: from the stack pointer upwards */
        uint64_t stack_bytes;
};

/** What of the user half a sample has beside its call chain, as agent/perf_event.c asks for it. */
enum perf_record_user {
        PERF_RECORD_USER_NOTHING,
        PERF_RECORD_USER_SYSCALL, /* the registers that tell a system call */
        PERF_RECORD_USER_STACK,   /* PERF_RECORD_ALL_REGISTERS and a copy of the stack */
};

#if defined(__x86_64__)
#define PERF_RECORD_ALL_REGISTERS 0xff07ffull /* ax bx cx dx si di bp sp ip flags cs, r8 to r15; asm/perf_regs.h */
#else
#define PERF_RECORD_ALL_REGISTERS 0x1ffffffffull /* x0 to x29, lr, sp, pc */
#endif

/**
 * @param bytes      one whole record, header included.
 * @return ST_OK; ST_BAD_DATA when the record is shorter than what it says it holds.
 */
enum status perf_record_parse(const void *bytes, size_t n, enum perf_record_user user, struct perf_record *ret,
                              struct error *err) MUST_CHECK;

/**
 * Cut a sample's call chain at its context marks. What lies past SAMPLE_STACK_MAX
 * in a half is left out, and so are a hypervisor's and a guest's addresses.
 */
void perf_record_stacks(const struct perf_record *r, struct sample_walk *kernel_ret, struct sample_walk *user_ret);

#endif
