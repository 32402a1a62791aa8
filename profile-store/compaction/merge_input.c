/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are not moved. The columns of a row group stay as they were read; a row is a slot in them, and a row group
 * that is not sorted gets a permutation of slots (`order`).
 *
 * The key of a row borrows its bytes from the dictionaries of the columns. For samples its first part is a text of
 * type, unit and all labels, by name. number_sets() makes one such text for each sequence of rows with equal
 * dictionary codes, so that a comparison is a memcmp() however many label columns there are, and that the order of
 * inputs does not depend on which labels have columns.
 *
 * In the file: keys; label sets; loading and sorting of one row group; iteration. When the next row group is loaded,
 * the last key is copied first, to find out whether the two overlap.
 */
#include "profile-store/compaction/merge_input.h"

#include <assert.h>
#include <malloc.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"

/* ---- keys ------------------------------------------------------------------------------------ */

static int compare_key_bytes(const uint8_t *x, uint32_t x_size, const uint8_t *y, uint32_t y_size)
{
        uint32_t n = x_size < y_size ? x_size : y_size;
        int order = x == y || !n ? 0 : memcmp(x, y, n);

        return order ? order : (x_size > y_size) - (x_size < y_size);
}

int compare_merge_keys(const struct merge_key *x, const struct merge_key *y)
{
        int order = compare_key_bytes(x->a, x->a_size, y->a, y->a_size);

        if (!order)
                order = compare_key_bytes(x->b, x->b_size, y->b, y->b_size);
        if (!order)
                order = (x->c > y->c) - (x->c < y->c);
        return order ? order : (x->d > y->d) - (x->d < y->d);
}

static const struct parquet_bytes *get_leaf_bytes(const struct merge_input *in, size_t leaf, uint64_t slot)
{
        const struct parquet_column *c = &in->columns[leaf];

        return c->row_count && c->codes[slot] != PARQUET_NULL_CODE ? &c->dict[c->codes[slot]] : NULL;
}

static int64_t get_leaf_int(const struct merge_input *in, size_t leaf, uint64_t slot)
{
        return in->columns[leaf].row_count ? in->columns[leaf].ints[slot] : 0;
}

static void set_key_stack(const struct merge_input *in, uint64_t slot, const uint8_t **data, uint32_t *size)
{
        const struct parquet_bytes *stack = get_leaf_bytes(in, in->schema->stack, slot);

        *data = stack ? stack->data : NULL;
        *size = stack ? (uint32_t)stack->size : 0;
}

static struct merge_key get_slot_key(const struct merge_input *in, uint64_t slot)
{
        const struct merge_schema *s = in->schema;
        struct merge_key k = { 0 };
        const struct parquet_bytes *id;

        switch (s->table) {
        case TABLE_SAMPLES:
                k.a = in->set_texts[in->sets[slot]].data;
                k.a_size = (uint32_t)in->set_texts[in->sets[slot]].size;
                set_key_stack(in, slot, &k.b, &k.b_size);
                k.c = get_leaf_int(in, s->time, slot);
                break;
        case TABLE_STACKS:
                set_key_stack(in, slot, &k.a, &k.a_size);
                break;
        default: /* build-ids are lower-case hexadecimal, which sorts like their bytes */
                id = get_leaf_bytes(in, s->build_id, slot);
                k.a = id ? id->data : NULL;
                k.a_size = id ? (uint32_t)id->size : 0;
                k.c = (int64_t)((uint64_t)get_leaf_int(in, s->address, slot) ^ (UINT64_C(1) << 63)); /* unsigned */
                k.d = (uint64_t)get_leaf_int(in, s->id, slot);
        }
        return k;
}

/* ---- label sets of a row group ------------------------------------------------------------------ */

struct set_text {
        const char *name;
        size_t name_size;
        const struct parquet_bytes *value;
};

static int compare_set_texts(const void *a, const void *b)
{
        const struct set_text *x = a, *y = b;

        return compare_key_bytes((const uint8_t *)x->name, (uint32_t)x->name_size, (const uint8_t *)y->name,
                                 (uint32_t)y->name_size);
}

static bool has_same_code(const struct parquet_column *c, uint64_t i, uint64_t k)
{
        return !c->row_count || c->codes[i] == c->codes[k];
}

