/* SPDX-License-Identifier: Apache-2.0 */
/* From an HTTP answer to a status and a text that says what to do. */
#include <string.h>

#include "common/json_value.h"
#include "http/client_internal.h"

uint64_t retry_after_ms(const char *value, size_t n, time_t now)
{
        char text[64];
        char *end;
        unsigned long seconds;
        time_t at;

        while (n && (*value == ' ' || *value == '\t'))
                value++, n--;
        while (n && (value[n - 1] == '\r' || value[n - 1] == '\n' || value[n - 1] == ' '))
                n--;
        if (n == 0 || n >= sizeof text)
                return 0;
        memcpy(text, value, n);
        text[n] = 0;
        if (text[0] >= '0' && text[0] <= '9') {
                seconds = strtoul(text, &end, 10);
                if (*end == 0)
                        return seconds > 86400 ? 86400000 : seconds * 1000;
        }
        at = curl_getdate(text, NULL);
        if (at <= now)
                return 0;
        return at - now > 86400 ? 86400000 : (uint64_t)(at - now) * 1000;
}

const char *http_client_error_member(const struct http_client_response *r, const char *member, char *out,
                                     size_t size)
{
        struct json_value root;
        char text[2048];

        out[0] = 0;
        if (r->body.size && !json_value_parse(r->body.data, r->body.size, &root, NULL) &&
            json_value_text(&root, member, text, sizeof text))
                snprintf(out, size, "%s", text);
        return out;
}

/* The server's own words: the JSON error, or the first line of plain text. */
static void server_text(const struct http_client_response *r, char *out, size_t size)
{
        size_t n = 0;

        http_client_error_member(r, "error", out, size);
        if (out[0] || strncmp(r->content_type, "text/plain", 10) != 0)
                return;
        while (n < r->body.size && n + 1 < size && r->body.data[n] >= ' ' && r->body.data[n] != 0x7f) {
                out[n] = (char)r->body.data[n];
                n++;
        }
        out[n] = 0;
}

static enum status status_of_code(unsigned code)
{
        switch (code) {
        case 401:
        case 403:
        case 405:
                return ST_USAGE;
        case 404:
                return ST_NOT_FOUND;
        case 413:
                return ST_TOO_BIG;
        case 415:
                return ST_UNSUPPORTED;
        case 408:
        case 429:
                return ST_BUSY;
        default:
                return code >= 500 ? ST_BUSY : ST_BAD_DATA;
        }
}

static const char *next_step(unsigned code)
{
        switch (code) {
        case 401:
                return "; give a token with --token-file";
        case 403:
                return "; give a token with the scope this needs";
        case 404:
        case 405:
                return "; check that the address is a Cairn service";
        case 429:
        case 502:
        case 503:
        case 504:
                return "; try again later";
        default:
                return code >= 300 && code < 400 ? "; give the address it redirects to" : "";
        }
}

static enum status judge_failure(const char *method, const char *url, CURLcode rc, const char *text,
                                 const struct http_client_response *r, struct error *err)
{
        if (rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL)
                return error_set(err, ST_USAGE, "%s %.100s failed: %s; give http://HOST:PORT", method, url, text);
        if (rc == CURLE_OUT_OF_MEMORY)
                return error_no_memory(err);
        if (rc == CURLE_PEER_FAILED_VERIFICATION)
                return error_set(err, ST_USAGE, "%s %.60s failed: %.80s; use the name that is in its certificate, or give "
                                 "--ca FILE with who signed it", method, url, text);
        if (rc == CURLE_SSL_CACERT_BADFILE)
                return error_set(err, ST_USAGE, "%s %.60s failed: %.100s; --ca takes certificates as PEM", method, url, text);
        if (rc == CURLE_ABORTED_BY_CALLBACK)
                return error_set(err, ST_OS, "%s %.100s failed: the request's own content could not be read",
                                 method, url);
        if (rc == CURLE_COULDNT_CONNECT || rc == CURLE_COULDNT_RESOLVE_HOST)
                return error_set(err, ST_BUSY, "%s %.100s failed: %s; is the service running there?", method, url,
                                 text);
        return error_set(err, ST_BUSY, "%s %.100s failed after %u attempt%s: %s", method, url, r->attempts,
                         r->attempts == 1 ? "" : "s", text);
}

enum status client_judge(const char *method, const char *url, CURLcode rc, const char *curl_text,
                         const struct http_client_response *r, struct error *err)
{
        char text[120];

        if (r->code >= 200 && r->code < 300 && rc == CURLE_OK)
                return ST_OK;
        if (r->code < 300)
                return judge_failure(method, url, rc, curl_text, r, err);
        server_text(r, text, sizeof text);
        return error_set(err, status_of_code(r->code), "%s %.100s: HTTP %u%s%s%s", method, url, r->code,
                         text[0] ? ": " : "", text, text[0] ? "" : next_step(r->code));
}
