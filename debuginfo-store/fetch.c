/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "debuginfo-store/fetch_internal.h"
#include "sandbox/worker.h"

static const char *authorities;

void fetch_set_authorities(const char *path)
{
        authorities = path;
}

const char *fetch_url_text(const char *url, char ret[static FETCH_URL_TEXT])
{
        const char *scheme = strstr(url, "://");
        const char *host = scheme ? scheme + 3 : url;
        const char *end = host + strcspn(host, "/?#"), *at = memrchr(host, '@', (size_t)(end - host));

        snprintf(ret, FETCH_URL_TEXT, "%.*s%s", (int)(host - url), url, at ? at + 1 : host);
        return ret;
}

static uint64_t max_bytes(const struct fetch_question *q)
{
        return q->max_bytes ? q->max_bytes : LIMIT_OBJECT_BYTES;
}

/* What the worker has said so far. */
struct listener {
        const struct fetch_question *question;
        struct fetch_message last;
};

static void listen_to(void *context, int fd)
{
        struct listener *l = context;
        struct fetch_message m;

        while (read(fd, &m, sizeof m) == (ssize_t)sizeof m) {
                fetch_message_check(&m, max_bytes(l->question));
                l->last = m;
                if (m.word == FETCH_GROWS && l->question->progress)
                        l->question->progress(l->question->context, &m.answer);
        }
}

static enum status judge(const struct fetch_question *q, const struct fetch_message *m, struct error *err)
{
        char hex[BUILD_ID_HEX_MAX], url[FETCH_URL_TEXT];
        const char *what = q->id ? build_id_hex(q->id, hex) : q->part;

        fetch_url_text(q->url, url);
        switch (m->word) {
        case FETCH_FOUND:
                return ST_OK;
        case FETCH_MISSING:
                return error_set(err, ST_NOT_FOUND, "%s has no %.60s%s%s", url, q->part, q->id ? " for build-id " : "", q->id ? hex : "");
        case FETCH_TOO_BIG:
                return error_set(err, ST_TOO_BIG, "cannot fetch %.130s from %s: %s", what, url, m->text);
        default:
                return error_set(err, ST_BUSY, "cannot fetch %.130s from %s: %s", what, url, m->text[0] ? m->text : "no answer");
        }
}

/* As a file, since arguments are for everybody on the host to see, and a URL may have a password: the header is its second line. */
static enum status hand_over(const char *url, const char *header, int *ret, struct error *err)
{
        _cleanup_close_ int fd = memfd_create("upstream", MFD_CLOEXEC);

        if (fd < 0 || dprintf(fd, "%s%s%s", url, header ? "\n" : "", header ? header : "") < 0)
                return error_os(err, errno, "cannot hand an upstream's URL to its worker");
        *ret = steal_fd(&fd);
        return ST_OK;
}

enum status fetch_object(const struct fetch_question *q, int out, const atomic_bool *cancel, struct fetch_answer *ret,
                         struct error *err)
{
        char hex[BUILD_ID_HEX_MAX], seconds[24], total[24], bytes[24], url[FETCH_URL_TEXT];
        const uint64_t total_s = q->total_s ? q->total_s : LIMIT_UPSTREAM_S;
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int heard = -1, said = -1, upstream = -1, ca = -1;
        struct listener listener = { .question = q, .last.word = FETCH_FAILED };
        const char *args[] = { "fetch", NULL, seconds, total, bytes, q->forwarded_for, NULL };
        struct worker_job job = {
                .args = args,
                .fd_count = 4,
                .wall_s = total_s + 10,
                .cancel = cancel,
                .serve = listen_to,
                .serve_context = &listener,
        };
        int fds[2];
        enum status st;

        memset(ret, 0, sizeof *ret);
        if (asprintf(&path, "%s%s%s%s", q->id ? "buildid/" : "", q->id ? build_id_hex(q->id, hex) : "", q->id ? "/" : "", q->part) < 0) {
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
        st = hand_over(q->url, q->header, &upstream, err);
        if (st)
                return st;
        if (pipe2(fds, O_CLOEXEC))
                return error_os(err, errno, "cannot make a pipe");
        heard = fds[0];
        said = fds[1];
        fcntl(heard, F_SETFL, O_NONBLOCK);
        job.fds = (const int[]){ out, said, upstream, ca };
        job.serve_fd = heard;
        snprintf(seconds, sizeof seconds, "%" PRIu64, q->timeout_s);
        snprintf(total, sizeof total, "%" PRIu64, total_s);
        snprintf(bytes, sizeof bytes, "%" PRIu64, max_bytes(q));
        st = worker_run(&job, err);
        listen_to(&listener, heard);
        *ret = listener.last.answer;
        if (st) {
                error_prefix(err, ST_BUSY, "cannot ask %s for %.130s", fetch_url_text(q->url, url), path);
                return ST_BUSY;
        }
        return judge(q, &listener.last, err);
}
