/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/samplers/perf_record.h"

#include <linux/perf_event.h>
#include <string.h>

#include "common/reader.h"

#define TRAILER_BYTES 16 /* sample_id_all: pid, tid, time */

static bool parse_pid_pair(struct reader *r, uint32_t *first, uint32_t *second)
{
        return reader_u32(r, first) && reader_u32(r, second);
}

#if defined(__x86_64__)
/*
 * SYSCALL stores its return address in rcx and the flags in r11, and the kernel saves them so; any other kernel
 * entry preserves the values of the program.
 */
static bool parse_syscall_registers(struct reader *r, bool *ret)
{
        uint64_t abi, cx, ip, flags, r11;

        if (!reader_u64(r, &abi))
                return false;
        if (abi == PERF_SAMPLE_REGS_ABI_NONE)
                return true;
        if (!reader_u64(r, &cx) || !reader_u64(r, &ip) || !reader_u64(r, &flags) || !reader_u64(r, &r11))
                return false;
        *ret = cx == ip && r11 == flags;
        return true;
}
#else
/* The registers are not conclusive; most kernel time of a program is in system calls. */
static bool parse_syscall_registers(struct reader *r, bool *ret)
{
        (void)r;
        *ret = true;
        return true;
}
#endif

#if defined(__x86_64__)
static bool parse_all_registers(struct reader *r, struct perf_record *ret)
{
        struct arch_regs *to = &ret->registers;
        uint64_t abi;
        uint64_t v[19];
        __u64 *const order[] = { &to->rax, &to->rbx, &to->rcx,    &to->rdx, &to->rsi, &to->rdi, &to->rbp,
                                 &to->rsp, &to->rip, &to->eflags, &to->cs,  &to->r8,  &to->r9,  &to->r10,
                                 &to->r11, &to->r12, &to->r13,    &to->r14, &to->r15 };

        if (!reader_u64(r, &abi))
                return false;
        if (abi == PERF_SAMPLE_REGS_ABI_NONE)
                return true;
        for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
                if (!reader_u64(r, &v[i]))
                        return false;
                *order[i] = v[i];
        }
        ret->has_registers = abi == PERF_SAMPLE_REGS_ABI_64;
        ret->in_syscall = to->rcx == to->rip && to->r11 == to->eflags;
        return true;
}
#else
static bool parse_all_registers(struct reader *r, struct perf_record *ret)
{
        uint64_t abi, v;

        if (!reader_u64(r, &abi))
                return false;
        if (abi == PERF_SAMPLE_REGS_ABI_NONE)
                return true;
        for (size_t i = 0; i < 33; i++) {
                if (!reader_u64(r, &v))
                        return false;
                if (i < 31)
                        ret->registers.x[i] = v;
                else if (i == 31)
                        ret->registers.sp = v;
                else
                        ret->registers.pc = v;
        }
        ret->has_registers = abi == PERF_SAMPLE_REGS_ABI_64;
        ret->in_syscall = true; /* see parse_syscall_registers() */
        return true;
}
#endif

/* The copy has the requested length; the last word is the number of valid bytes. */
static bool parse_user_stack(struct reader *r, struct perf_record *ret)
{
        uint64_t size, used;

        if (!parse_all_registers(r, ret) || !reader_u64(r, &size))
                return false;
        if (!size)
                return true;
        if (!reader_bytes(r, size, &ret->stack) || !reader_u64(r, &used))
                return false;
        ret->stack_bytes = used < size ? used : size;
        return true;
}

static bool parse_sample_record(struct reader *r, enum perf_record_user user, struct perf_record *ret)
{
        uint64_t size;

        ret->kind = PERF_RECORD_OF_SAMPLE;
        if (!parse_pid_pair(r, &ret->tgid, &ret->tid) || !reader_u64(r, &ret->time_ns) ||
            !reader_u64(r, &ret->chain_count))
                return false;
        if (__builtin_mul_overflow(ret->chain_count, (uint64_t)sizeof(uint64_t), &size))
                size = UINT64_MAX; /* cannot fit */
        if (!reader_bytes(r, size, &ret->chain))
                return false;
        return user == PERF_RECORD_USER_STACK     ? parse_user_stack(r, ret)
               : user == PERF_RECORD_USER_SYSCALL ? parse_syscall_registers(r, &ret->in_syscall)
                                                  : true;
}

