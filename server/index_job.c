/* SPDX-License-Identifier: Apache-2.0 */
/* One object: from what is stored of it to symbols in the index. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/metrics.h"
#include "server/elf_job.h"
#include "server/index_load_named.h"
#include "server/index_table.h"
#include "server/indexer_internal.h"
#include "server/stored_dwo.h"
#include "symbolizer/index_load.h"

#define MISSING_MAX 10000 /* of one object; when any of them comes, it is indexed again */

static struct metric indexed = METRIC_COUNTER("cairn_objects_indexed_total", "Objects whose symbols were put in the index.", "");
static struct metric kept = METRIC_COUNTER("cairn_objects_kept_total", "Objects whose symbols were no better than those in the index.", "");
static struct metric partial = METRIC_COUNTER("cairn_objects_partial_total", "Objects of which some could not be read when they were indexed.", "");
static struct metric failed = METRIC_COUNTER("cairn_objects_failed_total", "Objects that could not be indexed.", "");

void index_job_metrics(void)
{
        metric_register(&indexed);
        metric_register(&kept);
        metric_register(&partial);
        metric_register(&failed);
}

/* What one job works on; descriptors are -1 where there is nothing. */
struct job {
        struct build_id id;
        char name[BUILD_ID_HEX_MAX];
        int debuginfo, executable, altlink, package, symbols;
        struct id_set missing;              /* companions that it needs and that are not stored */
        struct stored_object of_symbols;
        bool symbols_are_superseded;
        bool is_supplement;
        struct symbol_inputs inputs;
        uint64_t looks;                     /* of the indexer, when it began */
        char partial[SYMBOL_PARTIAL_BYTES]; /* what of it could not be read */
};

static void job_close(struct job *j)
{
        const int fds[] = { j->debuginfo, j->executable, j->altlink, j->package, j->symbols };

        id_set_deinit(&j->missing);
        for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
}

static enum status unpack(struct indexer *ix, const struct build_id *id, enum object_kind kind, int *ret, struct error *err)
{
        enum status st = debuginfo_store_unpack(ix->options.objects, id, kind, ret, err);

        if (st == ST_NOT_FOUND && ix->options.open_other)
                st = ix->options.open_other(ix->options.context, id, kind, ret, err);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status find_altlink(struct indexer *ix, struct job *j, struct error *err)
{
        struct elf_supplement found;
        enum status st;

        if (j->debuginfo < 0)
                return ST_OK;
        st = elf_job_supplement(j->debuginfo, ix->scratch_dir, &ix->stop, &found, err);
        if (st)
                return st;
        j->is_supplement = found.is_one && j->executable < 0;
        if (!found.needed.size)
                return ST_OK;
        st = unpack(ix, &found.needed, OBJECT_SUPPLEMENTARY, &j->altlink, err);
        if (st || j->altlink >= 0)
                return st;
        if (ix->options.wanted)
                ix->options.wanted(ix->options.context, &found.needed);
        return id_set_add(&j->missing, &found.needed) ? error_no_memory(err) : ST_OK;
}

/* A supplementary file has no addresses of its own, so it is done with an empty table. */
static enum status make_table(struct indexer *ix, struct job *j, struct symbol_table *ret, struct error *err)
{
        struct stored_dwo dwo = { ix->options.objects, &j->missing, MISSING_MAX };
        const struct extract_inputs in = { .debuginfo_fd = j->debuginfo, .executable_fd = j->executable,
                                           .altlink_fd = j->altlink, .dwp_fd = j->package, .name = j->name,
                                           .dwo = { stored_dwo_open, &dwo } };

        if (!j->is_supplement)
                return index_table_make(&in, j->symbols, &ix->stop, ret, &j->symbols_are_superseded, err);
        *ret = (struct symbol_table){ .strings = calloc(1, 1), .string_bytes = 1 };
        return ret->strings ? ST_OK : error_no_memory(err);
}

/* What is missing is noted before anything is loaded: a crash in between loads again. */
static enum status make_and_load(struct indexer *ix, struct job *j, bool *replaced_ret, struct error *err)
{
        struct symbol_table table;
        enum status st = make_table(ix, j, &table, err);

