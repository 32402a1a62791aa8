/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_WHY_H
#define CAIRN_SERVER_WHY_H

/**
 * @file
 * `cairn why`: reports (docs/formats/why.md) of files, and of objects that are
 * stored, for the HTTP API and for the command line. ELF and DWARF are read in
 * confined workers; what these say is parsed as JSON and written anew.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "common/buf.h"
#include "debuginfo-store/store.h"
#include "symbolizer/extract.h"
#include "symbolizer/lookup.h"

struct why_question {
        const uint64_t *addresses;
        size_t count;               /* at most EXPLAIN_ADDRESSES_MAX */
        bool second_opinion;        /* ask libdw as well */
        const atomic_bool *cancel;  /* NULL never */
};

/** Where a file of the report came from; texts are shown as they are, "" unknown. */
struct why_origin {
        const char *role;           /* "debuginfo", "executable", "dwz", ... */
        const char *name;           /* path or name */
        const char *found;          /* how */
};

/** A report about files. @param origins origin_count of them. @param ret appended. */
enum status why_files(const struct extract_inputs *in, const struct why_origin *origins, size_t origin_count,
                      const struct why_question *q, struct buf *ret, struct error *err) MUST_CHECK;

/**
 * A report about an object of a service: what its index says, and what the stored files say.
 * @param objects NULL: only the index is asked. Temporary files go where the store has its own.
 * @return ST_OK also for an object that nobody knows; what the worker fails with is a part of the report.
 */
enum status why_stored(struct symbol_index *symbols, struct debuginfo_store *objects, const struct build_id *id,
                       const struct why_question *q, struct buf *ret, struct error *err) MUST_CHECK;

/** The parts of a report as JSON texts, empty where there is none, put together. */
struct why_parts {
        struct buf object, second_opinion, index, origins;
        struct buf symbols; /* the symbol file that answers: it has nothing to explain the answer by */
        char second_opinion_error[256], object_error[256]; /* "" none */
};
enum status why_merge(struct why_parts *p, struct buf *ret, struct error *err) MUST_CHECK;

#endif
