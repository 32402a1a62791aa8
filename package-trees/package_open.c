/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the file of a build-id: the best place whose file is unchanged; archive members are extracted into the cache.
 */
#include <inttypes.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/search.h"
#include "package-trees/package_scan_internal.h"
#include "sandbox/worker.h"

#define UNPACK_CPU_S 300

struct unpack_job {
        struct scan *scan;
        int archive;
        uint32_t ordinal;
        struct timespec mtime;
};

/*
 * Forking a worker takes a twentieth of the time of executing the program. The fork server runs one worker at a time.
 */
static enum status fork_member_worker(struct scan *s, const struct worker_job *job, struct error *err)
{
        enum status st;

        if (pthread_mutex_trylock(&s->fork_server_lock))
                return worker_run(job, err);
        st = fork_server_run(s->options.fork_server, job, err);
        pthread_mutex_unlock(&s->fork_server_lock);
        return st;
}

static enum status unpack_archive_member(void *context, int out, const atomic_bool *cancel, struct error *err)
{
        const struct unpack_job *u = context;
        const struct timespec times[] = { u->mtime, u->mtime };
        char ordinal[16];
        const char *const args[] = { "member", ordinal, NULL };
        enum status st;

        snprintf(ordinal, sizeof ordinal, "%" PRIu32, u->ordinal);
        st = fork_member_worker(u->scan,
                                &(struct worker_job){ .args = args,
                                                      .fds = (const int[]){ u->archive, out },
                                                      .fd_count = 2,
                                                      .data_bytes = LIMIT_SCAN_DATA_BYTES,
                                                      .cpu_s = UNPACK_CPU_S,
                                                      .cancel = cancel },
                                err);
        if (!st && futimens(out, times) < 0) /* Last-Modified is the time of the archive */
                st = error_os(err, errno, "cannot set the time of a file");
        return st;
}

static void set_identity(const struct scan_place *p, struct scan_opened *o)
{
        struct {
                uint64_t path_hash, size, mtime, inode, ordinal;
        } all = { hash_bytes64(p->file.path, strlen(p->file.path)), p->file.size_bytes, (uint64_t)p->file.mtime_ns,
                  p->file.inode, p->object.ordinal };

        snprintf(o->identity, sizeof o->identity, "scan-%016" PRIx64, hash_bytes64(&all, sizeof all));
}

/* Open a file in its tree. A changed file is not found before the next walk. */
static enum status open_scanned_file(struct scan *s, const struct scan_place *p, const struct scan_wait *wait,
                                     int *fd_ret, struct stat *info_ret, struct error *err)
{
        enum status st =
                scan_trees_open(&s->trees, p->file.path, wait->never ? SCAN_LINKS_NONE_AT_ONCE : SCAN_LINKS_NONE,
                                fd_ret, info_ret, err);

        if (!st && !scan_file_matches(&p->file, info_ret)) {
                close(*fd_ret);
                *fd_ret = -1;
                st = error_set(err, ST_NOT_FOUND, "'%s' changed since it was scanned", p->file.path);
        }
        return st;
}

static enum status open_archive_member(struct scan *s, const struct scan_place *p, const struct scan_wait *wait,
                                       int *fd_ret, struct stat *info_ret, struct error *err)
{
        _cleanup_close_ int archive = -1, fd = -1;
        char key[SCAN_CACHE_KEY_SIZE];
        struct unpack_job u;
        enum status st = open_scanned_file(s, p, wait, &archive, info_ret, err);

        if (st)
                return st;
        snprintf(key, sizeof key, "%08" PRIx32 "-%08" PRIx32, p->number, p->object.ordinal);
        u = (struct unpack_job){ s, archive, p->object.ordinal, info_ret->st_mtim };
        if (!wait->never)
                st = scan_cache_get(s->cache, key, unpack_archive_member, &u, wait->cancel, &fd, err);
        else if (scan_cache_open_ready(s->cache, key, &fd))
                st = error_set(err, ST_BUSY, "'%s' is not extracted yet", p->object.path);
        if (!st && fstat(fd, info_ret) < 0)
                st = error_os(err, errno, "cannot stat a file in the scan's cache");
        if (!st)
                *fd_ret = steal_fd(&fd);
        return st;
}

static bool is_retry_allowed(const struct scan_wait *wait)
{
        return !wait->never && !(wait->cancel && atomic_load(wait->cancel));
}

