/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A commit of a table's log, as another program may have written it: parsed, applied to a table without files, and what
 * the snapshot says of each file read.
 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-store/delta/delta_state.h"
#include "profile-store/table_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A table has these before it has a snapshot: delta_table_open() checks it. */
static const char first_commit[] =
        "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}\n"
        "{\"metaData\":{\"id\":\"a\",\"schemaString\":\"{\\\"fields\\\":[]}\",\"partitionColumns\":[]}}\n";

static void must(bool ok)
{
        if (!ok)
                abort();
}

/* No path leads out of the table. */
static void check_delta_path(const char *path)
{
        _cleanup_free_ char *copy = strdup(path);
        char *rest = copy, *part;

        must(copy && path[0] && path[0] != '/' && strlen(path) < LIMIT_PATH_BYTES);
        while ((part = strsep(&rest, "/")))
                must(strcmp(part, "..") != 0);
}

static void read_delta_snapshot(const struct delta_snapshot *s)
{
        struct label_columns columns;

        for (size_t i = 0; i < s->file_count; i++) {
                const struct delta_file *f = s->files[i];
                int64_t min, max;
                uint64_t rows;

                check_delta_path(f->path);
                must(i == 0 || strcmp(s->files[i - 1]->path, f->path) < 0);
                for (size_t j = 0; j < f->partition_count; j++)
                        must(f->partitions[j].key != NULL);
                (void)delta_file_get_int_range(f, "time", &min, &max);
                (void)delta_file_get_row_count(f, &rows);
        }
        if (s->schema_json && label_columns_parse(s->schema_json, &columns, NULL) == ST_OK)
                label_columns_deinit(&columns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        /* An exact copy on the heap, so that a read behind the end is seen. */
        _cleanup_free_ char *text = malloc(size + !size);
        struct delta_actions actions, first;
        struct delta_snapshot *snapshot;
        struct delta_state state;
        struct error err;

        must(text != NULL);
        if (size)
                memcpy(text, data, size);
        if (delta_actions_parse(text, size, &actions, &err))
                return 0;
        for (size_t i = 0; i < actions.remove_count; i++)
                check_delta_path(actions.removes[i]->file.path);
        delta_state_init(&state);
        must(delta_actions_parse(first_commit, sizeof first_commit - 1, &first, &err) == ST_OK);
        must(delta_state_prepare(&state, &first, true, &err) == ST_OK);
        delta_state_apply(&state, &first, 0);
        if (delta_state_prepare(&state, &actions, false, &err)) {
                delta_actions_deinit(&actions);
        } else {
                delta_state_apply(&state, &actions, 1);
                must(delta_state_get_snapshot(&state, &snapshot, &err) == ST_OK);
                read_delta_snapshot(snapshot);
                delta_snapshot_release(snapshot);
        }
        delta_state_deinit(&state);
        return 0;
}
