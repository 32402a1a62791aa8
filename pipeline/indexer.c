/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object waits in `queue`, in `debounce` (some of its companions arrived) or in `retry` (the service failed), and
 * is in `running` while a thread has it. take_next_object() moves due objects to the queue and takes the first one
 * that is not running. run_index_job() is the job: record the inputs, open them, extract a table in a confined worker,
 * record the missing companions, load the table with its aliases; then the outcome is logged and stored.
 *
 * Order: the queue, companions, outcomes, the job, threads and the functions that enqueue, start and stop.
 *
 * Crashes: inputs are recorded before they are opened, missing companions before the table is loaded, and the
 * resymbolizer is notified before the index changes. A crash in between repeats work, but loses none.
 *
 * Locks: `lock` protects the sets above, `missing`, `plain_files` and `recheck_count`; it is held while companions are
 * looked up in the store and with has_other(), but not while a job reads files or waits for a worker. The other
 * callbacks are called without locks. `write` serializes writers of the symbol index. The two are never held together.
 */
#include "pipeline/indexer.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/files/file.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/text/number_text.h"
#include "common/threads/condition.h"
#include "debuginfo-store/stored_tables.h"
#include "pipeline/debounce.h"
#include "pipeline/elf_job.h"
#include "pipeline/id_set.h"
#include "pipeline/index_retry.h"
#include "pipeline/index_state.h"
#include "pipeline/missing_companions.h"
#include "pipeline/plain_files.h"
#include "pipeline/stored_dwo.h"
#include "symbol-index/index_load.h"
#include "symbol-index/symbol_table.h"
#include "symbolizer/extraction/extract.h"
#include "symbolizer/workers/extract_worker.h"

#define INDEXER_THREADS_MAX 4
#define MISSING_MAX 10000 /* recorded companions of one object */
/* Debuginfo, executable and symbol file may each have been stored with other aliases. */
#define NAMES_MAX (1 + 3 * OBJECT_ALIASES_MAX)

static struct metric waiting = METRIC_GAUGE("cairn_index_queue", "Objects queued for indexing or being indexed.", "");
static struct metric debounced = METRIC_GAUGE(
        "cairn_index_incomplete", "Queued objects whose indexing is delayed until no more companions arrive.", "");
static struct metric postponed = METRIC_GAUGE(
        "cairn_index_postponed", "Objects whose indexing failed because of the service and will be retried.", "");
static struct metric postpones =
        METRIC_COUNTER("cairn_index_postponed_total", "Indexing attempts that failed because of the service.", "");
static struct metric indexed =
        METRIC_COUNTER("cairn_objects_indexed_total", "Objects whose symbols were added to the index.", "");
static struct metric kept =
        METRIC_COUNTER("cairn_objects_kept_total", "Objects whose symbols were no better than those in the index.", "");
static struct metric partial = METRIC_COUNTER("cairn_objects_partial_total",
                                              "Objects that were indexed partially: some data was unreadable.", "");
static struct metric failed = METRIC_COUNTER("cairn_objects_failed_total", "Objects that could not be indexed.", "");

struct indexer {
        struct indexer_options options;
        char *scratch_dir;
        pthread_mutex_t lock;
        pthread_cond_t work;
        struct plain_files plain_files; /* uploaded files of queued objects */
        struct id_set queue, running;   /* an object added while it runs stays queued until that run ends */
        struct debounce debounce;       /* objects some of whose companions arrived */
        struct index_retry retry;       /* objects whose indexing failed because of the service */
        struct missing_companions missing;
        uint64_t recheck_count; /* calls of indexer_recheck_companions() */
        pthread_mutex_t write;  /* the symbol index has one writer at a time */
        atomic_bool stop;
        pthread_t threads[INDEXER_THREADS_MAX];
        unsigned thread_count;
        _Atomic int64_t shares[3]; /* this indexer's shares of the gauges */
};

/* ---- the queue; caller holds ix->lock ---- */

static void update_indexer_metrics(struct indexer *ix)
{
        metric_set_share(&waiting, &ix->shares[0],
                         (int64_t)(ix->queue.count + ix->running.count + ix->debounce.count + ix->retry.ids.count));
        metric_set_share(&debounced, &ix->shares[1], (int64_t)ix->debounce.count);
        metric_set_share(&postponed, &ix->shares[2], (int64_t)ix->retry.ids.count);
}

static void enqueue_object(struct indexer *ix, const struct build_id *id)
{
        debounce_remove(&ix->debounce, id);
        if (id_set_add(&ix->queue, id))
                log_warn("index", "not enough memory to queue an object; it is indexed after the next start");
        update_indexer_metrics(ix);
        pthread_cond_broadcast(&ix->work);
}

