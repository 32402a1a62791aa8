/* SPDX-License-Identifier: Apache-2.0 */
/* Columns, then reading, which checks every value since other programs may have written the file, then writing. */
#include "debuginfo-store/object_rows.h"

#include <string.h>

#include "common/limits.h"
#include "common/text.h"
#include "parquet/parquet_reader.h"
#include "parquet/parquet_writer.h"
#include "profile-store/delta/delta_log.h"

#define FILE_BYTES MiB(256)

/* ---- columns ---- */

enum {
        BUILD_ID,
        KIND,
        GENERATION,
        FORMAT,
        QUALITY,
        SOURCE,
        SIZE,
        STORED_SIZE,
        SHA256,
        STORED_AT,
        USED_AT,
        PINNED,
        FILE_NAME,
        TAG,
        UPLOADER,
        LINKS,
        SECTIONS,
        COLUMN_COUNT
};

const struct parquet_field object_columns[OBJECT_COLUMN_COUNT] = {
        [BUILD_ID] = { .name = "build_id", .kind = PARQUET_STRING },
        [KIND] = { .name = "kind", .kind = PARQUET_STRING },
        [GENERATION] = { .name = "generation", .kind = PARQUET_STRING },
        [FORMAT] = { .name = "format", .kind = PARQUET_STRING },
        [QUALITY] = { .name = "quality", .kind = PARQUET_STRING },
        [SOURCE] = { .name = "source", .kind = PARQUET_STRING, .optional = true },
        [SIZE] = { .name = "size", .kind = PARQUET_INT64 },
        [STORED_SIZE] = { .name = "stored_size", .kind = PARQUET_INT64 },
        [SHA256] = { .name = "sha256", .kind = PARQUET_STRING, .optional = true },
        [STORED_AT] = { .name = "stored_at", .kind = PARQUET_TIMESTAMP },
        [USED_AT] = { .name = "used_at", .kind = PARQUET_TIMESTAMP },
        [PINNED] = { .name = "pinned", .kind = PARQUET_BOOL },
        [FILE_NAME] = { .name = "name", .kind = PARQUET_STRING, .optional = true },
        [TAG] = { .name = "tag", .kind = PARQUET_STRING, .optional = true },
        [UPLOADER] = { .name = "uploader", .kind = PARQUET_STRING, .optional = true },
        [LINKS] = { .name = "links", .kind = PARQUET_BINARY, .optional = true },
        [SECTIONS] = { .name = "sections", .kind = PARQUET_BINARY, .optional = true },
};

static const char *const stats_names[] = { "build_id" };
static const struct delta_stats_columns stats_columns = { .names = stats_names, .count = 1 };

static const char *get_row_kind_name(unsigned kind)
{
        return kind == OBJECT_ROW_SYMBOL_TABLE ? OBJECT_ROW_SYMBOL_TABLE_NAME
                                               : object_kind_name((enum object_kind)kind);
}

_Static_assert(COLUMN_COUNT == OBJECT_COLUMN_COUNT, "the header");

/* ---- reading ---- */

/* A text or bytes of a row; NULL where null. */
static const struct parquet_bytes *get_row_bytes(const struct parquet_column *c, uint64_t row)
{
        return c->codes[row] == PARQUET_NULL_CODE ? NULL : &c->dict[c->codes[row]];
}

static bool copy_row_text(const struct parquet_column *c, uint64_t row, char *ret, size_t size)
{
        const struct parquet_bytes *b = get_row_bytes(c, row);

        *ret = '\0';
        if (!b)
                return true;
        if (b->size >= size || memchr(b->data, 0, b->size))
                return false;
        memcpy(ret, b->data, b->size);
        ret[b->size] = '\0';
        return true;
}

static bool read_row_kind(const struct parquet_column *c, uint64_t row, struct stored_object *o)
{
        char text[32];

        if (!copy_row_text(c, row, text, sizeof text))
                return false;
        if (strcmp(text, OBJECT_ROW_SYMBOL_TABLE_NAME) == 0) {
                o->kind = OBJECT_ROW_SYMBOL_TABLE;
                return true;
        }
        return object_kind_parse(text, &o->kind);
}

/* The generation, which has the first bytes of the SHA-256; a symbol table has no others. */
static bool read_row_content(const struct parquet_column *all, uint64_t row, struct stored_object *o)
{
        uint8_t whole[32];
        char text[72];

        if (!copy_row_text(&all[GENERATION], row, text, sizeof text) || !object_parse_generation(text, o))
                return false;
        if (o->kind == OBJECT_ROW_SYMBOL_TABLE)
                return true;
        if (!copy_row_text(&all[SHA256], row, text, sizeof text) || strlen(text) != 64 ||
            !hex_decode(text, sizeof whole, whole) || memcmp(whole, o->sha256, OBJECT_GENERATION_BYTES) != 0)
                return false;
        memcpy(o->sha256, whole, sizeof whole);
        return true;
}

