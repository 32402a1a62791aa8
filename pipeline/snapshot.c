/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill_snapshot() has the order that makes the copy consistent (snapshot.h): the index with its queue, the tables with
 * the raw queue, then objects; each part for all tenants before the next part (take_of_all_tenants(), which sets
 * `base` to the folder of the current tenant).
 *
 * Three ways to take a file: take_stored_object() from a storage, link_file() for other files that never change in
 * place, copy_snapshot_file() for the rest; LMDB environments are copied by lmdb_copy_env(). Files that vanish while a
 * folder is listed are left out.
 *
 * try_profiles() is one attempt at the tables: read the state of the logs, copy the queue, test that the samples' log
 * did not change, then link what the state names and read the copied log back. It starts from an empty folder, so
 * take_profiles() can repeat it.
 *
 * Order: files, index and objects, tables and queue, all parts, publication by rename.
 */
#include "pipeline/snapshot.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/files/file.h"
#include "common/files/lmdb_env.h"
#include "profile-store/delta/delta_place.h"
#include "debuginfo-store/remote_objects.h"
#include "profile-store/tables/node_identity.h"
#include "profile-store/tables/table_storage.h"
#include "profile-store/tables/tables.h"
#include "storage/local_storage.h"

#define ATTEMPTS 20
#define DEPTH_MAX 8

struct snapshot {
        const char *data;
        char *dir;        /* DIR.incomplete */
        const char *base; /* path of the current store below data: "" for the default tenant and the shared store, else
                             "tenants/NAME" */
        struct snapshot_result result;
};

/* ---- files ---- */

static void count_taken_file(struct snapshot *s, uint64_t copied_bytes)
{
        if (copied_bytes == UINT64_MAX) {
                s->result.linked_files++;
                return;
        }
        s->result.copied_files++;
        s->result.copied_bytes += copied_bytes;
}

/* Copy the current content of the file. ST_NOT_FOUND if it was removed. */
static enum status copy_snapshot_file(struct snapshot *s, const char *from, const char *to, struct error *err)
{
        uint64_t bytes;
        enum status st = file_copy_new(from, to, &bytes, err);

        if (!st)
                count_taken_file(s, bytes);
        return st;
}

/* For files that are never changed in place. */
static enum status link_file(struct snapshot *s, const char *from, const char *to, struct error *err)
{
        uint64_t bytes;
        enum status st = file_link_or_copy(from, to, &bytes, err);

        if (!st)
                count_taken_file(s, bytes);
        return st;
}

static enum status take_stored_object(struct snapshot *s, struct storage *storage, const char *key, const char *to,
                                      struct error *err)
{
        uint64_t bytes;
        enum status st = storage_export(storage, key, to, &bytes, err);

        if (!st)
                count_taken_file(s, bytes);
        return st;
}

/* Directories are not synced here: the whole file system is synced at the end. */
static enum status make_snapshot_dir(const char *path, struct error *err)
{
        if (mkdir(path, 0755) == 0 || errno == EEXIST)
                return ST_OK;
        return error_os(err, errno, "cannot create '%s'", path);
}

static bool is_temporary_entry(const char *name)
{
        return name[0] == '.';
}

/* How a file of a folder is copied; NULL: not copied. */
typedef enum status take_file(struct snapshot *s, const char *from, const char *to, struct error *err);

static take_file *link_every_file(const char *name)
{
        (void)name;
        return link_file;
}

/* Segments and batch ids are appended to; a quarantined (.damaged) file is immutable. */
static take_file *take_queue_file(const char *name)
{
        const char *dot = strrchr(name, '.');

        if (!dot)
                return NULL;
        return strcmp(dot, ".queue") == 0 || strcmp(dot, ".ids") == 0 ? copy_snapshot_file
               : strcmp(dot, ".damaged") == 0                         ? link_file
                                                                      : NULL;
}

static int is_listed_entry(const struct dirent *e)
{
        return !is_temporary_entry(e->d_name);
}

/*
 * The files of a folder in order of their names, and its subfolders up to depth. Files that vanish during the copy are
 * left out; files that exist in the copy stay.
 */
