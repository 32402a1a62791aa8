/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_RELABEL_RELABEL_RULES_H
#define CAIRN_RELABEL_RELABEL_RULES_H

/**
 * @file
 * Lists of relabel rules in YAML: relabel_configs of a scrape job, and the file of the agent's --relabel-config.
 *
 * Threads: as relabel/relabel.h.
 * Source: Prometheus 3, "Configuration", relabel_config.
 */
#include "common/cleanup.h"
#include "common/config/yaml_fields.h"
#include "relabel/relabel.h"

/** Zeroed: no rules, everything is kept. */
struct relabel_rules {
        struct relabel_rule *items; /* owned */
        size_t count;
};

void relabel_rules_deinit(struct relabel_rules *r);

/** A yaml_field_reader of a list of at most LIMIT_RELABEL_RULES rules, into a struct relabel_rules. */
enum status relabel_rules_read(const struct yaml_source *in, const yaml_node_t *value, void *object) MUST_CHECK;

/**
 * Read a file that has a mapping with the one key relabel_configs.
 * @return ST_OK; ST_NOT_FOUND without the file; ST_USAGE with "PATH:LINE: what is wrong"; ST_TOO_BIG, ST_OS.
 */
enum status relabel_file_read(const char *path, struct relabel_rules *ret, struct error *err) MUST_CHECK;

#endif
