/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_NAMED_OBJECTS_H
#define CAIRN_CLI_DROP_IN_NAMED_OBJECTS_H

/**
 * @file
 * The ELF files that one process resolves addresses of, by the names that it was given. The most recently used ones
 * stay open.
 *
 * Threads: one.
 */
#include "cli/drop-in/object_symbols.h"
#include "cli/symbols/answer_source.h"
#include "cli/symbols/debug_files.h"
#include "common/error.h"

#define OPEN_OBJECTS_MAX 64

struct named_object {
        char *name;  /* owned: as it was given, or a build-id in capital hexadecimal */
        char *path;  /* owned */
        int fd;      /* owned; of a downloaded file, which path refers to; -1 none */
        bool is_64;  /* its addresses have 16 digits */
        bool is_elf; /* not a compressed file */
        struct answer_source source;
        struct object_symbols symbols; /* after the first named_object_symbols() */
        bool are_symbols_read;
        uint64_t used; /* time of the last use */
};

struct named_objects {
        struct debug_files debug_files;                  /* set by the caller, opened by the first object */
        bool has_relative_paths;                         /* set by the caller: ANSWER_RELATIVE_DETAILS */
        bool has_untagged_symbols;                       /* set by the caller: object_symbols_untag() */
        enum object_symbol_preference symbol_preference; /* set by the caller */
        bool are_debug_files_open;
        struct named_object *items[OPEN_OBJECTS_MAX];
        size_t count;
        uint64_t time;
};

/** @param o  all zero, except for debug_files and what the caller sets. */
void named_objects_deinit(struct named_objects *o);

/**
 * The object of this name, opened if necessary.
 * @param ret  borrowed until two calls later.
 * @return ST_OS with the errno in err if the file cannot be opened; ST_BAD_DATA if it is not ELF.
 */
enum status named_objects_get(struct named_objects *o, const char *name, struct named_object **ret,
                              struct error *err) MUST_CHECK;

/**
 * The debug file of a build-id, from the debug directory or a server of debuginfod.
 * @param id   hexadecimal digits.
 * @param ret  as above.
 * @return ST_NOT_FOUND if there is none; as above.
 */
enum status named_objects_get_build_id(struct named_objects *o, const char *id, struct named_object **ret,
                                       struct error *err) MUST_CHECK;

/** The ELF symbols of the file itself; none if they cannot be read. Borrowed as the object. */
const struct object_symbols *named_objects_symbols(const struct named_objects *o, struct named_object *object);

/** Whether a file is an archive of object files, which no object can be read of. */
bool is_object_archive(const char *path);

/** The addresses of a section of an ELF file; false if there is none of this name. */
bool find_section_addresses(const char *path, const char *section, uint64_t *address_ret, uint64_t *size_ret);

#endif
