/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_DEBUGINFO_OBJECT_CODE_H
#define CAIRN_SERVER_API_DEBUGINFO_OBJECT_CODE_H

/** @file Callbacks of struct query_code: code of stored executables, for answers of queries. Private to server/. */
#include "query/query.h"

/**
 * Disassemble code of the object's executable, from the store, a scanned tree or an upstream; else of its debuginfo,
 * if that has the code. @param fetches  a struct query_fetches.
 */
enum status disassemble_object(void *fetches, const struct query_code_request *request, struct disassembly *ret,
                               struct error *err) MUST_CHECK;

/** Addresses by the segments in the index; a file offset without one: UINT64_MAX. @param fetches  a struct
 * query_fetches. */
enum status find_code_addresses(void *fetches, const struct scan_location *const *locations, size_t count,
                                uint64_t *ret, struct error *err) MUST_CHECK;

/** Look up addresses in the index. @param fetches  a struct query_fetches. */
enum status look_up_code_places(void *fetches, const struct build_id *id, const uint64_t *addresses, size_t count,
                                struct arena *texts, struct code_place *ret, struct error *err) MUST_CHECK;

#endif
