/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_CLAIM_CHECK_H
#define CAIRN_DEBUGINFO_STORE_CLAIM_CHECK_H

/**
 * @file
 * Validation of a received file against its uploader's claim: decides its build-id, kind and quality.
 *
 * Threads: any.
 */
#include "debuginfo-store/store_internal.h"
#include "debuginfo-store/verify_worker.h"

struct validated_object {
        struct build_id build_id; /* under which it is stored */
        enum object_kind kind;    /* as which it is stored */
        enum symbol_quality quality;
        struct object_links links; /* borrowed from verified */
        struct verify_result verified;
};

void validated_object_deinit(struct validated_object *v);
#define _cleanup_validated_object_ _cleanup_(validated_object_deinit)

/**
 * Verify the file in a worker and compare it with the claim.
 * @param ret validated_object_deinit(); untouched on failure.
 * @return ST_BAD_DATA with an enum refusal as error.reason; others for failures of the service.
 */
enum status validate_object(struct debuginfo_store *store, const struct object_claim *claim, int fd, uint64_t size,
                            struct validated_object *ret, struct error *err) MUST_CHECK;

/**
 * Call it after debuginfo or an executable was stored: raises the quality of an earlier stored package of split DWARF
 * if it belongs to that file.
 */
void validate_stored_package(struct debuginfo_store *store, const struct build_id *id);

#endif
