/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_WORKER_UNWIND_H
#define CAIRN_AGENT_WORKER_UNWIND_H

/**
 * @file
 * `cairn-agent worker unwind`: unwind tables of ELF files that may hold anything.
 *
 * Descriptors: 3, 5, 7, ... files, 4, 6, 8, ... where the table of each goes.
 * What cannot be read leaves its output empty.
 */
#define WORKER_UNWIND_FILES 6 /* of one run */

int worker_unwind(void);

#endif
