/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PERF_SCRIPT_H
#define CAIRN_PROFILE_FORMATS_PERF_SCRIPT_H

/**
 * @file
 * The text that `perf script` prints, with or without call chains.
 *
 * Return addresses are adjusted here (adjust_caller_address()), except at a switch from kernel to user code. With
 * --show-mmap-events and a recording made with --buildid-mmap, addresses become (build-id, file offset) and can be
 * symbolized later; without, frames have the names that perf printed. In place of --buildid-mmap, the lines of
 * `perf buildid-list` before the text give the build-ids of the files, which perf keeps in its file.
 *
 * A clock (cpu-clock, task-clock) becomes the type process_cpu, the second one of a recording and other events
 * perf:EVENT. Labels: comm and pid, where they are not empty.
 *
 * A header needs a time. Lines and fields that are neither headers nor frames (srcline apart, which gives files and
 * lines) are skipped below a header, and refused elsewhere.
 *
 * Threads: no shared state.
 * Source: linux tools/perf/builtin-script.c, tools/perf/util/evsel_fprintf.c.
 */
#include "profile-formats/profile.h"

/**
 * @param end_unix_ns  wall clock time of the last sample, which perf does not print; 0 leaves all times at 0.
 * @return ST_BAD_DATA with the line's number: a stack without a header, or a line of neither form.
 */
enum status perf_script_decode(const void *data, size_t n, int64_t end_unix_ns, struct profile *ret,
                               struct error *err) MUST_CHECK;

/** Start of "(FILE)" at the end of a frame; n when it has none. */
size_t perf_script_find_file(const char *text, size_t n);

/** Callback for each frame in the order of the text, for programs that rewrite the text. */
struct perf_script_observer {
        void *context;
        /**
         * @param at,n      from the address to the end of the line, without surrounding blanks; borrowed from data.
         * @param location  of the profile; PROFILE_NONE for a line "(inlined)", which belongs to the next one.
         */
        enum status (*frame)(void *context, const char *at, size_t n, uint32_t location, struct error *err);
};
enum status perf_script_decode_observed(const void *data, size_t n, int64_t end_unix_ns,
                                        const struct perf_script_observer *observer, struct profile *ret,
                                        struct error *err) MUST_CHECK;

#endif
