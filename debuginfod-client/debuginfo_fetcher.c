/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fetcher's side of the worker.
 *
 * worker_run() waits for its process, so it runs in a thread; requests and replies are sent over a socket. The thread
 * closes the worker's end of the socket when the process has exited, which the fetcher sees as end of file. A response
 * may have compromised the worker: the path that it returns is resolved below the cache, without symbolic links.
 */
#include "debuginfod-client/debuginfo_fetcher.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/files/file.h"
#include "common/text/utf8.h"
#include "debuginfod-client/debuginfod_protocol.h"
#include "sandbox/worker.h"

#define POLL_MS 100          /* latency of a cancel */
#define CANCEL_NS 3000000000 /* after this time a worker that does not react to a cancel is killed */
#define WORKER_CPU_S 3600
#define WORKER_WALL_S (7 * 86400) /* it serves a whole recording, or an agent */
#define CRASHES_MAX 3

struct debuginfo_fetcher {
        struct debuginfo_fetcher_options options;
        struct debuginfo_fetcher_stats stats;
        char cache[PATH_MAX]; /* absolute; "" until known */
        int cache_fd;
        unsigned crashes;
        /* The worker; socket -1: not running. */
        int socket, worker_socket, verbose;
        pthread_t thread;
        atomic_bool is_killed;
        enum status worker_status; /* valid after the thread has ended, like the next member */
        struct error worker_error;
};

bool debuginfo_fetcher_is_configured(void)
{
        const char *urls = getenv("DEBUGINFOD_URLS");

        return urls && urls[strspn(urls, " \t\n")];
}

enum status debuginfo_fetcher_create(const struct debuginfo_fetcher_options *options, struct debuginfo_fetcher **ret,
                                     struct error *err)
{
        struct debuginfo_fetcher *f = calloc(1, sizeof *f);

        if (!f)
                return error_no_memory(err);
        f->options = *options;
        f->cache_fd = f->socket = f->worker_socket = f->verbose = -1;
        *ret = f;
        return ST_OK;
}

const struct debuginfo_fetcher_stats *debuginfo_fetcher_stats(const struct debuginfo_fetcher *f)
{
        return &f->stats;
}

const char *debuginfo_fetcher_cache_path(const struct debuginfo_fetcher *f)
{
        return f->cache;
}

/* ---- the cache directory ---- */

