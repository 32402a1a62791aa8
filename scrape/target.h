/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_TARGET_H
#define CAIRN_SCRAPE_TARGET_H

/**
 * @file
 * From an address of the configuration to a target: labels, relabelling, URL.
 *
 * Before relabelling a target has the labels of its group, __address__, __scheme__, and job unless the group has it.
 * Afterwards instance is the address unless it is set, service_name the job, external labels are added where they are
 * missing, and labels that begin with "__" are removed.
 *
 * Threads: one at a time, for the sake of the relabel rules.
 * Source: Prometheus 3, scrape/target.go, PopulateLabels().
 */
#include "scrape/scrape_config.h"

struct scrape_target {
        const struct scrape_job *job; /* borrowed from the configuration */
        struct label_set labels;
        char *base_url; /* owned: "http://HOST:PORT/prefix" */
};

void scrape_target_deinit(struct scrape_target *t);
#define _cleanup_scrape_target_ _cleanup_(scrape_target_deinit)

/**
 * @param keep_ret  false: relabelling dropped it, and ret is untouched.
 * @return ST_OK; ST_USAGE: not an address, with a text that names job and address; ST_TOO_BIG, ST_NO_MEMORY.
 */
enum status scrape_target_build(const struct scrape_config *c, const struct scrape_job *job,
                                const struct target_group *group, const char *address, struct scrape_target *ret,
                                bool *keep_ret, struct error *err) MUST_CHECK;

/** The URL of a profile of the target, owned; NULL without memory. */
char *scrape_target_url(const struct scrape_target *t, const struct scrape_profile *p);

/** Whether both are the same target for who reads its profiles. */
bool scrape_target_equal(const struct scrape_target *a, const struct scrape_target *b);

/** A number that is the same in each run and spreads targets evenly. */
uint64_t scrape_target_hash(const struct scrape_target *t, const struct scrape_profile *p);

#endif
