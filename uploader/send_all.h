/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_SEND_ALL_H
#define CAIRN_UPLOADER_SEND_ALL_H

/**
 * @file
 * Send all wanted files with several threads.
 */
#include "http/http_client.h"
#include "uploader/report.h"
#include "uploader/send.h"
#include "uploader/upload_list.h"

#define SEND_JOBS_MAX 64

/**
 * Send all items in state UPLOAD_WANTED. Failures are reported and recorded in the item; the call itself fails only
 * when no thread can be started. The remaining items are not tried after the service refused the token or was
 * unreachable for several consecutive files.
 * @param options for the clients, one per job; options->stop ends early.
 */
enum status send_items(const struct http_client_options *options, struct upload_list *list, unsigned jobs,
                       const struct send_options *how, struct report *report, struct error *err) MUST_CHECK;

#endif