static enum status open_place(struct scan *s, const struct scan_place *p, const struct scan_wait *wait,
                              struct scan_opened *ret, struct error *err)
{
        struct scan_opened o = { .fd = -1, .quality = p->object.quality };
        bool is_member = p->file.class == SCAN_FILE_ARCHIVE;
        struct stat info;
        enum status st = is_member ? open_archive_member(s, p, wait, &o.fd, &info, err)
                                   : open_scanned_file(s, p, wait, &o.fd, &info, err);

        if (st == ST_BUSY && is_member && is_retry_allowed(wait)) /* sandbox/fork_server.h */
                st = open_archive_member(s, p, wait, &o.fd, &info, err);
        if (st)
                return st;
        o.size_bytes = (uint64_t)info.st_size;
        set_identity(p, &o);
        snprintf(o.name, sizeof o.name, "%s", is_member ? p->object.path : path_base(p->file.path));
        snprintf(o.archive, sizeof o.archive, "%s", is_member ? p->file.path : "");
        *ret = o;
        return ST_OK;
}

/* Better symbols first, then files that are not in archives, then newer ones. */
static int compare_places(const void *a, const void *b)
{
        const struct scan_place *x = a, *y = b;

        if (x->object.quality != y->object.quality)
                return x->object.quality > y->object.quality ? -1 : 1;
        if (x->file.class != y->file.class)
                return x->file.class == SCAN_FILE_ELF ? -1 : 1;
        return (x->file.mtime_ns < y->file.mtime_ns) - (x->file.mtime_ns > y->file.mtime_ns);
}

/* A request for one of the places of a build-id. */
struct place_request {
        uint8_t kinds;       /* SCAN_DEBUGINFO or SCAN_EXECUTABLE; 0: none */
        const char *section; /* NULL: the file */
        const struct scan_wait *wait;
};

static uint8_t scan_kinds_from_object_kind(enum object_kind kind)
{
        if (kind == OBJECT_DEBUGINFO || kind == OBJECT_SUPPLEMENTARY)
                return SCAN_DEBUGINFO;
        return kind == OBJECT_EXECUTABLE ? SCAN_EXECUTABLE : 0;
}

static enum status open_place_as_requested(struct scan *s, const struct scan_place *p, const struct place_request *r,
                                           struct scan_opened *ret, struct error *err)
{
        uint64_t offset = 0, size = 0;
        enum status st = ST_OK;

        if (r->section)
                st = scan_index_find_section(s->index, p->number, p->object.ordinal, r->section, &offset, &size, err);
        if (!st)
                st = open_place(s, p, r->wait, ret, err);
        if (st)
                return st;
        ret->section_offset = offset;
        ret->section_bytes = size;
        return ST_OK;
}

static enum status open_best_place(struct scan *s, const struct build_id *id, const struct place_request *r,
                                   struct scan_opened *ret, struct error *err)
{
        struct scan_place *places;
        size_t count;
        enum status st = scan_index_find(s->index, id, &places, &count, err), one;

        if (st)
                return st;
        qsort(places, count, sizeof *places, compare_places);
        st = error_set(err, ST_NOT_FOUND, "no scanned file has it");
        for (size_t i = 0; i < count && st; i++) {
                if (!(places[i].object.kinds & r->kinds))
                        continue;
                one = open_place_as_requested(s, &places[i], r, ret, err);
                if (one == ST_BUSY || (r->section && one == ST_UNSUPPORTED)) { /* do not fall back to a worse place */
                        st = one;
                        break;
                }
                st = one == ST_NOT_FOUND ? st : one; /* report the failure unless a later place succeeds */
        }
        scan_places_free(places, count);
        return st;
}

enum status scan_open(struct scan *s, const struct build_id *id, enum object_kind kind, const struct scan_wait *wait,
                      struct scan_opened *ret, struct error *err)
{
        const struct place_request r = { scan_kinds_from_object_kind(kind), NULL, wait };

        return open_best_place(s, id, &r, ret, err);
}

enum status scan_open_section(struct scan *s, const struct build_id *id, enum object_kind kind, const char *name,
                              const struct scan_wait *wait, struct scan_opened *ret, struct error *err)
{
        const struct place_request r = { scan_kinds_from_object_kind(kind), name, wait };

        return open_best_place(s, id, &r, ret, err);
}

/* ---- sources ---- */

/*
 * Source files. Debuginfo of the build-id, from a tree or another source, must name the path; then the file is opened
 * in a scanned tree or extracted from an archive.
 */

#define NAMES_CPU_S 120

