/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fetcher against a worker that a response has compromised. This program is its own worker, which does not use
 * libdebuginfod; $CAIRN_TEST_REPLY selects its behavior. tests/e2e/debuginfo/debuginfod-cache.t tests the real worker.
 */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/file.h"
#include "debuginfod-client/debuginfo_fetcher.h"
#include "debuginfod-client/debuginfod_protocol.h"
#include "tests/support/suite.h"

static const struct build_id id = { .size = 4, .bytes = { 1, 2, 3, 4 } };
static char directory[] = "/tmp/cairn-fetcher-XXXXXX";
static atomic_bool cancel;
static unsigned progress_calls;

static void count_progress(void *context, const struct debuginfo_progress *p)
{
        (void)context;
        ck_assert_str_eq(p->name, "program");
        ck_assert_str_eq(p->url, "https://host/x"); /* without user and password */
        progress_calls++;
        if (strcmp(getenv("CAIRN_TEST_REPLY"), "hang:") == 0)
                atomic_store(&cancel, true);
}

static enum status fetch_with_reply(const char *reply, int *ret, struct error *err)
{
        const struct debuginfo_fetcher_options options = { .cancel = &cancel, .progress = count_progress };
        struct debuginfo_fetcher *f;
        enum status st;

        setenv("CAIRN_TEST_REPLY", reply, 1);
        ck_assert_int_eq(debuginfo_fetcher_create(&options, &f, err), ST_OK);
        st = debuginfo_fetch(f, &id, "/usr/bin/program", ret, err);
        debuginfo_fetcher_destroy(f);
        return st;
}

/* Also a link to a directory and one to a file in the cache. */
static bool create_cache(void)
{
        char path[64];
        int fd;

        if (!mkdtemp(directory) || setenv("DEBUGINFOD_CACHE_PATH", directory, 1) ||
            setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1))
                return false;
        snprintf(path, sizeof path, "%s/link", directory);
        if (symlink("/etc", path))
                return false;
        snprintf(path, sizeof path, "%s/below", directory);
        if (mkdir(path, 0700))
                return false;
        snprintf(path, sizeof path, "%s/below/link", directory);
        if (symlink("/etc/passwd", path))
                return false;
        snprintf(path, sizeof path, "%s/below/debuginfo", directory);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        return fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0;
}

START_TEST(a_file_below_the_cache_is_opened)
{
        struct error err = { .text = "" };
        int fd = -1;
        char byte;

        ck_assert_msg(fetch_with_reply("below/debuginfo", &fd, &err) == ST_OK, "%s", err.text);
        ck_assert(read(fd, &byte, 1) == 1 && byte == 'x');
        close(fd);
        ck_assert_uint_gt(progress_calls, 0);
}
END_TEST

START_TEST(a_path_outside_of_the_cache_is_refused)
{
        static const char *const paths[] = { "/etc/passwd",
                                             "../etc/passwd",
                                             "below/../below/debuginfo",
                                             "link/passwd",
                                             "below/link",
                                             "below",
                                             "",
                                             "below//debuginfo",
                                             "./below/debuginfo",
                                             "below/debuginfo/" };
        struct error err = { .text = "" };
        int fd = -1;

        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
                ck_assert_msg(fetch_with_reply(paths[i], &fd, &err) == ST_BUSY, "'%s'", paths[i]);
                ck_assert_int_eq(fd, -1);
        }
}
END_TEST

START_TEST(miss_is_distinguished_from_failure)
{
        struct error err = { .text = "" };
        int fd = -1;

        ck_assert_int_eq(fetch_with_reply("errno:2", &fd, &err), ST_NOT_FOUND);
        ck_assert_int_eq(fetch_with_reply("errno:111", &fd, &err), ST_BUSY);
        ck_assert_msg(strstr(err.text, "Connection refused") != NULL, "%s", err.text);
}
END_TEST

START_TEST(crashed_or_misbehaving_worker_fails_one_request)
{
        struct error err = { .text = "" };
        int fd = -1;

        ck_assert_int_eq(fetch_with_reply("crash:", &fd, &err), ST_BUSY);
        ck_assert_int_eq(fetch_with_reply("short:", &fd, &err), ST_BUSY);
        ck_assert_int_eq(fetch_with_reply("below/debuginfo", &fd, &err), ST_OK);
        close(fd);
}
END_TEST

START_TEST(cancellation_kills_unresponsive_worker)
{
        struct error err = { .text = "" };
        int fd = -1;

        atomic_store(&cancel, false);
        ck_assert_int_eq(fetch_with_reply("hang:", &fd, &err), ST_BUSY); /* its progress callback sets cancel */
        ck_assert_msg(strstr(err.text, "cancelled") != NULL, "%s", err.text);
        ck_assert_int_eq(fetch_with_reply("below/debuginfo", &fd, &err), ST_BUSY);
        atomic_store(&cancel, false);
}
END_TEST

/* ---- the worker ---- */

static int serve_reply(const char *mode)
{
        struct debuginfod_reply reply = { .packet = DEBUGINFOD_PROGRESS, .url = "https://user:secret@host/x" };
        struct debuginfod_request request;

        if (recv(DEBUGINFOD_WORKER_SOCKET, &request, sizeof request, 0) != (ssize_t)sizeof request)
                return 1;
        if (strcmp(mode, "crash:") == 0)
                abort();
        send(DEBUGINFOD_WORKER_SOCKET, &reply, strcmp(mode, "short:") == 0 ? 5 : sizeof reply, MSG_NOSIGNAL);
        if (strcmp(mode, "hang:") == 0)
                pause();
        reply.packet = DEBUGINFOD_DONE;
        if (strncmp(mode, "errno:", 6) == 0)
                reply.error = (int)strtol(mode + 6, NULL, 10);
        else
                snprintf(reply.path, sizeof reply.path, "%s", mode);
        send(DEBUGINFOD_WORKER_SOCKET, &reply, sizeof reply, MSG_NOSIGNAL);
        return 0;
}

int main(int argc, char **argv)
{
        const TTest *const tests[] = {
                a_file_below_the_cache_is_opened,       a_path_outside_of_the_cache_is_refused,
                miss_is_distinguished_from_failure,     crashed_or_misbehaving_worker_fails_one_request,
                cancellation_kills_unresponsive_worker,
        };
        int code;

        if (argc > 1 && strcmp(argv[1], "worker") == 0)
                return serve_reply(getenv("CAIRN_TEST_REPLY"));
        if (!create_cache())
                return 1;
        code = suite_run("debuginfo_fetcher", tests, sizeof tests / sizeof *tests);
        (void)!file_remove_tree(directory, NULL);
        return code;
}
