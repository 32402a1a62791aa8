/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_HIDDEN_LABEL_H
#define CAIRN_PROFILE_FORMATS_HIDDEN_LABEL_H

/**
 * @file
 * Labels that keep what pprof files have besides labels, so that an exported file has it again: numeric labels, and the
 * default sample type.
 *
 * A numeric label is a measurement, such as the size of the allocated objects in heap profiles. As an ordinary label it
 * would make one series of each number. Its samples have the label "__pprof_num_KEY" with the value "NUMBER" or
 * "NUMBER UNIT" instead. Such labels are stored as all others and can be selected by name, but they are neither listed
 * nor part of a series. Rejected: a column of numbers, which every table, queue record and sender would have to carry
 * for the files of one format.
 *
 * Threads: no shared state.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HIDDEN_LABEL_PREFIX "__pprof_"
#define NUMBER_LABEL_PREFIX HIDDEN_LABEL_PREFIX "num_"
#define DEFAULT_TYPE_LABEL HIDDEN_LABEL_PREFIX "default_type" /* value: a sample type, such as "inuse_space" */

static inline bool label_is_hidden(const char *name, size_t n)
{
        const size_t prefix = sizeof HIDDEN_LABEL_PREFIX - 1;

        return n >= prefix && memcmp(name, HIDDEN_LABEL_PREFIX, prefix) == 0;
}

struct number_label {
        const char *key, *unit; /* borrowed from the label; unit "": none */
        int64_t number;
};

/** Read a numeric label; false for all others. */
bool number_label_parse(const char *name, const char *value, struct number_label *ret);

#endif
