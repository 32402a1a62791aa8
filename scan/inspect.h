/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCAN_INSPECT_H
#define CAIRN_SCAN_INSPECT_H

/**
 * @file
 * The confined side of a scan: look at one file after the other, as the parent
 * hands them over (scan/inspector.h), and take single members out of archives.
 */
#include "common/error.h"

/**
 * `cairn worker scan`: answer for every file that comes through the socket until none comes.
 * @param out     takes what was found in the last file (scan/found.h).
 * @param scratch an empty file for members that are too long for memory.
 */
enum status inspect_worker(int socket, int out, int scratch, struct error *err) MUST_CHECK;

/** `cairn worker member ORDINAL`: that member of the archive into an empty file. ST_NOT_FOUND when it has fewer. */
enum status member_worker(const char *ordinal, int archive, int out, struct error *err) MUST_CHECK;

/** `cairn worker source-names`: hashes of the sources that the debuginfo names, sorted, 8 bytes of this machine each. */
enum status source_names_worker(int debuginfo, int out, struct error *err) MUST_CHECK;

#endif
