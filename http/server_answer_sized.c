/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of known size, with conditional requests and ranges. */
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>

#include "http/http_server_internal.h"

#define SMALL_BYTES KiB(16) /* a smaller body is copied: one packet and one system call instead of two */

struct streamed {
        struct MHD_Connection *connection;
        http_read_body *read;
        void (*close)(void *state);
        void *state;
        uint64_t start, end;
};

static ssize_t streamed_read(void *context, uint64_t at, char *to, size_t n)
{
        struct streamed *s = context;
        uint64_t left = s->end - s->start - at;
        ssize_t done;

        if (left == 0)
                return MHD_CONTENT_READER_END_OF_STREAM;
        done = s->read(s->state, to, n < left ? n : (size_t)left, s->start + at);
        if (done > 0)
                return done;
        reset_tcp_connection(s->connection);
        return MHD_CONTENT_READER_END_WITH_ERROR;
}

static void streamed_close(void *context)
{
        struct streamed *s = context;

        if (s->close)
                s->close(s->state);
        free(s);
}

/* Whether the body is newer than a date of a header; -1: the header is absent or not a date (RFC 9110, 5.6.7). */
static int is_modified_after(const char *date, time_t modified)
{
        struct tm tm = { 0 };
        const char *end = date ? strptime(date, "%a, %d %b %Y %H:%M:%S GMT", &tm) : NULL;

        return end && !*end ? modified > timegm(&tm) : -1;
}

/* Evaluate preconditions in the order of RFC 9110, 13.2.2. Returns 304 or 412, or 0: send the body. */
static unsigned check_conditions(struct http_request *req, const char *etag, const time_t *modified)
{
        const char *match = http_header(req, "If-Match"), *none_match = http_header(req, "If-None-Match");

        if (etag && match) {
                if (!is_etag_listed(match, etag))
                        return 412;
        } else if (modified && is_modified_after(http_header(req, "If-Unmodified-Since"), *modified) == 1) {
                return 412;
        }
        if (etag && none_match)
                return is_etag_listed(none_match, etag) ? 304 : 0;
        return modified && is_modified_after(http_header(req, "If-Modified-Since"), *modified) == 0 ? 304 : 0;
}

/* A weak ETag, because the bytes depend on the encoding (RFC 9110, 8.8.3.3). */
bool http_answer_unchanged(struct http_request *req, const char *etag)
{
        char text[80];

        snprintf(text, sizeof text, "W/\"%s\"", etag);
        http_set_header(req, "ETag", text);
        if (!is_etag_listed(http_header(req, "If-None-Match"), etag))
                return false;
        http_respond(req, 304, NULL, "", 0);
        return true;
}

/**
 * Apply conditional and range headers to a body of `size` bytes.
 * @return 200 or 206 with the part to send; otherwise the request was answered.
 */
static unsigned negotiate_range(struct http_request *req, uint64_t size, const char *etag, const time_t *modified,
                                struct byte_range *part)
{
        char text[80];
        const char *if_range = http_header(req, "If-Range");
        bool range_holds = !if_range;
        unsigned code;

        *part = (struct byte_range){ 0, size };
        http_set_header(req, "Accept-Ranges", "bytes");
        if (etag) {
                snprintf(text, sizeof text, "\"%s\"", etag);
                http_set_header(req, "ETag", text);
                range_holds |= if_range && strcmp(if_range, text) == 0;
        }
        code = check_conditions(req, etag, modified);
        if (code == 304)
                http_respond(req, 304, NULL, "", 0);
        else if (code)
                http_fail_code(req, code, "precondition", "'%s' has changed", http_path(req));
        if (code)
                return code;
        if (!range_holds || strcmp(req->method, "GET") != 0)
                return 200;
        switch (parse_range(http_header(req, "Range"), size, part)) {
        case RANGE_NONE:
                return 200;
        case RANGE_BAD:
                snprintf(text, sizeof text, "bytes */%" PRIu64, size);
                http_set_header(req, "Content-Range", text);
                http_fail_code(req, 416, "range", "the range lies outside of the body of %" PRIu64 " bytes", size);
                return 416;
        default:
                snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, part->start, part->end - 1, size);
                http_set_header(req, "Content-Range", text);
                return 206;
        }
}

