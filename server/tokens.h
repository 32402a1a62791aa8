/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_TOKENS_H
#define CAIRN_SERVER_TOKENS_H

/**
 * @file
 * Who may do what: a file of lines "TOKEN scope[,scope...]", where scope is
 * read, ingest, upload or admin (which includes the others), and a '#' begins
 * a comment. Tokens are kept as SHA-256 digests, and a token that is sent is
 * compared with all of them in constant time.
 *
 * Threads: immutable once loaded.
 */
#include "common/error.h"
#include "http/server.h"

struct tokens;

/** ST_BAD_DATA names the line. A file without a token is ST_BAD_DATA too. */
enum status tokens_load(const char *path, struct tokens **ret, struct error *err) MUST_CHECK;
void tokens_destroy(struct tokens *t);

enum http_access tokens_check(const struct tokens *t, const char *token, enum http_scope scope);

#endif
