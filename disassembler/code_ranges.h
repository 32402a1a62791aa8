/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DISASSEMBLER_CODE_RANGES_H
#define CAIRN_DISASSEMBLER_CODE_RANGES_H

/**
 * @file
 * Find the functions that contain given addresses of an ELF file: by symbol tables, else by call frame information,
 * else a fixed window from the address. Runs in the worker.
 *
 * Threads: none.
 */
#include "disassembler/disassembly.h"
#include "elf-image/elf_image.h"

/**
 * @param symbols_of  debuginfo of the same object, whose symbol table is used too; NULL: none.
 * @param addresses   most important first; addresses outside of the file's code are skipped.
 * @param ranges_ret  owned; distinct, at most LIMIT_DISASSEMBLY_RANGES, in the order of the addresses. Symbols are
 *                    borrowed from the images.
 */
enum status code_ranges_find(const struct elf_image *code, const struct elf_image *symbols_of,
                             const uint64_t *addresses, size_t count, struct code_range **ranges_ret,
                             uint32_t *count_ret, struct error *err) MUST_CHECK;

#endif
