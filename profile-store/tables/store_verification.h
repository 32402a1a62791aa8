/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLES_STORE_VERIFICATION_H
#define CAIRN_PROFILE_STORE_TABLES_STORE_VERIFICATION_H

/**
 * @file
 * Checks the tables: every file against its log entry and statistics, and every reference from samples to stacks and
 * from stacks to locations.
 *
 * Read-only, can run beside a service. Memory: one column of a row group, and the ids of one pass: days with more than
 * VERIFY_PASS_IDS stacks, and tables with more locations, are checked in several passes over their id columns.
 *
 * Threads: the callbacks run on the calling thread.
 */
#include <stdint.h>

#include "common/error.h"

#define VERIFY_PASS_IDS (UINT64_C(2) << 20)

struct verify_options {
        /** Reports a problem of a file (path below the table's folder). Texts are valid during the call. */
        void (*report)(void *context, const char *table, const char *file, const char *problem);
        /** Files read so far, and files to read; files with ids count twice. May be NULL. */
        void (*progress)(void *context, uint64_t done_files, uint64_t all_files);
        void *context;
};

struct store_verify_result {
        uint64_t files, rows, bytes;
        uint64_t problems;
};

/**
 * Check the tables of a profile store (DIR of profile_store_open()).
 * @return ST_OK, also when problems were reported; ST_NOT_FOUND without tables; ST_BAD_DATA for a damaged log; ST_BUSY
 *         when the service removed files during the check: run it again.
 */
enum status verify_tables(const char *dir, const struct verify_options *o, struct store_verify_result *ret,
                          struct error *err) MUST_CHECK;

#endif
