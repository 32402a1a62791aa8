/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SHARED_METRICS_TEXT_H
#define CAIRN_CLI_SHARED_METRICS_TEXT_H

/**
 * @file
 * Reads metrics in the Prometheus text format: lines of NAME{LABELS} VALUE. Comments, types and times are ignored.
 *
 * Threads: any, except parse and deinit.
 * Source: Prometheus text format 0.0.4.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define METRIC_VALUE_END 9e18 /* exclusive bound of |value|, so that values fit into 64 bits; infinities are errors */

struct metric_sample {
        const char *name, *labels; /* labels: as written, without the braces; "" none */
        double value;
};

struct metrics_text {
        struct metric_sample *samples;
        size_t count;
        char *text; /* private: the text that the samples point into */
};

/** @return ST_OK; ST_BAD_DATA with the number of a line that is malformed or whose value is out of range; ST_TOO_BIG
 * past LIMIT_METRIC_SAMPLES; ST_NO_MEMORY. */
enum status metrics_text_parse(const void *data, size_t n, struct metrics_text *ret, struct error *err) MUST_CHECK;
void metrics_text_deinit(struct metrics_text *m); /* m may be zeroed */

/**
 * The sum of all samples of this name.
 * @param label  only samples with this label, as written: NAME="VALUE"; NULL: all samples.
 * @return 0 without samples; clamped to +-METRIC_VALUE_END.
 */
double metrics_text_sum(const struct metrics_text *m, const char *name, const char *label);

#endif
