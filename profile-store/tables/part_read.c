/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first half adds checks to parquet/: column exists, kind is the expected one, one slot per row or offsets below
 * a list.
 *
 * The second half reads rows of locations. location_id is read first; the other columns only when a row is selected,
 * so that a row group without one costs one column. Then rows are assembled from the columns: an entry of a
 * dictionary is copied to the arena on its first use (struct text_column), equal lists of frames are shared
 * (frame_chains.h), and the last build-id is kept, since neighbours often have the same. Columns below `frames` must
 * have equal offsets, which read_location_columns() checks once.
 *
 * In the file: files and columns; columns of locations; one row; lists of rows; selection by id, from a file or from
 * rows in memory.
 */
#include "profile-store/tables/part_read.h"

#include <errno.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "profile-store/rows/frame_chains.h"
#include "symbol-index/symbol_state.h"

/* context: a struct storage_map */
static enum status require_map_ranges(void *context, const struct file_range *ranges, size_t count, struct error *err)
{
        return storage_require(context, ranges, count, err);
}

static enum status reload_map_ranges(void *context, const struct file_range *ranges, size_t count, struct error *err)
{
        return storage_reload(context, ranges, count, err);
}

static enum status open_part_file(const struct table_part *part, bool is_cached_only, struct part_file *ret,
                                  struct error *err)
{
        struct parquet_source source = { .require = require_map_ranges, .context = &ret->map };
        enum status st;

        *ret = (struct part_file){ .path = part->path };
        st = storage_map(part->storage, part->key, LIMIT_PARQUET_FILE_BYTES, &ret->map, err);
        if (st == ST_NOT_FOUND)
                return error_os(err, ENOENT, "cannot open '%s'", part->path);
        if (st)
                return st;
        ret->map.is_cached_only = is_cached_only;
        source.data = ret->map.file.data;
        source.size = ret->map.file.size;
        source.reload = storage_can_reload(&ret->map) ? reload_map_ranges : NULL;
        return parquet_file_open_source(&source, part->path, &ret->file, err);
}

enum status part_file_open(const struct table_part *part, struct part_file *ret, struct error *err)
{
        return open_part_file(part, false, ret, err);
}

enum status part_file_open_cached(const struct table_part *part, struct part_file *ret, struct error *err)
{
        return open_part_file(part, true, ret, err);
}

void part_file_close(struct part_file *f)
{
        parquet_file_close(f->file);
        storage_unmap(&f->map);
}

bool part_is_unreadable(enum status st, const struct error *err)
{
        return st == ST_BAD_DATA || st == ST_UNSUPPORTED || st == ST_TOO_BIG ||
               (st == ST_OS && err->os_errno == ENOENT);
}

uint32_t part_file_count_groups(const struct part_file *f)
{
        return parquet_file_row_groups(f->file);
}

bool part_file_has_column(const struct part_file *f, const char *column)
{
        return parquet_schema_find(parquet_file_schema(f->file), column) != 0;
}

bool part_file_find_chunk(const struct part_file *f, uint32_t group, const char *column, struct file_range *ret)
{
        const struct parquet_schema *schema = parquet_file_schema(f->file);
        uint32_t node = parquet_schema_find(schema, column);

        if (!node || schema->nodes[node].column == PARQUET_NO_COLUMN)
                return false;
        *ret = parquet_file_get_chunk_range(f->file, group, node);
        return true;
}

static bool is_bytes_kind(enum parquet_kind kind)
{
        return kind == PARQUET_STRING || kind == PARQUET_BINARY;
}

enum status part_file_read_column(const struct part_file *f, uint32_t group, const char *column, enum parquet_kind kind,
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
        if ((c.kind == kind || (is_bytes_kind(c.kind) && is_bytes_kind(kind))) &&
            (strchr(column, '.') ? c.offsets != NULL : !c.offsets) &&
            c.row_count == parquet_file_group_rows(f->file, group)) {
                *ret = c;
                return ST_OK;
        }
        parquet_column_deinit(&c);
        return error_set(err, ST_BAD_DATA, "column '%s' of '%s' has the wrong type", column, f->path);
}

