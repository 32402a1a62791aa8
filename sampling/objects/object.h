/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_OBJECTS_OBJECT_H
#define CAIRN_SAMPLING_OBJECTS_OBJECT_H

/**
 * @file
 * Build-id and segments of a mapped ELF file, to translate an address of
 * a process into an address of the object.
 *
 * The file is untrusted and may be truncated while it is read, so it is not
 * mapped: header, segment table and notes are copied with pread(), a few
 * hundred bytes in total.
 *
 * Threads: a parsed object is immutable.
 * Source: System V gABI, chapters 4 and 5.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

struct load_segment {
        uint64_t offset, file_size; /* in the file */
        uint64_t address;           /* p_vaddr */
        bool executable;
};

struct object {
        struct build_id build_id;      /* size 0: the file has none */
        bool has_placeholder_id;       /* the file has one that counts as none: build_id_is_placeholder() */
        struct load_segment *segments; /* PT_LOAD with bytes in the file */
        size_t segment_count;
        uint64_t serial; /* unique, assigned by the object cache */
};

/** Read n bytes at offset; a short read is a failure. */
typedef bool object_read_fn(void *ctx, uint64_t offset, void *to, size_t n);

/**
 * Read build-id and segments of an ELF file.
 * @param ret  owned, free with object_deinit(); untouched on failure.
 * @return ST_OK; ST_BAD_DATA for a file that is truncated or not ELF of this machine's class and
 *         byte order; ST_TOO_BIG past LIMIT_ELF_SEGMENTS.
 */
enum status object_read(object_read_fn *read, void *ctx, struct object *ret, struct error *err) MUST_CHECK;
enum status object_read_fd(int fd, struct object *ret, struct error *err) MUST_CHECK;
enum status object_read_memory(const void *data, size_t size, struct object *ret, struct error *err) MUST_CHECK;
void object_deinit(struct object *o);

/**
 * Translate the file offset of code in a mapping to an object address.
 *
 * The kernel maps whole pages, so bytes around a segment are visible in its mapping too.
 * Preference: the segment that contains the offset, code before data; then the segment whose
 * pages contain it.
 * @return false when there is none; ret untouched.
 */
bool object_find_address(const struct object *o, uint64_t file_offset, uint64_t *ret);

/**
 * The object address of the first byte of a mapping that begins at this file offset, which is that of a page.
 * @param executable  the mapping, so that of two segments that share the page the right one is chosen.
 * @return false when no segment is in that page; ret untouched.
 */
bool object_find_mapped_address(const struct object *o, uint64_t file_offset, bool executable, uint64_t *ret);

/**
 * The object address of the first byte of an executable mapping of size bytes, derived from the
 * executable segment that it shows. Adjacent pages may belong to another segment, but all code of
 * an object has one bias.
 * @return false when the mapping shows no executable segment; ret untouched.
 */
bool object_find_code_address(const struct object *o, uint64_t file_offset, uint64_t size, uint64_t *ret);

#endif
