/* SPDX-License-Identifier: Apache-2.0 */
/* Records of perf events, complete, truncated and invalid, and the ring buffer that contains them. */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "sampling/samplers/perf_record.h"
#include "sampling/samplers/perf_ring.h"
#include "sampling/samplers/sample_counts.h"
#include "tests/support/suite.h"

#define RING_BYTES 256

static struct perf_event_mmap_page page;
static _Alignas(8) uint8_t data[RING_BYTES];
static struct perf_ring ring;

struct made {
        uint8_t bytes[8 * (SAMPLE_STACK_MAX + 64)];
        size_t size;
};

static void put(struct made *m, const void *v, size_t n)
{
        memcpy(m->bytes + m->size, v, n);
        m->size += n;
}

static void put_u32(struct made *m, uint32_t v)
{
        put(m, &v, sizeof v);
}

static void put_u64(struct made *m, uint64_t v)
{
        put(m, &v, sizeof v);
}

static void begin(struct made *m, uint32_t type, uint16_t misc)
{
        const struct perf_event_header h = { .type = type, .misc = misc };

        m->size = 0;
        put(m, &h, sizeof h);
}

static void end(struct made *m)
{
        const uint16_t size = (uint16_t)m->size;

        memcpy(m->bytes + offsetof(struct perf_event_header, size), &size, sizeof size);
}

static void trailer(struct made *m, uint64_t time_ns)
{
        put_u32(m, 7);
        put_u32(m, 8);
        put_u64(m, time_ns);
        end(m);
}

static struct made sample(const uint64_t *chain, uint64_t count, uint64_t said)
{
        struct made m;

        begin(&m, PERF_RECORD_SAMPLE, 0);
        put_u32(&m, 70);
        put_u32(&m, 71);
        put_u64(&m, 1234);
        put_u64(&m, said);
        put(&m, chain, count * sizeof *chain);
        end(&m);
        return m;
}

/* Parses a copy of exactly its size, so that sanitizers detect overreads. */
static enum status parse(const void *bytes, size_t n, enum perf_record_user user, struct perf_record *ret)
{
        uint8_t *copy = malloc(n ? n : 1);
        enum status st;

        memcpy(copy, bytes, n);
        st = perf_record_parse(copy, n, user, ret, NULL);
        ret->chain = ret->stack = NULL; /* of the copy */
        free(copy);
        return st;
}

START_TEST(sample_is_split_into_kernel_and_user_frames)
{
        const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_KERNEL,
                                   0xffffffff81000001,
                                   0xffffffff81000002,
                                   (uint64_t)PERF_CONTEXT_USER,
                                   0x401000,
                                   0x402000,
                                   0x403000 };
        const struct made m = sample(chain, 7, 7);
        struct sample_frames kernel, user;
        struct perf_record r;

        ck_assert_int_eq(perf_record_parse(m.bytes, m.size, PERF_RECORD_USER_NOTHING, &r, NULL), ST_OK);
        ck_assert_int_eq(r.kind, PERF_RECORD_OF_SAMPLE);
        ck_assert_uint_eq(r.tgid, 70);
        ck_assert_uint_eq(r.tid, 71);
        ck_assert_uint_eq(r.time_ns, 1234);
        perf_record_split_chain(&r, &kernel, &user);
        ck_assert_uint_eq(kernel.frame_count, 2);
        ck_assert_uint_eq(kernel.frames[1], 0xffffffff81000002);
        ck_assert_uint_eq(user.frame_count, 3);
        ck_assert_uint_eq(user.frames[0], 0x401000);
}
END_TEST

