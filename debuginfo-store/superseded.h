/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_SUPERSEDED_H
#define CAIRN_DEBUGINFO_STORE_SUPERSEDED_H

/**
 * @file
 * Symbol files that debuginfo has taken the place of.
 *
 * Symbols are for the index alone. Once the index has as good ones from what is
 * stored as debuginfo or executable of the same build-id, nobody reads them any
 * more, and no rule has to give them up.
 *
 * Threads: any.
 */
#include "debuginfo-store/retention.h"

/**
 * Remove symbols that were seen to be no better than what debuginfo or an executable gave the index.
 * They stay when no such object of their quality is stored (it may be in a scanned tree, which may go), when they are pinned
 * or a rule says keep, and when another name leads to the build-id by them alone.
 * @param symbols as they were when that was seen.
 * @return ST_OK, durable; ST_NOT_FOUND when they stay, or are gone.
 */
enum status debuginfo_store_remove_superseded(struct debuginfo_store *store, const struct stored_object *symbols,
                                              const struct retention_rule *rules, size_t rule_count, struct error *err) MUST_CHECK;

#endif