static enum status take_folder(struct snapshot *s, const char *from, const char *to, take_file *(*how)(const char *),
                               int depth, struct error *err)
{
        struct dirent **entries = NULL;
        int count = scandir(from, &entries, is_listed_entry, alphasort);
        enum status st = ST_OK;

        if (count < 0)
                return errno == ENOENT ? ST_OK : error_os(err, errno, "cannot list '%s'", from);
        st = make_snapshot_dir(to, err);
        for (int i = 0; i < count; i++) {
                _cleanup_free_ char *name = entries[i]->d_name[0] ? strdup(entries[i]->d_name) : NULL;
                _cleanup_free_ char *source = name ? path_join(from, name) : NULL;
                _cleanup_free_ char *target = name ? path_join(to, name) : NULL;
                struct stat info;

                free(entries[i]);
                if (st)
                        continue;
                if (!source || !target) {
                        st = error_no_memory(err);
                        continue;
                }
                if (lstat(source, &info))
                        continue;
                if (S_ISDIR(info.st_mode) && depth > 0)
                        st = take_folder(s, source, target, how, depth - 1, err);
                else if (S_ISREG(info.st_mode) && how(name) && access(target, F_OK))
                        st = how(name)(s, source, target, err);
                if (st == ST_NOT_FOUND)
                        st = ST_OK;
        }
        free(entries);
        return st;
}

/* "DATA/BASE/NAME" and "DIR.incomplete/BASE/NAME". */
struct path_pair {
        char *from, *to;
};

static void path_pair_deinit(struct path_pair *p)
{
        free(p->from);
        free(p->to);
}
#define _cleanup_path_pair_ _cleanup_(path_pair_deinit)

static enum status make_path_pair(const struct snapshot *s, const char *name, struct path_pair *ret, struct error *err)
{
        _cleanup_free_ char *below = s->base[0] ? path_join(s->base, name) : strdup(name);

        *ret = (struct path_pair){ 0 };
        if (below)
                *ret = (struct path_pair){ path_join(s->data, below), path_join(s->dir, below) };
        return ret->from && ret->to ? ST_OK : error_no_memory(err);
}

/* ---- index and objects ---- */

static enum status copy_database(struct snapshot *s, const char *name, struct error *err)
{
        _cleanup_path_pair_ struct path_pair p = { 0 };
        uint64_t bytes = 0;
        enum status st = make_path_pair(s, name, &p, err);

        if (!st && access(p.from, F_OK)) /* where the folder exists there is a database, also of a tenant */
                return ST_OK;
        if (!st)
                st = make_snapshot_dir(p.to, err);
        if (!st)
                st = lmdb_copy_env(p.from, p.to, &bytes, err);
        if (st == ST_NOT_FOUND)
                return ST_OK;
        if (!st) {
                s->result.copied_files++;
                s->result.copied_bytes += bytes;
        }
        return st;
}

static enum status link_if_there(struct snapshot *s, const char *name, struct error *err)
{
        _cleanup_path_pair_ struct path_pair p = { 0 };
        enum status st = make_path_pair(s, name, &p, err);

        if (!st)
                st = link_file(s, p.from, p.to, err);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status link_objects(struct snapshot *s, struct error *err)
{
        _cleanup_path_pair_ struct path_pair p = { 0 };
        enum status st = make_path_pair(s, "debuginfo/objects", &p, err);

        return st ? st : take_folder(s, p.from, p.to, link_every_file, DEPTH_MAX, err);
}

/* Objects in an object store, copied to the snapshot's folder. */
struct remote_copy {
        struct snapshot *s;
        struct storage *storage;
        const char *to; /* the folder "debuginfo" of the snapshot */
};

static enum status take_remote_object(void *context, const char *key, const struct storage_info *info,
                                      struct error *err)
{
        struct remote_copy *c = context;
        _cleanup_free_ char *to = path_join(c->to, key);
        _cleanup_free_ char *folder = to ? strndup(to, (size_t)(path_base(to) - to - 1)) : NULL;
        enum status st;

