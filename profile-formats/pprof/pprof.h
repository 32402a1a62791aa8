/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PPROF_PPROF_H
#define CAIRN_PROFILE_FORMATS_PPROF_PPROF_H

/**
 * @file
 * pprof files (perftools.profiles.Profile, plain or gzip) to and from struct profile.
 *
 * Conversion of a file:
 * - Each non-zero value of a sample is one sample of that value's type.
 * - Addresses are process addresses. The mapping gives file offsets (normalize_sender_address()); the object's segments
 *   give object addresses later. Senders have adjusted return addresses.
 * - Names of frames are kept. Frames of drop_frames are removed with those that they call (frame_expressions.h).
 * - Numeric labels and the default sample type become hidden labels (hidden_label.h).
 * - Types are those that comments of pprof_encode() state for their names, else composed of the sample type and the
 *   period type.
 *
 * Threads: no shared state.
 * Source: google/pprof proto/profile.proto.
 */
#include "common/memory/buf.h"
#include "profile-formats/profile.h"

/**
 * @param name  the name part of the type ids ("process_cpu", "memory"), NULL: stated by comments, or derived from the
 *              sample types.
 * @param ret   initialised here; profile_deinit() it on success only.
 * @return ST_BAD_DATA: damaged gzip, malformed, an unknown string, function or location, an id used twice, a sample
 *         with another number of values than there are sample types; ST_TOO_BIG: a limit, LIMIT_HTTP_BODY_BYTES for
 *         the unpacked size.
 */
enum status pprof_decode(const void *data, size_t n, const char *name, struct profile *ret,
                         struct error *err) MUST_CHECK;

/** State shared by the files of a request. */
struct pprof_files {
        size_t unpacked_left;      /* bytes that gzip'd files may still unpack to; ST_TOO_BIG past it */
        bool has_object_addresses; /* locations are in the address space of their object, not of a process */
};

/**
 * As pprof_decode(), for one of several files of a request.
 * @param files  unpacked_left is reduced by this file's bytes.
 */
enum status pprof_decode_one_of(const void *data, size_t n, const char *name, struct pprof_files *files,
                                struct profile *ret, struct error *err) MUST_CHECK;

/** As pprof_decode() with derived names, with memory of the queries' share of the budget. */
enum status pprof_decode_for_query(const void *data, size_t n, struct profile *ret, struct error *err) MUST_CHECK;

/**
 * Append a gzip'd pprof file with all frames that the profile has. Mappings start at 0 and addresses are object
 * addresses; locations with file offsets get a mapping of the whole file. Sample types have names of their own
 * (pprof_type_names.h).
 */
enum status pprof_encode(const struct profile *p, struct buf *ret, struct error *err) MUST_CHECK;
/** The same without gzip. */
enum status pprof_encode_plain(const struct profile *p, struct buf *ret, struct error *err) MUST_CHECK;

#endif
