/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_PROTO_ORACLE_H
#define CAIRN_TESTS_SUPPORT_PROTO_ORACLE_H

/*
 * Second decoders of OTLP and pprof, on the code that protoc-gen-c generates: the oracle for otlp_decode() and
 * pprof_decode(), and what they are measured against.
 *
 * Differences that a comparison allows:
 *  1. A known field with a wrong wire type, or a nested message that is malformed inside entry 0 of a table of
 *     OTLP, which otlp_decode() only compares with zero bytes, is an error for the oracle only.
 *  2. Non-canonical encodings: an index that a later field overrides or that does not fit in 32 bits, or a varint over
 *     64 bits in a packed run, may be an error for the product's decoder only. It has to accept the same message
 *     encoded canonically.
 *  3. Entry 0 of an OTLP table has to be zero byte by byte, unknown fields included.
 *  4. Limits of memory.
 *  5. Of a message field that occurs twice, protobuf-c 1.4 loses numbers when it merges them: the decoder has to agree
 *     on the canonical encoding of the result.
 */
#include "common/memory/arena.h"
#include "profile-formats/profile.h"

/* As otlp_decode() and pprof_decode() of an unpacked file; memory holds the decoded message. */
enum status oracle_decode_otlp(const void *data, size_t n, struct arena *memory, struct profile *ret,
                               struct error *err);
enum status oracle_decode_pprof(const void *data, size_t n, struct arena *memory, struct profile *ret,
                                struct error *err);

/* Decode with both. NULL: they agree; else what differs, owned. */
char *oracle_compare_otlp(const void *data, size_t n);
char *oracle_compare_pprof(const void *data, size_t n);

#endif