/* A companion arrived. Indexing costs the same for one new companion as for all, so wait until no more arrive. */
static void enqueue_debounced(struct indexer *ix, const struct build_id *id, bool all_arrived)
{
        if (all_arrived || debounce_add(&ix->debounce, id, monotonic_ns()))
                enqueue_object(ix, id);
        update_indexer_metrics(ix);
        pthread_cond_broadcast(&ix->work);
}

static void handle_companion_arrival(struct indexer *ix, const struct build_id *companion)
{
        struct build_id object;
        size_t at = 0;
        bool all_arrived;

        while (missing_companions_mark_arrived(&ix->missing, companion, &at, &object, &all_arrived))
                enqueue_debounced(ix, &object, all_arrived);
}

/* ---- companions ---- */

static bool is_companion_stored(struct indexer *ix, const struct build_id *companion)
{
        struct stored_object o;

        return debuginfo_store_find(ix->options.objects, companion, OBJECT_SUPPLEMENTARY, &o, NULL) == ST_OK ||
               debuginfo_store_stat(ix->options.objects, companion, OBJECT_DWO, &o, NULL) == ST_OK;
}

static bool is_companion_elsewhere(struct indexer *ix, const struct build_id *companion)
{
        return ix->options.has_other && ix->options.has_other(ix->options.context, companion);
}

/*
 * Replace the recorded missing companions of an object. A companion may have been stored between the attempt to open it
 * and this call, so look for each once more. A companion that open_other() offers but could not deliver counts as
 * arrived only if indexer_recheck_companions() was called since the job began; otherwise the job would repeat forever.
 */
static void record_missing_companions(struct indexer *ix, const struct build_id *object, const struct id_set *missing,
                                      uint64_t recheck_count)
{
        bool any_arrived = false, all_arrived = true;
        struct error err;

        pthread_mutex_lock(&ix->lock);
        if (missing_companions_set(&ix->missing, object, missing->items, missing->count, &err))
                log_warn("index", "%s", err.text);
        for (size_t i = 0; i < ix->missing.count; i++) {
                struct missing_companion *m = &ix->missing.items[i];

                if (!build_id_equal(&m->object, object))
                        continue;
                m->has_arrived = is_companion_stored(ix, &m->companion) ||
                                 (ix->recheck_count != recheck_count && is_companion_elsewhere(ix, &m->companion));
                any_arrived |= m->has_arrived;
                all_arrived &= m->has_arrived;
        }
        if (any_arrived)
                enqueue_debounced(ix, object, all_arrived);
        pthread_mutex_unlock(&ix->lock);
}

void indexer_recheck_companions(struct indexer *ix)
{
        pthread_mutex_lock(&ix->lock);
        ix->recheck_count++;
        for (size_t i = 0; i < ix->missing.count; i++)
                if (!ix->missing.items[i].has_arrived && is_companion_elsewhere(ix, &ix->missing.items[i].companion))
                        handle_companion_arrival(ix, &ix->missing.items[i].companion);
        pthread_mutex_unlock(&ix->lock);
}

/* ---- outcomes ---- */

static void mark_object_state(struct indexer *ix, const struct build_id *id, enum symbol_object_state state,
                              const char *reason, const struct symbol_inputs *inputs)
{
        struct error err;

        pthread_mutex_lock(&ix->write);
        if (symbol_index_set_state(ix->options.symbols, id, state, reason, inputs, &err))
                log_warn("index", "%s", err.text);
        pthread_mutex_unlock(&ix->write);
}

/* Indexing failed because of the service, not because of the object: retry after a pause. */
static void postpone_object(struct indexer *ix, const struct build_id *id, const struct error *why)
{
        char hex[BUILD_ID_HEX_MAX];
        bool starts = false;
        enum status st;

        metric_add(&postpones, 1);
        pthread_mutex_lock(&ix->lock);
        st = index_retry_add(&ix->retry, id, why, monotonic_ns(), &starts);
        if (st)
                log_warn("index", "not enough memory to record an object; it is indexed after the next start");
        else if (starts) /* one message per pause, however many objects fail meanwhile */
                log_error("index", "%s: %s; retrying in %u s, %s", build_id_hex(id, hex), why->text, ix->retry.pause_s,
                          COUNTED(ix->retry.ids.count, "object is waiting", "objects are waiting"));
        update_indexer_metrics(ix);
        pthread_cond_broadcast(&ix->work);
        pthread_mutex_unlock(&ix->lock);
}

