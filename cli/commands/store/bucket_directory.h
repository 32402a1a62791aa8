/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_STORE_BUCKET_DIRECTORY_H
#define CAIRN_CLI_COMMANDS_STORE_BUCKET_DIRECTORY_H

/**
 * @file
 * A temporary data directory whose tables and objects are those of an object store, for commands that are given
 * s3://BUCKET/PREFIX in place of a directory. It has no queue and no quarantine, which are on the disks of nodes.
 *
 * Threads: one.
 */
#include "common/cleanup.h"
#include "common/error.h"

struct bucket_directory {
        char *path; /* NULL: none */
};

/**
 * Create it, with a folder for each tenant that has tables in the store.
 * @param tenant  the one that must have tables; NULL: the default one.
 * @return ST_NOT_FOUND: the store has no tables there; ST_USAGE: url is no address, or keys are absent.
 */
enum status bucket_directory_create(const char *url, const char *tenant, struct bucket_directory *ret,
                                    struct error *err) MUST_CHECK;

/** Create one without tenants, for tables and objects that are to be written. */
enum status bucket_directory_create_empty(struct bucket_directory *ret, struct error *err) MUST_CHECK;

/** Add a tenant whose tables and objects are below url. @param tenant  NULL: the default one. */
enum status bucket_directory_link(const struct bucket_directory *b, const char *url, const char *tenant,
                                  struct error *err) MUST_CHECK;

/** Fill in the records of the objects, as a service does at its start, for commands that copy them. */
enum status bucket_directory_load_records(const struct bucket_directory *b, struct error *err) MUST_CHECK;

/** Remove it. */
void bucket_directory_remove(struct bucket_directory *b);
#define _cleanup_bucket_directory_ _cleanup_(bucket_directory_remove)

#endif
