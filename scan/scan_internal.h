/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCAN_INTERNAL_H
#define CAIRN_SCAN_INTERNAL_H

#include <pthread.h>

#include "scan/cache.h"
#include "scan/scan.h"
#include "scan/tree.h"

struct scan {
        struct scan_options options;
        char *scratch_dir;
        char *own_dir;           /* of index and cache, without links: never walked, also when a tree holds it */
        struct scan_trees trees;
        struct scan_index *index;
        struct scan_cache *cache;
        pthread_mutex_t nursery_lock; /* held by who uses options.nursery */
        pthread_mutex_t lock;
        pthread_cond_t wake;
        bool is_asked_for, has_thread;
        atomic_bool stop;
        _Atomic int64_t moved_ns;     /* when the walk got on; 0: none runs */
        pthread_mutex_t at_lock;
        char at[256];                 /* the folder that it reads, with at_lock */
        bool is_stalled;              /* as scan_watch() told */
        pthread_t thread;
};

/** One walk of all trees. @param news_ret whether objects came. */
void scan_round(struct scan *s, bool *news_ret);

/** Make the metrics of walks appear. */
void scan_round_metrics(void);

/** Open a place as scan_open() does, with that wait. ST_NOT_FOUND when the file is not what it was. */
enum status scan_open_place(struct scan *s, const struct scan_place *p, const struct scan_wait *wait, struct scan_opened *ret,
                            struct error *err) MUST_CHECK;

#endif
