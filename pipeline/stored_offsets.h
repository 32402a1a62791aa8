/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_STORED_OFFSETS_H
#define CAIRN_PIPELINE_STORED_OFFSETS_H

/**
 * @file
 * Offsets of fields of C structures (symbolizer/structs/struct_offsets.h) in the stored debuginfo of a build-id, as
 * JSON for the HTTP API and the command line.
 */
#include "common/memory/buf.h"
#include "debuginfo-store/debuginfo_store.h"
#include "symbolizer/structs/struct_offsets.h"

/**
 * Append {"build_id":..., "fields":[{"field":..., "state":..., "offset":..., "size":...}]}.
 * @param cancel  as in struct worker_job.
 * @return ST_NOT_FOUND: no debuginfo or executable is stored; else as struct_offsets_find().
 */
enum status stored_offsets_write(struct debuginfo_store *objects, const struct build_id *id, const char *const *fields,
                                 size_t count, const atomic_bool *cancel, struct buf *ret,
                                 struct error *err) MUST_CHECK;

#endif
