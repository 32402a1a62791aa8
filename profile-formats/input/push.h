/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_INPUT_PUSH_H
#define CAIRN_PROFILE_FORMATS_INPUT_PUSH_H

/**
 * @file
 * Ingest messages with pprof files and labels: Pyroscope's push.v1.PushRequest, in protobuf or ProtoJSON, and Parca's
 * parca.profilestore.v1alpha1.WriteRawRequest, in protobuf.
 *
 * The label __name__ is the first part of the type ids; other labels that begin with "__" are left out. All files of a
 * request become one profile. A series has up to LIMIT_LABELS_PER_SAMPLE labels, and the gzip'd files of a request
 * unpack to LIMIT_HTTP_BODY_BYTES together.
 *
 * Threads: no shared state.
 * Source: grafana/pyroscope api/push/v1/push.proto; parca-dev/parca parca/profilestore/v1alpha1/profilestore.proto.
 */
#include "common/threads/deadline.h"
#include "profile-formats/profile.h"

/**
 * @param is_json   ProtoJSON, else protobuf.
 * @param deadline  NULL: none; checked before each file and each label of it.
 * @param ret       initialised here; profile_deinit() it on success only.
 * @return ST_BAD_DATA: malformed, or one of the files is; ST_TOO_BIG: a limit; ST_TIMEOUT; ST_NO_MEMORY; ST_BUSY.
 */
enum status push_decode(const void *data, size_t n, bool is_json, const struct deadline *deadline, struct profile *ret,
                        struct error *err) MUST_CHECK;

/** As push_decode(), for a WriteRawRequest. Its member `normalized` says that addresses are object addresses. */
enum status push_decode_write_raw(const void *data, size_t n, const struct deadline *deadline, struct profile *ret,
                                  struct error *err) MUST_CHECK;

#endif
