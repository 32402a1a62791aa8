/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta/delta_replay.h"

#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "profile-store/delta/delta_checkpoint.h"

int64_t delta_parse_version(const char *name, const char **suffix_ret)
{
        uint64_t v = 0;

        for (size_t i = 0; i < DELTA_VERSION_DIGITS; i++) {
                if (name[i] < '0' || name[i] > '9' || v > (uint64_t)INT64_MAX / 10 - 1)
                        return -1;
                v = v * 10 + (uint64_t)(name[i] - '0');
        }
        *suffix_ret = name + DELTA_VERSION_DIGITS;
        return (int64_t)v;
}

char *delta_make_log_path(const char *log_dir, int64_t version, const char *suffix)
{
        char *path;

        return asprintf(&path, "%s/%0*jd%s", log_dir, DELTA_VERSION_DIGITS, (intmax_t)version, suffix) < 0 ? NULL
                                                                                                           : path;
}

struct listing {
        int64_t last_commit;
        int64_t checkpoint; /* the newest below bound */
        int64_t bound;
};

static enum status list_log_files(const char *log_dir, struct listing *l, struct error *err)
{
        _cleanup_closedir_ DIR *dir = opendir(log_dir);
        struct dirent *entry;

        l->last_commit = l->checkpoint = -1;
        if (!dir)
                return errno == ENOENT ? error_set(err, ST_NOT_FOUND, "no table: '%s' does not exist", log_dir)
                                       : error_os(err, errno, "cannot list '%s'", log_dir);
        while ((entry = readdir(dir))) {
                const char *suffix = "";
                int64_t version = delta_parse_version(entry->d_name, &suffix);

                if (version > l->last_commit && strcmp(suffix, DELTA_COMMIT_SUFFIX) == 0)
                        l->last_commit = version;
                if (version > l->checkpoint && version < l->bound && strcmp(suffix, DELTA_CHECKPOINT_SUFFIX) == 0)
                        l->checkpoint = version;
        }
        return ST_OK;
}

enum status delta_replay_commit(const char *log_dir, int64_t version, struct delta_state *s, struct error *err)
{
        _cleanup_free_ char *path = delta_make_log_path(log_dir, version, DELTA_COMMIT_SUFFIX);
        _cleanup_buf_ struct buf text;
        struct delta_actions a;
        enum status st;

        buf_init(&text, LIMIT_DELTA_COMMIT_BYTES);
        if (!path)
                return error_no_memory(err);
        st = file_read(path, &text, err);
        if (st)
                return st;
        st = delta_actions_parse((const char *)text.data, text.size, &a, err);
        if (st)
                return error_prefix(err, st, "cannot read '%s'", path);
        st = delta_state_prepare(s, &a, false, err);
        if (st)
                delta_actions_deinit(&a);
        else
                delta_state_apply(s, &a, version);
        return st;
}

enum status delta_replay_checkpoint(const char *log_dir, int64_t version, struct delta_state *s, struct error *err)
{
        _cleanup_free_ char *path = delta_make_log_path(log_dir, version, DELTA_CHECKPOINT_SUFFIX);
        struct delta_actions a;
        enum status st;

        if (!path)
                return error_no_memory(err);
        st = delta_checkpoint_read(path, &a, err);
        if (st)
                return st;
        st = delta_state_prepare(s, &a, false, err);
        if (st) {
                delta_actions_deinit(&a);
                return st;
        }
        delta_state_apply(s, &a, version);
        s->checkpoint_version = version;
        s->recent_actions = 0;
        return ST_OK;
}

enum status delta_replay_until(const char *log_dir, int64_t version, struct delta_state *s, struct error *err)
{
        while (s->version < version) {
                int64_t next = s->version + 1;
                enum status st = delta_replay_commit(log_dir, next, s, err);

                if (st == ST_NOT_FOUND)
                        return error_set(err, ST_BAD_DATA, "'%s' lacks commit %jd of %jd", log_dir, (intmax_t)next,
                                         (intmax_t)version);
                if (st)
                        return st;
        }
        return ST_OK;
}

enum status delta_replay_log(const char *log_dir, struct delta_state *s, struct error *err)
{
        struct listing l = { .bound = INT64_MAX };
        enum status st;

        do {
                st = list_log_files(log_dir, &l, err);
                if (st)
                        return st;
                l.bound = l.checkpoint;
                st = l.checkpoint < 0 ? ST_OK : delta_replay_checkpoint(log_dir, l.checkpoint, s, err);
                if (st == ST_NO_MEMORY)
                        return st;
        } while (st);
        if (l.last_commit < 0 && l.checkpoint < 0)
                return error_set(err, ST_NOT_FOUND, "no table: '%s' has no commit", log_dir);
        st = delta_replay_until(log_dir, l.last_commit, s, err);
        if (st)
                return st;
        if (!s->metadata || !s->has_protocol)
                return error_set(err, ST_BAD_DATA, "'%s' has no metaData or no protocol", log_dir);
        return ST_OK;
}

bool delta_replay_has_gap_after(const char *log_dir, int64_t version)
{
        _cleanup_free_ char *path = delta_make_log_path(log_dir, version, DELTA_COMMIT_SUFFIX);
        struct listing l = { .bound = INT64_MAX };

        /* Otherwise nothing after it was deleted: cleaning keeps the last commit. The hint alone proves nothing. */
        if (delta_checkpoint_read_hint(log_dir) <= version && (!path || access(path, F_OK) == 0 || errno != ENOENT))
                return false;
        return !list_log_files(log_dir, &l, NULL) && l.last_commit > version;
}
