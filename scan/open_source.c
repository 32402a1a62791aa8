/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: the debuginfo of the build-id must name the path; then it is taken
 * out of an archive that has it, or from a scanned tree that it lies in.
 */
#include <inttypes.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "sandbox/worker.h"
#include "scan/scan_internal.h"

#define NAMES_CPU_S 120

static enum status list_names(void *context, int out, const atomic_bool *cancel, struct error *err)
{
        static const char *const args[] = { "source-names", NULL };
        const int *debuginfo = context;

        return worker_run(&(struct worker_job){ .args = args, .fds = (const int[]){ *debuginfo, out }, .fd_count = 2,
                                                .cpu_s = NAMES_CPU_S, .cancel = cancel }, err);
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

/* Does the debuginfo at that place name the source? */
static enum status is_named(struct scan *s, const struct scan_place *p, uint64_t hash, const atomic_bool *cancel,
                            struct error *err)
{
        char key[SCAN_CACHE_KEY_SIZE];
        _cleanup_close_ int names = -1;
        struct scan_opened debuginfo;
        enum status st = ST_OK;

        snprintf(key, sizeof key, "%08" PRIx32 "-%08" PRIx32 "-names", p->number, p->object.ordinal);
        if (scan_cache_look(s->cache, key, &names)) {
                st = scan_open_place(s, p, cancel, &debuginfo, err);
                if (st)
                        return st;
                st = scan_cache_get(s->cache, key, list_names, &debuginfo.fd, cancel, &names, err);
                close(debuginfo.fd);
        }
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
 * debuginfo's is taken, which differ only in "-dbgsym" or "debuginfo" and "debugsource" when they belong together.
 */
static enum status open_member(struct scan *s, const struct scan_place *debuginfo, uint64_t hash, const char *path,
                               const atomic_bool *cancel, struct scan_opened *ret, struct error *err)
{
        struct scan_place *places;
        size_t count, best = 0, best_shared = 0;
        enum status st = scan_index_find_source(s->index, hash, &places, &count, err);

        if (st)
                return st;
        for (size_t i = 0; i < count; i++) {
                size_t n = places[i].number == debuginfo->number ? SIZE_MAX : shared(places[i].file.path, debuginfo->file.path);

                if (n > best_shared) {
                        best = i;
                        best_shared = n;
                }
        }
        st = scan_open_place(s, &places[best], cancel, ret, err);
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

static enum status open_named(struct scan *s, const struct scan_place *debuginfo, const char *path, const atomic_bool *cancel,
                              struct scan_opened *ret, struct error *err)
{
        uint64_t hash = found_path_hash(path);
        enum status st = is_named(s, debuginfo, hash, cancel, err);

        if (st)
                return st;
        st = open_in_tree(s, path, ret, err);
        return st == ST_NOT_FOUND ? open_member(s, debuginfo, hash, path, cancel, ret, err) : st;
}

enum status scan_open_source(struct scan *s, const struct build_id *id, const char *path, const atomic_bool *cancel,
                             struct scan_opened *ret, struct error *err)
{
        _cleanup_free_ char *normal = strdup(path);
        struct scan_place *places;
        size_t count;
        enum status st = normal ? scan_index_find(s->index, id, &places, &count, err) : error_no_memory(err);

        if (st)
                return st;
        found_path_normalise(normal);
        st = error_set(err, ST_NOT_FOUND, "no scanned debuginfo names it");
        for (size_t i = 0; i < count && st; i++) {
                enum status one;

                if (!(places[i].object.kinds & FOUND_DEBUGINFO))
                        continue;
                one = open_named(s, &places[i], normal, cancel, ret, err);
                st = one == ST_NOT_FOUND ? st : one;
        }
        scan_places_free(places, count);
        return st;
}