static bool has_equal_rest(const struct merge_input *in, uint64_t i, uint64_t k)
{
        const struct parquet_column *keys = &in->columns[in->schema->rest_key],
                                    *values = &in->columns[in->schema->rest_value];
        uint32_t n;

        if (!keys->row_count)
                return true;
        n = keys->offsets[i + 1] - keys->offsets[i];
        if (n != keys->offsets[k + 1] - keys->offsets[k])
                return false;
        return !n ||
               (memcmp(keys->codes + keys->offsets[i], keys->codes + keys->offsets[k], n * sizeof(uint32_t)) == 0 &&
                memcmp(values->codes + values->offsets[i], values->codes + values->offsets[k], n * sizeof(uint32_t)) ==
                        0);
}

static bool has_same_set(const struct merge_input *in, uint64_t i, uint64_t k)
{
        const struct merge_schema *s = in->schema;

        if (!has_same_code(&in->columns[s->type], i, k) || !has_same_code(&in->columns[s->unit], i, k))
                return false;
        for (size_t l = 0; l < s->label_count; l++) {
                if (!has_same_code(&in->columns[s->labels[l]], i, k))
                        return false;
        }
        return has_equal_rest(in, i, k);
}

/* A terminating NUL makes bytewise comparison sort like the string comparison of a flush. */
static void append_set_string(struct buf *to, const void *data, size_t n)
{
        if (n)
                buf_append(to, data, n);
        buf_append_u8(to, 0);
}

static void append_set_leaf(const struct merge_input *in, size_t leaf, uint64_t slot, struct buf *to)
{
        const struct parquet_bytes *text = get_leaf_bytes(in, leaf, slot);

        append_set_string(to, text ? text->data : NULL, text ? text->size : 0);
}

/* Type, unit, then name and value of each label, by name. */
static enum status make_set_text(const struct merge_input *in, uint64_t slot, struct buf *to, struct error *err)
{
        const struct merge_schema *s = in->schema;
        const struct parquet_column *keys = &in->columns[s->rest_key], *values = &in->columns[s->rest_value];
        uint32_t rest = keys->row_count ? keys->offsets[slot + 1] - keys->offsets[slot] : 0;
        _cleanup_free_ struct set_text *items = calloc(s->label_count + rest + (size_t)1, sizeof *items);
        size_t n = 0;

        if (!items)
                return error_no_memory(err);
        for (size_t i = 0; i < s->label_count; i++) {
                const struct parquet_bytes *value = get_leaf_bytes(in, s->labels[i], slot);

                if (value)
                        items[n++] = (struct set_text){ s->label_names[i], strlen(s->label_names[i]), value };
        }
        for (uint32_t i = 0; i < rest; i++) {
                uint32_t at = keys->offsets[slot] + i;

                if (keys->codes[at] == PARQUET_NULL_CODE)
                        continue;
                items[n++] = (struct set_text){
                        (const char *)keys->dict[keys->codes[at]].data, keys->dict[keys->codes[at]].size,
                        values->codes[at] == PARQUET_NULL_CODE ? NULL : &values->dict[values->codes[at]]
                };
        }
        if (rest)
                qsort(items, n, sizeof *items, compare_set_texts);
        buf_clear(to);
        append_set_leaf(in, s->type, slot, to);
        append_set_leaf(in, s->unit, slot, to);
        for (size_t i = 0; i < n; i++) {
                append_set_string(to, items[i].name, items[i].name_size);
                append_set_string(to, items[i].value ? items[i].value->data : NULL,
                                  items[i].value ? items[i].value->size : 0);
        }
        return buf_status(to, err, "the labels of a sample");
}

static enum status add_set_text(struct merge_input *in, const struct buf *text, struct error *err)
{
        char *copy = arena_strndup(&in->arena, (const char *)text->data, text->size);

        if (!copy)
                return arena_error(&in->arena, err, "the labels of a file");
        if (!array_reserve(&in->set_texts, &in->set_capacity, in->set_count))
                return error_no_memory(err);
        in->set_texts[in->set_count++] = (struct parquet_bytes){ (const uint8_t *)copy, text->size };
        return ST_OK;
}

/* Number label sets in order of appearance; a set that returns after another gets a new number. */
static enum status number_sets(struct merge_input *in, struct error *err)
{
        _cleanup_buf_ struct buf text;
        enum status st = ST_OK;