enum status part_file_open_column(const struct part_file *f, uint32_t group, const char *column, enum parquet_kind kind,
                                  struct parquet_cursor *c, struct error *err)
{
        const struct parquet_schema *schema = parquet_file_schema(f->file);
        uint32_t node = parquet_schema_find(schema, column);

        if (!node || schema->nodes[node].column == PARQUET_NO_COLUMN)
                return error_set(err, ST_BAD_DATA, "'%s' has no column '%s'", f->path, column);
        if ((schema->nodes[node].kind != kind && !(is_bytes_kind(schema->nodes[node].kind) && is_bytes_kind(kind))) ||
            schema->nodes[node].max_rep)
                return error_set(err, ST_BAD_DATA, "column '%s' of '%s' has the wrong type", column, f->path);
        return parquet_cursor_open(c, f->file, group, node, err);
}

bool part_read_stack_id(const struct parquet_column *c, uint64_t i, struct hash128 *ret)
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
        if (r->memory.use != MEMORY_BASE)
                memory_release(&r->memory);
        *r = (struct location_rows){ .memory.use = r->memory.use };
}

/* A string column; each entry of its dictionary is copied once. */
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

const char *const location_columns[LOCATION_COLUMNS] = {
        "location_id",
        "address",
        "is_kernel",
        "generation",
        "frames.list.element.line",
        "frames.list.element.inlined",
        "frames.list.element.function",
        "frames.list.element.linkage_name",
        "frames.list.element.file",
        "build_id",
        "address_kind",
        "mapping",
        "state",
        "quality",
        START_LINES_COLUMN ".list.element",
};

/* All at once: from an object store they would take a round trip each. */
static enum status require_location_columns(const struct part_file *f, uint32_t group, struct error *err)
{
        struct storage_map map = f->map;
        struct file_range ranges[LOCATION_COLUMNS];
        size_t count = 0;

        for (size_t i = 0; i < LOCATION_COLUMNS; i++)
                count += part_file_find_chunk(f, group, location_columns[i], &ranges[count]);
        return storage_require(&map, ranges, count, err);
}

struct location_columns {
        struct text_column texts[TEXT_COUNT];
        struct parquet_column id, address, kernel, line, inlined, generation, start_lines;
        bool has_start_lines;
        struct arena *arena;
        struct frame_chains chains; /* shared by rows with equal frames */
        const char *last_hex;       /* text of the last build-id parsed; neighbours often have the same */
        const struct build_id *last_build_id;
};

static void location_columns_deinit(struct location_columns *c)
{
        struct parquet_column *flat[] = { &c->id,      &c->address,    &c->kernel,     &c->line,
                                          &c->inlined, &c->generation, &c->start_lines };

        frame_chains_deinit(&c->chains);
        for (size_t i = 0; i < sizeof flat / sizeof *flat; i++)
                parquet_column_deinit(flat[i]);
        for (int i = 0; i < TEXT_COUNT; i++) {
                parquet_column_deinit(&c->texts[i].column);
                free(c->texts[i].texts);
        }
}

static bool has_same_offsets(const struct parquet_column *a, const struct parquet_column *b)
{
        return a->count == b->count && memcmp(a->offsets, b->offsets, (a->row_count + 1) * sizeof *a->offsets) == 0;
}

