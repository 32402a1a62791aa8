/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_FAULTS_POWER_CUT_H
#define CAIRN_TESTS_FAULTS_POWER_CUT_H

/*
 * Simulates the state after a power cut: replays a log of fault_fs_record() up to some change, and keeps only part of
 * the changes that were not synced by then.
 *
 *  - An unsynced write is there completely, not at all, up to some sector (512 or 4096 bytes), or replaced by zeros up
 * to the size of the file.
 *  - A name is there if its directory was synced after the change. Unsynced names: in a file system with a journal,
 * those up to some moment are there, in all directories; without a journal, each directory has a moment of its own.
 *  - So a renamed file may be empty, or have both names or neither.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct power_cut;

/** Reads the log of the changes under dir, which was empty. Aborts if the log is inconsistent. */
struct power_cut *power_cut_read(int log_fd, const char *dir);
void power_cut_free(struct power_cut *p);
/** The number of changes in the log. */
size_t power_cut_changes(const struct power_cut *p);

enum cut_way {
        CUT_SYNCED,   /* only synced changes */
        CUT_NAMES,    /* all names, only synced bytes */
        CUT_BYTES,    /* all bytes, only synced names */
        CUT_JOURNAL,  /* names up to a moment, some of the unsynced bytes */
        CUT_SCATTERED /* each directory has a moment of its own */
};

struct cut {
        size_t changes; /* number of changes before the cut */
        enum cut_way way;
        uint64_t seed; /* of the last two kinds */
};

/**
 * Create that state in the empty directory `to`.
 * @param marks_ret   bit n: step n was acknowledged before.
 * @return a hash of the state; 0 if an equal state with equal marks was created before, in which case none is created.
 */
uint64_t power_cut_make(struct power_cut *p, const struct cut *cut, const char *to, uint32_t *marks_ret);

/** "17 of 80 changes, then write 4096 bytes at 0 of /x; names up to a moment": for messages. Static buffer. */
const char *power_cut_describe(const struct power_cut *p, const struct cut *cut);

#endif
