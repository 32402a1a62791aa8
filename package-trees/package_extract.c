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
#include "package-trees/package_scan_internal.h"
#include "sandbox/worker.h"

#define UNPACK_CPU_S 300

struct unpack_job {
        struct package_scan *scan;
        int archive;
        uint32_t ordinal;
        struct timespec mtime;
};

/*
 * Forking a worker takes a twentieth of the time of executing the program. The fork server runs one worker at a time.
 */
static enum status fork_member_worker(struct package_scan *s, const struct worker_job *job, struct error *err)
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

static void set_identity(const struct package_place *p, struct package_opened *o)
{
        struct {
                uint64_t path_hash, size, mtime, inode, ordinal;
        } all = { hash_bytes64(p->file.path, strlen(p->file.path)), p->file.size_bytes, (uint64_t)p->file.mtime_ns,
                  p->file.inode, p->object.ordinal };

        snprintf(o->identity, sizeof o->identity, "scan-%016" PRIx64, hash_bytes64(&all, sizeof all));
}

/* Open a file in its tree. A changed file is not found before the next walk. */
static enum status open_scanned_file(struct package_scan *s, const struct package_place *p,
                                     const struct package_scan_wait *wait, int *fd_ret, struct stat *info_ret,
                                     struct error *err)
{
        enum status st = package_trees_open(&s->trees, p->file.path,
                                            wait->never ? PACKAGE_LINKS_NONE_AT_ONCE : PACKAGE_LINKS_NONE, fd_ret,
                                            info_ret, err);

        if (!st && !package_file_matches(&p->file, info_ret)) {
                close(*fd_ret);
                *fd_ret = -1;
                st = error_set(err, ST_NOT_FOUND, "'%s' changed since it was scanned", p->file.path);
        }
        return st;
}

static enum status open_archive_member(struct package_scan *s, const struct package_place *p,
                                       const struct package_scan_wait *wait, int *fd_ret, struct stat *info_ret,
                                       struct error *err)
{
        _cleanup_close_ int archive = -1, fd = -1;
        char key[EXTRACTED_CACHE_KEY_SIZE];
        struct unpack_job u;
        enum status st = open_scanned_file(s, p, wait, &archive, info_ret, err);

        if (st)
                return st;
        snprintf(key, sizeof key, "%08" PRIx32 "-%08" PRIx32, p->number, p->object.ordinal);
        u = (struct unpack_job){ s, archive, p->object.ordinal, info_ret->st_mtim };
        if (!wait->never)
                st = extracted_cache_get(s->cache, key, unpack_archive_member, &u, wait->cancel, &fd, err);
        else if (extracted_cache_open_ready(s->cache, key, &fd))
                st = error_set(err, ST_BUSY, "'%s' is not extracted yet", p->object.path);
        if (!st && fstat(fd, info_ret) < 0)
                st = error_os(err, errno, "cannot stat a file in the scan's cache");
        if (!st)
                *fd_ret = steal_fd(&fd);
        return st;
}

static bool is_retry_allowed(const struct package_scan_wait *wait)
{
        return !wait->never && !(wait->cancel && atomic_load(wait->cancel));
}

enum status package_open_place(struct package_scan *s, const struct package_place *p,
                               const struct package_scan_wait *wait, struct package_opened *ret, struct error *err)
{
        struct package_opened o = { .fd = -1, .quality = p->object.quality };
        bool is_member = p->file.class == PACKAGE_FILE_ARCHIVE;
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
        const struct package_place *x = a, *y = b;

        if (x->object.quality != y->object.quality)
                return x->object.quality > y->object.quality ? -1 : 1;
        if (x->file.class != y->file.class)
                return x->file.class == PACKAGE_FILE_ELF ? -1 : 1;
        return (x->file.mtime_ns < y->file.mtime_ns) - (x->file.mtime_ns > y->file.mtime_ns);
}

/* A request for one of the places of a build-id. */
struct place_request {
        uint8_t kinds;       /* PACKAGE_DEBUGINFO or PACKAGE_EXECUTABLE; 0: none */
        const char *section; /* NULL: the file */
        const struct package_scan_wait *wait;
};

static uint8_t package_kinds_from_object_kind(enum object_kind kind)
{
        if (kind == OBJECT_DEBUGINFO || kind == OBJECT_SUPPLEMENTARY)
                return PACKAGE_DEBUGINFO;
        return kind == OBJECT_EXECUTABLE ? PACKAGE_EXECUTABLE : 0;
}

static enum status open_place_as_requested(struct package_scan *s, const struct package_place *p,
                                           const struct place_request *r, struct package_opened *ret, struct error *err)
{
        uint64_t offset = 0, size = 0;
        enum status st = ST_OK;

        if (r->section)
                st = package_index_find_section(s->index, p->number, p->object.ordinal, r->section, &offset, &size,
                                                err);
        if (!st)
                st = package_open_place(s, p, r->wait, ret, err);
        if (st)
                return st;
        ret->section_offset = offset;
        ret->section_bytes = size;
        return ST_OK;
}

static enum status open_best_place(struct package_scan *s, const struct build_id *id, const struct place_request *r,
                                   struct package_opened *ret, struct error *err)
{
        struct package_place *places;
        size_t count;
        enum status st = package_index_find(s->index, id, &places, &count, err), one;

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
        package_places_free(places, count);
        return st;
}

enum status package_scan_open(struct package_scan *s, const struct build_id *id, enum object_kind kind,
                              const struct package_scan_wait *wait, struct package_opened *ret, struct error *err)
{
        const struct place_request r = { package_kinds_from_object_kind(kind), NULL, wait };

        return open_best_place(s, id, &r, ret, err);
}

enum status package_scan_open_section(struct package_scan *s, const struct build_id *id, enum object_kind kind,
                                      const char *name, const struct package_scan_wait *wait,
                                      struct package_opened *ret, struct error *err)
{
        const struct place_request r = { package_kinds_from_object_kind(kind), name, wait };

        return open_best_place(s, id, &r, ret, err);
}
