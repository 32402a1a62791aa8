/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_JSON_JSON_NODE_H
#define CAIRN_COMMON_JSON_JSON_NODE_H

/**
 * @file
 * Values of a JSON document as objects with texts that stay: json_value (json_value.h) with an arena. For programs that
 * print a response.
 *
 *     root = json_node_parse(body.data, body.size, &arena);
 *     for (struct json_node_list l = json_node_list(root, "files"); (file = json_node_next(&l));)
 *             puts(json_node_text(file, "name"));
 *
 * A NULL node stands for an absent value, and every function takes it. A member of another type counts as absent.
 *
 * Memory: 32 bytes for each value that is read, each time, and copies of the texts; none for the rest. At most 64 times
 * the size of the text: more values count as absent.
 *
 * Threads: one at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json/json_value.h"
#include "common/memory/arena.h"

struct json_node;

/**
 * The root object; NULL: the text is no JSON object.
 * @param text   borrowed as long as the nodes.
 * @param arena  initialized here, also on failure; holds the nodes.
 */
const struct json_node *json_node_parse(const void *text, size_t n, struct arena *arena);

/** A member of an object; NULL: absent, or null. */
const struct json_node *json_node_member(const struct json_node *object, const char *key);

bool json_node_is_array(const struct json_node *node);

/** The text of a string, "" for anything else; valid until the arena ends. */
const char *json_node_string(const struct json_node *node);

/** Members that are a string (else ""), an integer from 0 or below 0 (else 0), and true (else false). */
const char *json_node_text(const struct json_node *object, const char *key);
uint64_t json_node_uint(const struct json_node *object, const char *key);
int64_t json_node_int(const struct json_node *object, const char *key);
/** A member that is a number; NAN: absent, null, or another type. */
double json_node_double(const struct json_node *object, const char *key);
bool json_node_flag(const struct json_node *object, const char *key);

/** The integer at an index of an array; 0: absent, or no integer. */
int64_t json_node_item_int(const struct json_node *array, unsigned index);

struct json_node_list {
        struct json_scan scan;
        struct arena *arena; /* NULL: an empty list */
};

/** The items of a member; none if it is no array. */
struct json_node_list json_node_list(const struct json_node *object, const char *key);
/** The items of an array itself, such as one inside of an array. */
struct json_node_list json_node_items(const struct json_node *array);
/** NULL at the end. */
const struct json_node *json_node_next(struct json_node_list *list);

#endif
