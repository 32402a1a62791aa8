/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_VERIFY_ANSWER_H
#define CAIRN_DEBUGINFO_STORE_VERIFY_ANSWER_H

/**
 * @file
 * The answer of a verifying worker, in bytes: form, quality and code (u8
 * each), units of a package and how many are asked for (u32 each), build-id
 * and Go build-id (u8 size, bytes), count of needs (u32), of each its kind
 * (u8) and its id (u8 size, bytes), bytes of the list of sections (u32) and the
 * list. Little-endian.
 */
#include "common/buf.h"
#include "debuginfo-store/verify.h"

#define VERIFY_ANSWER_MAX (64 + 2 * BUILD_ID_MAX + (LIMIT_COMPANIONS + 1) * (2 + BUILD_ID_MAX) + LIMIT_SECTION_LIST_BYTES)

void verify_answer_encode(struct buf *to, const struct verified *v);

/** What a worker says is as little trusted as what it read. @param ret verified_deinit(). */
enum status verify_answer_decode(const void *bytes, size_t n, struct verified *ret, struct error *err) MUST_CHECK;

#endif
