/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java-steps PID STEPS: runs the busiest thread "java" of a HotSpot process instruction by instruction, and walks its
 * stack after each one in the code cache with the functions of the BPF program, which this file compiles for user
 * space. Prints the different stacks: how often each one was, a tab, and its frames, leaf first, as METHOD|FILE|LINE.
 * The last word is "lost" if a frame had no caller.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "common/memory/buf.h"
#include "sampling/runtimes/hotspot_name_cache.h"
#include "sampling/runtimes/hotspot_symbols.h"

#if defined(__x86_64__)

static int pid;

static bool read_memory(void *ctx, uint64_t addr, void *to, size_t n)
{
        struct iovec local = { to, n }, remote = { (void *)(uintptr_t)addr, n };

        (void)ctx;
        return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

static const struct process_memory memory = { read_memory, NULL };

#define HOTSPOT_READ(to, size, addr) (!read_memory(NULL, (addr), (to), (size)))
#define HOTSPOT_FUNCTION static
#include "bpf/hotspot_frame.h"

#define FRAMES_MAX 200
#define STEPS_PER_INTERVAL 1000 /* methods are checked again */

static _Noreturn void fail(const char *what)
{
        perror(what);
        exit(1);
}

/* Link-time addresses become those of the process. */
static void find_symbols(struct hotspot_symbols *ret)
{
        char path[64], line[4096], file[4096];
        struct elf_image image;
        struct error err;
        uint64_t start;
        FILE *maps;

        snprintf(path, sizeof path, "/proc/%d/maps", pid);
        maps = fopen(path, "re");
        if (!maps)
                fail(path);
        do {
                if (!fgets(line, sizeof line, maps))
                        fail("libjvm.so");
        } while (sscanf(line, "%lx-%*s %*s %*s %*s %*s %4095s", &start, file) != 2 || !strstr(file, "/libjvm.so"));
        fclose(maps);
        if (elf_image_open(file, &image, &err))
                fail(file);
        hotspot_symbols_read(&image, ret);
        elf_image_close(&image);
        ret->structs += start;
        ret->types += start;
        ret->struct_stride += start;
        ret->type_stride += start;
}

static int find_busiest_thread(void)
{
        unsigned long most = 0;
        char command[128];
        int busiest = 0;
        FILE *threads;

        snprintf(command, sizeof command, "cat /proc/%d/task/*/stat", pid);
        threads = popen(command, "re"); // NOLINT(cert-env33-c): a test of this process
        if (!threads)
                fail(command);
        for (char line[1024]; fgets(line, sizeof line, threads);) {
                unsigned long user;
                int thread;

                if (sscanf(line, "%d (java) %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu", &thread, &user) == 2 &&
                    user >= most) {
                        most = user;
                        busiest = thread;
                }
        }
        pclose(threads);
        return busiest;
}

/* Append the frames of the stack. */
static void walk_stack(struct hotspot_walk *w, const struct hotspot_objects *o, struct hotspot_name_cache *names,
                       uint64_t interval, struct buf *to)
{
        static struct hotspot_location places[LIMIT_HOTSPOT_INLINED];
        int step = HOTSPOT_STEPPED;
        uint32_t count;

        for (int i = 0; i < FRAMES_MAX && step == HOTSPOT_STEPPED; i++) {
                step = hotspot_read_frame(w);
                if (step == HOTSPOT_NO_FRAME)
                        return;
                w->is_leaf = 0;
                if (hotspot_name_cache_locate(names, &memory, o, interval, w->words[0] & SAMPLE_FRAME_ADDRESS_MAX,
                                              w->words[1], places, &count) != HOTSPOT_FRAME_FOUND) {
                        buf_append_str(to, "[java]||0 ");
                        continue;
                }
                for (uint32_t k = 0; k < count; k++)
                        buf_printf(to, "%s|%s|%u ", places[k].name ? places[k].name : "[java]", places[k].file,
                                   places[k].line);
        }
        buf_append_str(to, "lost");
}

struct counted_stack {
        char *text;
        unsigned long count;
};

static struct counted_stack stacks[4096];
static size_t stack_count;

static void count_stack(const char *text)
{
        size_t i = 0;

        while (i < stack_count && strcmp(stacks[i].text, text) != 0)
                i++;
        if (i == sizeof stacks / sizeof *stacks)
                return;
        if (i == stack_count)
                stacks[stack_count++].text = strdup(text);
        stacks[i].count++;
}

/* Run one instruction. False: the thread has ended. */
static bool step_thread(int thread, int *signal)
{
        int state;

        if (ptrace(PTRACE_SINGLESTEP, thread, NULL, (void *)(intptr_t)*signal) ||
            waitpid(thread, &state, __WALL) != thread || !WIFSTOPPED(state))
                return false;
        *signal = WSTOPSIG(state) == SIGTRAP || state >> 16 ? 0 : WSTOPSIG(state); /* the program's own: deliver it */
        return true;
}

int main(int argc, char **argv)
{
        struct hotspot_name_cache names = { 0 };
        struct runtime_refusal refusal = { 0 };
        struct hotspot_symbols symbols;
        struct hotspot_layout layout;
        struct hotspot_walk w = { 0 };
        struct user_regs_struct regs;
        int thread, signal = 0, state;
        struct buf text;

        if (argc != 3)
                return 2;
        pid = (int)strtol(argv[1], NULL, 10);
        find_symbols(&symbols);
        if (hotspot_layout_find(&memory, &symbols, &layout, &refusal) != HOTSPOT_ATTACHED) {
                fprintf(stderr, "java-steps: %s\n", refusal.text ? refusal.text : "it is starting");
                return 1;
        }
        thread = find_busiest_thread();
        if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) || ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) ||
            waitpid(thread, &state, __WALL) != thread)
                fail("ptrace");
        buf_init(&text, 1 << 20);
        for (long i = 0, steps = strtol(argv[2], NULL, 10); i < steps && step_thread(thread, &signal);) {
                if (signal || ptrace(PTRACE_GETREGS, thread, NULL, &regs))
                        continue;
                w = (struct hotspot_walk){ .process = layout.process,
                                           .pc = regs.rip,
                                           .sp = regs.rsp,
                                           .fp = regs.rbp,
                                           .rax = regs.rax,
                                           .rbx = regs.rbx,
                                           .rdx = regs.rdx,
                                           .r13 = regs.r13,
                                           .is_leaf = 1 };
                if (!hotspot_is_code(&w, w.pc))
                        continue;
                names.work_left = UINT64_MAX;
                text.size = 0;
                walk_stack(&w, &layout.objects, &names, (uint64_t)(1 + i++ / STEPS_PER_INTERVAL), &text);
                count_stack(buf_cstr(&text));
        }
        for (size_t i = 0; i < stack_count; i++)
                printf("%lu\t%s\n", stacks[i].count, stacks[i].text);
        kill(pid, SIGKILL); /* one that was stepped does not run on */
        return 0;
}

#else

int main(void)
{
        fputs("java-steps: Java frames are read on x86-64\n", stderr);
        return 1;
}

#endif
