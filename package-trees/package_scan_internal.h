/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PACKAGE_TREES_PACKAGE_SCAN_INTERNAL_H
#define CAIRN_PACKAGE_TREES_PACKAGE_SCAN_INTERNAL_H

#include <pthread.h>

#include "package-trees/extracted_cache.h"
#include "package-trees/package_scan.h"
#include "package-trees/package_tree.h"

struct package_scan {
        struct package_scan_options options;
        char *scratch_dir;
        char *own_dir; /* folder of index and cache, without symbolic links; excluded from walks */
        struct package_trees trees;
        struct package_index *index;
        struct extracted_cache *cache;
        pthread_mutex_t fork_server_lock; /* serializes options.fork_server */
        pthread_mutex_t lock;
        pthread_cond_t wake;
        bool is_asked_for, has_thread, has_ended;
        atomic_bool stop;
        atomic_bool has_walked;
        _Atomic int64_t moved_ns; /* time of the walk's last progress; 0: no walk */
        pthread_mutex_t at_lock;
        char at[256];    /* the folder being read; protected by at_lock */
        bool is_stalled; /* last logged state */
        pthread_t thread;
};

/** One walk of all trees. @param news_ret whether new objects were found. */
void package_scan_run_walk(struct package_scan *s, bool *news_ret);

/**
 * Open the file at one place; a member of an archive is extracted into the cache.
 * @param ret  with an owned descriptor.
 * @return ST_NOT_FOUND when the file is gone or has changed; ST_BUSY when the wait is not allowed.
 */
enum status package_open_place(struct package_scan *s, const struct package_place *p,
                               const struct package_scan_wait *wait, struct package_opened *ret,
                               struct error *err) MUST_CHECK;

/** Register the metrics of walks. */
void package_scan_run_register_metrics(void);

#endif
