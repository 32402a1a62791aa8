/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_TABLE_REMOVAL_H
#define CAIRN_PROFILE_STORE_CORE_TABLE_REMOVAL_H

/**
 * @file
 * Removal of rows of stacks or locations while other nodes flush.
 *
 * Problem: the three tables have a log each. A flush finds that a location is in its table and commits a stack or
 * samples that refer to it; meanwhile another node finds that nothing refers to the location, and removes it. Neither
 * commit conflicts with the other.
 *
 * Protocol, with numbers that the logs have as transactions of REMOVAL_APP_ID:
 * 1. A removal begins with a commit of the next number to the log of samples. Then it reads all logs, decides what is
 *    unused, and commits the removal, with its number, to the version of the table that it has read. If the table has
 *    the number already, it has been stopped and begins again.
 * 2. A flush reads all logs first. If a removal has begun that the log of stacks or locations does not have, the flush
 *    commits its number there, without files, which stops it. Then the flush looks up what the tables have, and its
 *    commit of samples goes to a version of their log at which no other removal has begun; otherwise it starts again.
 *
 * Why no reference is lost: let a flush commit samples, and a removal with number k remove a row that they refer to. If
 * k is behind the commit in the log of samples, the removal has read the samples and their stacks, so the row is not
 * unused. Else the flush has seen k before it looked the row up, and the table had k by then: either from the removal,
 * so that the flush did not find the row and wrote it, or from a flush, and then the removal's commit was refused.
 *
 * No step depends on a clock or on the end of another node: a removal that was interrupted is stopped by the next
 * flush.
 *
 * Locks: the caller holds writer_lock. Without other nodes the lock suffices, and these calls do nothing.
 */
#include "profile-store/core/profile_store_internal.h"

/**
 * Begin a removal; s->tables is then read.
 * @param change_ret  its number and base are set in it; commit it as it is, without a retry.
 * @return ST_BUSY when other nodes kept committing, or stopped it: retry.
 */
enum status removal_begin(struct profile_store *s, struct table_change *change_ret, struct error *err) MUST_CHECK;

/** For a flush, before it looks up what the tables have: stop the removals that have begun. */
enum status removal_stop_others(struct profile_store *s, struct error *err) MUST_CHECK;

#endif
