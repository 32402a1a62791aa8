/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_KERNEL_H
#define CAIRN_SAMPLING_PROCESSES_KERNEL_H

/**
 * @file
 * Resolves addresses of the running kernel to object, link-time address
 * and name.
 *
 * The kernel may be relocated at boot (KASLR). The offset is read from the
 * VMCOREINFO note of /proc/kcore; without access to it, _text at its default
 * address means no relocation. Otherwise the offset is unknown, and frames
 * carry their name only, never a wrong address. An address in a module is an
 * offset in .text. BPF programs have the name of their function, and file and
 * line if they have BTF; other code that the kernel generates has a name only.
 *
 * Threads: one thread at a time.
 * Source: Documentation/admin-guide/kdump/vmcoreinfo.rst; sysfs-module ABI.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"
#include "sampling/processes/bpf_code.h"
#include "sampling/processes/kallsyms.h"

/**
 * A loaded module, from /sys/module/NAME. A module is relocatable, so its file
 * assigns no address to a section: the agent reports the offset in .text, which
 * the service expects. Code in other sections (.init.text, .text.unlikely,
 * .noinstr.text) has no such address.
 */
struct kernel_module {
        bool tried;
        struct build_id build_id;     /* size 0: unknown */
        uint64_t text_addr, text_end; /* of .text; text_addr 0: unknown */
};

/** @param dir  "/sys/module/NAME". Missing files leave fields unknown, as for "bpf" and "__builtin__ftrace". */
void kernel_module_read(const char *dir, struct kernel_module *ret);

/** The offset of addr in .text. False outside .text, or when the module is unknown. */
bool kernel_module_find_address(const struct kernel_module *m, uint64_t addr, uint64_t *ret);

/** The build-id among the notes in a file of /sys. */
bool kernel_read_notes_build_id(const char *path, struct build_id *ret);

struct kernel {
        struct kallsyms symbols;
        bool has_symbols;
        struct build_id build_id; /* of vmlinux, size 0 when unknown */
        bool has_shift;
        uint64_t shift;                /* run-time minus link-time address */
        struct kernel_module *modules; /* by module index of symbols; [0] unused */
        int64_t read_at_ns;
        int64_t reread_ns;   /* do not read the symbols again for this time; doubled by each reading */
        struct bpf_code bpf; /* closed unless kernel_use_bpf() */
};

#define KERNEL_UNKNOWN_NAME "[kernel]"            /* the kernel shows no symbols, or its image has none there */
#define KERNEL_UNLOADED_NAME "[kernel: unloaded]" /* outside of the image, and nothing is there now */

struct kernel_location {
        const char *module; /* "vmlinux" or the module's name; NULL when the frame has no object; borrowed */
        const struct build_id *build_id; /* borrowed, size 0 when unknown; NULL when there is no object */
        uint64_t address;                /* link-time, when there is an object */
        const char *name; /* never NULL; in brackets when unknown; borrowed until the next call, like file */
        const char *file; /* of a BPF program; NULL: none */
        uint32_t line;
};

/** Read everything the kernel exposes. Missing parts are skipped and described in err, whose code stays ST_OK. */
void kernel_init(struct kernel *k, struct error *err);
void kernel_deinit(struct kernel *k);

/** Look BPF programs up in the kernel. Without it they have their symbols only, which may be outdated. */
enum status kernel_use_bpf(struct kernel *k, struct error *err) MUST_CHECK;

/** Call before the addresses of an interval are resolved: other BPF programs may be at the same addresses now. */
void kernel_begin_drain(struct kernel *k);

/**
 * Resolve addr. The caller must have decremented return addresses. Symbols are read again if addr has none, which a
 * module or a trampoline may have that is newer than they: after a second, after two, and so on up to a minute.
 */
struct kernel_location kernel_locate(struct kernel *k, uint64_t addr);

/** Parse the value of "KERNELOFFSET=" in the text of a VMCOREINFO note. For tests. */
bool kernel_parse_shift(const char *text, size_t n, uint64_t *ret) MUST_CHECK;

#endif
