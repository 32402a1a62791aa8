/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find_credentials() asks the sources in their order; each returns ST_NOT_FOUND when it is not set up. One thread at a
 * time asks, without the lock: is_refreshing is set meanwhile, and the others use the keys at hand or wait.
 *
 * In the file: texts and requests; one function for each source; the source of copies.
 */
#include "storage/s3/s3_credentials.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/json/json_value.h"
#include "common/limits.h"
#include "common/text.h"
#include "http/http_client.h"
#include "storage/s3/s3_xml.h"

#define INSTANCE_METADATA "http://169.254.169.254"
#define CONTAINER_METADATA "http://169.254.170.2"
#define FILE_VALID_S 3600
#define KEY_BYTES 256
#define TOKEN_BYTES KiB(8)

struct s3_credential_source {
        char *region;
        pthread_mutex_t lock;
        pthread_cond_t refreshed;
        bool is_refreshing;
        bool is_doubted;       /* the store did not accept the current keys */
        int64_t next_doubt_ns; /* monotonic */
        struct s3_credentials current;
        size_t found_at; /* number of the source of the current ones */
};

#define FILE_SOURCE 1                 /* number of find_file_credentials() in find_credentials() */
#define DOUBT_NS INT64_C(10000000000) /* between two requests for keys because the store refuses the current ones */

void s3_credentials_deinit(struct s3_credentials *c)
{
        if (c->secret_key)
                explicit_bzero(c->secret_key, strlen(c->secret_key));
        free(c->access_key);
        free(c->secret_key);
        free(c->session_token);
        *c = (struct s3_credentials){ 0 };
}

static enum status copy_credentials(const char *access_key, const char *secret_key, const char *session_token,
                                    int64_t expires_s, struct s3_credentials *ret, struct error *err)
{
        bool has_token = session_token && *session_token;

        *ret = (struct s3_credentials){ strdup(access_key), strdup(secret_key),
                                        has_token ? strdup(session_token) : NULL, expires_s, 0 };
        if (ret->access_key && ret->secret_key && (!has_token || ret->session_token))
                return ST_OK;
        s3_credentials_deinit(ret);
        return error_no_memory(err);
}

