/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLE_STORAGE_H
#define CAIRN_PROFILE_STORE_TABLE_STORAGE_H

/**
 * @file
 * Where the tables of a profile store are: in files below DIR/tables, or in an object store.
 *
 * The choice is made once, when the store is created, and kept in DIR/tables/object-store: one line, the address of the
 * tables, s3://BUCKET/PREFIX. So every command that opens the directory finds them. The queue and the head stay in DIR.
 */
#include "storage/storage.h"

/** Memory of the local disk for parts of remote tables, in DIR/tables/cache: the default. */
#define TABLE_CACHE_BYTES GiB(8)

/**
 * Open the storage of the tables in dir.
 * @return ST_USAGE also when the object store needs keys or settings that are absent (storage/s3/s3_location.h).
 */
enum status open_table_storage(const char *dir, struct storage **ret, struct error *err) MUST_CHECK;

/** The address of tables in an object store; owned, NULL for local files. */
enum status get_table_location(const char *dir, char **ret, struct error *err) MUST_CHECK;

/**
 * Choose the object store at url for the tables of a new profile store in dir, durably. No effect when it is chosen.
 * @return ST_USAGE when dir has tables elsewhere, or url is no address.
 */
enum status set_table_location(const char *dir, const char *url, struct error *err) MUST_CHECK;

/** Limit the cache of storages that are opened from now on. Before other threads start. */
void set_table_cache_limit(uint64_t bytes);
uint64_t get_table_cache_limit(void);

#endif
