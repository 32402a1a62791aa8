/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: debuginfo of the build-id, of a tree or of elsewhere, must name the
 * path; then it is taken from a scanned tree that it lies in, or out of an
 * archive that has it.
 */
#include <inttypes.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "sandbox/worker.h"
#include "scan/scan_internal.h"

#define NAMES_CPU_S 120

/* Debuginfo whose names are asked for: of a place in a tree, or of the caller's. */
struct debuginfo {
        char key[SCAN_CACHE_KEY_SIZE]; /* of its names in the cache */
        uint32_t number;               /* of the file that it is in; 0 none */
        const char *like;              /* path of the file that its package's sources are likely beside; "" unknown */
        enum status (*open)(const struct debuginfo *d, const atomic_bool *cancel, int *fd_ret, struct error *err);
        struct scan *scan;
        const struct scan_place *place;
        const struct scan_debuginfo *other;
};

static enum status open_scanned(const struct debuginfo *d, const atomic_bool *cancel, int *fd_ret, struct error *err)
{
        struct scan_opened o;
        enum status st = scan_open_place(d->scan, d->place, &(struct scan_wait){ .cancel = cancel }, &o, err);

        if (!st)
                *fd_ret = o.fd;
        return st;
}

static enum status open_other(const struct debuginfo *d, const atomic_bool *cancel, int *fd_ret, struct error *err)
{
        (void)cancel;
        return d->other->open(d->other->context, fd_ret, err);
}

static enum status list_names(void *context, int out, const atomic_bool *cancel, struct error *err)
{
        static const char *const args[] = { "source-names", NULL };
        const int *in = context;

        return worker_run(&(struct worker_job){ .args = args, .fds = (const int[]){ *in, out }, .fd_count = 2,
                                                .cpu_s = NAMES_CPU_S, .cancel = cancel }, err);
}

/* The debuginfo is opened first: it may have to be unpacked into the cache, which is not asked while it makes something. */
static enum status open_names(struct scan *s, const struct debuginfo *d, const atomic_bool *cancel, int *fd_ret, struct error *err)
{
        _cleanup_close_ int in = -1;
        enum status st;

        if (!scan_cache_look(s->cache, d->key, fd_ret))
                return ST_OK;
        st = d->open(d, cancel, &in, err);
        return st ? st : scan_cache_get(s->cache, d->key, list_names, &in, cancel, fd_ret, err);
}

/* The hashes are sorted; that of a name that is not there is met by chance once in 2^64. */
static bool has_hash(int fd, uint64_t hash)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        size_t low = 0, high;
        const uint64_t *items;

        if (file_map_fd(fd, LIMIT_SCAN_FOUND_BYTES, "names", &map, NULL))
                return false;
        items = map.data;
        high = map.size / sizeof *items;
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (items[middle] < hash)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < map.size / sizeof *items && items[low] == hash;
}

/* Does the debuginfo name the source? */
static enum status is_named(struct scan *s, const struct debuginfo *d, uint64_t hash, const atomic_bool *cancel, struct error *err)
{
        _cleanup_close_ int names = -1;
        enum status st = open_names(s, d, cancel, &names, err);

        if (st)
                return st;
        return has_hash(names, hash) ? ST_OK : error_set(err, ST_NOT_FOUND, "the debuginfo does not name it");
}

static size_t shared(const char *a, const char *b)
{
        size_t n = 0;

        while (a[n] && a[n] == b[n])
                n++;
        return n;
}

/*
 * Sources of one path lie in many packages, one for each version: the package whose path is most like that of the
 * debuginfo's is taken, which differ only in "-dbgsym" or "debuginfo" and "debugsource" when they belong together;
 * and of those that are as like, the newest.
 */
static bool is_better(const struct scan_place *a, size_t a_shared, const struct scan_place *b, size_t b_shared)
{
        return a_shared != b_shared ? a_shared > b_shared : a->file.mtime_ns > b->file.mtime_ns;
}

