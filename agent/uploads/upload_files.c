/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/uploads/upload_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "sampling/objects/text_line.h"

#define DEBUG_DIR "/usr/lib/debug"
#define KERNEL_NAME "vmlinux" /* as set by sampling/processes/kernel.c */
#define MODULE_NAME_MAX 64

/* Text before and after the release or module path: Debian, then Fedora and derivatives, then a local build. */
static const char *const kernel_places[][2] = { { DEBUG_DIR "/boot/vmlinux-", "" },
                                                { DEBUG_DIR "/lib/modules/", "/vmlinux" },
                                                { "/lib/modules/", "/build/vmlinux" } };
static const char *const module_places[][2] = { { DEBUG_DIR "/lib/modules/", "" },
                                                { DEBUG_DIR "/lib/modules/", ".debug" },
                                                { "/lib/modules/", "" } };
#define PLACES (sizeof kernel_places / sizeof *kernel_places)
_Static_assert(PLACES == sizeof module_places / sizeof *module_places, "both are tried alike");

/* "kernel/fs/xfs/xfs.ko.xz" is module xfs; file names may have dashes instead of underscores. */
static bool is_module_file(const char *path, size_t n, const char *name, size_t *plain_size_ret)
{
        const char *dot = memmem(path, n, ".ko", 3), *slash = dot ? memrchr(path, '/', (size_t)(dot - path)) : NULL;
        size_t size = slash ? (size_t)(dot - slash) - 1 : 0;

        if (!slash || size != strlen(name))
                return false;
        for (size_t i = 0; i < size; i++)
                if ((slash[1 + i] == '-' ? '_' : slash[1 + i]) != name[i])
                        return false;
        *plain_size_ret = (size_t)(dot - path) + 3;
        return true;
}

/* Path of a module below /lib/modules/RELEASE, uncompressed. Source: modules.dep(5). */
static bool find_module_path(const struct upload_offer *o, const struct upload_workers *w, const char *release,
                             char *ret, size_t size)
{
        _cleanup_buf_ struct buf text = { 0 };
        _cleanup_close_ int fd = -1;
        struct text_line left, line;
        char path[LIMIT_PATH_BYTES];

        snprintf(path, sizeof path, "/lib/modules/%s/modules.dep", release);
        (void)file_opener_open(w->opener, o->root_fd, path, LIMIT_AGENT_MODULES_BYTES, &fd);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        buf_init(&text, LIMIT_AGENT_MODULES_BYTES);
        if (fd < 0 || file_read(path, &text, NULL) || !text.size)
                return false;
        left = (struct text_line){ (const char *)text.data, (const char *)text.data + text.size };
        while (text_next_line(&left, &line)) {
                const char *colon = memchr(line.at, ':', text_size(&line));
                size_t n = colon ? (size_t)(colon - line.at) : 0, plain;

                if (!n || !is_module_file(line.at, n, o->path, &plain))
                        continue;
                return snprintf(ret, size, "%s/%.*s", release, (int)plain, line.at) < (int)size;
        }
        return false;
}

/*
 * The candidate path with that index, relative to the root. Debug packages give kernels and modules no link by
 * build-id. False past the last candidate, and for anything but the kernel or a module by the name
 * sampling/processes/kernel.c gives it.
 */
static bool format_kernel_debug_path(const struct upload_offer *o, const struct upload_workers *w, unsigned number,
                                     char *ret, size_t size)
{
        bool is_kernel = strcmp(o->path, KERNEL_NAME) == 0;
        const char *const *place = is_kernel ? kernel_places[number % PLACES] : module_places[number % PLACES];
        char middle[LIMIT_PATH_BYTES];
        struct utsname kernel;
        int n;

        if (number >= PLACES || strpbrk(o->path, "/[") || strlen(o->path) > MODULE_NAME_MAX || uname(&kernel) < 0)
                return false;
        if (is_kernel)
                snprintf(middle, sizeof middle, "%s", kernel.release);
        else if (!find_module_path(o, w, kernel.release, middle, sizeof middle))
                return false;
        n = snprintf(ret, size, "%s%s%s", place[0], middle, place[1]);
        return n > 0 && (size_t)n < size;
}

