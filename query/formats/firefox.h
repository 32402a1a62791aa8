/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_FORMATS_FIREFOX_H
#define CAIRN_QUERY_FORMATS_FIREFOX_H

/**
 * @file
 * A tree as a profile of the Firefox Profiler. Private to query/.
 *
 * Source: the Firefox Profiler's processed profile format, version 60 (docs-developer/CHANGELOG-formats.md and
 * src/types/profile.ts of its repository); readers upgrade older versions.
 */
#include "query/formats/flame.h"

/**
 * One thread whose samples are the stacks of the tree, weighted by their values: milliseconds if the unit is
 * one of time, else bytes or counts. A sample begins where the previous one ends, so the timeline shows shares, not
 * points in time. Beyond max_nodes nodes the smallest are merged into one frame "(other)" per caller.
 */
enum status flame_put_firefox(const struct flame *f, struct buf *ret, struct error *err) MUST_CHECK;

#endif