START_TEST(guest_and_unmarked_addresses_are_ignored)
{
        const uint64_t chain[] = { 0x111, (uint64_t)PERF_CONTEXT_GUEST, 0x222, (uint64_t)PERF_CONTEXT_USER, 0x333 };
        const struct made m = sample(chain, 5, 5);
        struct sample_frames kernel, user;
        struct perf_record r;

        ck_assert_int_eq(perf_record_parse(m.bytes, m.size, PERF_RECORD_USER_NOTHING, &r, NULL), ST_OK);
        perf_record_split_chain(&r, &kernel, &user);
        ck_assert_uint_eq(kernel.frame_count, 0);
        ck_assert_uint_eq(user.frame_count, 1);
        ck_assert_uint_eq(user.frames[0], 0x333);
}
END_TEST

START_TEST(chain_over_depth_limit_is_truncated)
{
        uint64_t chain[SAMPLE_STACK_MAX + 20] = { (uint64_t)PERF_CONTEXT_USER };
        struct sample_frames kernel, user;
        struct perf_record r;
        struct made m;

        for (size_t i = 1; i < sizeof chain / sizeof *chain; i++)
                chain[i] = i;
        m = sample(chain, sizeof chain / sizeof *chain, sizeof chain / sizeof *chain);
        ck_assert_int_eq(perf_record_parse(m.bytes, m.size, PERF_RECORD_USER_NOTHING, &r, NULL), ST_OK);
        perf_record_split_chain(&r, &kernel, &user);
        ck_assert_uint_eq(user.frame_count, SAMPLE_STACK_MAX);
        ck_assert_uint_eq(user.frames[SAMPLE_STACK_MAX - 1], SAMPLE_STACK_MAX);
}
END_TEST

START_TEST(count_past_record_is_refused)
{
        static const uint64_t said[] = { 3, 1000, UINT64_MAX / 8, UINT64_MAX / 8 + 3, UINT64_MAX };
        const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_USER, 0x1000 };

        for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
                const struct made m = sample(chain, 2, said[i]);
                struct perf_record r = { .tgid = 5 };

                ck_assert_int_eq(parse(m.bytes, m.size, PERF_RECORD_USER_NOTHING, &r), ST_BAD_DATA);
                ck_assert_uint_eq(r.tgid, 5);
        }
}
END_TEST

#if defined(__x86_64__)
START_TEST(registers_distinguish_system_call_from_fault)
{
        const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_USER, 0x1000 };
        struct perf_record r;

        for (uint64_t fault = 0; fault < 2; fault++) {
                struct made m = sample(chain, 2, 2);

                put_u64(&m, PERF_SAMPLE_REGS_ABI_64);
                put_u64(&m, 0x1000 + fault); /* rcx */
                put_u64(&m, 0x1000);         /* rip */
                put_u64(&m, 0x246);          /* flags */
                put_u64(&m, 0x246);          /* r11 */
                end(&m);
                ck_assert_int_eq(parse(m.bytes, m.size, PERF_RECORD_USER_SYSCALL, &r), ST_OK);
                ck_assert_int_eq(r.in_syscall, !fault);
        }
}
END_TEST
#else
START_TEST(registers_distinguish_system_call_from_fault)
{
        const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_USER, 0x1000 };
        const struct made m = sample(chain, 2, 2);
        struct perf_record r;

        ck_assert_int_eq(parse(m.bytes, m.size, PERF_RECORD_USER_SYSCALL, &r), ST_OK);
        ck_assert(r.in_syscall); /* counted as the more frequent kind */
}
END_TEST
#endif

static struct made fork_record(void)
{
        struct made m;

        begin(&m, PERF_RECORD_FORK, 0);
        put_u32(&m, 10);
        put_u32(&m, 11);
        put_u32(&m, 12);
        put_u32(&m, 13);
        put_u64(&m, 99);
        trailer(&m, 99);
        return m;
}

static struct made comm_record(const char *comm, size_t n, uint16_t misc)
{
        struct made m;

        begin(&m, PERF_RECORD_COMM, misc);
        put_u32(&m, 20);
        put_u32(&m, 21);
        put(&m, comm, n);
        trailer(&m, 100);
        return m;
}

