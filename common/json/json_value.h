/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_JSON_JSON_VALUE_H
#define CAIRN_COMMON_JSON_JSON_VALUE_H

/**
 * @file
 * Reads members of small JSON messages without building a tree: a value is a span of the text, which is rescanned for
 * each member. A tree would take up to 250 times the memory of its text.
 *
 *     st = json_value_parse(data, n, &root, err);
 *     if (json_value_member(&root, "files", &files) && json_value_open_array(&files, &items))
 *             while (json_value_next(&items, &file))
 *                     json_value_text(&file, "build_id", hex, sizeof hex);
 *
 * Values are borrowed from the text. Nesting is bounded (LIMIT_JSON_DEPTH); nothing recurses. Of several members with
 * the same name the last one counts.
 * Source: RFC 8259.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json/json_scan.h"

/** The text of one well-formed value. Borrowed. */
struct json_value {
        const uint8_t *data;
        size_t size;
};

/** Check the whole text: one object, UTF-8. ST_BAD_DATA with the byte offset. */
enum status json_value_parse(const void *data, size_t n, struct json_value *ret, struct error *err) MUST_CHECK;

/** ST_BAD_DATA, naming the member, if the object has a member not in names (terminated by NULL). */
enum status json_value_check_members(const struct json_value *object, const char *const *names,
                                     struct error *err) MUST_CHECK;

/** Get a member of an object. False when the value is not an object or has no such member. */
bool json_value_member(const struct json_value *object, const char *key, struct json_value *ret);

/** Copy the text of a string. False when the value is not a string, contains NUL or needs more than size bytes. */
bool json_value_copy(const struct json_value *value, char *to, size_t size);

/** Copy the text of a member. Returns to, or NULL if it is absent or json_value_copy() fails. */
const char *json_value_text(const struct json_value *object, const char *key, char *to, size_t size);

/**
 * A member that is a non-negative integer, possibly written as a string; absent_value if absent, UINT64_MAX for any
 * other value.
 */
uint64_t json_value_uint(const struct json_value *object, const char *key, uint64_t absent_value);

/** Read a Boolean member into ret; an absent member leaves ret unchanged. False for any other value. */
bool json_value_bool(const struct json_value *object, const char *key, bool *ret);

/** Start iterating over an array. False when the value is not an array. */
bool json_value_open_array(const struct json_value *array, struct json_scan *items_ret);

/** The next item; false at the end. */
bool json_value_next(struct json_scan *items, struct json_value *ret);

/** The number of items of an array, 0 for any other value; counting stops past max. */
size_t json_value_count(const struct json_value *array, size_t max);

#endif
