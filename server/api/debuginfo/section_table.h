/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_DEBUGINFO_SECTION_TABLE_H
#define CAIRN_SERVER_API_DEBUGINFO_SECTION_TABLE_H

/**
 * @file
 * Cache of ELF section tables, so that reading one section needs neither a worker nor decompression of the whole file.
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/**
 * Insert the section table of a file, in the format of elf_job_list_sections() (elf-image/section_list.h). LRU eviction
 * in each set.
 * @param table  taken.
 */
void section_table_insert(const char *identity, void *table, size_t n);

enum section_found { SECTION_UNKNOWN /* the file is not cached */, SECTION_ABSENT, SECTION_FOUND };
enum section_found section_table_find(const char *identity, const char *name, uint64_t *offset_ret, uint64_t *size_ret);

#endif
