/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PPROF_SYMBOLS_H
#define CAIRN_PROFILE_FORMATS_PPROF_SYMBOLS_H

/**
 * @file
 * A pprof file with symbols put in and everything else as it was, byte for byte, also fields of later versions.
 *
 * Threads: no shared state.
 * Source: google/pprof proto/profile.proto.
 */
#include "common/buf.h"
#include "profile-formats/profile.h"

/**
 * @param data,n   the file as pprof_decode() took it, unpacked.
 * @param p        what pprof_decode() made of it: its locations and mappings are the file's, in the file's order.
 * @param changed  by location: its lines are new and take the place of those in the file. Mappings of these say that
 *                 they have functions, files, lines and inlined frames where they now do.
 * @param ret      the new file is appended, not packed.
 */
enum status pprof_put_symbols(const void *data, size_t n, const struct profile *p, const bool *changed,
                              struct buf *ret, struct error *err) MUST_CHECK;

#endif