        (void)info;
        if (!folder)
                return error_no_memory(err);
        if (access(to, F_OK) == 0)
                return ST_OK;
        st = file_make_dirs(folder, err);
        if (!st)
                st = take_stored_object(c->s, c->storage, key, to, err);
        return st == ST_NOT_FOUND ? ST_OK : st; /* removed meanwhile */
}

/* Twice: a record that is copied in between names a file that the second pass finds. */
static enum status take_object_files(struct snapshot *s, struct storage *remote, const char *to, struct error *err)
{
        struct remote_copy c = { s, remote, to };

        return remote ? storage_list(remote, "objects/", "", take_remote_object, &c, err) : link_objects(s, err);
}

static enum status take_objects(struct snapshot *s, struct error *err)
{
        _cleanup_storage_ struct storage *remote = NULL;
        _cleanup_path_pair_ struct path_pair p = { 0 };
        enum status st = make_path_pair(s, "debuginfo", &p, err);

        if (!st && access(p.from, F_OK))
                return ST_OK;
        if (!st)
                st = make_snapshot_dir(p.to, err);
        if (!st)
                st = remote_objects_open_storage(p.from, &remote, err);
        if (!st)
                st = take_object_files(s, remote, p.to, err);
        if (!st)
                st = copy_database(s, "debuginfo/meta", err);
        return st ? st : take_object_files(s, remote, p.to, err);
}

/* ---- tables and queue ---- */

/* The copy of a log. */
struct log_copy {
        struct snapshot *s;
        const struct delta_place *from;
        const char *to; /* folder of the copy */
        uint64_t version;
};

static enum status take_log_file(void *context, const char *name, const struct storage_info *info, struct error *err)
{
        struct log_copy *c = context;
        const char *suffix = "";
        int64_t version = delta_parse_version(name, &suffix);
        _cleanup_free_ char *key = NULL, *target = NULL;

        (void)info;
        if (version < 0 || (uint64_t)version > c->version ||
            (strcmp(suffix, DELTA_COMMIT_SUFFIX) != 0 && strcmp(suffix, DELTA_CHECKPOINT_SUFFIX) != 0))
                return ST_OK;
        key = delta_make_log_key(c->from, name);
        target = path_join(c->to, name);
        return key && target ? take_stored_object(c->s, c->from->storage, key, target, err) : error_no_memory(err);
}

static enum status take_log(struct snapshot *s, struct storage *from, enum table t, const char *to, uint64_t version,
                            struct error *err)
{
        _cleanup_free_ char *target = path_join(to, "_delta_log");
        _cleanup_delta_place_ struct delta_place place = { 0 };
        struct log_copy c = { .s = s, .from = &place, .to = target, .version = version };
        enum status st = target ? delta_place_init(&place, from, table_name(t), err) : error_no_memory(err);

        if (!st)
                st = make_snapshot_dir(target, err);
        return st ? st : delta_list_log(&place, take_log_file, &c, err);
}

static enum status take_parts(struct snapshot *s, const char *table, struct table_part *const *parts, size_t count,
                              struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < count; i++) {
                _cleanup_free_ char *to = path_join(table, parts[i]->name);
                char *slash = to ? strrchr(to, '/') : NULL;

                if (!slash)
                        return error_no_memory(err);
                *slash = 0;
                st = make_snapshot_dir(to, err);
                *slash = '/';
                if (!st)
                        st = take_stored_object(s, parts[i]->storage, parts[i]->key, to, err);
        }
        return st;
}

/* Check that the copied log yields the state that was copied: a cleanup of the log may have run meanwhile. */
static enum status check_copied_table(const char *table, uint64_t version, size_t files, struct error *err)
{
        _cleanup_storage_ struct storage *storage = NULL;
        struct delta_snapshot *state = NULL;
        struct delta_table *log = NULL;
        enum status st = local_storage_open(table, &storage, err);

