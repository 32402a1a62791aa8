/* SPDX-License-Identifier: Apache-2.0 */
/* From a build-id to bytes: the best place that still is what it was, and members out of their archives. */
#include <inttypes.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/limits.h"
#include "sandbox/worker.h"
#include "scan/scan_internal.h"

#define UNPACK_CPU_S 300

struct unpacking {
        struct scan *scan;
        int archive;
        uint32_t ordinal;
        struct timespec mtime;
};

/* A worker that is forked is there in a twentieth of the time; the nursery has one at a time. */
static enum status run_short(struct scan *s, const struct worker_job *job, struct error *err)
{
        enum status st;

        if (pthread_mutex_trylock(&s->nursery_lock))
                return worker_run(job, err);
        st = nursery_run(s->options.nursery, job, err);
        pthread_mutex_unlock(&s->nursery_lock);
        return st;
}

static enum status unpack(void *context, int out, const atomic_bool *cancel, struct error *err)
{
        const struct unpacking *u = context;
        const struct timespec times[] = { u->mtime, u->mtime };
        char ordinal[16];
        const char *const args[] = { "member", ordinal, NULL };
        enum status st;

        snprintf(ordinal, sizeof ordinal, "%" PRIu32, u->ordinal);
        st = run_short(u->scan, &(struct worker_job){ .args = args, .fds = (const int[]){ u->archive, out }, .fd_count = 2,
                                                      .data_bytes = LIMIT_SCAN_DATA_BYTES, .cpu_s = UNPACK_CPU_S,
                                                      .cancel = cancel }, err);
        if (!st && futimens(out, times) < 0) /* Last-Modified is that of the archive */
                st = error_os(err, errno, "cannot set the time of a file");
        return st;
}

static void identify(const struct scan_place *p, struct scan_opened *o)
{
        struct {
                uint64_t path_hash, size, mtime, inode, ordinal;
        } all = { hash64(p->file.path, strlen(p->file.path)), p->file.size_bytes, (uint64_t)p->file.mtime_ns, p->file.inode,
                  p->object.ordinal };

        snprintf(o->identity, sizeof o->identity, "scan-%016" PRIx64, hash64(&all, sizeof all));
}

/* A file in its tree. One that changed is another file, which the next walk finds. */
static enum status open_in_tree(struct scan *s, const struct scan_place *p, const struct scan_wait *wait, int *fd_ret,
                                struct stat *info_ret, struct error *err)
{
        enum status st = scan_trees_open(&s->trees, p->file.path, wait->never ? SCAN_LINKS_NONE_AT_ONCE : SCAN_LINKS_NONE,
                                         fd_ret, info_ret, err);

        if (!st && !scan_file_is(&p->file, info_ret)) {
                close(*fd_ret);
                *fd_ret = -1;
                st = error_set(err, ST_NOT_FOUND, "'%s' changed since it was scanned", p->file.path);
        }
        return st;
}

static enum status open_member(struct scan *s, const struct scan_place *p, const struct scan_wait *wait, int *fd_ret,
                               struct stat *info_ret, struct error *err)
{
        _cleanup_close_ int archive = -1, fd = -1;
        char key[SCAN_CACHE_KEY_SIZE];
        struct unpacking u;
        enum status st = open_in_tree(s, p, wait, &archive, info_ret, err);

        if (st)
                return st;
        snprintf(key, sizeof key, "%08" PRIx32 "-%08" PRIx32, p->number, p->object.ordinal);
        u = (struct unpacking){ s, archive, p->object.ordinal, info_ret->st_mtim };
        if (!wait->never)
                st = scan_cache_get(s->cache, key, unpack, &u, wait->cancel, &fd, err);
        else if (scan_cache_look(s->cache, key, &fd))
                st = error_set(err, ST_BUSY, "'%s' is not unpacked yet", p->object.path);
        if (!st && fstat(fd, info_ret) < 0)
                st = error_os(err, errno, "cannot look at a file of the scan's cache");
        if (!st)
                *fd_ret = steal_fd(&fd);
        return st;
}

static bool may_try_again(const struct scan_wait *wait)
{
        return !wait->never && !(wait->cancel && atomic_load(wait->cancel));
}

