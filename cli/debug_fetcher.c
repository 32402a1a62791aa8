/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/debug_fetcher.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/symbol_cache.h"
#include "common/utf8.h"
#include "common/cleanup.h"
#include "common/evict.h"
#include "common/file.h"
#include "common/limits.h"
#include "debuginfo-store/fetch.h"
#include "elf-image/elf_image.h"

#define MISS_S 600
#define DEFAULT_TIMEOUT_S 90 /* what libdebuginfod waits */
#define SERVERS_MAX 16

struct server {
        char *url; /* in the fetcher's list */
        bool failed;
};

struct debug_fetcher {
        char *urls; /* owned */
        struct server servers[SERVERS_MAX];
        size_t server_count;
        uint64_t timeout_s;
        const atomic_bool *cancel;
        int cache; /* the user's, -1 none */
        char directory[64];
        bool is_temporary;
        struct debug_fetcher_stats stats;
};

/* ---- where files are kept ---- */

static enum status open_directory(struct debug_fetcher *f, struct error *err)
{
        f->cache = symbol_cache_open_directory();
        if (f->cache >= 0 && (mkdirat(f->cache, "debuginfod", 0700) == 0 || errno == EEXIST)) {
                snprintf(f->directory, sizeof f->directory, "/proc/self/fd/%d/debuginfod", f->cache);
                return ST_OK;
        }
        snprintf(f->directory, sizeof f->directory, "/tmp/cairn-debug-XXXXXX");
        if (!mkdtemp(f->directory))
                return error_os(err, errno, "cannot create '%s'", f->directory);
        f->is_temporary = true;
        return ST_OK;
}

enum status debug_fetcher_create(const char *urls, const atomic_bool *cancel, struct debug_fetcher **ret,
                                 struct error *err)
{
        struct debug_fetcher *f = calloc(1, sizeof *f);
        const char *timeout = getenv("DEBUGINFOD_TIMEOUT");
        char *rest = NULL;
        enum status st;

        if (!f || !(f->urls = strdup(urls))) {
                free(f);
                return error_no_memory(err);
        }
        f->cancel = cancel;
        f->cache = -1;
        f->timeout_s = timeout ? strtoul(timeout, NULL, 10) : 0;
        f->timeout_s = f->timeout_s ? f->timeout_s : DEFAULT_TIMEOUT_S;
        for (char *url = strtok_r(f->urls, " \t\n", &rest); url && f->server_count < SERVERS_MAX;
             url = strtok_r(NULL, " \t\n", &rest))
                f->servers[f->server_count++].url = url;
        st = f->server_count ? open_directory(f, err) : error_set(err, ST_USAGE, "no debuginfod server is named");
        if (st)
                debug_fetcher_destroy(f);
        else
                *ret = f;
        return st;
}

void debug_fetcher_destroy(struct debug_fetcher *f)
{
        if (!f)
                return;
        if (f->is_temporary)
                (void)!file_remove_tree(f->directory, NULL);
        else if (f->stats.fetched)
                evict_oldest(f->directory, LIMIT_DEBUG_CACHE_BYTES);
        cleanup_close(&f->cache);
        free(f->urls);
        free(f);
}

const char *debug_fetcher_directory(const struct debug_fetcher *f)
{
        return f->directory;
}

const struct debug_fetcher_stats *debug_fetcher_stats(const struct debug_fetcher *f)
{
        return &f->stats;
}

/* ---- one file ---- */

