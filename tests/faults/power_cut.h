/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_FAULTS_POWER_CUT_H
#define CAIRN_TESTS_FAULTS_POWER_CUT_H

/*
 * What a power cut may leave: a log of fault_fs_record() is replayed up to some
 * change, and of what was not synced by then some is there and some is not.
 *
 *  - A write that was not synced is there, or not, or its first sectors (512 or
 *    4096 bytes) are, or zeros in its place as far as the file's size goes.
 *  - A name is there when its directory was synced after it was made. Names
 *    that were not synced: in a file system with a journal those up to some
 *    moment are there, whatever directories they are in; in one without, each
 *    directory has a moment of its own.
 *  - So a renamed file may be empty, be under both names or under none.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct power_cut;

/** Reads the log of what was done under dir, which was empty. Aborts when it makes no sense. */
struct power_cut *power_cut_read(int log_fd, const char *dir);
void power_cut_free(struct power_cut *p);
/** How many changes the log has. */
size_t power_cut_changes(const struct power_cut *p);

enum cut_way {
        CUT_SYNCED,   /* only what was synced */
        CUT_NAMES,    /* all names, only synced bytes */
        CUT_BYTES,    /* all bytes, only synced names */
        CUT_JOURNAL,  /* names up to a moment, some of the bytes */
        CUT_SCATTERED /* each directory has its own moment */
};

struct cut {
        size_t changes; /* that were made before it */
        enum cut_way way;
        uint64_t seed; /* of the last two ways */
};

/**
 * Make that state in the empty directory `to`.
 * @param marks_ret   bit n: mark n was promised before.
 * @return a number that equal states have; 0: an equal state with equal marks was made before, and this one was not.
 */
uint64_t power_cut_make(struct power_cut *p, const struct cut *cut, const char *to, uint32_t *marks_ret);

/** "17 of 80 changes, then write 4096 bytes at 0 of /x; names up to a moment": for messages. Static. */
const char *power_cut_describe(const struct power_cut *p, const struct cut *cut);

#endif
