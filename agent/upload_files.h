/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UPLOAD_FILES_H
#define CAIRN_AGENT_UPLOAD_FILES_H

/**
 * @file
 * The best file of a build-id that this host has: the mapped one, or the debug
 * file that is installed for it, looked for inside the root of a process that
 * has it mapped; and the dwz supplementary file that it links to.
 *
 * Only files with a symbol table or more count: the few names that a stripped
 * file still exports would keep the service from asking others for better ones.
 * Threads: no shared state.
 */
#include "agent/worker_upload.h"

/** What the drain hands over: build-id, name, and where to look. */
struct upload_offer {
        struct build_id id;
        char *path;   /* as the process sees it; "" none; owned */
        int fd;       /* the file, -1: none; owned */
        int root_fd;  /* directory in which debug files are looked for, -1: none; owned */
};
void upload_offer_deinit(struct upload_offer *o);

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
 * @param mapped  what inspect_files() said of the offer's file.
 * @param unseen_ret  there may be more, since a file could not be looked at now.
 * @return how many, 0 when the host has nothing of use. The offer's descriptor may move to ret.
 */
size_t upload_files_find(struct upload_offer *o, const struct inspected *mapped, const struct upload_workers *w,
                         struct upload_file ret[static UPLOAD_FILES_MAX], bool *unseen_ret);

#endif
