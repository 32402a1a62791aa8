/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_ELF_IMAGE_SECTION_LIST_H
#define CAIRN_ELF_IMAGE_SECTION_LIST_H

/**
 * @file
 * A compact table of the sections of a file: for each section with a name and content the NUL-terminated name, offset
 * and size (both ULEB128). A confined worker writes it; the service uses it to send a section without parsing the file.
 *
 * Threads: any.
 */
#include "common/memory/buf.h"
#include "elf-image/elf_image.h"

/**
 * Append the list to `to`; out of memory is reported by buf_status(). @return ST_BAD_DATA when a section is outside of
 * the file.
 */
enum status section_list_write(const struct elf_image *img, struct buf *to, struct error *err) MUST_CHECK;

/** Find the first section with this name. ST_NOT_FOUND; ST_BAD_DATA when the list is malformed. */
enum status section_list_find(const void *list, size_t n, const char *name, uint64_t *offset_ret, uint64_t *size_ret,
                              struct error *err) MUST_CHECK;

#endif
