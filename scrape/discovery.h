/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_DISCOVERY_H
#define CAIRN_SCRAPE_DISCOVERY_H

/**
 * @file
 * The targets of all jobs: those of static_configs, and those of files, which are read again when they change.
 *
 * A file that cannot be read, or not understood, keeps the targets that it had, and so do the files of a directory that
 * cannot be listed; one that is gone has none. What cannot be read is tried again each time, what is not understood
 * when it has changed. Addresses that make no target are left out. All this is logged when it appears.
 *
 * Threads: one.
 */
#include "scrape/target.h"

struct discovery;

struct discovery_counts {
        size_t dropped;             /* by relabelling */
        size_t invalid;             /* addresses that make no target, equal targets of one job not counted */
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

/** Look at the files. @param changed_ret  whether targets may differ; true the first time. */
enum status discovery_refresh(struct discovery *d, bool *changed_ret, struct error *err) MUST_CHECK;

/** Make all targets, at most LIMIT_SCRAPE_TARGETS; equal ones once. @param ret  zeroed before. */
enum status discovery_list_targets(struct discovery *d, struct target_list *ret, struct error *err) MUST_CHECK;

/** Targets as of the last discovery_list_targets(), files as of the last discovery_refresh(). */
void discovery_get_counts(const struct discovery *d, struct discovery_counts *ret);

#endif
