/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_STORAGE_H
#define CAIRN_STORAGE_S3_STORAGE_H

/**
 * @file
 * Objects in an S3-compatible store, below s3://BUCKET/PREFIX (storage/s3/s3_location.h).
 *
 * An upload is a local file until storage_publish() puts it. Maps are sparse local files of the cache
 * (storage/s3/remote_cache.h). An object that was mapped or opened is not asked for again while the cache has it: no
 * key of Cairn is put twice with contents of different meaning, except for _last_checkpoint, which is only read.
 *
 * The storage must be the only writer below its prefix, and the store must have STORAGE_NEW: s3_probe() tells.
 */
#include <stdatomic.h>

#include "storage/storage.h"

struct s3_storage_options {
        const char *cache_dir;   /* for the cache and for uploads; created */
        uint64_t cache_bytes;    /* limit of the cache */
        const atomic_bool *stop; /* ends requests; may be NULL */
};

/**
 * End the requests of storages that are opened from now on, without a flag of their own, once *stop is true. Before
 * other threads start; stop is used until the process ends.
 */
void s3_storage_set_stop(const atomic_bool *stop);

/** Nothing is asked of the store yet. @param url  s3://BUCKET/PREFIX */
enum status s3_storage_open(const char *url, const struct s3_storage_options *options, struct storage **ret,
                            struct error *err) MUST_CHECK;

#endif
