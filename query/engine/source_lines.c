/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/source_lines.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

/* ---- text ---- */

/* The offset of the line after the one at `at`. */
static size_t find_next_line(const struct buf *text, size_t at)
{
        const uint8_t *end = memchr(text->data + at, '\n', text->size - at);

        return end ? (size_t)(end - text->data) + 1 : text->size;
}

/* Lines are requested in any order. */
static enum status find_line_starts(struct source_lines *s, struct error *err)
{
        size_t count = 0;
        enum status st;

        for (size_t at = 0; at < s->text.size; at = find_next_line(&s->text, at))
                count++;
        st = memory_reserve(&s->memory, count * sizeof *s->starts, err);
        if (st)
                return st;
        s->starts = calloc(count + 1, sizeof *s->starts);
        if (!s->starts)
                return error_no_memory(err);
        for (size_t at = 0; at < s->text.size; at = find_next_line(&s->text, at))
                s->starts[s->count++] = (uint32_t)at;
        return ST_OK;
}

void source_lines_load(struct source_lines *s, const struct query_sources *sources, const struct build_id *id,
                       const char *path, bool may_fetch)
{
        *s = (struct source_lines){ .state = ST_NOT_FOUND, .memory.use = MEMORY_QUERIES };
        buf_init_budget(&s->text, LIMIT_SHOWN_SOURCE_BYTES, MEMORY_QUERIES);
        if (!*path)
                error_set(&s->why, ST_NOT_FOUND, "the symbols of this code name no source file: debuginfo is missing");
        else if (!id->size)
                error_set(&s->why, ST_NOT_FOUND, "the object has no build-id to find its sources by");
        else if (!sources)
                error_set(&s->why, ST_NOT_FOUND, "only a service or a data directory has sources");
        else
                s->state = sources->read(sources->context, id, path, may_fetch, &s->text, &s->why);
        if (s->state == ST_TOO_BIG)
                error_set(&s->why, ST_TOO_BIG, "the file is larger than %d MiB", (int)(LIMIT_SHOWN_SOURCE_BYTES >> 20));
        if (!s->state)
                s->state = find_line_starts(s, &s->why);
}

void source_lines_deinit(struct source_lines *s)
{
        buf_deinit(&s->text);
        memory_release(&s->memory);
        free(s->starts);
        s->starts = NULL;
        s->count = 0;
}

const char *source_lines_get(const struct source_lines *s, int64_t line, size_t *n_ret)
{
        const char *text;
        size_t end;

        if (s->state || line <= 0 || (uint64_t)line > s->count)
                return NULL;
        text = (const char *)s->text.data + s->starts[line - 1];
        end = (uint64_t)line < s->count ? s->starts[line] : s->text.size;
        *n_ret = end - s->starts[line - 1];
        if (*n_ret && text[*n_ret - 1] == '\n')
                --*n_ret;
        if (*n_ret && text[*n_ret - 1] == '\r')
                --*n_ret;
        if (*n_ret > LIMIT_SHOWN_LINE_BYTES)
                *n_ret = LIMIT_SHOWN_LINE_BYTES;
        return text;
}

/* ---- upload commands ---- */

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
