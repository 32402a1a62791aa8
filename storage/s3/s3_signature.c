/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/s3/s3_signature.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/memory/buf.h"

#define TIME_BYTES 17 /* "20130524T000000Z" */
#define DATE_LENGTH 8

static enum status hash_signing_text(const struct buf *text, char ret[static SHA256_HEX_MAX], struct error *err)
{
        uint8_t digest[SHA256_BYTES];
        struct sha256 hash;
        enum status st = sha256_init(&hash, err);

        if (st)
                return st;
        sha256_update(&hash, text->data, text->size);
        sha256_final(&hash, digest);
        sha256_hex(digest, ret);
        return ST_OK;
}

void s3_signed_headers_deinit(struct s3_signed_headers *h)
{
        for (size_t i = 0; i < h->count; i++)
                free(h->lines[i]);
        *h = (struct s3_signed_headers){ 0 };
}

static enum status append_header_line(struct s3_signed_headers *h, const char *name, const char *value,
                                      struct error *err)
{
        char *line;

        if (asprintf(&line, "%s: %s", name, value) < 0)
                return error_no_memory(err);
        h->lines[h->count++] = line;
        return ST_OK;
}

static int compare_header_names(const void *x, const void *y)
{
        return strcmp(((const struct s3_header *)x)->name, ((const struct s3_header *)y)->name);
}

/* The names of the signed headers, separated by semicolons. */
static void append_header_names(struct buf *to, const struct s3_header *headers, size_t count)
{
        for (size_t i = 0; i < count; i++)
                buf_printf(to, "%s%s", i ? ";" : "", headers[i].name);
}

static enum status hash_canonical_request(const struct s3_signing *s, const struct s3_header *headers, size_t count,
                                          char ret[static SHA256_HEX_MAX], struct error *err)
{
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, LIMIT_S3_REQUEST_TEXT_BYTES);
        buf_printf(&text, "%s\n%s\n%s\n", s->method, s->path, s->query);
        for (size_t i = 0; i < count; i++)
                buf_printf(&text, "%s:%s\n", headers[i].name, headers[i].value);
        buf_printf(&text, "\n");
        append_header_names(&text, headers, count);
        buf_printf(&text, "\n%s", s->content_sha256);
        st = buf_status(&text, err, "the request to the store");
        return st ? st : hash_signing_text(&text, ret, err);
}

static bool make_signing_key(const char *secret, const char *date, const char *region, uint8_t ret[static SHA256_BYTES])
{
        _cleanup_free_ char *first = NULL;
        bool ok;

        if (asprintf(&first, "AWS4%s", secret) < 0) {
                first = NULL;
                return false;
        }
        ok = hmac_sha256(first, strlen(first), date, strlen(date), ret) &&
             hmac_sha256(ret, SHA256_BYTES, region, strlen(region), ret) &&
             hmac_sha256(ret, SHA256_BYTES, "s3", 2, ret) && hmac_sha256(ret, SHA256_BYTES, "aws4_request", 12, ret);
        explicit_bzero(first, strlen(first));
        return ok;
}

static enum status append_authorization(const struct s3_signing *s, const struct s3_credentials *c, const char *time,
                                        const struct s3_header *headers, size_t count, struct s3_signed_headers *ret,
                                        struct error *err)
{
        char date[DATE_LENGTH + 1], request[SHA256_HEX_MAX], signature[SHA256_HEX_MAX];
        uint8_t key[SHA256_BYTES], digest[SHA256_BYTES];
        _cleanup_buf_ struct buf scope, text;
        enum status st = hash_canonical_request(s, headers, count, request, err);

        buf_init(&scope, LIMIT_S3_REQUEST_TEXT_BYTES);
        buf_init(&text, LIMIT_S3_REQUEST_TEXT_BYTES);
        if (st)
                return st;
        snprintf(date, sizeof date, "%.*s", DATE_LENGTH, time);
        buf_printf(&scope, "%s/%s/s3/aws4_request", date, s->region);
        if (!buf_cstr(&scope))
                return error_no_memory(err);
        buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", time, buf_cstr(&scope), request);
        if (text.failed || !make_signing_key(c->secret_key, date, s->region, key) ||
            !hmac_sha256(key, sizeof key, text.data, text.size, digest))
                return error_no_memory(err);
        sha256_hex(digest, signature);
        buf_clear(&text);
        buf_printf(&text, "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=", c->access_key, buf_cstr(&scope));
        append_header_names(&text, headers, count);
        buf_printf(&text, ",Signature=%s", signature);
        return buf_cstr(&text) ? append_header_line(ret, "authorization", buf_cstr(&text), err) : error_no_memory(err);
}

enum status s3_sign(const struct s3_signing *s, const struct s3_credentials *credentials, struct s3_signed_headers *ret,
                    struct error *err)
{
        struct s3_header headers[S3_HEADERS_MAX + 4];
        char time[TIME_BYTES];
        size_t count = 0;
        struct tm utc;
        enum status st = ST_OK;

        *ret = (struct s3_signed_headers){ 0 };
        assert(s->header_count <= S3_HEADERS_MAX);
        gmtime_r(&s->time, &utc);
        strftime(time, sizeof time, "%Y%m%dT%H%M%SZ", &utc);
        for (size_t i = 0; i < s->header_count; i++)
                headers[count++] = s->headers[i];
        headers[count++] = (struct s3_header){ "host", s->host };
        headers[count++] = (struct s3_header){ "x-amz-content-sha256", s->content_sha256 };
        headers[count++] = (struct s3_header){ "x-amz-date", time };
        if (credentials->session_token)
                headers[count++] = (struct s3_header){ "x-amz-security-token", credentials->session_token };
        qsort(headers, count, sizeof *headers, compare_header_names);
        for (size_t i = 0; !st && i < count; i++) {
                if (strcmp(headers[i].name, "host") != 0) /* the client sends it */
                        st = append_header_line(ret, headers[i].name, headers[i].value, err);
        }
        return st ? st : append_authorization(s, credentials, time, headers, count, ret, err);
}
