/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/symbols/debug_files.h"

#include <errno.h>
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text/utf8.h"
#include "common/text.h"

#define COLUMNS 79                     /* of a line that is replaced */
#define TERMINAL_INTERVAL_NS 100000000 /* between two updates of that line */
#define LOG_INTERVAL_NS 5000000000     /* between two lines elsewhere */

static atomic_bool interrupted;

static void note_interrupt(int signal)
{
        (void)signal;
        atomic_store(&interrupted, true);
}

/* ---- progress ---- */

static void show_download(void *context, const struct debuginfo_progress *p)
{
        struct debug_files *d = context;
        const bool is_terminal = isatty(STDERR_FILENO);
        const int64_t now_ns = monotonic_ns(), interval_ns = is_terminal ? TERMINAL_INTERVAL_NS : LOG_INTERVAL_NS;
        char line[512], amount[64] = "";

        if (p->is_finished) {
                if (is_terminal && d->is_shown)
                        fputs("\r\033[K", stderr);
                d->is_shown = false;
                return;
        }
        if (d->is_shown && now_ns - d->shown_ns < interval_ns)
                return;
        d->is_shown = true;
        d->shown_ns = now_ns;
        if (p->total_bytes)
                snprintf(amount, sizeof amount, ": %.1f of %.1f MB", (double)p->done_bytes / 1e6,
                         (double)p->total_bytes / 1e6);
        snprintf(line, sizeof line, "downloading debuginfo of %s%s%s%s", p->name, p->url[0] ? " from " : "",
                 PRINTABLE(p->url), amount);
        if (is_terminal)
                fprintf(stderr, "\r\033[K%.*s", COLUMNS, line);
        else
                fprintf(stderr, "%s\n", line);
        fflush(stderr);
}

/* ---- lookup ---- */

enum status debug_files_open(struct debug_files *d, struct error *err)
{
        const struct debuginfo_fetcher_options options = {
                .cancel = d->cancel ? d->cancel : &interrupted,
                .progress = isatty(STDERR_FILENO) || getenv("DEBUGINFOD_PROGRESS") ? show_download : NULL,
                .context = d,
        };

        assert(d->directory && !d->fetcher);
        if (d->no_debuginfod || !debuginfo_fetcher_is_configured())
                return ST_OK;
        return debuginfo_fetcher_create(&options, &d->fetcher, err);
}

void debug_files_close(struct debug_files *d)
{
        debuginfo_fetcher_destroy(d->fetcher);
        d->fetcher = NULL;
}

/* A second Ctrl-C ends the program. */
static enum status fetch_interruptibly(struct debug_files *d, const struct build_id *id, const char *name, int *ret,
                                       struct error *err)
{
        const struct sigaction action = { .sa_handler = note_interrupt, .sa_flags = (int)SA_RESETHAND };
        struct sigaction previous;
        const bool was_interrupted = atomic_load(&interrupted);
        enum status st;

        if (was_interrupted || sigaction(SIGINT, NULL, &previous) < 0 || previous.sa_handler != SIG_DFL)
                return debuginfo_fetch(d->fetcher, id, name, ret, err);
        sigaction(SIGINT, &action, NULL);
        st = debuginfo_fetch(d->fetcher, id, name, ret, err);
        sigaction(SIGINT, &previous, NULL);
        if (atomic_load(&interrupted))
                fprintf(stderr, "%s: downloads cancelled; continuing with local files\n",
                        program_invocation_short_name);
        return st;
}

int debug_files_fetch(struct debug_files *d, const struct build_id *id, const char *name)
{
        struct error err;
        enum status st;
        int fd = -1;

        if (!d->fetcher)
                return -1;
        st = d->cancel ? debuginfo_fetch(d->fetcher, id, name, &fd, &err) : fetch_interruptibly(d, id, name, &fd, &err);
        return st ? -1 : fd;
}

bool debug_files_is_fetched(const struct debug_files *d, const char *path)
{
        const char *cache = d->fetcher ? debuginfo_fetcher_cache_path(d->fetcher) : "";

        return *cache && starts_with(path, cache) && path[strlen(cache)] == '/';
}

static int fetch_for_search(void *context, const struct build_id *id, const char *name)
{
        return debug_files_fetch(context, id, name);
}

struct debug_file_search debug_files_search(struct debug_files *d)
{
        return (struct debug_file_search){ .directory = d->directory,
                                           .path_list = d->path_list,
                                           .package = d->package,
                                           .fetch = d->fetcher ? fetch_for_search : NULL,
                                           .context = d };
}
