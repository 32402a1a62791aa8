/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_SPLIT_GO_H
#define CAIRN_UPLOADER_SPLIT_GO_H

/**
 * @file
 * The data that describes the inlined calls of a Go program. Up to Go 1.25 the trees of inlined calls are in the
 * read-only data section, located by a symbol or by moduledata.
 */
#include "elf-image/elf_image.h"

struct split_range {
        uint64_t address, size;
};

#define SPLIT_GO_RANGES_MAX 2

/** Find the ranges to keep. @return their number; 0 for a file that is not a Go program, or has unreadable tables. */
size_t split_find_go_ranges(const struct elf_image *img, struct split_range ret[static SPLIT_GO_RANGES_MAX]);

#endif
