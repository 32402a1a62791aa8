/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two phases. verify_table_files() checks each file alone, one column at a time over all row groups: size and rows
 * against the log, nulls and bounds against the log and the statistics of the row groups. verify_stack_references()
 * (day by day) and verify_location_references() then check references in passes: a pass takes the ids whose hash is
 * its number modulo the count of passes, collects them from the files that define them, and looks up those of the
 * files that refer to them.
 *
 * A failure to read a file is a problem to report, once per file (`unreadable`), unless it is due to this process
 * (memory, descriptors). A file that a service has removed meanwhile is no problem: `vanished` ends the check with
 * ST_BUSY, since ids would be missing.
 *
 * In the file: reports; values against bounds; one file; failures; ids and passes; references; the entry point.
 * No lock: the logs are opened read-only, and no store is open.
 */
#include "profile-store/tables/store_verification.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "profile-store/rows/batch.h"
#include "profile-store/tables/history_part.h"
#include "profile-store/tables/part_read.h"
#include "profile-store/tables/table_storage.h"
#include "profile-store/tables/tables.h"

struct verify {
        const struct verify_options *o;
        struct table_logs logs;
        struct tables *tables;
        struct store_verify_result result;
        uint64_t done_files, all_files;
        bool *unreadable[TABLE_COUNT]; /* per part: already reported as missing or unreadable */
        bool vanished;                 /* a file was removed during the check */
};

__attribute__((format(printf, 4, 5))) static void
report_table_problem(struct verify *v, enum table t, const struct table_part *part, const char *format, ...)
{
        char text[400];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        v->result.problems++;
        v->o->report(v->o->context, table_name(t), part->name, text);
}

static void count_verified_file(struct verify *v)
{
        v->done_files++;
        if (v->o->progress)
                v->o->progress(v->o->context, v->done_files, v->all_files);
}

/* ---- one file ---- */

/* State of the check of one file. */
struct file_check {
        struct verify *v;
        enum table table;
        const struct table_part *part;
        const struct delta_stats *stats; /* NULL: the log has none */
        struct part_file file;
        uint64_t rows;
        bool wrong_day; /* a time outside of the partition's day was reported */
};

struct value_bounds {
        bool has_ints, has_min_bytes, has_max_bytes;
        int64_t min_int, max_int;
        struct parquet_bytes min_bytes, max_bytes;
};

static int compare_value_bytes(const struct parquet_bytes *a, const struct parquet_bytes *b)
{
        size_t n = a->size < b->size ? a->size : b->size;
        int order = n ? memcmp(a->data, b->data, n) : 0;

        return order ? order : (a->size > b->size) - (a->size < b->size);
}

static bool is_slot_null(const struct parquet_column *c, uint64_t i)
{
        return c->codes ? c->codes[i] == PARQUET_NULL_CODE : c->valid && !c->valid[i];
}

/* Whether each value in use is within the bounds. Unused entries of a dictionary may be outside. */
static bool are_values_within(const struct parquet_column *c, const struct value_bounds *b)
{
        for (uint64_t i = 0; i < c->count; i++) {
                if (is_slot_null(c, i))
                        continue;
                if (c->codes) {
                        const struct parquet_bytes *value = &c->dict[c->codes[i]];

                        if ((b->has_min_bytes && compare_value_bytes(value, &b->min_bytes) < 0) ||
                            (b->has_max_bytes && compare_value_bytes(value, &b->max_bytes) > 0))
                                return false;
                } else if (c->ints && b->has_ints && (c->ints[i] < b->min_int || c->ints[i] > b->max_int)) {
                        return false;
                }
        }
        return true;
}

static uint64_t count_null_slots(const struct parquet_column *c)
{
        uint64_t n = 0;

        for (uint64_t i = 0; i < c->count; i++)
                n += is_slot_null(c, i);
        return n;
}

