/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UPLOAD_KERNEL_H
#define CAIRN_AGENT_UPLOAD_KERNEL_H

/**
 * @file
 * Where the debug files of the running kernel and of its modules may be: debug
 * packages give them no link by their build-id.
 *
 * Threads: any.
 */
#include "agent/upload_files.h"

#define DEBUG_DIR "/usr/lib/debug"

/**
 * The place to try after so many others, a path within the offer's root. False when there is no further one, and for
 * what is neither the kernel nor a module by the name that agent/kernel.c gives it.
 */
bool upload_kernel_path(const struct upload_offer *o, unsigned number, char *ret, size_t size);

#endif
