/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A commit of a table's log, as another program may have written it: it is parsed and applied to an empty table, then
 * the snapshot's information on each file is read. The same bytes are read as a commit that another node hands.
 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-store/core/offered_commit.h"
#include "profile-store/delta/delta_state.h"
#include "profile-store/tables/table_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Guaranteed by delta_table_open() before a table has a snapshot. */
static const char first_commit[] =
        "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}\n"
        "{\"metaData\":{\"id\":\"a\",\"schemaString\":\"{\\\"fields\\\":[]}\",\"partitionColumns\":[]}}\n";

static void require(bool ok)
{
        if (!ok)
                abort();
}

/* No path may leave the table's directory. */
static void check_delta_path(const char *path)
{
        _cleanup_free_ char *copy = strdup(path);
        char *rest = copy, *part;

        require(copy && path[0] && path[0] != '/' && strlen(path) < LIMIT_PATH_BYTES);
        while ((part = strsep(&rest, "/")))
                require(strcmp(part, "..") != 0);
}

static void read_delta_snapshot(const struct delta_snapshot *s)
{
        struct label_columns columns;

        for (size_t i = 0; i < s->file_count; i++) {
                const struct delta_file *f = s->files[i];
                int64_t min, max;
                uint64_t rows;

                check_delta_path(f->path);
                require(i == 0 || strcmp(s->files[i - 1]->path, f->path) < 0);
                for (size_t j = 0; j < f->partition_count; j++)
                        require(f->partitions[j].key != NULL);
                (void)delta_file_get_int_range(f, "time", &min, &max);
                (void)delta_file_get_row_count(f, &rows);
        }
        if (s->schema_json && label_columns_parse(s->schema_json, &columns, NULL) == ST_OK)
                label_columns_deinit(&columns);
}

/* What is taken adds files of one flush of one node, and does nothing else. */
static void read_offered_commit(const char *text, size_t size)
{
        const struct handed_commit base = { .after = 7 };
        struct offered_commit *o;
        char name[128];
        struct error err;

        if (offered_commit_parse(&base, text, size, &o, &err))
                return;
        require(o->actions.add_count && o->actions.batch_id_count && o->actions.txn_count == 1);
        require(!o->actions.remove_count && !o->actions.metadata && !o->actions.has_protocol);
        snprintf(name, sizeof name, "/part-%s-%020d-%020jd-", o->node, 8, (intmax_t)o->actions.txns[0].version);
        for (size_t i = 0; i < o->actions.add_count; i++) {
                const struct delta_file *f = &o->actions.adds[i]->file;

                check_delta_path(f->path);
                require(strncmp(f->path, "date=", 5) == 0 && strncmp(f->path + 15, name, strlen(name)) == 0);
                require(strchr(f->path + 16, '/') == NULL && f->size);
        }
        offered_commit_destroy(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        /* An exact copy on the heap, so that reads past the end are detected. */
        _cleanup_free_ char *text = malloc(size + !size);
        struct delta_actions actions, first;
        struct delta_snapshot *snapshot;
        struct delta_state state;
        struct error err;

        require(text != NULL);
        if (size)
                memcpy(text, data, size);
        read_offered_commit(text, size);
        if (delta_actions_parse(text, size, &actions, &err))
                return 0;
        for (size_t i = 0; i < actions.remove_count; i++)
                check_delta_path(actions.removes[i]->file.path);
        delta_state_init(&state);
        require(delta_actions_parse(first_commit, sizeof first_commit - 1, &first, &err) == ST_OK);
        require(delta_state_prepare(&state, &first, true, &err) == ST_OK);
        delta_state_apply(&state, &first, 0);
        if (delta_state_prepare(&state, &actions, false, &err)) {
                delta_actions_deinit(&actions);
        } else {
                delta_state_apply(&state, &actions, 1);
                require(delta_state_get_snapshot(&state, &snapshot, &err) == ST_OK);
                read_delta_snapshot(snapshot);
                delta_snapshot_release(snapshot);
        }
        delta_state_deinit(&state);
        return 0;
}
