/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One batch by several threads: each answers a slice of the keys with a view
 * of its own. An LMDB transaction belongs to one thread, so every slice begins
 * one; should a writer have committed in between, its state is another one
 * than the caller's, and the caller's thread answers that slice itself.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/lookup_internal.h"

#define THREADS_MAX 256

struct slice {
        struct lookup lookup;
        struct symbol_view *of;      /* the caller's view */
        struct symbol_batch *batch;  /* the frames of all slices, once known */
        size_t first_frame;
        bool started, other_state;
        pthread_t thread;
        enum status st;
        struct error err;
};

static void *answer_slice(void *arg)
{
        struct slice *s = arg;
        struct symbol_view *view;

        s->st = symbol_view_begin(s->of->index, &view, &s->err);
        if (s->st)
                return NULL;
        s->other_state = mdb_txn_id(view->txn) != mdb_txn_id(s->of->txn);
        if (!s->other_state) {
                s->lookup.view = view;
                s->st = lookup_run(&s->lookup, &s->err);
        }
        symbol_view_end(view);
        return NULL;
}

static void *move_frames(void *arg)
{
        struct slice *s = arg;

        if (s->lookup.frame_count)
                memcpy(s->batch->frames + s->first_frame, s->lookup.frames,
                       s->lookup.frame_count * sizeof *s->lookup.frames);
        for (size_t i = 0; i < s->lookup.count; i++)
                if (s->lookup.results[i].frame_count)
                        s->lookup.results[i].first_frame += (uint32_t)s->first_frame;
        return NULL;
}

/* Run a step on all slices at a time; the first one, and those without a thread, in this one. */
static void run_all(struct slice *slices, unsigned count, void *(*step)(void *))
{
        for (unsigned i = 1; i < count; i++)
                slices[i].started = pthread_create(&slices[i].thread, NULL, step, &slices[i]) == 0;
        for (unsigned i = 0; i < count; i++)
                if (!slices[i].started)
                        step(&slices[i]);
        for (unsigned i = 1; i < count; i++)
                if (slices[i].started)
                        pthread_join(slices[i].thread, NULL);
}

static enum status put_together(struct slice *slices, unsigned count, struct symbol_batch *batch, struct error *err)
{
        size_t total = 0;

        for (unsigned i = 0; i < count; i++) {
                slices[i].first_frame = total;
                total += slices[i].lookup.frame_count;
                batch->damaged_count += slices[i].lookup.damaged_count;
        }
        if (total > UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "a batch has more than %u frames", UINT32_MAX);
        if (!lookup_grow((void **)&batch->frames, &batch->frame_capacity, total, sizeof *batch->frames))
                return error_no_memory(err);
        batch->frame_count = total;
        run_all(slices, count, move_frames);
        return ST_OK;
}

enum status lookup_parallel(struct symbol_view *view, const struct symbol_key *keys, unsigned threads,
                            struct symbol_batch *batch, struct error *err)
{
        unsigned count = threads < THREADS_MAX ? threads : THREADS_MAX;
        struct slice *slices = calloc(count, sizeof *slices);
        size_t keys_each = batch->result_count / count;
        enum status st = ST_OK;

        if (!slices)
                return error_no_memory(err);
        for (unsigned i = 0; i < count; i++) {
                size_t first = i * keys_each, left = batch->result_count - first;

                slices[i].of = view;
                slices[i].batch = batch;
                slices[i].lookup = lookup_slice(view, keys, first, i + 1 < count ? keys_each : left, batch);
        }
        run_all(slices, count, answer_slice);
        for (unsigned i = 0; i < count && !st; i++) {
                if (!slices[i].st && slices[i].other_state)
                        slices[i].st = lookup_run(&slices[i].lookup, &slices[i].err);
                st = slices[i].st;
                if (st && err)
                        *err = slices[i].err;
        }
        if (!st)
                st = put_together(slices, count, batch, err);
        for (unsigned i = 0; i < count; i++)
                free(slices[i].lookup.frames);
        free(slices);
        return st;
}
