/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_JSON_IN_H
#define CAIRN_SERVER_JSON_IN_H

/**
 * @file
 * JSON request bodies: strict, with a bound on depth. json-c stays behind this
 * page, since its names and those of common/json_out.h are the same.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct json_object;

/** The body's one value, which must be an object. Owned: json_in_free(). ST_BAD_DATA with the byte. */
enum status json_in_parse(const uint8_t *data, size_t n, struct json_object **ret, struct error *err) MUST_CHECK;
void json_in_free(struct json_object *o);

/** The text of a member, or NULL when it is absent or no text. Borrowed from o. */
const char *json_in_str(struct json_object *o, const char *key);
/** A member that is a whole number not below 0, or text of one; absent_value when absent; UINT64_MAX for anything else. */
uint64_t json_in_uint(struct json_object *o, const char *key, uint64_t absent_value);
/** A member that is true or false into ret; absent leaves it. False when it is anything else. */
bool json_in_bool(struct json_object *o, const char *key, bool *ret);
/** A member that is an object, or NULL. Borrowed. */
struct json_object *json_in_object(struct json_object *o, const char *key);
/** A member that is an array, or NULL. Borrowed. */
struct json_object *json_in_array(struct json_object *o, const char *key);
size_t json_in_array_size(struct json_object *array);
/** Item i when it is an object, or NULL. Borrowed. */
struct json_object *json_in_array_object(struct json_object *array, size_t i);
/** Item i when it is text, or NULL. Borrowed. */
const char *json_in_array_str(struct json_object *array, size_t i);

#endif
