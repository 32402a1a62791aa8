/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_SPLIT_GO_H
#define CAIRN_UPLOADER_SPLIT_GO_H

/**
 * @file
 * What the inlined calls of a Go program need of its data. Up to Go 1.25 the
 * trees of inlined calls are in the read-only data, among all that a program
 * has there, and where they are is said by a symbol or by moduledata.
 */
#include "elf-image/elf_image.h"

struct split_range {
        uint64_t address, size;
};

#define SPLIT_GO_RANGES_MAX 2

/** How many ranges: 0 for what is no Go program, or one whose tables cannot be read. */
size_t split_go_ranges(const struct elf_image *img, struct split_range ret[static SPLIT_GO_RANGES_MAX]);

#endif