        if (st)
                return st;
        indexer_note_missing(ix, &j->id, &j->missing, j->looks);
        snprintf(j->partial, sizeof j->partial, "%s", symbol_table_partial(&table));
        table.inputs = j->inputs;
        table.build_id = j->id; /* what was verified when it was stored; a Go or hash id may be spelled otherwise inside */
        st = index_load_named(&(struct index_load_into){ ix->options.objects, ix->options.symbols, ix->options.healer, &ix->write },
                              &table, replaced_ret, err);
        symbol_table_deinit(&table);
        return st;
}

/* Before anything is opened: what is stored a moment later may be read and not be noted, but never the other way round. */
static void note_inputs(struct indexer *ix, struct job *j)
{
        static const enum object_kind kinds[SYMBOL_INPUTS_MAX] = { OBJECT_DEBUGINFO, OBJECT_SUPPLEMENTARY, OBJECT_EXECUTABLE,
                                                                   OBJECT_SYMBOLS, OBJECT_DWP };
        struct stored_object stored;

        for (size_t i = 0; i < SYMBOL_INPUTS_MAX; i++)
                if (debuginfo_store_stat(ix->options.objects, &j->id, kinds[i], &stored, NULL) == ST_OK)
                        symbol_inputs_add(&j->inputs, stored.sha256);
}

static enum status index_object(struct indexer *ix, struct job *j, bool *replaced_ret, struct error *err)
{
        enum status st = unpack(ix, &j->id, OBJECT_DEBUGINFO, &j->debuginfo, err);

        if (!st)
                st = unpack(ix, &j->id, OBJECT_EXECUTABLE, &j->executable, err);
        if (!st && debuginfo_store_stat(ix->options.objects, &j->id, OBJECT_SYMBOLS, &j->of_symbols, NULL) == ST_OK)
                st = unpack(ix, &j->id, OBJECT_SYMBOLS, &j->symbols, err);
        if (!st && j->debuginfo < 0 && j->executable < 0 && j->symbols < 0)
                return error_set(err, ST_NOT_FOUND, "nothing is stored of it");
        if (!st)
                st = unpack(ix, &j->id, OBJECT_DWP, &j->package, err);
        if (!st)
                st = find_altlink(ix, j, err);
        return st ? st : make_and_load(ix, j, replaced_ret, err);
}

/* Not the object's fault; a worker's own lack of memory is ST_TOO_BIG. */
static bool is_of_the_service(enum status st)
{
        return st == ST_OS || st == ST_NO_MEMORY || st == ST_BUSY;
}

void index_job_run(struct indexer *ix, const struct build_id *id)
{
        struct job j = { .id = *id, .debuginfo = -1, .executable = -1, .altlink = -1, .package = -1, .symbols = -1 };
        int64_t start = monotonic_ns();
        bool replaced = false;
        struct error err;
        enum status st;

        build_id_hex(id, j.name);
        pthread_mutex_lock(&ix->lock);
        j.looks = ix->looks;
        pthread_mutex_unlock(&ix->lock);
        note_inputs(ix, &j);
        st = index_object(ix, &j, &replaced, &err);
        job_close(&j);
        if (st && atomic_load(&ix->stop))
                return;
        if (is_of_the_service(st)) {
                indexer_postpone(ix, id, &err);
                return;
        }
        if (st == ST_NOT_FOUND) {
                log_info("index", "%s: %s, ignoring", j.name, err.text);
        } else if (st) {
                log_warn("index", "%s: %s", j.name, err.text);
                indexer_mark(ix, id, OBJECT_FAILED, err.text, &j.inputs);
                metric_add(&failed, 1);
        } else {
                log_info("index", "%s: %s in %" PRId64 " ms", j.name, j.is_supplement ? "a supplementary file of others" : replaced ? "indexed" : "what is indexed is as good",
                         (monotonic_ns() - start) / 1000000);
                if (j.partial[0]) {
                        log_warn("index", "%s: symbols are partial: %s", j.name, j.partial);
                        metric_add(&partial, 1);
                }
                if (j.symbols_are_superseded && ix->options.superseded)
                        ix->options.superseded(ix->options.context, &j.of_symbols);
                if (!j.is_supplement)
                        metric_add(replaced ? &indexed : &kept, 1);
        }
        indexer_ended(ix, !st);
}
