/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_STRUCTS_STRUCT_OFFSETS_H
#define CAIRN_SYMBOLIZER_STRUCTS_STRUCT_OFFSETS_H

/**
 * @file
 * Offsets of fields of C structures, from DWARF: "STRUCT.FIELD", "STRUCT.FIELD.FIELD" for a field of a nested
 * structure, or "STRUCT" for its size. STRUCT is the tag of a structure or union, or a name given by typedef. Members
 * of unnamed structures and unions count as members of the one around them. The first complete definition of a name is
 * used; structures inside C++ namespaces and classes are not searched.
 *
 * Threads: no shared state.
 * Source: DWARF 5, 5.7.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define STRUCT_FIELDS_MAX 64       /* of one question */
#define STRUCT_FIELD_BYTES_MAX 256 /* of one field, with the structure */

enum struct_offset_state {
        STRUCT_OFFSET_FOUND,
        STRUCT_OFFSET_NO_STRUCT, /* no complete definition */
        STRUCT_OFFSET_NO_FIELD,
        STRUCT_OFFSET_BIT_FIELD, /* it does not begin at a byte, or is no data member */
        STRUCT_OFFSET_STATES
};

struct struct_offset {
        uint64_t offset; /* in bytes */
        uint64_t size;   /* 0: unknown */
        uint64_t state;  /* enum struct_offset_state */
};

const char *struct_offset_state_name(uint64_t state);

/** Whether the text is "STRUCT" or "STRUCT.FIELD..." of identifiers. */
bool struct_field_is_valid(const char *field);

/**
 * Run `cairn worker offsets`. The answer is untrusted, but has valid states.
 * @param fd         the debug file. @param altlink_fd  its dwz file; -1: none.
 * @param ret        one for each field.
 * @param cancel     as in struct worker_job.
 * @return ST_USAGE: too many fields or a malformed one; ST_BAD_DATA: no readable DWARF.
 */
enum status struct_offsets_find(int fd, int altlink_fd, const char *const *fields, size_t count,
                                const atomic_bool *cancel, struct struct_offset *ret, struct error *err) MUST_CHECK;

/** The worker's side. @param question  fields, one a line. @param out  for the answers. */
enum status struct_offsets_run_worker(int fd, int altlink_fd, int question, int out, struct error *err) MUST_CHECK;

#endif
