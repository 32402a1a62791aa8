/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "profile-store/tables/part_read.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/core/table_follow.h"

#define NAMED_OBJECTS 256 /* in a commit; more are not named */

/*
 * Parts are processed in rounds of about options.resymbolize_rows rows. A round reads the parts that have rows of the
 * objects, looks up these rows together, drops parts without changes, writes the rows of the others as one new part,
 * and commits "add the new part, remove the old ones". Rows keep their location ids, so samples and stacks are
 * unchanged. The writer lock is released between rounds, for flushes; since a flush may fail, each round begins with
 * store_reconcile().
 *
 * Memory is reserved for MEMORY_RESYMBOLIZE. When it is refused, the round ends before the part that did not fit; a
 * part that does not fit alone is rewritten row group by row group; a part with a row group that does not fit is left
 * for a later call (ST_BUSY after all other parts).
 *
 * A part that cannot be read, or whose row group needs more memory than the budget ever grants, is skipped, logged and
 * counted: its rows stay unchanged, and the others are re-symbolized.
 */
static struct metric skipped_parts = METRIC_COUNTER("cairn_resymbolize_skipped_parts_total",
                                                    "Files of locations that a re-symbolization could not read.", "");

struct resymbolization {
        struct profile_store *s;
        const struct resymbolize_request *request;
        struct build_id *ids; /* of the request, sorted; empty: all */
        size_t id_count;
        struct tables *tables; /* snapshot at the start; parts added later were looked up after it */
        size_t max_parts;      /* per round; halved when a round of several parts ran out of memory */
        struct error refused;  /* error of the last part for which memory was refused */
        struct resymbolize_result result;
};

struct resymbolize_round {
        struct arena arena;
        struct location_rows rows;
        struct table_part **parts; /* borrowed from resymbolization.tables */
        size_t *part_ends;         /* rows of part i end here */
        size_t part_count;
};

static void resymbolize_round_init(struct resymbolize_round *r)
{
        *r = (struct resymbolize_round){ .rows.memory.use = MEMORY_RESYMBOLIZE };
        arena_init_budget(&r->arena, LIMIT_FLUSH_MEMORY_BYTES, MEMORY_RESYMBOLIZE);
}

static void resymbolize_round_deinit(struct resymbolize_round *r)
{
        arena_deinit(&r->arena);
        location_rows_deinit(&r->rows);
        free(r->parts);
        free(r->part_ends);
}

static void resymbolize_round_check(const struct resymbolize_round *r)
{
        size_t end = 0;

        for (size_t i = 0; i < r->part_count; i++) {
                assert(r->part_ends[i] >= end);
                end = r->part_ends[i];
        }
        assert(end == r->rows.count);
}

/* ---- selection ---- */

static int compare_build_ids(const void *a, const void *b)
{
        return build_id_compare(a, b);
}

/* The view is begun on first use and ended by the caller. */
static bool is_indexed_since(const struct resymbolization *h, const struct build_id *id, struct symbol_view **view)
{
        struct symbol_object o;

        if (!h->request->indexed_since_unix_s)
                return true;
        if (!h->s->options.symbols)
                return false;
        /* If the object's record cannot be read, look it up: its rows then get the reason. */
        return (!*view && symbol_view_begin(h->s->options.symbols, view, NULL)) ||
               symbol_view_get_object(*view, id, &o, NULL) || o.indexed_unix_s >= h->request->indexed_since_unix_s;
}

static bool is_selected_object(const struct resymbolization *h, const struct build_id *id, struct symbol_view **view)
{
        if (h->id_count ? !bsearch(id, h->ids, h->id_count, sizeof *h->ids, compare_build_ids) : !id->size)
                return false;
        return is_indexed_since(h, id, view);
}

static bool may_have_selected_objects(const struct resymbolization *h, const struct table_part *part)
{
        for (size_t i = 0; i < h->id_count; i++)
                if (table_part_may_have_build_id(part, &h->ids[i]))
                        return true;
        return !h->id_count;
}

