/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker that asks one upstream for one file, once.
 *
 *  1. Nothing but the body of a 200 goes to the file, and never more than the limit.
 *  2. A redirect is followed to the same host only, and never from TLS to none: whom to ask is the configuration's word.
 *  3. Only 404 and 410 mean that there is none.
 *
 * Source: elfutils, debuginfod(8); RFC 9110, 15.4 and 10.2.3.
 */
#include <curl/curl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "common/options.h"
#include "debuginfo-store/fetch_internal.h"
#include "debuginfo-store/fetch_url.h"

#define REDIRECTS_MAX 5
#define TELL_BYTES KiB(64)        /* that arrive between two messages */
#define ERROR_BODY_MAX KiB(64)    /* of an answer other than 200, which nobody reads */
#define CONNECT_S 20
#define SLOW_BYTES_PER_S 1024     /* fewer count for nothing */

struct download {
        CURL *curl;
        struct curl_slist *headers, *with_secret; /* the second one to the upstream alone, and ending in the first */
        int out, answer;
        uint64_t max_bytes, told_bytes, ignored_bytes;
        bool is_too_big;
        struct fetch_message said;
        struct error err;        /* of writing */
};

static enum status say(struct download *d, enum fetch_word word)
{
        d->said.word = word;
        return file_write_all(d->answer, &d->said, sizeof d->said, "answer", &d->err);
}

/* ---- what comes ---- */

static bool header_value(const char *line, size_t n, const char *name, char *ret, size_t size)
{
        size_t skip = strlen(name);

        if (n <= skip || strncasecmp(line, name, skip) != 0)
                return false;
        while (skip < n && (line[skip] == ' ' || line[skip] == '\t'))
                skip++;
        while (n > skip && (unsigned char)line[n - 1] <= ' ')
                n--;
        snprintf(ret, size, "%.*s", (int)(n - skip < size ? n - skip : size - 1), line + skip);
        return true;
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
        struct download *d = context;
        size_t n = size * count;
        char number[24];
        uint64_t bytes;

        if (header_value(line, n, "x-debuginfod-file:", d->said.answer.name, sizeof d->said.answer.name))
                return n;
        if (header_value(line, n, "x-debuginfod-size:", number, sizeof number) && parse_uint(number, &bytes))
                d->said.answer.size_bytes = bytes;
        return n;
}

static unsigned status_of(struct download *d)
{
        long code = 0;

        curl_easy_getinfo(d->curl, CURLINFO_RESPONSE_CODE, &code);
        return code > 0 ? (unsigned)code : 0;
}

/* Before the first byte of the body. */
static void note_size(struct download *d)
{
        curl_off_t length = -1;

        curl_easy_getinfo(d->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (length > 0)
                d->said.answer.size_bytes = (uint64_t)length;
        d->said.answer.http_status = 200;
        d->is_too_big = d->said.answer.size_bytes > d->max_bytes;
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
        struct download *d = context;
        size_t n = size * count;

        if (status_of(d) != 200) {
                d->ignored_bytes += n;
                return d->ignored_bytes > ERROR_BODY_MAX ? 0 : n;
        }
        if (d->said.answer.received_bytes == 0)
                note_size(d);
        d->is_too_big |= n > d->max_bytes - d->said.answer.received_bytes;
        if (d->is_too_big || file_write_all(d->out, data, n, "fetched file", &d->err))
                return 0;
        d->said.answer.received_bytes += n;
        if (d->told_bytes && d->said.answer.received_bytes - d->told_bytes < TELL_BYTES)
                return n;
        d->told_bytes = d->said.answer.received_bytes;
        return say(d, FETCH_GROWS) ? 0 : n;
}

/* ---- asking ---- */

static void configure(struct download *d, uint64_t timeout_s, uint64_t total_s)
{
        CURL *curl = d->curl;

        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
        curl_easy_setopt(curl, CURLOPT_USERAGENT, "cairn/" CAIRN_VERSION);
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)(timeout_s < CONNECT_S ? timeout_s : CONNECT_S));
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_PER_S);
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)timeout_s);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)total_s);
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, d);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, d);
}

