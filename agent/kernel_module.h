/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_KERNEL_MODULE_H
#define CAIRN_AGENT_KERNEL_MODULE_H

/**
 * @file
 * Where a kernel module lies and which one it is, from /sys/module/NAME.
 *
 * A module is relocatable: its file gives no section an address. Ours is the
 * offset in .text, which is what the service takes it for. Code in another
 * section (.init.text, .text.unlikely, .noinstr.text) has no such address.
 * Source: sysfs-module ABI.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"

struct kernel_module {
        bool tried;
        struct build_id build_id;     /* size 0: unknown */
        uint64_t text_addr, text_end; /* of .text; text_addr 0: unknown */
};

/** @param dir  "/sys/module/NAME". What is not there is left unknown: "bpf" and "__builtin__ftrace" are no modules. */
void kernel_module_read(const char *dir, struct kernel_module *ret);

/** False for an address outside of .text, or when nothing is known. */
bool kernel_module_address(const struct kernel_module *m, uint64_t addr, uint64_t *ret);

/** The build-id among the notes in a file of /sys. */
bool kernel_notes_build_id(const char *path, struct build_id *ret);

#endif
