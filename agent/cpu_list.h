/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_CPU_LIST_H
#define CAIRN_AGENT_CPU_LIST_H

/**
 * @file
 * Lists of CPUs as the kernel writes them: "0-3,5,8-11".
 * Source: Documentation/admin-guide/cputopology.rst.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/**
 * @param ret    ret[cpu] says whether it is in the list; CPUs past count are left out. Untouched on failure.
 * @return ST_OK; ST_BAD_DATA.
 */
enum status cpu_list_parse(const char *text, size_t n, bool *ret, size_t count, struct error *err) MUST_CHECK;

/** The CPUs that run now. */
enum status cpu_list_online(bool *ret, size_t count, struct error *err) MUST_CHECK;

#endif