/* An empty file trusts nobody. */
static void trust_only(CURL *curl, const struct file_map *authorities)
{
        struct curl_blob blob = { .data = authorities->size ? (void *)(uintptr_t)authorities->data : (void *)(uintptr_t)"",
                                  .len = authorities->size, .flags = CURL_BLOB_NOCOPY };

        curl_easy_setopt(curl, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &blob);
}

/* One request, and those that redirects lead to; *refused: a redirect that is not followed. */
static CURLcode ask(struct download *d, const char *first, bool *refused)
{
        _cleanup_free_ char *url = strdup(first);
        CURLcode rc = url ? CURLE_OK : CURLE_OUT_OF_MEMORY;

        *refused = false;
        for (unsigned i = 0; !rc; i++) {
                char *next = NULL;

                d->said.answer = (struct fetch_answer){ 0 };
                if (fetch_url_is_loopback(url))
                        curl_easy_setopt(d->curl, CURLOPT_PROXY, "");
                curl_easy_setopt(d->curl, CURLOPT_URL, url);
                curl_easy_setopt(d->curl, CURLOPT_HTTPHEADER, fetch_url_same_origin(first, url) ? d->with_secret : d->headers);
                rc = curl_easy_perform(d->curl);
                if (rc || status_of(d) / 100 != 3)
                        break;
                curl_easy_getinfo(d->curl, CURLINFO_REDIRECT_URL, &next);
                *refused = !next || i == REDIRECTS_MAX || !fetch_url_may_follow(first, next);
                if (*refused)
                        break;
                free(url);
                url = strdup(next);
                rc = url ? CURLE_OK : CURLE_OUT_OF_MEMORY;
        }
        return rc;
}

/* ---- what to say of it ---- */

static enum status conclude(struct download *d, CURLcode rc, bool refused, const char *curl_text)
{
        struct fetch_message *m = &d->said;
        unsigned status = status_of(d);
        curl_off_t pause_s = 0;

        curl_easy_getinfo(d->curl, CURLINFO_RETRY_AFTER, &pause_s);
        m->answer.http_status = status;
        m->answer.retry_after_s = pause_s <= 0 ? 0 : pause_s < LIMIT_UPSTREAM_PAUSE_S ? (uint64_t)pause_s : LIMIT_UPSTREAM_PAUSE_S;
        if (d->is_too_big || status == 406) {
                snprintf(m->text, sizeof m->text, "it is larger than %" PRIu64 " bytes", d->max_bytes);
                return say(d, FETCH_TOO_BIG);
        }
        if (d->err.text[0])
                snprintf(m->text, sizeof m->text, "%.190s", d->err.text);
        else if (status == 404 || status == 410)
                return say(d, FETCH_MISSING);
        else if (refused)
                snprintf(m->text, sizeof m->text, "it sends us to another host, which is not followed");
        else if (status >= 400)
                snprintf(m->text, sizeof m->text, "it answered with status %u", status);
        else if (rc && m->answer.received_bytes)
                snprintf(m->text, sizeof m->text, "its answer was cut off after %" PRIu64 " bytes: %.120s",
                         m->answer.received_bytes, curl_text);
        else if (rc)
                snprintf(m->text, sizeof m->text, "%.190s", curl_text);
        else if (status != 200)
                snprintf(m->text, sizeof m->text, "it answered with status %u", status);
        else if (m->answer.received_bytes == 0)
                snprintf(m->text, sizeof m->text, "its answer is empty");
        else
                return say(d, FETCH_FOUND);
        return say(d, FETCH_FAILED);
}

