/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_DYNAMIC_RELOCATIONS_H
#define CAIRN_SYMBOLIZER_SOURCES_DYNAMIC_RELOCATIONS_H

/**
 * @file
 * Dynamic relocations of a linked file: the pointers that the loader writes
 * into data of position-independent programs, and the symbols whose addresses
 * it writes into the GOT.
 *
 * Threads: immutable once read.
 * Source: gABI, "Relocation"; psABI of x86-64 and of AArch64.
 */
#include "elf-image/elf_image.h"

enum dynamic_relocation_kind {
        DYNAMIC_RELATIVE,  /* the load bias and the addend */
        DYNAMIC_IRELATIVE, /* result of the function at the addend */
        DYNAMIC_SYMBOL,    /* a symbol's address and the addend */
};

struct dynamic_relocation {
        uint64_t address; /* of the word */
        int64_t addend;
        const char *symbol; /* borrowed from the image, of DYNAMIC_SYMBOL, else "" */
        enum dynamic_relocation_kind kind;
};

struct dynamic_relocations {
        struct dynamic_relocation *items; /* owned, sorted by address */
        size_t count, capacity;
};

/**
 * Read all relocations of allocated SHT_RELA sections, on x86-64 and AArch64; none on other machines.
 * Malformed entries and sections are skipped. @param ret free with dynamic_relocations_deinit().
 */
enum status dynamic_relocations_read(const struct elf_image *img, struct dynamic_relocations *ret,
                                     struct error *err) MUST_CHECK;
void dynamic_relocations_deinit(struct dynamic_relocations *r);

/** The relocation of the word at address, or NULL. */
const struct dynamic_relocation *dynamic_relocations_find(const struct dynamic_relocations *r, uint64_t address);

/** Write the pointers of DYNAMIC_RELATIVE that lie in [address, address + size) as a loader with bias 0 would. */
void dynamic_relocations_apply(const struct dynamic_relocations *r, uint64_t address, uint8_t *bytes, size_t size,
                               bool big_endian);

#endif