/* Whether a part has rows of the objects, by its build-id column alone. */
static enum status has_selected_objects(const struct resymbolization *h, const struct part_file *f, bool *ret,
                                        struct error *err)
{
        struct symbol_view *view = NULL;
        enum status st = ST_OK;

        *ret = false;
        for (uint32_t g = 0; !st && !*ret && g < part_file_count_groups(f); g++) {
                _cleanup_parquet_column_ struct parquet_column c = { 0 };

                st = part_file_read_column(f, g, "build_id", PARQUET_STRING, &c, err);
                for (uint32_t i = 0; !st && !*ret && i < c.dict_count; i++) {
                        struct build_id id;

                        *ret = build_id_from_hex(&id, (const char *)c.dict[i].data, c.dict[i].size) &&
                               is_selected_object(h, &id, &view);
                }
        }
        symbol_view_end(view);
        return st;
}

/* ---- lookup ---- */

/* Look up the rows of the objects among rows[0 .. count); changed has one flag per row. */
static enum status look_up_rows(struct resymbolization *h, struct location_row *rows, size_t count, struct arena *a,
                                uint8_t *changed, struct error *err)
{
        uint64_t before[SYMBOL_STATE_COUNT] = { 0 }, after[SYMBOL_STATE_COUNT] = { 0 };
        uint64_t seen = 0, changed_count = 0;
        struct symbol_view *view = NULL;
        enum status st;

        for (size_t i = 0; i < count; i++) {
                /* Rows of an object are contiguous. */
                if (i && build_id_equal(rows[i].shown.build_id, rows[i - 1].shown.build_id))
                        rows[i].is_excluded = rows[i - 1].is_excluded;
                else
                        rows[i].is_excluded = !is_selected_object(h, rows[i].shown.build_id, &view);
                rows[i].is_own = !has_shared_tables(h->s);
                seen += !rows[i].is_excluded;
                before[rows[i].state] += !rows[i].is_excluded;
        }
        symbol_view_end(view);
        st = location_rows_resolve(rows, count, h->s->options.symbols, a, changed, err);
        if (st)
                return st;
        for (size_t i = 0; i < count; i++) {
                changed_count += changed[i];
                after[rows[i].state] += !rows[i].is_excluded;
        }
        for (int i = 0; i < SYMBOL_STATE_COUNT; i++) {
                h->result.before[i] += before[i];
                h->result.after[i] += after[i];
        }
        h->result.locations_seen += seen;
        h->result.locations_changed += changed_count;
        return ST_OK;
}

/* ---- commit ---- */

static char *make_new_part_name(const struct table_part *first)
{
        int64_t now = wall_clock_ns();
        uint64_t unique = hash_bytes64(first->name, strlen(first->name));
        char *ret;

        return asprintf(&ret, "resymbolized-%020lld-%016llx.parquet", (long long)now, (unsigned long long)unique) < 0
                       ? NULL
                       : ret;
}

/* The objects whose frames a round may change, as a commit names them; owned. */
static char *format_build_ids(const struct resymbolization *h)
{
        char *ret, *at;

        if (!h->id_count || h->id_count > NAMED_OBJECTS)
                return strdup(TABLE_BUILD_IDS_ALL);
        ret = at = malloc(h->id_count * BUILD_ID_HEX_MAX);
        for (size_t i = 0; ret && i < h->id_count; i++) {
                char hex[BUILD_ID_HEX_MAX];

                if (i)
                        *at++ = ',';
                at = stpcpy(at, build_id_hex(&h->ids[i], hex));
        }
        return ret;
}

static enum status replace_parts(struct resymbolization *h, struct table_part *const *parts, size_t count,
                                 const struct table_add *add, struct error *err)
{
        struct profile_store *s = h->s;
        _cleanup_free_ char *build_ids = format_build_ids(h);
        const struct table_change change = { .table = TABLE_LOCATIONS,
                                             .adds = add,
                                             .add_count = 1,
                                             .removes = parts,
                                             .remove_count = count,
                                             .build_ids = build_ids };
        enum status st;

        if (!build_ids)
                return error_no_memory(err);

        assert(count > 0 && !h->request->dry_run);
        s->behind = true;
        st = tables_commit(&s->logs, &change, err);
        for (int i = 1; st == ST_BUSY && i < COMMIT_ATTEMPTS; i++) {
                st = store_reconcile(s, err);
                if (!st && !are_live_parts(s->tables, TABLE_LOCATIONS, parts, count))
                        st = error_set(err, ST_NOT_FOUND, "another commit removed a file that was rewritten");
                s->behind = true;
                if (!st)
                        st = tables_commit(&s->logs, &change, err);
        }
        if (!st)
                st = store_publish_tables(s, err);
        if (!st) {
                s->behind = false;
                h->result.files_rewritten += count;
        }
        return st;
}

