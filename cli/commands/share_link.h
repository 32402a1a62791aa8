/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_SHARE_LINK_H
#define CAIRN_CLI_COMMANDS_SHARE_LINK_H

/** @file Post a profile to a service and print the link to its flame graph. */
#include "cli/shared/service.h"
#include "profile-formats/profile.h"

/**
 * @param p      resolved.
 * @param query  appended to the link, as "?by=host"; "" for nothing.
 */
enum status share_and_print_link(const struct service_options *o, const struct profile *p, const char *query,
                                 struct error *err) MUST_CHECK;

#endif
