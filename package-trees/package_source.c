/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source files. Debuginfo of the build-id, from a tree or another source, must name the path; then the file is opened
 * in a scanned tree or extracted from an archive.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/search.h"
#include "package-trees/package_scan_internal.h"
#include "sandbox/worker.h"

#define NAMES_CPU_S 120

/* Debuginfo whose source names are checked: a place in a tree, or external debuginfo. */
struct name_source {
        char key[EXTRACTED_CACHE_KEY_SIZE]; /* cache key of the name hashes */
        uint32_t number;                    /* of the file that contains it; 0: none */
        const char *like;                   /* path that probably resembles the source package's; "": unknown */
        enum status (*open)(const struct name_source *d, const atomic_bool *cancel, int *fd_ret, struct error *err);
        struct package_scan *scan;
        const struct package_place *place;
        const struct package_debuginfo *other;
};

static enum status open_scanned_debuginfo(const struct name_source *d, const atomic_bool *cancel, int *fd_ret,
                                          struct error *err)
{
        struct package_opened o;
        enum status st =
                package_open_place(d->scan, d->place, &(struct package_scan_wait){ .cancel = cancel }, &o, err);

        if (!st)
                *fd_ret = o.fd;
        return st;
}

static enum status open_external_debuginfo(const struct name_source *d, const atomic_bool *cancel, int *fd_ret,
                                           struct error *err)
{
        (void)cancel;
        return d->other->open(d->other->context, fd_ret, err);
}

static enum status list_source_names(void *context, int out, const atomic_bool *cancel, struct error *err)
{
        static const char *const args[] = { "source-names", NULL };
        const int *in = context;

        return worker_run(&(struct worker_job){ .args = args,
                                                .fds = (const int[]){ *in, out },
                                                .fd_count = 2,
                                                .cpu_s = NAMES_CPU_S,
                                                .cancel = cancel },
                          err);
}

/* The debuginfo is opened first, because it may have to be extracted into the cache, and makers must not use the
 * cache. */
static enum status open_name_hashes(struct package_scan *s, const struct name_source *d, const atomic_bool *cancel,
                                    int *fd_ret, struct error *err)
{
        _cleanup_close_ int in = -1;
        enum status st;

        if (!extracted_cache_open_ready(s->cache, d->key, fd_ret))
                return ST_OK;
        st = d->open(d, cancel, &in, err);
        return st ? st : extracted_cache_get(s->cache, d->key, list_source_names, &in, cancel, fd_ret, err);
}

/* Binary search in the sorted hashes. */
static bool contains_name_hash(int fd, uint64_t hash)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        const uint64_t *items;
        size_t count, at;

        if (file_map_fd(fd, LIMIT_SCAN_FOUND_BYTES, "names", &map, NULL))
                return false;
        items = map.data;
        count = map.size / sizeof *items;
        at = find_lower_bound(i, 0, count, items[i] < hash);
        return at < count && items[at] == hash;
}

/* ST_OK if the debuginfo names the source. */
static enum status check_source_is_named(struct package_scan *s, const struct name_source *d, uint64_t hash,
                                         const atomic_bool *cancel, struct error *err)
{
        _cleanup_close_ int names = -1;
        enum status st = open_name_hashes(s, d, cancel, &names, err);

        if (st)
                return st;
        return contains_name_hash(names, hash) ? ST_OK : error_set(err, ST_NOT_FOUND, "the debuginfo does not name it");
}

static size_t count_common_prefix(const char *a, const char *b)
{
        size_t n = 0;

        while (a[n] && a[n] == b[n])
                n++;
        return n;
}

/*
 * Packages of several versions have a source with the same path. Choose the package whose path has the longest common
 * prefix with the debuginfo package's (matching ones differ only in "-dbgsym", or "debuginfo" and "debugsource"), and
 * of these the newest.
 */
static bool is_better_source_place(const struct package_place *a, size_t a_shared, const struct package_place *b,
                                   size_t b_shared)
{
        return a_shared != b_shared ? a_shared > b_shared : a->file.mtime_ns > b->file.mtime_ns;
}