static bool parse_task_record(struct reader *r, enum perf_record_kind kind, struct perf_record *ret)
{
        ret->kind = kind;
        return reader_u32(r, &ret->tgid) && reader_u32(r, &ret->parent_tgid) && reader_u32(r, &ret->tid) &&
               reader_u32(r, &ret->parent_tid) && reader_u64(r, &ret->time_ns);
}

static bool parse_comm_record(struct reader *r, bool exec, struct perf_record *ret)
{
        const char *comm;

        ret->kind = exec ? PERF_RECORD_OF_EXEC : PERF_RECORD_OF_COMM;
        if (!parse_pid_pair(r, &ret->tgid, &ret->tid) || !reader_cstr(r, &comm))
                return false;
        memcpy(ret->comm, comm, strnlen(comm, SAMPLE_COMM_SIZE - 1));
        return true;
}

static bool parse_lost_record(struct reader *r, bool with_id, struct perf_record *ret)
{
        ret->kind = PERF_RECORD_OF_LOSS;
        return (!with_id || reader_skip(r, 8)) && reader_u64(r, &ret->lost);
}

/* Trailer of every record type except samples. */
static bool parse_sample_id(const uint8_t *bytes, size_t n, uint64_t *time_ret)
{
        struct reader r;
        uint32_t tgid, tid;

        if (n < sizeof(struct perf_event_header) + TRAILER_BYTES)
                return false;
        reader_init(&r, bytes + n - TRAILER_BYTES, TRAILER_BYTES);
        return parse_pid_pair(&r, &tgid, &tid) && reader_u64(&r, time_ret);
}

enum status perf_record_parse(const void *bytes, size_t n, enum perf_record_user user, struct perf_record *ret,
                              struct error *err)
{
        struct perf_record record = { .kind = PERF_RECORD_OF_NOTHING };
        struct reader r;
        uint32_t type;
        uint16_t misc, size;
        bool good;

        reader_init(&r, bytes, n);
        if (!reader_u32(&r, &type) || !reader_u16(&r, &misc) || !reader_u16(&r, &size))
                return reader_error(&r, err, "a perf record");
        if (size != n)
                return error_set(err, ST_BAD_DATA, "a perf record of %zu bytes claims %u", n, size);
        switch (type) {
        case PERF_RECORD_SAMPLE:
                good = parse_sample_record(&r, user, &record);
                break;
        case PERF_RECORD_FORK:
                good = parse_task_record(&r, PERF_RECORD_OF_FORK, &record);
                break;
        case PERF_RECORD_EXIT:
                good = parse_task_record(&r, PERF_RECORD_OF_EXIT, &record);
                break;
        case PERF_RECORD_COMM:
                good = parse_comm_record(&r, misc & PERF_RECORD_MISC_COMM_EXEC, &record);
                break;
        case PERF_RECORD_MMAP2:
                record.kind = PERF_RECORD_OF_MAPPING; /* its details are read from /proc */
                good = parse_pid_pair(&r, &record.tgid, &record.tid);
                break;
        case PERF_RECORD_LOST:
                good = parse_lost_record(&r, true, &record);
                break;
        case PERF_RECORD_LOST_SAMPLES:
                good = parse_lost_record(&r, false, &record);
                break;
        default:
                good = true;
                break;
        }
        if (good && type != PERF_RECORD_SAMPLE)
                good = parse_sample_id(bytes, n, &record.time_ns);
        if (!good)
                return error_set(err, ST_BAD_DATA, "a perf record of type %u and %zu bytes is truncated", type, n);
        *ret = record;
        return ST_OK;
}

void perf_record_split_chain(const struct perf_record *r, struct sample_frames *kernel_ret,
                             struct sample_frames *user_ret)
{
        struct sample_frames *half = NULL;

        kernel_ret->frame_count = user_ret->frame_count = 0;
        kernel_ret->end = user_ret->end = SAMPLE_END_UNKNOWN;
        for (uint64_t i = 0; i < r->chain_count; i++) {
                uint64_t addr;

                memcpy(&addr, r->chain + i * sizeof addr, sizeof addr);
                if (addr >= (uint64_t)PERF_CONTEXT_MAX)
                        half = addr == (uint64_t)PERF_CONTEXT_KERNEL ? kernel_ret
                               : addr == (uint64_t)PERF_CONTEXT_USER ? user_ret
                                                                     : NULL;
                else if (half && half->frame_count < SAMPLE_STACK_MAX)
                        half->frames[half->frame_count++] = half == user_ret ? sample_frame_pack_native(addr, 0) : addr;
        }
}
