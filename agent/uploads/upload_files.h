/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UPLOADS_UPLOAD_FILES_H
#define CAIRN_AGENT_UPLOADS_UPLOAD_FILES_H

/**
 * @file
 * Finds the best local file for a build-id: the mapped one, or its
 * installed debug file, looked up in the root of a process that maps it; and
 * its dwz supplementary file.
 *
 * A stripped file counts for the names that it exports. They are sent as a symbol
 * file, which is never served as debuginfo, and the service goes on looking for
 * better symbols elsewhere.
 *
 * Threads: no shared state.
 */
#include "agent/uploads/worker_upload.h"

/** An object seen in a drain, and where to look for its files. */
struct upload_offer {
        struct build_id id;
        char *path;       /* as the process sees it; "": none; owned */
        int fd;           /* the file, -1: none; owned */
        int root_fd;      /* root directory for debug files, -1: none; owned */
        uint64_t samples; /* value of the samples with a frame in it */
        bool was_skipped; /* its file does not respond */
};
void upload_offer_deinit(struct upload_offer *o);

/** Open the file by its path if it is not open: its process has ended, or its mount has a server. */
void upload_offer_open(struct upload_offer *o, const struct upload_workers *w);

struct upload_file {
        struct build_id id;
        enum symbol_quality quality;
        bool has_code;
        uint64_t sent_bytes;
        char *path; /* owned */
        int fd;     /* owned */
};
void upload_file_deinit(struct upload_file *f);

#define UPLOAD_FILES_MAX 2 /* the file and its supplementary file */

/**
 * @param mapped  inspection of the offer's file.
 * @param end_ret  not INSPECT_DONE: a candidate could not be inspected now, so there may be more.
 * @return number of files, 0 when none is useful. The offer's descriptor may move to ret.
 */
size_t upload_files_find(struct upload_offer *o, const struct inspected_file *mapped, const struct upload_workers *w,
                         struct upload_file ret[static UPLOAD_FILES_MAX], enum inspect_end *end_ret);

#endif
