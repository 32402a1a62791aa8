/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_SOURCE_LINES_H
#define CAIRN_QUERY_ENGINE_SOURCE_LINES_H

/**
 * @file
 * The text of one source file by line. Private to query/.
 *
 * Threads: none.
 */
#include "query/query.h"

#define LIMIT_SHOWN_SOURCE_BYTES MiB(16) /* of one file, and of all whole files in an answer */
#define LIMIT_SHOWN_LINE_BYTES 400

struct source_lines {
        struct buf text; /* of the file if state is ST_OK */
        enum status state;
        struct error why; /* human-readable reason of any other state */
        uint32_t *starts; /* offsets of lines in the text; owned */
        size_t count;
        struct memory_reservation memory; /* of starts */
};

/**
 * Load a file that is named by an object's debuginfo. Never fails: a failure is in state and why.
 * @param sources    NULL: none, as without a service.
 * @param may_fetch  whether upstreams may be queried.
 */
void source_lines_load(struct source_lines *s, const struct query_sources *sources, const struct build_id *id,
                       const char *path, bool may_fetch);
void source_lines_deinit(struct source_lines *s); /* also fine on a zeroed one */

/** A line without line end, truncated to LIMIT_SHOWN_LINE_BYTES; NULL: none. Borrowed until source_lines_deinit(). */
const char *source_lines_get(const struct source_lines *s, int64_t line, size_t *n_ret);

/** Append the command that uploads the missing part. @param path  of the object; "" unknown. */
enum upload_part { UPLOAD_SOURCES, UPLOAD_EXECUTABLE, UPLOAD_DEBUGINFO };
void upload_command_put(struct buf *ret, enum upload_part part, const char *server, const char *path);

/** Whether a shell needs no quotes for the text, and the text is not an option. */
bool is_shell_plain(const char *text);

#endif
