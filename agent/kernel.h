/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_KERNEL_H
#define CAIRN_AGENT_KERNEL_H

/**
 * @file
 * What an address of the running kernel is: object, link-time address, name.
 *
 * The kernel may have been shifted at boot (KASLR). The shift is what the
 * kernel says itself in the VMCOREINFO note of /proc/kcore; where that cannot
 * be read, a _text at its usual place means no shift. Otherwise it is unknown:
 * frames then carry their name only, never an address of the wrong place.
 * Modules are relocatable: agent/kernel_module.h. BPF programs have a name only.
 *
 * Threads: one thread at a time.
 * Source: Documentation/admin-guide/kdump/vmcoreinfo.rst; sysfs-module ABI.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/kallsyms.h"
#include "agent/kernel_module.h"
#include "common/build_id.h"

struct kernel {
        struct kallsyms symbols;
        bool has_symbols;
        struct build_id build_id;   /* of vmlinux, size 0 when unknown */
        bool has_shift;
        uint64_t shift;             /* run-time minus link-time address */
        struct kernel_module *modules; /* by module number of symbols; [0] unused */
        int64_t read_at_ns;
        bool missed;                /* an address had no symbol since then, or one that may be out of date */
};

struct kernel_place {
        const char *module;        /* "vmlinux" or the module's name; NULL when the frame has no object; borrowed */
        const struct build_id *build_id; /* borrowed, size 0 when unknown; NULL when there is no object */
        uint64_t address;          /* link-time, when there is an object */
        const char *name;          /* borrowed until kernel_refresh(); NULL when unknown */
};

/** Read all that this kernel shows; what it hides is left out and err says what (ST_OK all the same). */
void kernel_init(struct kernel *k, struct error *err);
void kernel_deinit(struct kernel *k);

/** Read the symbols again when a module or a BPF program may have come, which addresses tell; at most once a minute. */
void kernel_refresh(struct kernel *k);

/** What addr is; a caller's address has been taken back by one before. */
struct kernel_place kernel_locate(struct kernel *k, uint64_t addr);

/** The value of "KERNELOFFSET=" in the text of a VMCOREINFO note. For tests. */
bool kernel_parse_shift(const char *text, size_t n, uint64_t *ret) MUST_CHECK;

#endif