static enum status read_location_columns(const struct part_file *f, uint32_t group, struct location_columns *c,
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
        enum status st = require_location_columns(f, group, err);

        for (size_t i = 0; !st && i < sizeof flat / sizeof *flat; i++)
                st = part_file_read_column(f, group, flat[i].name, flat[i].kind, flat[i].to, err);
        for (int i = 0; !st && i < TEXT_COUNT; i++) {
                struct text_column *t = &c->texts[i];

                st = part_file_read_column(f, group, text_names[i], PARQUET_STRING, &t->column, err);
                if (!st && !(t->texts = calloc(t->column.dict_count + 1, sizeof *t->texts)))
                        st = error_no_memory(err);
        }
        c->has_start_lines = part_file_has_column(f, START_LINES_COLUMN);
        if (!st && c->has_start_lines)
                st = part_file_read_column(f, group, START_LINES_COLUMN ".list.element", PARQUET_INT64, &c->start_lines,
                                           err);
        if (!st &&
            (!has_same_offsets(&c->line, &c->inlined) || !has_same_offsets(&c->line, &c->texts[FUNCTION].column) ||
             !has_same_offsets(&c->line, &c->texts[LINKAGE_NAME].column) ||
             !has_same_offsets(&c->line, &c->texts[FILE_NAME].column)))
                st = error_set(err, ST_BAD_DATA, "the frames of '%s' have columns of unequal length", f->path);
        return st;
}

/* "" for null; NULL when memory runs out. */
static const char *get_column_text(struct location_columns *c, int which, uint64_t i)
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

static enum symbol_state parse_row_state(const char *name)
{
        enum symbol_state state;

        return symbol_state_parse(name, &state) ? state : SYMBOL_NO_DEBUGINFO;
}

static enum profile_address_kind parse_address_kind(const char *name)
{
        if (strcmp(name, address_kind_name(ADDRESS_OBJECT)) == 0)
                return ADDRESS_OBJECT;
        return strcmp(name, address_kind_name(ADDRESS_FILE_OFFSET)) == 0 ? ADDRESS_FILE_OFFSET : ADDRESS_NONE;
}

/* NULL when memory runs out. */
static const struct build_id *parse_build_id(struct location_columns *c, const char *hex)
{
        struct build_id id, *copy;

        if (hex == c->last_hex)
                return c->last_build_id;
        c->last_hex = NULL;
        c->last_build_id = &unknown_build_id;
        if (build_id_from_hex(&id, hex, strlen(hex))) {
                copy = arena_alloc(c->arena, sizeof *copy);
                if (!copy)
                        return NULL;
                *copy = id;
                c->last_build_id = copy;
        }
        c->last_hex = hex;
        return c->last_build_id;
}

static bool read_location_row(struct location_columns *c, uint64_t i, struct location_row *row)
{
        uint32_t first = c->line.offsets[i], count = c->line.offsets[i + 1] - first;
        struct scan_frame *frames = frame_chain_begin(&c->chains, count);
        const char *hex = get_column_text(c, BUILD_ID, i), *state = get_column_text(c, STATE, i),
                   *quality = get_column_text(c, QUALITY, i);
        const char *kind = get_column_text(c, KIND, i);

        *row = (struct location_row){ 0 };
        row->shown = (struct scan_location){ .location_id = (uint64_t)c->id.ints[i],
                                             .address = (uint64_t)c->address.ints[i],
                                             .mapping = get_column_text(c, MAPPING, i),
                                             .is_kernel = c->kernel.ints[i],
                                             .frame_count = count };
        if (!hex || !state || !quality || !kind || !row->shown.mapping || !frames)
                return false;
        for (uint32_t k = 0; k < count; k++) {
                frames[k].function = get_column_text(c, FUNCTION, first + k);
                frames[k].linkage_name = get_column_text(c, LINKAGE_NAME, first + k);
                frames[k].file = get_column_text(c, FILE_NAME, first + k);
                frames[k].line = c->line.ints[first + k];
                frames[k].inlined = c->inlined.ints[first + k];
                if (!frames[k].function || !frames[k].linkage_name || !frames[k].file)
                        return false;
        }
        if (c->has_start_lines && c->start_lines.offsets[i + 1] - c->start_lines.offsets[i] == count)
                for (uint32_t k = 0; k < count; k++)
                        frames[k].start_line = c->start_lines.ints[c->start_lines.offsets[i] + k];
        if (frame_chain_end(&c->chains, count, &row->shown.frames, NULL))
                return false;
        row->shown.build_id = parse_build_id(c, hex);
        if (!row->shown.build_id)
                return false;
        row->kind = parse_address_kind(kind);
        row->shown.is_file_offset = row->kind == ADDRESS_FILE_OFFSET;
        row->state = parse_row_state(state);
        row->shown.state = symbol_state_name(row->state);
        if (!symbol_quality_parse(quality, &row->shown.quality))
                row->shown.quality = QUALITY_NONE;
        row->generation = (uint64_t)c->generation.ints[i];
        return true;
}

