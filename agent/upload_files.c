/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/upload_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/beneath.h"
#include "agent/upload_kernel.h"
#include "common/cleanup.h"
#include "common/limits.h"

#define LEAST_QUALITY QUALITY_SYMTAB

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

/* Take the file of that path when it is of that build-id and better than that; its links come along. */
static bool take(int root_fd, const char *path, const struct build_id *id, int better_than, const struct upload_workers *w,
                 struct upload_file *best, struct inspected *best_inspected)
{
        _cleanup_close_ int fd = open_regular_beneath(root_fd, path, 0);
        struct inspected i;
        char *copy;

        if (fd < 0)
                return false;
        inspect_files(w, &fd, 1, &i);
        best_inspected->is_unseen = best_inspected->is_unseen || i.is_unseen;
        if (!build_id_equal(&i.id, id) || (int)i.quality <= better_than)
                return false;
        copy = strdup(path);
        if (!copy)
                return false;
        upload_file_deinit(best);
        *best = (struct upload_file){ .id = *id, .quality = i.quality, .has_code = i.has_code,
                                      .sent_bytes = i.sent_bytes, .path = copy,
                                      .fd = steal_fd(&fd) };
        *best_inspected = i;
        return true;
}

/* "DIR/MIDDLE/NAME" of a path's directory. False when it is too long. */
static bool beside(char *to, size_t size, const char *before, const char *path, const char *middle, const char *name)
{
        const char *slash = strrchr(path, '/');
        int dir = slash ? (int)(slash - path) : 0, n;

        n = snprintf(to, size, "%s%.*s/%s%s", before, dir, path, middle, name);
        return n > 0 && (size_t)n < size;
}

static void by_build_id(char *to, size_t size, const struct build_id *id)
{
        char hex[BUILD_ID_HEX_MAX];

        build_id_hex(id, hex);
        snprintf(to, size, DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2);
}

/* Where debug packages put it, then where .gnu_debuglink points. Source: GDB manual, "Separate Debug Files". */
static void find_debug_file(const struct upload_offer *o, const struct inspected *mapped, const struct upload_workers *w,
                            struct upload_file *best, struct inspected *best_inspected)
{
        static const char *const places[][2] = { { "", "" }, { "", ".debug/" }, { DEBUG_DIR, "" } };
        char path[LIMIT_PATH_BYTES];

        by_build_id(path, sizeof path, &o->id);
        if (take(o->root_fd, path, &o->id, best->quality, w, best, best_inspected))
                return;
        for (unsigned i = 0; upload_kernel_path(o, i, path, sizeof path); i++)
                if (take(o->root_fd, path, &o->id, best->quality, w, best, best_inspected))
                        return;
        if (!mapped->debuglink[0] || o->path[0] != '/')
                return;
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
                if (beside(path, sizeof path, places[i][0], o->path, places[i][1], mapped->debuglink) &&
                    strcmp(path, o->path) != 0 && take(o->root_fd, path, &o->id, best->quality, w, best, best_inspected))
                        return;
}

static bool find_supplement(const struct upload_offer *o, const struct upload_file *of, const struct inspected *inspected,
                            const struct upload_workers *w, struct upload_file *ret)
{
        const struct build_id *id = &inspected->alt_id;
        struct inspected ignored = { 0 };
        char path[LIMIT_PATH_BYTES];

        *ret = (struct upload_file){ .fd = -1 };
        if (!id->size || o->root_fd < 0)
                return false;
        if (inspected->alt_path[0] == '/')
                snprintf(path, sizeof path, "%s", inspected->alt_path);
        else if (!beside(path, sizeof path, "", of->path, "", inspected->alt_path))
                return false;
        if (take(o->root_fd, path, id, -1, w, ret, &ignored))
                return true;
        by_build_id(path, sizeof path, id);
        return take(o->root_fd, path, id, -1, w, ret, &ignored);
}

size_t upload_files_find(struct upload_offer *o, const struct inspected *mapped, const struct upload_workers *w,
                         struct upload_file ret[static UPLOAD_FILES_MAX], bool *unseen_ret)
{
        struct upload_file best = { .id = o->id, .fd = -1 };
        struct inspected inspected = *mapped;

        if (build_id_equal(&mapped->id, &o->id)) { /* else it was replaced since it was mapped */
                best.quality = mapped->quality;
                best.has_code = mapped->has_code;
                best.sent_bytes = mapped->sent_bytes;
                best.path = strdup(o->path);
                best.fd = steal_fd(&o->fd);
        }
        if (best.quality < QUALITY_LINES && o->root_fd >= 0)
                find_debug_file(o, mapped, w, &best, &inspected);
        *unseen_ret = inspected.is_unseen;
        if (best.quality < LEAST_QUALITY || !best.path || best.fd < 0) {
                upload_file_deinit(&best);
                return 0;
        }
        ret[0] = best;
        return find_supplement(o, &best, &inspected, w, &ret[1]) ? 2 : 1;
}
