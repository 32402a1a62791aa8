/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/symbols/object_directory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/file_magic.h"
#include "archive/members.h"
#include "cli/symbols/named_file.h"
#include "common/cleanup.h"
#include "common/memory/array.h"
#include "elf-image/elf_image.h"

/* Files to inspect in one worker run. */
struct candidate_files {
        int fds[OBJECT_FACTS_FILES];
        char *paths[OBJECT_FACTS_FILES];
        size_t count;
};

static enum status add_directory_object(struct object_directory *d, char **path, const struct object_facts *facts,
                                        struct error *err)
{
        if (!array_reserve(&d->objects, &d->capacity, d->count))
                return error_no_memory(err);
        d->objects[d->count++] = (struct directory_object){ .path = steal_ptr(*path), .facts = *facts };
        return ST_OK;
}

static void clear_candidates(struct candidate_files *a)
{
        for (size_t i = 0; i < a->count; i++) {
                close(a->fds[i]);
                free(a->paths[i]);
        }
        a->count = 0;
}

static enum status flush_candidates(struct object_directory *d, struct candidate_files *a, struct error *err)
{
        struct object_facts facts[OBJECT_FACTS_FILES];
        enum status st = a->count ? object_facts_read(a->fds, a->count, facts, err) : ST_OK;

        for (size_t i = 0; !st && i < a->count; i++)
                if (facts[i].is_elf && facts[i].build_id.size)
                        st = add_directory_object(d, &a->paths[i], &facts[i], err);
        clear_candidates(a);
        return st;
}

static enum status queue_candidate_file(struct object_directory *d, struct candidate_files *a, const char *path,
                                        struct error *err)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat s;

        assert(a->count < OBJECT_FACTS_FILES);
        if (fd < 0 || fstat(fd, &s) || !S_ISREG(s.st_mode))
                return ST_OK;
        if (archive_name_is_compressed_elf(path) && compressed_magic_at_fd(fd)) {
                close(steal_fd(&fd));
                if (named_file_open(path, &fd, NULL))
                        return ST_OK;
        }
        if (!elf_magic_at_fd(fd))
                return ST_OK;
        a->paths[a->count] = strdup(path);
        if (!a->paths[a->count])
                return error_no_memory(err);
        a->fds[a->count++] = steal_fd(&fd);
        return a->count == OBJECT_FACTS_FILES ? flush_candidates(d, a, err) : ST_OK;
}

enum status object_directory_scan(const char *dir, struct object_directory *ret, struct error *err)
{
        char *roots[] = { (char *)dir, NULL };
        FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR | FTS_NOSTAT, NULL);
        struct object_directory d = { 0 };
        struct candidate_files candidates = { .count = 0 };
        enum status st = ST_OK;
        size_t files = 0;
        FTSENT *e;

        if (!walk)
                return error_os(err, errno, "cannot read '%s'", dir);
        while (!st && (e = fts_read(walk))) {
                if (e->fts_info == FTS_D && e->fts_level >= OBJECT_DIRECTORY_DEPTH)
                        fts_set(walk, e, FTS_SKIP);
                if (e->fts_info == FTS_D || e->fts_info == FTS_DP || e->fts_info == FTS_DNR || e->fts_info == FTS_ERR)
                        continue;
                if (++files > OBJECT_DIRECTORY_FILES)
                        st = error_set(err, ST_TOO_BIG, "'%s' has more than %d files; name a directory of debug files",
                                       dir, OBJECT_DIRECTORY_FILES);
                else
                        st = queue_candidate_file(&d, &candidates, e->fts_accpath, err);
        }
        if (!st)
                st = flush_candidates(&d, &candidates, err);
        clear_candidates(&candidates);
        fts_close(walk);
        if (st) {
                object_directory_deinit(&d);
                return st;
        }
        *ret = d;
        return ST_OK;
}

void object_directory_deinit(struct object_directory *d)
{
        for (size_t i = 0; i < d->count; i++)
                free(d->objects[i].path);
        free(d->objects);
        *d = (struct object_directory){ 0 };
}

void object_directory_find(const struct object_directory *d, const struct build_id *id,
                           const struct directory_object **best_ret, const struct directory_object **code_ret)
{
        const struct directory_object *best = NULL, *code = NULL;

        for (size_t i = 0; i < d->count; i++) {
                const struct directory_object *o = &d->objects[i];

                if (!build_id_equal(&o->facts.build_id, id))
                        continue;
                if (!best || o->facts.quality > best->facts.quality)
                        best = o;
                if (o->facts.has_code && !code)
                        code = o;
        }
        *best_ret = best;
        *code_ret = code;
}