        if (!st)
                st = delta_table_open(storage, "", &log, err);
        if (!st)
                st = delta_snapshot_acquire(log, &state, err);
        if (!st && (state->version != version || state->file_count != files))
                st = ST_BAD_DATA;
        if (state)
                delta_snapshot_release(state);
        delta_table_close(log);
        return st == ST_BAD_DATA || st == ST_NOT_FOUND
                       ? error_set(err, ST_NOT_FOUND, "the log that '%s' is a copy of was cleaned up", table)
                       : st;
}

/* The state of all tables at one time. */
struct table_moment {
        struct storage *storage;
        struct table_logs logs;
        struct tables *tables;
        uint64_t versions[TABLE_COUNT];
};

static void table_moment_deinit(struct table_moment *m)
{
        tables_unref(m->tables);
        table_logs_close(&m->logs);
        storage_close(m->storage);
}

static enum status make_store_pair(const struct snapshot *s, const char *name, struct path_pair *ret, struct error *err)
{
        _cleanup_free_ char *path = path_join("profiles", name);

        return path ? make_path_pair(s, path, ret, err) : error_no_memory(err);
}

static enum status load_table_moment(const struct snapshot *s, struct table_moment *m, struct error *err)
{
        _cleanup_path_pair_ struct path_pair profiles = { 0 };
        char node[NODE_ID_SIZE] = "";
        enum status st = make_path_pair(s, "profiles", &profiles, err);

        if (!st)
                st = open_table_storage(profiles.from, &m->storage, err);
        if (!st)
                st = node_identity_read(profiles.from, node, err);
        if (!st)
                st = table_logs_open(m->storage, node, true, 0, &m->logs, err);
        if (!st)
                st = tables_load(&m->logs, false, NULL, &m->tables, err);
        for (int t = 0; !st && t < TABLE_COUNT; t++) {
                struct delta_snapshot *state;

                if (!m->logs.logs[t]) /* function_history of an earlier release */
                        continue;
                st = delta_snapshot_acquire(m->logs.logs[t], &state, err);
                if (st)
                        break;
                m->versions[t] = state->version;
                delta_snapshot_release(state);
        }
        return st;
}

/* Whether the samples' log has no commit after m that moved the flushed position or removed a file. */
static enum status check_table_moment(struct table_moment *m, bool *same_ret, struct error *err)
{
        struct tables *now;
        size_t k = 0;
        enum status st = tables_load(&m->logs, true, m->tables, &now, err);

        if (st)
                return st;
        *same_ret = now->flushed == m->tables->flushed;
        for (size_t i = 0; *same_ret && i < m->tables->part_count[TABLE_SAMPLES]; i++) { /* both are sorted by name */
                const struct table_part *part = m->tables->parts[TABLE_SAMPLES][i];

                while (k < now->part_count[TABLE_SAMPLES] && now->parts[TABLE_SAMPLES][k] != part)
                        k++;
                *same_ret = k < now->part_count[TABLE_SAMPLES];
        }
        tables_unref(now);
        return ST_OK;
}

static enum status take_table(struct snapshot *s, const struct table_moment *m, enum table t, struct error *err)
{
        _cleanup_free_ char *name = path_join("tables", table_name(t));
        _cleanup_path_pair_ struct path_pair p = { 0 };
        enum status st = name ? make_store_pair(s, name, &p, err) : error_no_memory(err);

        if (!st)
                st = make_snapshot_dir(p.to, err);
        if (!st)
                st = take_log(s, m->storage, t, p.to, m->versions[t], err);
        if (!st)
                st = take_parts(s, p.to, m->tables->parts[t], m->tables->part_count[t], err);
        return st ? st : check_copied_table(p.to, m->versions[t], m->tables->part_count[t], err);
}

static enum status take_queue(struct snapshot *s, struct error *err)
{
        static const char *const folders[] = { "queue", "queue/quarantine", "queue/batch-ids" };
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < sizeof folders / sizeof *folders; i++) {
                _cleanup_path_pair_ struct path_pair p = { 0 };

                st = make_store_pair(s, folders[i], &p, err);
                if (!st)
                        st = take_folder(s, p.from, p.to, i == 1 ? link_every_file : take_queue_file, 0, err);
        }
        return st;
}