/* An object was indexed, or failed for a reason in the object: schedule the postponed objects accordingly. */
static void reschedule_postponed(struct indexer *ix, bool is_success)
{
        struct build_id next[INDEX_RETRY_RELEASED];
        size_t n = 0;

        pthread_mutex_lock(&ix->lock);
        if (is_success)
                n = index_retry_release(&ix->retry, next);
        else
                index_retry_continue(&ix->retry, monotonic_ns());
        for (size_t i = 0; i < n; i++)
                enqueue_object(ix, &next[i]);
        pthread_mutex_unlock(&ix->lock);
}

bool indexer_is_blocked(struct indexer *ix, struct error *ret)
{
        bool is_blocked;

        pthread_mutex_lock(&ix->lock);
        is_blocked = ix->retry.why.text[0];
        if (is_blocked)
                *ret = ix->retry.why;
        pthread_mutex_unlock(&ix->lock);
        return is_blocked;
}

/* ---- one job: from stored files to symbols in the index ---- */

struct index_job {
        struct build_id id;
        char name[BUILD_ID_HEX_MAX];
        int debuginfo, executable, altlink, package, symbols; /* descriptors, -1: none */
        struct id_set missing;                                /* required companions that are not stored */
        struct stored_object stored_debuginfo;                /* build_id.size is 0 if not stored */
        struct stored_object stored_executable;               /* the same */
        struct stored_object symbol_file;
        bool symbol_file_is_superseded;
        bool is_supplement;
        struct symbol_inputs inputs;
        uint64_t recheck_count;                      /* recheck_count of the indexer when the job began */
        uint8_t generation[OBJECT_GENERATION_BYTES]; /* of the table to be made, for an object store */
        bool has_objects;                            /* an object of this build-id is stored */
        char partial[SYMBOL_PARTIAL_BYTES];          /* unreadable data */
};

static void close_index_job(struct index_job *j)
{
        const int fds[] = { j->debuginfo, j->executable, j->altlink, j->package, j->symbols };

        id_set_deinit(&j->missing);
        for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
}

static int open_plain_file(struct indexer *ix, const struct stored_object *object)
{
        int fd;

        pthread_mutex_lock(&ix->lock);
        fd = plain_files_open(&ix->plain_files, object);
        pthread_mutex_unlock(&ix->lock);
        return fd;
}

/*
 * Open an input: the uploaded file while the indexer holds it, else the stored object, else the result of open_other().
 * @param ret        -1 if there is no such input.
 * @param stored_ret the stored object, build_id.size 0 if not stored. May be NULL.
 */
static enum status open_job_input(struct indexer *ix, const struct build_id *id, enum object_kind kind, int *ret,
                                  struct stored_object *stored_ret, struct error *err)
{
        struct stored_object stored = { 0 };
        enum status st = debuginfo_store_find(ix->options.objects, id, kind, &stored, err);

        if (!st) {
                *ret = open_plain_file(ix, &stored);
                if (*ret < 0)
                        st = debuginfo_store_unpack(ix->options.objects, id, kind, ret, err);
        }
        if (!st && stored_ret)
                *stored_ret = stored;
        if (st == ST_NOT_FOUND && ix->options.open_other)
                st = ix->options.open_other(ix->options.context, id, kind, ret, err);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

/*
 * The dwz relation of the debuginfo. The worker that verified a stored object already determined it, so only a scanned
 * file, or an object whose companions were not recorded, is read by another worker.
 */
static enum status find_supplement(struct indexer *ix, const struct index_job *j, struct elf_supplement *ret,
                                   struct error *err)
{
        const struct object_name name = { j->stored_debuginfo.build_id, j->stored_debuginfo.kind };
        _cleanup_free_ struct object_name *companions = NULL;
        size_t count;
        enum status st = name.build_id.size
                                 ? debuginfo_store_get_companions(ix->options.objects, &name, &companions, &count, err)
                                 : ST_NOT_FOUND;

        if (st == ST_NOT_FOUND)
                return elf_job_read_supplement(j->debuginfo, ix->scratch_dir, &ix->stop, ret, err);
        if (st)
                return st;
        *ret = (struct elf_supplement){ .is_one = name.kind == OBJECT_SUPPLEMENTARY };
        for (size_t i = 0; i < count; i++)
                if (companions[i].kind == OBJECT_SUPPLEMENTARY)
                        ret->needed = companions[i].build_id;
        return ST_OK;
}

static enum status open_dwz_supplement(struct indexer *ix, struct index_job *j, struct error *err)
{
        struct elf_supplement found;
        enum status st;

