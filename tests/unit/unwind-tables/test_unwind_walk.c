/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds recorded stacks of this process, from registers and a copy of the stack, with tables and unwind_step(), and
 * compares the return addresses with those found by backtrace() (libgcc's unwinder) at the same time.
 */
#include <alloca.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "tests/support/suite.h"
#include "unwind-tables/unwind_table.h"
#include "unwind-tables/unwind_step.h"

#define FRAMES 512
#define REGIONS 2
#define NO_FRAME_POINTER __attribute__((noinline, noclone, optimize("omit-frame-pointer")))
#ifdef __clang__
#undef NO_FRAME_POINTER
#define NO_FRAME_POINTER __attribute__((noinline))
#endif

#if defined(__x86_64__)
#define TRAP "ud2"
#else
#define TRAP ".inst 0"
#endif

struct region {
        uint64_t start, end;
        uint64_t *copy;
};

/* The data that an agent would have, and the frames found by libgcc. */
struct recording {
        struct unwind_regs regs;
        struct region regions[REGIONS];
        size_t region_count;
        void *backtrace[FRAMES];
        int backtrace_count;
};

static struct recording rec;
static volatile unsigned sink;
static sigjmp_buf after_trap;
static uint8_t handler_stack[65536] __attribute__((aligned(16)));

/* Redzones of AddressSanitizer are valid stack memory here. */
__attribute__((no_sanitize("address"))) static void copy_region(uint64_t start, uint64_t end)
{
        struct region *r = &rec.regions[rec.region_count++];
        volatile const uint64_t *from = (volatile const uint64_t *)(uintptr_t)(start & ~UINT64_C(7));

        r->start = start & ~UINT64_C(7);
        r->end = end;
        r->copy = malloc(end - r->start);
        for (size_t i = 0; i < (end - r->start) / 8; i++)
                r->copy[i] = from[i];
}

static void take_registers(const ucontext_t *context)
{
        struct unwind_regs regs = { .code_mask = UINT64_MAX };
#if defined(__x86_64__)
        regs.pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
        regs.sp = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
        regs.fp = (uint64_t)context->uc_mcontext.gregs[REG_RBP];
#elif defined(__aarch64__)
        regs.pc = context->uc_mcontext.pc;
        regs.sp = context->uc_mcontext.sp;
        regs.fp = context->uc_mcontext.regs[29];
        regs.lr = context->uc_mcontext.regs[30];
        regs.code_mask = (UINT64_C(1) << 48) - 1;
        if (regs.pc == 0) /* getcontext() on aarch64 sets only the link register */
                regs.pc = regs.lr;
#endif
        rec.regs = regs;
}

static void record(void)
{
        pthread_attr_t attributes;
        ucontext_t context;
        void *stack;
        size_t size;

        memset(&rec, 0, sizeof rec);
        rec.backtrace_count = backtrace(rec.backtrace, FRAMES);
        getcontext(&context);
        take_registers(&context);
        ck_assert_int_eq(pthread_getattr_np(pthread_self(), &attributes), 0);
        ck_assert_int_eq(pthread_attr_getstack(&attributes, &stack, &size), 0);
        pthread_attr_destroy(&attributes);
        if (rec.regs.sp >= (uintptr_t)handler_stack && rec.regs.sp < (uintptr_t)handler_stack + sizeof handler_stack) {
                copy_region(rec.regs.sp, (uintptr_t)handler_stack + sizeof handler_stack);
                copy_region((uintptr_t)stack + size - 131072, (uintptr_t)stack + size);
        } else {
                copy_region(rec.regs.sp, (uintptr_t)stack + size);
        }
}

static int read_recorded(void *ctx, __u64 addr, __u64 *ret)
{
        const struct recording *r = ctx;

        for (size_t i = 0; i < r->region_count; i++) {
                const struct region *g = &r->regions[i];

                if (addr >= g->start && addr < g->end && g->end - addr >= 8) {
                        memcpy(ret, (const uint8_t *)g->copy + (addr - g->start), 8);
                        return 0;
                }
        }
        return -1;
}

/* ---- the objects of this process ---- */

struct object {
        uint64_t start, end, bias;
        struct unwind_table table;
};

static struct object objects[64];
static size_t object_count;
static struct unwind_rules rules;

static int add_object(struct dl_phdr_info *info, size_t size, void *data)
{
        struct object *o = &objects[object_count];
        struct elf_image img;
        struct error err = { 0 };
        enum status st;

        (void)size, (void)data;
        *o = (struct object){ .start = UINT64_MAX, .bias = info->dlpi_addr };
        for (int i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) *p = &info->dlpi_phdr[i];

                if (p->p_type != PT_LOAD)
                        continue;
                if (info->dlpi_addr + p->p_vaddr < o->start)
                        o->start = info->dlpi_addr + p->p_vaddr;
                if (info->dlpi_addr + p->p_vaddr + p->p_memsz > o->end)
                        o->end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
        }
        if (strstr(info->dlpi_name, "vdso")) /* whole pages: its section headers follow its segment */
                st = elf_image_from_memory((const void *)(uintptr_t)o->start, ((o->end - o->start) | 4095) + 1, "vdso",
                                           &img, &err);
        else
                st = elf_image_open(*info->dlpi_name ? info->dlpi_name : "/proc/self/exe", &img, &err);
        ck_assert_msg(st == ST_OK, "%s", err.text);
        st = unwind_table_build(&img, &rules, &o->table, &err);
        ck_assert_msg(st == ST_OK, "%s", err.text);
        elf_image_close(&img);
        object_count++;
        return object_count == 64;
}

