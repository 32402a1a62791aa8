/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta/delta_log_cleanup.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/memory/array.h"
#include "common/text.h"
#include "profile-store/delta/delta_checkpoint.h"
#include "profile-store/delta/delta_replay.h"

/* A file of the log. */
struct log_file {
        char *name; /* owned */
        int64_t version;
        bool is_commit, is_checkpoint; /* of the kinds that Cairn writes */
};

struct log_files {
        struct log_file *items; /* by version */
        size_t count, capacity;
        int64_t newest_checkpoint; /* -1: none */
};

static void log_files_deinit(struct log_files *l)
{
        for (size_t i = 0; i < l->count; i++)
                free(l->items[i].name);
        free(l->items);
}

/* Whether the text after the version is that of a file kind of PROTOCOL.md. */
static bool is_log_suffix(const char *s)
{
        return strcmp(s, DELTA_COMMIT_SUFFIX) == 0 || strcmp(s, ".crc") == 0 || ends_with(s, ".compacted.json") ||
               (strncmp(s, ".checkpoint.", 12) == 0 && (ends_with(s, ".parquet") || ends_with(s, ".json")));
}

static int compare_log_files(const void *a, const void *b)
{
        const struct log_file *x = a, *y = b;

        return x->version != y->version ? (x->version < y->version ? -1 : 1) : strcmp(x->name, y->name);
}

static enum status append_log_file(struct log_files *l, const char *name, int64_t version, const char *suffix,
                                   struct error *err)
{
        struct log_file *f;

        if (!array_reserve(&l->items, &l->capacity, l->count))
                return error_no_memory(err);
        f = &l->items[l->count];
        *f = (struct log_file){ .name = strdup(name),
                                .version = version,
                                .is_commit = strcmp(suffix, DELTA_COMMIT_SUFFIX) == 0,
                                .is_checkpoint = strcmp(suffix, DELTA_CHECKPOINT_SUFFIX) == 0 };
        if (!f->name)
                return error_no_memory(err);
        if (f->is_checkpoint && version > l->newest_checkpoint)
                l->newest_checkpoint = version;
        l->count++;
        return ST_OK;
}

static enum status list_log(int folder, const char *log_dir, struct log_files *l, struct error *err)
{
        int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *e;

        if (!dir) {
                int failed = errno;

                if (copy >= 0)
                        close(copy);
                return error_os(err, failed, "cannot list '%s'", log_dir);
        }
        while ((e = readdir(dir))) {
                const char *suffix = "";
                int64_t version = delta_parse_version(e->d_name, &suffix);
                enum status st = version < 0 || !is_log_suffix(suffix)
                                         ? ST_OK
                                         : append_log_file(l, e->d_name, version, suffix, err);

                if (st)
                        return st;
        }
        if (l->count)
                qsort(l->items, l->count, sizeof *l->items, compare_log_files);
        return ST_OK;
}

/*
 * Find the newest checkpoint below bound that is not newer than the last commit made before before_ms; -1 without one.
 * Commits are read in order up to the first newer one: their times may be out of order if the clock was set.
 */
static int64_t find_cutoff_checkpoint(int folder, const struct log_files *l, int64_t before_ms, int64_t bound)
{
        int64_t candidate = -1, ret = -1;

        for (size_t i = 0; i < l->count; i++) {
                const struct log_file *f = &l->items[i];
                struct stat st;

                if (f->is_checkpoint && f->version < bound)
                        candidate = f->version;
                if (!f->is_commit)
                        continue;
                if (fstatat(folder, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 > before_ms)
                        return ret;
                if (candidate >= 0 && candidate <= f->version)
                        ret = candidate;
        }
        return ret;
}

/* Check that a checkpoint and the commits after it yield the state s. */
static enum status verify_checkpoint(const char *log_dir, int64_t version, const struct delta_state *s,
                                     struct error *err)
{
        struct delta_state read;
        enum status st;

        delta_state_init(&read);
        st = delta_replay_checkpoint(log_dir, version, &read, err);
        if (!st)
                st = delta_replay_until(log_dir, s->version, &read, err);
        if (!st && !delta_state_matches(&read, s))
                st = error_set(
                        err, ST_BAD_DATA,
                        "checkpoint %jd of '%s' does not yield the table's current state; commits are kept until a "
                        "newer one is old enough",
                        (intmax_t)version, log_dir);
        delta_state_deinit(&read);
        return st;
}

static bool is_needless(const struct log_file *f, int64_t cutoff)
{
        return f->version < cutoff || (f->version == cutoff && ends_with(f->name, ".compacted.json"));
}

static enum status delete_log_files(int folder, const char *log_dir, const struct log_files *l, int64_t cutoff,
                                    struct delta_log_cleanup *ret, struct error *err)
{
        for (size_t i = 0; i < l->count && l->items[i].version <= cutoff; i++) {
                const char *name = l->items[i].name;
                struct stat st;

                if (!is_needless(&l->items[i], cutoff))
                        continue;
                if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        st.st_size = 0;
                if (unlinkat(folder, name, 0) == 0) {
                        ret->files++;
                        ret->bytes += (uint64_t)st.st_size;
                } else if (errno != ENOENT) {
                        return error_os(err, errno, "cannot remove '%s/%s'", log_dir, name);
                }
        }
        return ST_OK;
}

enum status delta_log_clean_up(const char *log_dir, struct delta_state *s, int64_t before_ms,
                               struct delta_log_cleanup *ret, struct error *err)
{
        _cleanup_(log_files_deinit) struct log_files l = { .newest_checkpoint = -1 };
        _cleanup_close_ int folder = open(log_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        enum status st =
                folder < 0 ? error_os(err, errno, "cannot list '%s'", log_dir) : list_log(folder, log_dir, &l, err);
        int64_t cutoff;

        if (st)
                return st;
        if (l.newest_checkpoint > s->version) /* written by another writer */
                return ST_OK;
        cutoff = l.newest_checkpoint;
        do { /* a damaged checkpoint is skipped */
                cutoff = find_cutoff_checkpoint(folder, &l, before_ms, cutoff);
                assert(cutoff < 0 || l.items);
                if (cutoff < 0 || !is_needless(&l.items[0], cutoff))
                        return st;
                st = verify_checkpoint(log_dir, cutoff, s, err);
        } while (st == ST_BAD_DATA);
        if (!st && (verify_checkpoint(log_dir, l.newest_checkpoint, s, NULL) ||
                    delta_checkpoint_read_hint(log_dir) < cutoff)) {
                st = delta_checkpoint_write(log_dir, s, err); /* an intact one, which _last_checkpoint then names */
                if (!st) {
                        s->checkpoint_version = s->version;
                        s->recent_actions = 0;
                }
        }
        return st ? st : delete_log_files(folder, log_dir, &l, cutoff, ret, err);
}
