/* SPDX-License-Identifier: Apache-2.0 */
#include "server/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/limits.h"
#include "common/sha256.h"

#define MAX_TOKENS 1000
#define MIN_TOKEN_BYTES 8

struct token {
        uint8_t digest[SHA256_BYTES];
        unsigned scopes; /* bit of each enum http_scope */
};

struct tokens {
        struct token *items;
        size_t count;
};

static enum status digest_of(const char *text, size_t n, uint8_t ret[static SHA256_BYTES], struct error *err)
{
        _cleanup_sha256_ struct sha256 s = { 0 };
        enum status st = sha256_init(&s, err);

        if (st)
                return st;
        sha256_update(&s, text, n);
        sha256_final(&s, ret);
        return ST_OK;
}

static bool parse_scopes(const char *text, unsigned *ret)
{
        static const char *const names[] = { "read", "ingest", "upload", "admin" };
        static const unsigned bits[] = { 1u << SCOPE_READ, 1u << SCOPE_INGEST, 1u << SCOPE_UPLOAD,
                                         1u << SCOPE_READ | 1u << SCOPE_INGEST | 1u << SCOPE_UPLOAD | 1u << SCOPE_ADMIN };

        *ret = 0;
        while (*text) {
                size_t n = strcspn(text, ","), i;

                for (i = 0; i < 4; i++)
                        if (strlen(names[i]) == n && memcmp(text, names[i], n) == 0)
                                break;
                if (i == 4)
                        return false;
                *ret |= bits[i];
                text += n + (text[n] == ',');
        }
        return *ret != 0;
}

static enum status parse_line(struct tokens *t, char *line, const char *path, unsigned number, struct error *err)
{
        char *save = NULL, *token, *scopes;
        struct token *item = &t->items[t->count];

        line[strcspn(line, "#")] = 0;
        token = strtok_r(line, " \t\r", &save);
        if (!token)
                return ST_OK;
        scopes = strtok_r(NULL, " \t\r", &save);
        if (strlen(token) < MIN_TOKEN_BYTES)
                return error_set(err, ST_BAD_DATA, "'%s' line %u: a token has at least %d characters", path, number,
                                 MIN_TOKEN_BYTES);
        if (!scopes || !parse_scopes(scopes, &item->scopes) || strtok_r(NULL, " \t\r", &save))
                return error_set(err, ST_BAD_DATA, "'%s' line %u: write TOKEN scope[,scope...] with read, ingest, upload, admin",
                                 path, number);
        if (t->count == MAX_TOKENS)
                return error_set(err, ST_TOO_BIG, "'%s' holds more than %d tokens", path, MAX_TOKENS);
        t->count++;
        return digest_of(token, strlen(token), item->digest, err);
}

static void cleanup_tokens(struct tokens **t)
{
        tokens_destroy(*t);
}

enum status tokens_load(const char *path, struct tokens **ret, struct error *err)
{
        _cleanup_(cleanup_tokens) struct tokens *t = calloc(1, sizeof *t);
        _cleanup_buf_ struct buf text;
        unsigned number = 0;
        char *rest;
        enum status st;

        buf_init(&text, MiB(1));
        if (t)
                t->items = calloc(MAX_TOKENS + 1, sizeof *t->items);
        if (!t || !t->items)
                return error_no_memory(err);
        st = file_read(path, &text, err);
        if (st)
                return st;
        if (!buf_cstr(&text))
                return buf_status(&text, err, path);
        rest = (char *)text.data;
        while (rest && !st) {
                char *line = strsep(&rest, "\n");

                st = parse_line(t, line, path, ++number, err);
        }
        if (!st && t->count == 0)
                st = error_set(err, ST_BAD_DATA, "'%s' holds no token", path);
        explicit_bzero(text.data, text.size);
        if (st)
                return st;
        *ret = steal_ptr(t);
        return ST_OK;
}

void tokens_destroy(struct tokens *t)
{
        if (!t)
                return;
        free(t->items);
        free(t);
}

/* Digests hide the length, and every one is compared to its end. */
enum http_access tokens_check(const struct tokens *t, const char *token, enum http_scope scope)
{
        uint8_t digest[SHA256_BYTES];
        unsigned scopes = 0;

        if (!token || digest_of(token, strlen(token), digest, NULL))
                return ACCESS_UNKNOWN;
        for (size_t i = 0; i < t->count; i++) {
                unsigned differ = 0;

                for (size_t k = 0; k < sizeof digest; k++)
                        differ |= digest[k] ^ t->items[i].digest[k];
                scopes |= t->items[i].scopes & ((differ - 1) >> 16); /* all ones up to bit 15 where nothing differs */
        }
        if (!scopes)
                return ACCESS_UNKNOWN;
        return scopes & 1u << scope ? ACCESS_GRANTED : ACCESS_DENIED;
}
