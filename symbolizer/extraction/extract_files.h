/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACTION_EXTRACT_FILES_H
#define CAIRN_SYMBOLIZER_EXTRACTION_EXTRACT_FILES_H

/**
 * @file
 * The open files of one extraction: the executable, the file with the best
 * symbols, and their companions. Private to the extraction.
 */
#include "common/memory/buf.h"
#include "dwarf/package.h"
#include "elf-image/elf_image.h"
#include "symbolizer/extraction/extract.h"
#include "symbolizer/sources/dwarf_extract.h"

/* Notes on unreadable parts of an object: the text that marks its symbol table as partial. */
struct extract_notes {
        char text[SYMBOL_PARTIAL_BYTES]; /* "" nothing is missing */
};

/** Append a reason. Duplicates are dropped; text beyond the size is cut. */
void extract_notes_add(struct extract_notes *n, const char *fmt, ...) PRINTF(2, 3);

/** Append the unreadable parts of the DWARF. */
void extract_notes_add_dwarf(struct extract_notes *n, const struct dwarf_summary *s);

/**
 * Note the failure st of one part if the object is usable without it. Out of memory and system errors are not noted,
 * since a retry may succeed.
 * @return ST_OK when st was noted or is ST_OK, else st.
 */
enum status extract_notes_add_failure(struct extract_notes *n, enum status st, const struct error *reason,
                                      struct error *err) MUST_CHECK;

/* The copy of a relocatable file, with addresses (symbolizer/extraction/relocatable.h). */
struct placed_file {
        struct buf bytes;
        uint64_t dwarf_bias; /* address in its DWARF minus that in its section headers */
};

struct extract_files {
        struct elf_image debuginfo, executable, altlink;
        struct elf_image mini; /* .gnu_debugdata of the executable; opened when its symbols are read */
        struct buf mini_bytes;
        struct placed_file debuginfo_placed, executable_placed;
        struct elf_image dwp;
        struct dwarf_package package; /* of dwp; all zero without one */
        struct dwarf_dwo_source dwo;
        struct extract_notes notes; /* unreadable parts */
        bool has_relative_paths;    /* of the inputs, as the next */
        const char *file_name;
};

/**
 * One readable file is enough; failures of the others are noted.
 * @param f  all zero; extract_files_close() also after a failure.
 * @return ST_USAGE without any; else as the only file, or the first, failed.
 */
enum status extract_files_open(const struct extract_inputs *in, struct extract_files *f, struct error *err) MUST_CHECK;
void extract_files_close(struct extract_files *f);

static inline bool extract_file_is_open(const struct elf_image *img)
{
        return img->data != NULL;
}

/** The executable, or without one the debug file: the table has its addresses. */
const struct elf_image *extract_files_running(const struct extract_files *f);

/** Prelink bias of the executable against an image (prelink_bias.h). */
uint64_t extract_files_prelink_bias(const struct extract_files *f, const struct elf_image *img);

/** Address in the executable minus that in the DWARF of an image, which has a bias in copies of relocatable files. */
uint64_t extract_files_dwarf_bias(const struct extract_files *f, const struct elf_image *img);

/** The file with the best symbols; its section headers locate code even when their content was stripped. */
const struct elf_image *extract_files_best(const struct extract_files *f);

/** The dwz file if img's DWARF refers to it, else NULL. */
const struct elf_image *extract_files_altlink(const struct extract_files *f, const struct elf_image *img);

/** Sources of split units; borrows from f. */
struct dwarf_companions extract_files_companions(const struct extract_files *f);

#endif