/* ---- a part, row group by row group ---- */

static enum status rewrite_group(struct resymbolization *h, const struct part_file *f, uint32_t group,
                                 struct location_part *to, bool *changed_ret, bool *is_permanent_ret, struct error *err)
{
        struct resymbolize_round r;
        _cleanup_free_ uint8_t *changed = NULL;
        const struct resymbolize_result before = h->result;
        enum status st;

        resymbolize_round_init(&r);
        st = part_read_locations(f, group, NULL, &r.arena, &r.rows, err);
        if (!st && !(changed = calloc(r.rows.count + 1, 1)))
                st = error_no_memory(err);
        if (!st)
                st = look_up_rows(h, r.rows.items, r.rows.count, &r.arena, changed, err);
        *is_permanent_ret = r.arena.failed == ST_TOO_BIG || st == ST_TOO_BIG;
        for (size_t i = 0; !st && i < r.rows.count; i++) {
                *changed_ret |= changed[i];
                if (!part_writer_has_room(&to->part))
                        st = error_set(err, ST_TOO_BIG, "the rewritten rows of '%s' do not fit into one file", f->path);
                else
                        st = location_part_put(to, &r.rows.items[i], err);
        }
        if (st)
                h->result = before;
        resymbolize_round_deinit(&r);
        return st;
}

static enum status rewrite_part_by_groups(struct resymbolization *h, struct table_part *part, bool *is_permanent_ret,
                                          struct error *err)
{
        const struct part_limits limits = { .max_rows = UINT64_MAX, .use = MEMORY_RESYMBOLIZE, .group_bytes = MiB(4) };
        _cleanup_(table_add_deinit) struct table_add add = { .name = make_new_part_name(part) };
        _cleanup_free_ char *key = add.name ? make_table_key(TABLE_LOCATIONS, add.name) : NULL;
        _cleanup_part_file_ struct part_file f;
        struct location_part to;
        bool changed = false;
        enum status st = part_file_open(part, &f, err);

        *is_permanent_ret = false;
        if (st)
                return st;
        if (!key)
                return error_no_memory(err);
        st = location_part_begin(&to, h->s->storage, key, &limits, err);
        h->result.files_read++;
        for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++)
                st = rewrite_group(h, &f, g, &to, &changed, is_permanent_ret, err);
        if (!st && changed && !h->request->dry_run)
                st = part_writer_finish(&to.part, &add.written, err);
        part_writer_deinit(&to.part);
        if (st || !changed)
                return st;
        if (!h->request->dry_run)
                return replace_parts(h, &part, 1, &add, err);
        h->result.files_rewritten++;
        return ST_OK;
}

/* ---- one round ---- */

static bool is_memory_refused(enum status st)
{
        return st == ST_BUSY || st == ST_NO_MEMORY || st == ST_TOO_BIG;
}

static void skip_part(struct resymbolization *h, const struct table_part *part, const struct error *why)
{
        metric_add(&skipped_parts, 1);
        h->result.files_skipped++;
        log_error("store", "cannot re-symbolize the locations in '%s', skipping it: %s", part->path, why->text);
}

/* Add the rows of a part that has rows of the objects. The round is unchanged on failure. */
static enum status read_round_part(struct resymbolization *h, struct resymbolize_round *r, struct table_part *part,
                                   struct error *err)
{
        _cleanup_part_file_ struct part_file f;
        size_t before = r->rows.count;
        bool selected = false;
        enum status st;

