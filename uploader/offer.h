/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_OFFER_H
#define CAIRN_UPLOADER_OFFER_H

/**
 * @file
 * Offer files to the service; its response selects those to send. Source: docs/formats/upload.md, 2.
 */
#include "http/http_client.h"
#include "uploader/upload_list.h"

/** Offer all items, in batches, and set their state and reason. */
enum status offer_files(struct http_client *client, struct upload_list *list, struct error *err) MUST_CHECK;

/** Parse the response for count items, in their order, and set their state and reason. ST_BAD_DATA: malformed. */
enum status offer_read_answers(const struct buf *body, struct upload_item *items, size_t count,
                               struct error *err) MUST_CHECK;

#endif
