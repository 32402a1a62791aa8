/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ROUTES_APP_NAME_H
#define CAIRN_SERVER_ROUTES_APP_NAME_H

/**
 * @file
 * "app.cpu{region=eu,host=a}": the application name of Pyroscope's /ingest.
 */
#include "profile-formats/profile.h"

/**
 * Add service_name and the labels in braces to all samples. Keys in double underscores are internal to the sender and
 * are omitted. ST_BAD_DATA for a malformed name.
 */
enum status parse_app_name(const char *name, struct profile *p, struct error *err) MUST_CHECK;

#endif
