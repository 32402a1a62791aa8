/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_SEND_ALL_H
#define CAIRN_UPLOADER_SEND_ALL_H

/**
 * @file
 * Send everything that is wanted, several files at a time.
 */
#include "http/client.h"
#include "uploader/report.h"
#include "uploader/send.h"
#include "uploader/upload_list.h"

#define SEND_JOBS_MAX 64

/**
 * Send all items in state UPLOAD_WANTED. What fails is told to the report and
 * kept in the item; the call itself fails only when it cannot start. When the
 * service refuses the token or is gone for several files in a row, the rest
 * stays untried.
 * @param options for the clients, one per job; options->stop ends early.
 */
enum status send_all(const struct http_client_options *options, struct upload_list *list, unsigned jobs, const struct send_options *how,
                     struct report *report, struct error *err) MUST_CHECK;

#endif