/* Bytes of a file that are sent together with the headers; NULL if the file is too short or cannot be read. */
static struct MHD_Response *read_small(int fd, uint64_t offset, size_t n)
{
        struct MHD_Response *response;
        char *bytes = malloc(n);

        if (!bytes)
                return NULL;
        response = pread(fd, bytes, n, (off_t)offset) == (ssize_t)n
                           ? MHD_create_response_from_buffer(n, bytes, MHD_RESPMEM_MUST_FREE)
                           : NULL;
        if (!response)
                free(bytes);
        return response;
}

/* Takes fd. */
static void respond_part(struct http_request *req, const char *content_type, int fd, uint64_t offset, uint64_t size,
                         const char *etag, const time_t *modified)
{
        struct MHD_Response *response = NULL;
        struct byte_range part;
        unsigned code = negotiate_range(req, size, etag, modified, &part);
        uint64_t n = part.end - part.start;

        if (code != 200 && code != 206) {
                close(fd);
                return;
        }
        if (n && n <= SMALL_BYTES && (response = read_small(fd, offset + part.start, (size_t)n))) {
                close(fd);
                request_set_response(req, code, content_type, response);
                return;
        }
        if (n)
                response = MHD_create_response_from_fd_at_offset64(n, fd, offset + part.start);
        if (!response)
                close(fd);
        if (part.end == part.start)
                response = MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
        request_set_response(req, code, content_type, response);
}

void http_respond_file_part(struct http_request *req, const char *content_type, int fd, uint64_t offset, uint64_t size)
{
        respond_part(req, content_type, fd, offset, size, NULL, NULL);
}

void http_respond_file(struct http_request *req, const char *content_type, int fd, const char *etag)
{
        struct stat st;
        struct tm tm;
        char modified[40];

        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
                close(fd);
                http_fail_code(req, 500, "system", "cannot read '%s'", http_path(req));
                return;
        }
        gmtime_r(&st.st_mtime, &tm);
        strftime(modified, sizeof modified, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        http_set_header(req, "Last-Modified", modified);
        respond_part(req, content_type, fd, 0, (uint64_t)st.st_size, etag, &st.st_mtime);
}

void http_respond_bytes(struct http_request *req, const char *content_type, void *bytes, size_t size, const char *etag)
{
        struct byte_range part;
        unsigned code = negotiate_range(req, size, etag, NULL, &part);
        size_t n = (size_t)(part.end - part.start);
        struct error err;

        if (code != 200 && code != 206) {
                free(bytes);
                return;
        }
        if (memory_reserve(&req->answer, n, &err)) {
                free(bytes);
                http_fail(req, err.code, &err);
                return;
        }
        memmove(bytes, (char *)bytes + part.start, n);
        request_set_response(req, code, content_type, MHD_create_response_from_buffer(n, bytes, MHD_RESPMEM_MUST_FREE));
        if (!req->response)
                free(bytes);
}

void http_respond_stream(struct http_request *req, const char *content_type, uint64_t size, const char *etag,
                         http_read_body *read, void (*close_state)(void *state), void *state)
{
        struct byte_range part;
        unsigned code = negotiate_range(req, size, etag, NULL, &part);
        struct streamed *s = code == 200 || code == 206 ? malloc(sizeof *s) : NULL;

        if (!s) {
                if (close_state)
                        close_state(state);
                if (!req->answered)
                        http_fail(req, ST_NO_MEMORY, NULL);
                return;
        }
        *s = (struct streamed){ req->connection, read, close_state, state, part.start, part.end };
        request_set_response(
                req, code, content_type,
                MHD_create_response_from_callback(part.end - part.start, KiB(64), streamed_read, s, streamed_close));
        if (!req->response)
                streamed_close(s);
}
