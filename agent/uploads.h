/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UPLOADS_H
#define CAIRN_AGENT_UPLOADS_H

/**
 * @file
 * Symbols that this host has and the service lacks, brought there by a thread
 * of its own at the lowest priority (docs/formats/upload.md).
 *
 * After each drain uploads_meet() hands over the files behind build-ids that
 * are new. The thread lets a confined worker look at them, finds their debug
 * files, asks the service about all of them in one question, and sends what it
 * wants, one after the other and no faster than the rate. Each build-id is
 * asked about once a day at most.
 *
 * Threads: uploads_meet() by one; the others by any.
 */
#include "agent/process.h"
#include "profile-formats/profile.h"
#include "sandbox/nursery.h"

struct uploads;

struct uploads_options {
        const char *server;
        const char *token;        /* NULL: none; it must carry the scope upload */
        const char *ca_file;      /* http_client_options */
        uint64_t bytes_per_s;     /* packed, on average; 0: no limit */
        uint64_t max_bytes;       /* of one file, unpacked */
        const char *temporary;    /* directory for the file that is being made; NULL: $TMPDIR, /var/tmp or /tmp */
        struct nursery *nursery;  /* of upload_workers; borrowed until uploads_destroy(), for it alone */
        uint64_t first_wait_ms;   /* before the first question at most: hosts that start together do not ask together */
};

struct uploads_stats {
        uint64_t met, asked;      /* build-ids */
        uint64_t sent, there, refused, failed, too_big; /* files */
        uint64_t no_symbols;      /* build-ids without a file of use here */
        uint64_t sent_bytes;      /* packed */
        uint64_t waiting;         /* build-ids */
};

enum status uploads_create(const struct uploads_options *o, struct uploads **ret, struct error *err) MUST_CHECK;

/** The build-ids of a profile that was just built, with the processes that it came from. */
void uploads_meet(struct uploads *u, const struct profile *p, const struct process_table *processes);

void uploads_stats(struct uploads *u, struct uploads_stats *ret);

/** Stops at once; what was not sent is met again. Takes NULL. */
void uploads_destroy(struct uploads *u);

#endif