static enum status reserve_location_row(struct location_rows *rows, struct error *err)
{
        if (rows->count == rows->capacity && rows->memory.use != MEMORY_BASE) {
                enum status st = memory_reserve(&rows->memory,
                                                (rows->capacity ? rows->capacity / 2 : 64) * sizeof *rows->items, err);

                if (st)
                        return st;
        }
        return array_reserve(&rows->items, &rows->capacity, rows->count) ? ST_OK : error_no_memory(err);
}

enum status location_rows_append(struct location_rows *rows, const struct location_row *row, struct error *err)
{
        enum status st = reserve_location_row(rows, err);

        if (!st)
                rows->items[rows->count++] = *row;
        return st;
}

/* The values of some ids in the map of selected ones, NULL for others. Without a map all are selected. */
static void find_selected_ids(const struct key_map *selected, const uint64_t *ids, size_t count,
                              const uint64_t *ret[KEY_MAP_BATCH])
{
        static const uint64_t no_number;
        uint64_t *found[KEY_MAP_BATCH];

        if (selected)
                key_map_find_ids(selected, ids, count, found);
        for (size_t i = 0; i < count; i++)
                ret[i] = selected ? found[i] : &no_number;
}

static enum status append_location(struct location_columns *c, size_t row, uint64_t number, struct location_rows *rows,
                                   struct error *err)
{
        enum status st = reserve_location_row(rows, err);

        if (st)
                return st;
        if (!read_location_row(c, row, &rows->items[rows->count]))
                return report_full_arena(c->arena, MiB(1), "the locations of a file", err);
        rows->items[rows->count++].number = number;
        return ST_OK;
}

enum status part_read_locations(const struct part_file *f, uint32_t group, const struct key_map *selected,
                                struct arena *a, struct location_rows *rows, struct error *err)
{
        _cleanup_(location_columns_deinit) struct location_columns c = { .arena = a, .chains.arena = a };
        enum status st = part_file_read_column(f, group, "location_id", PARQUET_INT64, &c.id, err);
        bool others = false;

        for (size_t at = 0, n; !st && at < c.id.row_count; at += n) {
                const uint64_t *numbers[KEY_MAP_BATCH];

                n = key_map_batch_size(c.id.row_count - at);
                find_selected_ids(selected, (const uint64_t *)c.id.ints + at, n, numbers);
                for (size_t i = 0; !st && i < n; i++) {
                        if (!numbers[i])
                                continue;
                        if (!others)
                                st = read_location_columns(f, group, &c, err);
                        others = true;
                        if (!st)
                                st = append_location(&c, at + i, *numbers[i], rows, err);
                }
        }
        return st;
}

enum status location_rows_select(const struct location_rows *from, const struct key_map *selected,
                                 struct location_rows *rows, struct error *err)
{
        enum status st = ST_OK;

        for (size_t at = 0, n; !st && at < from->count; at += n) {
                const uint64_t *numbers[KEY_MAP_BATCH];
                uint64_t ids[KEY_MAP_BATCH];

                n = key_map_batch_size(from->count - at);
                for (size_t i = 0; i < n; i++)
                        ids[i] = from->items[at + i].shown.location_id;
                find_selected_ids(selected, ids, n, numbers);
                for (size_t i = 0; !st && i < n; i++) {
                        if (!numbers[i])
                                continue;
                        st = location_rows_append(rows, &from->items[at + i], err);
                        if (!st)
                                rows->items[rows->count - 1].number = *numbers[i];
                }
        }
        return st;
}