static bool read_object_row(const struct parquet_column *all, uint64_t row, struct object_row *ret)
{
        struct stored_object *o = &ret->object;
        char id[BUILD_ID_HEX_MAX], quality[32], source[32];
        const struct parquet_bytes *links = get_row_bytes(&all[LINKS], row);
        const struct parquet_bytes *sections = get_row_bytes(&all[SECTIONS], row);

        *ret = (struct object_row){ .links = links ? links->data : NULL,
                                    .links_size = links ? links->size : 0,
                                    .sections = sections ? sections->data : NULL,
                                    .sections_size = sections ? sections->size : 0 };
        if (!copy_row_text(&all[BUILD_ID], row, id, sizeof id) || !build_id_from_hex(&o->build_id, id, strlen(id)) ||
            !read_row_kind(&all[KIND], row, o) || !copy_row_text(&all[QUALITY], row, quality, sizeof quality) ||
            !symbol_quality_parse(quality, &o->quality) || !copy_row_text(&all[SOURCE], row, source, sizeof source) ||
            !read_row_content(all, row, o) || !copy_row_text(&all[FILE_NAME], row, o->name, sizeof o->name) ||
            !copy_row_text(&all[TAG], row, o->tag, sizeof o->tag) ||
            !copy_row_text(&all[UPLOADER], row, o->token, sizeof o->token) || all[SIZE].ints[row] < 0 ||
            all[STORED_SIZE].ints[row] < 0)
                return false;
        o->source = strcmp(source, object_source_name(SOURCE_UPSTREAM)) == 0 ? SOURCE_UPSTREAM : SOURCE_UPLOAD;
        o->size_bytes = (uint64_t)all[SIZE].ints[row];
        o->stored_bytes = (uint64_t)all[STORED_SIZE].ints[row];
        o->stored_unix_s = all[STORED_AT].ints[row] / 1000000;
        o->used_unix_s = all[USED_AT].ints[row] / 1000000;
        o->is_pinned = all[PINNED].ints[row] != 0;
        return true;
}

static bool has_column_form(const struct parquet_column *c, const struct parquet_field *f, uint64_t rows)
{
        bool is_text = f->kind == PARQUET_STRING || f->kind == PARQUET_BINARY;

        return c->row_count == rows && c->count == rows && !c->offsets &&
               (is_text ? c->codes != NULL : c->ints != NULL);
}

static enum status read_object_columns(struct parquet_file *f, uint32_t group, const char *path,
                                       struct parquet_column *all, struct error *err)
{
        const struct parquet_schema *schema = parquet_file_schema(f);

        for (size_t i = 0; i < COLUMN_COUNT; i++) {
                uint32_t node = parquet_schema_find(schema, object_columns[i].name);
                enum status st;

                if (!node || schema->nodes[node].column == PARQUET_NO_COLUMN)
                        return error_set(err, ST_BAD_DATA, "'%s' has no column '%s'", path, object_columns[i].name);
                st = parquet_read_column(f, group, node, &all[i], err);
                if (st)
                        return st;
                if (!has_column_form(&all[i], &object_columns[i], parquet_file_group_rows(f, group)))
                        return error_set(err, ST_BAD_DATA, "column '%s' of '%s' has the wrong type",
                                         object_columns[i].name, path);
        }
        return ST_OK;
}

static enum status visit_object_group(struct parquet_file *f, uint32_t group, const char *path, object_row_visit *visit,
                                      void *context, struct error *err)
{
        struct parquet_column all[COLUMN_COUNT] = { 0 };
        struct object_row row;
        enum status st = read_object_columns(f, group, path, all, err);

        for (uint64_t i = 0; !st && i < parquet_file_group_rows(f, group); i++)
                st = read_object_row(all, i, &row)
                             ? visit(context, &row, err)
                             : error_set(err, ST_BAD_DATA, "row %llu of '%s' is damaged", (unsigned long long)i, path);
        for (size_t i = 0; i < COLUMN_COUNT; i++)
                parquet_column_deinit(&all[i]);
        return st;
}

static enum status require_object_ranges(void *context, const struct file_range *ranges, size_t count,
                                         struct error *err)
{
        return storage_require(context, ranges, count, err);
}

static enum status reload_object_ranges(void *context, const struct file_range *ranges, size_t count, struct error *err)
{
        return storage_reload(context, ranges, count, err);
}

