/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_ACTIONS_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_ACTIONS_H

/**
 * @file
 * The actions of a commit or checkpoint: parsed and checked, not yet applied.
 * Source: delta-io PROTOCOL.md, "Actions".
 */
#include <stdatomic.h>

#include "profile-store/delta/delta_log.h"

struct json_object; /* from json-c */

#define DELTA_READER_VERSION 1
#define DELTA_WRITER_VERSION 2
/* Member of commitInfo: ids of the batches whose rows the commit adds, 32 hexadecimal digits each, without separators
 */
#define DELTA_BATCH_IDS "cairnBatchIds"

/* A delta_file, reference-counted by the states, actions and snapshots that hold it. */
struct delta_counted_file {
        struct delta_file file; /* first member: pointers are cast between the two types */
        atomic_uint refs;
        char *memory[]; /* owned texts that `file` points to */
};

struct delta_txn {
        char *app_id; /* owned */
        int64_t version;
        int64_t last_updated_ms;
};

struct delta_actions {
        struct delta_counted_file **adds; /* owned references */
        size_t add_count, add_capacity;
        struct delta_counted_file **removes; /* owned references */
        size_t remove_count, remove_capacity;
        struct delta_txn *txns;
        size_t txn_count, txn_capacity;
        struct json_object *metadata; /* owned: the metaData object; NULL when there is none */
        bool has_protocol;
        struct hash128 *batch_ids; /* owned: of commitInfo */
        size_t batch_id_count;
};

void delta_actions_deinit(struct delta_actions *a);

/**
 * Parse the JSON lines of a commit.
 *
 * @return ST_OK; ST_BAD_DATA; ST_UNSUPPORTED for a newer protocol; ST_TOO_BIG; ST_NO_MEMORY.
 */
enum status delta_actions_parse(const char *text, size_t n, struct delta_actions *ret, struct error *err) MUST_CHECK;

/** Add an add of f to a. The path is percent-decoded and must stay inside the table. */
enum status delta_actions_add_file(struct delta_actions *a, const struct delta_file *f, struct error *err) MUST_CHECK;
/**
 * Add a remove to a, with the known fields of f: size and partitions may be absent. The path is checked as that of an
 * add.
 */
enum status delta_actions_remove_file(struct delta_actions *a, const struct delta_file *f,
                                      struct error *err) MUST_CHECK;
enum status delta_actions_add_txn(struct delta_actions *a, const char *app_id, int64_t version, int64_t last_updated_ms,
                                  struct error *err) MUST_CHECK;
enum status delta_actions_set_protocol(struct delta_actions *a, int64_t reader, int64_t writer,
                                       struct error *err) MUST_CHECK;

/** Check a metaData object and take it, also on failure. */
enum status delta_actions_set_metadata(struct delta_actions *a, struct json_object *metadata,
                                       struct error *err) MUST_CHECK;

void delta_counted_file_ref(struct delta_counted_file *f);
void delta_counted_file_unref(struct delta_counted_file *f);

/** A string member of an object, borrowed; NULL when it is absent, of another type, or contains a NUL. */
const char *delta_json_get_string(struct json_object *o, const char *key);

/** Parse n bytes as exactly one JSON value, of at most LIMIT_DELTA_LINE_BYTES; NULL otherwise. Owned. */
struct json_object *delta_json_parse(const char *text, size_t n);

#endif