static void get_chunk_bounds(const struct parquet_stats *s, struct value_bounds *ret)
{
        *ret = (struct value_bounds){ .has_ints = s->has_min && s->has_max,
                                      .min_int = s->min_int,
                                      .max_int = s->max_int,
                                      .has_min_bytes = s->has_min && s->min_bytes,
                                      .has_max_bytes = s->has_max && s->max_bytes,
                                      .min_bytes = { s->min_bytes, s->min_size },
                                      .max_bytes = { s->max_bytes, s->max_size } };
}

static void get_log_bounds(const struct delta_column_stats *s, struct value_bounds *ret)
{
        *ret = (struct value_bounds){ .has_ints = s->has_int_range,
                                      .min_int = s->min_int,
                                      .max_int = s->max_int,
                                      .has_min_bytes = s->min_text,
                                      .has_max_bytes = s->max_text,
                                      .min_bytes = { (const uint8_t *)s->min_text, s->min_size },
                                      .max_bytes = { (const uint8_t *)s->max_text, s->max_size } };
}

static void verify_chunk_statistics(struct file_check *k, uint32_t group, uint32_t node, const struct parquet_column *c,
                                    uint64_t nulls)
{
        const char *name = parquet_file_schema(k->file.file)->nodes[node].name;
        struct parquet_stats s;
        struct value_bounds b;

        parquet_file_stats(k->file.file, group, node, &s);
        if (s.has_null_count && s.null_count != nulls)
                report_table_problem(k->v, k->table, k->part,
                                     "column '%s' has %" PRIu64 " nulls in row group %u, its statistics say %" PRIu64,
                                     name, nulls, group, s.null_count);
        get_chunk_bounds(&s, &b);
        if (!are_values_within(c, &b))
                report_table_problem(k->v, k->table, k->part,
                                     "column '%s' has values outside of the statistics of row group %u", name, group);
}

static void check_partition_day(struct file_check *k, const char *name, const struct parquet_column *c)
{
        for (uint64_t i = 0; k->part->has_day && !k->wrong_day && i < c->count; i++) {
                if (is_slot_null(c, i) || day_of_us(c->ints[i]) == k->part->day)
                        continue;
                k->wrong_day = true;
                report_table_problem(k->v, k->table, k->part, "column '%s' has a value outside of the partition's day",
                                     name);
        }
}

/* Columns of lists and maps are only read: logs have no statistics of them. */
static enum status verify_column(struct file_check *k, uint32_t node, struct error *err)
{
        const struct parquet_node *n = &parquet_file_schema(k->file.file)->nodes[node];
        bool is_flat = !n->max_rep && !n->parent, outside = false;
        struct delta_column_stats log = { 0 };
        uint64_t nulls = 0;
        struct value_bounds b;
        enum status st = ST_OK;

        if (is_flat && k->stats)
                delta_stats_get_column(k->stats, n->name, &log);
        get_log_bounds(&log, &b);
        for (uint32_t g = 0; !st && g < part_file_count_groups(&k->file); g++) {
                _cleanup_parquet_column_ struct parquet_column c = { 0 };
                uint64_t group_nulls;

                st = parquet_read_column(k->file.file, g, node, &c, err);
                if (!st && c.row_count != parquet_file_group_rows(k->file.file, g))
                        st = error_set(err, ST_BAD_DATA, "column '%s' has %" PRIu64 " rows in row group %u of %" PRIu64,
                                       n->name, c.row_count, g, parquet_file_group_rows(k->file.file, g));
                if (st || !is_flat)
                        continue;
                group_nulls = count_null_slots(&c);
                nulls += group_nulls;
                verify_chunk_statistics(k, g, node, &c, group_nulls);
                outside |= !are_values_within(&c, &b);
                if (c.ints && ((k->table == TABLE_SAMPLES && strcmp(n->name, "time") == 0) ||
                               (k->table == TABLE_HISTORY && strcmp(n->name, "hour") == 0)))
                        check_partition_day(k, n->name, &c);
        }
        if (st)
                return st;
        if (outside)
                report_table_problem(k->v, k->table, k->part, "column '%s' has values outside of the bounds in the log",
                                     n->name);
        if (log.has_null_count && log.null_count != nulls)
                report_table_problem(k->v, k->table, k->part,
                                     "column '%s' has %" PRIu64 " nulls, the log says %" PRIu64, n->name, nulls,
                                     log.null_count);
        return ST_OK;
}

