/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_OBJECT_SYMBOLS_H
#define CAIRN_CLI_DROP_IN_OBJECT_SYMBOLS_H

/**
 * @file
 * The ELF symbols of functions and variables of one file, by address and by name: for requests that name a symbol, for
 * variables, and for starts of functions. Those of .symtab, else of .dynsym. Symbols of a relocatable file have the
 * addresses that relocatable_place_sections() gives their sections.
 *
 * Threads: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "elf-image/elf_image.h"

struct object_symbol {
        uint64_t address, size;
        const char *name;    /* borrowed from the image; as in the file */
        const char *section; /* the same; "" unknown */
        const char *file; /* the same; of a local symbol: the source that the file symbol before it names; "" unknown */
        uint32_t order;   /* in the file */
        uint8_t binding_rank; /* of local, weak and global symbols: 0, 1, 2 */
};

/** Of symbols with the same address and size, the one that is found. */
enum object_symbol_preference {
        PREFER_GLOBAL_SYMBOLS, /* then weak, then local ones; of those the first of the file */
        PREFER_LATER_SYMBOLS,  /* the last of the file */
};

struct object_symbols {
        struct elf_image image;
        uint64_t *section_addresses; /* owned; of a relocatable file, by section; NULL in other files */
        struct object_symbol *items; /* owned; sorted by address, then size, then those preferred last */
        size_t count;
        enum object_symbol_preference preference;
};

/**
 * @param ret  owned, object_symbols_close(); without items for a file without symbols.
 * @return ST_OS, ST_BAD_DATA; ST_TOO_BIG past LIMIT_SYMBOLS; ST_NO_MEMORY.
 */
enum status object_symbols_open(const char *path, enum object_symbol_preference preference, struct object_symbols *ret,
                                struct error *err) MUST_CHECK;
void object_symbols_close(struct object_symbols *s);

/**
 * The symbol that covers an address: the last one that starts at or before it, if it reaches it, or if it has no size
 * and starts there or in a section that has the address.
 */
const struct object_symbol *object_symbols_at(const struct object_symbols *s, uint64_t address);

/**
 * The last symbol that starts at or before an address, if it reaches it or has no size, in a relocatable file only in
 * its section; NULL.
 */
const struct object_symbol *object_symbols_before(const struct object_symbols *s, uint64_t address);

/** The first symbol of this name in the file, or NULL. "foo" is not the name of "foo@V1" and "foo@@V2". */
const struct object_symbol *object_symbols_named(const struct object_symbols *s, const char *name, size_t name_size);

/**
 * The symbols of this name, in the order of the file.
 * @param ret  up to max of them. @return their number.
 */
size_t object_symbols_all_named(const struct object_symbols *s, const char *name, size_t name_size,
                                const struct object_symbol **ret, size_t max);

/** Whether the address is in a page of a segment; always in a relocatable file. */
bool object_symbols_is_loaded(const struct object_symbols *s, uint64_t address);

/** The section that covers an address, or NULL. */
const struct elf_section *object_symbols_section_at(const struct object_symbols *s, uint64_t address);

/** Replace the top byte of each address, in which some targets keep a tag, by copies of bit 55. */
void object_symbols_untag(struct object_symbols *s);

/** The address with copies of bit 55 in place of its top byte. */
uint64_t untag_address(uint64_t address);

/** A symbol and an offset, as in "main+0x10" or "main". */
struct symbol_offset {
        const char *name; /* borrowed */
        size_t name_size;
        int64_t offset;
        bool has_offset;
};

/** Parse all of text. False if the offset is no number, or no name precedes it. */
bool parse_symbol_offset(const char *text, struct symbol_offset *ret);

#endif