/* Debuginfo whose source names are checked: a place in a tree, or external debuginfo. */
struct name_source {
        char key[SCAN_CACHE_KEY_SIZE]; /* cache key of the name hashes */
        uint32_t number;               /* of the file that contains it; 0: none */
        const char *like;              /* path that probably resembles the source package's; "": unknown */
        enum status (*open)(const struct name_source *d, const atomic_bool *cancel, int *fd_ret, struct error *err);
        struct scan *scan;
        const struct scan_place *place;
        const struct scan_debuginfo *other;
};

static enum status open_scanned_debuginfo(const struct name_source *d, const atomic_bool *cancel, int *fd_ret,
                                          struct error *err)
{
        struct scan_opened o;
        enum status st = open_place(d->scan, d->place, &(struct scan_wait){ .cancel = cancel }, &o, err);

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
static enum status open_name_hashes(struct scan *s, const struct name_source *d, const atomic_bool *cancel, int *fd_ret,
                                    struct error *err)
{
        _cleanup_close_ int in = -1;
        enum status st;

        if (!scan_cache_open_ready(s->cache, d->key, fd_ret))
                return ST_OK;
        st = d->open(d, cancel, &in, err);
        return st ? st : scan_cache_get(s->cache, d->key, list_source_names, &in, cancel, fd_ret, err);
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
static enum status check_source_is_named(struct scan *s, const struct name_source *d, uint64_t hash,
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
static bool is_better_source_place(const struct scan_place *a, size_t a_shared, const struct scan_place *b,
                                   size_t b_shared)
{
        return a_shared != b_shared ? a_shared > b_shared : a->file.mtime_ns > b->file.mtime_ns;
}

/* A request for a source file. */
struct source_request {
        struct scan *scan;
        const char *path; /* normalized */
        uint64_t hash;    /* scan_path_hash() */
        const struct scan_debuginfo *other;
        const atomic_bool *cancel;
};

static enum status open_source_member(const struct source_request *r, const struct name_source *d,
                                      struct scan_opened *ret, struct error *err)
{
        struct scan_place *places;
        size_t count, best = 0, best_shared = 0;
        enum status st = scan_index_find_source(r->scan->index, r->hash, &places, &count, err);

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
        st = open_place(r->scan, &places[best], &(struct scan_wait){ .cancel = r->cancel }, ret, err);
        if (!st)
                snprintf(ret->name, sizeof ret->name, "%s", r->path);
        scan_places_free(places, count);
        return st;
}

static enum status open_source_in_tree(struct scan *s, const char *path, struct scan_opened *ret, struct error *err)
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

static enum status open_named_source(const struct source_request *r, const struct name_source *d,
                                     struct scan_opened *ret, struct error *err)
{
        enum status st = check_source_is_named(r->scan, d, r->hash, r->cancel, err);

        if (st)
                return st;
        st = open_source_in_tree(r->scan, r->path, ret, err);
        return st == ST_NOT_FOUND ? open_source_member(r, d, ret, err) : st;
}

/* Try debuginfo in all places of the build-id, then external debuginfo, which may belong to an executable in a tree. */
static enum status open_source_of_places(const struct source_request *r, const struct scan_place *places, size_t count,
                                         struct scan_opened *ret, struct error *err)
{
        enum status st = error_set(err, ST_NOT_FOUND, "no scanned debuginfo names it"), one;

        for (size_t i = 0; i < count && st; i++) {
                const struct scan_place *p = &places[i];
                struct name_source d = { .number = p->number,
                                         .like = p->file.path,
                                         .open = open_scanned_debuginfo,
                                         .scan = r->scan,
                                         .place = p };

                if (!(p->object.kinds & SCAN_DEBUGINFO))
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

enum status scan_open_source(struct scan *s, const struct build_id *id, const char *path,
                             const struct scan_debuginfo *other, const atomic_bool *cancel, struct scan_opened *ret,
                             struct error *err)
{
        _cleanup_free_ char *normal = strdup(path);
        struct source_request r = { .scan = s, .path = normal, .other = other, .cancel = cancel };
        struct scan_place *places = NULL;
        size_t count = 0;
        enum status st = normal ? scan_index_find(s->index, id, &places, &count, err) : error_no_memory(err);

        if (st && st != ST_NOT_FOUND)
                return st;
        path_normalize(normal);
        r.hash = scan_path_hash(normal);
        st = open_source_of_places(&r, places, count, ret, err);
        scan_places_free(places, count);
        return st;
}