        f = (struct part_file){ 0 };
        if (!may_have_selected_objects(h, part))
                return ST_OK;
        st = part_file_open(part, &f, err);
        h->result.files_read++;
        if (!st)
                st = has_selected_objects(h, &f, &selected, err);
        if (st || !selected)
                return st;
        for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++)
                st = part_read_locations(&f, g, NULL, &r->arena, &r->rows, err);
        if (st) {
                r->rows.count = before;
                return st;
        }
        r->parts[r->part_count] = part;
        r->part_ends[r->part_count++] = r->rows.count;
        return ST_OK;
}

/* Keep only the parts, with their rows, in which something changed. */
static void drop_unchanged_parts(struct resymbolize_round *r, const uint8_t *changed)
{
        size_t parts = 0, rows = 0, begin = 0;

        for (size_t i = 0; i < r->part_count; i++) {
                size_t end = r->part_ends[i];

                if (memchr(changed + begin, 1, end - begin)) {
                        memmove(r->rows.items + rows, r->rows.items + begin, (end - begin) * sizeof *r->rows.items);
                        rows += end - begin;
                        r->parts[parts] = r->parts[i];
                        r->part_ends[parts++] = rows;
                }
                begin = end;
        }
        r->part_count = parts;
        r->rows.count = rows;
        resymbolize_round_check(r);
}

static enum status rewrite_round(struct resymbolization *h, struct resymbolize_round *r, struct error *err)
{
        const struct part_limits limits = { .max_rows = UINT64_MAX, .use = MEMORY_RESYMBOLIZE };
        _cleanup_(table_add_deinit) struct table_add add = { .name = make_new_part_name(r->parts[0]) };
        _cleanup_free_ char *key = add.name ? make_table_key(TABLE_LOCATIONS, add.name) : NULL;
        size_t written = r->rows.count;
        enum status st;

        if (!key)
                return error_no_memory(err);
        if (h->request->dry_run) {
                h->result.files_rewritten += r->part_count;
                return ST_OK;
        }
        qsort(r->rows.items, r->rows.count, sizeof *r->rows.items, compare_location_rows);
        st = part_write_locations(h->s->storage, key, r->rows.items, &written, &limits, &add.written, err);
        if (!st && written < r->rows.count)
                st = error_set(err, ST_TOO_BIG, "%zu locations do not fit into one file of the table", r->rows.count);
        return st ? st : replace_parts(h, r->parts, r->part_count, &add, err);
}

/* Read parts from *next on until the round is full. *failed_ret: the part that failed before any other was read. */
static enum status read_round(struct resymbolization *h, struct resymbolize_round *r, size_t *next,
                              struct table_part **failed_ret, struct error *err)
{
        size_t part_count = h->tables->part_count[TABLE_LOCATIONS];

        while (*next < part_count && r->part_count < h->max_parts && r->rows.count < h->s->options.resymbolize_rows) {
                struct table_part *part = h->tables->parts[TABLE_LOCATIONS][*next];
                enum status st = read_round_part(h, r, part, err);

                if (st && r->part_count && (is_memory_refused(st) || part_is_unreadable(st, err)))
                        return ST_OK; /* the next round begins with this part */
                ++*next;
                if (st) {
                        *failed_ret = part;
                        return st;
                }
        }
        return ST_OK;
}

/* Handle a part that failed as the only one of a round. ST_OK when the others can proceed. */
static enum status handle_failed_part(struct resymbolization *h, struct table_part *part, enum status st,
                                      struct error *err)
{
        bool is_permanent = true;

        if (is_memory_refused(st))
                st = rewrite_part_by_groups(h, part, &is_permanent, err);
        if (!st)
                return ST_OK;
        if (part_is_unreadable(st, err) || (is_permanent && is_memory_refused(st))) {
                skip_part(h, part, err);
                return ST_OK;
        }
        if (!is_memory_refused(st))
                return st;
        h->refused = *err;
        h->refused.code = ST_BUSY;
        return ST_OK;
}

static enum status resymbolize_parts(struct resymbolization *h, size_t *next, struct error *err)
{
        size_t part_count = h->tables->part_count[TABLE_LOCATIONS], first = *next;
        struct table_part *failed = NULL;
        struct resymbolize_round r;
        _cleanup_free_ uint8_t *changed = NULL;
        enum status st;

