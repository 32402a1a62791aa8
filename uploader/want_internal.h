/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_WANT_INTERNAL_H
#define CAIRN_UPLOADER_WANT_INTERNAL_H

#include "common/buf.h"
#include "uploader/upload_list.h"

/** The server's answer about count items, in their order: fills their state and reason. ST_BAD_DATA when it is
 * none. */
enum status want_read_answers(const struct buf *body, struct upload_item *items, size_t count,
                              struct error *err) MUST_CHECK;

#endif
