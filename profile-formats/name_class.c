/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/name_class.h"

#include <stddef.h>
#include <string.h>

#include "common/text.h"

#define RUNTIME_ENDED "record for longer, or ignore it: code of the last moments of a process is lost"

static const struct name_class classes[] = {
        /* user space */
        { "[jit]", "code that a runtime generated, in memory without a file; no perf map and no jitdump names it",
          "start the runtime with its option for one: docs/quick-starts/agents.md lists them by language" },
        { "[exited]", "the process ended before its mappings were read", "" },
        { "[unmapped]", "the interrupted instruction is in no executable mapping", "" },
        { "[no stack]", "neither the kernel's nor the user's stack could be read", "" },
        { "[stack]", "code on the stack, such as the trampoline of a nested function of GCC", "" },
        { "[heap]", "code on the heap, which a program generated without naming it", "" },
        { "[vdso]", "code that the kernel maps into 32-bit processes, for system calls", "" },
        { "[vsyscall]", "code at a fixed address for system calls of old programs", "" },
        { "[anon:*", "code in anonymous memory, which the process named (PR_SET_VMA_ANON_NAME)",
          "start its runtime with the option for a perf map: docs/quick-starts/agents.md" },
        { "[python: exited]", "the process ended before the names of its Python code were read", RUNTIME_ENDED },
        { "[python: freed]", "the code object was freed since the sample", "" },
        { "[python: unreadable]", "the code object or its name could not be read", "" },
        { "[python: limit]", "the process has more Python code than is read in one interval", "" },
        { "[node: exited]", "the process ended before the names of its JavaScript code were read", RUNTIME_ENDED },
        { "[node: unreadable]", "the function was moved or freed since the sample, or could not be read", "" },
        { "[java: exited]", "the process ended before the names of its Java code were read", RUNTIME_ENDED },
        { "[java: freed]", "the compiled code was replaced since the sample", "" },
        { "[java: unreadable]", "the method or its name could not be read, or an interpreter's frame was incomplete",
          "" },
        { "[java: limit]", "the process has more Java code than is read in one interval", "" },
        { "[unknown runtime]", "the frame of a runtime that this version does not know", "update the program" },
        { "fn@0x*", "a function of a file without symbols, known by its start only",
          "upload the debuginfo, or name a server that has it" },
        { "_PROCEDURE_LINKAGE_TABLE_",
          "code of the procedure linkage table without a function of its own: the entry that calls the dynamic "
          "linker, or a stub of unknown form",
          "" },
        { "*@plt", "a stub that jumps to this function through the GOT; calls into other files lead here",
          "link with -z now and compile with -fno-plt to call without stubs" },
        { "__restore_rt", "the trampoline of the C library through which signal handlers return to the kernel", "" },
        { "__vdso_*", "a system call that the kernel answers in user space, in the vDSO", "" },
        /* the kernel */
        { "[kernel]", "a kernel address without a symbol, or the kernel shows no symbols",
          "run with CAP_SYSLOG, or set kernel.kptr_restrict to 0 or 1: cairn-agent --doctor shows it" },
        { "[kernel: unloaded]", "code of a module, BPF program or trampoline that was removed before its name was read",
          "" },
        { "bpf_prog_*", "a function of a BPF program, with the tag of its instructions",
          "for its lines, compile it with -g, and sample with BPF" },
        { "bpf_trampoline_*", "code that the kernel generated to call the BPF programs at a function's start or end",
          "bpftool link lists them" },
        { "bpf_dispatcher_*", "code that the kernel generated to call BPF programs without indirect calls", "" },
        { "ftrace_trampoline", "code that ftrace generated for a tracer, a kprobe or a live patch", "" },
        { "kprobe_insn_page", "instructions that kprobes replaced, which run here instead", "" },
        { "kprobe_optinsn_page", "code that calls the handlers of optimized kprobes", "" },
        { "entry_SYSCALL*", "where the kernel is entered by system calls", "" },
        { "asm_exc_*", "where the kernel is entered by exceptions, such as page faults", "" },
        { "asm_sysvec_*", "where the kernel is entered by interrupts of the system", "" },
        { "asm_common_interrupt", "where the kernel is entered by interrupts of devices", "" },
};

static bool is_of_class(const char *name, const char *pattern)
{
        size_t n = strlen(pattern);

        if (pattern[0] == '*')
                return ends_with(name, pattern + 1);
        return pattern[n - 1] == '*' ? strncmp(name, pattern, n - 1) == 0 : strcmp(name, pattern) == 0;
}

const struct name_class *name_class_find(const char *name)
{
        for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
                if (is_of_class(name, classes[i].name))
                        return &classes[i];
        return NULL;
}
