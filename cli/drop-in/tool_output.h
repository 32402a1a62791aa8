/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_TOOL_OUTPUT_H
#define CAIRN_CLI_DROP_IN_TOOL_OUTPUT_H

/**
 * @file
 * What the replacements have in common: batches of addresses of one object, buffered output, and texts of frames.
 *
 * Threads: one.
 */
#include "cli/drop-in/named_objects.h"
#include "common/memory/buf.h"

#define TOOL_BATCH_MAX 65536

struct tool_output {
        const char *program; /* for messages: the name by which it was called */
        size_t line_bytes;   /* a longer line of standard input is split, line_input.h; 0 none is */
        struct buf out;
        void (*print)(void *context, const struct answer *a); /* appends an answer to out */
        void *context;
        struct named_objects objects;
        struct named_object *object; /* of the batch; borrowed */
        uint64_t *batch;             /* owned */
        size_t batch_count;
        bool has_failed; /* an error was reported */
};

/** @param o  program, line_bytes, print, context and objects.debug_files are set, the others zero;
 * tool_output_deinit(). */
enum status tool_output_open(struct tool_output *o, struct error *err) MUST_CHECK;
void tool_output_deinit(struct tool_output *o);

/** Add an address to the batch; that of another object is answered first. */
void tool_output_add(struct tool_output *o, struct named_object *object, uint64_t address);

/** Answer the batch. An error is reported on standard error, and the answers are those of unknown addresses. */
void tool_output_answer(struct tool_output *o);

/** Answer the batch and write everything to standard output. The process exits if that fails. */
void tool_output_flush(struct tool_output *o);

/**
 * Call handle(o->context) for each argument, or without any, for each line of standard input; everything is answered
 * and written before a read that may block.
 * @param request  without a newline; may be changed.
 * @return of standard input: ST_BAD_DATA for a line that is too long; ST_OS; ST_NO_MEMORY.
 */
enum status tool_output_handle_requests(struct tool_output *o, int argc, char **argv,
                                        void (*handle)(void *context, char *request), struct error *err) MUST_CHECK;

/** "PROGRAM: TEXT" on standard error. */
void report_tool_error(struct tool_output *o, const char *fmt, ...) PRINTF(2, 3);

/** Append a text with escapes for what is not printable; "??" for an empty one. */
void append_known_text(struct buf *out, const struct answer_text *t);

/** The function of a frame. @param is_readable  the demangled name, else that of the linker */
void append_function_name(struct buf *out, const struct answer_frame *f, bool is_readable);

/** The name of an ELF symbol, with escapes. @param is_readable  demangled if it can be */
void append_symbol_name(struct buf *out, const char *name, bool is_readable);
/** The same as it is, for an output that has escapes of its own. */
void append_raw_symbol_name(struct buf *out, const char *name, bool is_readable);

/** The file of a frame. @param base_only  without its directory */
struct answer_text get_file_text(const struct answer_text *file, bool base_only);

/** Append it; "??" unknown. */
void append_file_name(struct buf *out, const struct answer_text *file, bool base_only);

#endif
