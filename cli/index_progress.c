/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/index_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"

#define COLUMNS 80 /* of a terminal that does not tell */
#define COLUMNS_MAX 500

void index_progress_init(struct index_progress *p, uint64_t total, bool is_terminal)
{
        *p = (struct index_progress){ .total = total, .begin_ns = monotonic_ns(), .is_terminal = is_terminal };
}

double index_progress_rate(const struct index_progress *p)
{
        int64_t ns = monotonic_ns() - p->begin_ns;

        return ns > 0 ? (double)p->bytes * 1e3 / (double)ns : 0;
}

static int columns(void)
{
        struct winsize size;

        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col == 0)
                return COLUMNS;
        return size.ws_col < COLUMNS_MAX ? size.ws_col : COLUMNS_MAX;
}

/* The end of a path tells more than its begin. */
void index_progress_show(struct index_progress *p, const char *file)
{
        char head[80];
        int used, room;
        size_t length = strlen(file), skip = 0;

        if (!p->is_terminal)
                return;
        used = snprintf(head, sizeof head, "%" PRIu64 "/%" PRIu64 " files, %.1f MB/s: ", p->done, p->total,
                        index_progress_rate(p));
        room = columns() - used - 1;
        if (room < 8)
                room = 8;
        if (length > (size_t)room)
                skip = length - (size_t)room + 3;
        printf("\r\033[K%s%s", head, skip ? "..." : "");
        for (const char *c = file + skip; *c; c++)
                putchar((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
        fflush(stdout);
        p->is_shown = true;
}

void index_progress_done(struct index_progress *p, uint64_t bytes)
{
        p->done++;
        p->bytes += bytes;
}

void index_progress_hide(struct index_progress *p)
{
        if (p->is_shown) {
                fputs("\r\033[K", stdout);
                fflush(stdout);
        }
        p->is_shown = false;
}
