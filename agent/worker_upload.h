/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_WORKER_UPLOAD_H
#define CAIRN_AGENT_WORKER_UPLOAD_H

/**
 * @file
 * What must be parsed of files before they can be uploaded, in confined
 * workers: `cairn-agent worker inspect` says what symbols a file has, and
 * `cairn-agent worker split` leaves its code out. The agent itself only moves
 * bytes.
 *
 * Threads: any, one for each nursery; the calls wait for the worker.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "common/build_id.h"
#include "common/error.h"
#include "elf-image/quality.h"
#include "sandbox/nursery.h"

#define WORKER_INSPECT_FILES 6 /* of one run */
#define INSPECTED_LINK_MAX 256

struct inspected {
        struct build_id id;      /* size 0: the file is of no use, or unseen */
        bool is_unseen;          /* there was no process, memory or descriptor to look at it */
        enum symbol_quality quality;
        bool has_code;           /* which is left out of what is sent */
        uint64_t sent_bytes;     /* of the file without its code, headers not counted; else of the file */
        struct build_id alt_id;  /* of the dwz supplementary file; size 0: none */
        char alt_path[INSPECTED_LINK_MAX];  /* absolute or relative to the file's directory */
        char debuglink[INSPECTED_LINK_MAX]; /* name of the file with its DWARF, without slashes; "" none */
};

/** Who runs the workers, and when they are ended. Borrowed. */
struct upload_workers {
        struct nursery *nursery; /* prepared by upload_workers_prepare(); NULL: each worker is a program that is started */
        const atomic_bool *stop;
};

/** For nursery_create(): no rights, and the lowest priorities. */
enum status upload_workers_prepare(struct error *err) MUST_CHECK;

/** Have this thread, and what it starts, compete with nobody for CPUs and disks. */
void upload_be_the_nicest(void);

/** Look at up to WORKER_INSPECT_FILES files; a negative descriptor, and what cannot be read, has id.size 0. */
void inspect_files(const struct upload_workers *w, const int *fds, size_t count, struct inspected *ret);

/** Write the file without its code into out, an empty file. It fails past max_bytes. ST_BUSY as nursery_run(). */
enum status split_file(const struct upload_workers *w, int in, int out, uint64_t max_bytes, struct error *err) MUST_CHECK;

/* In the child. */
int worker_inspect(void);
int worker_split(void);

#endif