/* The copied queue belongs to the node, whose positions the copied log of samples has. */
static enum status take_node_identity(struct snapshot *s, const struct table_moment *m, struct error *err)
{
        _cleanup_path_pair_ struct path_pair p = { 0 };
        char line[NODE_ID_SIZE + 1];
        enum status st = make_store_pair(s, NODE_IDENTITY_FILE, &p, err);

        if (st || !*m->logs.node)
                return st;
        snprintf(line, sizeof line, "%s\n", m->logs.node);
        return file_write_durable(p.to, line, strlen(line), err);
}

/* One attempt. ST_BUSY and ST_NOT_FOUND: the tables changed meanwhile; try again. */
static enum status try_profiles(struct snapshot *s, struct error *err)
{
        _cleanup_(table_moment_deinit) struct table_moment m = { 0 };
        _cleanup_path_pair_ struct path_pair profiles = { 0 }, tables = { 0 };
        bool same = false;
        enum status st = make_path_pair(s, "profiles", &profiles, err);

        if (!st)
                st = make_store_pair(s, "tables", &tables, err);
        if (!st)
                st = file_remove_tree(profiles.to, err);
        if (!st)
                st = make_snapshot_dir(profiles.to, err);
        if (!st)
                st = make_snapshot_dir(tables.to, err);
        if (!st)
                st = load_table_moment(s, &m, err);
        if (!st)
                st = take_queue(s, err);
        if (!st)
                st = take_node_identity(s, &m, err);
        if (!st)
                st = check_table_moment(&m, &same, err);
        if (!st && !same)
                return error_set(err, ST_BUSY,
                                 "flushes commit to the tables faster than the queue can be copied: try again later");
        for (int t = 0; !st && t < TABLE_COUNT; t++)
                if (m.logs.logs[t])
                        st = take_table(s, &m, t, err);
        if (st)
                return st;
        s->result.sample_files += m.tables->part_count[TABLE_SAMPLES];
        for (size_t i = 0; i < m.tables->part_count[TABLE_SAMPLES]; i++)
                s->result.sample_rows += m.tables->parts[TABLE_SAMPLES][i]->rows;
        return ST_OK;
}

static enum status take_profiles(struct snapshot *s, struct error *err)
{
        _cleanup_path_pair_ struct path_pair p = { 0 };
        enum status st = make_store_pair(s, "tables", &p, err);

        if (!st && access(p.from, F_OK))
                return error_set(err, ST_NOT_FOUND,
                                 "no tables in '%s/profiles'; --data must name a service's data directory", s->data);
        for (int i = 0; !st && i < ATTEMPTS; i++) {
                const struct snapshot_result before = s->result;

                st = try_profiles(s, err);
                if (st != ST_BUSY && st != ST_NOT_FOUND)
                        return st;
                if (i + 1 == ATTEMPTS)
                        return ST_BUSY;
                s->result = before;
                st = ST_OK;
        }
        return st;
}

/* ---- all parts ---- */

/* The index before resymbolize-queue (snapshot.h, 1.). */
static enum status take_index(struct snapshot *s, struct error *err)
{
        enum status st = copy_database(s, "index", err);

        if (!st)
                st = link_if_there(s, "resymbolize-queue", err);
        return st ? st : link_if_there(s, "missing-companions", err);
}

typedef enum status take_part(struct snapshot *s, struct error *err);

/* The folder that holds the part must exist in the copy. */
static enum status take_part_of_tenant(struct snapshot *s, const char *name, take_part *take, struct error *err)
{
        _cleanup_free_ char *base = path_join("tenants", name), *to = base ? path_join(s->dir, base) : NULL;
        _cleanup_path_pair_ struct path_pair tables = { 0 };
        enum status st;

        if (!to)
                return error_no_memory(err);
        s->base = base;
        st = make_store_pair(s, "tables", &tables, err);
        if (!st && access(tables.from, F_OK) == 0) { /* else the tenant's store is being created */
                st = make_snapshot_dir(to, err);
                if (!st)
                        st = take(s, err);
        }
        s->base = "";
        return st;
}

