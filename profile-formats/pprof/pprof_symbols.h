/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PPROF_PPROF_SYMBOLS_H
#define CAIRN_PROFILE_FORMATS_PPROF_PPROF_SYMBOLS_H

/**
 * @file
 * Adds symbols to a pprof file. All other fields are copied byte for byte, unknown ones included.
 *
 * Threads: no shared state.
 * Source: google/pprof proto/profile.proto.
 */
#include "common/memory/buf.h"
#include "profile-formats/profile.h"

/**
 * @param data,n   the uncompressed file, which pprof_decode() has accepted.
 * @param p        the result of pprof_decode(): locations and mappings in the order of the file.
 * @param changed  by location: its lines replace those in the file. The has_* flags of their mappings are set
 *                 accordingly.
 * @param ret      the new file is appended, uncompressed.
 */
enum status pprof_put_symbols(const void *data, size_t n, const struct profile *p, const bool *changed, struct buf *ret,
                              struct error *err) MUST_CHECK;

#endif
