/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DISASSEMBLER_CODE_RANGES_H
#define CAIRN_DISASSEMBLER_CODE_RANGES_H

/**
 * @file
 * The functions around addresses of an ELF file: by its symbol tables, else by its call frame information, else what
 * follows the address. Runs in the worker.
 *
 * Threads: none.
 */
#include "disassembler/disassembly.h"
#include "elf-image/elf_image.h"

/**
 * @param symbols_of  another image of the same object with a symbol table, when `code` is stripped; NULL: none.
 * @param addresses   the most important first; those outside of the file's code are skipped.
 * @param ranges_ret  owned; LIMIT_DISASSEMBLY_RANGES at most, in the order of the addresses, none twice. Symbols are
 *                    borrowed from the images.
 */
enum status code_ranges_find(const struct elf_image *code, const struct elf_image *symbols_of,
                             const uint64_t *addresses, size_t count, struct code_range **ranges_ret,
                             uint32_t *count_ret, struct error *err) MUST_CHECK;

#endif
