/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/tables/table_storage.h"
#include "tests/support/foreign_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"

static void close_foreign_logs(struct table_logs *l)
{
        struct storage *storage = l->storage;

        table_logs_close(l);
        storage_close(storage);
}

static struct table_logs open_foreign_logs(const struct store_fixture *f)
{
        struct storage *storage = NULL;
        struct table_logs l;
        struct error err;

        check_ok(open_table_storage(f->dir, &storage, &err), &err);
        check_ok(table_logs_open(storage, "", true, 3600000, &l, &err), &err);
        return l;
}

void foreign_writer_add_copy(const struct store_fixture *f, enum table table, const struct table_part *from,
                             const char *name)
{
        struct table_logs logs = open_foreign_logs(f);
        struct table_add add = { .name = from->has_day ? make_day_path(from->day, name) : strdup(name),
                                 .has_day = from->has_day,
                                 .day = from->day,
                                 .written = { .rows = from->rows, .bytes = from->bytes } };
        const struct table_change change = { .table = table, .adds = &add, .add_count = 1 };
        _cleanup_free_ char *key = make_table_key(table, add.name);
        _cleanup_free_ char *to = storage_make_name(logs.storage, key), *command = NULL;
        struct error err;

        ck_assert_int_gt(asprintf(&command, "cp '%s' '%s'", from->path, to), 0);
        ck_assert_int_eq(system(command), 0);
        check_ok(tables_commit(&logs, &change, &err), &err);
        table_add_deinit(&add);
        close_foreign_logs(&logs);
}

void foreign_writer_remove(const struct store_fixture *f, enum table table, struct table_part *part)
{
        struct table_logs logs = open_foreign_logs(f);
        const struct table_change change = { .table = table, .removes = &part, .remove_count = 1 };
        struct error err;

        check_ok(tables_commit(&logs, &change, &err), &err);
        close_foreign_logs(&logs);
}