        if (j->debuginfo < 0)
                return ST_OK;
        st = find_supplement(ix, j, &found, err);
        if (st)
                return st;
        j->is_supplement = found.is_one && j->executable < 0;
        if (!found.needed.size)
                return ST_OK;
        st = open_job_input(ix, &found.needed, OBJECT_SUPPLEMENTARY, &j->altlink, NULL, err);
        if (st || j->altlink >= 0)
                return st;
        if (ix->options.wanted)
                ix->options.wanted(ix->options.context, &found.needed);
        return id_set_add(&j->missing, &found.needed) ? error_no_memory(err) : ST_OK;
}

static bool is_better_table(const struct symbol_table *a, const struct symbol_table *b)
{
        return symbol_quality_is_better(a->quality, a->partial != 0, b->quality, b->partial != 0);
}

/*
 * Extract from the ELF files and from the symbol file, and keep the better table. The symbol file can be better: it may
 * have been made from a better ELF file, or with companions that are not stored here.
 * @param superseded_ret both were readable and the ELF files' table is complete and at least as good.
 */
static enum status make_best_table(const struct extract_inputs *elf, int symbols_fd, const atomic_bool *cancel,
                                   struct symbol_table *ret, bool *superseded_ret, struct error *err)
{
        const struct extract_inputs file = {
                .debuginfo_fd = symbols_fd, .executable_fd = -1, .altlink_fd = -1, .name = elf->name
        };
        struct symbol_table from_elf = { 0 }, from_file;
        enum status st, file_st;
        struct error why;

        *superseded_ret = false;
        if (elf->debuginfo_fd < 0 && elf->executable_fd < 0)
                return symbol_table_extract_confined(&file, cancel, ret, err);
        st = symbol_table_extract_confined(elf, cancel, &from_elf, err);
        if (symbols_fd >= 0) {
                file_st = symbol_table_extract_confined(&file, cancel, &from_file, &why);
                if (!file_st && (st || is_better_table(&from_file, &from_elf))) {
                        symbol_table_deinit(&from_elf);
                        *ret = from_file;
                        return ST_OK;
                }
                if (!file_st) {
                        symbol_table_deinit(&from_file);
                        *superseded_ret = !from_elf.partial;
                } else if (atomic_load(cancel)) { /* both are read again after the next start */
                        symbol_table_deinit(&from_elf);
                        *err = why;
                        return file_st;
                } else {
                        log_warn("index", "%s: ignoring its symbol file: %s", elf->name, why.text);
                }
        }
        if (!st)
                *ret = from_elf;
        return st;
}

/* As given by its uploader; NULL unknown. */
static const char *get_executable_name(const struct index_job *j)
{
        const char *name = path_base(j->stored_executable.name);

        return j->stored_executable.build_id.size && *name ? name : NULL;
}

/* A supplementary file has no code addresses; it counts as indexed with an empty table. */
static enum status make_job_table(struct indexer *ix, struct index_job *j, struct symbol_table *ret, struct error *err)
{
        struct stored_dwo dwo = { ix->options.objects, &j->missing, MISSING_MAX };
        const struct extract_inputs in = { .debuginfo_fd = j->debuginfo,
                                           .executable_fd = j->executable,
                                           .altlink_fd = j->altlink,
                                           .dwp_fd = j->package,
                                           .name = j->name,
                                           .file_name = get_executable_name(j),
                                           .dwo = { stored_dwo_open, &dwo } };

        if (!j->is_supplement)
                return make_best_table(&in, j->symbols, &ix->stop, ret, &j->symbol_file_is_superseded, err);
        *ret = (struct symbol_table){ .strings = calloc(1, 1), .string_bytes = 1 };
        return ret->strings ? ST_OK : error_no_memory(err);
}

/*
 * Load a table so that lookups find it under the object's aliases too, and re-symbolize the locations recorded under
 * any of these build-ids. The index changes between resymbolizer_expect_change() and resymbolizer_end_change(), so the
 * locations are re-symbolized at the next start after a crash in between.
 */
static enum status load_table_with_aliases(struct indexer *ix, const struct symbol_table *table, bool *replaced_ret,
                                           struct error *err)
{
        struct build_id names[NAMES_MAX] = { table->build_id };
        bool changed[NAMES_MAX] = { false };
        size_t alias_count, expected = 0;
        uint64_t generation;
        enum status st = debuginfo_store_list_aliases(ix->options.objects, &table->build_id, names + 1, NAMES_MAX - 1,
                                                      &alias_count, err);

