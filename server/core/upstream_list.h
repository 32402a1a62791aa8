/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_UPSTREAM_LIST_H
#define CAIRN_SERVER_CORE_UPSTREAM_LIST_H

/**
 * @file
 * Upstreams and their credentials, from options, the environment and a file of lines "URL [token=TOKEN]
 * [header=NAME:VALUE]". Everything after the URL is secret: error texts never contain it.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct upstream_list {
        char **urls, **headers; /* owned; headers: a line such as "Authorization: Bearer x", or NULL */
        size_t count, capacity;
        bool is_file_empty; /* the file that was read has no bytes */
};

void upstream_list_deinit(struct upstream_list *l);

/** A URL that is already in the list is ignored. ST_USAGE when it is not an http:// or https:// URL. */
enum status upstream_list_add(struct upstream_list *l, const char *url, struct error *err) MUST_CHECK;
/** Add the words of DEBUGINFOD_URLS; policy words of newer clients ("ima:...") are ignored. @param words  modified */
enum status upstream_list_add_urls(struct upstream_list *l, char *words, struct error *err) MUST_CHECK;
/** Read the file. '#' at the start of a line or after a space begins a comment. ST_BAD_DATA with the line number;
 *  ST_NOT_FOUND; ST_OS. */
enum status upstream_list_read(struct upstream_list *l, const char *path, struct error *err) MUST_CHECK;

#endif
