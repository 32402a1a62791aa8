/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/local_symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolizer/extract_find.h"

static enum status make_fetcher(struct local_symbols *l, struct error *err)
{
        static const atomic_bool never;
        const char *urls = getenv("DEBUGINFOD_URLS");

        if (l->no_debuginfod || !urls || !urls[strspn(urls, " \t\n")])
                return ST_OK;
        return debug_fetcher_create(urls, l->cancel ? l->cancel : &never, &l->fetcher, err);
}

/* Large programs take seconds the first time. The line goes away again. */
static void show_progress(size_t done, size_t all)
{
        fprintf(stderr, "\rlooking for names: %zu%%", 100 * done / all);
}

static void end_progress(void)
{
        fputs("\r\033[K", stderr);
}

enum status local_symbols_fill(struct local_symbols *l, struct profile *p, struct error *err)
{
        struct object_finder_options o = { .debug_directory = l->debug_directory ? l->debug_directory : DEBUG_DIRECTORY,
                                           .held = l->held };
        struct object_finder *finder = NULL;
        enum status st = make_fetcher(l, err);

        o.fetcher = l->fetcher;
        /* Kernel frames come with a name; the kernel's debug file, where there is one, has lines too. */
        l->symbols = (struct profile_symbols){ .force = true, .quiet = true,
                                               .progress = isatty(STDERR_FILENO) ? show_progress : NULL };
        if (!st)
                st = object_finder_create(&o, &finder, err);
        if (!st)
                st = profile_symbols_fill(&l->symbols, p, finder, err);
        if (l->symbols.progress)
                end_progress();
        object_finder_destroy(finder);
        return st;
}

void local_symbols_deinit(struct local_symbols *l)
{
        profile_symbols_deinit(&l->symbols);
        debug_fetcher_destroy(l->fetcher);
        l->fetcher = NULL;
}