/* Copy this part for the default tenant and the shared store, then for each other tenant. */
static enum status take_of_all_tenants(struct snapshot *s, take_part *take, struct error *err)
{
        _cleanup_path_pair_ struct path_pair p = { 0 };
        enum status st = make_path_pair(s, "tenants", &p, err);
        _cleanup_closedir_ DIR *d = NULL;
        struct dirent *e;

        if (!st)
                st = take(s, err);
        if (st)
                return st;
        d = opendir(p.from);
        if (!d)
                return errno == ENOENT ? ST_OK : error_os(err, errno, "cannot list '%s'", p.from);
        st = make_snapshot_dir(p.to, err);
        while (!st && (e = readdir(d)))
                if (!is_temporary_entry(e->d_name))
                        st = take_part_of_tenant(s, e->d_name, take, err);
        return st;
}

static enum status fill_snapshot(struct snapshot *s, struct error *err)
{
        enum status st = take_of_all_tenants(s, take_index, err);

        if (!st)
                st = link_if_there(s, "format", err);
        if (!st)
                st = take_of_all_tenants(s, take_profiles, err);
        return st ? st : take_of_all_tenants(s, take_objects, err);
}

static bool is_path_taken(const char *path)
{
        struct stat info;

        return lstat(path, &info) == 0;
}

static enum status report_taken_path(const char *dir, struct error *err)
{
        return error_set(err, ST_BUSY, "'%s' exists: name a new directory", dir);
}

/*
 * Rename unless the new name exists. File systems without RENAME_NOREPLACE, such as NFS and many FUSE ones, replace
 * only an empty directory, and that only if it was created after the check.
 */
static enum status rename_new(const char *from, const char *to, struct error *err)
{
        int failed = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) < 0 ? errno : 0;

        if (failed == EINVAL || failed == ENOSYS || failed == EOPNOTSUPP)
                failed = is_path_taken(to) ? EEXIST : rename(from, to) < 0 ? errno : 0;
        if (failed == EEXIST || failed == ENOTEMPTY || failed == ENOTDIR)
                return report_taken_path(to, err);
        return failed ? error_os(err, failed, "cannot rename '%s' to '%s'", from, to) : ST_OK;
}

static enum status publish_snapshot(struct snapshot *s, const char *dir, struct error *err)
{
        enum status st = file_sync_filesystem(s->dir, err);

        if (!st)
                st = rename_new(s->dir, dir, err);
        return st ? st : file_sync_parent(dir, err);
}

/* The path without trailing slashes, owned. */
static char *trim_slashes(const char *path)
{
        size_t n = strlen(path);

        while (n > 1 && path[n - 1] == '/')
                n--;
        return strndup(path, n);
}

enum status take_snapshot(const char *data, const char *target, struct snapshot_result *ret, struct error *err)
{
        _cleanup_free_ char *dir = trim_slashes(target);
        struct snapshot s = { .data = data, .base = "" };
        struct error ignored;
        struct stat info;
        enum status st;

        if (!dir)
                return error_no_memory(err);
        if (stat(data, &info))
                return errno == ENOENT ? error_set(err, ST_NOT_FOUND,
                                                   "'%s' does not exist; --data must name a service's data "
                                                   "directory",
                                                   data)
                                       : error_os(err, errno, "cannot open '%s'", data);
        if (is_path_taken(dir))
                return report_taken_path(dir, err);
        if (asprintf(&s.dir, "%s.incomplete", dir) < 0)
                return error_no_memory(err);
        if (mkdir(s.dir, info.st_mode & 0777) < 0) { /* same readers as the original */
                st = errno == EEXIST
                             ? error_set(err, ST_BUSY,
                                         "'%s' is left from an interrupted snapshot, or belongs to a running one: "
                                         "remove it, or name another directory",
                                         s.dir)
                             : error_os(err, errno, "cannot create '%s'", s.dir);
                free(s.dir);
                return st;
        }
        st = fill_snapshot(&s, err);
        if (!st)
                st = publish_snapshot(&s, dir, err);
        if (st)
                (void)!file_remove_tree(s.dir, &ignored);
        else
                *ret = s.result;
        free(s.dir);
        return st;
}
