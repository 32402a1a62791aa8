/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/tokens.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/hash/sha256.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "debuginfo-store/debuginfo_store.h"

#define MAX_TOKENS 1000
#define MIN_TOKEN_BYTES 8
#define RATE_MAX 1000000

#define DIGEST_PREFIX "sha256:"

struct token {
        uint8_t digest[SHA256_BYTES];
        unsigned line;
        unsigned scopes; /* bit of each enum http_scope */
        char name[HTTP_TOKEN_NAME_SIZE];
        char tenant[TENANT_NAME_SIZE]; /* "" none, TOKEN_ANY_TENANT */
        struct rate_limit_config limits;
};

struct token_list {
        const struct tenant_configs *tenants; /* borrowed; NULL: without a tenants file */
        struct token *items;
        size_t count;
};

struct tokens {
        char *path;
        pthread_rwlock_t lock;
        struct token_list list;
};

static enum status compute_token_digest(const char *text, size_t n, uint8_t ret[static SHA256_BYTES], struct error *err)
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
        static const char *const names[] = { "read", "ingest", "upload", "history", "node", "admin" };
        static const unsigned bits[] = { 1u << SCOPE_READ,
                                         1u << SCOPE_INGEST,
                                         1u << SCOPE_UPLOAD,
                                         1u << SCOPE_HISTORY,
                                         1u << SCOPE_NODE,
                                         1u << SCOPE_READ | 1u << SCOPE_INGEST | 1u << SCOPE_UPLOAD |
                                                 1u << SCOPE_HISTORY | 1u << SCOPE_NODE | 1u << SCOPE_ADMIN };
        const size_t count = sizeof names / sizeof *names;

        *ret = 0;
        while (*text) {
                size_t n = strcspn(text, ","), i;

                for (i = 0; i < count; i++)
                        if (strlen(names[i]) == n && memcmp(text, names[i], n) == 0)
                                break;
                if (i == count)
                        return false;
                *ret |= bits[i];
                text += n + (text[n] == ',');
        }
        return *ret != 0;
}

static bool parse_tenant(const char *name, const struct tenant_configs *tenants, char ret[static TENANT_NAME_SIZE])
{
        if (!tenants || (strcmp(name, TOKEN_ANY_TENANT) != 0 && !tenant_configs_have(tenants, name)))
                return false;
        snprintf(ret, TENANT_NAME_SIZE, "%s", name);
        return true;
}

static bool parse_setting(char *text, const struct tenant_configs *tenants, struct token *item)
{
        char *value = strchr(text, '=');

        if (!value)
                return false;
        *value++ = 0;
        if (strcmp(text, "rate") == 0)
                return parse_uint(value, &item->limits.requests_per_s) && item->limits.requests_per_s > 0 &&
                       item->limits.requests_per_s <= RATE_MAX;
        if (strcmp(text, "bytes") == 0)
                return parse_bytes(value, &item->limits.bytes_per_day);
        if (strcmp(text, "tenant") == 0)
                return parse_tenant(value, tenants, item->tenant);
        if (strcmp(text, "name") != 0 || !*value || !object_tag_is_valid(value))
                return false;
        snprintf(item->name, sizeof item->name, "%s", value);
        return true;
}

static bool parse_settings(char **save, const struct tenant_configs *tenants, struct token *item)
{
        for (char *text; (text = strtok_r(NULL, " \t\r", save));)
                if (!parse_setting(text, tenants, item))
                        return false;
        return true;
}

static enum status parse_secret(const char *text, uint8_t ret[static SHA256_BYTES], const char *path, unsigned number,
                                struct error *err)
{
        size_t n = strlen(DIGEST_PREFIX);

        if (strncmp(text, DIGEST_PREFIX, n) == 0)
                return sha256_parse(text + n, ret)
                               ? ST_OK
                               : error_set(err, ST_BAD_DATA,
                                           "'%s' line %u: " DIGEST_PREFIX " takes 64 hexadecimal digits", path, number);
        if (strlen(text) < MIN_TOKEN_BYTES)
                return error_set(err, ST_BAD_DATA, "'%s' line %u: a token has at least %d characters", path, number,
                                 MIN_TOKEN_BYTES);
        return compute_token_digest(text, strlen(text), ret, err);
}

static enum status parse_token_line(struct token_list *t, char *line, const char *path, unsigned number,
                                    struct error *err)
{
        char *save = NULL, *token, *scopes;
        struct token *item = &t->items[t->count];
        enum status st;

        line[strcspn(line, "#")] = 0;
        token = strtok_r(line, " \t\r", &save);
        if (!token)
                return ST_OK;
        scopes = strtok_r(NULL, " \t\r", &save);
        st = parse_secret(token, item->digest, path, number, err);
        if (st)
                return st;
        if (!scopes || !parse_scopes(scopes, &item->scopes) || !parse_settings(&save, t->tenants, item))
                return error_set(err, ST_BAD_DATA,
                                 "'%s' line %u: write TOKEN scope[,scope...] [name=NAME] [rate=N] [bytes=N] "
                                 "[tenant=NAME] with read, ingest, upload, history, node, admin, and %s",
                                 path, number,
                                 t->tenants ? "a tenant of the tenants file or *" : "no tenant without --tenants");
        if (t->count == MAX_TOKENS)
                return error_set(err, ST_TOO_BIG, "'%s' holds more than %d tokens", path, MAX_TOKENS);
        item->line = number;
        t->count++;
        return ST_OK;
}

