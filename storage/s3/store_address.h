/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_STORE_ADDRESS_H
#define CAIRN_STORAGE_S3_STORE_ADDRESS_H

/**
 * @file
 * Which object store has the objects of a directory: DIR/object-store is one line, s3://BUCKET/PREFIX. It is written
 * once, when the directory is new, so that every command that opens the directory finds the objects.
 */
#include "common/error.h"

/** The address; owned, NULL when the objects are local files. */
enum status store_address_read(const char *dir, char **ret, struct error *err) MUST_CHECK;

/**
 * Choose the object store at url for a new directory, durably. No effect when it is chosen.
 * @param local  a file below dir that exists when its objects are local files.
 * @param what   of the objects, for messages: "tables".
 * @param owner  the directory that messages name.
 * @return ST_USAGE when the objects are elsewhere, or url is no address.
 */
enum status store_address_set(const char *dir, const char *url, const char *local, const char *what, const char *owner,
                              struct error *err) MUST_CHECK;

#endif
