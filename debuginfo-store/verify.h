/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_VERIFY_H
#define CAIRN_DEBUGINFO_STORE_VERIFY_H

/**
 * @file
 * What an uploaded file really is, found out by a confined worker
 * (`cairn worker verify`; descriptor 3 the file, 4 the answer, 5 the file that
 * a package of split DWARF is said to belong to).
 */
#include "common/build_id.h"
#include "common/error.h"
#include "debuginfo-store/store.h"
#include "symbolizer/lookup.h"

enum verified_form {
        VERIFIED_ELF,           /* an executable, a library, or their debuginfo */
        VERIFIED_SOURCE,        /* a source bundle */
        VERIFIED_SUPPLEMENTARY, /* what dwz makes of several files: elf_image_is_supplement() */
        VERIFIED_DWP,
        VERIFIED_DWO,
        VERIFIED_SYMBOLS,       /* a symbol file */
        VERIFIED_FORM_COUNT
};

struct verified {
        enum verified_form form;
        struct build_id build_id;    /* or what stands for it: a supplementary file's checksum, a .dwo's id; size 0: none */
        struct build_id go_id;       /* where build_id is another one; size 0: none */
        enum symbol_quality quality;
        bool has_code;               /* holds the content of executable sections */
        uint32_t package_units;      /* of a package: how many it has, */
        uint32_t asked_units;        /* and how many of them the other file asks for */
        struct object_name *needs;   /* supplementary and .dwo files that it needs; owned */
        uint32_t need_count;
        uint8_t *sections;           /* where they lie, as elf-image/section_list.h has it; owned; NULL: not told */
        uint32_t sections_bytes;
};

void verified_deinit(struct verified *v);
#define _cleanup_verified_ _cleanup_(verified_deinit)

/**
 * Ask a worker.
 * @param other the file that a package may belong to; -1 none.
 * @param ret   verified_deinit().
 * @return ST_BAD_DATA with the reason when it is nothing of these, or the worker died of it.
 */
enum status verify_object(int fd, int other, struct verified *ret, struct error *err) MUST_CHECK;

/** The worker's side. @param other may be a descriptor that is not open. */
enum status verify_worker(int in, int out, int other, struct error *err) MUST_CHECK;

#endif
