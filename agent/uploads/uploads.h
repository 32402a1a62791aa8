/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UPLOADS_UPLOADS_H
#define CAIRN_AGENT_UPLOADS_UPLOADS_H

/**
 * @file
 * Uploads symbols that this host has and the service lacks, from its own
 * thread at the lowest priority (docs/formats/upload.md).
 *
 * After each drain uploads_add_profile() queues the files of new
 * build-ids. The thread has a confined worker inspect them, finds their debug
 * files, offers all of them to the service in one request, and sends the
 * accepted ones one by one, within the rate limit. Each build-id is offered at
 * most once a day.
 *
 * Threads: uploads_add_profile() by one; the others by any.
 */
#include "profile-formats/profile.h"
#include "sampling/processes/process.h"
#include "sandbox/fork_server.h"

struct uploads;

struct uploads_options {
        const char *server;
        const char *token;               /* NULL: none; needs the scope upload */
        const char *tenant, *ca_file;    /* http_client_options */
        uint64_t bytes_per_s;            /* compressed, on average; 0: no limit */
        uint64_t max_bytes;              /* of one file, uncompressed */
        const char *temporary;           /* directory for temporary files; NULL: $TMPDIR, /var/tmp or /tmp */
        struct fork_server *fork_server; /* for upload_workers; borrowed until uploads_destroy(), not shared */
        uint64_t first_wait_ms; /* maximum random delay before the first request, to spread hosts that start together */
};

struct uploads_stats {
        uint64_t found, offered;                        /* build-ids */
        uint64_t sent, there, refused, failed, too_big; /* files */
        uint64_t no_symbols;                            /* build-ids without a useful file on this host */
        uint64_t no_worker;                             /* build-ids whose files no worker could read */
        uint64_t sent_bytes;                            /* compressed */
        uint64_t waiting;                               /* build-ids */
};

enum status uploads_create(const struct uploads_options *o, struct uploads **ret, struct error *err) MUST_CHECK;

/** Queue the build-ids of a new profile, with the processes it came from. */
void uploads_add_profile(struct uploads *u, const struct profile *p, const struct process_table *processes);

/** Use another token from now on; NULL: none. */
enum status uploads_set_token(struct uploads *u, const char *token, struct error *err) MUST_CHECK;

void uploads_get_stats(struct uploads *u, struct uploads_stats *ret);

/** Stops at once; unsent files are queued again by the next run. NULL is allowed. */
void uploads_destroy(struct uploads *u);

#endif
