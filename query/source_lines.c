/* SPDX-License-Identifier: Apache-2.0 */
#include "query/source_lines.h"

#include <string.h>

#include "common/limits.h"

/* ---- text ---- */

void source_lines_load(struct source_lines *s, const struct query_sources *sources, const struct build_id *id,
                       const char *path, bool may_fetch)
{
        *s = (struct source_lines){ .state = ST_NOT_FOUND, .line = 1 };
        buf_init_budget(&s->text, LIMIT_SHOWN_SOURCE_BYTES, MEMORY_QUERIES);
        if (!*path)
                error_set(&s->why, ST_NOT_FOUND, "the symbols of this code name no source file: debuginfo is missing");
        else if (!id->size)
                error_set(&s->why, ST_NOT_FOUND, "the object has no build-id, by which its sources would be found");
        else if (!sources)
                error_set(&s->why, ST_NOT_FOUND, "only a service has sources");
        else
                s->state = sources->read(sources->context, id, path, may_fetch, &s->text, &s->why);
        if (s->state == ST_TOO_BIG)
                error_set(&s->why, ST_TOO_BIG, "the file has more than %d MiB", (int)(LIMIT_SHOWN_SOURCE_BYTES >> 20));
}

void source_lines_deinit(struct source_lines *s)
{
        buf_deinit(&s->text);
}

const char *source_lines_get(struct source_lines *s, int64_t line, size_t *n_ret)
{
        const char *text, *end;

        if (s->state || line <= 0)
                return NULL;
        if (line < s->line) {
                s->at = 0;
                s->line = 1;
        }
        for (; s->line < line; s->line++) {
                text = (const char *)s->text.data + s->at;
                end = s->at < s->text.size ? memchr(text, '\n', s->text.size - s->at) : NULL;
                if (!end)
                        return NULL;
                s->at += (size_t)(end - text) + 1;
        }
        if (s->at == s->text.size)
                return NULL;
        text = (const char *)s->text.data + s->at;
        end = memchr(text, '\n', s->text.size - s->at);
        *n_ret = end ? (size_t)(end - text) : s->text.size - s->at;
        if (*n_ret && text[*n_ret - 1] == '\r')
                --*n_ret;
        if (*n_ret > LIMIT_SHOWN_LINE_BYTES)
                *n_ret = LIMIT_SHOWN_LINE_BYTES;
        return text;
}

/* ---- what to do without ---- */

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+,:@%=-"

bool is_shell_plain(const char *text)
{
        return *text && *text != '-' && text[strspn(text, PLAIN)] == 0;
}

void upload_command_put(struct buf *ret, enum upload_part part, const char *server, const char *path)
{
        static const char *const options[] = {
                [UPLOAD_SOURCES] = " --sources DIR", [UPLOAD_EXECUTABLE] = " --executables", [UPLOAD_DEBUGINFO] = ""
        };

        buf_append_str(ret, "cairn-upload");
        if (server)
                buf_printf(ret, " --server %s", is_shell_plain(server) ? server : "URL");
        buf_append_str(ret, options[part]);
        buf_printf(ret, " %s", is_shell_plain(path) && *path != '[' ? path : "FILE");
}