static const struct unwind_rule *rule_at(uint64_t pc)
{
        for (size_t i = 0; i < object_count; i++) {
                const struct unwind_row *row;

                if (pc >= objects[i].start && pc < objects[i].end &&
                    unwind_table_find(&objects[i].table, pc - objects[i].bias, &row) == ST_OK)
                        return &rules.items[row->rule];
        }
        return &rules.items[UNWIND_RULE_GAP];
}

static enum unwind_status walk(struct recording *r, uint64_t *frames, size_t *count_ret)
{
        enum unwind_status st = UNWIND_STEPPED;
        size_t n = 0;

        while (st == UNWIND_STEPPED && n < FRAMES) {
                frames[n++] = r->regs.pc;
                st = unwind_step(&r->regs, rule_at(unwind_lookup_pc(&r->regs)), read_recorded, r);
        }
        *count_ret = n;
        return st;
}

/* Frame 0 is record() itself, after getcontext(); above it all addresses are equal. */
static void compare(size_t at_least)
{
        uint64_t frames[FRAMES];
        size_t count, theirs = (size_t)rec.backtrace_count;
        enum unwind_status st;

        ck_assert_int_eq(unwind_rules_init(&rules, NULL), ST_OK);
        dl_iterate_phdr(add_object, NULL);
        st = walk(&rec, frames, &count);
        ck_assert_int_eq(st, UNWIND_DONE);
        ck_assert_uint_ge(count, at_least);
        ck_assert_uint_ge(theirs, count - 1);
        for (size_t i = 1; i < count; i++)
                ck_assert_uint_eq(frames[i], (uintptr_t)rec.backtrace[theirs - count + i]);
}

/* On aarch64 handlers return through the vDSO. qemu-user before 8.1 has code there that belongs to no object. */
static bool handlers_return_by_an_object(void)
{
#if defined(__aarch64__)
        return getauxval(AT_SYSINFO_EHDR) != 0;
#else
        return true;
#endif
}

/* ---- stacks ---- */

NO_FRAME_POINTER static unsigned odd(int n);

NO_FRAME_POINTER static unsigned even(int n)
{
        volatile char space[40];

        space[n % 40] = 1;
        if (n == 0)
                record();
        else
                sink += odd(n - 1);
        return (unsigned)space[n % 40];
}

NO_FRAME_POINTER static unsigned odd(int n)
{
        sink += (unsigned)n;
        sink += even(n - 1);
        return sink;
}

