/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PACKAGE_TREES_PACKAGE_SCAN_H
#define CAIRN_PACKAGE_TREES_PACKAGE_SCAN_H

/**
 * @file
 * Serves directory trees of packages and ELF files by build-id.
 *
 * The trees are walked in the background: at start, periodically and on request; unchanged files are not opened again.
 * A confined worker inspects a file, and only its contents are indexed (package-trees/package_index.h). A file is
 * served from its tree, a member of an archive from a cache of bounded size (package-trees/extracted_cache.h).
 *
 * Threads: any, except opening the trees, start, stop and destroy.
 */
#include <stdatomic.h>

#include "debuginfo-store/debuginfo_store.h"
#include "package-trees/package_index.h"
#include "sandbox/fork_server.h"

struct package_scan;

struct package_scan_options {
        const char *const *dirs; /* the trees */
        size_t dir_count;
        const char *dir;                 /* for index/ and unpacked/ */
        const char *scratch_dir;         /* for temporary files */
        uint64_t interval_s;             /* between walks; 0: only on request */
        uint64_t cache_bytes;            /* of unpacked/ */
        struct fork_server *fork_server; /* forks workers that extract archive members; NULL: the program is executed
                                        for them. Borrowed */
        /* Called on the scan's thread after a walk that found new objects. May be NULL. */
        void (*found)(void *context);
        void *context;
};

/**
 * Open the trees and the index; objects indexed by earlier runs can be served at once. ST_OS or ST_USAGE if a tree is
 * not a directory.
 */
enum status package_scan_create(const struct package_scan_options *options, struct package_scan **ret,
                                struct error *err) MUST_CHECK;
/** Start walking. */
enum status package_scan_start(struct package_scan *s, struct error *err) MUST_CHECK;
/**
 * Stop walking; indexed objects can still be opened. NULL is allowed, also for package_scan_destroy(). A walk that
 * hangs in a file system is abandoned until the process exits.
 */
void package_scan_stop(struct package_scan *s);
/** Call after package_scan_stop(), when no thread uses the scan. Memory that a hanging walk may still use is leaked. */
void package_scan_destroy(struct package_scan *s);

/**
 * Detect a stalled walk; call about once a second from one thread. A file system that does not respond (an unreachable
 * NFS server) blocks the walk in a system call: the folder is logged, and cairn_scan_stalled is 1 as long as that
 * lasts.
 */
void package_scan_check_progress(struct package_scan *s);

/** Request another walk, which starts now or after the current one. */
void package_scan_request_run(struct package_scan *s);

/** Whether all trees were walked at least once since the start. */
bool package_scan_has_walked(struct package_scan *s);

/** The kinds of objects of a build-id: PACKAGE_DEBUGINFO, PACKAGE_EXECUTABLE, both or 0. */
uint8_t package_scan_find_kinds(struct package_scan *s, const struct build_id *id);

/** Like package_index_find_prefix(). */
size_t package_scan_find_prefix(struct package_scan *s, const void *prefix, size_t n, struct build_id *ret, size_t max);

/** Whether to wait for a worker that extracts an archive member; if not, a call that requires one returns ST_BUSY. */
struct package_scan_wait {
        bool never;
        const atomic_bool *cancel; /* polled while waiting; may be NULL */
};

/** A file to serve. */
struct package_opened {
        int fd; /* owned; at the start of the file */
        uint64_t size_bytes;
        enum symbol_quality quality;            /* of objects */
        char identity[40];                      /* equal for equal bytes, for an ETag */
        char name[256];                         /* of the file, or of the member with its path */
        char archive[512];                      /* path of the archive; "": none */
        uint64_t section_offset, section_bytes; /* by package_scan_open_section() */
};

/** Open the best file of a build-id. ST_NOT_FOUND if there is none, or it was removed. */
enum status package_scan_open(struct package_scan *s, const struct build_id *id, enum object_kind kind,
                              const struct package_scan_wait *wait, struct package_opened *ret,
                              struct error *err) MUST_CHECK;

/**
 * Open the best file with a section of that name, and find the section. Files without it are not opened.
 * @return ST_NOT_FOUND; ST_UNSUPPORTED if the sections of one of the files are unknown.
 */
enum status package_scan_open_section(struct package_scan *s, const struct build_id *id, enum object_kind kind,
                                      const char *name, const struct package_scan_wait *wait,
                                      struct package_opened *ret, struct error *err) MUST_CHECK;

/** Debuginfo of a build-id that is not from the trees. */
struct package_debuginfo {
        const char
                *identity; /* equal for equal bytes; at least 32 letters and digits, of which the first 32 are used */
        enum status (*open)(void *context, int *fd_ret, struct error *err); /* called when the debuginfo must be read */
        void *context;
};

/**
 * Open a source file in an archive or a tree. Debuginfo of the build-id, from a tree or `other`, must name it.
 * @param path absolute; normalized first.
 * @param other may be NULL.
 */
enum status package_scan_open_source(struct package_scan *s, const struct build_id *id, const char *path,
                                     const struct package_debuginfo *other, const atomic_bool *cancel,
                                     struct package_opened *ret, struct error *err) MUST_CHECK;

/** Like package_index_list(). */
enum status package_scan_list(struct package_scan *s, const struct build_id *id, package_index_each *each,
                              void *context, struct error *err) MUST_CHECK;

#endif
