/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_METRICS_TEXT_H
#define CAIRN_CLI_METRICS_TEXT_H

/**
 * @file
 * Reads metrics in the Prometheus text format: lines of NAME{LABELS} VALUE. Comments, types and times are left out.
 *
 * Threads: any, except parse and deinit.
 * Source: Prometheus text format 0.0.4.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define METRIC_VALUE_END 9e18 /* values are nearer to 0, so that they fit into 64 bits: infinite ones are errors */

struct metric_sample {
        const char *name, *labels; /* labels as they are written, without the braces; "" none */
        double value;
};

struct metrics_text {
        struct metric_sample *samples;
        size_t count;
        char *text; /* private: what the samples point into */
};

/** @return ST_OK; ST_BAD_DATA with the line that is no metric, or whose value is none of those above; ST_TOO_BIG past
 * LIMIT_METRIC_SAMPLES; ST_NO_MEMORY. */
enum status metrics_text_parse(const void *data, size_t n, struct metrics_text *ret, struct error *err) MUST_CHECK;
void metrics_text_deinit(struct metrics_text *m); /* also fine on a zeroed one */

/**
 * The sum of all samples of this name.
 * @param label  as it is written, NAME="VALUE": only of those that have it. NULL: of all.
 * @return 0 when there are none; at most METRIC_VALUE_END, of either sign.
 */
double metrics_text_sum(const struct metrics_text *m, const char *name, const char *label);

/** Whether there is a sample of this name. */
bool metrics_text_has(const struct metrics_text *m, const char *name);

#endif