static enum status open_member(struct scan *s, const struct debuginfo *d, uint64_t hash, const char *path,
                               const atomic_bool *cancel, struct scan_opened *ret, struct error *err)
{
        struct scan_place *places;
        size_t count, best = 0, best_shared = 0;
        enum status st = scan_index_find_source(s->index, hash, &places, &count, err);

        if (st)
                return st;
        for (size_t i = 0; i < count; i++) {
                size_t n = d->number && places[i].number == d->number ? SIZE_MAX : shared(places[i].file.path, d->like);

                if (i == 0 || is_better(&places[i], n, &places[best], best_shared)) {
                        best = i;
                        best_shared = n;
                }
        }
        st = scan_open_place(s, &places[best], &(struct scan_wait){ .cancel = cancel }, ret, err);
        if (!st)
                snprintf(ret->name, sizeof ret->name, "%s", path);
        scan_places_free(places, count);
        return st;
}

static enum status open_in_tree(struct scan *s, const char *path, struct scan_opened *ret, struct error *err)
{
        struct scan_opened o = { .fd = -1 };
        struct stat info;
        enum status st = scan_trees_open(&s->trees, path, SCAN_LINKS_INSIDE, &o.fd, &info, err);

        if (st)
                return st;
        o.size_bytes = (uint64_t)info.st_size;
        snprintf(o.name, sizeof o.name, "%s", path);
        *ret = o;
        return ST_OK;
}

/* @param path normalised. */
static enum status open_named(struct scan *s, const struct debuginfo *d, const char *path, const atomic_bool *cancel,
                              struct scan_opened *ret, struct error *err)
{
        uint64_t hash = found_path_hash(path);
        enum status st = is_named(s, d, hash, cancel, err);

        if (st)
                return st;
        st = open_in_tree(s, path, ret, err);
        return st == ST_NOT_FOUND ? open_member(s, d, hash, path, cancel, ret, err) : st;
}

/* What other places of the build-id name; and then debuginfo of elsewhere, which may belong to an executable of a tree. */
static enum status open_of_any(struct scan *s, const struct scan_place *places, size_t count, const struct scan_debuginfo *other,
                               const char *path, const atomic_bool *cancel, struct scan_opened *ret, struct error *err)
{
        enum status st = error_set(err, ST_NOT_FOUND, "no scanned debuginfo names it"), one;

        for (size_t i = 0; i < count && st; i++) {
                const struct scan_place *p = &places[i];
                struct debuginfo d = { .number = p->number, .like = p->file.path, .open = open_scanned, .scan = s, .place = p };

                if (!(p->object.kinds & FOUND_DEBUGINFO))
                        continue;
                snprintf(d.key, sizeof d.key, "%08" PRIx32 "-%08" PRIx32 "-names", p->number, p->object.ordinal);
                one = open_named(s, &d, path, cancel, ret, err);
                st = one == ST_NOT_FOUND ? st : one;
        }
        if (st == ST_NOT_FOUND && other) {
                struct debuginfo d = { .number = count ? places[0].number : 0, .like = count ? places[0].file.path : "",
                                       .open = open_other, .other = other };

                snprintf(d.key, sizeof d.key, "%.32s-names", other->identity);
                st = open_named(s, &d, path, cancel, ret, err);
        }
        return st;
}

enum status scan_open_source(struct scan *s, const struct build_id *id, const char *path, const struct scan_debuginfo *other,
                             const atomic_bool *cancel, struct scan_opened *ret, struct error *err)
{
        _cleanup_free_ char *normal = strdup(path);
        struct scan_place *places = NULL;
        size_t count = 0;
        enum status st = normal ? scan_index_find(s->index, id, &places, &count, err) : error_no_memory(err);

        if (st && st != ST_NOT_FOUND)
                return st;
        found_path_normalise(normal);
        st = open_of_any(s, places, count, other, normal, cancel, ret, err);
        scan_places_free(places, count);
        return st;
}
