/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ROUTES_CONNECT_QUESTION_H
#define CAIRN_SERVER_ROUTES_CONNECT_QUESTION_H

/**
 * @file
 * The two messages of debuginfo.v1alpha1.DebuginfoService that clients send:
 * ShouldInitiateUploadRequest, with a file, and UploadFinishedRequest.
 */
#include <stddef.h>

#include "common/build_id.h"
#include "common/error.h"

/** What a message says, as text; "" absent or too long. */
struct connect_question {
        char gnu_id[BUILD_ID_HEX_MAX], otel_id[BUILD_ID_HEX_MAX], name[128];
};

/**
 * @param proto in protobuf, else in JSON.
 * @param has_file the first one of the two messages.
 * @return ST_BAD_DATA; ST_NO_MEMORY.
 */
enum status connect_question_read(const uint8_t *body, size_t n, bool proto, bool has_file,
                                  struct connect_question *ret, struct error *err) MUST_CHECK;

#endif