static enum status verify_content(struct file_check *k, struct error *err)
{
        const struct parquet_schema *schema;
        enum status st = part_file_open(k->part, &k->file, err);

        if (st)
                return st;
        schema = parquet_file_schema(k->file.file);
        for (uint32_t g = 0; g < part_file_count_groups(&k->file); g++)
                k->rows += parquet_file_group_rows(k->file.file, g);
        if (k->stats && delta_stats_has_rows(k->stats) && k->rows != k->part->rows)
                report_table_problem(k->v, k->table, k->part, "has %" PRIu64 " rows, the log says %" PRIu64, k->rows,
                                     k->part->rows);
        for (uint32_t i = 0; !st && i < schema->column_count; i++)
                st = verify_column(k, schema->columns[i], err);
        return st;
}

/* Whether the newest state of the table still has the file: a service may have replaced and unlinked it. */
static bool is_file_live(struct verify *v, enum table t, const char *name)
{
        struct delta_snapshot *s;
        bool found = false;

        if (delta_table_refresh(v->logs.logs[t], NULL) || delta_snapshot_acquire(v->logs.logs[t], &s, NULL))
                return true;
        for (size_t i = 0; !found && i < s->file_count; i++)
                found = strcmp(s->files[i]->path, name) == 0;
        delta_snapshot_release(s);
        return found;
}

/* Whether a failure is due to this process (memory or descriptors) and not to the file. */
static bool is_process_failure(enum status st, const struct error *why)
{
        return st == ST_NO_MEMORY || st == ST_BUSY ||
               (st == ST_OS && (why->os_errno == EMFILE || why->os_errno == ENFILE || why->os_errno == ENOMEM));
}

/* Report a part that could not be read, once, unless the check itself cannot continue. */
static enum status handle_unreadable_part(struct verify *v, enum table t, size_t index, enum status st,
                                          const struct error *why, struct error *err)
{
        const struct table_part *part = v->tables->parts[t][index];
        struct storage_info unused;
        bool is_missing;

        if (is_process_failure(st, why)) {
                if (err)
                        *err = *why;
                return st;
        }
        if (v->unreadable[t][index])
                return ST_OK;
        is_missing = storage_stat(part->storage, part->key, &unused, NULL) == ST_NOT_FOUND;
        if (is_missing && !is_file_live(v, t, part->name)) {
                v->vanished = true;
                return ST_OK;
        }
        v->unreadable[t][index] = true;
        report_table_problem(v, t, part, "%s", is_missing ? "is missing: restore it from a backup" : why->text);
        return ST_OK;
}

static enum status verify_part(struct verify *v, enum table t, size_t index, const struct delta_file *file,
                               struct error *err)
{
        const struct table_part *part = v->tables->parts[t][index];
        struct file_check k = { .v = v, .table = t, .part = part };
        struct delta_stats *stats = NULL;
        struct error why = { 0 };
        struct storage_info info;
        enum status st = storage_stat(part->storage, part->key, &info, NULL);

        if (st == ST_NOT_FOUND)
                return handle_unreadable_part(v, t, index, ST_NOT_FOUND, &why, err);
        if (file->stats && !(stats = delta_stats_parse(file)))
                report_table_problem(v, t, part, "the statistics in the log are not JSON");
        k.stats = stats;
        if (!st && info.size != part->bytes) /* after another failure verify_content() fails, too */
                report_table_problem(v, t, part, "has %" PRIu64 " bytes, the log says %" PRIu64, info.size,
                                     part->bytes);
        st = verify_content(&k, &why);
        part_file_close(&k.file);
        delta_stats_free(stats);
        v->result.files++;
        v->result.rows += k.rows;
        v->result.bytes += part->bytes;
        return st ? handle_unreadable_part(v, t, index, st, &why, err) : ST_OK;
}

