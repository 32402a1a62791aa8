/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PUSH_H
#define CAIRN_PROFILE_FORMATS_PUSH_H

/**
 * @file
 * push.v1.PushRequest, Pyroscope's ingest message: pprof files with labels, in protobuf or ProtoJSON. And Parca's,
 * which differs little: parca.profilestore.v1alpha1.WriteRawRequest.
 *
 * The label __name__ is the first part of the type ids; other labels that begin with "__" are left out. All files of a
 * request become one profile. A series has up to LIMIT_LABELS_PER_SAMPLE labels, and the gzip'd files of a request
 * unpack to LIMIT_HTTP_BODY_BYTES together.
 *
 * Threads: no shared state.
 * Source: grafana/pyroscope api/push/v1/push.proto; parca-dev/parca parca/profilestore/v1alpha1/profilestore.proto.
 */
#include "common/deadline.h"
#include "profile-formats/profile.h"

/**
 * @param is_json   ProtoJSON, else protobuf.
 * @param deadline  NULL: none; checked before each file and each label of it.
 * @param ret       initialised here; profile_deinit() it on success only.
 * @return ST_BAD_DATA: malformed, or one of the files is; ST_TOO_BIG: a limit; ST_TIMEOUT; ST_NO_MEMORY; ST_BUSY.
 */
enum status push_decode(const void *data, size_t n, bool is_json, const struct deadline *deadline, struct profile *ret,
                        struct error *err) MUST_CHECK;

/** The same for a WriteRawRequest in protobuf. `normalized` says that addresses are those of objects already. */
enum status push_decode_write_raw(const void *data, size_t n, const struct deadline *deadline, struct profile *ret,
                                  struct error *err) MUST_CHECK;

#endif
