/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ROUTES_WHY_H
#define CAIRN_SERVER_ROUTES_WHY_H

/**
 * @file
 * Reports of `cairn why` (docs/formats/why.md), for files and for stored objects, for the HTTP API and the command
 * line. ELF and DWARF are read in confined workers, whose output is parsed as JSON and written anew.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "common/buf.h"
#include "debuginfo-store/store.h"
#include "symbolizer/extraction/extract.h"
#include "symbol-index/lookup.h"

struct why_request {
        const uint64_t *addresses;
        size_t count;              /* at most EXPLAIN_ADDRESSES_MAX */
        bool second_opinion;       /* ask libdw as well */
        const atomic_bool *cancel; /* NULL never */
};

/** Origin of a file in the report; the texts are shown as they are, "": unknown. */
struct why_origin {
        const char *role;  /* "debuginfo", "executable", "dwz", ... */
        const char *name;  /* path or name */
        const char *found; /* how */
};

/** A report about files. @param origins origin_count of them. @param ret appended. */
enum status explain_files(const struct extract_inputs *in, const struct why_origin *origins, size_t origin_count,
                          const struct why_request *q, struct buf *ret, struct error *err) MUST_CHECK;

/**
 * Report on a stored object, from the index and from the stored files.
 * @param objects NULL: only the index. Temporary files are made in the store's directory.
 * @return ST_OK also for an unknown object; a failed worker is part of the report.
 */
enum status explain_stored_object(struct symbol_index *symbols, struct debuginfo_store *objects,
                                  const struct build_id *id, const struct why_request *q, struct buf *ret,
                                  struct error *err) MUST_CHECK;

#endif
