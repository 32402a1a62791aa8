/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_SECTION_TABLE_H
#define CAIRN_SERVER_SECTION_TABLE_H

/**
 * @file
 * Where the sections of ELF files lie, remembered, so that one section costs a
 * read of its bytes and neither a worker nor unpacking the whole file.
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/** Bytes of a table, as elf_job_sections() makes them (elf-image/section_list.h), of the file of that identity; taken. What was used last stays. */
void section_table_put(const char *identity, void *table, size_t n);

enum section_found { SECTION_UNKNOWN /* the file is not remembered */, SECTION_ABSENT, SECTION_FOUND };
enum section_found section_table_find(const char *identity, const char *name, uint64_t *offset_ret, uint64_t *size_ret);

#endif
