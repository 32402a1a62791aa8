/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UPLOADS_WORKER_UPLOAD_H
#define CAIRN_AGENT_UPLOADS_WORKER_UPLOAD_H

/**
 * @file
 * Parsing of files before upload, in confined workers: `cairn-agent
 * worker inspect` reports the symbols of a file, `cairn-agent worker split`
 * removes its code, `cairn-agent worker symbols` extracts the symbols of a
 * stripped one. The agent itself only moves bytes.
 *
 * Threads: any, one for each fork_server; the calls wait for the worker.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "agent/uploads/file_opener.h"
#include "common/build_id.h"
#include "common/error.h"
#include "debuginfod-client/debuginfo_fetcher.h"
#include "elf-image/quality.h"
#include "sandbox/fork_server.h"
#include "sandbox/worker_health.h"
#include "uploader/upload_list.h"

#define WORKER_INSPECT_FILES 6 /* per run */
#define INSPECTED_LINK_MAX 256

enum inspect_end {
        INSPECT_DONE,
        INSPECT_SKIPPED,   /* no memory or descriptor was available */
        INSPECT_NO_WORKER, /* no worker could be started */
};

struct inspected_file {
        struct build_id id; /* size 0: useless, or not inspected */
        enum inspect_end end;
        enum symbol_quality quality;
        bool has_code;          /* the code is removed before sending */
        uint64_t sent_bytes;    /* file size without code and headers; without code to remove, the file size; of a
                                   stripped file about the size of its symbol file */
        struct build_id alt_id; /* of the dwz supplementary file; size 0: none */
        char alt_path[INSPECTED_LINK_MAX];  /* absolute or relative to the file's directory */
        char debuglink[INSPECTED_LINK_MAX]; /* name of the file with its DWARF, without slashes; "": none */
};

/** Whether a file of that quality has only boundaries of functions, and names for what it exports or of minidebuginfo.
 */
bool upload_is_stripped(enum symbol_quality quality);

/** How workers are executed. All members are borrowed. */
struct upload_workers {
        struct fork_server
                *fork_server; /* prepared by upload_workers_prepare(); NULL: each worker is a program that is started */
        const atomic_bool *stop;           /* true: end running workers */
        struct file_opener *opener;        /* of files in the roots of processes */
        uint64_t max_bytes;                /* of a file on a mount with a server, which is copied */
        struct worker_health *health;      /* logs whether workers can be started; NULL: not logged */
        struct debuginfo_fetcher *fetcher; /* for debug files that this host does not have; NULL: none are fetched */
};

/** For fork_server_create(): drop privileges and lower the priorities. */
enum status upload_workers_prepare(struct error *err) MUST_CHECK;

/** Set the lowest CPU and I/O priority for this thread and everything it starts. */
void upload_lower_priority(void);

/**
 * Inspect up to WORKER_INSPECT_FILES files; id.size is 0 for negative descriptors and unreadable files.
 * @return of the last worker; ret says which files it did not inspect.
 */
enum status upload_inspect_files(const struct upload_workers *w, const int *fds, size_t count,
                                 struct inspected_file *ret, struct error *err);

/** Write the file without its code to out, an empty file. Fails past max_bytes. ST_BUSY as fork_server_run(). */
enum status upload_split_file(const struct upload_workers *w, int in, int out, uint64_t max_bytes,
                              struct error *err) MUST_CHECK;

/**
 * Write the symbol file (docs/formats/symbol-file.md) of a stripped file to out, an empty file.
 * @param item  has the file's path and build-id; its quality becomes that of the symbols that were found.
 * @return ST_BAD_DATA without symbols, or with another build-id; ST_BUSY as fork_server_run().
 */
enum status upload_extract_symbols(const struct upload_workers *w, int in, int out, struct upload_item *item,
                                   uint64_t max_bytes, struct error *err) MUST_CHECK;

/* In the worker. */
int worker_inspect(void);
int worker_extract_symbols(const char *file_name); /* for names of functions without one; NULL unknown */
int worker_split(void);

#endif
