/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_TARGET_H
#define CAIRN_SCRAPE_TARGET_H

/**
 * @file
 * Build a target from an address of the configuration: labels, relabelling, URL.
 *
 * Before relabelling, a target has the labels of its group, __address__, __scheme__, and job unless the group sets it.
 * Afterwards, unless they are set, instance becomes the address, service_name the job, and external labels are added;
 * labels that begin with "__" are removed.
 *
 * Threads: one at a time, because of the relabel rules.
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
 * @return ST_OK; ST_USAGE: not an address; ST_TOO_BIG, ST_NO_MEMORY. The message names job and address.
 */
enum status scrape_target_build(const struct scrape_config *c, const struct scrape_job *job,
                                const struct target_group *group, const char *address, struct scrape_target *ret,
                                bool *keep_ret, struct error *err) MUST_CHECK;

/** The URL of a profile of the target, owned; NULL without memory. */
char *scrape_target_url(const struct scrape_target *t, const struct scrape_profile *p);

/** Whether both have the same job, URL and labels. */
bool scrape_target_equal(const struct scrape_target *a, const struct scrape_target *b);

/** A hash that is the same in every run, to spread targets evenly. */
uint64_t scrape_target_hash(const struct scrape_target *t, const struct scrape_profile *p);

#endif
