/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_OTLP_ENCODE_TABLES_H
#define CAIRN_PROFILE_FORMATS_OTLP_ENCODE_TABLES_H

/**
 * @file
 * The dictionary of an OTLP request that is written.
 * Private to the OTLP encoder.
 */
#include "profile-formats/number_map.h"
#include "profile-formats/profile.h"
#include "profile-formats/string_list.h"

/*
 * Every table of the output starts with an empty entry 0, so entry i of the
 * profile is entry i + 1 there; strings share their numbers, as entry 0 of the
 * profile's own table is the empty string. Strings that the profile does not
 * have follow its own.
 */
enum otlp_extra {
        EXTRA_BUILD_ID,
        EXTRA_FRAME_TYPE,
        EXTRA_KERNEL,
        EXTRA_ADDRESS_KIND,
        EXTRA_OBJECT,
        EXTRA_FILE_OFFSET,
        EXTRA_NONE,
        EXTRA_PROFILE_TYPE,
        EXTRA_TRUNCATED,
        EXTRA_TRUE,
        EXTRA_COUNT,
};

struct otlp_encoder {
        const struct profile *p;
        struct buf *out;
        struct error *err;
        enum status failed; /* of a map; buffers keep their own */
        struct number_map attributes, functions, links;
        struct string_list more; /* strings that the profile does not have */
        uint32_t extras[EXTRA_COUNT];
        const struct profile_label *common; /* labels that every sample has */
        uint32_t common_count;
};

static inline uint32_t otlp_extra(const struct otlp_encoder *e, enum otlp_extra s)
{
        return e->extras[s];
}

/** Give the extra strings their numbers; first of all. */
void otlp_put_extras(struct otlp_encoder *e);

/** The entry's number in the output's table, where 0 is the empty one. */
uint32_t otlp_numbered(struct otlp_encoder *e, struct number_map *m, struct number_key key);
uint32_t otlp_put_attribute(struct otlp_encoder *e, uint32_t key, uint32_t value);
uint32_t otlp_put_string(struct otlp_encoder *e, const char *text, size_t n);

/** Last of all: functions, links, attributes and strings are those that were numbered. */
void otlp_put_dictionary(struct otlp_encoder *e);

#endif
