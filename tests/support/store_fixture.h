/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_STORE_FIXTURE_H
#define CAIRN_TESTS_SUPPORT_STORE_FIXTURE_H

/* A profile store in a temporary directory, one per test. By default it flushes only on request. */
#include "profile-store/profile_store.h"
#include "tests/support/suite.h"

#define STORE_FIXTURE_ID "00112233445566778899aabbccddeeff00112233" /* build-id of all locations */
#define STORE_FIXTURE_DAY_NS INT64_C(86400000000000)
#define STORE_FIXTURE_T0 (INT64_C(20000) * STORE_FIXTURE_DAY_NS) /* 2024-10-04 */

struct store_fixture {
        char dir[64];
        struct profile_store *store;
        struct profile_store_options options; /* a size or flush_interval_ms of 0 means the default */
};

void store_fixture_begin(struct store_fixture *f); /* open a store in a new directory */
void store_fixture_open(struct store_fixture *f);
void store_fixture_reopen(struct store_fixture *f);
void store_fixture_end(struct store_fixture *f); /* close and remove it */
void store_fixture_flush(struct store_fixture *f);

/* DIR/name, owned. */
char *store_fixture_path(const struct store_fixture *f, const char *name);

/* The id of the i-th batch. */
struct hash128 store_fixture_batch_id(unsigned i);

/* Append one sample of value 1 at T0 on a stack of one location at this address. */
void store_fixture_append(struct store_fixture *f, unsigned batch, uint64_t address);

#define STORE_FIXTURE_LARGE_BYTES 600000

/* The same, with a stack of names of so many bytes that cannot be compressed much: more than 400 KiB in the queue. */
void store_fixture_append_large(struct profile_store *s, unsigned batch);

/* Sum of the values of all samples, and the number of stacks. */
int64_t store_fixture_sum(struct store_fixture *f);
size_t store_fixture_count_stacks(struct store_fixture *f);

/*
 * Check that the last commit of a table is marked as a data change (not as a rearrangement, which readers of changes
 * skip) and contains this word.
 */
void store_fixture_check_last_commit(const struct store_fixture *f, const char *table, const char *word);

struct profile_store_stat store_fixture_stat(struct store_fixture *f);

#endif
