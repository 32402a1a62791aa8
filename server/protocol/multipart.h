/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_PROTOCOL_MULTIPART_H
#define CAIRN_SERVER_PROTOCOL_MULTIPART_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/**
 * Find the part of a multipart/form-data body with a name.
 * @param content_type  Content-Type of the request, with the boundary.
 * @param ret borrowed from body.
 * @return ST_NOT_FOUND; ST_BAD_DATA without a boundary, or for a body that does not end with the boundary.
 * Source: RFC 2046, 5.1; RFC 7578.
 */
enum status multipart_find(const char *content_type, const uint8_t *body, size_t n, const char *name,
                           const uint8_t **ret, size_t *size_ret, struct error *err) MUST_CHECK;

#endif
