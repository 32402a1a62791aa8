/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCAN_SCAN_H
#define CAIRN_SCAN_SCAN_H

/**
 * @file
 * Serving directory trees of packages and ELF files by build-id.
 *
 * The trees are walked in the background, at the start, at each interval and
 * when somebody asks for it; a file that is what it was is not opened again. A
 * confined worker says what a file holds; only that is kept (scan/index.h). A
 * file is served from where it lies, a member of an archive from a cache of
 * bounded size (scan/cache.h).
 *
 * Threads: any, except opening the trees, start, stop and destroy.
 */
#include <stdatomic.h>

#include "debuginfo-store/store.h"
#include "scan/index.h"

struct scan;

struct scan_options {
        const char *const *dirs;      /* the trees */
        size_t dir_count;
        const char *dir;              /* of our own: index/ and unpacked/ below it */
        const char *scratch_dir;      /* for temporary files */
        uint64_t interval_s;          /* between two walks; 0: only when asked */
        uint64_t cache_bytes;         /* of unpacked/ */
        /* A walk found something new. On the scan's thread. May be NULL. */
        void (*found)(void *context);
        void *context;
};

/** ST_OS or ST_USAGE when a tree is no directory. What was found before is served from here on. */
enum status scan_open_trees(const struct scan_options *options, struct scan **ret, struct error *err) MUST_CHECK;
/** Begin to walk. */
enum status scan_start(struct scan *s, struct error *err) MUST_CHECK;
/** End walking; what is found can still be opened. NULL is allowed, also in the next. */
void scan_stop(struct scan *s);
/** Stopped before; nobody opens anything any more. */
void scan_destroy(struct scan *s);

/** Walk the trees again, now or after the walk that runs. */
void scan_again(struct scan *s);

/** Which kinds there are: FOUND_DEBUGINFO, FOUND_EXECUTABLE, both or 0. */
uint8_t scan_kinds(struct scan *s, const struct build_id *id);

/** Something to serve. */
struct scan_opened {
        int fd;                       /* owned; from its start */
        uint64_t size_bytes;
        enum symbol_quality quality;  /* of objects */
        char identity[40];           /* the same for the same bytes: good for an ETag */
        char name[256];               /* of the file, or of the member with its path */
        char archive[512];            /* path of the archive; "" none */
};

/**
 * The best file of that build-id. ST_NOT_FOUND when there is none, or none any more.
 * @param cancel polled while a member is taken out of its archive; may be NULL.
 */
enum status scan_open(struct scan *s, const struct build_id *id, enum object_kind kind, const atomic_bool *cancel,
                      struct scan_opened *ret, struct error *err) MUST_CHECK;

/**
 * A source file that the debuginfo of the build-id names, out of an archive or a tree.
 * @param path absolute; "." and ".." are taken out first.
 */
enum status scan_open_source(struct scan *s, const struct build_id *id, const char *path, const atomic_bool *cancel,
                             struct scan_opened *ret, struct error *err) MUST_CHECK;

/** Every object, in the order of build-ids, or those of one id. */
enum status scan_list(struct scan *s, const struct build_id *id, scan_index_each *each, void *context, struct error *err) MUST_CHECK;

#endif
