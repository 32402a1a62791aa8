/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_OBJECTS_VDSO_H
#define CAIRN_SAMPLING_OBJECTS_VDSO_H

/**
 * @file
 * Code that the kernel maps into every process: the vDSO, shared by all
 * 64-bit processes, and the [vsyscall] page.
 *
 * The vDSO is read from the agent's own memory, where no other process can
 * alter it.
 * Source: vdso(7).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampling/objects/code_names.h"

/** The image of the vDSO, valid for the process lifetime. False when there is none. */
bool vdso_get_image(const void **ret, size_t *size_ret);

/** Add its exported functions to names, by link-time address; of several names the longest one. */
void vdso_add_names(struct code_names *names);

/** The system call at an offset of the [vsyscall] page; NULL for other offsets. */
const char *vsyscall_find_name(uint64_t offset);

#endif
