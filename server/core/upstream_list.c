/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/upstream_list.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"

void upstream_list_deinit(struct upstream_list *l)
{
        for (size_t i = 0; i < l->count; i++) {
                free(l->urls[i]);
                free(l->headers[i]);
        }
        free(l->urls);
        free(l->headers);
        *l = (struct upstream_list){ 0 };
}

static bool grow_upstream_list(struct upstream_list *l)
{
        size_t capacity = l->capacity ? 2 * l->capacity : 8;
        char **urls, **headers;

        if (l->count < l->capacity)
                return true;
        urls = reallocarray(l->urls, capacity, sizeof *urls);
        l->urls = urls ? urls : l->urls;
        headers = urls ? reallocarray(l->headers, capacity, sizeof *headers) : NULL;
        l->headers = headers ? headers : l->headers;
        l->capacity = headers ? capacity : l->capacity;
        return headers != NULL;
}

static bool is_url(const char *text)
{
        return (strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0) &&
               strlen(text) < LIMIT_UPSTREAM_URL_BYTES;
}

/* @param header taken; may be NULL. */
static enum status add_upstream(struct upstream_list *l, const char *url, char *header, struct error *err)
{
        char *copy = grow_upstream_list(l) ? strdup(url) : NULL;

        for (size_t i = 0; copy && i < l->count; i++) {
                if (strcmp(l->urls[i], url) == 0) {
                        free(copy);
                        free(header);
                        return ST_OK;
                }
        }
        if (!copy) {
                free(header);
                return error_no_memory(err);
        }
        l->urls[l->count] = copy;
        l->headers[l->count++] = header;
        return ST_OK;
}

enum status upstream_list_add(struct upstream_list *l, const char *url, struct error *err)
{
        if (!is_url(url))
                return error_set(err, ST_USAGE, "upstream '%.150s' is not an http:// or https:// URL", url);
        return add_upstream(l, url, NULL, err);
}

enum status upstream_list_add_urls(struct upstream_list *l, char *words, struct error *err)
{
        char *save = NULL;
        enum status st = ST_OK;

        for (char *url = strtok_r(words, " \t\n", &save); url && !st; url = strtok_r(NULL, " \t\n", &save))
                if (strncmp(url, "ima:", 4) != 0)
                        st = upstream_list_add(l, url, err);
        return st;
}

/* ---- the file ---- */

/* RFC 9110, 5.1 and 5.5: a name, a colon, and visible characters. */
static bool is_header(const char *text)
{
        size_t name = 0, n = strlen(text);

        while (isalnum((unsigned char)text[name]) || text[name] == '-' || text[name] == '_')
                name++;
        if (!name || text[name] != ':' || name + 1 == n || n >= LIMIT_UPSTREAM_HEADER_BYTES)
                return false;
        for (size_t i = 0; i < n; i++)
                if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
                        return false;
        return true;
}

/* Convert "token=T" or "header=N:V" to a header line; NULL for other text, or when out of memory. */
static char *read_setting(const char *text)
{
        char *header = NULL;

        if (strncmp(text, "token=", 6) == 0) {
                if (asprintf(&header, "Authorization: Bearer %s", text + 6) < 0)
                        return NULL;
        } else if (strncmp(text, "header=", 7) == 0) {
                header = strdup(text + 7);
        }
        if (header && !(is_header(header) && header[strlen(header) - 1] != ' ')) {
                free(header);
                return NULL;
        }
        return header;
}

/* A header extends to the end of the line, since values may contain spaces. */
static char *next_setting(char **rest)
{
        char *text = *rest + strspn(*rest, " \t"), *end;

        if (!*text)
                return NULL;
        end = strncmp(text, "header=", 7) == 0 ? text + strlen(text) : text + strcspn(text, " \t");
        *rest = end + (*end != '\0');
        *end = '\0';
        return text;
}

static void cut_comment(char *line)
{
        size_t n;

        for (char *p = line; (p = strchr(p, '#')); p++) {
                if (p == line || p[-1] == ' ' || p[-1] == '\t') {
                        *p = '\0';
                        break;
                }
        }
        n = strlen(line);
        while (n && strchr(" \t\r", line[n - 1]))
                line[--n] = '\0';
}

static enum status read_upstream_line(struct upstream_list *l, char *line, const char *path, unsigned number,
                                      struct error *err)
{
        char *url, *setting, *header = NULL;

        cut_comment(line);
        url = next_setting(&line);
        if (!url)
                return ST_OK;
        if (!is_url(url))
                return error_set(err, ST_BAD_DATA,
                                 "'%s' line %u: the line does not start with an http:// or https:// URL", path, number);
        setting = next_setting(&line);
        if (setting)
                header = read_setting(setting);
        if ((setting && !header) || next_setting(&line)) {
                free(header);
                return error_set(err, ST_BAD_DATA,
                                 "'%s' line %u: write URL, or URL token=TOKEN, or URL header=NAME:VALUE", path, number);
        }
        return add_upstream(l, url, header, err);
}

enum status upstream_list_read(struct upstream_list *l, const char *path, struct error *err)
{
        _cleanup_buf_ struct buf text;
        unsigned number = 0;
        enum status st;

        buf_init(&text, LIMIT_UPSTREAM_FILE_BYTES);
        st = file_read_lines(path, &text, err);
        l->is_file_empty = !st && !text.size;
        if (!st)
                buf_append(&text, "", 1);
        if (!st)
                st = buf_status(&text, err, path);
        for (char *line = (char *)text.data, *end; !st && line; line = end) {
                end = strchr(line, '\n');
                if (end)
                        *end++ = '\0';
                st = read_upstream_line(l, line, path, ++number, err);
        }
        return st;
}
