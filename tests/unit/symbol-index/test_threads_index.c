/* SPDX-License-Identifier: Apache-2.0 */
/* Views of several threads on an index that a writer reloads concurrently. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-index/index_load.h"
#include "tests/support/random_table.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define READERS 3
#define LOADS 12
#define KEYS 9000 /* enough for two threads */

struct shared {
        struct symbol_index *index;
        struct symbol_table versions[2];
        _Atomic bool done;
        _Atomic unsigned wrong, batches;
};

static struct symbol_table table_of(uint32_t version)
{
        return random_table(&(struct random_table_spec){ .seed = 1,
                                                         .range_count = 3000,
                                                         .function_count = 300,
                                                         .file_count = 30,
                                                         .base = 0x1000,
                                                         .version = version,
                                                         .quality = QUALITY_DWARF });
}

/* Odd generations contain version 1, even ones version 2: a batch reads only one of them. */
static void check_batch(struct shared *s, struct symbol_view *view, const struct symbol_key *keys,
                        struct symbol_batch *batch)
{
        uint64_t generation;

        if (symbol_view_lookup_threads(view, keys, KEYS, 1 + s->batches % 2, batch, NULL)) {
                s->wrong++;
                return;
        }
        generation = batch->results[0].generation;
        for (size_t i = 0; i < KEYS; i++) {
                const struct symbol_result *r = &batch->results[i];
                const char *name, *linkage, *path;
                const struct symbol_frame *f;

                s->wrong += r->generation != generation || r->state != SYMBOL_RESOLVED;
                if (r->frame_count == 0)
                        continue;
                f = &batch->frames[r->first_frame];
                s->wrong += f->line && f->line / 100000 != (generation % 2 ? 1 : 2);
                if (i % 16 == 0)
                        s->wrong += symbol_view_get_function(view, f->function, &name, &linkage, NULL) ||
                                    symbol_view_get_file(view, f->file, &path, NULL) || strlen(path) < 5;
        }
        s->batches++;
}

static void *read_batches(void *arg)
{
        struct shared *s = arg;
        struct symbol_key *keys = calloc(KEYS, sizeof *keys);
        struct symbol_batch batch = { 0 };
        uint64_t state = (uint64_t)(uintptr_t)&batch;
        unsigned rounds = 0;

        while (!s->done || rounds == 0) {
                struct symbol_view *view;

                for (size_t i = 0; i < KEYS; i++)
                        keys[i] =
                                (struct symbol_key){ .build_id = &s->versions[0].build_id,
                                                     .address =
                                                             s->versions[0].ranges[random_next(&state) % 3000].start };
                if (symbol_view_begin(s->index, &view, NULL)) {
                        s->wrong++;
                        break;
                }
                check_batch(s, view, keys, &batch);
                symbol_view_end(view);
                rounds++;
        }
        symbol_batch_deinit(&batch);
        free(keys);
        return NULL;
}

START_TEST(batches_see_one_generation_while_a_writer_reloads)
{
        char dir[TEMPORARY_DIR_BYTES];
        struct shared *s = calloc(1, sizeof *s);
        pthread_t threads[READERS];
        uint64_t generation;
        bool replaced;

        temporary_dir_create(dir, "test");
        ck_assert_int_eq(symbol_index_open(dir, false, &s->index, NULL), ST_OK);
        s->versions[0] = table_of(1);
        s->versions[1] = table_of(2);
        ck_assert_int_eq(symbol_index_load(s->index, &s->versions[0], &replaced, &generation, NULL), ST_OK);
        for (unsigned i = 0; i < READERS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, read_batches, s), 0);
        for (unsigned i = 1; i < LOADS; i++) {
                ck_assert_int_eq(symbol_index_load(s->index, &s->versions[i % 2], &replaced, &generation, NULL), ST_OK);
                ck_assert_uint_eq(generation, i + 1);
        }
        s->done = true;
        for (unsigned i = 0; i < READERS; i++)
                pthread_join(threads[i], NULL);
        ck_assert_uint_eq(s->wrong, 0);
        ck_assert_uint_ge(s->batches, READERS);
        symbol_index_close(s->index);
        symbol_table_deinit(&s->versions[0]);
        symbol_table_deinit(&s->versions[1]);
        free(s);
        temporary_dir_remove(dir);
}
END_TEST

TEST_SUITE("threads_index", batches_see_one_generation_while_a_writer_reloads)
