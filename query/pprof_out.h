/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_PPROF_OUT_H
#define CAIRN_QUERY_PPROF_OUT_H

#include "common/buf.h"
#include "query/merged_profile.h"

/** One selection as a gzip'd pprof file with its symbols. Private to query/. */
enum status merged_profile_put_pprof(const struct merged_profile *m, struct buf *ret, struct error *err) MUST_CHECK;

#endif
