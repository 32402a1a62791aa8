/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_OTLP_OTLP_DICTIONARY_H
#define CAIRN_PROFILE_FORMATS_OTLP_OTLP_DICTIONARY_H

/**
 * @file
 * The dictionary of an OTLP request. All tables are read and checked before any profile, because a request may hold its
 * dictionary after the profiles and in several pieces. Indices of unused entries are checked too.
 * Private to the OTLP decoder.
 */
#include "profile-formats/otlp/otlp_fields.h"
#include "profile-formats/profile.h"
#include "profile-formats/wire.h"

#define OTLP_TOO_OLD "OTLP older than 1.8.0: update the sender to 1.10.0 or later"

struct otlp_entry {
        uint32_t offset, size; /* in the request */
};

struct otlp_attribute {
        uint32_t key, value; /* strings of the profile */
        bool usable;         /* the value can be a label */
};

struct otlp_link {
        uint8_t trace_id[16];
        uint8_t span_id[8];
};

struct otlp_function {
        uint32_t name, system_name, file; /* strings of the profile */
        int64_t start_line;               /* 0 unknown */
};

struct otlp_dictionary {
        struct profile *p;
        struct arena scratch;
        const uint8_t *start; /* of the request */
        struct otlp_entry *tables[DICTIONARY_TABLES];
        uint32_t counts[DICTIONARY_TABLES];
        uint32_t *strings; /* of the profile, plus one; 0: not yet added */
        struct otlp_attribute *attributes;
        struct otlp_link *links;
        uint32_t *mappings, *locations, *stacks; /* numbers in the profile */
        struct otlp_function *function_items;
        struct address_mapping *mapping_ranges;
        uint32_t unknown_location; /* of index 0, plus one */
        uint32_t truncated_key;    /* the string ATTRIBUTE_STACK_TRUNCATED, PROFILE_NONE when unused */
};

/** Read and check the tables of a request of less than 4 GiB. Call otlp_dictionary_deinit() also after a failure. */
enum status otlp_dictionary_read(struct otlp_dictionary *d, struct profile *p, const void *data, size_t n,
                                 struct error *err) MUST_CHECK;
void otlp_dictionary_deinit(struct otlp_dictionary *d);

/** The encoded entry i of a table, with its place in the request. */
struct reader otlp_dictionary_entry(const struct otlp_dictionary *d, unsigned table, uint32_t i);

/** ST_BAD_DATA unless index is inside the table. Index 0 is always inside. */
enum status otlp_dictionary_check_index(const struct otlp_dictionary *d, unsigned table, uint64_t index,
                                        const struct reader *at, struct error *err) MUST_CHECK;

/** The profile's string for a string index. */
enum status otlp_dictionary_string(struct otlp_dictionary *d, uint64_t index, const struct reader *at, uint32_t *ret,
                                   struct error *err) MUST_CHECK;

/** Decode a KeyValue message (of a resource or a scope). */
enum status read_otlp_key_value(struct otlp_dictionary *d, struct reader r, struct otlp_attribute *ret,
                                struct error *err) MUST_CHECK;

#endif
