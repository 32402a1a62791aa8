/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_LINE_INPUT_H
#define CAIRN_CLI_DROP_IN_LINE_INPUT_H

/**
 * @file
 * Lines of standard input in a dialogue: everything is answered before a read that may block, so that another program
 * can wait for each answer.
 *
 * Threads: one.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct line_input {
        void (*before_wait)(void *context); /* answers all lines so far */
        void *context;
        size_t split_bytes; /* of a longer line each part of this size is a line, as with fgets(); 0 none is split */
        char *bytes;        /* owned */
        size_t capacity;    /* of bytes, which has one more */
        size_t start, end;
        char held; /* the byte at start, in whose place is the end of a part; 0 none */
        bool is_ended;
};

/** @param i  the first three members set, the others zero; line_input_deinit(). */
enum status line_input_open(struct line_input *i, struct error *err) MUST_CHECK;
void line_input_deinit(struct line_input *i);

/**
 * The next line, without its newline.
 * @param ret  borrowed until the next call.
 * @return ST_NOT_FOUND at the end; ST_BAD_DATA for a line that is too long; ST_OS.
 */
enum status line_input_next(struct line_input *i, char **ret, struct error *err) MUST_CHECK;

#endif
