/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/part_read.h"

#include <string.h>

#include "common/array.h"
#include "common/limits.h"
#include "profile-store/frame_chains.h"
#include "symbolizer/symbol_reason.h"

enum status part_file_open(const struct table_part *part, struct part_file *ret, struct error *err)
{
        enum status st;

        *ret = (struct part_file){ .path = part->path };
        st = file_map_open(part->path, LIMIT_PARQUET_FILE_BYTES, &ret->map, err);
        return st ? st : parquet_file_open(ret->map.data, ret->map.size, part->path, &ret->file, err);
}

void part_file_close(struct part_file *f)
{
        parquet_file_close(f->file);
        file_map_close(&f->map);
}

uint32_t part_file_groups(const struct part_file *f)
{
        return parquet_file_row_groups(f->file);
}

bool part_file_has(const struct part_file *f, const char *column)
{
        return parquet_schema_find(parquet_file_schema(f->file), column) != 0;
}

static bool is_bytes(enum parquet_kind kind)
{
        return kind == PARQUET_STRING || kind == PARQUET_BINARY;
}

enum status part_file_column(const struct part_file *f, uint32_t group, const char *column, enum parquet_kind kind,
                             struct parquet_column *ret, struct error *err)
{
        const struct parquet_schema *schema = parquet_file_schema(f->file);
        uint32_t node = parquet_schema_find(schema, column);
        struct parquet_column c;
        enum status st;

        if (!node || schema->nodes[node].column == PARQUET_NO_COLUMN)
                return error_set(err, ST_BAD_DATA, "'%s' has no column '%s'", f->path, column);
        st = parquet_read_column(f->file, group, node, &c, err);
        if (st)
                return st;
        if ((c.kind == kind || (is_bytes(c.kind) && is_bytes(kind))) &&
            (strchr(column, '.') ? c.offsets != NULL : !c.offsets) &&
            c.row_count == parquet_file_group_rows(f->file, group)) {
                *ret = c;
                return ST_OK;
        }
        parquet_column_deinit(&c);
        return error_set(err, ST_BAD_DATA, "column '%s' of '%s' has another type than it should", column, f->path);
}

bool part_stack_id(const struct parquet_column *c, uint64_t i, struct hash128 *ret)
{
        if (c->codes[i] == PARQUET_NULL_CODE || c->dict[c->codes[i]].size != sizeof ret->bytes)
                return false;
        memcpy(ret->bytes, c->dict[c->codes[i]].data, sizeof ret->bytes);
        return true;
}

/* ---- locations ----------------------------------------------------------------------- */

void location_rows_deinit(struct location_rows *r)
{
        free(r->items);
        *r = (struct location_rows){ 0 };
}

/* A column of texts; each entry of its dictionary is copied once. */
struct text_column {
        struct parquet_column column;
        const char **texts;
};

enum { FUNCTION, LINKAGE_NAME, FILE_NAME, BUILD_ID, KIND, MAPPING, STATE, QUALITY, TEXT_COUNT };

static const char *const text_names[TEXT_COUNT] = {
        [FUNCTION] = "frames.list.element.function",
        [LINKAGE_NAME] = "frames.list.element.linkage_name",
        [FILE_NAME] = "frames.list.element.file",
        [BUILD_ID] = "build_id",
        [KIND] = "address_kind",
        [MAPPING] = "mapping",
        [STATE] = "state",
        [QUALITY] = "quality",
};

struct location_columns {
        struct text_column texts[TEXT_COUNT];
        struct parquet_column id, address, kernel, line, inlined, generation;
        struct arena *arena;
        struct frame_chains chains; /* rows with equal frames share them */
};

static void location_columns_deinit(struct location_columns *c)
{
        struct parquet_column *flat[] = { &c->id, &c->address, &c->kernel, &c->line, &c->inlined, &c->generation };

        frame_chains_deinit(&c->chains);
        for (size_t i = 0; i < sizeof flat / sizeof *flat; i++)
                parquet_column_deinit(flat[i]);
        for (int i = 0; i < TEXT_COUNT; i++) {
                parquet_column_deinit(&c->texts[i].column);
                free(c->texts[i].texts);
        }
}

static bool same_offsets(const struct parquet_column *a, const struct parquet_column *b)
{
        return a->count == b->count && memcmp(a->offsets, b->offsets, (a->row_count + 1) * sizeof *a->offsets) == 0;
}

