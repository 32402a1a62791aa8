/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/symbols/object_finder.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/symbols/debug_files.h"
#include "cli/symbols/held_files.h"
#include "cli/symbols/named_file.h"
#include "cli/symbols/object_directory.h"
#include "common/cleanup.h"
#include "common/files/file.h"

struct object_finder {
        struct object_finder_options options;
        struct object_facts file; /* of -e */
        struct object_directory directory;
        bool is_flat; /* the debug directory has no .build-id: it is scanned once */
        bool is_scanned;
        bool server_failed;
};

enum status object_finder_create(const struct object_finder_options *o, struct object_finder **ret, struct error *err)
{
        struct object_finder *f = calloc(1, sizeof *f);
        _cleanup_free_ char *ids = path_join(o->debug_files->directory, ".build-id");
        _cleanup_close_ int fd = -1;
        enum status st = ST_OK;

        assert(o->debug_files->directory);
        if (!f || !ids) {
                free(f);
                return error_no_memory(err);
        }
        f->options = *o;
        f->is_flat = access(ids, F_OK) != 0;
        if (o->file) {
                st = named_file_open(o->file, &fd, err);
                if (!st)
                        st = object_facts_read(&fd, 1, &f->file, err);
                if (!st && !f->file.is_elf)
                        st = error_set(err, ST_BAD_DATA, "'%s' is not an ELF file", o->file);
        }
        if (st) {
                object_finder_destroy(f);
                return st;
        }
        *ret = f;
        return ST_OK;
}

void object_finder_destroy(struct object_finder *f)
{
        if (!f)
                return;
        object_directory_deinit(&f->directory);
        free(f);
}

/* ---- the places, in their order ----------------------------------------------------------- */

/* Whether path is an ELF file with that build-id (any if id is empty); *ret: its facts. */
static bool is_matching_elf(const char *path, const struct build_id *id, struct object_facts *ret)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat s;

        if (fd < 0 || fstat(fd, &s) || !S_ISREG(s.st_mode) || object_facts_read(&fd, 1, ret, NULL) || !ret->is_elf)
                return false;
        return !id->size || build_id_equal(id, &ret->build_id);
}

/* @param may_fetch  also debug files that are not on this machine */
static enum status open_file_source(const struct object_finder *f, const char *path, bool may_fetch,
                                    struct found_object *ret, struct error *err)
{
        struct debug_file_search search = debug_files_search(f->options.debug_files);

        if (!may_fetch)
                search.fetch = NULL;
        return answer_source_file(path, &search, true, ANSWER_LINES, &ret->source, err);
}

static bool is_named_file(const struct object_finder *f, const struct build_id *id, const char *path)
{
        if (!f->options.file)
                return false;
        if (id->size && f->file.build_id.size)
                return build_id_equal(id, &f->file.build_id);
        return !*path || strcmp(path_base(path), path_base(f->options.file)) == 0;
}

/* .build-id/xx/yyyy.debug and .build-id/xx/yyyy, or a scanned file. */
static enum status find_file_by_build_id(struct object_finder *f, const struct build_id *id, char path[PATH_MAX],
                                         struct object_facts *ret, struct error *err)
{
        static const char *const endings[] = { ".debug", "" };
        const struct directory_object *best, *code;
        char hex[BUILD_ID_HEX_MAX];
        enum status st = ST_OK;

        build_id_hex(id, hex);
        for (size_t i = 0; !f->is_flat && i < 2; i++) {
                int n = snprintf(path, PATH_MAX, "%s/.build-id/%.2s/%s%s", f->options.debug_files->directory, hex,
                                 hex + 2, endings[i]);

                if (n > 0 && n < PATH_MAX && is_matching_elf(path, id, ret))
                        return ST_OK;
        }
        if (f->is_flat && !f->is_scanned) {
                if (access(f->options.debug_files->directory, F_OK) == 0)
                        st = object_directory_scan(f->options.debug_files->directory, &f->directory, err);
                f->is_scanned = !st;
        }
        if (st)
                return st;
        object_directory_find(&f->directory, id, &best, &code);
        if (!best || snprintf(path, PATH_MAX, "%s", best->path) >= PATH_MAX)
                return error_set(err, ST_NOT_FOUND, "no file with the build-id %s", hex);
        *ret = code ? code->facts : best->facts;
        return ST_OK;
}

/* A held file, the file at the path, or a file of that name in the debug directory. */
static bool find_file_by_path(const struct object_finder *f, const struct build_id *id, const char *path,
                              char at[PATH_MAX], struct object_facts *ret)
{
        char held[HELD_PATH_SIZE];
        int n;

        if (f->options.held && held_files_find(f->options.held, id, path, held))
                n = snprintf(at, PATH_MAX, "%s", held);
        else if (*path == '/')
                n = snprintf(at, PATH_MAX, "%s", path);
        else if (*path && !strchr(path, '/') && *path != '[')
                n = snprintf(at, PATH_MAX, "%s/%s", f->options.debug_files->directory, path);
        else
                return false;
        return n > 0 && n < PATH_MAX && is_matching_elf(at, id, ret);
}

