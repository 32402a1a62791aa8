/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_UPLOAD_INTERNAL_H
#define CAIRN_DEBUGINFO_STORE_UPLOAD_INTERNAL_H

#include <zstd.h>

#include "common/memory_budget.h"
#include "common/sha256.h"
#include "debuginfo-store/store_internal.h"

struct object_upload {
        struct debuginfo_store *store;
        struct object_claim claim;
        char name[sizeof(((struct stored_object *)0)->name)];
        char label[OBJECT_LABEL_SIZE], token[OBJECT_LABEL_SIZE];
        int fd;
        char *partial;    /* path of the file of a resumable upload, until it is stored or found wrong; else NULL */
        struct live_upload live; /* when partial */
        bool is_live;
        uint64_t size;
        struct sha256 sha;
        ZSTD_DCtx *zstd;
        size_t zstd_left; /* what the decoder still expects of the current frame; 0 between frames */
        struct memory_reservation memory; /* of zstd and unpacked */
        void *unpacked;
        size_t unpacked_capacity;
};

void upload_cleanup(struct object_upload **u);

/** Nobody takes it over from now on. False: another connection goes on with it. */
bool upload_stop_being_live(struct object_upload *u);

/** Take what is still inside the decoder: the last bytes of a frame may be. */
enum status upload_drain(struct object_upload *u, enum refusal *why, struct error *err) MUST_CHECK;

#endif