START_TEST(recursion_without_frame_pointers)
{
        even(100);
        compare(104);
}
END_TEST

NO_FRAME_POINTER static void aligned(int n)
{
        _Alignas(128) volatile char space[256];
        volatile char *more = alloca((size_t)n * 16 + 16);

        more[0] = space[1] = 1;
        ck_assert_uint_eq((uintptr_t)space % 128, 0);
        if (n == 0)
                record();
        else
                aligned(n - 1);
        sink += (unsigned)(more[0] + space[1]);
}

START_TEST(stacks_realigned_by_functions)
{
        aligned(20);
        compare(24);
}
END_TEST

static int compare_ints(const void *a, const void *b)
{
        if (!rec.backtrace_count)
                record();
        return *(const int *)a - *(const int *)b;
}

START_TEST(callback_of_a_library)
{
        int values[8] = { 3, 1, 2, 8, 6, 4, 5, 7 };

        qsort(values, 8, sizeof *values, compare_ints);
        compare(5);
}
END_TEST

static void *in_thread(void *arg)
{
        even(10);
        return arg;
}

START_TEST(thread_ends_at_its_start)
{
        pthread_t thread;

        ck_assert_int_eq(pthread_create(&thread, NULL, in_thread, NULL), 0);
        pthread_join(thread, NULL);
        compare(13);
}
END_TEST

static void handle(int number)
{
        (void)number;
        record();
        if (number == SIGILL || number == SIGTRAP)
                siglongjmp(after_trap, 1);
}

static void install(int number, int flags)
{
        struct sigaction action = { .sa_handler = handle, .sa_flags = flags };
        stack_t stack = { .ss_sp = handler_stack, .ss_size = sizeof handler_stack };

        if (flags & SA_ONSTACK)
                ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
        ck_assert_int_eq(sigaction(number, &action, NULL), 0);
}

NO_FRAME_POINTER static unsigned raise_deep(int n)
{
        if (n == 0)
                raise(SIGUSR1);
        else
                sink += raise_deep(n - 1);
        return sink;
}

START_TEST(signal_handler)
{
        if (!handlers_return_by_an_object())
                return;
        install(SIGUSR1, 0);
        raise_deep(7);
        compare(12);
}
END_TEST

START_TEST(signal_handler_on_a_stack_of_its_own)
{
        if (!handlers_return_by_an_object())
                return;
        install(SIGUSR1, SA_ONSTACK);
        raise_deep(7);
        compare(12);
}
END_TEST

/* The trap is the function's first instruction: pc - 1 belongs to another function. */
NO_FRAME_POINTER static void trap(void)
{
        __asm__ volatile(TRAP); /* the compiler must not know that it does not return */
}

NO_FRAME_POINTER static unsigned trap_deep(int n)
{
        if (n == 0)
                trap();
        else
                sink += trap_deep(n - 1);
        return sink;
}

START_TEST(interrupted_at_the_first_instruction)
{
        if (!handlers_return_by_an_object())
                return;
        install(SIGILL, 0);
        install(SIGTRAP, 0);
        if (!sigsetjmp(after_trap, 1))
                trap_deep(3);
        compare(8);
}
END_TEST

START_TEST(memory_past_copied_stack_is_unavailable)
{
        uint64_t frames[FRAMES];
        size_t count;

        even(400);
        ck_assert_int_eq(unwind_rules_init(&rules, NULL), ST_OK);
        dl_iterate_phdr(add_object, NULL);
        rec.regions[0].end = rec.regs.sp + 8000;
        ck_assert_int_eq(walk(&rec, frames, &count), UNWIND_NO_MEMORY_AT);
        ck_assert_uint_ge(count, 2);
}
END_TEST

TEST_SUITE("unwind_walk", recursion_without_frame_pointers, stacks_realigned_by_functions, callback_of_a_library,
           thread_ends_at_its_start, signal_handler, signal_handler_on_a_stack_of_its_own,
           interrupted_at_the_first_instruction, memory_past_copied_stack_is_unavailable)
