/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_CPU_LIST_H
#define CAIRN_SAMPLING_SAMPLERS_CPU_LIST_H

/**
 * @file
 * CPU lists in the kernel's format: "0-3,5,8-11".
 * Source: Documentation/admin-guide/cputopology.rst.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/**
 * @param ret    ret[cpu] is set for each CPU in the list; CPUs from count on are ignored.
 *         Untouched on failure.
 * @return ST_OK; ST_BAD_DATA.
 */
enum status cpu_list_parse(const char *text, size_t n, bool *ret, size_t count, struct error *err) MUST_CHECK;

/** The CPUs that are online now. */
enum status cpu_list_online(bool *ret, size_t count, struct error *err) MUST_CHECK;

#endif