static enum status verify_table_files(struct verify *v, enum table t, struct error *err)
{
        struct delta_snapshot *s;
        enum status st = delta_snapshot_acquire(v->logs.logs[t], &s, err);

        if (st)
                return st;
        /* Both are sorted by name and of the same version: the log was not refreshed in between. */
        if (s->file_count != v->tables->part_count[t])
                st = error_set(err, ST_BUSY, "the tables changed during the check: run it again");
        for (size_t i = 0; !st && i < s->file_count; i++) {
                st = verify_part(v, t, i, s->files[i], err);
                count_verified_file(v);
        }
        delta_snapshot_release(s);
        return st;
}

/* ---- references ---- */

/* The ids of one pass, selected by hash. */
struct id_pass {
        struct key_map ids;
        uint64_t number, count;
};

static bool belongs_to_pass(const struct id_pass *p, const struct hash128 *id)
{
        return p->count == 1 || hash_bytes64(id->bytes, sizeof id->bytes) % p->count == p->number;
}

/* Visits an id column of a part: called for each row, or for each element of a list. */
typedef enum status visit_verified_id(void *context, const struct hash128 *id, struct error *err);

static enum status visit_group_ids(const struct part_file *f, uint32_t group, const char *column,
                                   visit_verified_id *visit, void *context, struct error *err)
{
        bool is_stack = strcmp(column, "stack_id") == 0;
        _cleanup_parquet_column_ struct parquet_column c = { 0 };
        enum status st = part_file_read_column(f, group, column, is_stack ? PARQUET_BINARY : PARQUET_INT64, &c, err);

        for (uint64_t i = 0; !st && i < c.count; i++) {
                struct hash128 id;

                if (is_slot_null(&c, i))
                        continue;
                if (!is_stack)
                        id = make_u64_key((uint64_t)c.ints[i]);
                else if (!part_read_stack_id(&c, i, &id))
                        continue;
                st = visit(context, &id, err);
        }
        return st;
}

struct id_visitor {
        visit_verified_id *visit;
        void *context;
};

/* Visit the ids of a column of a part, as far as it is readable. ST_BUSY when the part was removed. */
static enum status visit_file_ids(struct verify *v, enum table t, size_t index, const char *column,
                                  struct id_visitor visitor, struct error *err)
{
        _cleanup_part_file_ struct part_file f;
        struct error why = { 0 };
        enum status st = part_file_open(v->tables->parts[t][index], &f, &why);

        for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++)
                st = visit_group_ids(&f, g, column, visitor.visit, visitor.context, &why);
        if (st)
                st = handle_unreadable_part(v, t, index, st, &why, err);
        return !st && v->vanished ? ST_BUSY : st;
}

struct id_collector {
        struct id_pass *pass;
        uint64_t repeated;
};

static enum status collect_id(void *context, const struct hash128 *id, struct error *err)
{
        struct id_collector *c = context;
        bool added = true;
        enum status st = ST_OK;

        if (belongs_to_pass(c->pass, id))
                st = key_map_put(&c->pass->ids, id, 0, &added, NULL, err);
        c->repeated += !added;
        return st;
}

struct id_lookup {
        const struct id_pass *pass;
        uint64_t missing;
        struct hash128 example;
};

static enum status look_up_id(void *context, const struct hash128 *id, struct error *err)
{
        struct id_lookup *l = context;

        (void)err;
        if (belongs_to_pass(l->pass, id) && !key_map_find(&l->pass->ids, id)) {
                l->missing++;
                l->example = *id;
        }
        return ST_OK;
}

