/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_VERIFY_WORKER_H
#define CAIRN_DEBUGINFO_STORE_VERIFY_WORKER_H

/**
 * @file
 * Verification of an uploaded file by a confined worker (`cairn worker verify`; descriptor 3: the file, 4: the result,
 * 5: the file that a package of split DWARF is claimed to belong to).
 */
#include "common/build_id.h"
#include "common/error.h"
#include "common/memory/buf.h"
#include "debuginfo-store/debuginfo_store.h"
#include "elf-image/quality.h"

enum verified_form {
        VERIFIED_ELF,           /* an executable, a library, or their debuginfo */
        VERIFIED_SOURCE,        /* a source bundle */
        VERIFIED_SUPPLEMENTARY, /* made by dwz: elf_image_is_supplement() */
        VERIFIED_DWP,
        VERIFIED_DWO,
        VERIFIED_SYMBOLS, /* a symbol file */
        VERIFIED_FORM_COUNT
};

struct verify_result {
        enum verified_form form;
        struct build_id build_id; /* or its substitute: a supplementary file's checksum, a .dwo's id; size 0: none */
        struct build_id go_id;    /* if it differs from build_id; size 0: none */
        enum symbol_quality quality;
        bool has_code;                  /* has the content of executable sections */
        uint32_t package_units;         /* of a package: number of units, and */
        uint32_t asked_units;           /* how many of them are referenced by the other file */
        struct object_name *companions; /* required supplementary and .dwo files; owned */
        uint32_t companion_count;
        uint8_t *sections; /* elf-image/section_list.h; owned; NULL: unknown */
        uint32_t sections_bytes;
};

void verify_result_deinit(struct verify_result *v);
#define _cleanup_verify_result_ _cleanup_(verify_result_deinit)

/**
 * Run a worker on the file.
 * @param other the file that a package may belong to; -1: none.
 * @param ret   verify_result_deinit().
 * @return ST_BAD_DATA with the reason if its form is unknown, or it crashed the worker.
 */
enum status verify_file_in_worker(int fd, int other, struct verify_result *ret, struct error *err) MUST_CHECK;

/** The worker's entry point. @param other may be a closed descriptor. */
enum status verify_worker_run(int in, int out, int other, struct error *err) MUST_CHECK;

/*
 * Encoding of the result, little-endian: form, quality and code (u8 each), units of a package and how many of them are
 * referenced (u32 each), build-id and Go build-id (u8 size, bytes), number of companions (u32), of each its kind (u8)
 * and id (u8 size, bytes), size of the section list (u32) and the list.
 */
#define VERIFY_ANSWER_MAX                                                                                              \
        (64 + 2 * BUILD_ID_MAX + (LIMIT_COMPANIONS + 1) * (2 + BUILD_ID_MAX) + LIMIT_SECTION_LIST_BYTES)

void verify_result_encode(struct buf *to, const struct verify_result *v);

/** The bytes are untrusted: the worker may be compromised. @param ret verify_result_deinit(). */
enum status verify_result_decode(const void *bytes, size_t n, struct verify_result *ret, struct error *err) MUST_CHECK;

#endif
