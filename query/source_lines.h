/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_SOURCE_LINES_H
#define CAIRN_QUERY_SOURCE_LINES_H

/**
 * @file
 * The text of one source file by line. Private to query/.
 *
 * Threads: none.
 */
#include "query/query.h"

#define LIMIT_SHOWN_SOURCE_BYTES MiB(16) /* of one file, and of all whole files of an answer */
#define LIMIT_SHOWN_LINE_BYTES 400

struct source_lines {
        struct buf text; /* of the file, when state is ST_OK */
        enum status state;
        struct error why; /* of another state, for people */
        uint32_t *starts; /* of its lines in the text; owned */
        size_t count;
        struct memory_reservation memory; /* of starts */
};

/**
 * Load the file that debuginfo of an object names. Never fails: what could not be read has a state and a reason.
 * @param sources    NULL: there are none, as without a service.
 * @param may_fetch  whether upstreams may be asked.
 */
void source_lines_load(struct source_lines *s, const struct query_sources *sources, const struct build_id *id,
                       const char *path, bool may_fetch);
void source_lines_deinit(struct source_lines *s); /* also fine on a zeroed one */

/** The text of a line without its end, cut to LIMIT_SHOWN_LINE_BYTES; NULL without one. Borrowed until deinit. */
const char *source_lines_get(const struct source_lines *s, int64_t line, size_t *n_ret);

/** Append the command that uploads what is missing. @param path  of the object; "" unknown. */
enum upload_part { UPLOAD_SOURCES, UPLOAD_EXECUTABLE, UPLOAD_DEBUGINFO };
void upload_command_put(struct buf *ret, enum upload_part part, const char *server, const char *path);

/** Whether a shell needs no quotes for the text, and it is not an option. */
bool is_shell_plain(const char *text);

#endif