        buf_init(&text, LIMIT_PARQUET_CHUNK_BYTES);
        arena_deinit(&in->arena);
        arena_init_budget(&in->arena, LIMIT_PARQUET_CHUNK_BYTES, MEMORY_COMPACTION);
        in->set_count = 0;
        in->sets = calloc(in->row_count, sizeof *in->sets);
        if (!in->sets)
                return error_no_memory(err);
        for (uint64_t i = 0; !st && i < in->row_count; i++) {
                if (!i || !has_same_set(in, i - 1, i)) {
                        st = make_set_text(in, i, &text, err);
                        if (!st)
                                st = add_set_text(in, &text, err);
                }
                in->sets[i] = (uint32_t)in->set_count - 1;
        }
        return st;
}

/* ---- one row group ------------------------------------------------------------------------------- */

static void unload_group(struct merge_input *in)
{
        for (size_t i = 0; i < in->schema->leaf_count; i++)
                parquet_column_deinit(&in->columns[i]);
        free(steal_ptr(in->order));
        free(steal_ptr(in->sets));
        free(steal_ptr(in->dropped));
        in->row = in->row_count = 0;
        memory_shrink(&in->memory, 0);
}

static bool is_byte_leaf(enum parquet_kind kind)
{
        return kind == PARQUET_STRING || kind == PARQUET_BINARY;
}

/* The numbers have been copied; the pages are not needed any more. */
static void drop_column_pages(struct parquet_column *c)
{
        for (size_t i = 0; i < c->page_count; i++)
                free(c->pages[i]);
        c->page_count = 0;
}

static size_t measure_column(const struct parquet_column *c)
{
        size_t n =
                c->count * ((c->ints ? sizeof *c->ints : 0) + (c->codes ? sizeof *c->codes : 0) + (c->valid ? 1 : 0)) +
                c->dict_count * sizeof *c->dict +
                (c->offsets ? c->row_count * (sizeof *c->offsets + (c->list_valid ? 1 : 0)) : 0);

        for (size_t i = 0; i < c->page_count; i++)
                n += malloc_usable_size(c->pages[i]);
        return n;
}

static bool is_null_column(const struct parquet_column *c)
{
        return c->list_valid ? c->count == 0 && !memchr(c->list_valid, 1, c->row_count)
                             : !c->offsets && c->valid && !memchr(c->valid, 1, c->count);
}

/* Memory is reserved before reading, as for one value per row. */
static enum status load_leaf(struct merge_input *in, size_t leaf, uint64_t rows, struct error *err)
{
        const struct merge_leaf *l = &in->schema->leaves[leaf];
        struct parquet_column *c = &in->columns[leaf];
        size_t held = in->memory.bytes;
        enum status st;

        if (!part_file_has_column(in->file, l->path))
                return ST_OK;
        st = memory_reserve(&in->memory, rows * (is_byte_leaf(l->kind) ? 8 : 18), err);
        if (!st)
                st = part_file_read_column(in->file, in->group, l->path, l->kind, c, err);
        if (st)
                return st;
        if (!is_byte_leaf(c->kind))
                drop_column_pages(c);
        if (is_null_column(c))
                parquet_column_deinit(c);
        return memory_resize(&in->memory, held + measure_column(c), err);
}

/* The columns below one list have the same number of values in each row. */
static enum status check_repeated_leaves(const struct merge_input *in, struct error *err)
{
        for (size_t i = 0; i < in->schema->field_count; i++) {
                const struct merge_field *f = &in->schema->fields[i];
                const struct parquet_column *first = &in->columns[f->first_leaf];

                for (size_t k = 1; k < f->leaf_count; k++) {
                        const struct parquet_column *c = &in->columns[f->first_leaf + k];

                        if (c->row_count != first->row_count ||
                            (c->row_count &&
                             memcmp(c->offsets, first->offsets, (c->row_count + 1) * sizeof *c->offsets) != 0))
                                return error_set(err, ST_BAD_DATA, "the columns of '%s' in '%s' differ in length",
                                                 f->name, in->file->path);
                }
        }
        return ST_OK;
}

static int compare_slots(const void *a, const void *b, void *context)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
        struct merge_key s = get_slot_key(context, x), t = get_slot_key(context, y);
        int order = compare_merge_keys(&s, &t);

        return order ? order : (x > y) - (x < y);
}

static bool is_group_sorted(const struct merge_input *in)
{
        struct merge_key before = get_slot_key(in, 0);

        for (uint64_t i = 1; i < in->row_count; i++) {
                struct merge_key k = get_slot_key(in, i);

                if (compare_merge_keys(&before, &k) > 0)
                        return false;
                before = k;
        }
        return true;
}