#if defined(__x86_64__)
/* Registers are in the order of their numbers; after the copy, the kernel states how much of it is stack. */
static struct made sample_with_stack(uint64_t abi, uint64_t size, uint64_t used)
{
        struct made m = sample((const uint64_t[]){ 0 }, 0, 0);

        put_u64(&m, abi);
        for (uint64_t i = 0; abi && i < 19; i++)
                put_u64(&m, 100 + i);
        put_u64(&m, size);
        for (uint64_t i = 0; i < size; i += 8)
                put_u64(&m, i);
        if (size)
                put_u64(&m, used);
        end(&m);
        return m;
}

START_TEST(stack_copy_has_registers_and_size)
{
        struct made m = sample_with_stack(PERF_SAMPLE_REGS_ABI_64, 64, 40);
        struct perf_record r;

        ck_assert_int_eq(perf_record_parse(m.bytes, m.size, PERF_RECORD_USER_STACK, &r, NULL), ST_OK);
        ck_assert(r.has_registers);
        ck_assert_uint_eq(r.registers.rax, 100);
        ck_assert_uint_eq(r.registers.rbp, 106);
        ck_assert_uint_eq(r.registers.rsp, 107);
        ck_assert_uint_eq(r.registers.rip, 108);
        ck_assert_uint_eq(r.registers.cs, 110);
        ck_assert_uint_eq(r.registers.r8, 111);
        ck_assert_uint_eq(r.registers.r15, 118);
        ck_assert_uint_eq(r.stack_bytes, 40);
        ck_assert_uint_eq(r.stack[8], 8);

        m = sample_with_stack(PERF_SAMPLE_REGS_ABI_64, 64, UINT64_MAX);
        ck_assert_int_eq(perf_record_parse(m.bytes, m.size, PERF_RECORD_USER_STACK, &r, NULL), ST_OK);
        ck_assert_uint_eq(r.stack_bytes, 64);
}
END_TEST

START_TEST(kernel_threads_and_32_bit_processes_have_no_registers)
{
        struct made m = sample_with_stack(PERF_SAMPLE_REGS_ABI_NONE, 0, 0);
        struct perf_record r;

        ck_assert_int_eq(perf_record_parse(m.bytes, m.size, PERF_RECORD_USER_STACK, &r, NULL), ST_OK);
        ck_assert(!r.has_registers);
        ck_assert_uint_eq(r.stack_bytes, 0);
        m = sample_with_stack(PERF_SAMPLE_REGS_ABI_32, 16, 16);
        ck_assert_int_eq(perf_record_parse(m.bytes, m.size, PERF_RECORD_USER_STACK, &r, NULL), ST_OK);
        ck_assert(!r.has_registers);
}
END_TEST

START_TEST(truncated_stack_copy_is_refused)
{
        const struct made whole = sample_with_stack(PERF_SAMPLE_REGS_ABI_64, 64, 40);
        struct perf_record r;

        for (size_t n = whole.size - 1; n > 40; n--) {
                struct made m = whole;

                m.size = n;
                end(&m);
                ck_assert_int_eq(parse(m.bytes, m.size, PERF_RECORD_USER_STACK, &r), ST_BAD_DATA);
        }
}
END_TEST
#endif

START_TEST(fork_and_comm_records_are_read)
{
        struct made m = fork_record();
        struct perf_record r;

        ck_assert_int_eq(parse(m.bytes, m.size, PERF_RECORD_USER_NOTHING, &r), ST_OK);
        ck_assert_int_eq(r.kind, PERF_RECORD_OF_FORK);
        ck_assert_uint_eq(r.tgid, 10);
        ck_assert_uint_eq(r.parent_tgid, 11);
        ck_assert_uint_eq(r.tid, 12);
        ck_assert_uint_eq(r.parent_tid, 13);
        ck_assert_uint_eq(r.time_ns, 99);
        m = comm_record("a name\0\0", 8, PERF_RECORD_MISC_COMM_EXEC);
        ck_assert_int_eq(parse(m.bytes, m.size, PERF_RECORD_USER_NOTHING, &r), ST_OK);
        ck_assert_int_eq(r.kind, PERF_RECORD_OF_EXEC);
        ck_assert_str_eq(r.comm, "a name");
        m = comm_record("a name that is far too long for a thread", 41, 0);
        ck_assert_int_eq(parse(m.bytes, m.size, PERF_RECORD_USER_NOTHING, &r), ST_OK);
        ck_assert_int_eq(r.kind, PERF_RECORD_OF_COMM);
        ck_assert_uint_eq(strlen(r.comm), SAMPLE_COMM_SIZE - 1);
}
END_TEST

