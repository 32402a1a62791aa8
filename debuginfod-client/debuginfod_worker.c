/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs libdebuginfod for a debuginfo_fetcher.
 *
 * The process may use Internet sockets, read the files of the resolver and of TLS, and write to the cache directory. It
 * may also read $DEBUGINFOD_HEADERS_FILE and the directories of file:// URLs, since libdebuginfod supports both.
 * Everything that the variables of debuginfod_find_debuginfo(3) control is left to the library.
 */
#include "debuginfod-client/debuginfod_worker.h"

#include <elfutils/debuginfod.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "debuginfod-client/debuginfod_protocol.h"
#include "sandbox/worker.h"

#define READABLE_MAX 16
#define FILE_SCHEME "file://"

struct debuginfod_session {
        const char *cache;
        bool is_cancelled; /* the current request was cancelled */
        bool is_orphaned;  /* the fetcher has closed the socket */
};

/* ---- confinement ---- */

struct readable_paths {
        char *urls; /* owned copy of $DEBUGINFOD_URLS that the paths point into */
        const char *paths[READABLE_MAX + 2];
};

static void list_readable_paths(struct readable_paths *r)
{
        const char *headers = getenv(DEBUGINFOD_HEADERS_FILE_ENV_VAR), *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);
        char *rest = NULL;
        size_t count = 0;

        r->urls = strdup(urls ? urls : "");
        for (char *url = r->urls ? strtok_r(r->urls, " ", &rest) : NULL; url && count < READABLE_MAX;
             url = strtok_r(NULL, " ", &rest))
                if (strncmp(url, FILE_SCHEME, strlen(FILE_SCHEME)) == 0)
                        r->paths[count++] = url + strlen(FILE_SCHEME);
        if (headers && headers[0] == '/')
                r->paths[count++] = headers;
        r->paths[count] = NULL;
}

static enum status confine_to_cache(const char *cache, struct error *err)
{
        struct readable_paths readable = { 0 };
        const struct worker_files files = { .writable = cache, .readable = readable.paths };
        enum status st;

        list_readable_paths(&readable);
        st = worker_confine_with_files(&files, err);
        free(readable.urls);
        return st;
}

/* ---- requests ---- */

static void send_worker_reply(struct debuginfod_session *s, const struct debuginfod_reply *reply)
{
        if (send(DEBUGINFOD_WORKER_SOCKET, reply, sizeof *reply, MSG_NOSIGNAL) != (ssize_t)sizeof *reply)
                s->is_orphaned = true;
}

/* During a request only a cancel, or the end of the fetcher, arrives. */
static void poll_cancel(struct debuginfod_session *s)
{
        struct debuginfod_request request;
        ssize_t n = recv(DEBUGINFOD_WORKER_SOCKET, &request, sizeof request, MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                s->is_orphaned = true;
        else if (n == (ssize_t)sizeof request && request.packet == DEBUGINFOD_CANCEL)
                s->is_cancelled = true;
}

static void copy_url(debuginfod_client *client, char *ret, size_t size)
{
        const char *url = debuginfod_get_url(client);

        snprintf(ret, size, "%s", url ? url : "");
}

/* debuginfod_progressfn_t: nonzero aborts the transfer. The numerator counts iterations while the total is unknown. */
static int send_transfer_progress(debuginfod_client *client, long numerator, long denominator)
{
        struct debuginfod_session *s = debuginfod_get_user_data(client);
        struct debuginfod_reply reply = { .packet = DEBUGINFOD_PROGRESS };

        poll_cancel(s);
        if (s->is_cancelled || s->is_orphaned)
                return 1;
        if (numerator > 0 && denominator > 0) {
                reply.done_bytes = (uint64_t)numerator;
                reply.total_bytes = (uint64_t)denominator;
        }
        copy_url(client, reply.url, sizeof reply.url);
        send_worker_reply(s, &reply);
        return s->is_orphaned;
}

/* The path relative to the cache; false if it is not below it. */
static bool strip_cache_path(const struct debuginfod_session *s, const char *path, char *ret, size_t size)
{
        size_t n = strlen(s->cache);

        return strncmp(path, s->cache, n) == 0 && path[n] == '/' &&
               (size_t)snprintf(ret, size, "%s", path + n + 1) < size;
}

static void find_debuginfo(struct debuginfod_session *s, debuginfod_client *client, const char *build_id)
{
        struct debuginfod_reply reply = { .packet = DEBUGINFOD_DONE };
        _cleanup_free_ char *path = NULL;
        int fd;

        s->is_cancelled = false;
        fd = debuginfod_find_debuginfo(client, (const unsigned char *)build_id, 0, &path);
        if (fd >= 0) {
                close(fd);
                reply.error = strip_cache_path(s, path, reply.path, sizeof reply.path) ? 0 : ENAMETOOLONG;
        } else {
                reply.error = s->is_cancelled ? ECANCELED : -fd;
        }
        copy_url(client, reply.url, sizeof reply.url);
        send_worker_reply(s, &reply);
}

static void serve_requests(struct debuginfod_session *s, debuginfod_client *client)
{
        struct debuginfod_request request;
        ssize_t n;

        while (!s->is_orphaned) {
                n = recv(DEBUGINFOD_WORKER_SOCKET, &request, sizeof request, 0);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n != (ssize_t)sizeof request)
                        return;
                request.build_id[sizeof request.build_id - 1] = 0;
                if (request.packet == DEBUGINFOD_FIND)
                        find_debuginfo(s, client, request.build_id);
        }
}

int debuginfod_worker(int argc, char **argv)
{
        struct debuginfod_session s = { .cache = argc == 2 ? argv[1] : NULL };
        debuginfod_client *client;
        struct error err;
        enum status st = ST_OK;

        if (!s.cache || s.cache[0] != '/' || setenv(DEBUGINFOD_CACHE_PATH_ENV_VAR, s.cache, 1))
                st = error_set(&err, ST_USAGE, "worker debuginfod requires the path of a cache");
        if (!st)
                st = confine_to_cache(s.cache, &err);
        if (st) {
                fprintf(stderr, "%s\n", err.text);
                return worker_exit_code(st);
        }
        client = debuginfod_begin();
        if (!client) {
                fprintf(stderr, "cannot initialize libdebuginfod\n");
                return worker_exit_code(ST_OS);
        }
        debuginfod_set_user_data(client, &s);
        debuginfod_set_progressfn(client, send_transfer_progress);
        if (fcntl(DEBUGINFOD_WORKER_VERBOSE, F_GETFD) >= 0)
                debuginfod_set_verbose_fd(client, DEBUGINFOD_WORKER_VERBOSE);
        serve_requests(&s, client);
        debuginfod_end(client);
        return 0;
}
