/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_RELABEL_LABEL_SET_H
#define CAIRN_RELABEL_LABEL_SET_H

/**
 * @file
 * Mutable label set of one target or sample, used by discovery and relabelling: names to values, sorted by name. A
 * label with an empty value is absent, as in Prometheus.
 *
 * Threads: one at a time, or any number of readers.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"

struct set_label {
        char *name, *value; /* owned; never "" */
};

struct label_set {
        struct set_label *items; /* owned, sorted by name */
        size_t count, capacity;
};

void label_set_deinit(struct label_set *l);
#define _cleanup_label_set_ _cleanup_(label_set_deinit)

/** The value, borrowed until the next change; "" when the label is absent. */
const char *label_set_get(const struct label_set *l, const char *name);

/**
 * Set a label, or remove it when the value is "". Both texts are copied.
 * @return ST_OK; ST_TOO_BIG past LIMIT_RELABEL_LABELS, LIMIT_RELABEL_LABELS_BYTES or LIMIT_LABEL_BYTES; ST_NO_MEMORY.
 */
enum status label_set_put(struct label_set *l, const char *name, const char *value, struct error *err) MUST_CHECK;

/** Copy all labels of another set; those with the same name are replaced. */
enum status label_set_put_all(struct label_set *l, const struct label_set *from, struct error *err) MUST_CHECK;

bool label_set_equal(const struct label_set *a, const struct label_set *b);

/** [a-zA-Z_][a-zA-Z0-9_]*, as in Prometheus, and dots as in service.name. */
bool label_name_is_valid(const char *name);

#endif
