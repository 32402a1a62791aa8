/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "profile-store/part_read.h"
#include "profile-store/store_internal.h"

/*
 * Healing goes through the parts in rounds of options.heal_rows rows, and what
 * the last part of one has more. A round: read the parts that have rows of the
 * objects, one lookup for those rows, drop the parts where nothing changed,
 * write the rows of the others as one new part, and commit "new part in, old
 * parts out". Rows keep their location ids, so samples and stacks do not notice.
 * Flushes come between two rounds, and may fail there: each round catches up.
 */
struct healing {
        struct profile_store *s;
        struct build_id *ids; /* sorted; none: all */
        size_t id_count;
        struct tables *tables; /* as they were at the start; parts that come later are fresh */
        struct resymbolize_result result;
};

struct round {
        struct arena arena;
        struct location_rows rows;
        struct table_part **parts; /* borrowed from healing.tables */
        size_t *part_ends;         /* rows of part i end here */
        size_t part_count;
};

static void round_deinit(struct round *r)
{
        arena_deinit(&r->arena);
        location_rows_deinit(&r->rows);
        free(r->parts);
        free(r->part_ends);
}

static int by_build_id(const void *a, const void *b)
{
        return build_id_compare(a, b);
}

static bool concerns(const struct healing *h, const struct build_id *id)
{
        if (!h->id_count)
                return id->size;
        return bsearch(id, h->ids, h->id_count, sizeof *h->ids, by_build_id);
}

/* Whether a part has rows of the objects, told by its build-id column alone. */
static enum status part_concerns(const struct healing *h, const struct part_file *f, bool *ret, struct error *err)
{
        enum status st = ST_OK;

        *ret = false;
        for (uint32_t g = 0; !st && !*ret && g < part_file_groups(f); g++) {
                _cleanup_parquet_column_ struct parquet_column c = { 0 };

                st = part_file_column(f, g, "build_id", PARQUET_STRING, &c, err);
                for (uint32_t i = 0; !st && !*ret && i < c.dict_count; i++) {
                        struct build_id id;

                        *ret = build_id_from_hex(&id, (const char *)c.dict[i].data, c.dict[i].size) &&
                               concerns(h, &id);
                }
        }
        return st;
}

/* ---- one round ------------------------------------------------------------------------------- */

static enum status read_part(struct healing *h, struct round *r, struct table_part *part, struct error *err)
{
        _cleanup_part_file_ struct part_file f;
        bool concerned = false;
        enum status st = part_file_open(part, &f, err);

        if (!st)
                st = part_concerns(h, &f, &concerned, err);
        if (st || !concerned)
                return st;
        for (uint32_t g = 0; !st && g < part_file_groups(&f); g++)
                st = part_read_locations(&f, g, NULL, &r->arena, &r->rows, err);
        if (st)
                return st;
        r->parts[r->part_count] = part;
        r->part_ends[r->part_count++] = r->rows.count;
        return ST_OK;
}

/* Looks the concerned rows up together; changed gets one flag a row of the round. */
static enum status look_up(struct healing *h, struct round *r, uint8_t *changed, struct error *err)
{
        _cleanup_free_ struct location_row *rows = calloc(r->rows.count + 1, sizeof *rows);
        _cleanup_free_ size_t *from = calloc(r->rows.count + 1, sizeof *from);
        _cleanup_free_ uint8_t *flags = calloc(r->rows.count + 1, 1);
        size_t n = 0;
        enum status st;

        if (!rows || !from || !flags)
                return error_no_memory(err);
        for (size_t i = 0; i < r->rows.count; i++) {
                if (!concerns(h, &r->rows.items[i].shown.build_id))
                        continue;
                rows[n] = r->rows.items[i];
                from[n++] = i;
        }
        st = location_rows_resolve(rows, n, h->s->options.symbols, &r->arena, flags, err);
        for (size_t i = 0; !st && i < n; i++) {
                r->rows.items[from[i]] = rows[i];
                changed[from[i]] = flags[i];
                h->result.locations_changed += flags[i];
        }
        h->result.locations_seen += n;
        return st;
}

/* Keeps the parts, and their rows, where something changed. */
static void drop_unchanged(struct round *r, const uint8_t *changed)
{
        size_t parts = 0, rows = 0, begin = 0;

        for (size_t i = 0; i < r->part_count; i++) {
                size_t end = r->part_ends[i];

                if (memchr(changed + begin, 1, end - begin)) {
                        memmove(r->rows.items + rows, r->rows.items + begin, (end - begin) * sizeof *r->rows.items);
                        rows += end - begin;
                        r->parts[parts++] = r->parts[i];
                }
                begin = end;
        }
        r->part_count = parts;
        r->rows.count = rows;
}