static enum status parse_tokens(char *text, const char *path, struct token_list *ret, struct error *err)
{
        struct token_list list = { .tenants = ret->tenants, .items = calloc(MAX_TOKENS + 1, sizeof *list.items) };
        unsigned number = 0;
        enum status st = list.items ? ST_OK : error_no_memory(err);

        while (text && !st) {
                char *line = strsep(&text, "\n");

                st = parse_token_line(&list, line, path, ++number, err);
        }
        if (!st && list.count == 0)
                st = error_set(err, ST_BAD_DATA, "'%s' holds no token", path);
        if (st)
                free(list.items);
        else
                *ret = list;
        return st;
}

static enum status read_token_file(const char *path, struct token_list *ret, struct error *err)
{
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, MiB(1));
        st = file_read_lines(path, &text, err);
        if (!st && !buf_cstr(&text))
                st = buf_status(&text, err, path);
        if (!st)
                st = parse_tokens((char *)text.data, path, ret, err);
        if (text.data)
                explicit_bzero(text.data, text.size);
        return st;
}

static void cleanup_tokens(struct tokens **t)
{
        tokens_destroy(*t);
}

enum status tokens_load(const char *path, const struct tenant_configs *tenants, struct tokens **ret, struct error *err)
{
        _cleanup_(cleanup_tokens) struct tokens *t = calloc(1, sizeof *t);
        enum status st;

        if (!t)
                return error_no_memory(err);
        pthread_rwlock_init(&t->lock, NULL);
        t->path = strdup(path);
        t->list.tenants = tenants;
        st = t->path ? read_token_file(path, &t->list, err) : error_no_memory(err);
        if (!st)
                *ret = steal_ptr(t);
        return st;
}

enum status tokens_reload(struct tokens *t, const char *path, size_t *count_ret, struct error *err)
{
        struct token_list fresh = { .tenants = t->list.tenants }, old;
        _cleanup_free_ char *copy = strdup(path ? path : t->path);
        enum status st = copy ? read_token_file(copy, &fresh, err) : error_no_memory(err);

        if (st)
                return st;
        free(t->path);
        t->path = steal_ptr(copy);
        pthread_rwlock_wrlock(&t->lock);
        old = t->list;
        t->list = fresh;
        pthread_rwlock_unlock(&t->lock);
        free(old.items);
        *count_ret = fresh.count;
        return ST_OK;
}

size_t tokens_count_unbound(struct tokens *t, unsigned *line_ret)
{
        size_t count = 0;

        pthread_rwlock_rdlock(&t->lock);
        for (size_t i = 0; t->list.tenants && i < t->list.count; i++)
                if (!t->list.items[i].tenant[0] && count++ == 0)
                        *line_ret = t->list.items[i].line;
        pthread_rwlock_unlock(&t->lock);
        return count;
}

void tokens_destroy(struct tokens *t)
{
        if (!t)
                return;
        free(t->list.items);
        free(t->path);
        pthread_rwlock_destroy(&t->lock);
        free(t);
}

/* Compares all digests, each in full, so that timing reveals nothing. Caller holds t->lock. */
static const struct token *find_token(const struct tokens *t, const uint8_t digest[static SHA256_BYTES])
{
        const struct token *found = NULL;

        for (size_t i = 0; i < t->list.count; i++) {
                const struct token *item = &t->list.items[i];

                if (sha256_equal(digest, item->digest))
                        found = item;
        }
        return found;
}

bool token_identify(const char *token, struct token_id *ret)
{
        return token && !compute_token_digest(token, strlen(token), ret->digest, NULL);
}

bool tokens_has(struct tokens *t, const struct token_id *token)
{
        const struct token *found;

        pthread_rwlock_rdlock(&t->lock);
        found = find_token(t, token->digest);
        pthread_rwlock_unlock(&t->lock);
        return found;
}

enum http_access tokens_check(struct tokens *t, const struct token_id *token, enum http_scope scope,
                              char name_ret[static HTTP_TOKEN_NAME_SIZE])
{
        enum http_access access = ACCESS_UNKNOWN;
        const struct token *found;

        name_ret[0] = 0;
        if (!token)
                return ACCESS_UNKNOWN;
        pthread_rwlock_rdlock(&t->lock);
        found = find_token(t, token->digest);
        if (found) {
                memcpy(name_ret, found->name, sizeof found->name);
                access = found->scopes & 1u << scope ? ACCESS_GRANTED : ACCESS_DENIED;
        }
        pthread_rwlock_unlock(&t->lock);
        return access;
}

bool tokens_get_tenant(struct tokens *t, const struct token_id *token, enum http_scope scope,
                       char ret[static TENANT_NAME_SIZE])
{
        const struct token *found;

        if (!token)
                return false;
        pthread_rwlock_rdlock(&t->lock);
        found = find_token(t, token->digest);
        if (found && !(found->scopes & 1u << scope))
                found = NULL;
        if (found)
                memcpy(ret, found->tenant, sizeof found->tenant);
        pthread_rwlock_unlock(&t->lock);
        return found;
}

bool tokens_get_limits(struct tokens *t, const struct token_id *token, struct token_limits *ret)
{
        const struct token *found;

        if (!token)
                return false;
        pthread_rwlock_rdlock(&t->lock);
        found = find_token(t, token->digest);
        if (found) {
                memcpy(&ret->key, token->digest, sizeof ret->key);
                ret->limits = found->limits;
                memcpy(ret->name, found->name, sizeof found->name);
        }
        pthread_rwlock_unlock(&t->lock);
        return found;
}
