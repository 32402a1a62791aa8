/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_VALIDATE_UPLOAD_H
#define CAIRN_DEBUGINFO_STORE_VALIDATE_UPLOAD_H

/**
 * @file
 * Validates an uploaded or fetched file: checks its build-id and the claim of its uploader, and determines its
 * build-id, kind and quality.
 *
 * Threads: any.
 */
#include "debuginfo-store/debuginfo_store_internal.h"
#include "debuginfo-store/verify_worker.h"

struct validated_upload {
        struct build_id build_id; /* under which it is stored */
        enum object_kind kind;    /* as which it is stored */
        enum symbol_quality quality;
        struct object_links links; /* borrowed from verified */
        struct verify_result verified;
};

void validated_upload_deinit(struct validated_upload *v);
#define _cleanup_validated_upload_ _cleanup_(validated_upload_deinit)

/**
 * Verify the file in a worker and compare it with the claim.
 * @param ret validated_upload_deinit(); untouched on failure.
 * @return ST_BAD_DATA with an enum refusal as error.reason; others for failures of the service.
 */
enum status validate_upload(struct debuginfo_store *store, const struct object_claim *claim, int fd, uint64_t size,
                            struct validated_upload *ret, struct error *err) MUST_CHECK;

/**
 * Call it after debuginfo or an executable was stored: raises the quality of an earlier stored package of split DWARF
 * if it belongs to that file.
 */
void validate_stored_package(struct debuginfo_store *store, const struct build_id *id);

#endif