void upload_offer_deinit(struct upload_offer *o)
{
        if (o->fd >= 0)
                close(o->fd);
        if (o->root_fd >= 0)
                close(o->root_fd);
        free(o->path);
        *o = (struct upload_offer){ .fd = -1, .root_fd = -1 };
}

void upload_file_deinit(struct upload_file *f)
{
        if (f->fd >= 0)
                close(f->fd);
        free(f->path);
        *f = (struct upload_file){ .fd = -1 };
}

/* Use the file if it has that build-id and a better quality; *best_inspected is replaced too. Takes fd. */
static bool inspect_open_candidate(int fd_taken, const char *path, const struct build_id *id, int better_than,
                                   const struct upload_workers *w, struct upload_file *best,
                                   struct inspected_file *best_inspected)
{
        _cleanup_close_ int fd = fd_taken;
        struct inspected_file i;
        struct error ignored; /* logged by its worker_health */
        char *copy;

        if (fd < 0)
                return false;
        (void)!upload_inspect_files(w, &fd, 1, &i, &ignored);
        if (i.end > best_inspected->end)
                best_inspected->end = i.end;
        if (!build_id_equal(&i.id, id) || (int)i.quality <= better_than)
                return false;
        copy = strdup(path);
        if (!copy)
                return false;
        upload_file_deinit(best);
        *best = (struct upload_file){ .id = *id,
                                      .quality = i.quality,
                                      .has_code = i.has_code,
                                      .sent_bytes = i.sent_bytes,
                                      .path = copy,
                                      .fd = steal_fd(&fd) };
        i.end = best_inspected->end;
        *best_inspected = i;
        return true;
}

static bool inspect_candidate(int root_fd, const char *path, const struct build_id *id, int better_than,
                              const struct upload_workers *w, struct upload_file *best,
                              struct inspected_file *best_inspected)
{
        int fd = -1;

        if (file_opener_open(w->opener, root_fd, path, w->max_bytes, &fd) == OPEN_SKIPPED &&
            best_inspected->end == INSPECT_DONE)
                best_inspected->end = INSPECT_SKIPPED;
        return inspect_open_candidate(fd, path, id, better_than, w, best, best_inspected);
}

/* Fetch a candidate from libdebuginfod's cache or a debuginfod server, if $DEBUGINFOD_URLS is set. */
static bool fetch_candidate(const char *path, const struct build_id *id, int better_than,
                            const struct upload_workers *w, struct upload_file *best,
                            struct inspected_file *best_inspected)
{
        struct error err;
        int fd = -1;
        enum status st = w->fetcher ? debuginfo_fetch(w->fetcher, id, path, &fd, &err) : ST_NOT_FOUND;

        if (st && st != ST_NOT_FOUND && !atomic_load(w->stop))
                log_warn("agent", "%s, ignoring", err.text);
        return !st && inspect_open_candidate(fd, path, id, better_than, w, best, best_inspected);
}

/* Format "BEFORE/DIR/MIDDLE/NAME", where DIR is the directory of path. False when it is too long. */
static bool format_sibling_path(char *to, size_t size, const char *before, const char *path, const char *middle,
                                const char *name)
{
        const char *slash = strrchr(path, '/');
        int dir = slash ? (int)(slash - path) : 0, n;

        n = snprintf(to, size, "%s%.*s/%s%s", before, dir, path, middle, name);
        return n > 0 && (size_t)n < size;
}

static void format_build_id_debug_path(char *to, size_t size, const struct build_id *id)
{
        char hex[BUILD_ID_HEX_MAX];

        build_id_hex(id, hex);
        snprintf(to, size, DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2);
}

/*
 * Find the debug file by build-id, where debug packages install it, then by .gnu_debuglink. Source: GDB manual,
 * "Separate Debug Files".
 */
