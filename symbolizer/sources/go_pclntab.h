/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_GO_PCLNTAB_H
#define CAIRN_SYMBOLIZER_SOURCES_GO_PCLNTAB_H

/**
 * @file
 * A bounded reader of Go's pclntab: functions, the file and line of each pc, and
 * the calls inlined there.
 *
 * Four magic numbers identify the layouts: Go 1.2 to 1.15, 1.16 and 1.17, 1.18
 * and 1.19, 1.20 and later. Where a layout does not determine a value (the
 * column of per-function data with the inline tree in Go 1.12 to 1.15; the base
 * of that data since 1.18) the caller tries candidates with
 * go_pclntab_try_inlining().
 *
 * Every read is checked; a wrong offset gives an empty name, no line or no
 * inlined call, never data of another function.
 *
 * Threads: immutable once opened.
 * Source: Go, src/runtime/symtab.go and src/internal/abi/symtab.go.
 */
#include "elf-image/elf_image.h"

enum go_layout { GO_1_2, GO_1_16, GO_1_18, GO_1_20 };

struct go_pclntab {
        const struct elf_image *img; /* borrowed; per-function data may lie outside the table */
        const uint8_t *data;         /* borrowed */
        size_t size;
        uint64_t address;
        enum go_layout layout;
        bool big_endian;
        uint8_t quantum, pointer_size;
        uint64_t function_count;
        uint64_t text_start; /* 1.18 and later: base of entries; 0 when the table does not contain it */
        /* Offsets into data */
        uint64_t names, units, files, tables, functions, function_base;
        /* Location of the inline trees; unknown until go_pclntab_try_inlining() */
        bool inlining;
        unsigned inline_table, inline_tree; /* numbers of the pcdata and of the funcdata */
        uint64_t tree_base;                 /* address; 1.18 and later */
};

struct go_function {
        uint64_t entry, end;                           /* end: where the next one begins */
        const char *name;                              /* borrowed, "" when it has none */
        uint32_t file_table, line_table, inline_table; /* offsets for go_steps_read(), 0 none */
        uint32_t unit;                                 /* 1.16 and later: index of its first file */
        uint32_t start_line;                           /* 1.20 and later: of its declaration, 0 unknown */
        uint64_t tree;                                 /* address of the inline tree, 0 none */
};

struct go_inlined_call {
        const char *name;    /* borrowed */
        uint32_t parent_pc;  /* of the call, from the function's entry */
        uint32_t start_line; /* as above */
};

/** Check the magic number and the bytes after it: cheap, for scanning, with few false positives. */
bool go_pclntab_has_magic(const uint8_t *data, size_t size, bool big_endian);

/**
 * @param data borrowed, relocated where the file is position-independent.
 * @return ST_BAD_DATA when it is not a pclntab or its parts exceed it.
 */
enum status go_pclntab_open(const struct elf_image *img, const uint8_t *data, size_t size, uint64_t address,
                            struct go_pclntab *ret, struct error *err) MUST_CHECK;

/**
 * Set the location of the inline trees if the trees of the first functions that
 * have one are consistent: names start at the start of a name, calls lie inside
 * their function.
 * @return false, with t unchanged, when they are not or when no function has a tree.
 */
bool go_pclntab_try_inlining(struct go_pclntab *t, unsigned inline_table, unsigned inline_tree, uint64_t tree_base);

/** False when the function's record cannot be read. */
bool go_pclntab_get_function(const struct go_pclntab *t, uint64_t index, struct go_function *ret);

/** The end of the last function's data, as an address, rounded up to alignment. */
uint64_t go_pclntab_data_end(const struct go_pclntab *t, unsigned alignment);

/** False when the tree does not contain the call. */
bool go_read_inlined_call(const struct go_pclntab *t, const struct go_function *f, uint32_t index,
                          struct go_inlined_call *ret);

/** Bytes of one call in an inline tree. */
unsigned go_inlined_call_bytes(const struct go_pclntab *t);

/** Path of file number `index` of the function; "" unknown. */
const char *go_get_file_path(const struct go_pclntab *t, const struct go_function *f, int32_t index);

/** A value for each pc of a function. */
struct go_step {
        uint64_t end; /* address */
        int32_t value;
};
struct go_steps {
        struct go_step *items; /* owned; ascending */
        size_t count, capacity;
};
void go_steps_deinit(struct go_steps *s);

/** Replace the steps by those of the table at offset; a broken table ends early. False without memory. */
bool go_steps_read(const struct go_pclntab *t, const struct go_function *f, uint32_t offset, struct go_steps *s);

/** The value at address, -1 without one. */
int32_t go_steps_at(const struct go_steps *s, uint64_t address);

#endif