        if (st)
                return st;
        assert(alias_count < NAMES_MAX);
        for (; !st && expected < 1 + alias_count; expected++)
                st = resymbolizer_expect_change(ix->options.resymbolizer, &names[expected], err);
        pthread_mutex_lock(&ix->write);
        if (!st)
                st = symbol_index_add_aliases(ix->options.symbols, &names[0], names + 1, alias_count, changed + 1, err);
        if (!st)
                st = symbol_index_load(ix->options.symbols, table, replaced_ret, &generation, err);
        pthread_mutex_unlock(&ix->write);
        for (size_t i = 0; i < expected; i++)
                resymbolizer_end_change(ix->options.resymbolizer, &names[i], !st && (*replaced_ret || changed[i]));
        return st;
}

/* The file's sections promised symbols, but none could be used: the next upload must be able to replace it. */
static void note_useless_debuginfo(struct indexer *ix, const struct index_job *j)
{
        struct error err;

        if (j->stored_debuginfo.build_id.size && !j->is_supplement &&
            debuginfo_store_set_quality(ix->options.objects, &j->stored_debuginfo, QUALITY_NONE, &err))
                log_warn("index", "%s: %s", j->name, err.text);
}

/* ---- tables of an object store ---- */

static enum status list_missing_of(struct indexer *ix, const struct object_name *owner, struct id_set *missing,
                                   struct error *err)
{
        _cleanup_free_ struct object_name *companions = NULL;
        size_t count = 0;
        enum status st = debuginfo_store_get_companions(ix->options.objects, owner, &companions, &count, err);

        for (size_t i = 0; !st && i < count; i++)
                if (!is_companion_stored(ix, &companions[i].build_id) && id_set_add(missing, &companions[i].build_id))
                        st = error_no_memory(err);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

/* What an extraction would have found missing. */
static enum status list_missing_companions(struct indexer *ix, struct index_job *j, struct error *err)
{
        enum status st = list_missing_of(ix, &(struct object_name){ j->id, OBJECT_DEBUGINFO }, &j->missing, err);

        return st ? st : list_missing_of(ix, &(struct object_name){ j->id, OBJECT_EXECUTABLE }, &j->missing, err);
}

/* The table that this or another node stored, of the same objects. @return ST_NOT_FOUND. */
static enum status read_stored_table(struct indexer *ix, struct index_job *j, struct symbol_table *ret,
                                     struct error *err)
{
        struct debuginfo_store *objects = ix->options.objects;
        _cleanup_close_ int fd = -1;
        enum status st;

