/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_WHY_REPORT_H
#define CAIRN_PIPELINE_WHY_REPORT_H

/**
 * @file
 * Reports of `cairn why` (docs/formats/why.md) on files and on stored objects, for the HTTP API and the command line.
 * Confined workers read ELF and DWARF; their output is parsed as JSON and serialized again.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "common/memory/buf.h"
#include "debuginfo-store/debuginfo_store.h"
#include "symbol-index/lookup.h"
#include "symbolizer/extraction/extract.h"

struct why_request {
        const uint64_t *addresses;
        size_t count;              /* at most EXPLAIN_ADDRESSES_MAX */
        bool are_file_offsets;     /* of a stored object: addresses are offsets into the ELF file */
        bool second_opinion;       /* run libdw as well */
        const atomic_bool *cancel; /* NULL: never */
};

/** Origin of a file in the report; texts are shown unchanged, "": unknown. */
struct why_origin {
        const char *role;  /* "debuginfo", "executable", "dwz", ... */
        const char *name;  /* path or name */
        const char *found; /* how the file was found */
};

/** Report on files. @param ret  the report is appended. */
enum status explain_files(const struct extract_inputs *in, const struct why_origin *origins, size_t origin_count,
                          const struct why_request *q, struct buf *ret, struct error *err) MUST_CHECK;

/**
 * Report on a stored object, from the index and from the stored files.
 * @param objects  NULL: only the index. Temporary files are created in the store's directory.
 * @return ST_OK also for an unknown object; a failed worker is part of the report.
 */
enum status explain_stored_object(struct symbol_index *symbols, struct debuginfo_store *objects,
                                  const struct build_id *id, const struct why_request *q, struct buf *ret,
                                  struct error *err) MUST_CHECK;

#endif
