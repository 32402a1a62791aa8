/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_ELF_IMAGE_ELF_IDENTITY_H
#define CAIRN_ELF_IMAGE_ELF_IDENTITY_H

/**
 * @file
 * Identifiers of an ELF file other than the build-id of its image.
 *
 * Threads: any.
 * Source: DWARF 5, 7.3.6 (.debug_sup); OpenTelemetry semantic conventions, process.executable.build_id.htlhash.
 */
#include "elf-image/elf_image.h"

/** The Go build-id, hashed by build_id_from_go(), even if the file has a GNU build-id. False when it has none. */
bool elf_image_go_build_id(const struct elf_image *img, struct build_id *ret);

/**
 * The id by which other files refer to a supplementary file: its checksum (.debug_sup), else its build-id. False
 * without either.
 */
bool elf_image_supplement_id(const struct elf_image *img, struct build_id *ret);

/**
 * The first 16 bytes of the SHA-256 of a file's first 4096 bytes, its last 4096 bytes and its size (8 bytes,
 * big-endian). A shorter file has shorter pieces, and they may overlap.
 */
enum status elf_htlhash(int fd, uint64_t size, struct build_id *ret, struct error *err) MUST_CHECK;

#endif