        if (!debuginfo_store_keeps_tables(objects))
                return ST_NOT_FOUND;
        st = stored_table_compute_generation(objects, &j->id, j->generation, &j->has_objects, err);
        if (!st)
                st = stored_table_open(objects, &j->id, j->has_objects ? j->generation : NULL, &fd, err);
        if (!st)
                st = list_missing_companions(ix, j, err);
        return st ? st : symbol_table_read(fd, j->name, ret, err);
}

/* Another node gets a table of the objects that were read, unless one of them was replaced meanwhile. */
static void store_job_table(struct indexer *ix, const struct index_job *j, const struct symbol_table *table)
{
        struct debuginfo_store *objects = ix->options.objects;
        _cleanup_close_ int fd = -1;
        uint8_t now[OBJECT_GENERATION_BYTES];
        struct stat info;
        struct error err;
        enum status st;
        bool any;

        if (!debuginfo_store_keeps_tables(objects) || !j->has_objects || j->is_supplement)
                return;
        st = stored_table_compute_generation(objects, &j->id, now, &any, &err);
        if (!st && memcmp(now, j->generation, sizeof now) != 0)
                return;
        fd = st ? -1 : open(ix->scratch_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (!st && fd < 0)
                st = error_os(&err, errno, "cannot create a file in '%s'", ix->scratch_dir);
        if (!st)
                st = symbol_table_write(table, fd, &err);
        if (!st && fstat(fd, &info) < 0)
                st = error_os(&err, errno, "cannot read a symbol table");
        if (!st)
                st = stored_table_put(objects, &j->id, now, table->quality, fd, (uint64_t)info.st_size, &err);
        if (st)
                log_warn("index", "%s: its symbols are not in the object store, ignoring: %s", j->name, err.text);
}

/* Missing companions are recorded before the table is loaded: after a crash in between, the object is indexed again. */
static enum status load_job_table(struct indexer *ix, struct index_job *j, struct symbol_table *table,
                                  bool *replaced_ret, struct error *err)
{
        record_missing_companions(ix, &j->id, &j->missing, j->recheck_count);
        snprintf(j->partial, sizeof j->partial, "%s", symbol_table_partial_text(table));
        table->inputs = j->inputs;
        /* The id that was verified when the file was stored: in the file, a Go or hash id may be spelled differently.
         */
        table->build_id = j->id;
        if (table->range_count == 0)
                note_useless_debuginfo(ix, j);
        return load_table_with_aliases(ix, table, replaced_ret, err);
}

static enum status make_and_load_table(struct indexer *ix, struct index_job *j, bool *replaced_ret, struct error *err)
{
        struct symbol_table table;
        enum status st = make_job_table(ix, j, &table, err);

        if (st)
                return st;
        st = load_job_table(ix, j, &table, replaced_ret, err);
        if (!st)
                store_job_table(ix, j, &table);
        symbol_table_deinit(&table);
        return st;
}

/*
 * Called before any input is opened: a file stored a moment later may then be read without being recorded, which only
 * repeats the job; a file that is recorded without being read would never be indexed.
 */
static void record_inputs(struct indexer *ix, struct index_job *j)
{
        static const enum object_kind kinds[SYMBOL_INPUTS_MAX] = { OBJECT_DEBUGINFO, OBJECT_SUPPLEMENTARY,
                                                                   OBJECT_EXECUTABLE, OBJECT_SYMBOLS, OBJECT_DWP };
        struct stored_object stored;

        for (size_t i = 0; i < SYMBOL_INPUTS_MAX; i++)
                if (debuginfo_store_stat(ix->options.objects, &j->id, kinds[i], &stored, NULL) == ST_OK)
                        symbol_inputs_add(&j->inputs, stored.sha256);
}

static enum status index_files(struct indexer *ix, struct index_job *j, bool *replaced_ret, struct error *err)
{
        enum status st = open_job_input(ix, &j->id, OBJECT_DEBUGINFO, &j->debuginfo, &j->stored_debuginfo, err);

        if (!st)
                st = open_job_input(ix, &j->id, OBJECT_EXECUTABLE, &j->executable, &j->stored_executable, err);
        if (!st && debuginfo_store_stat(ix->options.objects, &j->id, OBJECT_SYMBOLS, &j->symbol_file, NULL) == ST_OK)
                st = open_job_input(ix, &j->id, OBJECT_SYMBOLS, &j->symbols, NULL, err);
        if (!st && j->debuginfo < 0 && j->executable < 0 && j->symbols < 0)
                return error_set(err, ST_NOT_FOUND, "no file of this object is stored");
        if (!st)
                st = open_job_input(ix, &j->id, OBJECT_DWP, &j->package, NULL, err);
        if (!st)
                st = open_dwz_supplement(ix, j, err);
        return st ? st : make_and_load_table(ix, j, replaced_ret, err);
}

/* A damaged table of an object store is made anew. */
static enum status index_object(struct indexer *ix, struct index_job *j, bool *replaced_ret, struct error *err)
{
        struct symbol_table table;
        enum status st = read_stored_table(ix, j, &table, err);

        if (st == ST_NOT_FOUND || st == ST_BAD_DATA || st == ST_UNSUPPORTED)
                return index_files(ix, j, replaced_ret, err);
        if (st)
                return st;
        st = load_job_table(ix, j, &table, replaced_ret, err);
        symbol_table_deinit(&table);
        return st;
}

/* As opposed to a failure of the object; a worker that runs out of memory returns ST_TOO_BIG. */
static bool is_service_failure(enum status st)
{
        return st == ST_OS || st == ST_NO_MEMORY || st == ST_BUSY;
}

static void report_indexed_object(struct indexer *ix, const struct index_job *j, bool replaced, int64_t start_ns)
{
        log_info("index", "%s: %s in %" PRId64 " ms", j->name,
                 j->is_supplement ? "it is a supplementary file of other objects"
                 : replaced       ? "indexed"
                                  : "the indexed symbols are at least as good",
                 (monotonic_ns() - start_ns) / 1000000);
        if (j->partial[0]) {
                log_warn("index", "%s: symbols are partial: %s", j->name, j->partial);
                metric_add(&partial, 1);
        }
        if (j->symbol_file_is_superseded && ix->options.superseded)
                ix->options.superseded(ix->options.context, &j->symbol_file);
        if (!j->is_supplement)
                metric_add(replaced ? &indexed : &kept, 1);
}

/* Index one object, log and count the outcome. */
static void run_index_job(struct indexer *ix, const struct build_id *id)
{
        struct index_job j = {
                .id = *id, .debuginfo = -1, .executable = -1, .altlink = -1, .package = -1, .symbols = -1
        };
        int64_t start_ns = monotonic_ns();
        bool replaced = false;
        struct error err;
        enum status st;

        build_id_hex(id, j.name);
        pthread_mutex_lock(&ix->lock);
        j.recheck_count = ix->recheck_count;
        pthread_mutex_unlock(&ix->lock);
        record_inputs(ix, &j);
        st = index_object(ix, &j, &replaced, &err);
        close_index_job(&j);
        pthread_mutex_lock(&ix->lock);
        plain_files_remove(&ix->plain_files, id);
        pthread_mutex_unlock(&ix->lock);
        if (st && atomic_load(&ix->stop))
                return;
        if (is_service_failure(st)) {
                postpone_object(ix, id, &err);
                return;
        }
        if (st == ST_NOT_FOUND) {
                log_info("index", "%s: %s, ignoring", j.name, err.text);
        } else if (st) {
                log_warn("index", "%s: %s", j.name, err.text);
                mark_object_state(ix, id, OBJECT_FAILED, err.text, &j.inputs);
                if (st == ST_BAD_DATA)
                        note_useless_debuginfo(ix, &j);
                metric_add(&failed, 1);
        } else {
                report_indexed_object(ix, &j, replaced, start_ns);
        }
        reschedule_postponed(ix, !st);
}

/* ---- threads ---- */

/* Take the next object that no other thread is processing. Caller holds ix->lock. */
static bool take_next_object(struct indexer *ix, struct build_id *ret)
{
        while (debounce_take_due(&ix->debounce, monotonic_ns(), ret))
                enqueue_object(ix, ret);
        if (index_retry_take(&ix->retry, monotonic_ns(), ret))
                enqueue_object(ix, ret);
        for (size_t i = 0; i < ix->queue.count; i++) {
                *ret = ix->queue.items[i];
                if (id_set_contains(&ix->running, ret) || id_set_add(&ix->running, ret))
                        continue;
                id_set_remove(&ix->queue, ret);
                return true;
        }
        return false;
}

/* Caller holds ix->lock. */
static void wait_for_indexer_work(struct indexer *ix)
{
        int64_t due_ns = debounce_next_due_ns(&ix->debounce);

        if (ix->retry.due_ns && (!due_ns || ix->retry.due_ns < due_ns))
                due_ns = ix->retry.due_ns;
        if (due_ns)
                condition_wait_until(&ix->work, &ix->lock, due_ns);
        else
                pthread_cond_wait(&ix->work, &ix->lock);
}

static void *run_indexer_thread(void *arg)
{
        struct indexer *ix = arg;
        struct build_id id;

        pthread_mutex_lock(&ix->lock);
        while (!atomic_load(&ix->stop)) {
                if (!take_next_object(ix, &id)) {
                        wait_for_indexer_work(ix);
                        continue;
                }
                pthread_mutex_unlock(&ix->lock);
                run_index_job(ix, &id);
                pthread_mutex_lock(&ix->lock);
                id_set_remove(&ix->running, &id);
                update_indexer_metrics(ix);
                pthread_cond_broadcast(&ix->work);
                if (ix->options.done) {
                        pthread_mutex_unlock(&ix->lock);
                        ix->options.done(ix->options.context);
                        pthread_mutex_lock(&ix->lock);
                }
        }
        pthread_mutex_unlock(&ix->lock);
        return NULL;
}

static bool is_object_indexed(struct indexer *ix, const struct build_id *id)
{
        struct symbol_object object;
        struct symbol_view *view;
        enum status st = symbol_view_begin(ix->options.symbols, &view, NULL);

        if (st)
                return false;
        st = symbol_view_get_object(view, id, &object, NULL);
        symbol_view_end(view);
        return !st && object.state == OBJECT_INDEXED;
}

void indexer_enqueue(struct indexer *ix, const struct build_id *id, enum object_kind kind)
{
        assert(id->size > 0);
        if (kind == OBJECT_SOURCE)
                return;
        if (kind != OBJECT_DWO)
                resymbolizer_note_upload(ix->options.resymbolizer, id);
        if (kind != OBJECT_DWP && kind != OBJECT_DWO && !is_object_indexed(ix, id))
                mark_object_state(ix, id, OBJECT_PENDING, "", NULL);
        pthread_mutex_lock(&ix->lock);
        if (kind != OBJECT_DWO)
                enqueue_object(ix, id);
        handle_companion_arrival(ix, id);
        pthread_mutex_unlock(&ix->lock);
}

void indexer_enqueue_file(struct indexer *ix, const struct stored_object *object, int fd)
{
        if (fd >= 0 && (object->kind == OBJECT_SOURCE || object->kind == OBJECT_DWO)) { /* not indexed by themselves */
                close(fd);
        } else if (fd >= 0) {
                pthread_mutex_lock(&ix->lock);
                plain_files_add(&ix->plain_files, object, fd);
                pthread_mutex_unlock(&ix->lock);
        }
        indexer_enqueue(ix, &object->build_id, object->kind);
}

bool indexer_is_busy_with(struct indexer *ix, const struct build_id *id)
{
        bool ret;

        pthread_mutex_lock(&ix->lock);
        ret = id_set_contains(&ix->queue, id) || id_set_contains(&ix->running, id) ||
              debounce_contains(&ix->debounce, id) || id_set_contains(&ix->retry.ids, id);
        pthread_mutex_unlock(&ix->lock);
        return ret;
}

/* ---- start and stop ---- */

/* Objects whose companions were stored just before the last stop. */
static void enqueue_completed_objects(struct indexer *ix)
{
        for (size_t i = 0; i < ix->missing.count; i++) {
                const struct missing_companion *m = &ix->missing.items[i];

                if (is_companion_stored(ix, &m->companion) || is_companion_elsewhere(ix, &m->companion))
                        enqueue_object(ix, &m->object);
        }
}

static enum status enqueue_pending_object(void *context, const struct stored_object *stored)
{
        struct indexer *ix = context;

        if (index_state_is_pending(ix->options.symbols, stored) || index_state_is_empty(ix->options.symbols, stored))
                enqueue_object(ix, &stored->build_id);
        return ST_OK;
}

static void enqueue_unindexed_table(void *context, const struct build_id *id)
{
        struct indexer *ix = context;

        if (!is_object_indexed(ix, id))
                enqueue_object(ix, id);
}

enum status indexer_enqueue_unindexed(struct indexer *ix, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&ix->lock);
        st = debuginfo_store_list(ix->options.objects, enqueue_pending_object, ix, err);
        if (!st)
                st = stored_table_list(ix->options.objects, enqueue_unindexed_table, ix, err);
        if (!st)
                enqueue_completed_objects(ix);
        pthread_cond_broadcast(&ix->work);
        pthread_mutex_unlock(&ix->lock);
        return st;
}

static void register_indexer_metrics(void)
{
        struct metric *all[] = { &waiting, &debounced, &postponed, &postpones, &indexed, &kept, &partial, &failed };

        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                metric_register(all[i]);
}

enum status indexer_start(const struct indexer_options *options, struct indexer **ret, struct error *err)
{
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        unsigned thread_count = cores < 1 ? 1 : cores > INDEXER_THREADS_MAX ? INDEXER_THREADS_MAX : (unsigned)cores;
        struct indexer *ix = calloc(1, sizeof *ix);
        enum status st;

