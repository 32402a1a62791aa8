/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_APP_NAME_H
#define CAIRN_SERVER_APP_NAME_H

/** @file "app.cpu{region=eu,host=a}", the way /ingest names where a profile comes from. */
#include "profile-formats/profile.h"

/**
 * Label all samples with service_name, and with the labels in braces; keys in double underscores are the sender's own
 * and are left out. ST_BAD_DATA for a malformed name.
 */
enum status app_name_label(const char *name, struct profile *p, struct error *err) MUST_CHECK;

#endif