static bool is_there(const char *path)
{
        struct stat s;

        return stat(path, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 0;
}

/* An empty file: all servers said no, a while ago. */
static bool is_missed(const char *path)
{
        struct stat s;

        time_t age_s;

        if (stat(path, &s) || s.st_size)
                return false;
        age_s = time(NULL) - s.st_mtim.tv_sec;
        return age_s >= 0 && age_s < MISS_S; /* of the future: the clock was wrong then, or is now */
}

static bool make_directories(const struct debug_fetcher *f, const char *hex)
{
        char path[PATH_MAX];

        snprintf(path, sizeof path, "%s/.build-id", f->directory);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return false;
        snprintf(path, sizeof path, "%s/.build-id/%.2s", f->directory, hex);
        return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static void tell(const char *name, const char *url)
{
        fprintf(stderr, "%sfetching the debuginfo of %s from %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", *name ? PRINTABLE(path_base(name)) : "an object", PRINTABLE(url));
}

static void note_failure(struct debug_fetcher *f, const struct error *err)
{
        if (!f->stats.failure[0])
                snprintf(f->stats.failure, sizeof f->stats.failure, "%s", err->text);
}

/* ST_NOT_FOUND: all who could be asked have none. ST_BUSY: somebody could not be asked. */
static enum status ask_servers(struct debug_fetcher *f, const struct build_id *id, const char *name, int fd,
                               struct error *err)
{
        enum status ret = ST_NOT_FOUND;

        for (size_t i = 0; i < f->server_count; i++) {
                struct server *server = &f->servers[i];
                const struct fetch_question question = { .url = server->url, .id = id, .part = "debuginfo",
                                                         .forwarded_for = "", .timeout_s = f->timeout_s };
                struct fetch_answer answer;
                enum status st;

                if (server->failed || atomic_load(f->cancel)) {
                        ret = error_set(err, ST_BUSY, "%s is not asked any more", server->url);
                        continue;
                }
                tell(name, server->url);
                st = fetch_object(&question, fd, f->cancel, &answer, err);
                if (!st)
                        return ST_OK;
                if (st == ST_NOT_FOUND)
                        continue;
                server->failed = st != ST_TOO_BIG;
                ret = ST_BUSY;
                if (!atomic_load(f->cancel))
                        note_failure(f, err);
                if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
                        return error_os(err, errno, "cannot empty a file");
        }
        return ret;
}

static enum status fetch(struct debug_fetcher *f, const struct build_id *id, const char *name, const char *path,
                         struct error *err)
{
        _cleanup_free_ char *tmp = NULL;
        enum status st;
        int fd;

        st = file_create_temporary(path, &tmp, &fd, err);
        if (st)
                return st;
        st = ask_servers(f, id, name, fd, err);
        f->stats.fetched += !st;
        f->stats.missing += st == ST_NOT_FOUND;
        f->stats.failed += st && st != ST_NOT_FOUND;
        if (!st || st == ST_NOT_FOUND) { /* an empty file says that there is none */
                struct error publish_error;

                if (file_publish(fd, tmp, path, &publish_error) && !st) {
                        *err = publish_error;
                        st = ST_OS;
                }
                return st;
        }
        close(fd);
        unlink(tmp);
        return st;
}

/* DWARF that dwz moved to a file of its own. */
static bool supplement_of(const char *path, struct build_id *ret)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        _cleanup_elf_image_ struct elf_image img = { 0 };
        const char *target;

        return fd >= 0 && !elf_image_from_fd(fd, path, &img, NULL) && !elf_image_altlink(&img, &target, ret, NULL) &&
               ret->size >= 2 && access(target, R_OK) < 0;
}

static enum status get(struct debug_fetcher *f, const struct build_id *id, const char *name, char path[PATH_MAX],
                       struct error *err)
{
        char hex[BUILD_ID_HEX_MAX];

        build_id_hex(id, hex);
        snprintf(path, PATH_MAX, "%s/.build-id/%.2s/%s.debug", f->directory, hex, hex + 2);
        if (is_there(path))
                return ST_OK;
        if (id->size < 2 || is_missed(path) || !make_directories(f, hex))
                return error_set(err, ST_NOT_FOUND, "no server has debuginfo of %s", hex);
        return fetch(f, id, name, path, err);
}

enum status debug_fetcher_get(struct debug_fetcher *f, const struct build_id *id, const char *name, char *ret,
                              struct error *err)
{
        char path[PATH_MAX], other[PATH_MAX];
        struct build_id supplement;
        enum status st = get(f, id, name, path, err);

        if (st)
                return ST_NOT_FOUND;
        (void)utimensat(AT_FDCWD, path, NULL, 0); /* used now */
        if (supplement_of(path, &supplement) && get(f, &supplement, "what dwz shares", other, err))
                note_failure(f, err);
        memcpy(ret, path, sizeof path);
        return ST_OK;
}