/* A request for a source file. */
struct source_request {
        struct package_scan *scan;
        const char *path; /* normalized */
        uint64_t hash;    /* package_path_hash() */
        const struct package_debuginfo *other;
        const atomic_bool *cancel;
};

static enum status open_source_member(const struct source_request *r, const struct name_source *d,
                                      struct package_opened *ret, struct error *err)
{
        struct package_place *places;
        size_t count, best = 0, best_shared = 0;
        enum status st = package_index_find_source(r->scan->index, r->hash, &places, &count, err);

        if (st)
                return st;
        for (size_t i = 0; i < count; i++) {
                size_t n = d->number && places[i].number == d->number
                                   ? SIZE_MAX
                                   : count_common_prefix(places[i].file.path, d->like);

                if (i == 0 || is_better_source_place(&places[i], n, &places[best], best_shared)) {
                        best = i;
                        best_shared = n;
                }
        }
        st = package_open_place(r->scan, &places[best], &(struct package_scan_wait){ .cancel = r->cancel }, ret, err);
        if (!st)
                snprintf(ret->name, sizeof ret->name, "%s", r->path);
        package_places_free(places, count);
        return st;
}

static enum status open_source_in_tree(struct package_scan *s, const char *path, struct package_opened *ret,
                                       struct error *err)
{
        struct package_opened o = { .fd = -1 };
        struct stat info;
        enum status st = package_trees_open(&s->trees, path, PACKAGE_LINKS_INSIDE, &o.fd, &info, err);

        if (st)
                return st;
        o.size_bytes = (uint64_t)info.st_size;
        snprintf(o.name, sizeof o.name, "%s", path);
        *ret = o;
        return ST_OK;
}

static enum status open_named_source(const struct source_request *r, const struct name_source *d,
                                     struct package_opened *ret, struct error *err)
{
        enum status st = check_source_is_named(r->scan, d, r->hash, r->cancel, err);

        if (st)
                return st;
        st = open_source_in_tree(r->scan, r->path, ret, err);
        return st == ST_NOT_FOUND ? open_source_member(r, d, ret, err) : st;
}

/* Try debuginfo in all places of the build-id, then external debuginfo, which may belong to an executable in a tree. */
static enum status open_source_of_places(const struct source_request *r, const struct package_place *places,
                                         size_t count, struct package_opened *ret, struct error *err)
{
        enum status st = error_set(err, ST_NOT_FOUND, "no scanned debuginfo names it"), one;

        for (size_t i = 0; i < count && st; i++) {
                const struct package_place *p = &places[i];
                struct name_source d = { .number = p->number,
                                         .like = p->file.path,
                                         .open = open_scanned_debuginfo,
                                         .scan = r->scan,
                                         .place = p };

                if (!(p->object.kinds & PACKAGE_DEBUGINFO))
                        continue;
                snprintf(d.key, sizeof d.key, "%08" PRIx32 "-%08" PRIx32 "-names", p->number, p->object.ordinal);
                one = open_named_source(r, &d, ret, err);
                st = one == ST_NOT_FOUND ? st : one;
        }
        if (st == ST_NOT_FOUND && r->other) {
                struct name_source d = { .number = count ? places[0].number : 0,
                                         .like = count ? places[0].file.path : "",
                                         .open = open_external_debuginfo,
                                         .other = r->other };

                snprintf(d.key, sizeof d.key, "%.32s-names", r->other->identity);
                st = open_named_source(r, &d, ret, err);
        }
        return st;
}

enum status package_scan_open_source(struct package_scan *s, const struct build_id *id, const char *path,
                                     const struct package_debuginfo *other, const atomic_bool *cancel,
                                     struct package_opened *ret, struct error *err)
{
        _cleanup_free_ char *normal = strdup(path);
        struct source_request r = { .scan = s, .path = normal, .other = other, .cancel = cancel };
        struct package_place *places = NULL;
        size_t count = 0;
        enum status st = normal ? package_index_find(s->index, id, &places, &count, err) : error_no_memory(err);

        if (st && st != ST_NOT_FOUND)
                return st;
        path_normalize(normal);
        r.hash = package_path_hash(normal);
        st = open_source_of_places(&r, places, count, ret, err);
        package_places_free(places, count);
        return st;
}
