/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_VDSO_H
#define CAIRN_AGENT_VDSO_H

/**
 * @file
 * The code that the kernel maps into every process: the vDSO, which all 64-bit
 * processes share, and the page of [vsyscall].
 *
 * The vDSO is read from the agent's own memory: it is the kernel's, and no
 * other process has a say in it.
 * Source: vdso(7).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/code_names.h"

/** Its bytes, there until the end. False when there is none. */
bool vdso_image(const void **ret, size_t *size_ret);

/** Put the functions that it exports into names, by link-time address. Of several names the longest one holds. */
void vdso_names(struct code_names *names);

/** The system call behind an address of [vsyscall], by its offset in the page; NULL for others. */
const char *vsyscall_name(uint64_t offset);

#endif
