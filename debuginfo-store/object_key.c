/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/object_key.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/cleanup.h"
#include "common/text.h"

#define HASH_DIGITS ((size_t)2 * OBJECT_GENERATION_BYTES)

const char *object_format_generation(const struct stored_object *object, char ret[static OBJECT_GENERATION_TEXT])
{
        hex_encode(object->sha256, OBJECT_GENERATION_BYTES, ret);
        if (object->put_id)
                snprintf(ret + HASH_DIGITS, OBJECT_GENERATION_TEXT - HASH_DIGITS, "-%016llx",
                         (unsigned long long)object->put_id);
        return ret;
}

bool object_parse_generation(const char *text, struct stored_object *ret)
{
        uint8_t number[8] = { 0 };
        size_t n = strlen(text);

        if ((n != HASH_DIGITS && n != 2 * HASH_DIGITS + 1) || !hex_decode(text, OBJECT_GENERATION_BYTES, ret->sha256) ||
            (n > HASH_DIGITS && (text[HASH_DIGITS] != '-' || !hex_decode(text + HASH_DIGITS + 1, 8, number))))
                return false;
        ret->put_id = 0;
        for (size_t i = 0; i < sizeof number; i++)
                ret->put_id = ret->put_id << 8 | number[i];
        return n == HASH_DIGITS || ret->put_id;
}

char *object_format_key(const struct stored_object *object)
{
        bool is_table = object->kind == OBJECT_ROW_SYMBOL_TABLE;
        char hex[BUILD_ID_HEX_MAX], generation[OBJECT_GENERATION_TEXT];
        char *ret;

        build_id_hex(&object->build_id, hex);
        if (asprintf(&ret, "%s/%.2s/%s/%s-%s%s", is_table ? "symbols" : "objects", hex, hex + 2,
                     is_table ? OBJECT_ROW_SYMBOL_TABLE_NAME : object_kind_name(object->kind),
                     object_format_generation(object, generation), is_table ? ".v1.zst" : ".zst") < 0)
                return NULL;
        return ret;
}

/* "KIND-GENERATION.zst" */
static bool parse_key_file(const char *file, struct stored_object *o)
{
        const char *end = strchr(file, '.');
        char text[64], *generation;
        size_t n = end ? (size_t)(end - file) : 0, kind;

        if (!end || n >= sizeof text)
                return false;
        memcpy(text, file, n);
        text[n] = '\0';
        kind = strncmp(text, OBJECT_ROW_SYMBOL_TABLE_NAME "-", sizeof OBJECT_ROW_SYMBOL_TABLE_NAME) == 0
                       ? sizeof OBJECT_ROW_SYMBOL_TABLE_NAME - 1
                       : strcspn(text, "-");
        if (text[kind] != '-')
                return false;
        text[kind] = '\0';
        generation = text + kind + 1;
        if (strcmp(text, OBJECT_ROW_SYMBOL_TABLE_NAME) == 0)
                o->kind = OBJECT_ROW_SYMBOL_TABLE;
        else if (!object_kind_parse(text, &o->kind))
                return false;
        return object_parse_generation(generation, o);
}

bool object_parse_key(const char *key, struct stored_object *ret)
{
        const char *prefix = strchr(key, '/'), *file = strrchr(key, '/');
        _cleanup_free_ char *again = NULL;
        char hex[BUILD_ID_HEX_MAX];
        int n;

        *ret = (struct stored_object){ 0 };
        if (!prefix || strcspn(prefix + 1, "/") != 2 || file < prefix + 5)
                return false;
        n = snprintf(hex, sizeof hex, "%.2s%.*s", prefix + 1, (int)(file - prefix) - 4, prefix + 4);
        if (n <= 0 || (size_t)n >= sizeof hex || !build_id_from_hex(&ret->build_id, hex, (size_t)n) ||
            !parse_key_file(file + 1, ret))
                return false;
        again = object_format_key(ret);
        return again && strcmp(again, key) == 0;
}

enum status object_draw_put_id(uint64_t *ret, struct error *err)
{
        do {
                if (getrandom(ret, sizeof *ret, 0) != sizeof *ret)
                        return error_os(err, errno, "cannot get a random number");
        } while (!*ret);
        return ST_OK;
}

bool object_is_same_put(const struct stored_object *a, const struct stored_object *b)
{
        return memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0 && a->put_id == b->put_id;
}
