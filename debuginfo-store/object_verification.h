/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_OBJECT_VERIFICATION_H
#define CAIRN_DEBUGINFO_STORE_OBJECT_VERIFICATION_H

/**
 * @file
 * Checks the table of objects of an object store (object_table.h): each file of its log is read, each name has one row,
 * and each row has an object of the recorded size. The content of objects is not read; debuginfo_store_check_object()
 * does that.
 *
 * Read-only, can run beside a service. Memory: about 200 bytes for each row. Threads: the callback runs on the calling
 * thread.
 */
#include "storage/storage.h"

struct object_verify_result {
        uint64_t files, rows, bytes; /* of the table, and of the objects that its rows name */
        uint64_t unnamed,
                unnamed_bytes; /* objects without a row, which the collection of garbage removes: no problem */
        uint64_t problems;
};

/** @param file  below the prefix of the store. Texts are valid during the call. */
typedef void object_problem_report(void *context, const char *file, const char *problem);

/**
 * @param ret  added to, also on failure.
 * @return ST_OK, also when problems were reported, and without a table; ST_BAD_DATA for a damaged log.
 */
enum status verify_object_table(struct storage *s, object_problem_report *report, void *context,
                                struct object_verify_result *ret, struct error *err) MUST_CHECK;

#endif
