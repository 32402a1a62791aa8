/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_SYMBOLICATE_ANSWER_H
#define CAIRN_SERVER_SYMBOLICATE_ANSWER_H

/**
 * @file
 * The answer to POST /symbolicate/v5, in pieces as the one to
 * /api/v1/symbolize (symbolize_stream.h).
 */
#include "http/server.h"
#include "server/symbolicate_request.h"
#include "server/symbolize_text.h"
#include "symbolizer/lookup.h"

/** Find the objects of the modules, and answer. @param request taken, and left empty. */
void symbolicate_answer(struct http_request *req, struct symbol_index *index, struct text_cache *texts,
                        struct symbolicate_request *request);

#endif