        assert(options->objects && options->symbols && options->resymbolizer);
        if (!ix)
                return error_no_memory(err);
        register_indexer_metrics();
        ix->options = *options;
        ix->scratch_dir = strdup(options->scratch_dir);
        pthread_mutex_init(&ix->lock, NULL);
        pthread_mutex_init(&ix->write, NULL);
        pthread_cond_init(&ix->work, NULL);
        st = ix->scratch_dir ? missing_companions_load(&ix->missing, options->companions_path, err)
                             : error_no_memory(err);
        if (!st)
                st = indexer_enqueue_unindexed(ix, err);
        if (!st && ix->queue.count)
                log_info("index", "%s not indexed yet",
                         COUNTED(ix->queue.count, "stored object is", "stored objects are"));
        for (; !st && ix->thread_count < thread_count; ix->thread_count++) {
                int refused = pthread_create(&ix->threads[ix->thread_count], NULL, run_indexer_thread, ix);

                if (refused) {
                        st = error_os(err, refused, "cannot start a thread");
                        break;
                }
                pthread_setname_np(ix->threads[ix->thread_count], "index");
        }
        if (st) {
                indexer_stop(ix);
                return st;
        }
        *ret = ix;
        return ST_OK;
}

void indexer_stop(struct indexer *ix)
{
        if (!ix)
                return;
        pthread_mutex_lock(&ix->lock);
        atomic_store(&ix->stop, true);
        pthread_cond_broadcast(&ix->work);
        pthread_mutex_unlock(&ix->lock);
        for (unsigned i = 0; i < ix->thread_count; i++)
                pthread_join(ix->threads[i], NULL);
        metric_set_share(&waiting, &ix->shares[0], 0);
        metric_set_share(&debounced, &ix->shares[1], 0);
        metric_set_share(&postponed, &ix->shares[2], 0);
        pthread_cond_destroy(&ix->work);
        pthread_mutex_destroy(&ix->write);
        pthread_mutex_destroy(&ix->lock);
        plain_files_deinit(&ix->plain_files);
        id_set_deinit(&ix->queue);
        id_set_deinit(&ix->running);
        debounce_deinit(&ix->debounce);
        index_retry_deinit(&ix->retry);
        missing_companions_deinit(&ix->missing);
        free(ix->scratch_dir);
        free(ix);
}
