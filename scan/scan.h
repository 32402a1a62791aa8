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
#include "sandbox/nursery.h"
#include "scan/index.h"

struct scan;

struct scan_options {
        const char *const *dirs;      /* the trees */
        size_t dir_count;
        const char *dir;              /* of our own: index/ and unpacked/ below it */
        const char *scratch_dir;      /* for temporary files */
        uint64_t interval_s;          /* between two walks; 0: only when asked */
        uint64_t cache_bytes;         /* of unpacked/ */
        struct nursery *nursery;      /* for workers that take a member out of an archive; NULL: they are programs. Borrowed */
        /* A walk found something new. On the scan's thread. May be NULL. */
        void (*found)(void *context);
        void *context;
};

/** ST_OS or ST_USAGE when a tree is no directory. What was found before is served from here on. */
enum status scan_open_trees(const struct scan_options *options, struct scan **ret, struct error *err) MUST_CHECK;
/** Begin to walk. */
enum status scan_start(struct scan *s, struct error *err) MUST_CHECK;
/**
 * End walking; what is found can still be opened. NULL is allowed, also in the next. A walk that hangs in a file system is
 * left there: the end of the process ends it.
 */
void scan_stop(struct scan *s);
/** Stopped before; nobody opens anything any more. What a walk that hangs may still use stays. */
void scan_destroy(struct scan *s);

/**
 * Look whether the walk gets on; to be called every second or so, by one thread. A file system that does not answer (a server
 * of NFS that is away) keeps it in a system call: it is logged with the folder, and cairn_scan_stalled is 1 meanwhile.
 */
void scan_watch(struct scan *s);

/** Walk the trees again, now or after the walk that runs. */
void scan_again(struct scan *s);

/** Which kinds there are: FOUND_DEBUGINFO, FOUND_EXECUTABLE, both or 0. */
uint8_t scan_kinds(struct scan *s, const struct build_id *id);

/** The build-ids that begin with these n bytes, one at least, as scan_index_find_prefix(). */
size_t scan_find_prefix(struct scan *s, const void *prefix, size_t n, struct build_id *ret, size_t max);

/** Whether to wait for a worker that takes a member out of its archive: ST_BUSY where one is needed and it must not be waited for. */
struct scan_wait {
        bool never;
        const atomic_bool *cancel; /* polled meanwhile; may be NULL */
};

/** Something to serve. */
struct scan_opened {
        int fd;                       /* owned; from its start */
        uint64_t size_bytes;
        enum symbol_quality quality;  /* of objects */
        char identity[40];           /* the same for the same bytes: good for an ETag */
        char name[256];               /* of the file, or of the member with its path */
        char archive[512];            /* path of the archive; "" none */
};

/** The best file of that build-id. ST_NOT_FOUND when there is none, or none any more. */
enum status scan_open(struct scan *s, const struct build_id *id, enum object_kind kind, const struct scan_wait *wait,
                      struct scan_opened *ret, struct error *err) MUST_CHECK;

/**
 * The best of them that has a section of that name, and where it lies there. What has none is not opened.
 * @return ST_NOT_FOUND; ST_UNSUPPORTED when it is not known where the sections of one lie.
 */
enum status scan_open_section(struct scan *s, const struct build_id *id, enum object_kind kind, const char *name,
                              const struct scan_wait *wait, struct scan_opened *ret, uint64_t *offset_ret, uint64_t *size_ret,
                              struct error *err) MUST_CHECK;

/** Debuginfo of a build-id that is in no tree. */
struct scan_debuginfo {
        const char *identity;         /* the same for the same bytes: of 32 letters and digits at least, of which 32 count */
        enum status (*open)(void *context, int *fd_ret, struct error *err); /* called when it must be read */
        void *context;
};

/**
 * A source file out of an archive or a tree that debuginfo of the build-id names, of a tree or the other one.
 * @param path absolute; "." and ".." are taken out first.
 * @param other NULL none.
 */
enum status scan_open_source(struct scan *s, const struct build_id *id, const char *path, const struct scan_debuginfo *other,
                             const atomic_bool *cancel, struct scan_opened *ret, struct error *err) MUST_CHECK;

/** Every object, in the order of build-ids, or those of one id. */
enum status scan_list(struct scan *s, const struct build_id *id, scan_index_each *each, void *context, struct error *err) MUST_CHECK;

#endif
