/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_PROFILES_APP_NAME_H
#define CAIRN_SERVER_API_PROFILES_APP_NAME_H

/**
 * @file
 * The application name of Pyroscope's /ingest, such as "app.cpu{region=eu,host=a}".
 */
#include "profile-formats/profile.h"

struct app_name {
        char *text;    /* owned */
        char *service; /* the part before the braces, in text; never empty */
        char *pairs;   /* between the braces, in text; NULL: none */
};

/** Parse a name; app_name_deinit() it on success only. ST_BAD_DATA for a malformed name. */
enum status app_name_parse(const char *name, struct app_name *ret, struct error *err) MUST_CHECK;
void app_name_deinit(struct app_name *a);
#define _cleanup_app_name_ _cleanup_(app_name_deinit)

/**
 * Add service_name and the labels in braces to all samples. A service_name in braces takes precedence; the part before
 * the braces is then the label app_name. Keys that begin with two underscores are internal to the sender and are
 * omitted. ST_BAD_DATA for a malformed pair; ST_TOO_BIG for more than LIMIT_LABELS_PER_SAMPLE pairs, including omitted
 * ones. Call once: the text is modified.
 */
enum status app_name_add_labels(struct app_name *a, struct profile *p, struct error *err) MUST_CHECK;

#endif
