/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/drop-in/line_input.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/limits.h"

#define INPUT_BYTES KiB(256)
#define LINE_BYTES_MAX MiB(16)

enum status line_input_open(struct line_input *i, struct error *err)
{
        i->capacity = INPUT_BYTES;
        i->bytes = malloc(i->capacity + 1);
        return i->bytes ? ST_OK : error_no_memory(err);
}

void line_input_deinit(struct line_input *i)
{
        free(i->bytes);
        i->bytes = NULL;
}

static bool is_input_ready(void)
{
        struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };

        return poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN);
}

/* Room for more, at the end of bytes. */
static enum status reserve_input(struct line_input *i, struct error *err)
{
        char *bytes;

        if (i->start) {
                memmove(i->bytes, i->bytes + i->start, i->end - i->start);
                i->end -= i->start;
                i->start = 0;
        }
        if (i->end < i->capacity)
                return ST_OK;
        if (i->capacity >= LINE_BYTES_MAX)
                return error_set(err, ST_BAD_DATA, "a line of standard input is too long");
        bytes = realloc(i->bytes, 2 * i->capacity + 1);
        if (!bytes)
                return error_no_memory(err);
        i->bytes = bytes;
        i->capacity *= 2;
        return ST_OK;
}

static enum status read_more_input(struct line_input *i, struct error *err)
{
        enum status st = reserve_input(i, err);
        ssize_t n;

        if (st)
                return st;
        if (!is_input_ready())
                i->before_wait(i->context);
        do
                n = read(STDIN_FILENO, i->bytes + i->end, i->capacity - i->end);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return error_os(err, errno, "cannot read standard input");
        i->end += (size_t)n;
        i->is_ended = n == 0;
        return ST_OK;
}

enum status line_input_next(struct line_input *i, char **ret, struct error *err)
{
        size_t searched = i->start;

        if (i->held)
                i->bytes[i->start] = i->held;
        i->held = 0;
        for (;;) {
                char *newline = memchr(i->bytes + searched, '\n', i->end - searched);
                size_t size = newline ? (size_t)(newline - i->bytes) - i->start : i->end - i->start;
                enum status st;

                if (i->split_bytes && size >= i->split_bytes) {
                        *ret = i->bytes + i->start;
                        i->start += i->split_bytes;
                        if (i->start < i->end)
                                i->held = i->bytes[i->start];
                        i->bytes[i->start] = 0;
                        return ST_OK;
                }
                if (!newline && i->is_ended && i->start < i->end)
                        newline = i->bytes + i->end++; /* the last line has none */
                if (newline) {
                        *newline = 0;
                        *ret = i->bytes + i->start;
                        i->start = (size_t)(newline + 1 - i->bytes);
                        return ST_OK;
                }
                if (i->is_ended)
                        return ST_NOT_FOUND;
                searched = i->end - i->start;
                st = read_more_input(i, err);
                if (st)
                        return st;
        }
}
