/* SPDX-License-Identifier: Apache-2.0 */
#include "server/needs.h"

#include <string.h>

#include "common/array.h"
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
        if (!array_reserve(&n->items, &n->capacity, n->count))
                return error_no_memory(err);
        n->items[n->count++] = *need;
        return ST_OK;
}

static bool parse_line(const char *line, size_t n, struct need *ret)
{
        const char *space = memchr(line, ' ', n);

        return space && build_id_from_hex(&ret->object, line, (size_t)(space - line)) &&
               build_id_from_hex(&ret->companion, space + 1, n - (size_t)(space - line) - 1);
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
                struct need need = { .has_come = false };

                if (parse_line(line, size, &need))
                        st = put(n, &need, err);
                at += size + 1;
        }
        return st;
}

static enum status save(struct needs *n, struct error *err)
{
        char object[BUILD_ID_HEX_MAX], companion[BUILD_ID_HEX_MAX];
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, MiB(64));
        for (size_t i = 0; i < n->count; i++)
                buf_printf(&text, "%s %s\n", build_id_hex(&n->items[i].object, object),
                           build_id_hex(&n->items[i].companion, companion));
        st = buf_status(&text, err, n->path);
        return st ? st : file_write_durable(n->path, text.data, text.size, err);
}

/* Take all of one object out; they were these, in this order. */
static bool take_out(struct needs *n, const struct build_id *object, const struct build_id *companions, size_t count)
{
        size_t kept = 0, seen = 0;
        bool same = true;

        for (size_t i = 0; i < n->count; i++) {
                if (!build_id_equal(&n->items[i].object, object)) {
                        n->items[kept++] = n->items[i];
                        continue;
                }
                same = same && seen < count && build_id_equal(&n->items[i].companion, &companions[seen]);
                seen++;
        }
        n->count = kept;
        return same && seen == count;
}

enum status needs_set(struct needs *n, const struct build_id *object, const struct build_id *companions, size_t count,
                      struct error *err)
{
        bool same = take_out(n, object, companions, count);
        enum status st = ST_OK;

        for (size_t i = 0; i < count && !st; i++)
                st = put(n, &(struct need){ *object, companions[i], false }, err);
        return st || same ? st : save(n, err);
}

static bool all_came(const struct needs *n, const struct build_id *object)
{
        size_t i = 0;

        while (i < n->count && (n->items[i].has_come || !build_id_equal(&n->items[i].object, object)))
                i++;
        return i == n->count;
}

bool needs_came(struct needs *n, const struct build_id *companion, size_t *at, struct build_id *object_ret, bool *all_ret)
{
        for (; *at < n->count; (*at)++) {
                struct need *need = &n->items[*at];

                if (!build_id_equal(&need->companion, companion))
                        continue;
                need->has_come = true;
                *object_ret = need->object;
                *all_ret = all_came(n, &need->object);
                (*at)++;
                return true;
        }
        return false;
}
