/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_WANT_H
#define CAIRN_UPLOADER_WANT_H

/**
 * @file
 * Ask the service which files it wants. Source: docs/formats/upload.md, 2.
 */
#include "http/client.h"
#include "uploader/upload_list.h"

/** Ask about every item, in batches, and set its state and reason. */
enum status want_ask(struct http_client *client, struct upload_list *list, struct error *err) MUST_CHECK;

#endif
