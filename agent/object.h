/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_OBJECT_H
#define CAIRN_AGENT_OBJECT_H

/**
 * @file
 * What the agent must know of an ELF file that processes have mapped: its
 * build-id and where its segments lie, so that an address of a process becomes
 * the object's own.
 *
 * The file belongs to others and may be cut off while it is read, so nothing
 * is mapped: header, segment table and notes are copied with pread(), some
 * hundred bytes in all.
 * Threads: a parsed object is never changed.
 * Source: System V gABI, chapters 4 and 5.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

struct object_segment {
        uint64_t offset, file_size; /* in the file */
        uint64_t address;           /* p_vaddr */
        bool executable;
};

struct object {
        struct build_id build_id;   /* size 0: the file has none */
        struct object_segment *segments; /* PT_LOAD with bytes in the file */
        size_t segment_count;
        uint64_t serial;            /* given by who keeps objects: never twice */
};

/** Reads n bytes at offset: fewer than n is a failure. */
typedef bool object_read_fn(void *ctx, uint64_t offset, void *to, size_t n);

/**
 * Read what is needed of an ELF file.
 * @param ret  owned, free with object_deinit(); untouched on failure.
 * @return ST_OK; ST_BAD_DATA for what is no ELF file of this machine's class
 *         and byte order or is cut off; ST_TOO_BIG past LIMIT_ELF_SEGMENTS.
 */
enum status object_read(object_read_fn *read, void *ctx, struct object *ret, struct error *err) MUST_CHECK;
enum status object_read_fd(int fd, struct object *ret, struct error *err) MUST_CHECK;
enum status object_read_memory(const void *data, size_t size, struct object *ret, struct error *err) MUST_CHECK;
void object_deinit(struct object *o);

/**
 * The object's own address of a byte of the file that is mapped as code.
 *
 * The kernel maps whole pages, so the bytes around a segment are visible in its
 * mapping too: the segment that holds the offset itself comes first, code
 * before data, then the one whose pages do.
 * @return false when no segment has it; ret untouched.
 */
bool object_address(const struct object *o, uint64_t file_offset, uint64_t *ret);

/**
 * The address of the first byte of an executable mapping of size bytes, by the
 * executable segment that it shows. The page before or behind that segment's
 * bytes may belong to another one; code has one bias all the same.
 * @return false when the mapping shows no executable segment; ret untouched.
 */
bool object_code_address(const struct object *o, uint64_t file_offset, uint64_t size, uint64_t *ret);

#endif
