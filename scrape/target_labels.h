/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_TARGET_LABELS_H
#define CAIRN_SCRAPE_TARGET_LABELS_H

/**
 * @file
 * The labels of one target while it is found and relabelled: names to values, sorted by name. A label without a value
 * is not there, as in Prometheus.
 *
 * Threads: one at a time, or any number of readers.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"

struct target_label {
        char *name, *value; /* owned; never "" */
};

struct target_labels {
        struct target_label *items; /* owned, sorted by name */
        size_t count, capacity;
};

void target_labels_deinit(struct target_labels *l);
#define _cleanup_target_labels_ _cleanup_(target_labels_deinit)

/** Borrowed until the next change; "" when there is none. */
const char *target_labels_get(const struct target_labels *l, const char *name);

/**
 * Set a label, or remove it when the value is "". Both texts are copied.
 * @return ST_OK; ST_TOO_BIG past LIMIT_SCRAPE_LABELS, LIMIT_SCRAPE_LABELS_BYTES or LIMIT_LABEL_BYTES; ST_NO_MEMORY.
 */
enum status target_labels_set(struct target_labels *l, const char *name, const char *value,
                              struct error *err) MUST_CHECK;

/** Set all labels of another set. */
enum status target_labels_set_all(struct target_labels *l, const struct target_labels *from,
                                  struct error *err) MUST_CHECK;

/** Whether both have the same names and values. */
bool target_labels_equal(const struct target_labels *a, const struct target_labels *b);

/** [a-zA-Z_][a-zA-Z0-9_]*, as Prometheus has it, and dots as in service.name. */
bool target_label_name_is_valid(const char *name);

#endif