static const char *nonempty_env(const char *name)
{
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

/* Chosen like libdebuginfod does (debuginfod_find_debuginfo(3), "CACHE"); missing directories are created. */
static enum status choose_cache_path(char ret[static PATH_MAX], struct error *err)
{
        const char *own = nonempty_env("DEBUGINFOD_CACHE_PATH"), *xdg = nonempty_env("XDG_CACHE_HOME"),
                   *home = getenv("HOME");
        char parent[PATH_MAX];
        int n;

        if (own) {
                n = snprintf(ret, PATH_MAX, "%s", own);
        } else {
                n = snprintf(ret, PATH_MAX, "%s/.debuginfod_client_cache", home ? home : "/");
                if (n >= PATH_MAX || access(ret, F_OK) != 0) {
                        n = xdg ? snprintf(parent, sizeof parent, "%s", xdg)
                                : snprintf(parent, sizeof parent, "%s/.cache", home ? home : "/");
                        if (n < PATH_MAX && mkdir(parent, 0700) < 0 && errno != EEXIST)
                                return error_os(err, errno, "cannot create '%s'", parent);
                        n = n < PATH_MAX ? snprintf(ret, PATH_MAX, "%s/debuginfod_client", parent) : n;
                }
        }
        if (n >= PATH_MAX)
                return error_set(err, ST_USAGE, "the path of the debuginfod cache is too long");
        return mkdir(ret, ACCESSPERMS) < 0 && errno != EEXIST ? error_os(err, errno, "cannot create '%s'", ret) : ST_OK;
}

static enum status open_fetch_cache(struct debuginfo_fetcher *f, struct error *err)
{
        char path[PATH_MAX];
        enum status st = f->cache_fd < 0 ? choose_cache_path(path, err) : ST_OK;

        if (st || f->cache_fd >= 0)
                return st;
        if (!realpath(path, f->cache))
                return error_os(err, errno, "cannot resolve '%s'", path);
        f->cache_fd = open(f->cache, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return f->cache_fd < 0 ? error_os(err, errno, "cannot open '%s'", f->cache) : ST_OK;
}

/* Open component by component, without following symbolic links. -1 with errno. */
static int open_below_cache(const struct debuginfo_fetcher *f, char *path)
{
        _cleanup_close_ int directory = -1;
        struct stat s;
        char *rest = path;
        int fd = -1;

        for (char *part; (part = strsep(&rest, "/"));) {
                if (!*part || strcmp(part, ".") == 0 || strcmp(part, "..") == 0) {
                        errno = EINVAL;
                        return -1;
                }
                fd = openat(directory < 0 ? f->cache_fd : directory, part,
                            O_CLOEXEC | O_NOFOLLOW | (rest ? O_PATH | O_DIRECTORY : O_RDONLY | O_NONBLOCK | O_NOCTTY));
                if (fd < 0)
                        return -1;
                if (!rest)
                        break;
                cleanup_close(&directory);
                directory = fd;
                fd = -1;
        }
        if (fd >= 0 && (fstat(fd, &s) < 0 || !S_ISREG(s.st_mode))) {
                close(fd);
                errno = EINVAL;
                return -1;
        }
        return fd;
}

/* ---- the worker ---- */

static void *run_debuginfod_worker(void *context)
{
        struct debuginfo_fetcher *f = context;
        const char *const args[] = { "debuginfod", f->cache, NULL };
        const struct worker_job job = { .args = args,
                                        .fds = (const int[]){ f->worker_socket, f->verbose },
                                        .fd_count = 2,
                                        .cpu_s = WORKER_CPU_S,
                                        .wall_s = WORKER_WALL_S,
                                        .keeps_user = true,
                                        .cancel = &f->is_killed };

        f->worker_status = worker_run(&job, &f->worker_error);
        close(f->worker_socket);
        f->worker_socket = -1;
        return NULL;
}

static enum status start_fetch_worker(struct debuginfo_fetcher *f, struct error *err)
{
        int sockets[2], e;

        assert(f->socket < 0 && f->cache_fd >= 0);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return error_os(err, errno, "cannot create a socket for the debuginfod worker");
        f->socket = sockets[0];
        f->worker_socket = sockets[1];
        f->verbose = getenv("DEBUGINFOD_VERBOSE") ? STDERR_FILENO : -1;
        atomic_store(&f->is_killed, false);
        e = pthread_create(&f->thread, NULL, run_debuginfod_worker, f);
        if (e) {
                close(sockets[0]);
                close(sockets[1]);
                f->socket = f->worker_socket = -1;
                return error_os(err, e, "cannot start a thread");
        }
        return ST_OK;
}

/* Closing the socket ends an idle worker. */
static void stop_fetch_worker(struct debuginfo_fetcher *f, bool kill)
{
        if (f->socket < 0)
                return;
        if (kill)
                atomic_store(&f->is_killed, true);
        close(f->socket);
        f->socket = -1;
        pthread_join(f->thread, NULL);
}

void debuginfo_fetcher_destroy(struct debuginfo_fetcher *f)
{
        if (!f)
                return;
        stop_fetch_worker(f, false);
        cleanup_close(&f->cache_fd);
        free(f);
}

/* ---- one request ---- */

static bool is_fetch_cancelled(const struct debuginfo_fetcher *f)
{
        return f->options.cancel && atomic_load(f->options.cancel);
}

/* The first of these URLs, without user and password. */
static void mask_url(const char *url, char *ret, size_t size)
{
        const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url, *end = host + strcspn(host, "/?# "),
                   *at = memrchr(host, '@', (size_t)(end - host));

        at = at ? at + 1 : host;
        snprintf(ret, size, "%.*s%.*s", (int)(host - url), url, (int)strcspn(at, " "), at);
        for (char *c = ret; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = '?';
}

static void report_fetch_progress(struct debuginfo_fetcher *f, const char *name, const struct debuginfod_reply *reply,
                                  bool is_finished)
{
        char url[128];
        const struct debuginfo_progress progress = { .name = name,
                                                     .url = url,
                                                     .done_bytes = reply->done_bytes,
                                                     .total_bytes = reply->total_bytes,
                                                     .is_finished = is_finished };

        mask_url(reply->url, url, sizeof url);
        if (f->options.progress)
                f->options.progress(f->options.context, &progress);
}

static void send_fetch_cancel(struct debuginfo_fetcher *f)
{
        const struct debuginfod_request request = { .packet = DEBUGINFOD_CANCEL };

        (void)!send(f->socket, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* False if the worker has exited, or does not react to a cancel. */
static bool receive_fetch_reply(struct debuginfo_fetcher *f, const char *name, struct debuginfod_reply *ret)
{
        struct pollfd polled = { .fd = f->socket, .events = POLLIN };
        int64_t cancelled_ns = 0;
        bool is_shown = false;

        for (;;) {
                ssize_t n;

                if (is_fetch_cancelled(f) && !cancelled_ns) {
                        cancelled_ns = monotonic_ns();
                        send_fetch_cancel(f);
                }
                if (cancelled_ns && monotonic_ns() - cancelled_ns > CANCEL_NS)
                        return false;
                if (poll(&polled, 1, POLL_MS) <= 0)
                        continue;
                n = recv(f->socket, ret, sizeof *ret, 0);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n != (ssize_t)sizeof *ret)
                        return false;
                ret->path[sizeof ret->path - 1] = 0;
                ret->url[sizeof ret->url - 1] = 0;
                if (ret->packet == DEBUGINFOD_DONE) {
                        if (is_shown)
                                report_fetch_progress(f, name, ret, true);
                        return true;
                }
                is_shown = true;
                report_fetch_progress(f, name, ret, false);
        }
}

static enum status handle_fetch_reply(struct debuginfo_fetcher *f, const char *name, struct debuginfod_reply *reply,
                                      int *ret, struct error *err)
{
        const char *urls = getenv("DEBUGINFOD_URLS");
        char url[128], servers[160] = "";
        int fd;

        mask_url(reply->url[0] ? reply->url : urls ? urls : "", url, sizeof url);
        if (url[0])
                snprintf(servers, sizeof servers, " from %s", url);
        switch (reply->error) {
        case 0:
                fd = open_below_cache(f, reply->path);
                if (fd < 0)
                        return error_os(err, errno, "cannot open the debuginfo of %s in '%.100s'", name, f->cache);
                f->stats.downloaded += reply->url[0] != 0;
                f->stats.cached += reply->url[0] == 0;
                *ret = fd;
                return ST_OK;
        case ENOENT:
                f->stats.missing++;
                return error_set(err, ST_NOT_FOUND, "no debuginfod server has the debuginfo of %s", name);
        case ECANCELED:
                f->stats.failed++;
                return error_set(err, ST_BUSY, "fetching the debuginfo of %s was cancelled", name);
        default:
                f->stats.failed++;
                return error_set(err, ST_BUSY, "cannot fetch the debuginfo of %s%s: %s", name, servers,
                                 strerror(reply->error));
        }
}

static enum status ask_worker(struct debuginfo_fetcher *f, const struct build_id *id, const char *name, int *ret,
                              struct error *err)
{
        struct debuginfod_request request = { .packet = DEBUGINFOD_FIND };
        struct debuginfod_reply reply;
        enum status st = open_fetch_cache(f, err);

        if (!st && f->crashes >= CRASHES_MAX)
                st = error_set(err, ST_BUSY, "the debuginfod worker failed %d times", CRASHES_MAX);
        if (!st && f->socket < 0)
                st = start_fetch_worker(f, err);
        if (st)
                return st;
        build_id_hex(id, request.build_id);
        if (send(f->socket, &request, sizeof request, MSG_NOSIGNAL) == (ssize_t)sizeof request &&
            receive_fetch_reply(f, name, &reply))
                return handle_fetch_reply(f, name, &reply, ret, err);
        stop_fetch_worker(f, true);
        f->stats.failed++;
        if (is_fetch_cancelled(f))
                return error_set(err, ST_BUSY, "fetching the debuginfo of %s was cancelled", name);
        f->crashes++;
        return error_set(err, ST_BUSY, "cannot fetch the debuginfo of %s: %s", name,
                         f->worker_status ? f->worker_error.text : "the worker exited");
}

enum status debuginfo_fetch(struct debuginfo_fetcher *f, const struct build_id *id, const char *name, int *ret,
                            struct error *err)
{
        const char *shown = *name ? PRINTABLE(path_base(name)) : "an object";
        struct error reason = { .text = "" };
        enum status st;

        assert(ret && id->size <= BUILD_ID_MAX);
        if (id->size < 2)
                return error_set(err, ST_NOT_FOUND, "%s has no build-id", shown);
        if (is_fetch_cancelled(f))
                return error_set(err, ST_BUSY, "fetching debuginfo was cancelled");
        st = ask_worker(f, id, shown, ret, &reason);
        if (!st)
                return ST_OK;
        if (st != ST_NOT_FOUND && !f->stats.failure[0])
                snprintf(f->stats.failure, sizeof f->stats.failure, "%s", reason.text);
        if (err)
                *err = reason;
        return st == ST_NOT_FOUND ? st : ST_BUSY;
}