static char *new_name(const struct round *r)
{
        int64_t now = wall_clock_ns();
        uint64_t unique = hash64(r->parts[0]->name, strlen(r->parts[0]->name));
        char *ret;

        return asprintf(&ret, "heal-%020lld-%016llx.parquet", (long long)now, (unsigned long long)unique) < 0 ? NULL
                                                                                                              : ret;
}

static enum status rewrite(struct healing *h, struct round *r, struct error *err)
{
        struct profile_store *s = h->s;
        _cleanup_(table_add_deinit) struct table_add add = { .name = new_name(r) };
        _cleanup_free_ char *path = add.name ? table_path(&s->logs, TABLE_LOCATIONS, add.name) : NULL;
        const struct table_change change = { .table = TABLE_LOCATIONS,
                                             .adds = &add,
                                             .add_count = 1,
                                             .removes = r->parts,
                                             .remove_count = r->part_count };
        size_t written = r->rows.count;
        enum status st;

        if (!path)
                return error_no_memory(err);
        qsort(r->rows.items, r->rows.count, sizeof *r->rows.items, location_row_compare);
        st = part_write_locations(path, r->rows.items, &written, UINT64_MAX, &add.written, err);
        if (!st && written < r->rows.count)
                st = error_set(err, ST_TOO_BIG, "%zu locations do not fit into one file of the table", r->rows.count);
        if (!st) {
                st = tables_commit(&s->logs, &change, err);
                s->behind = true;
        }
        if (!st)
                st = store_show(s, err);
        if (!st) {
                s->behind = false;
                h->result.files_rewritten += r->part_count;
        }
        return st;
}

/* Parts from *next on, until the round is full. */
static enum status heal_round(struct healing *h, size_t *next, struct error *err)
{
        size_t part_count = h->tables->part_count[TABLE_LOCATIONS];
        _cleanup_(round_deinit) struct round r = { .parts = calloc(part_count + 1, sizeof *r.parts),
                                                   .part_ends = calloc(part_count + 1, sizeof *r.part_ends) };
        _cleanup_free_ uint8_t *changed = NULL;
        enum status st = ST_OK;

        arena_init(&r.arena, LIMIT_FLUSH_MEMORY_BYTES);
        if (!r.parts || !r.part_ends)
                return error_no_memory(err);
        while (!st && *next < part_count && r.rows.count < h->s->options.heal_rows)
                st = read_part(h, &r, h->tables->parts[TABLE_LOCATIONS][(*next)++], err);
        if (st || !r.rows.count)
                return st;
        changed = calloc(r.rows.count, 1);
        if (!changed)
                return error_no_memory(err);
        st = look_up(h, &r, changed, err);
        if (st)
                return st;
        drop_unchanged(&r, changed);
        return r.part_count ? rewrite(h, &r, err) : ST_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------ */

static uint64_t rows_before(const struct tables *t, size_t part)
{
        uint64_t ret = 0;

        for (size_t i = 0; i < part; i++)
                ret += t->parts[TABLE_LOCATIONS][i]->rows;
        return ret;
}

static enum status heal(struct healing *h, profile_store_progress *progress, void *context, struct error *err)
{
        struct profile_store *s = h->s;
        size_t next = 0, part_count;
        enum status st;

        pthread_mutex_lock(&s->writer);
        st = store_catch_up(s, err); /* so that what is healed is all that was committed */
        h->tables = tables_ref(s->tables);
        pthread_mutex_unlock(&s->writer);
        part_count = h->tables->part_count[TABLE_LOCATIONS];
        while (!st && next < part_count) {
                pthread_mutex_lock(&s->writer);
                st = store_catch_up(s, err);
                if (!st)
                        st = heal_round(h, &next, err);
                pthread_mutex_unlock(&s->writer);
                if (!st && progress)
                        progress(context, rows_before(h->tables, next), rows_before(h->tables, part_count));
        }
        pthread_mutex_lock(&s->writer);
        if (!st && !s->behind)
                st = tables_clean(&s->logs, s->tables, err);
        pthread_mutex_unlock(&s->writer);
        return st;
}

enum status profile_store_resymbolize(struct profile_store *s, const struct build_id *ids, size_t count,
                                      profile_store_progress *progress, void *context,
                                      struct resymbolize_result *ret, struct error *err)
{
        struct healing h = { .s = s, .id_count = count };
        enum status st;

        if (s->options.read_only)
                return error_set(err, ST_USAGE, "'%s' is open for reading only", s->dir);
        if (count) {
                h.ids = calloc(count, sizeof *h.ids);
                if (!h.ids)
                        return error_no_memory(err);
                memcpy(h.ids, ids, count * sizeof *h.ids);
                qsort(h.ids, count, sizeof *h.ids, by_build_id);
        }
        pthread_mutex_lock(&s->healer);
        st = heal(&h, progress, context, err);
        pthread_mutex_unlock(&s->healer);
        tables_unref(h.tables);
        free(h.ids);
        if (!st && ret)
                *ret = h.result;
        return st;
}