enum status object_rows_visit(struct storage *s, const char *key, object_row_visit *visit, void *context,
                              struct error *err)
{
        _cleanup_storage_map_ struct storage_map map = { 0 };
        struct parquet_source source = { .require = require_object_ranges, .context = &map };
        struct parquet_file *f;
        enum status st = storage_map(s, key, FILE_BYTES, &map, err);

        if (st)
                return st;
        source.data = map.file.data;
        source.size = map.file.size;
        source.reload = storage_can_reload(&map) ? reload_object_ranges : NULL;
        st = parquet_file_open_source(&source, key, &f, err);
        if (st)
                return st;
        for (uint32_t g = 0; !st && g < parquet_file_row_groups(f); g++)
                st = visit_object_group(f, g, key, visit, context, err);
        parquet_file_close(f);
        return st;
}

/* ---- writing ---- */

static void put_object_text(struct parquet_writer *w, const uint32_t *nodes, size_t column, const char *text)
{
        if (object_columns[column].optional && !*text)
                parquet_put_null(w, nodes[column]);
        else
                parquet_put_str(w, nodes[column], text);
}

static void put_object_blob(struct parquet_writer *w, uint32_t node, const void *data, size_t n)
{
        if (data && n)
                parquet_put_bytes(w, node, data, n);
        else
                parquet_put_null(w, node);
}

static void put_object_row(struct parquet_writer *w, const uint32_t *nodes, const struct object_row *row)
{
        const struct stored_object *o = &row->object;
        bool is_table = o->kind == OBJECT_ROW_SYMBOL_TABLE;
        char id[BUILD_ID_HEX_MAX], hash[2 * 32 + 1], generation[OBJECT_GENERATION_TEXT];

        put_object_text(w, nodes, BUILD_ID, build_id_hex(&o->build_id, id));
        put_object_text(w, nodes, KIND, get_row_kind_name(o->kind));
        put_object_text(w, nodes, GENERATION, object_format_generation(o, generation));
        put_object_text(w, nodes, FORMAT, is_table ? "v1.zst" : "zst");
        put_object_text(w, nodes, QUALITY, symbol_quality_name(o->quality));
        put_object_text(w, nodes, SOURCE, is_table ? "" : object_source_name(o->source));
        parquet_put_int(w, nodes[SIZE], (int64_t)o->size_bytes);
        parquet_put_int(w, nodes[STORED_SIZE], (int64_t)o->stored_bytes);
        put_object_text(w, nodes, SHA256, is_table ? "" : hex_encode(o->sha256, 32, hash));
        parquet_put_int(w, nodes[STORED_AT], o->stored_unix_s * 1000000);
        parquet_put_int(w, nodes[USED_AT], o->used_unix_s * 1000000);
        parquet_put_int(w, nodes[PINNED], o->is_pinned);
        put_object_text(w, nodes, FILE_NAME, o->name);
        put_object_text(w, nodes, TAG, o->tag);
        put_object_text(w, nodes, UPLOADER, o->token);
        put_object_blob(w, nodes[LINKS], row->links, row->links_size);
        put_object_blob(w, nodes[SECTIONS], row->sections, row->sections_size);
}

static enum status write_row_columns(const struct storage_upload *u, const struct object_row *rows, size_t count,
                                     struct buf *stats, uint64_t *bytes_ret, struct error *err)
{
        static const struct parquet_sort sort = { .path = "build_id" };
        struct parquet_writer_options options = PARQUET_WRITER_OPTIONS;
        struct parquet_writer *w;
        uint32_t nodes[COLUMN_COUNT];
        enum status st;

        options.sort = &sort;
        options.sort_count = 1;
        st = parquet_writer_create(u->fd, u->name, object_columns, COLUMN_COUNT, &options, &w, err);
        if (st)
                return st;
        for (size_t i = 0; i < COLUMN_COUNT; i++)
                nodes[i] = parquet_writer_node(w, object_columns[i].name);
        for (size_t i = 0; !st && i < count; i++) {
                put_object_row(w, nodes, &rows[i]);
                st = parquet_writer_end_rows(w, 1, err);
        }
        if (!st)
                st = parquet_writer_finish(w, err);
        if (!st)
                st = delta_stats_append(w, &stats_columns, stats);
        if (!st)
                st = buf_append_u8(stats, 0);
        *bytes_ret = parquet_writer_bytes(w);
        parquet_writer_destroy(w);
        return st;
}

enum status object_rows_write(struct storage *s, const char *key, const struct object_row *rows, size_t count,
                              struct buf *stats, uint64_t *bytes_ret, struct error *err)
{
        struct storage_upload u;
        enum status st = storage_begin(s, key, &u, err);

        if (st)
                return st;
        st = write_row_columns(&u, rows, count, stats, bytes_ret, err);
        if (!st)
                return storage_publish(&u, STORAGE_REPLACE, err);
        storage_discard(&u);
        return st;
}
