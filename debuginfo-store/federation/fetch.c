/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/federation/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "debuginfo-store/federation/fetch_internal.h"
#include "sandbox/worker.h"

#define FETCH_DATA_BYTES MiB(64) /* of one worker; at most LIMIT_HTTP_WAITING run concurrently */

/* ---- messages of the worker ---- */

static void sanitize_text(char *text, size_t size)
{
        text[size - 1] = '\0';
        for (char *p = text; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = '?';
}

static uint64_t clamp_max(uint64_t value, uint64_t max)
{
        return value < max ? value : max;
}

void fetch_message_sanitize(struct fetch_message *m, uint64_t max_bytes)
{
        struct fetch_response *a = &m->response;

        sanitize_text(a->name, sizeof a->name);
        sanitize_text(m->text, sizeof m->text);
        a->retry_after_s = clamp_max(a->retry_after_s, LIMIT_UPSTREAM_PAUSE_S);
        a->received_bytes = clamp_max(a->received_bytes, max_bytes);
        if (m->type <= FETCH_FAILED)
                return;
        m->type = FETCH_FAILED;
        snprintf(m->text, sizeof m->text, "its worker sent an invalid message");
}

/* ---- the request ---- */

static const char *authorities;
static _Atomic uint64_t time_limit_s = LIMIT_UPSTREAM_S;

void fetch_set_authorities(const char *path)
{
        authorities = path;
}

void fetch_set_time_limit(uint64_t seconds)
{
        atomic_store(&time_limit_s, seconds ? seconds : LIMIT_UPSTREAM_S);
}

const char *fetch_url_redact(const char *url, char ret[static FETCH_URL_TEXT])
{
        const char *scheme = strstr(url, "://");
        const char *host = scheme ? scheme + 3 : url;
        const char *end = host + strcspn(host, "/?#"), *at = memrchr(host, '@', (size_t)(end - host));

        snprintf(ret, FETCH_URL_TEXT, "%.*s%s", (int)(host - url), url, at ? at + 1 : host);
        return ret;
}

static uint64_t get_max_bytes(const struct fetch_request *request)
{
        return request->max_bytes ? request->max_bytes : LIMIT_OBJECT_BYTES;
}

/* Reads the worker's messages. */
struct listener {
        const struct fetch_request *request;
        struct fetch_message last;
};

static void read_messages(void *context, int fd)
{
        struct listener *l = context;
        struct fetch_message m;

        while (read(fd, &m, sizeof m) == (ssize_t)sizeof m) {
                fetch_message_sanitize(&m, get_max_bytes(l->request));
                l->last = m;
                if (m.type == FETCH_PROGRESS && l->request->progress)
                        l->request->progress(l->request->context, &m.response);
        }
}

static enum status convert_message(const struct fetch_request *request, const struct fetch_message *m,
                                   struct error *err)
{
        char hex[BUILD_ID_HEX_MAX], url[FETCH_URL_TEXT];
        const char *what = request->id ? build_id_hex(request->id, hex) : request->resource;

        fetch_url_redact(request->url, url);
        switch (m->type) {
        case FETCH_FOUND:
                return ST_OK;
        case FETCH_MISSING:
                return error_set(err, ST_NOT_FOUND, "%s has no %.60s%s%s", url, request->resource,
                                 request->id ? " for build-id " : "", request->id ? hex : "");
        case FETCH_TOO_BIG:
                return error_set(err, ST_TOO_BIG, "cannot fetch %.130s from %s: %s", what, url, m->text);
        default:
                return error_set(err, ST_BUSY, "cannot fetch %.130s from %s: %s", what, url,
                                 m->text[0] ? m->text : "no answer");
        }
}

/* Pass the URL in a memory file rather than an argument: arguments are visible to all users, and a URL may contain a
 * password. The second line is the header. */
static enum status write_url_file(const char *url, const char *header, int *ret, struct error *err)
{
        _cleanup_close_ int fd = memfd_create("upstream", MFD_CLOEXEC);

        if (fd < 0 || dprintf(fd, "%s%s%s", url, header ? "\n" : "", header ? header : "") < 0)
                return error_os(err, errno, "cannot pass an upstream's URL to its worker");
        *ret = steal_fd(&fd);
        return ST_OK;
}

enum status fetch_object(const struct fetch_request *request, int out, const atomic_bool *cancel,
                         struct fetch_response *ret, struct error *err)
{
        char hex[BUILD_ID_HEX_MAX], seconds[24], total[24], bytes[24], url[FETCH_URL_TEXT];
        const uint64_t total_s = request->total_s ? request->total_s : atomic_load(&time_limit_s);
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int heard = -1, said = -1, upstream = -1, ca = -1;
        struct listener listener = { .request = request, .last.type = FETCH_FAILED };
        const char *args[] = { "fetch", NULL, seconds, total, bytes, request->forwarded_for, NULL };
        struct worker_job job = {
                .args = args,
                .fd_count = 4,
                .is_fetch = true,
                .data_bytes = FETCH_DATA_BYTES,
                .wall_s = total_s + 10,
                .cancel = cancel,
                .serve = read_messages,
                .serve_context = &listener,
        };
        int fds[2];
        enum status st;

        memset(ret, 0, sizeof *ret);
        if (asprintf(&path, "%s%s%s%s", request->id ? "buildid/" : "",
                     request->id ? build_id_hex(request->id, hex) : "", request->id ? "/" : "",
                     request->resource) < 0) {
                path = NULL;
                return error_no_memory(err);
        }
        args[1] = path;
        if (authorities) {
                ca = open(authorities, O_RDONLY | O_CLOEXEC);
                if (ca < 0) {
                        error_os(err, errno, "cannot read the certificates in '%s'", authorities);
                        return ST_BUSY;
                }
        }
        st = write_url_file(request->url, request->header, &upstream, err);
        if (st)
                return st;
        if (pipe2(fds, O_CLOEXEC))
                return error_os(err, errno, "cannot create a pipe");
        heard = fds[0];
        said = fds[1];
        fcntl(heard, F_SETFL, O_NONBLOCK);
        job.fds = (const int[]){ out, said, upstream, ca };
        job.serve_fd = heard;
        snprintf(seconds, sizeof seconds, "%" PRIu64, request->timeout_s);
        snprintf(total, sizeof total, "%" PRIu64, total_s);
        snprintf(bytes, sizeof bytes, "%" PRIu64, get_max_bytes(request));
        st = worker_run(&job, err);
        read_messages(&listener, heard);
        *ret = listener.last.response;
        if (st) {
                error_prefix(err, ST_BUSY, "cannot query %s for %.130s", fetch_url_redact(request->url, url), path);
                return ST_BUSY;
        }
        return convert_message(request, &listener.last, err);
}