static enum status sort_group(struct merge_input *in, struct error *err)
{
        uint32_t *order;

        if (is_group_sorted(in))
                return ST_OK;
        order = calloc(in->row_count, sizeof *order);
        if (!order)
                return error_no_memory(err);
        for (uint32_t i = 0; i < in->row_count; i++)
                order[i] = i;
        qsort_r(order, in->row_count, sizeof *order, compare_slots, in);
        in->order = order;
        return ST_OK;
}

/* Load in->group, which has rows. */
static enum status load_group(struct merge_input *in, struct error *err)
{
        uint64_t rows = parquet_file_group_rows(in->file->file, in->group);
        enum status st = ST_OK;

        assert(rows > 0);
        if (rows > LIMIT_PARQUET_CHUNK_VALUES)
                return error_set(err, ST_TOO_BIG, "a row group of '%s' has %ju rows", in->file->path, (uintmax_t)rows);
        for (size_t i = 0; !st && i < in->schema->leaf_count; i++)
                st = load_leaf(in, i, rows, err);
        if (!st)
                st = check_repeated_leaves(in, err);
        if (!st) /* order, sets and dropped */
                st = memory_reserve(&in->memory, rows * (2 * sizeof(uint32_t) + 1), err);
        in->row_count = rows;
        if (!st && in->schema->table == TABLE_SAMPLES)
                st = number_sets(in, err);
        if (!st)
                st = sort_group(in, err);
        if (!st)
                in->key = get_slot_key(in, merge_input_slot(in, 0));
        return st;
}

/* Skips empty row groups. */
static enum status load_next_group(struct merge_input *in, struct error *err)
{
        while (in->group < in->group_end && parquet_file_group_rows(in->file->file, in->group) == 0)
                in->group++;
        return in->group < in->group_end ? load_group(in, err) : ST_NOT_FOUND;
}

enum status merge_input_begin(struct merge_input *in, const struct merge_schema *schema, const struct part_file *file,
                              uint32_t group, uint32_t group_end, struct error *err)
{
        *in = (struct merge_input){
                .schema = schema, .file = file, .group = group, .group_end = group_end, .memory.use = MEMORY_COMPACTION
        };
        arena_init_budget(&in->arena, LIMIT_PARQUET_CHUNK_BYTES, MEMORY_COMPACTION);
        in->columns = calloc(schema->leaf_count, sizeof *in->columns);
        return in->columns ? load_next_group(in, err) : error_no_memory(err);
}

void merge_input_deinit(struct merge_input *in)
{
        if (!in->schema)
                return;
        if (in->columns)
                unload_group(in);
        free(in->columns);
        free(in->set_texts);
        arena_deinit(&in->arena);
        memory_release(&in->memory);
        *in = (struct merge_input){ 0 };
}

bool merge_input_is_at_group_end(const struct merge_input *in)
{
        return in->row + 1 == in->row_count;
}

/* Copy a key that must outlive its row group. */
static enum status copy_key(const struct merge_key *key, struct merge_key *ret, struct buf *bytes, struct error *err)
{
        buf_append(bytes, key->a, key->a_size);
        buf_append(bytes, key->b, key->b_size);
        *ret = *key;
        ret->a = bytes->data;
        ret->b = bytes->data + key->a_size;
        return buf_status(bytes, err, "the key of a row");
}

enum status merge_input_advance(struct merge_input *in, bool *is_unsorted_ret, struct error *err)
{
        _cleanup_buf_ struct buf bytes;
        struct merge_key last;
        enum status st;

        buf_init(&bytes, LIMIT_PARQUET_CHUNK_BYTES);
        if (++in->row < in->row_count) {
                in->key = get_slot_key(in, merge_input_slot(in, in->row));
                return ST_OK;
        }
        if (in->group + 1 == in->group_end) { /* usually the last group */
                unload_group(in);
                in->group++;
                return ST_NOT_FOUND;
        }
        st = copy_key(&in->key, &last, &bytes, err);
        if (st)
                return st;
        unload_group(in);
        in->group++;
        st = load_next_group(in, err);
        if (!st && compare_merge_keys(&last, &in->key) > 0) {
                *is_unsorted_ret = true;
                return error_set(err, ST_UNSUPPORTED, "the row groups of '%s' are not in order", in->file->path);
        }
        return st;
}
