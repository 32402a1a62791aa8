/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/known_rows.h"

#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "common/metrics.h"
#include "profile-store/part_read.h"

static struct metric passed_over =
        METRIC_COUNTER("cairn_damaged_parts_total", "Files of a table that a flush could not read and passed over.", "");

void known_rows_deinit(struct known_rows *k)
{
        key_map_deinit(&k->locations);
        for (int i = 0; i < KNOWN_DAYS; i++)
                key_map_deinit(&k->days[i].stacks);
        *k = (struct known_rows){ 0 };
}

/*
 * The rows of a part that is gone or damaged count as not written, and are written again when they are next sampled.
 * Of such a part no row is known: what its readable groups hold is lost too once the file is taken away.
 */
static enum status known_of_part(const struct table_part *part, struct key_map *to,
                                 enum status (*read)(const struct table_part *, struct key_map *, struct error *),
                                 struct error *err)
{
        _cleanup_key_map_ struct key_map keys = { 0 };
        struct error why = { 0 };
        enum status st = read(part, &keys, &why);

        if (!st)
                return key_map_merge(to, &keys, err);
        if (st == ST_BAD_DATA || st == ST_TOO_BIG || (st == ST_OS && why.os_errno == ENOENT)) {
                metric_add(&passed_over, 1);
                log_error("store", "%s; its rows are written again as they come, restore the file from a backup", why.text);
                return ST_OK;
        }
        if (err)
                *err = why;
        return st;
}

static enum status read_locations(const struct table_part *part, struct key_map *to, struct error *err)
{
        _cleanup_part_file_ struct part_file f;
        enum status st = part_file_open(part, &f, err);

        for (uint32_t g = 0; !st && g < part_file_groups(&f); g++) {
                _cleanup_parquet_column_ struct parquet_column ids = { 0 };

                st = part_file_column(&f, g, "location_id", PARQUET_INT64, &ids, err);
                for (uint64_t i = 0; !st && i < ids.row_count; i++) {
                        struct hash128 key = key_of_u64((uint64_t)ids.ints[i]);

                        st = key_map_put(to, &key, 0, NULL, NULL, err);
                }
        }
        return st;
}

enum status known_locations(struct known_rows *k, const struct tables *t, struct key_map **ret, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !k->loaded && !st && i < t->part_count[TABLE_LOCATIONS]; i++)
                st = known_of_part(t->parts[TABLE_LOCATIONS][i], &k->locations, read_locations, err);
        if (st)
                return st;
        k->loaded = true;
        *ret = &k->locations;
        return ST_OK;
}

static enum status read_stacks(const struct table_part *part, struct key_map *to, struct error *err)
{
        _cleanup_part_file_ struct part_file f;
        enum status st = part_file_open(part, &f, err);

        for (uint32_t g = 0; !st && g < part_file_groups(&f); g++) {
                _cleanup_parquet_column_ struct parquet_column ids = { 0 };

                st = part_file_column(&f, g, "stack_id", PARQUET_BINARY, &ids, err);
                for (uint64_t i = 0; !st && i < ids.row_count; i++) {
                        struct hash128 key;

                        if (part_stack_id(&ids, i, &key))
                                st = key_map_put(to, &key, 0, NULL, NULL, err);
                }
        }
        return st;
}

struct key_map *known_stacks_loaded(struct known_rows *k, int64_t day)
{
        for (int i = 0; i < KNOWN_DAYS; i++) {
                if (k->days[i].loaded && k->days[i].day == day) {
                        k->days[i].last_use = ++k->uses;
                        return &k->days[i].stacks;
                }
        }
        return NULL;
}

static struct known_day *least_used(struct known_rows *k)
{
        struct known_day *ret = &k->days[0];

        for (int i = 1; i < KNOWN_DAYS; i++) {
                if (k->days[i].last_use < ret->last_use)
                        ret = &k->days[i];
        }
        return ret;
}

enum status known_stacks(struct known_rows *k, const struct tables *t, int64_t day, struct key_map **ret,
                         struct error *err)
{
        struct key_map *known = known_stacks_loaded(k, day);
        struct known_day *d;
        enum status st = ST_OK;

        if (known) {
                *ret = known;
                return ST_OK;
        }
        d = least_used(k);
        key_map_deinit(&d->stacks);
        *d = (struct known_day){ .day = day, .last_use = ++k->uses };
        for (size_t i = 0; !st && i < t->part_count[TABLE_STACKS]; i++) {
                const struct table_part *part = t->parts[TABLE_STACKS][i];

                if (part->has_day && part->day == day)
                        st = known_of_part(part, &d->stacks, read_stacks, err);
        }
        if (st)
                return st;
        d->loaded = true;
        *ret = &d->stacks;
        return ST_OK;
}
