/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PROFILE_TYPE_H
#define CAIRN_PROFILE_FORMATS_PROFILE_TYPE_H

/**
 * @file
 * Profile type ids: "name:sample_type:sample_unit:period_type:period_unit", as in Pyroscope and Parca.
 */
#include "profile-formats/profile.h"

/** The five parts. */
enum profile_type_part { TYPE_NAME, TYPE_SAMPLE_TYPE, TYPE_SAMPLE_UNIT, TYPE_PERIOD_TYPE, TYPE_PERIOD_UNIT };

/** Borrow one part of an id, without a terminating NUL; *n_ret is 0 when the id has fewer parts. */
const char *profile_type_part(const char *id, enum profile_type_part part, size_t *n_ret);

/** ST_USAGE if a text from a user does not have five parts. */
enum status profile_type_check(const char *id, struct error *err) MUST_CHECK;

/** Whether a part of an id is this text. */
bool profile_type_has_part(const char *id, enum profile_type_part part, const char *text);

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

/** How values of a type with one period become numbers of samples. */
struct sample_count_rule {
        __int128 interval; /* of a sample; 0: the type does not tell, the values may be of any number of samples */
        int64_t unit;      /* of the values, in that of the interval */
};

/** @param period  in the unit of the type's period; 0 unknown. */
struct sample_count_rule profile_type_get_count_rule(const char *id, int64_t period);

/**
 * Compute the number of samples that were taken for a sum of values.
 * @param stacks  that were sent with the values, each for one sample or more.
 * @return false if the type does not tell.
 */
bool count_samples_by_rule(const struct sample_count_rule *rule, int64_t value, uint64_t stacks, uint64_t *ret);

/**
 * Count the samples of a profile, of which several types may count the same ones: those of the type with most.
 * @param are_stacks_ret  the number of samples is unknown; the stacks as sent were counted.
 */
uint64_t profile_count_samples(const struct profile *p, bool *are_stacks_ret);

struct profile_type_parts {
        const char *name; /* NULL and "": the usual one for these types ("process_cpu", "memory", "goroutine", "block",
                           * "off_cpu", "wall"), else the sample type */
        const char *sample_type, *sample_unit;
        const char *period_type, *period_unit; /* NULL is "" */
        int64_t period;                        /* in period_unit, 0 when unknown */
};

/** Add a type given by its parts. Colons inside a part become '_'. */
enum status profile_type_add(struct profile *p, const struct profile_type_parts *parts, uint32_t *ret,
                             struct error *err) MUST_CHECK;

/** Add a type given by its id of five parts. */
enum status profile_type_add_id(struct profile *p, const char *id, int64_t period, uint32_t *ret,
                                struct error *err) MUST_CHECK;

#endif
