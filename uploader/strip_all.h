/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_STRIP_ALL_H
#define CAIRN_UPLOADER_STRIP_ALL_H

/**
 * @file
 * After the upload: strip the programs whose debuginfo the service has.
 */
#include "uploader/report.h"

/**
 * Strip each program of the list whose debuginfo was sent or is there; the others stay as they are. What cannot be
 * stripped is told to the report.
 * @return how many were.
 */
size_t strip_all(const struct upload_list *list, struct report *report);

#endif
