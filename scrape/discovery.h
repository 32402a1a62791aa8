/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_DISCOVERY_H
#define CAIRN_SCRAPE_DISCOVERY_H

/**
 * @file
 * Service discovery: the targets of all jobs, from static_configs and from files, which are reloaded when they change.
 *
 * A file that is unreadable or invalid keeps its last targets, and so do the files of a directory that cannot be
 * listed; a removed file loses them. An unreadable file is retried at each refresh, an invalid one after it has
 * changed. Invalid addresses are ignored. Each of these is logged once, when it first occurs.
 *
 * Threads: one.
 */
#include "scrape/target.h"

struct discovery;

struct discovery_counts {
        size_t dropped;             /* by relabelling */
        size_t invalid;             /* addresses that are not valid targets; duplicates of a job are not counted */
        size_t files, failed_files; /* a job's directories that cannot be listed count as one file */
        char error[240];            /* of the last file or address that failed */
};

struct target_list {
        struct scrape_target *items; /* owned */
        size_t count, capacity;
};
void target_list_deinit(struct target_list *l);
#define _cleanup_target_list_ _cleanup_(target_list_deinit)

/** @param c  borrowed. */
enum status discovery_create(const struct scrape_config *c, struct discovery **ret, struct error *err) MUST_CHECK;
void discovery_destroy(struct discovery *d); /* takes NULL */

/** Reload changed files. @param changed_ret  whether targets may differ; true until targets were listed. */
enum status discovery_refresh(struct discovery *d, bool *changed_ret, struct error *err) MUST_CHECK;

/** List all distinct targets, at most LIMIT_SCRAPE_TARGETS. @param ret  zeroed before. */
enum status discovery_list_targets(struct discovery *d, struct target_list *ret, struct error *err) MUST_CHECK;

/** Targets as of the last discovery_list_targets(), files as of the last discovery_refresh(). */
void discovery_get_counts(const struct discovery *d, struct discovery_counts *ret);

#endif
