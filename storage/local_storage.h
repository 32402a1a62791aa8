/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_LOCAL_STORAGE_H
#define CAIRN_STORAGE_LOCAL_STORAGE_H

/**
 * @file
 * Objects as files: ROOT/KEY is a regular file.
 *
 * An upload is a file .tmp-NAME-XXXXXX beside the object's, or in a folder for all uploads. Publishing syncs it,
 * renames it or links it to its name, and syncs the folder (common/files/file.h). storage_make_folder() also creates
 * the root. A folder is removed with its last object, except for the root and the folders directly below it.
 *
 * Lists leave out other files than regular ones, names that begin with a dot, folders deeper than LOCAL_STORAGE_DEPTH
 * below the listed one, and subfolders that this user may not read.
 *
 * storage_open() refuses a symbolic link, since it serves files to remote readers; reads and maps follow one.
 */
#include "storage/storage.h"

#define LOCAL_STORAGE_DEPTH 3

/** Objects in a directory, which need not exist: storage_make_folder() creates it. */
enum status local_storage_open(const char *dir, struct storage **ret, struct error *err) MUST_CHECK;

/**
 * The same with uploads in one folder of it, which exists. For a storage of which so many folders have objects that
 * the caller rather empties this folder than calls storage_remove_unfinished().
 */
enum status local_storage_open_staged(const char *dir, const char *staging, struct storage **ret,
                                      struct error *err) MUST_CHECK;

#endif
