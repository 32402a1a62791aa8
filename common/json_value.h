/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_JSON_VALUE_H
#define CAIRN_COMMON_JSON_VALUE_H

/**
 * @file
 * Small JSON messages read by member, without a tree: a value is a span of the
 * text, which is scanned again for each member. A tree takes up to 250 times
 * the memory of its text; this takes none.
 *
 *     st = json_value_parse(data, n, &root, err);
 *     if (json_value_member(&root, "files", &files) && json_value_open_array(&files, &items))
 *             while (json_value_next(&items, &file))
 *                     json_value_text(&file, "build_id", hex, sizeof hex);
 *
 * Values are borrowed from the text. Nesting is bounded (LIMIT_JSON_DEPTH), and
 * nothing recurses. Of members with one name the last one counts.
 * Source: RFC 8259.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json_scan.h"

/** The text of one well-formed value. Borrowed. */
struct json_value {
        const uint8_t *data;
        size_t size;
};

/** Check the whole text: one object, UTF-8. ST_BAD_DATA with the byte. */
enum status json_value_parse(const void *data, size_t n, struct json_value *ret, struct error *err) MUST_CHECK;

/** A member of an object; false when object is none or has no such member. */
bool json_value_member(const struct json_value *object, const char *key, struct json_value *ret);

/** The text of a string value, copied; false when it is no string, holds NUL or takes more than size - 1 bytes. */
bool json_value_copy(const struct json_value *value, char *to, size_t size);

/** The text of a member, copied: to, or NULL where json_value_copy() says false or the member is absent. */
const char *json_value_text(const struct json_value *object, const char *key, char *to, size_t size);

/** A member that is a whole number not below 0, or text of one; absent_value when absent; UINT64_MAX for anything else. */
uint64_t json_value_uint(const struct json_value *object, const char *key, uint64_t absent_value);

/** A member that is true or false into ret; absent leaves it. False when it is anything else. */
bool json_value_bool(const struct json_value *object, const char *key, bool *ret);

/** Begin to walk an array; false when the value is none. */
bool json_value_open_array(const struct json_value *array, struct json_scan *items_ret);

/** The next item; false at the end. */
bool json_value_next(struct json_scan *items, struct json_value *ret);

/** How many items an array has, 0 when the value is none; counting stops past max. */
size_t json_value_count(const struct json_value *array, size_t max);

#endif
