/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACT_FILES_H
#define CAIRN_SYMBOLIZER_EXTRACT_FILES_H

/**
 * @file
 * The files of one extraction, open: which of them runs, which says most, and
 * what belongs to it. Private to the extraction.
 */
#include "common/buf.h"
#include "dwarf/package.h"
#include "elf-image/elf_image.h"
#include "symbolizer/extract.h"
#include "symbolizer/extract_notes.h"

struct extract_files {
        struct elf_image debuginfo, executable, altlink;
        struct elf_image mini; /* inside the executable; opened with its symbols */
        struct buf mini_bytes;
        struct buf debuginfo_placed, executable_placed; /* bytes of what were relocatable files */
        struct elf_image dwp;
        struct dwarf_package package; /* of dwp; all zero without one */
        struct dwarf_dwo_source dwo;
        struct extract_notes notes; /* what of them could not be read */
};

/**
 * One good file is enough: a note is left of the others.
 * @param f  all zero; extract_files_close() also after a failure.
 * @return ST_USAGE without any; else as the only file, or the first, failed.
 */
enum status extract_files_open(const struct extract_inputs *in, struct extract_files *f, struct error *err) MUST_CHECK;
void extract_files_close(struct extract_files *f);

static inline bool extract_file_is_open(const struct elf_image *img)
{
        return img->data != NULL;
}

/** The file whose addresses are those of the table. */
const struct elf_image *extract_files_running(const struct extract_files *f);

/** How far the file that runs was moved from where an image thinks it is. */
uint64_t extract_files_displacement(const struct extract_files *f, const struct elf_image *img);

/** The file that says most; its sections tell where code is, also when their bytes were stripped. */
const struct elf_image *extract_files_best(const struct extract_files *f);

/** The dwz file, when it is the one that img's DWARF names; else NULL. */
const struct elf_image *extract_files_altlink(const struct extract_files *f, const struct elf_image *img);

/** Who has the other halves of split DWARF; borrows from f. */
struct dwarf_companions extract_files_companions(const struct extract_files *f);

#endif