static void format_missing_id(const struct hash128 *id, bool is_stack, char ret[static 33])
{
        uint64_t number = 0;

        hex_encode(id->bytes, sizeof id->bytes, ret);
        if (is_stack)
                return;
        for (size_t i = 0; i < sizeof number; i++) /* the key begins with the number: make_u64_key() */
                number |= (uint64_t)id->bytes[i] << 8 * i;
        snprintf(ret, 33, "%" PRId64, (int64_t)number);
}

/* References from parts of one table to ids in parts of another; each a range: `count` parts from `first` on. */
struct references {
        enum table from_table, to_table;
        const char *from_column, *to_column;
        size_t from_first, from_count, to_first, to_count;
};

static enum status verify_reference_pass(struct verify *v, const struct references *r, uint64_t number, uint64_t count,
                                         struct error *err)
{
        struct id_pass pass = { .number = number, .count = count };
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < r->to_count; i++) {
                struct id_collector c = { .pass = &pass };

                st = visit_file_ids(v, r->to_table, r->to_first + i, r->to_column,
                                    (struct id_visitor){ collect_id, &c }, err);
                if (c.repeated)
                        report_table_problem(v, r->to_table, v->tables->parts[r->to_table][r->to_first + i],
                                             "%" PRIu64 " rows have a %s that another row has already", c.repeated,
                                             r->to_column);
        }
        for (size_t i = 0; !st && i < r->from_count; i++) {
                struct id_lookup l = { .pass = &pass };
                char example[33];

                st = visit_file_ids(v, r->from_table, r->from_first + i, r->from_column,
                                    (struct id_visitor){ look_up_id, &l }, err);
                format_missing_id(&l.example, r->to_table == TABLE_STACKS, example);
                if (l.missing)
                        report_table_problem(v, r->from_table, v->tables->parts[r->from_table][r->from_first + i],
                                             "%" PRIu64 " references name a %s that no readable file of %s has, as %s",
                                             l.missing, r->to_column, table_name(r->to_table), example);
                if (number + 1 == count)
                        count_verified_file(v);
        }
        key_map_deinit(&pass.ids);
        return st;
}

static enum status verify_references(struct verify *v, const struct references *r, struct error *err)
{
        uint64_t rows = 0, passes;
        enum status st = ST_OK;

        for (size_t i = 0; i < r->to_count; i++)
                rows += v->tables->parts[r->to_table][r->to_first + i]->rows;
        passes = rows / VERIFY_PASS_IDS + 1;
        for (uint64_t n = 0; !st && n < passes; n++)
                st = verify_reference_pass(v, r, n, passes, err);
        return st;
}

/* Parts of a day are contiguous: names begin with "date=". */
static size_t count_parts_of_day(const struct tables *t, enum table table, size_t first, int64_t day)
{
        size_t i = first;

        while (i < t->part_count[table] && t->parts[table][i]->has_day && t->parts[table][i]->day == day)
                i++;
        return i - first;
}

static size_t find_day(const struct tables *t, enum table table, int64_t day)
{
        size_t i = 0;

        while (i < t->part_count[table] && !(t->parts[table][i]->has_day && t->parts[table][i]->day == day))
                i++;
        return i;
}

static enum status verify_stack_references(struct verify *v, struct error *err)
{
        const struct tables *t = v->tables;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < t->part_count[TABLE_SAMPLES];) {
                const struct table_part *first = t->parts[TABLE_SAMPLES][i];
                size_t n = count_parts_of_day(t, TABLE_SAMPLES, i, first->day);
                size_t stacks = find_day(t, TABLE_STACKS, first->day);
                const struct references r = { .from_table = TABLE_SAMPLES,
                                              .to_table = TABLE_STACKS,
                                              .from_column = "stack_id",
                                              .to_column = "stack_id",
                                              .from_first = i,
                                              .from_count = n,
                                              .to_first = stacks,
                                              .to_count = count_parts_of_day(t, TABLE_STACKS, stacks, first->day) };

                if (!n) {
                        report_table_problem(v, TABLE_SAMPLES, first, "the log does not say its date");
                        i++;
                        continue;
                }
                st = verify_references(v, &r, err);
                i += n;
        }
        return st;
}