static enum status read_columns(const struct part_file *f, uint32_t group, struct location_columns *c,
                                struct error *err)
{
        const struct {
                const char *name;
                enum parquet_kind kind;
                struct parquet_column *to;
        } flat[] = {
                { "address", PARQUET_INT64, &c->address },
                { "is_kernel", PARQUET_BOOL, &c->kernel },
                { "generation", PARQUET_INT64, &c->generation },
                { "frames.list.element.line", PARQUET_INT64, &c->line },
                { "frames.list.element.inlined", PARQUET_BOOL, &c->inlined },
        };
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < sizeof flat / sizeof *flat; i++)
                st = part_file_column(f, group, flat[i].name, flat[i].kind, flat[i].to, err);
        for (int i = 0; !st && i < TEXT_COUNT; i++) {
                struct text_column *t = &c->texts[i];

                st = part_file_column(f, group, text_names[i], PARQUET_STRING, &t->column, err);
                if (!st && !(t->texts = calloc(t->column.dict_count + 1, sizeof *t->texts)))
                        st = error_no_memory(err);
        }
        if (!st && (!same_offsets(&c->line, &c->inlined) || !same_offsets(&c->line, &c->texts[FUNCTION].column) ||
                    !same_offsets(&c->line, &c->texts[LINKAGE_NAME].column) ||
                    !same_offsets(&c->line, &c->texts[FILE_NAME].column)))
                st = error_set(err, ST_BAD_DATA, "the frames of '%s' have columns of unequal length", f->path);
        return st;
}

/* "" for null; NULL without memory. */
static const char *text_at(struct location_columns *c, int which, uint64_t i)
{
        struct text_column *t = &c->texts[which];
        uint32_t code = t->column.codes[i];

        if (code == PARQUET_NULL_CODE)
                return "";
        if (!t->texts[code])
                t->texts[code] =
                        arena_strndup(c->arena, (const char *)t->column.dict[code].data, t->column.dict[code].size);
        return t->texts[code];
}

static enum symbol_state state_of(const char *name)
{
        enum symbol_state state;

        return symbol_state_parse(name, &state) ? state : SYMBOL_NO_DEBUGINFO;
}

static enum profile_address_kind kind_of(const char *name)
{
        if (strcmp(name, address_kind_name(ADDRESS_OBJECT)) == 0)
                return ADDRESS_OBJECT;
        return strcmp(name, address_kind_name(ADDRESS_FILE_OFFSET)) == 0 ? ADDRESS_FILE_OFFSET : ADDRESS_NONE;
}

static bool read_row(struct location_columns *c, uint64_t i, struct location_row *row)
{
        uint32_t first = c->line.offsets[i], count = c->line.offsets[i + 1] - first;
        struct scan_frame *frames = frame_chains_begin(&c->chains, count);
        const char *hex = text_at(c, BUILD_ID, i), *state = text_at(c, STATE, i), *quality = text_at(c, QUALITY, i);
        const char *kind = text_at(c, KIND, i);

        *row = (struct location_row){ 0 };
        row->shown = (struct scan_location){ .location_id = (uint64_t)c->id.ints[i],
                                             .address = (uint64_t)c->address.ints[i],
                                             .mapping = text_at(c, MAPPING, i),
                                             .is_kernel = c->kernel.ints[i],
                                             .frame_count = count };
        if (!hex || !state || !quality || !kind || !row->shown.mapping || !frames)
                return false;
        for (uint32_t k = 0; k < count; k++) {
                frames[k].function = text_at(c, FUNCTION, first + k);
                frames[k].linkage_name = text_at(c, LINKAGE_NAME, first + k);
                frames[k].file = text_at(c, FILE_NAME, first + k);
                frames[k].line = c->line.ints[first + k];
                frames[k].inlined = c->inlined.ints[first + k];
                if (!frames[k].function || !frames[k].linkage_name || !frames[k].file)
                        return false;
        }
        if (frame_chains_end(&c->chains, count, &row->shown.frames, NULL))
                return false;
        if (!build_id_from_hex(&row->shown.build_id, hex, strlen(hex)))
                row->shown.build_id = (struct build_id){ 0 };
        row->kind = kind_of(kind);
        row->state = state_of(state);
        row->shown.state = symbol_state_name(row->state);
        if (!symbol_quality_parse(quality, &row->shown.quality))
                row->shown.quality = QUALITY_NONE;
        row->generation = (uint64_t)c->generation.ints[i];
        return true;
}

static enum status make_room(struct location_rows *rows, struct error *err)
{
        return array_reserve(&rows->items, &rows->capacity, rows->count) ? ST_OK : error_no_memory(err);
}

static bool is_wanted(const struct key_map *wanted, int64_t id)
{
        struct hash128 key = key_of_u64((uint64_t)id);

        return !wanted || key_map_find(wanted, &key);
}

enum status part_read_locations(const struct part_file *f, uint32_t group, const struct key_map *wanted,
                                struct arena *a, struct location_rows *rows, struct error *err)
{
        _cleanup_(location_columns_deinit) struct location_columns c = { .arena = a, .chains.arena = a };
        enum status st = part_file_column(f, group, "location_id", PARQUET_INT64, &c.id, err);
        bool others = false;

        for (uint64_t i = 0; !st && i < c.id.row_count; i++) {
                if (!is_wanted(wanted, c.id.ints[i]))
                        continue;
                if (!others)
                        st = read_columns(f, group, &c, err);
                others = true;
                if (!st)
                        st = make_room(rows, err);
                if (!st && !read_row(&c, i, &rows->items[rows->count]))
                        st = arena_fits(a, MiB(1)) ? error_no_memory(err)
                                                   : error_set(err, ST_TOO_BIG,
                                                               "locations of '%s' need more than %zu bytes", f->path,
                                                               a->max);
                if (!st)
                        rows->count++;
        }
        return st;
}
