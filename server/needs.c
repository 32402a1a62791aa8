/* SPDX-License-Identifier: Apache-2.0 */
#include "server/needs.h"

#include <string.h>

#include "common/file.h"
#include "common/limits.h"

void needs_deinit(struct needs *n)
{
        free(n->path);
        free(n->items);
        *n = (struct needs){ 0 };
}

static enum status put(struct needs *n, const struct need *need, struct error *err)
{
        struct need *items = reallocarray(n->items, n->count + 1, sizeof *items);

        if (!items)
                return error_no_memory(err);
        n->items = items;
        items[n->count++] = *need;
        return ST_OK;
}

static bool parse_line(const char *line, size_t n, struct need *ret)
{
        const char *space = memchr(line, ' ', n);

        return space && build_id_from_hex(&ret->object, line, (size_t)(space - line)) &&
               build_id_from_hex(&ret->supplement, space + 1, n - (size_t)(space - line) - 1);
}

enum status needs_load(struct needs *n, const char *path, struct error *err)
{
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, MiB(64));
        *n = (struct needs){ .path = strdup(path) };
        if (!n->path)
                return error_no_memory(err);
        st = file_read(path, &text, err);
        if (st == ST_NOT_FOUND)
                return ST_OK;
        for (size_t at = 0; !st && at < text.size;) {
                const char *line = (const char *)text.data + at;
                const char *end = memchr(line, '\n', text.size - at);
                size_t size = end ? (size_t)(end - line) : text.size - at;
                struct need need;

                if (parse_line(line, size, &need))
                        st = put(n, &need, err);
                at += size + 1;
        }
        return st;
}

enum status needs_save(struct needs *n, struct error *err)
{
        char object[BUILD_ID_HEX_MAX], supplement[BUILD_ID_HEX_MAX];
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, MiB(64));
        for (size_t i = 0; i < n->count; i++)
                buf_printf(&text, "%s %s\n", build_id_hex(&n->items[i].object, object),
                           build_id_hex(&n->items[i].supplement, supplement));
        st = buf_status(&text, err, n->path);
        return st ? st : file_write_durable(n->path, text.data, text.size, err);
}

enum status needs_add(struct needs *n, const struct build_id *object, const struct build_id *supplement, struct error *err)
{
        const struct need need = { *object, *supplement };
        enum status st;

        for (size_t i = 0; i < n->count; i++)
                if (build_id_equal(&n->items[i].object, object) && build_id_equal(&n->items[i].supplement, supplement))
                        return ST_OK;
        st = put(n, &need, err);
        return st ? st : needs_save(n, err);
}

bool needs_take(struct needs *n, const struct build_id *supplement, struct build_id *object_ret)
{
        for (size_t i = 0; i < n->count; i++) {
                if (!build_id_equal(&n->items[i].supplement, supplement))
                        continue;
                *object_ret = n->items[i].object;
                n->items[i] = n->items[--n->count];
                return true;
        }
        return false;
}
