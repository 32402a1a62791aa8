/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_SYMBOLS_H
#define CAIRN_UPLOADER_SYMBOLS_H

/**
 * @file
 * Symbol files, which `--symbols-only` sends instead of debuginfo. Symbols are extracted in a confined worker, as by
 * `cairn symbolize`, using all debug files that this machine has for the file
 * (symbolizer/extraction/debug_file_search.h).
 */
#include <stdatomic.h>

#include "elf-image/elf_image.h"
#include "uploader/upload_list.h"

/** Add the file's symbols to the list, with the quality of the best debug file, or count the reason why it has none. */
enum status symbols_add(struct upload_list *list, const struct elf_image *img, const char *path,
                        struct error *err) MUST_CHECK;

/**
 * Extract, and write the symbol file into fd, an empty file. Sets the item's quality and partial. Extractions are
 * serialized: one uses all processors, and memory proportional to the file's size.
 * @param stop as in struct worker_job.
 * @return ST_NOT_FOUND when the file was replaced after it was offered; ST_BAD_DATA; ST_BUSY when
 * stopped. Threads: any, on different items.
 */
enum status symbols_write(struct upload_item *item, int fd, uint64_t *size_ret, const atomic_bool *stop,
                          struct error *err) MUST_CHECK;

#endif
