/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_WORKERS_OBJECT_FACTS_H
#define CAIRN_SYMBOLIZER_WORKERS_OBJECT_FACTS_H

/**
 * @file
 * Build-id, quality and segments of many ELF files, read by a confined worker
 * (`cairn worker objects`: descriptor 3 the answer, the others the files), to
 * choose among files and to translate file offsets to addresses.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "elf-image/quality.h"

#define OBJECT_FACTS_SEGMENTS 32 /* PT_LOAD; linkers emit four, prelink and hot/cold splitting a few more */
#define OBJECT_FACTS_FILES 15    /* of one worker */

struct object_segment { /* PT_LOAD */
        uint64_t file_offset, file_size, address, memory_size;
        bool executable;
};

struct object_facts {
        bool is_elf;
        bool has_code;            /* contains instructions; false for a separate debug file */
        struct build_id build_id; /* size 0: none */
        enum symbol_quality quality;
        uint32_t segment_count;
        struct object_segment segments[OBJECT_FACTS_SEGMENTS];
};

/**
 * Facts of up to OBJECT_FACTS_FILES open files. is_elf is false, without an error, for other files and for files that
 * crash the worker.
 * @return ST_OS when no worker can be started.
 */
enum status object_facts_read(const int *fds, size_t count, struct object_facts *ret, struct error *err) MUST_CHECK;

/** The worker's side. */
enum status object_facts_run_worker(int out, int first, struct error *err) MUST_CHECK;

/** A mapping of a file; size 0 unknown. */
struct object_mapping {
        uint64_t offset, size;
};

/**
 * Translate an offset into the executable to an address of the object.
 *
 * A debug file without code has lost its file offsets. The mapping replaces them when it covers the whole of the only
 * executable segment: both then begin on the same page. An offset past the end of the file that is a code address is
 * used as an address: perf prints the addresses of a program that is not relocated unchanged.
 * @return false when the offset is in no loaded segment.
 */
bool object_facts_translate_offset(const struct object_facts *f, const struct object_mapping *m, uint64_t offset,
                                   uint64_t *ret);

#endif
