/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/fetch.h"

#include <elfutils/debuginfod.h>
#include <string.h>
#include <sys/mman.h>

#include "common/file.h"
#include "common/limits.h"
#include "common/options.h"
#include "debuginfo-store/forwarded.h"
#include "sandbox/worker.h"

/* The worker answers with one byte and a text. */
#define ANSWER_FOUND 'f'
#define ANSWER_MISSING 'm'
#define ANSWER_FAILED 'e'

enum status fetch_object(const struct fetch_question *question, int out, const atomic_bool *cancel, struct error *err)
{
        const char *url = question->url, *kind = object_kind_name(question->kind);
        char hex[BUILD_ID_HEX_MAX], seconds[24], text[200] = "";
        _cleanup_close_ int answer = memfd_create("fetch-answer", MFD_CLOEXEC);
        const char *args[] = { "fetch", url, build_id_hex(question->id, hex), kind, seconds,
                               question->forwarded_for, NULL };
        struct worker_job job = {
                .args = args,
                .fds = (const int[]){ out, answer },
                .fd_count = 2,
                .wall_s = question->timeout_s + 10,
                .cancel = cancel,
        };
        ssize_t n;
        enum status st;

        if (answer < 0)
                return error_os(err, errno, "cannot make a memory file");
        snprintf(seconds, sizeof seconds, "%llu", (unsigned long long)question->timeout_s);
        st = worker_run(&job, err);
        if (st) {
                error_prefix(err, ST_BUSY, "cannot ask %s for %s", url, hex);
                return ST_BUSY;
        }
        n = pread(answer, text, sizeof text - 1, 0);
        if (n > 0 && text[0] == ANSWER_FOUND)
                return ST_OK;
        if (n > 0 && text[0] == ANSWER_MISSING)
                return error_set(err, ST_NOT_FOUND, "%s has no %s for build-id %s", url, kind, hex);
        return error_set(err, ST_BUSY, "cannot fetch %s from %s: %s", hex, url, n > 1 ? text + 1 : "no answer");
}

static enum status answer_with(int answer, char code, const char *text, struct error *err)
{
        char line[200];
        int n = snprintf(line, sizeof line, "%c%s", code, text);

        return file_write_all(answer, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1, "answer", err);
}

/* libdebuginfod leaves the position wherever its download ended, so it is not used. */
static enum status copy_out(int from, int out, struct error *err)
{
        _cleanup_free_ char *bytes = malloc(MiB(1));
        uint64_t size = 0;

        if (!bytes)
                return error_no_memory(err);
        for (;;) {
                ssize_t n = pread(from, bytes, MiB(1), (off_t)size);
                enum status st;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read the fetched file");
                if (n == 0)
                        return ST_OK;
                size += (uint64_t)n;
                if (size > LIMIT_OBJECT_BYTES)
                        return error_set(err, ST_TOO_BIG, "the upstream's file is larger than %zu bytes",
                                         (size_t)LIMIT_OBJECT_BYTES);
                st = file_write_all(out, bytes, (size_t)n, "fetched file", err);
                if (st)
                        return st;
        }
}

/* libdebuginfod takes its settings from the environment; each worker makes one call, so its environment is its own. */
static enum status configure(const char *url, const char *seconds, const char *cache, struct error *err)
{
        if (setenv("DEBUGINFOD_URLS", url, 1) || setenv("DEBUGINFOD_CACHE_PATH", cache, 1) ||
            setenv("DEBUGINFOD_TIMEOUT", seconds, 1) || setenv("DEBUGINFOD_MAXTIME", seconds, 1) ||
            setenv("DEBUGINFOD_RETRY_LIMIT", "0", 1) || unsetenv("DEBUGINFOD_PROGRESS") ||
            unsetenv("DEBUGINFOD_HEADERS_FILE"))
                return error_no_memory(err);
        return ST_OK;
}

/*
 * The last HTTP status in what libdebuginfod tells of its work, 0 when there was none. It says "not found" for every
 * status of 400 and more and for answers that were cut off, so this is the only way to tell them apart.
 */
static unsigned last_http_status(int log)
{
        static const char mark[] = "header HTTP/";
        char text[KiB(64)];
        const char *at = text, *space;
        ssize_t n = pread(log, text, sizeof text - 1, 0);
        unsigned status = 0;

        text[n < 0 ? 0 : n] = '\0';
        while ((at = strstr(at, mark))) {
                at += strlen(mark);
                space = strchr(at, ' ');
                status = space ? (unsigned)strtoul(space, NULL, 10) : 0;
        }
        return status;
}

static enum status answer_not_fetched(int answer, int code, int log, struct error *err)
{
        unsigned status = last_http_status(log);
        char text[80];

        if (code == -ENOENT && (status == 404 || status == 410))
                return answer_with(answer, ANSWER_MISSING, "", err);
        if (code != -ENOENT)
                return answer_with(answer, ANSWER_FAILED, strerror(-code), err);
        if (status >= 400)
                snprintf(text, sizeof text, "it answered with status %u", status);
        else
                snprintf(text, sizeof text, "its answer was cut off");
        return answer_with(answer, ANSWER_FAILED, text, err);
}

enum status fetch_worker(char *const args[static FETCH_WORKER_ARGS], int out, int answer, struct error *err)
{
        const char *url = args[0], *build_id_text = args[1], *kind_text = args[2], *seconds = args[3];
        char cache[] = "/tmp/cairn-fetch-XXXXXX";
        struct build_id id;
        enum object_kind kind;
        debuginfod_client *client;
        char *path = NULL, header[FORWARDED_SIZE + 32];
        _cleanup_close_ int log = memfd_create("fetch-log", MFD_CLOEXEC);
        int fd;
        enum status st;

        if (log < 0)
                return error_os(err, errno, "cannot make a memory file");
        if (!build_id_from_hex(&id, build_id_text, strlen(build_id_text)) || !object_kind_parse(kind_text, &kind))
                return error_set(err, ST_USAGE, "no such object: '%s' '%s'", build_id_text, kind_text);
        if (!mkdtemp(cache))
                return error_os(err, errno, "cannot create '%s'", cache);
        st = configure(url, seconds, cache, err);
        client = st ? NULL : debuginfod_begin();
        if (!client) {
                (void)!file_remove_tree(cache, NULL);
                return st ? st : error_no_memory(err);
        }
        snprintf(header, sizeof header, "X-Forwarded-For: %s", args[4]);
        (void)debuginfod_add_http_header(client, header);
        debuginfod_set_verbose_fd(client, log);
        fd = kind == OBJECT_DEBUGINFO ? debuginfod_find_debuginfo(client, id.bytes, id.size, &path)
                                      : debuginfod_find_executable(client, id.bytes, id.size, &path);
        if (fd >= 0)
                st = copy_out(fd, out, err);
        if (fd < 0)
                st = answer_not_fetched(answer, fd, log, err);
        else if (!st)
                st = answer_with(answer, ANSWER_FOUND, "", err);
        if (fd >= 0)
                close(fd);
        free(path);
        debuginfod_end(client);
        (void)!file_remove_tree(cache, NULL);
        return st;
}
