/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_ELF_IMAGE_SECTION_LIST_H
#define CAIRN_ELF_IMAGE_SECTION_LIST_H

/**
 * @file
 * Where the sections of a file lie, as a confined worker writes it down for the
 * service, which then sends a section without looking at the file: for each that
 * has a name and bytes its name with a NUL, offset and size, both ULEB128.
 *
 * Threads: any.
 */
#include "common/buf.h"
#include "elf-image/elf_image.h"

/** Append the list to `to`; buf_status() tells of no memory. @return ST_BAD_DATA when a section lies outside of the file. */
enum status section_list_write(const struct elf_image *img, struct buf *to, struct error *err) MUST_CHECK;

/** The first of that name. ST_NOT_FOUND; ST_BAD_DATA when the list is damaged. */
enum status section_list_find(const void *list, size_t n, const char *name, uint64_t *offset_ret, uint64_t *size_ret,
                              struct error *err) MUST_CHECK;

#endif
