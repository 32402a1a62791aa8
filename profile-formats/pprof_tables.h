/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PPROF_TABLES_H
#define CAIRN_PROFILE_FORMATS_PPROF_TABLES_H

/**
 * @file
 * The tables of a pprof file: strings, mappings, functions, locations.
 * Private to the pprof decoder.
 */
#include "common/limits.h"
#include "profile-formats/number_map.h"
#include "profile-formats/pprof_fields.h"
#include "profile-formats/profile.h"
#include "profile-formats/return_address.h"
#include "profile-formats/wire.h"

struct pprof_part {
        const uint8_t *data;
        uint32_t size;
};

struct pprof_function {
        uint32_t name, linkage_name, file;
};

struct pprof_value_type {
        uint32_t type, unit;
};

/*
 * The tables of a file may stand in any order and after the samples, so they
 * are gathered first. Ids are arbitrary: each kind has a map from id to the
 * position at which it was first met.
 */
struct pprof_decoder {
        struct profile *p;
        struct arena scratch;
        const uint8_t *start;
        struct pprof_part *parts[PPROF_STRING_TABLE + 1];
        uint32_t counts[PPROF_STRING_TABLE + 1];
        uint32_t *strings; /* of the profile, plus one; 0: not yet added */
        struct number_map mapping_ids, location_ids, function_ids;
        struct address_mapping *ranges;
        uint32_t *mappings, *locations;
        struct pprof_function *functions;
        uint32_t types[LIMIT_PROFILE_TYPES];
        struct pprof_value_type period_type;
        int64_t period, time_unix_ns, duration_ns;
        struct buf values;
};

/** The bytes of an entry, with their place in the file. */
struct reader pprof_part_reader(const struct pprof_decoder *d, uint32_t part, uint32_t i);

/** The profile's string for a string index. */
enum status pprof_string(struct pprof_decoder *d, uint64_t index, const struct reader *at, uint32_t *ret,
                         struct error *err) MUST_CHECK;

/** The position of the entry that has an id; ST_BAD_DATA where none has. */
enum status pprof_find_id(const struct number_map *ids, uint64_t id, const char *what, const struct reader *at,
                          uint32_t *ret, struct error *err) MUST_CHECK;

enum status pprof_read_value_type(struct pprof_decoder *d, struct reader r, struct pprof_value_type *ret,
                                  struct error *err) MUST_CHECK;

/** Read entry i. Locations refer to mappings and functions, which have to be read before. */
enum status pprof_read_mapping(struct pprof_decoder *d, uint32_t i, struct error *err) MUST_CHECK;
enum status pprof_read_function(struct pprof_decoder *d, uint32_t i, struct error *err) MUST_CHECK;
enum status pprof_read_location(struct pprof_decoder *d, uint32_t i, struct error *err) MUST_CHECK;

#endif
