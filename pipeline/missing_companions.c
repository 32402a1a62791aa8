/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/missing_companions.h"

#include <assert.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"

void missing_companions_deinit(struct missing_companions *m)
{
        free(m->path);
        free(m->items);
        *m = (struct missing_companions){ 0 };
}

static enum status append_missing_companion(struct missing_companions *m,
                                            const struct missing_companion *missing_companion, struct error *err)
{
        if (!array_reserve(&m->items, &m->capacity, m->count))
                return error_no_memory(err);
        m->items[m->count++] = *missing_companion;
        return ST_OK;
}

static bool parse_companion_line(const char *line, size_t n, struct missing_companion *ret)
{
        const char *space = memchr(line, ' ', n);

        return space && build_id_from_hex(&ret->object, line, (size_t)(space - line)) &&
               build_id_from_hex(&ret->companion, space + 1, n - (size_t)(space - line) - 1);
}

enum status missing_companions_load(struct missing_companions *m, const char *path, struct error *err)
{
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, MiB(64));
        *m = (struct missing_companions){ .path = strdup(path) };
        if (!m->path)
                return error_no_memory(err);
        st = file_read(path, &text, err);
        if (st == ST_NOT_FOUND)
                return ST_OK;
        for (size_t at = 0; !st && at < text.size;) {
                const char *line = (const char *)text.data + at;
                const char *end = memchr(line, '\n', text.size - at);
                size_t size = end ? (size_t)(end - line) : text.size - at;
                struct missing_companion missing_companion = { .has_arrived = false };

                if (parse_companion_line(line, size, &missing_companion))
                        st = append_missing_companion(m, &missing_companion, err);
                at += size + 1;
        }
        return st;
}

static enum status save_missing_companions(struct missing_companions *m, struct error *err)
{
        char object[BUILD_ID_HEX_MAX], companion[BUILD_ID_HEX_MAX];
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, MiB(64));
        for (size_t i = 0; i < m->count; i++)
                buf_printf(&text, "%s %s\n", build_id_hex(&m->items[i].object, object),
                           build_id_hex(&m->items[i].companion, companion));
        st = buf_status(&text, err, m->path);
        return st ? st : file_write_durable(m->path, text.data, text.size, err);
}

/* Remove all entries of an object. Returns whether they were exactly these, in this order. */
static bool remove_companions_of(struct missing_companions *m, const struct build_id *object,
                                 const struct build_id *companions, size_t count)
{
        size_t kept = 0, seen = 0;
        assert(object->size > 0);
        bool same = true;

        for (size_t i = 0; i < m->count; i++) {
                if (!build_id_equal(&m->items[i].object, object)) {
                        m->items[kept++] = m->items[i];
                        continue;
                }
                same = same && seen < count && build_id_equal(&m->items[i].companion, &companions[seen]);
                seen++;
        }
        m->count = kept;
        return same && seen == count;
}

enum status missing_companions_set(struct missing_companions *m, const struct build_id *object,
                                   const struct build_id *companions, size_t count, struct error *err)
{
        bool same = remove_companions_of(m, object, companions, count);
        enum status st = ST_OK;

        for (size_t i = 0; i < count && !st; i++)
                st = append_missing_companion(m, &(struct missing_companion){ *object, companions[i], false }, err);
        return st || same ? st : save_missing_companions(m, err);
}

static bool have_all_arrived(const struct missing_companions *m, const struct build_id *object)
{
        size_t i = 0;

        while (i < m->count && (m->items[i].has_arrived || !build_id_equal(&m->items[i].object, object)))
                i++;
        return i == m->count;
}

bool missing_companions_mark_arrived(struct missing_companions *m, const struct build_id *companion, size_t *at,
                                     struct build_id *object_ret, bool *all_ret)
{
        for (; *at < m->count; (*at)++) {
                struct missing_companion *missing_companion = &m->items[*at];

                if (!build_id_equal(&missing_companion->companion, companion))
                        continue;
                missing_companion->has_arrived = true;
                *object_ret = missing_companion->object;
                *all_ret = have_all_arrived(m, &missing_companion->object);
                (*at)++;
                return true;
        }
        return false;
}
