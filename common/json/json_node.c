/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/json_node.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

#define MEMORY_PER_BYTE 64

struct json_node {
        struct json_value value;
        struct arena *arena;
};

static const struct json_node *make_json_node(struct arena *arena, const struct json_value *value)
{
        struct json_node *node = arena_alloc(arena, sizeof *node);

        if (node)
                *node = (struct json_node){ *value, arena };
        return node;
}

const struct json_node *json_node_parse(const void *text, size_t n, struct arena *arena)
{
        struct json_value root;

        arena_init(arena, KiB(4) + n * MEMORY_PER_BYTE);
        if (json_value_parse(text, n, &root, NULL))
                return NULL;
        while (*root.data != '{') { /* white space */
                root.data++;
                root.size--;
        }
        return make_json_node(arena, &root);
}

static bool is_object_node(const struct json_node *node)
{
        return node && node->value.data[0] == '{';
}

const struct json_node *json_node_member(const struct json_node *object, const char *key)
{
        struct json_value value;

        if (!is_object_node(object) || !json_value_member(&object->value, key, &value) || value.data[0] == 'n')
                return NULL;
        return make_json_node(object->arena, &value);
}

bool json_node_is_array(const struct json_node *node)
{
        return node && node->value.data[0] == '[';
}

const char *json_node_string(const struct json_node *node)
{
        char *text;

        if (!node || node->value.data[0] != '"')
                return "";
        text = arena_alloc(node->arena, node->value.size); /* the quotes leave room for NUL */
        return text && json_value_copy(&node->value, text, node->value.size) ? text : "";
}

const char *json_node_text(const struct json_node *object, const char *key)
{
        return json_node_string(json_node_member(object, key));
}

uint64_t json_node_uint(const struct json_node *object, const char *key)
{
        int64_t n = json_node_int(object, key);

        return n < 0 ? 0 : (uint64_t)n;
}

static int64_t read_node_int(const struct json_node *node)
{
        struct json_scan s;
        int64_t n;

        if (!node)
                return 0;
        json_scan_init(&s, node->value.data, node->value.size);
        return json_scan_int(&s, &n) ? n : 0;
}

int64_t json_node_int(const struct json_node *object, const char *key)
{
        return read_node_int(json_node_member(object, key));
}

int64_t json_node_item_int(const struct json_node *array, unsigned index)
{
        struct json_node_list list = json_node_items(array);
        const struct json_node *item = json_node_next(&list);

        while (item && index--)
                item = json_node_next(&list);
        return read_node_int(item);
}

double json_node_double(const struct json_node *object, const char *key)
{
        const struct json_node *node = json_node_member(object, key);
        char text[64], *end;
        double value;

        if (!node || node->value.size >= sizeof text)
                return NAN;
        memcpy(text, node->value.data, node->value.size);
        text[node->value.size] = '\0';
        value = strtod(text, &end);
        return end == text || *end ? NAN : value;
}

bool json_node_flag(const struct json_node *object, const char *key)
{
        bool flag = false;

        return is_object_node(object) && json_value_bool(&object->value, key, &flag) && flag;
}

struct json_node_list json_node_list(const struct json_node *object, const char *key)
{
        return json_node_items(json_node_member(object, key));
}

struct json_node_list json_node_items(const struct json_node *array)
{
        struct json_node_list list = { 0 };

        if (json_node_is_array(array) && json_value_open_array(&array->value, &list.scan))
                list.arena = array->arena;
        return list;
}

const struct json_node *json_node_next(struct json_node_list *list)
{
        struct json_value value;

        return list->arena && json_value_next(&list->scan, &value) ? make_json_node(list->arena, &value) : NULL;
}
