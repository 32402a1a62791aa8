/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_OBJECT_FACTS_H
#define CAIRN_SYMBOLIZER_OBJECT_FACTS_H

/**
 * @file
 * What a program must know of ELF files to choose among them and to turn file offsets into addresses: build-id,
 * quality and segments of many files, read by a confined worker (`cairn worker objects`: descriptor 3 the answer,
 * the others the files).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "elf-image/quality.h"

#define OBJECT_FACTS_SEGMENTS 32 /* that are loaded; a linker makes four, prelink and hot/cold splits a few more */
#define OBJECT_FACTS_FILES 15    /* of one worker */

struct object_segment { /* PT_LOAD */
        uint64_t file_offset, file_size, address, memory_size;
        bool executable;
};

struct object_facts {
        bool is_elf;
        bool has_code; /* holds its instructions: not a debug file of its own */
        struct build_id build_id; /* size 0: none */
        enum symbol_quality quality;
        uint32_t segment_count;
        struct object_segment segments[OBJECT_FACTS_SEGMENTS];
};

/**
 * Facts of up to OBJECT_FACTS_FILES open files. A file that is no ELF, or costs its worker's life, is one with
 * is_elf false and no error.
 * @return ST_OS when no worker can be started.
 */
enum status object_facts_read(const int *fds, size_t count, struct object_facts *ret, struct error *err) MUST_CHECK;

/** The worker's side. */
enum status object_facts_worker(int out, int first, struct error *err) MUST_CHECK;

/** Where a file was mapped: its part that begins at offset; size 0 when that is all that is known. */
struct object_mapping {
        uint64_t offset, size;
};

/**
 * The object's own address of an offset into the file that ran.
 *
 * A debug file without code has lost its offsets. There the mapping helps when it is all of the only executable
 * segment: then both begin on the same page. An offset behind the end of the file that is an address of its code is
 * one: perf prints those of a program that is not relocated as they are.
 * @return false when the offset is outside of what is loaded.
 */
bool object_facts_address(const struct object_facts *f, const struct object_mapping *m, uint64_t offset, uint64_t *ret);

#endif
