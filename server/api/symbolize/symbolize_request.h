/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_SYMBOLIZE_SYMBOLIZE_REQUEST_H
#define CAIRN_SERVER_API_SYMBOLIZE_SYMBOLIZE_REQUEST_H

/**
 * @file
 * The body of POST /api/v1/symbolize, from JSON or protobuf (docs/formats/symbolize.md), as two flat arrays: 8 bytes
 * per address, and a build-id per object.
 *
 * The JSON decoder reads the body in one pass and allocates nothing else. The protobuf decoder keeps the decoded
 * message until it returns, in memory reserved from the budget.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

struct symbolize_object {
        struct build_id id;
        bool file_offsets; /* addresses are offsets in the executable file */
        size_t end;        /* index after the last address; the first is at the previous object's end */
};

struct symbolize_request {
        struct symbolize_object *objects;
        size_t object_count, object_capacity;
        uint64_t *addresses; /* of all objects, in order */
        size_t address_count, address_capacity;
};

/**
 * @param ret zeroed; owned: symbolize_request_deinit(), also on failure.
 * @return ST_OK; ST_BAD_DATA with the byte; ST_TOO_BIG past LIMIT_SYMBOLIZE_KEYS or LIMIT_SYMBOLIZE_OBJECTS;
 * ST_NO_MEMORY.
 */
enum status symbolize_request_read_json(const void *data, size_t n, struct symbolize_request *ret,
                                        struct error *err) MUST_CHECK;
enum status symbolize_request_read_proto(const void *data, size_t n, struct symbolize_request *ret,
                                         struct error *err) MUST_CHECK;
void symbolize_request_deinit(struct symbolize_request *r);

#endif
