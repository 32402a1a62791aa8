/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOLS_DEBUG_FILES_H
#define CAIRN_CLI_SYMBOLS_DEBUG_FILES_H

/**
 * @file
 * Where a command looks for debug files: the debug directory, and debuginfod servers if $DEBUGINFOD_URLS is set.
 *
 * Progress is shown on standard error when that is a terminal or $DEBUGINFOD_PROGRESS is set. Ctrl-C during a download
 * cancels it; the command continues with the files of this machine and downloads nothing more.
 *
 * Threads: one at a time; *cancel may be set from anywhere.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "debuginfod-client/debuginfo_fetcher.h"
#include "symbolizer/extraction/debug_file_search.h"

struct debug_files {
        const char *directory; /* of --debug-dir */
        const char *path_list; /* in its place; NULL: see struct debug_file_search */
        const char *package;   /* of split DWARF; NULL: FILE.dwp */
        bool no_debuginfod;
        const atomic_bool *cancel; /* replaces the handling of Ctrl-C; NULL none */
        /* After debug_files_open(). */
        struct debuginfo_fetcher *fetcher; /* owned; NULL: nothing is fetched */
        int64_t shown_ns;                  /* when progress was last shown */
        bool is_shown;                     /* progress of the current file */
};

/* clang-format off */
#define DEBUG_FILES_OPTIONS(d)                                                                                         \
        OPTION_STRING("debug-dir", 0, "DIR", &(d)->directory,                                                          \
                      "directory of debug files (default " DEBUG_DIRECTORY ")"),                                       \
        OPTION_FLAG("no-debuginfod", 0, &(d)->no_debuginfod, "do not use the servers in DEBUGINFOD_URLS")
/* clang-format on */

/** @param d  all members before fetcher set. */
enum status debug_files_open(struct debug_files *d, struct error *err) MUST_CHECK;
void debug_files_close(struct debug_files *d);

/** For extract_inputs_search(); valid while d is open. */
struct debug_file_search debug_files_search(struct debug_files *d);

/** Whether the file at this path came from a debuginfod server or its cache. */
bool debug_files_is_fetched(const struct debug_files *d, const char *path);

/** The debuginfo of a build-id from a server or its cache: an owned descriptor, -1 none. */
int debug_files_fetch(struct debug_files *d, const struct build_id *id, const char *name);

#endif