static void find_installed_debug_file(const struct upload_offer *o, const struct inspected_file *mapped,
                                      const struct upload_workers *w, struct upload_file *best,
                                      struct inspected_file *best_inspected)
{
        static const char *const places[][2] = { { "", "" }, { "", ".debug/" }, { DEBUG_DIR, "" } };
        char path[LIMIT_PATH_BYTES];

        format_build_id_debug_path(path, sizeof path, &o->id);
        if (inspect_candidate(o->root_fd, path, &o->id, best->quality, w, best, best_inspected))
                return;
        for (unsigned i = 0; format_kernel_debug_path(o, w, i, path, sizeof path); i++)
                if (inspect_candidate(o->root_fd, path, &o->id, best->quality, w, best, best_inspected))
                        return;
        if (!mapped->debuglink[0] || o->path[0] != '/')
                return;
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
                if (format_sibling_path(path, sizeof path, places[i][0], o->path, places[i][1], mapped->debuglink) &&
                    strcmp(path, o->path) != 0 &&
                    inspect_candidate(o->root_fd, path, &o->id, best->quality, w, best, best_inspected))
                        return;
}

static bool find_supplementary_file(const struct upload_offer *o, const struct upload_file *of,
                                    const struct inspected_file *inspected, const struct upload_workers *w,
                                    struct upload_file *ret)
{
        const struct build_id *id = &inspected->alt_id;
        struct inspected_file ignored = { 0 };
        char path[LIMIT_PATH_BYTES];

        *ret = (struct upload_file){ .fd = -1 };
        if (!id->size || o->root_fd < 0)
                return false;
        if (inspected->alt_path[0] == '/')
                snprintf(path, sizeof path, "%s", inspected->alt_path);
        else if (!format_sibling_path(path, sizeof path, "", of->path, "", inspected->alt_path))
                return false;
        if (inspect_candidate(o->root_fd, path, id, -1, w, ret, &ignored))
                return true;
        format_build_id_debug_path(path, sizeof path, id);
        return inspect_candidate(o->root_fd, path, id, -1, w, ret, &ignored) ||
               fetch_candidate(path, id, -1, w, ret, &ignored);
}

void upload_offer_open(struct upload_offer *o, const struct upload_workers *w)
{
        if (o->fd >= 0 && file_is_execute_only(o->fd)) {
                log_info("agent", "'%s' may be executed but not read by some, so its symbols are not sent", o->path);
                close(o->fd);
                o->fd = -1;
                return;
        }
        if (o->fd < 0 && o->root_fd >= 0 && o->path[0] == '/')
                o->was_skipped = file_opener_open(w->opener, o->root_fd, o->path, w->max_bytes, &o->fd) == OPEN_SKIPPED;
}

size_t upload_files_find(struct upload_offer *o, const struct inspected_file *mapped, const struct upload_workers *w,
                         struct upload_file ret[static UPLOAD_FILES_MAX], enum inspect_end *end_ret)
{
        struct upload_file best = { .id = o->id, .fd = -1 };
        struct inspected_file inspected = *mapped;

        if (o->was_skipped && inspected.end == INSPECT_DONE)
                inspected.end = INSPECT_SKIPPED;
        if (build_id_equal(&mapped->id, &o->id)) { /* else it was replaced after it was mapped */
                best.quality = mapped->quality;
                best.has_code = mapped->has_code;
                best.sent_bytes = mapped->sent_bytes;
                best.path = strdup(o->path);
                best.fd = steal_fd(&o->fd);
        }
        if (best.quality < QUALITY_LINES && o->root_fd >= 0)
                find_installed_debug_file(o, mapped, w, &best, &inspected);
        if (best.quality < QUALITY_LINES)
                fetch_candidate(o->path, &o->id, best.quality, w, &best, &inspected);
        *end_ret = inspected.end;
        if (best.quality == QUALITY_NONE || !best.path || best.fd < 0) {
                upload_file_deinit(&best);
                return 0;
        }
        ret[0] = best;
        return find_supplementary_file(o, &best, &inspected, w, &ret[1]) ? 2 : 1;
}
