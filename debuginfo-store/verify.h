/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_VERIFY_H
#define CAIRN_DEBUGINFO_STORE_VERIFY_H

/**
 * @file
 * What an uploaded file really is, whole ELF or a source bundle, found out by a confined worker
 * (`cairn worker verify`, descriptor 3 the file, 4 the answer).
 */
#include "common/build_id.h"
#include "common/error.h"
#include "symbolizer/lookup.h"

struct verified {
        struct build_id build_id;    /* size 0: the file has none */
        enum symbol_quality quality;
        bool has_code;               /* holds the content of executable sections */
        bool is_supplement;          /* elf_image_is_supplement() */
        bool is_source;              /* no ELF but a source bundle, of which all but the build-id is false */
};

/** Ask a worker. ST_BAD_DATA with the reason when the file is neither, or the worker died of it. */
enum status verify_object(int fd, struct verified *ret, struct error *err) MUST_CHECK;

/** The worker's side: read descriptor in, write the answer to descriptor out. */
enum status verify_worker(int in, int out, struct error *err) MUST_CHECK;

#endif