        resymbolize_round_init(&r);
        r.parts = calloc(part_count + 1, sizeof *r.parts);
        r.part_ends = calloc(part_count + 1, sizeof *r.part_ends);
        st = r.parts && r.part_ends ? read_round(h, &r, next, &failed, err) : error_no_memory(err);
        if (!st && r.rows.count) {
                resymbolize_round_check(&r);
                changed = calloc(r.rows.count, 1);
                st = changed ? look_up_rows(h, r.rows.items, r.rows.count, &r.arena, changed, err)
                             : error_no_memory(err);
                if (is_memory_refused(st) && r.part_count == 1) {
                        failed = r.parts[0];
                } else if (is_memory_refused(st)) {
                        h->max_parts = r.part_count / 2;
                        *next = first;
                        st = ST_OK;
                } else if (!st) {
                        drop_unchanged_parts(&r, changed);
                        st = r.part_count ? rewrite_round(h, &r, err) : ST_OK;
                }
        }
        resymbolize_round_deinit(&r); /* free its memory for the failed part */
        return st && failed ? handle_failed_part(h, failed, st, err) : st;
}

/* ---- all rounds ---- */

static uint64_t count_rows_before(const struct tables *t, size_t part)
{
        uint64_t ret = 0;

        for (size_t i = 0; i < part; i++)
                ret += t->parts[TABLE_LOCATIONS][i]->rows;
        return ret;
}

static enum status resymbolize_tables(struct resymbolization *h, struct error *err)
{
        const struct resymbolize_request *request = h->request;
        struct profile_store *s = h->s;
        size_t next = 0, part_count;
        enum status st;

        if (!request->dry_run) {
                st = store_hold_lease(s, &s->resymbolize_lease, err);
                if (st)
                        return st;
        }
        pthread_mutex_lock(&s->writer_lock);
        st = store_reconcile(s, err); /* the snapshot then has everything that was committed */
        h->tables = tables_ref(s->tables);
        pthread_mutex_unlock(&s->writer_lock);
        part_count = h->tables->part_count[TABLE_LOCATIONS];
        while (!st && next < part_count) {
                pthread_mutex_lock(&s->writer_lock);
                st = store_reconcile(s, err);
                if (!st)
                        st = resymbolize_parts(h, &next, err);
                pthread_mutex_unlock(&s->writer_lock);
                if (!st && request->progress)
                        request->progress(request->context, count_rows_before(h->tables, next),
                                          count_rows_before(h->tables, part_count));
        }
        if (!st && h->refused.code)
                st = error_set(err, ST_BUSY, "%s", h->refused.text);
        return st;
}

enum status profile_store_resymbolize(struct profile_store *s, const struct resymbolize_request *request,
                                      struct resymbolize_result *ret, struct error *err)
{
        struct resymbolization h = { .s = s, .request = request, .id_count = request->count, .max_parts = SIZE_MAX };
        struct error unused = { 0 };
        enum status st;

        err = err ? err : &unused; /* its os_errno is read */
        if (s->options.read_only)
                return error_set(err, ST_USAGE, "'%s' is open for reading only", s->dir);
        if (h.id_count) {
                h.ids = calloc(h.id_count, sizeof *h.ids);
                if (!h.ids)
                        return error_no_memory(err);
                memcpy(h.ids, request->ids, h.id_count * sizeof *h.ids);
                qsort(h.ids, h.id_count, sizeof *h.ids, compare_build_ids);
        }
        atomic_fetch_add(&s->resymbolize_waiting, 1);
        pthread_mutex_lock(&s->resymbolize_lock);
        atomic_fetch_sub(&s->resymbolize_waiting, 1);
        st = resymbolize_tables(&h, err);
        store_end_lease(s, &s->resymbolize_lease);
        pthread_mutex_unlock(&s->resymbolize_lock);
        tables_unref(h.tables);
        free(h.ids);
        if (!st && ret)
                *ret = h.result;
        return st;
}