START_TEST(truncated_records_are_refused_or_not_overread)
{
        const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_USER, 0x1000, 0x2000 };
        struct made all[] = { sample(chain, 3, 3), fork_record(), comm_record("name\0\0\0", 8, 0) };
        struct perf_record r;

        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
                for (size_t n = 0; n < all[i].size; n++) {
                        struct made cut = all[i];

                        ck_assert_int_eq(parse(cut.bytes, n, PERF_RECORD_USER_SYSCALL, &r),
                                         ST_BAD_DATA); /* its size field is wrong */
                        cut.size = n;
                        if (n >= sizeof(struct perf_event_header))
                                end(&cut); /* its size field is right, but its content is truncated */
                        if (i == 0)
                                ck_assert_int_eq(parse(cut.bytes, n, PERF_RECORD_USER_NOTHING, &r), ST_BAD_DATA);
                        else
                                (void)!parse(cut.bytes, n, PERF_RECORD_USER_NOTHING, &r);
                }
        }
}
END_TEST

START_TEST(random_records_are_not_overread)
{
        struct made m;
        struct perf_record r;

        srandom(1);
        for (int round = 0; round < 20000; round++) {
                begin(&m, (uint32_t)random() % 24, (uint16_t)random());
                while (m.size < (size_t)(8 + random() % 120))
                        m.bytes[m.size++] = (uint8_t)(random() % 3 ? 0 : random());
                end(&m);
                if (!parse(m.bytes, m.size, (enum perf_record_user)(round % 3), &r))
                        ck_assert_uint_le(r.chain_count, m.size / 8);
        }
}
END_TEST

/* ---- the ring buffer -------------------------------------------------------------------------- */

static void make_ring(uint64_t tail, uint64_t head)
{
        page = (struct perf_event_mmap_page){ .data_tail = tail, .data_head = head };
        ck_assert(perf_ring_init(&ring, &page, data, RING_BYTES));
}

static void write_at(uint64_t at, const void *bytes, size_t n)
{
        for (size_t i = 0; i < n; i++)
                data[(at + i) % RING_BYTES] = ((const uint8_t *)bytes)[i];
}

START_TEST(records_are_read_in_order_across_wraparound)
{
        const struct made a = fork_record(), b = comm_record("name\0\0\0", 8, 0);
        uint64_t at = 3 * RING_BYTES - 24;
        const uint8_t *bytes;
        size_t n;

        write_at(at, a.bytes, a.size);
        write_at(at + a.size, b.bytes, b.size);
        make_ring(at, at + a.size + b.size);
        perf_ring_begin(&ring);
        ck_assert(perf_ring_next(&ring, &bytes, &n));
        ck_assert_uint_eq(n, a.size);
        ck_assert_mem_eq(bytes, a.bytes, n);
        ck_assert(perf_ring_next(&ring, &bytes, &n));
        ck_assert_mem_eq(bytes, b.bytes, n);
        ck_assert(!perf_ring_next(&ring, &bytes, &n));
        ck_assert_uint_eq(page.data_tail, at); /* the kernel may not have freed the space yet */
        perf_ring_end(&ring);
        ck_assert_uint_eq(page.data_tail, page.data_head);
        ck_assert_uint_eq(ring.broken, 0);
        perf_ring_deinit(&ring);
}
END_TEST

