/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_MOVED_TEXT_H
#define CAIRN_SAMPLING_PROCESSES_MOVED_TEXT_H

/**
 * @file
 * Code that a program has moved to other memory at the same addresses.
 *
 * To use huge pages, some programs copy their text to anonymous memory, a memfd or hugetlbfs, and map that over the
 * original (iodlr, BOLT's hugify, hhvm). The kernel then shows an executable mapping without a program, amid mappings
 * of the file. Where such a mapping lies in an executable segment of that file, its addresses are those of the file:
 * this part of the mapping is made one of the file.
 *
 * Threads: one at a time.
 */
#include "sampling/objects/object.h"
#include "sampling/objects/proc_maps.h"

/** The object of a mapping, borrowed; NULL: none. */
typedef const struct object *find_object_fn(void *context, const struct proc_mapping *m);

/**
 * Assign moved code to its file.
 * @param maps     mappings may be split.
 * @param objects  one per mapping, owned; NULL where unknown. Replaced if mappings are split.
 */
void moved_text_assign(struct proc_maps *maps, const struct object ***objects, find_object_fn *find, void *context);

#endif
