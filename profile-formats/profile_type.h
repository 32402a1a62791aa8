/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PROFILE_TYPE_H
#define CAIRN_PROFILE_FORMATS_PROFILE_TYPE_H

/**
 * @file
 * Profile type ids: "name:sample_type:sample_unit:period_type:period_unit", as in Pyroscope and Parca.
 */
#include "common/memory/buf.h"
#include "profile-formats/profile.h"

/** The five parts. */
enum profile_type_part { TYPE_NAME, TYPE_SAMPLE_TYPE, TYPE_SAMPLE_UNIT, TYPE_PERIOD_TYPE, TYPE_PERIOD_UNIT };

/** Borrow one part of an id, without a terminating NUL; *n_ret is 0 when the id has fewer parts. */
const char *profile_type_part(const char *id, enum profile_type_part part, size_t *n_ret);

/** ST_USAGE if a text from a user does not have five parts. */
enum status profile_type_check(const char *id, struct error *err) MUST_CHECK;

/** Whether a part of an id is this text. */
bool profile_type_has_part(const char *id, enum profile_type_part part, const char *text);

/** A label name by which selectors match the type of a sample: the whole id, or one of its parts. */
struct profile_type_key {
        const char *name; /* "__profile_type__", "__name__", ... */
        bool is_whole;
        enum profile_type_part part;
};

/** NULL: the name is that of a label. */
const struct profile_type_key *profile_type_find_key(const char *name);

struct profile_unit {
        int64_t factor; /* nanoseconds, or bytes */
        bool is_time;
};

/** Find a unit of time or size in any case, singular or plural: "ns", "microsecond", "kB". */
bool profile_unit_find(const char *name, size_t n, struct profile_unit *ret);

/** Nanoseconds per unit of the part, a unit of time; 0 for other units. */
int64_t profile_type_get_time_unit(const char *id, enum profile_type_part part);

/**
 * Whether values are a state, of which each profile is a snapshot (memory in use, goroutines), and not what happened
 * in an interval. Values of several snapshots are averaged, never summed.
 */
bool profile_type_is_gauge(const char *id);

struct profile_type_parts {
        const char *name; /* NULL and "": the usual one for these types ("process_cpu", "memory", "goroutine", "block",
                           * "off_cpu", "wall"), else the sample type */
        const char *sample_type, *sample_unit;
        const char *period_type, *period_unit; /* NULL is "" */
        int64_t period;                        /* in period_unit, 0 when unknown */
};

/** Cut a copy of an id into its parts, without a period. @return false: it does not have five parts. */
bool profile_type_split(char *id, struct profile_type_parts *ret);

/** Append the id of these parts. Colons inside a part become '_'. */
void profile_type_compose(const struct profile_type_parts *parts, struct buf *ret);

/** Add a type given by its parts. Colons inside a part become '_'. */
enum status profile_type_add(struct profile *p, const struct profile_type_parts *parts, uint32_t *ret,
                             struct error *err) MUST_CHECK;

/** Add a type given by its id of five parts. */
enum status profile_type_add_id(struct profile *p, const char *id, int64_t period, uint32_t *ret,
                                struct error *err) MUST_CHECK;

#endif
