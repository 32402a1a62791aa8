/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ROUTES_SECTION_TABLE_H
#define CAIRN_SERVER_ROUTES_SECTION_TABLE_H

/**
 * @file
 * Cache of section tables of ELF files, so that reading one section needs neither a worker nor decompression of the
 * whole file.
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/**
 * Insert a table as elf_job_list_sections() makes it (elf-image/section_list.h), for the file with this identity;
 * taken. LRU eviction.
 */
void section_table_insert(const char *identity, void *table, size_t n);

enum section_found { SECTION_UNKNOWN /* the file is not remembered */, SECTION_ABSENT, SECTION_FOUND };
enum section_found section_table_find(const char *identity, const char *name, uint64_t *offset_ret, uint64_t *size_ret);

#endif
