/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_JUDGE_H
#define CAIRN_DEBUGINFO_STORE_JUDGE_H

/**
 * @file
 * Whether a received file is what its uploader claims, and as what it is stored.
 *
 * Threads: any.
 */
#include "debuginfo-store/store_internal.h"
#include "debuginfo-store/verify.h"

struct judged {
        struct build_id build_id; /* what it is stored under, */
        enum object_kind kind;    /* and as */
        enum symbol_quality quality;
        struct object_links links; /* borrow found */
        struct verified found;
};

void judged_deinit(struct judged *j);
#define _cleanup_judged_ _cleanup_(judged_deinit)

/**
 * Have a worker verify the file and compare it with the claim.
 * @param ret judged_deinit(); untouched on failure.
 * @param why why it is refused, with ST_BAD_DATA; REFUSED_NOT for failures that are not the file's.
 */
enum status object_judge(struct debuginfo_store *store, const struct object_claim *claim, int fd, uint64_t size,
                         struct judged *ret, enum refusal *why, struct error *err) MUST_CHECK;

/**
 * Debuginfo or an executable was stored: does the package that was there before belong to it? If so, its record says so
 * (its quality).
 */
void object_confirm_package(struct debuginfo_store *store, const struct build_id *id);

#endif
