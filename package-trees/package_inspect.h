/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PACKAGE_TREES_PACKAGE_INSPECT_H
#define CAIRN_PACKAGE_TREES_PACKAGE_INSPECT_H

/**
 * @file
 * Worker side of a scan: inspects the files that the parent passes (package-trees/inspector.h), extracts single members
 * of archives, and hashes the source names of debuginfo.
 */
#include "common/error.h"

/**
 * `cairn worker scan`: inspect every file received through the socket.
 * @param out     receives the contents of the last file (package-trees/package_contents.h).
 * @param scratch an empty file for members that are too large for memory.
 */
enum status inspect_worker_run(int socket, int out, int scratch, struct error *err) MUST_CHECK;

/**
 * `cairn worker member ORDINAL`: extract a member of the archive into an empty file. ST_NOT_FOUND if there are fewer.
 * @param ordinal a number, or MEMBER_IS_CONTENT: that of a compressed file; ST_BAD_DATA for an archive.
 */
#define MEMBER_IS_CONTENT "content"
enum status member_worker_run(const char *ordinal, int archive, int out, struct error *err) MUST_CHECK;

/** `cairn worker source-names`: write the sorted path hashes of the sources that the debuginfo names, 8 bytes each in
 * native byte order.
 */
enum status source_names_worker_run(int debuginfo, int out, struct error *err) MUST_CHECK;

#endif