static enum status verify_location_references(struct verify *v, struct error *err)
{
        const struct tables *t = v->tables;
        const struct references r = { .from_table = TABLE_STACKS,
                                      .to_table = TABLE_LOCATIONS,
                                      .from_column = "location_ids.list.element",
                                      .to_column = "location_id",
                                      .from_count = t->part_count[TABLE_STACKS],
                                      .to_count = t->part_count[TABLE_LOCATIONS] };

        return verify_references(v, &r, err);
}

/* ---- hours of function_history ---- */

#define HOURS_PER_DAY 24

/* Files of one day: the file of each hour so far. */
struct day_hours {
        struct verify *v;
        int64_t day;
        const struct table_part *part, *of_hour[HOURS_PER_DAY];
        bool is_reported; /* for part */
};

static enum status check_history_hour(void *context, const struct history_row *row, struct error *err)
{
        struct day_hours *h = context;
        int64_t hour = row->hour_us / HISTORY_HOUR_US - h->day * HOURS_PER_DAY;

        (void)err;
        if (hour < 0 || hour >= HOURS_PER_DAY)
                return ST_OK; /* reported as outside of the day */
        if (h->of_hour[hour] && h->of_hour[hour] != h->part && !h->is_reported) {
                h->is_reported = true;
                report_table_problem(h->v, TABLE_HISTORY, h->part, "has an hour that '%s' has too",
                                     h->of_hour[hour]->name);
        }
        h->of_hour[hour] = h->part;
        return ST_OK;
}

/* An hour is in one file only, so that none is counted twice. */
static enum status verify_history_hours(struct verify *v, struct error *err)
{
        struct day_hours h = { .v = v };
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < v->tables->part_count[TABLE_HISTORY]; i++) {
                const struct table_part *part = v->tables->parts[TABLE_HISTORY][i];

                if (v->unreadable[TABLE_HISTORY][i] || !part->has_day)
                        continue;
                if (part->day != h.day)
                        h = (struct day_hours){ .v = v, .day = part->day };
                h.part = part;
                h.is_reported = false;
                st = history_part_visit(part, INT64_MIN, INT64_MAX, MEMORY_BASE, check_history_hour, &h, err);
        }
        return st;
}

/* ---- all tables ---- */

enum status verify_tables(const char *dir, const struct verify_options *o, struct store_verify_result *ret,
                          struct error *err)
{
        _cleanup_storage_ struct storage *storage = NULL;
        struct verify v = { .o = o };
        enum status st = open_table_storage(dir, &storage, err);

        if (!st)
                st = table_logs_open(storage, "", true, 0, &v.logs, err);
        if (!st)
                st = tables_load(&v.logs, false, NULL, &v.tables, err);
        for (int t = 0; !st && t < TABLE_COUNT; t++) {
                v.all_files += v.tables->part_count[t] * (t == TABLE_LOCATIONS || t == TABLE_HISTORY ? 1 : 2);
                v.unreadable[t] = calloc(v.tables->part_count[t] + 1, sizeof *v.unreadable[t]);
                if (!v.unreadable[t])
                        st = error_no_memory(err);
        }
        for (int t = 0; !st && t < TABLE_COUNT; t++)
                if (v.logs.logs[t]) /* an earlier release has no function_history */
                        st = verify_table_files(&v, t, err);
        if (!st && !v.vanished)
                st = verify_history_hours(&v, err);
        if (!st && !v.vanished)
                st = verify_stack_references(&v, err);
        if (!st && !v.vanished)
                st = verify_location_references(&v, err);
        if (v.vanished && (!st || st == ST_BUSY))
                st = error_set(err, ST_BUSY,
                               "the service replaced and removed files during the check, so references were not "
                               "checked: run it again");
        for (int t = 0; t < TABLE_COUNT; t++)
                free(v.unreadable[t]);
        tables_unref(v.tables);
        table_logs_close(&v.logs);
        *ret = v.result;
        return st;
}