static void check_discarded(uint64_t tail, uint64_t head)
{
        const uint8_t *bytes;
        size_t n;

        make_ring(tail, head);
        perf_ring_begin(&ring);
        ck_assert(!perf_ring_next(&ring, &bytes, &n));
        ck_assert_uint_eq(ring.broken, 1);
        perf_ring_end(&ring);
        ck_assert_uint_eq(page.data_tail, head);
        perf_ring_deinit(&ring);
}

START_TEST(invalid_record_discards_buffer)
{
        static const uint16_t sizes[] = { 0, 1, 7, 65, 256, 65535 };
        struct perf_event_header h = { .type = PERF_RECORD_SAMPLE };

        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                h.size = sizes[i];
                write_at(32, &h, sizeof h);
                check_discarded(32, 96);
        }
        h.size = 8;
        write_at(32, &h, sizeof h);
        check_discarded(32, 36);                  /* smaller than a header */
        check_discarded(32, 32 + RING_BYTES + 8); /* larger than the buffer */
        check_discarded(64, 32);                  /* backwards */
}
END_TEST

/* ---- counts --------------------------------------------------------------------------------- */

START_TEST(equal_samples_are_counted_and_stacks_deduplicated)
{
        struct sample_counts counts = { 0 };
        struct sample_frames none = { 0 }, user = { .frame_count = 2, .frames = { 1, 2 } };
        struct sample_batch batch;

        for (uint32_t i = 0; i < 300; i++) {
                struct sample_count one = { .key.process.tgid = i % 100, .count = 1 };

                user.frames[0] = i % 3;
                ck_assert_int_eq(sample_counts_add(&counts, &one, &none, &user), STAT_SAMPLES);
                ck_assert_uint_eq(one.key.kernel_stack, 0);
        }
        sample_counts_take(&counts, &batch);
        ck_assert_uint_eq(batch.count_count, 300); /* 100 and 3 are coprime */
        ck_assert_uint_eq(batch.stack_count, 3);
        for (size_t i = 0; i < batch.count_count; i++)
                ck_assert_uint_eq(
                        batch.frames[sample_batch_find_stack(&batch, batch.counts[i].key.user_stack)->first_frame + 1],
                        2);
        ck_assert_uint_eq(counts.batch.count_count, 0);
        sample_batch_deinit(&batch);
        sample_counts_deinit(&counts);
}
END_TEST

START_TEST(stacks_over_limit_are_dropped_and_counted)
{
        struct sample_counts counts = { 0 };
        struct sample_frames none = { 0 }, user = { .frame_count = 1 };
        uint64_t lost = 0;

        for (uint32_t i = 0; i < LIMIT_AGENT_STACKS + 5; i++) {
                struct sample_count one = { .key.process.tgid = 1, .count = 1 };

                user.frames[0] = i + 1;
                lost += sample_counts_add(&counts, &one, &none, &user) == STAT_LOST_STACKS_FULL;
        }
        ck_assert_uint_eq(lost, 5);
        ck_assert_uint_eq(counts.batch.count_count, LIMIT_AGENT_STACKS);
        sample_counts_deinit(&counts);
}
END_TEST

#if defined(__x86_64__)
#define STACK_TESTS                                                                                                    \
        stack_copy_has_registers_and_size, kernel_threads_and_32_bit_processes_have_no_registers,                      \
                truncated_stack_copy_is_refused,
#else
#define STACK_TESTS
#endif

TEST_SUITE("agent-perf", STACK_TESTS sample_is_split_into_kernel_and_user_frames,
           guest_and_unmarked_addresses_are_ignored, chain_over_depth_limit_is_truncated, count_past_record_is_refused,
           registers_distinguish_system_call_from_fault, fork_and_comm_records_are_read,
           truncated_records_are_refused_or_not_overread, random_records_are_not_overread,
           records_are_read_in_order_across_wraparound, invalid_record_discards_buffer,
           equal_samples_are_counted_and_stacks_deduplicated, stacks_over_limit_are_dropped_and_counted)