static void note_known_state(void *context, const struct answer *a)
{
        bool *known = context;

        static const enum symbol_state states[] = { SYMBOL_RESOLVED, SYMBOL_OUTSIDE, SYMBOL_UNCOVERED,
                                                    SYMBOL_NOT_IN_OBJECT };

        for (size_t i = 0; i < sizeof states / sizeof *states; i++)
                *known |= strcmp(a->state, symbol_state_name(states[i])) == 0;
}

/* ST_NOT_FOUND when the service has no symbols of it; any address shows that. */
static enum status open_server_source(const struct object_finder *f, const struct build_id *id,
                                      struct found_object *ret, struct error *err)
{
        char hex[BUILD_ID_HEX_MAX];
        const uint64_t address = 0;
        struct answer_source source;
        bool known = false;
        enum status st = answer_source_server(&f->options.service, build_id_hex(id, hex), &source, err);

        if (st)
                return st;
        st = source.ask(source.context, &address, 1, note_known_state, &known, err);
        if (!st && !known)
                st = error_set(err, ST_NOT_FOUND, "the service has no symbols of %s", hex);
        if (st)
                source.close(source.context);
        else
                ret->source = source;
        return st;
}

/* Local files: at the profile's path, and in the debug directory. */
struct candidates {
        bool is_local, is_debug;
        char local[PATH_MAX], debug[PATH_MAX];
        struct object_facts local_facts, debug_facts;
};

static enum status find_local_files(struct object_finder *f, const struct build_id *id, const char *path,
                                    struct candidates *ret, struct error *err)
{
        enum status st = ST_NOT_FOUND;

        ret->is_local = find_file_by_path(f, id, path, ret->local, &ret->local_facts);
        if (ret->is_local && !id->size)
                id = &ret->local_facts.build_id;
        if (id->size && (!ret->is_local || ret->local_facts.quality < QUALITY_LINES))
                st = find_file_by_build_id(f, id, ret->debug, &ret->debug_facts, err);
        ret->is_debug = !st && (!ret->is_local || ret->debug_facts.quality >= QUALITY_LINES || !f->is_flat);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

/* With .build-id/, opening the executable finds its debug file again and uses both. */
static enum status open_local_file(const struct object_finder *f, const struct candidates *c, struct found_object *ret,
                                   struct error *err)
{
        ret->facts = c->is_local ? c->local_facts : c->debug_facts;
        return open_file_source(f, c->is_debug && (!c->is_local || f->is_flat) ? c->debug : c->local, true, ret, err);
}

/* For objects without any local file. */
static enum status open_fetched_file(const struct object_finder *f, const struct build_id *id, const char *path,
                                     struct found_object *ret, struct error *err)
{
        _cleanup_close_ int fd = debug_files_fetch(f->options.debug_files, id, path);
        char link[32], fetched[PATH_MAX];
        ssize_t n;

        if (fd < 0)
                return ST_NOT_FOUND;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, fetched, sizeof fetched - 1);
        fetched[n > 0 ? n : 0] = 0;
        if (!is_matching_elf(fetched, id, &ret->facts))
                return error_set(err, ST_NOT_FOUND, "the file that debuginfod returned is another object");
        return open_file_source(f, fetched, true, ret, err);
}

enum status object_finder_open(struct object_finder *f, const struct build_id *id, const char *path,
                               struct found_object *ret, struct error *err)
{
        _cleanup_free_ struct candidates *c = calloc(1, sizeof *c);
        struct found_object found = { 0 };
        bool is_whole;
        enum status st;

        assert(path && id->size <= BUILD_ID_MAX);
        if (!c)
                return error_no_memory(err);
        if (is_named_file(f, id, path)) {
                found.facts = f->file;
                st = open_file_source(f, f->options.file, true, &found, err);
                if (!st)
                        *ret = found;
                return st;
        }
        st = find_local_files(f, id, path, c, err);
        if (st)
                return st;
        is_whole = c->is_debug || (c->is_local && c->local_facts.quality >= QUALITY_LINES);
        if (c->is_local && !id->size)
                id = &c->local_facts.build_id;
        st = error_set(err, ST_NOT_FOUND, "not found");
        if (!is_whole && f->options.service.server && id->size) {
                if (c->is_local)
                        found.facts = c->local_facts;
                st = open_server_source(f, id, &found, err);
                f->server_failed = st && st != ST_NOT_FOUND;
        }
        if (st == ST_NOT_FOUND && (c->is_local || c->is_debug))
                st = open_local_file(f, c, &found, err);
        else if (st == ST_NOT_FOUND && id->size)
                st = open_fetched_file(f, id, path, &found, err);
        if (!st)
                *ret = found;
        return st;
}

bool object_finder_server_failed(const struct object_finder *f)
{
        return f->server_failed;
}
