/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_FIREFOX_H
#define CAIRN_QUERY_FIREFOX_H

/**
 * @file
 * A tree as a profile of the Firefox Profiler. Private to query/.
 *
 * Source: the Firefox Profiler's processed profile format, version 60 (docs-developer/CHANGELOG-formats.md and
 * src/types/profile.ts of its repository); readers upgrade older versions.
 */
#include "query/flame.h"

/**
 * One thread whose samples are the stacks of the tree, weighed by their values: milliseconds where the unit is
 * nanoseconds, else bytes or counts. A sample begins where the one before ends, so the time line shows shares, not
 * when. Of more than max_nodes nodes the smallest are one frame "(other)" below their caller.
 */
enum status flame_put_firefox(const struct flame *f, struct buf *ret, struct error *err) MUST_CHECK;

#endif
