/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_TABLE_COPY_H
#define CAIRN_PIPELINE_TABLE_COPY_H

/**
 * @file
 * Copy of the tables of a profile store into those of another one, which is empty, or has an earlier part of this copy.
 *
 * The samples are copied as of one version, then the stacks and locations, which have what these samples refer to. The
 * newest commits are copied first, so that no reader can open the copy before it is complete.
 *
 * The queue is not copied.
 */
#include "storage/storage_copy.h"

/**
 * @param from, to  directories of profile stores: DATA/profiles. The source may be in use, if its queue is empty.
 * @return ST_USAGE: the target has other tables; ST_BUSY: the source has samples in its queue; ST_NOT_FOUND: it has no
 *         tables, or its log was cleaned up meanwhile.
 */
enum status copy_tables(const char *from, const char *to, struct storage_copies *count, struct error *err) MUST_CHECK;

#endif