enum status scan_open_place(struct scan *s, const struct scan_place *p, const struct scan_wait *wait, struct scan_opened *ret,
                            struct error *err)
{
        struct scan_opened o = { .fd = -1, .quality = p->object.quality };
        bool is_member = p->file.class == FOUND_ARCHIVE;
        struct stat info;
        enum status st = is_member ? open_member(s, p, wait, &o.fd, &info, err) : open_in_tree(s, p, wait, &o.fd, &info, err);

        if (st == ST_BUSY && is_member && may_try_again(wait)) /* sandbox/nursery.h */
                st = open_member(s, p, wait, &o.fd, &info, err);
        if (st)
                return st;
        o.size_bytes = (uint64_t)info.st_size;
        identify(p, &o);
        snprintf(o.name, sizeof o.name, "%s", is_member ? p->object.path : path_base(p->file.path));
        snprintf(o.archive, sizeof o.archive, "%s", is_member ? p->file.path : "");
        *ret = o;
        return ST_OK;
}

/* Better symbols first; then what need not be unpacked; then the newer one. */
static int compare_places(const void *a, const void *b)
{
        const struct scan_place *x = a, *y = b;

        if (x->object.quality != y->object.quality)
                return x->object.quality > y->object.quality ? -1 : 1;
        if (x->file.class != y->file.class)
                return x->file.class == FOUND_ELF ? -1 : 1;
        return (x->file.mtime_ns < y->file.mtime_ns) - (x->file.mtime_ns > y->file.mtime_ns);
}

/* What is looked for among the places of a build-id. */
struct wish {
        uint8_t kinds;       /* FOUND_DEBUGINFO or FOUND_EXECUTABLE; 0 none */
        const char *section; /* NULL: the file */
        const struct scan_wait *wait;
};

static uint8_t wanted_kinds(enum object_kind kind)
{
        if (kind == OBJECT_DEBUGINFO || kind == OBJECT_SUPPLEMENTARY)
                return FOUND_DEBUGINFO;
        return kind == OBJECT_EXECUTABLE ? FOUND_EXECUTABLE : 0;
}

static enum status open_wished(struct scan *s, const struct scan_place *p, const struct wish *w, struct scan_opened *ret,
                               uint64_t *offset, uint64_t *size, struct error *err)
{
        enum status st = ST_OK;

        if (w->section)
                st = scan_index_section(s->index, p->number, p->object.ordinal, w->section, offset, size, err);
        return st ? st : scan_open_place(s, p, w->wait, ret, err);
}

static enum status open_best(struct scan *s, const struct build_id *id, const struct wish *w, struct scan_opened *ret,
                             uint64_t *offset, uint64_t *size, struct error *err)
{
        struct scan_place *places;
        size_t count;
        enum status st = scan_index_find(s->index, id, &places, &count, err), one;

        if (st)
                return st;
        qsort(places, count, sizeof *places, compare_places);
        st = error_set(err, ST_NOT_FOUND, "nothing like it was scanned");
        for (size_t i = 0; i < count && st; i++) {
                if (!(places[i].object.kinds & w->kinds))
                        continue;
                one = open_wished(s, &places[i], w, ret, offset, size, err);
                if (one == ST_BUSY || (w->section && one == ST_UNSUPPORTED)) { /* a worse one is no answer */
                        st = one;
                        break;
                }
                st = one == ST_NOT_FOUND ? st : one; /* what failed is said when nothing better is found */
        }
        scan_places_free(places, count);
        return st;
}

enum status scan_open(struct scan *s, const struct build_id *id, enum object_kind kind, const struct scan_wait *wait,
                      struct scan_opened *ret, struct error *err)
{
        const struct wish w = { wanted_kinds(kind), NULL, wait };

        return open_best(s, id, &w, ret, NULL, NULL, err);
}

enum status scan_open_section(struct scan *s, const struct build_id *id, enum object_kind kind, const char *name,
                              const struct scan_wait *wait, struct scan_opened *ret, uint64_t *offset_ret, uint64_t *size_ret,
                              struct error *err)
{
        const struct wish w = { wanted_kinds(kind), name, wait };

        return open_best(s, id, &w, ret, offset_ret, size_ret, err);
}
