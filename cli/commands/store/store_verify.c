/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store verify: check the tables, print each problem as it is found. */
#include <dirent.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/store/store_command.h"
#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/files/lmdb_check.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "debuginfo-store/object_verification.h"
#include "debuginfo-store/remote_objects.h"
#include "profile-store/profile_store.h"
#include "profile-store/tables/store_verification.h"

struct verify_output {
        bool json, shows_progress;
        bool comma; /* a problem was printed */
};

static void clear_verify_progress(const struct verify_output *o)
{
        if (o->shows_progress)
                fprintf(stderr, "\r\033[K");
}

/* Problems are printed one by one: their number is not bounded. */
static void print_problem(void *context, const char *table, const char *file, const char *problem)
{
        struct verify_output *o = context;
        struct json_out j;
        struct buf line;

        clear_verify_progress(o);
        if (!o->json) {
                printf("%s/%s: %s\n", table, PRINTABLE(file), PRINTABLE(problem));
                return;
        }
        buf_init(&line, MiB(1));
        json_out_init(&j, &line);
        json_out_object(&j, NULL);
        json_out_str(&j, "table", table);
        json_out_str(&j, "file", file);
        json_out_str(&j, "problem", problem);
        json_out_object_end(&j);
        printf("%s%.*s", o->comma ? ",\n" : "\n", (int)line.size, (const char *)line.data);
        o->comma = true;
        buf_deinit(&line);
}

static void print_verify_progress(void *context, uint64_t done, uint64_t all)
{
        const struct verify_output *o = context;

        if (o->shows_progress)
                fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " files", done, all);
}

static enum status verify_database(const char *data, const char *folder, struct verify_output *o, uint64_t *problems,
                                   struct error *err)
{
        _cleanup_free_ char *dir = path_join(data, folder);
        enum status st = dir ? lmdb_check_snapshot(dir, err) : error_no_memory(err);

        if (st != ST_BAD_DATA)
                return st;
        print_problem(o, folder, "data.mdb", err->text);
        ++*problems;
        return ST_OK;
}

static void print_object_problem(void *context, const char *file, const char *problem)
{
        print_problem(context, "object store", file, problem);
}

/* The table of objects of a debuginfo store whose objects are in an object store. */
static enum status verify_objects(const char *data, struct verify_output *o, struct store_verify_result *total,
                                  struct error *err)
{
        _cleanup_free_ char *dir = path_join(data, "debuginfo");
        _cleanup_storage_ struct storage *objects = NULL;
        struct object_verify_result r = { 0 };
        enum status st = dir ? remote_objects_open_storage(dir, &objects, err) : error_no_memory(err);

        if (!st && objects)
                st = verify_object_table(objects, print_object_problem, o, &r, err);
        total->files += r.files;
        total->rows += r.rows;
        total->bytes += r.bytes;
        total->problems += r.problems;
        if (r.unnamed && !o->json) {
                clear_verify_progress(o);
                printf("%s: %s of %" PRIu64
                       " bytes without a row in the table of objects, which garbage collection removes after a day\n",
                       storage_root(objects), COUNTED(r.unnamed, "object", "objects"), r.unnamed_bytes);
        }
        return st;
}

/* The databases and objects beside the tables: of the service, and of tenants with their own debuginfo. */
static enum status verify_databases(const char *data, struct verify_output *o, struct store_verify_result *total,
                                    struct error *err)
{
        static const char *const folders[] = { "index", "debuginfo/meta", "scan/index" };
        _cleanup_free_ char *tenants = path_join(data, "tenants");
        _cleanup_closedir_ DIR *d = tenants ? opendir(tenants) : NULL;
        const struct dirent *entry;
        enum status st = tenants ? verify_objects(data, o, total, err) : error_no_memory(err);

        for (size_t i = 0; !st && i < sizeof folders / sizeof *folders; i++)
                st = verify_database(data, folders[i], o, &total->problems, err);
        while (!st && d && (entry = readdir(d))) {
                _cleanup_free_ char *tenant = path_join(tenants, entry->d_name);

                if (tenant && entry->d_name[0] != '.')
                        st = verify_objects(tenant, o, total, err);
                st = tenant ? st : error_no_memory(err);
                for (size_t i = 0; !st && entry->d_name[0] != '.' && i < 2; i++)
                        st = verify_database(tenant, folders[i], o, &total->problems, err);
        }
        return st;
}

enum status store_verify_command(const struct store_command *c, const char *argument, struct error *err)
{
        struct verify_output output = { .json = c->json, .shows_progress = isatty(STDERR_FILENO) };
        const struct verify_options o = { .report = print_problem,
                                          .progress = print_verify_progress,
                                          .context = &output };
        struct store_verify_result r = { 0 };
        char bytes[40];
        enum status st = profile_store_check_exists(c->dir, err);

        (void)argument;
        if (st)
                return st;
        if (c->json)
                printf("{\"problems\":[");
        st = verify_tables(c->dir, &o, &r, err);
        if (!st)
                st = verify_databases(c->data, &output, &r, err);
        clear_verify_progress(&output);
        if (c->json)
                printf("],\"problem_count\":%" PRIu64 ",\"files\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64
                       ",\"complete\":%s}\n",
                       r.problems, r.files, r.rows, r.bytes, st ? "false" : "true");
        else if (!st || r.files)
                printf("%" PRIu64 " files, %s, %s checked: %s\n", r.files, COUNTED(r.rows, "row", "rows"),
                       format_store_bytes(r.bytes, bytes), COUNTED(r.problems, "problem", "problems"));
        if (!st && r.problems)
                st = error_set(err, ST_BAD_DATA,
                               "'%s' has problems; restore the named files from a backup or a snapshot. A damaged "
                               "index is rebuilt at the next start",
                               c->place);
        return st;
}