static bool add_header(struct download *d, const char *name, const char *value)
{
        _cleanup_free_ char *line = NULL;
        struct curl_slist *longer = asprintf(&line, "%s: %s", name, value) < 0 ? NULL : curl_slist_append(d->headers, line);

        if (longer)
                d->headers = longer;
        return longer != NULL;
}

static bool add_secret(struct download *d, const char *line)
{
        d->with_secret = d->headers;
        if (line) {
                d->with_secret = curl_slist_append(NULL, line);
                if (d->with_secret)
                        d->with_secret->next = d->headers;
        }
        return d->with_secret != NULL;
}

static void free_headers(struct download *d)
{
        if (d->with_secret && d->with_secret != d->headers) {
                d->with_secret->next = NULL;
                curl_slist_free_all(d->with_secret);
        }
        curl_slist_free_all(d->headers);
}

/* The address of the file that is wanted, and the header for it or NULL; owned. */
static enum status address(const char *path, char **ret, char **header_ret, struct error *err)
{
        _cleanup_file_map_ struct file_map base = { 0 };
        enum status st = file_map_fd(FETCH_WORKER_URL, LIMIT_UPSTREAM_URL_BYTES + 1 + LIMIT_UPSTREAM_HEADER_BYTES,
                                     "the upstream's URL", &base, err);
        size_t size = base.size;
        const char *line_end;

        if (st)
                return st;
        line_end = memchr(base.data, '\n', size);
        if (line_end) {
                size = (size_t)(line_end - (const char *)base.data);
                *header_ret = strndup(line_end + 1, base.size - size - 1);
                if (!*header_ret)
                        return error_no_memory(err);
        }
        while (size && ((const char *)base.data)[size - 1] == '/')
                size--;
        return asprintf(ret, "%.*s/%s", (int)size, (const char *)base.data, path) < 0 ? error_no_memory(err) : ST_OK;
}

enum status fetch_worker(char *const args[static FETCH_WORKER_ARGS], struct error *err)
{
        const char *path = args[0], *max_text = args[3], *forwarded_for = args[4];
        struct download d = { .out = FETCH_WORKER_OUT, .answer = FETCH_WORKER_ANSWER };
        bool has_authorities = fcntl(FETCH_WORKER_AUTHORITIES, F_GETFD) >= 0;
        _cleanup_file_map_ struct file_map authorities = { 0 };
        _cleanup_free_ char *url = NULL, *secret = NULL;
        char curl_error[CURL_ERROR_SIZE] = "";
        uint64_t timeout_s, total_s;
        bool refused;
        CURLcode rc;
        enum status st;

        if (!parse_uint(args[1], &timeout_s) || !parse_uint(args[2], &total_s) || !parse_uint(max_text, &d.max_bytes))
                return error_set(err, ST_USAGE, "no such question: '%s' '%s' '%s'", args[1], args[2], max_text);
        st = has_authorities ? file_map_fd(FETCH_WORKER_AUTHORITIES, LIMIT_PEM_BYTES, "certificates", &authorities, err) : ST_OK;
        if (!st)
                st = address(path, &url, &secret, err);
        if (st)
                return st;
        d.curl = !curl_global_init(CURL_GLOBAL_DEFAULT) ? curl_easy_init() : NULL;
        if (!d.curl || !add_header(&d, "X-DEBUGINFOD-MAXSIZE", max_text) ||
            (forwarded_for[0] && !add_header(&d, "X-Forwarded-For", forwarded_for)) || !add_secret(&d, secret)) {
                st = error_no_memory(err);
        } else {
                configure(&d, timeout_s, total_s);
                if (has_authorities)
                        trust_only(d.curl, &authorities);
                curl_easy_setopt(d.curl, CURLOPT_ERRORBUFFER, curl_error);
                rc = ask(&d, url, &refused);
                st = conclude(&d, rc, refused, curl_error[0] ? curl_error : curl_easy_strerror(rc));
        }
        curl_easy_cleanup(d.curl);
        free_headers(&d);
        return st;
}
