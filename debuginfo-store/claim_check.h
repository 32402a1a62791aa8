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
        struct build_id build_id; /* that it is stored under */
        enum object_kind kind;    /* that it is stored as */
        enum symbol_quality quality;
        struct object_links links; /* borrow verified */
        struct verify_result verified;
};

void validated_object_deinit(struct validated_object *j);
#define _cleanup_validated_object_ _cleanup_(validated_object_deinit)

/**
 * Have a worker verify the file and compare it with the claim.
 * @param ret validated_object_deinit(); untouched on failure.
 * @return ST_BAD_DATA with an enum refusal as error.reason; others for failures of the service.
 */
enum status validate_object(struct debuginfo_store *store, const struct object_claim *claim, int fd, uint64_t size,
                            struct validated_object *ret, struct error *err) MUST_CHECK;

/**
 * Call after debuginfo or an executable was stored: if a package of split DWARF stored earlier belongs to it, raise the
 * package's quality.
 */
void validate_stored_package(struct debuginfo_store *store, const struct build_id *id);

#endif