/* A variable that is set and not empty; else NULL. */
static const char *get_variable(const char *name)
{
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

/* ---- requests to services that give keys ---- */

static enum status ask_service(const char *base_url, const struct http_client_request *q,
                               struct http_client_response *response, struct error *err)
{
        const struct http_client_options options = { .size = sizeof options,
                                                     .base_url = base_url,
                                                     .connect_timeout_ms = 2000,
                                                     .request_timeout_ms = 5000,
                                                     .attempts = 2,
                                                     .first_pause_ms = 200 };
        _cleanup_http_client_ struct http_client *client = NULL;
        enum status st = http_client_create(&options, &client, err);

        return st ? st : http_client_send(client, q, response, err);
}

static enum status read_json_credentials(const struct buf *body, struct s3_credentials *ret, struct error *err)
{
        char access[KEY_BYTES], secret[KEY_BYTES], token[TOKEN_BYTES], expires[40];
        struct json_value root;
        int64_t expires_ms;
        enum status st = json_value_parse(body->data, body->size, &root, err);

        if (st)
                return st;
        if (!json_value_text(&root, "AccessKeyId", access, sizeof access) ||
            !json_value_text(&root, "SecretAccessKey", secret, sizeof secret) ||
            !json_value_text(&root, "Token", token, sizeof token) ||
            !json_value_text(&root, "Expiration", expires, sizeof expires))
                return error_set(err, ST_BAD_DATA,
                                 "the answer with the keys lacks one of AccessKeyId, "
                                 "SecretAccessKey, Token and Expiration");
        expires_ms = s3_parse_time(expires);
        if (expires_ms < 0)
                return error_set(err, ST_BAD_DATA, "the keys expire at '%.40s', which is no time", expires);
        return copy_credentials(access, secret, token, expires_ms / 1000, ret, err);
}

/* ---- the sources ---- */

static enum status find_environment_credentials(struct s3_credential_source *s, struct s3_credentials *ret,
                                                struct error *err)
{
        const char *access = get_variable("AWS_ACCESS_KEY_ID"), *secret = get_variable("AWS_SECRET_ACCESS_KEY");

        (void)s;
        if (!access && !secret)
                return ST_NOT_FOUND;
        if (!access || !secret)
                return error_set(err, ST_USAGE, "%s is set, but not %s",
                                 access ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                                 access ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
        return copy_credentials(access, secret, getenv("AWS_SESSION_TOKEN"), INT64_MAX, ret, err);
}

static char *trim_text(char *text)
{
        size_t n;

        text += strspn(text, " \t");
        n = strlen(text);
        while (n && strchr(" \t\r", text[n - 1]))
                text[--n] = 0;
        return text;
}

/* Take the keys of a section of a credentials file; the text is cut into its lines. */
static enum status read_credentials_section(char *text, const char *section, const char *path,
                                            struct s3_credentials *ret, struct error *err)
{
        const char *access = NULL, *secret = NULL, *token = NULL;
        bool is_wanted = false;
        char *rest = text, *line;

        while ((line = strsep(&rest, "\n"))) {
                char *value = strchr(line, '=');

                line = trim_text(line);
                if (*line == '[') {
                        line[strcspn(line, "]")] = 0;
                        is_wanted = strcmp(trim_text(line + 1), section) == 0;
                } else if (is_wanted && value && *line != '#') {
                        *value = 0;
                        line = trim_text(line);
                        value = trim_text(value + 1);
                        if (strcmp(line, "aws_access_key_id") == 0)
                                access = value;
                        else if (strcmp(line, "aws_secret_access_key") == 0)
                                secret = value;
                        else if (strcmp(line, "aws_session_token") == 0)
                                token = value;
                }
        }
        if (!access || !*access || !secret || !*secret)
                return error_set(err, ST_NOT_FOUND, "'%s' has no keys in its section [%s]", path, section);
        return copy_credentials(access, secret, token, (int64_t)time(NULL) + FILE_VALID_S, ret, err);
}

static enum status find_file_credentials(struct s3_credential_source *s, struct s3_credentials *ret, struct error *err)
{
        const char *given = get_variable("AWS_SHARED_CREDENTIALS_FILE"), *home = get_variable("HOME");
        const char *section = get_variable("AWS_PROFILE");
        _cleanup_free_ char *path = given ? strdup(given) : home ? path_join(home, ".aws/credentials") : NULL;
        _cleanup_buf_ struct buf text;
        enum status st;

        (void)s;
        buf_init(&text, LIMIT_S3_CREDENTIALS_FILE_BYTES);
        if (!path)
                return given || home ? error_no_memory(err) : ST_NOT_FOUND;
        st = file_read(path, &text, err);
        if (st)
                return st == ST_NOT_FOUND && given ? error_set(err, ST_USAGE,
                                                               "AWS_SHARED_CREDENTIALS_FILE names '%s', which does "
                                                               "not exist",
                                                               path)
                                                   : st;
        if (!buf_cstr(&text))
                return error_no_memory(err);
        st = read_credentials_section((char *)text.data, section ? section : "default", path, ret, err);
        return st == ST_NOT_FOUND && section ? ST_USAGE : st;
}

static enum status find_role_credentials(struct s3_credential_source *s, struct s3_credentials *ret, struct error *err)
{
        static const char *const headers[] = { "Content-Type: application/x-www-form-urlencoded", NULL };
        const char *file = get_variable("AWS_WEB_IDENTITY_TOKEN_FILE"), *role = get_variable("AWS_ROLE_ARN");
        const char *session = get_variable("AWS_ROLE_SESSION_NAME"), *given = get_variable("AWS_ENDPOINT_URL_STS");
        char access[KEY_BYTES], secret[KEY_BYTES], token[TOKEN_BYTES], expires[40];
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_free_ char *identity = NULL, *url = NULL;
        _cleanup_buf_ struct buf body;
        struct http_client_request q = { .method = "POST", .path = "/", .headers = headers, .repeatable = true };
        enum status st;

        buf_init(&body, LIMIT_S3_CREDENTIALS_FILE_BYTES);
        if (!file || !role)
                return ST_NOT_FOUND;
        st = file_read_first_line(file, LIMIT_S3_CREDENTIALS_FILE_BYTES, &identity, err);
        if (st)
                return st == ST_NOT_FOUND ? ST_USAGE : st;
        if (given ? !(url = strdup(given)) : asprintf(&url, "https://sts.%s.amazonaws.com", s->region) < 0)
                return error_no_memory(err);
        buf_printf(&body, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleSessionName=%s&RoleArn=",
                   session ? session : "cairn");
        buf_append_url_encoded(&body, role, "");
        buf_printf(&body, "&WebIdentityToken=");
        buf_append_url_encoded(&body, identity, "");
        st = buf_status(&body, err, "the request for a role's keys");
        q.body = body.data;
        q.body_size = body.size;
        if (!st)
                st = ask_service(url, &q, &response, err);
        if (!st)
                st = s3_xml_find(response.body.data, response.body.size, "AccessKeyId", access, sizeof access, err);
        if (!st)
                st = s3_xml_find(response.body.data, response.body.size, "SecretAccessKey", secret, sizeof secret, err);
        if (!st)
                st = s3_xml_find(response.body.data, response.body.size, "SessionToken", token, sizeof token, err);
        if (!st)
                st = s3_xml_find(response.body.data, response.body.size, "Expiration", expires, sizeof expires, err);
        if (!st && s3_parse_time(expires) < 0)
                st = error_set(err, ST_BAD_DATA, "the keys expire at '%.40s', which is no time", expires);
        if (st)
                return error_prefix(err, st == ST_NOT_FOUND ? ST_BAD_DATA : st, "cannot get keys for %.80s", role);
        return copy_credentials(access, secret, token, s3_parse_time(expires) / 1000, ret, err);
}

/* Whether a URL is one of the addresses at which container platforms give keys by plain HTTP. */
static bool is_container_service(const char *url)
{
        static const char *const services[] = { CONTAINER_METADATA, "http://169.254.170.23", "http://[fd00:ec2::23]" };

        for (size_t i = 0; i < sizeof services / sizeof *services; i++) {
                size_t n = strlen(services[i]);

                if (starts_with(url, services[i]) && (url[n] == '/' || url[n] == '\0'))
                        return true;
        }
        return false;
}

/* Their address comes from the environment of the container, so plain HTTP is for addresses of this host only. */
static enum status find_container_credentials(struct s3_credential_source *s, struct s3_credentials *ret,
                                              struct error *err)
{
        const char *full = get_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
        const char *relative = get_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        const char *file = get_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        const char *given = get_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_free_ char *token = NULL, *header = NULL;
        const char *headers[] = { NULL, NULL };
        struct http_client_request q = { .method = "GET", .path = full ? full : relative, .headers = headers };
        enum status st = ST_OK;

        (void)s;
        if (!full && !relative)
                return ST_NOT_FOUND;
        if (full && http_client_exposes_token(full) && !is_container_service(full))
                return error_set(err, ST_USAGE,
                                 "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of this host");
        if (file)
                st = file_read_first_line(file, TOKEN_BYTES, &token, err);
        else if (given && !(token = strdup(given)))
                st = error_no_memory(err);
        if (!st && token && asprintf(&header, "Authorization: %s", token) < 0)
                st = error_no_memory(err);
        if (st)
                return st;
        headers[0] = token ? header : NULL;
        st = ask_service(CONTAINER_METADATA, &q, &response, err);
        if (!st)
                st = read_json_credentials(&response.body, ret, err);
        return st ? error_prefix(err, st == ST_NOT_FOUND ? ST_USAGE : st, "cannot get the container's keys") : ST_OK;
}

static enum status ask_instance(const char *base, const char *method, const char *path, const char *header,
                                struct http_client_response *ret, struct error *err)
{
        const char *const headers[] = { header, NULL };
        const struct http_client_request q = { .method = method, .path = path, .headers = headers };

        return ask_service(base, &q, ret, err);
}

/* Where there is no instance metadata, the connection fails: no keys, rather than an error. */
static enum status find_instance_credentials(struct s3_credential_source *s, struct s3_credentials *ret,
                                             struct error *err)
{
        static const char roles[] = "/latest/meta-data/iam/security-credentials/";
        const char *given = get_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        const char *off = get_variable("AWS_EC2_METADATA_DISABLED"), *base = given ? given : INSTANCE_METADATA;
        _cleanup_http_client_response_ struct http_client_response token = { 0 }, role = { 0 }, keys = { 0 };
        _cleanup_free_ char *header = NULL, *path = NULL;
        enum status st;

        (void)s;
        if (off && strcmp(off, "true") == 0)
                return ST_NOT_FOUND;
        st = ask_instance(base, "PUT", "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 21600", &token, err);
        if (st)
                return given ? st : ST_NOT_FOUND;
        if (!buf_cstr(&token.body) || asprintf(&header, "X-aws-ec2-metadata-token: %s", buf_cstr(&token.body)) < 0)
                return error_no_memory(err);
        st = ask_instance(base, "GET", roles, header, &role, err);
        if (st)
                return error_prefix(err, st == ST_NOT_FOUND ? ST_USAGE : st, "this instance has no role");
        if (!buf_cstr(&role.body) ||
            asprintf(&path, "%s%.*s", roles, (int)strcspn(buf_cstr(&role.body), "\r\n"), buf_cstr(&role.body)) < 0)
                return error_no_memory(err);
        st = ask_instance(base, "GET", path, header, &keys, err);
        return st ? st : read_json_credentials(&keys.body, ret, err);
}

/*
 * @param last  the last source to be asked: that of keys that are valid, whose file may have none while it is written.
 *              Others may have keys with other rights.
 */
static enum status find_credentials(struct s3_credential_source *s, size_t last, struct s3_credentials *ret,
                                    size_t *found_ret, struct error *err)
{
        static enum status (*const sources[])(struct s3_credential_source *, struct s3_credentials *,
                                              struct error *) = { find_environment_credentials, find_file_credentials,
                                                                  find_role_credentials, find_container_credentials,
                                                                  find_instance_credentials };

        for (size_t i = 0; i < sizeof sources / sizeof *sources && i <= last; i++) {
                enum status st = sources[i](s, ret, err);

                *found_ret = i;
                if (st != ST_NOT_FOUND)
                        return st;
        }
        return error_set(err, ST_USAGE,
                         "no keys for the object store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, write "
                         "~/.aws/credentials, or give this host or container a role");
}

/* ---- the source of copies ---- */

enum status s3_credential_source_create(const char *region, struct s3_credential_source **ret, struct error *err)
{
        struct s3_credential_source *s = calloc(1, sizeof *s);

        if (s)
                s->region = strdup(region);
        if (!s || !s->region) {
                free(s);
                return error_no_memory(err);
        }
        pthread_mutex_init(&s->lock, NULL);
        pthread_cond_init(&s->refreshed, NULL);
        *ret = s;
        return ST_OK;
}

void s3_credential_source_destroy(struct s3_credential_source *s)
{
        if (!s)
                return;
        s3_credentials_deinit(&s->current);
        pthread_cond_destroy(&s->refreshed);
        pthread_mutex_destroy(&s->lock);
        free(s->region);
        free(s);
}

static bool has_valid_keys(const struct s3_credential_source *s, int64_t early_s)
{
        return s->current.access_key && s->current.expires_s - early_s > (int64_t)time(NULL);
}

/* Called with the lock, which is released while the sources are asked. */
static enum status refresh_credentials(struct s3_credential_source *s, struct error *err)
{
        const size_t last = has_valid_keys(s, 0) ? s->found_at : SIZE_MAX;
        struct s3_credentials found = { 0 };
        size_t found_at = 0;
        enum status st;

        s->is_refreshing = true;
        pthread_mutex_unlock(&s->lock);
        st = find_credentials(s, last, &found, &found_at, err);
        pthread_mutex_lock(&s->lock);
        s->is_refreshing = s->is_doubted = false;
        pthread_cond_broadcast(&s->refreshed);
        if (st)
                return has_valid_keys(s, 0) ? ST_OK : st;
        found.number = s->current.number + 1;
        s3_credentials_deinit(&s->current);
        s->current = found;
        s->found_at = found_at;
        return ST_OK;
}

enum status s3_get_credentials(struct s3_credential_source *s, struct s3_credentials *ret, struct error *err)
{
        enum status st = ST_OK;

        pthread_mutex_lock(&s->lock);
        while (s->is_refreshing && (s->is_doubted || !has_valid_keys(s, 0)))
                pthread_cond_wait(&s->refreshed, &s->lock);
        if (!s->is_refreshing && (s->is_doubted || !has_valid_keys(s, S3_CREDENTIALS_EARLY_S)))
                st = refresh_credentials(s, err);
        if (!st)
                st = copy_credentials(s->current.access_key, s->current.secret_key, s->current.session_token,
                                      s->current.expires_s, ret, err);
        if (!st)
                ret->number = s->current.number;
        pthread_mutex_unlock(&s->lock);
        return st;
}

bool s3_doubt_credentials(struct s3_credential_source *s, uint64_t number)
{
        bool is_current, ret;

        pthread_mutex_lock(&s->lock);
        is_current = s->current.number == number;
        ret = !is_current || s->is_doubted || s->found_at == FILE_SOURCE || monotonic_ns() >= s->next_doubt_ns;
        if (ret && is_current && !s->is_doubted) {
                s->is_doubted = true;
                s->next_doubt_ns = monotonic_ns() + DOUBT_NS;
        }
        pthread_mutex_unlock(&s->lock);
        return ret;
}
