/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap has the inputs (merge_input.h), least key first. The row at its top is not copied at once: it extends a run,
 * rows of one input in sequence. flush_runs() copies the pending runs column by column into the output; it has to be
 * called before an input unloads the row group of its runs (advance_input()), and begins a new file where one is
 * full.
 *
 * merge_all_rows() writes each row (samples); merge_distinct_rows() takes all inputs with the least id from the heap
 * and writes the best of their rows (stacks, locations).
 *
 * Overlap of row groups is found only when the second one is loaded. The merge then starts again with the row groups
 * of that part as separate inputs (`splits`, merge_parts()). This is rare; all other parts need one row group in
 * memory.
 *
 * In the file: open; output and copying; the heap; dropped rows; the two loops; the whole merge; its result.
 * One thread and no lock: nothing is committed here.
 */
#include "profile-store/compaction/merge.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "profile-store/compaction/merge_input.h"

#define OUTPUT_GROUP_BYTES MiB(16)
#define FLUSHED_ROWS 8192 /* rows copied at once; row groups exceed the requested size by less than this */

/* Rows [row, row + count) of an input, in its order, to be appended to the output next. */
struct merge_run {
        struct merge_input *input;
        uint64_t row;
        uint64_t count;
};

struct merge {
        const struct part_merge_request *request;
        struct merge_schema schema;
        struct part_file *files; /* one a part */
        bool *splits;            /* parts whose row groups are merged as if each were a part of its own */
        struct merge_input *inputs;
        size_t input_count;
        struct merge_input **heap; /* inputs with rows left; the least key is first */
        size_t heap_count;
        struct merge_run *runs; /* not copied yet; their row groups are loaded */
        size_t run_count, run_rows;
        struct merge_input **equals; /* inputs whose current rows have the same id */
        struct label_columns labels; /* those with a value in some input */
        struct part_writer output;
        bool is_writing;
        uint32_t *nodes; /* of the output's writer, by leaf; 0: column omitted */
        uint64_t output_rows, rows_in_file, reported_bytes;
        struct merge_result result;
        size_t failed_part;
};

/* ---- open -------------------------------------------------------------------------------------- */

static enum status open_merge_files(struct merge *m, struct error *err)
{
        const struct part_merge_request *q = m->request;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < q->part_count; i++) {
                st = part_file_open(q->parts[i], &m->files[i], err);
                if (!st)
                        st = merge_schema_check_file(&m->schema, &m->files[i], err);
                if (st)
                        m->failed_part = i;
        }
        return st;
}

static bool has_label_values(const struct merge *m, const char *path)
{
        for (size_t i = 0; i < m->request->part_count; i++) {
                for (uint32_t g = 0; g < part_file_count_groups(&m->files[i]); g++) {
                        if (!is_null_throughout(&m->files[i], g, path))
                                return true;
                }
        }
        return false;
}

static enum status find_used_labels(struct merge *m, struct error *err)
{
        const struct label_columns *all = m->request->columns;
        enum status st = ST_OK;

        for (size_t i = 0; !st && all && i < all->count; i++) {
                _cleanup_free_ char *path = label_column(all->names[i]);

                if (!path)
                        return error_no_memory(err);
                if (has_label_values(m, path))
                        st = label_columns_add(&m->labels, all->names[i], strlen(all->names[i]), err);
        }
        return st;
}

static enum status add_merge_input(struct merge *m, size_t part, uint32_t group, uint32_t group_end, struct error *err)
{
        struct merge_input *in = &m->inputs[m->input_count++];
        enum status st = merge_input_begin(in, &m->schema, &m->files[part], group, group_end, err);

        if (!st)
                m->heap[m->heap_count++] = in;
        else if (st != ST_NOT_FOUND)
                m->failed_part = part;
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status begin_inputs(struct merge *m, struct error *err)
{
        size_t most = 0;
        enum status st = ST_OK;

        for (size_t i = 0; i < m->request->part_count; i++)
                most += m->splits[i] ? part_file_count_groups(&m->files[i]) : 1;
        m->inputs = calloc(most + 1, sizeof *m->inputs);
        m->heap = calloc(most + 1, sizeof(void *));
        m->equals = calloc(most + 1, sizeof(void *));
        if (!m->inputs || !m->heap || !m->equals)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < m->request->part_count; i++) {
                uint32_t groups = part_file_count_groups(&m->files[i]);

                if (!m->splits[i])
                        st = add_merge_input(m, i, 0, groups, err);
                for (uint32_t g = 0; !st && m->splits[i] && g < groups; g++)
                        st = add_merge_input(m, i, g, g + 1, err);
        }
        return st;
}

static void end_inputs(struct merge *m)
{
        for (size_t i = 0; i < m->input_count; i++)
                merge_input_deinit(&m->inputs[i]);
        free(steal_ptr(m->inputs));
        free(steal_ptr(m->heap));
        free(steal_ptr(m->equals));
        m->input_count = m->heap_count = m->run_count = m->run_rows = 0;
}

/* ---- output ------------------------------------------------------------------------------------ */

static enum status report_bytes(struct merge *m, struct error *err)
{
        uint64_t all = m->result.bytes_read + m->result.bytes_written +
                       (m->is_writing ? parquet_writer_bytes(m->output.w) : 0),
                 more = all - m->reported_bytes;

        m->reported_bytes = all;
        return m->request->proceed(m->request->context, more, err);
}

/* The name must never have been used before: an older snapshot may still name the file of an earlier merge. */
static char *make_output_name(const struct table_part *any)
{
        uint64_t random[2];
        char name[64];

        if (getrandom(random, sizeof random, 0) != sizeof random)
                return NULL;
        snprintf(name, sizeof name, "compact-%016" PRIx64 "%016" PRIx64 ".parquet", random[0], random[1]);
        return any->has_day ? make_day_path(any->day, name) : strdup(name);
}

static enum status begin_output(struct merge *m, struct error *err)
{
        const struct part_limits limits = { .max_rows = UINT64_MAX,
                                            .use = MEMORY_COMPACTION,
                                            .group_bytes = OUTPUT_GROUP_BYTES };
        const struct part_merge_request *q = m->request;
        _cleanup_free_ char *key = NULL;
        struct table_add *add;
        enum status st;

        if (!array_reserve(&m->result.adds, &m->result.add_capacity, m->result.add_count))
                return error_no_memory(err);
        add = &m->result.adds[m->result.add_count];
        *add = (struct table_add){ .name = make_output_name(q->parts[0]),
                                   .has_day = q->parts[0]->has_day,
                                   .day = q->parts[0]->day };
        key = add->name ? make_table_key(q->table, add->name) : NULL;
        if (!key) {
                table_add_deinit(add);
                return error_no_memory(err);
        }
        m->is_writing = true;
        m->rows_in_file = 0;
        st = part_writer_begin(&m->output, q->logs->storage, key, q->table, &m->labels, &limits, err);
        for (size_t i = 0; !st && i < m->schema.leaf_count; i++)
                m->nodes[i] = parquet_schema_find(parquet_writer_schema(m->output.w), m->schema.leaves[i].path);
        if (st) {
                part_writer_deinit(&m->output);
                m->is_writing = false;
                table_add_deinit(add);
        }
        return st;
}

/* An incomplete file is deleted. */
static void abandon_output(struct merge *m)
{
        if (!m->is_writing)
                return;
        part_writer_deinit(&m->output);
        m->is_writing = false;
        table_add_deinit(&m->result.adds[m->result.add_count]);
}

static enum status finish_output(struct merge *m, struct error *err)
{
        struct table_add *add = &m->result.adds[m->result.add_count];
        enum status st = part_writer_finish(&m->output, &add->written, err);

        if (st)
                return st;
        part_writer_deinit(&m->output);
        m->is_writing = false;
        m->result.add_count++;
        m->result.bytes_written += add->written.bytes;
        m->result.rows_written += add->written.rows;
        return ST_OK;
}

static void put_value(struct parquet_writer *w, uint32_t node, const struct merge_leaf *l,
                      const struct parquet_column *c, uint64_t slot)
{
        if (!c->row_count || (c->valid && !c->valid[slot]) || (c->codes && c->codes[slot] == PARQUET_NULL_CODE)) {
                if (l->is_key) /* keys of maps cannot be null, but may be in a file of another program */
                        parquet_put_str(w, node, "");
                else
                        parquet_put_null(w, node);
        } else if (c->codes) {
                parquet_put_bytes(w, node, c->dict[c->codes[slot]].data, c->dict[c->codes[slot]].size);
        } else {
                assert(c->ints);
                parquet_put_int(w, node, c->ints[slot]);
        }
}

static enum status copy_flat_field(struct merge *m, const struct merge_field *f, const struct merge_run *r,
                                   struct error *err)
{
        const struct merge_leaf *l = &m->schema.leaves[f->first_leaf];
        const struct parquet_column *c = &r->input->columns[f->first_leaf];
        uint32_t node = m->nodes[f->first_leaf];

        if (!node)
                return c->row_count ? error_set(err, ST_BAD_DATA,
                                                "'%s' has values in column '%s', but its statistics say it has none",
                                                r->input->file->path, l->path)
                                    : ST_OK;
        if (!c->row_count)
                parquet_put_nulls(m->output.w, node, r->count);
        else if (!r->input->order && c->ints && !c->valid)
                parquet_put_ints(m->output.w, node, c->ints + r->row, r->count);
        else
                for (uint64_t i = 0; i < r->count; i++)
                        put_value(m->output.w, node, l, c, merge_input_slot(r->input, r->row + i));
        return ST_OK;
}

static void copy_repeated_row(struct merge *m, const struct merge_field *f, uint32_t node, const struct merge_input *in,
                              uint64_t slot)
{
        const struct parquet_column *first = &in->columns[f->first_leaf];
        uint32_t begin, end;

        if (!first->row_count || (first->list_valid && !first->list_valid[slot])) {
                parquet_put_null(m->output.w, node);
                return;
        }
        begin = first->offsets[slot];
        end = first->offsets[slot + 1];
        parquet_put_list(m->output.w, node, end - begin);
        for (size_t k = f->first_leaf; k < f->first_leaf + f->leaf_count; k++) {
                for (uint32_t i = begin; i < end; i++)
                        put_value(m->output.w, m->nodes[k], &m->schema.leaves[k], &in->columns[k], i);
        }
}

static enum status copy_run(struct merge *m, const struct merge_run *r, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < m->schema.field_count; i++) {
                const struct merge_field *f = &m->schema.fields[i];
                uint32_t node;

                if (!f->is_repeated) {
                        st = copy_flat_field(m, f, r, err);
                        continue;
                }
                node = parquet_writer_node(m->output.w, f->name);
                for (uint64_t k = 0; k < r->count; k++)
                        copy_repeated_row(m, f, node, r->input, merge_input_slot(r->input, r->row + k));
        }
        return st ? st : part_writer_end_rows(&m->output, r->count, err);
}

/* Copy the pending runs; afterwards their row groups may be unloaded. */
static enum status flush_runs(struct merge *m, struct error *err)
{
        enum status st = m->run_count ? report_bytes(m, err) : ST_OK;

        for (size_t i = 0; !st && i < m->run_count; i++) {
                if (m->is_writing && (m->rows_in_file >= m->output_rows || !part_writer_has_room(&m->output)))
                        st = finish_output(m, err);
                if (!st && !m->is_writing)
                        st = begin_output(m, err);
                if (!st)
                        st = copy_run(m, &m->runs[i], err);
                if (st == ST_BAD_DATA)
                        m->failed_part = (size_t)(m->runs[i].input->file - m->files);
                m->rows_in_file += m->runs[i].count;
        }
        m->run_count = m->run_rows = 0;
        return st;
}

static enum status append_run_row(struct merge *m, struct merge_input *in, struct error *err)
{
        struct merge_run *last = m->run_count ? &m->runs[m->run_count - 1] : NULL;

        assert(m->runs);
        m->run_rows++;
        if (last && last->input == in && last->row + last->count == in->row)
                last->count++;
        else
                m->runs[m->run_count++] = (struct merge_run){ in, in->row, 1 };
        return m->run_rows == FLUSHED_ROWS ? flush_runs(m, err) : ST_OK;
}

/* ---- order --------------------------------------------------------------------------------------- */

static bool is_heap_less(const struct merge *m, size_t x, size_t y)
{
        int order = compare_merge_keys(&m->heap[x]->key, &m->heap[y]->key);

        return order ? order < 0 : m->heap[x] < m->heap[y];
}

static void swap_heap_items(struct merge *m, size_t x, size_t y)
{
        struct merge_input *in = m->heap[x];

        m->heap[x] = m->heap[y];
        m->heap[y] = in;
}

static void sift_heap_down(struct merge *m, size_t at)
{
        for (;;) {
                size_t least = at, child = 2 * at + 1;

                if (child < m->heap_count && is_heap_less(m, child, least))
                        least = child;
                if (child + 1 < m->heap_count && is_heap_less(m, child + 1, least))
                        least = child + 1;
                if (least == at)
                        return;
                swap_heap_items(m, at, least);
                at = least;
        }
}

static void push_heap(struct merge *m, struct merge_input *in)
{
        size_t at = m->heap_count++;

        m->heap[at] = in;
        for (; at > 0 && is_heap_less(m, at, (at - 1) / 2); at = (at - 1) / 2)
                swap_heap_items(m, at, (at - 1) / 2);
}

static struct merge_input *pop_heap(struct merge *m)
{
        struct merge_input *in = m->heap[0];

        m->heap[0] = m->heap[--m->heap_count];
        if (m->heap_count)
                sift_heap_down(m, 0);
        return in;
}

/* ST_NOT_FOUND after an input's last row. */
static enum status advance_input(struct merge *m, struct merge_input *in, struct error *err)
{
        size_t part = (size_t)(in->file - m->files);
        bool is_unsorted = false;
        enum status st = ST_OK;

        m->result.rows_read++;
        if (merge_input_is_at_group_end(in)) {
                m->result.bytes_read += m->request->parts[part]->bytes / part_file_count_groups(in->file);
                st = flush_runs(m, err);
        }
        if (st)
                return st;
        st = merge_input_advance(in, &is_unsorted, err);
        if (st && st != ST_NOT_FOUND)
                m->failed_part = part;
        if (is_unsorted)
                m->splits[part] = true;
        return st;
}

/* Called once per row group. */
static enum status find_dropped_rows(struct merge *m, struct merge_input *in, struct error *err)
{
        enum status st = report_bytes(m, err);

        if (st)
                return st;
        in->dropped = calloc(in->row_count, 1);
        if (!in->dropped)
                return error_no_memory(err);
        st = m->request->select_dropped(m->request->drop_context, in->file, in->group, in->dropped, err);
        if (st)
                m->failed_part = (size_t)(in->file - m->files);
        return st;
}

/* Whether the current row of an input is written to the output. */
static enum status look_at_row(struct merge *m, struct merge_input *in, bool *is_kept_ret, struct error *err)
{
        enum status st;

        assert(in);
        st = m->request->select_dropped && !in->dropped ? find_dropped_rows(m, in, err) : ST_OK;
        *is_kept_ret = !in->dropped || !in->dropped[merge_input_slot(in, in->row)];
        return st;
}

static enum status append_kept_row(struct merge *m, struct merge_input *in, struct error *err)
{
        bool is_kept;
        enum status st = look_at_row(m, in, &is_kept, err);

        return st || !is_kept ? st : append_run_row(m, in, err);
}

static enum status merge_all_rows(struct merge *m, struct error *err)
{
        while (m->heap_count) {
                struct merge_input *in = m->heap[0];
                enum status st = append_kept_row(m, in, err);

                if (!st)
                        st = advance_input(m, in, err);
                if (st == ST_NOT_FOUND)
                        pop_heap(m);
                else if (st)
                        return st;
                else
                        sift_heap_down(m, 0);
        }
        return flush_runs(m, err);
}

/* ---- one row of each id ---------------------------------------------------------------------------- */

static bool is_same_row(const struct merge *m, const struct merge_input *x, const struct merge_input *y)
{
        if (m->schema.table == TABLE_STACKS && x->key.a_size != sizeof(struct hash128))
                return false; /* no id */
        return compare_merge_keys(&x->key, &y->key) == 0;
}

static int64_t get_int_at_row(const struct merge_input *in, size_t leaf)
{
        const struct parquet_column *c = &in->columns[leaf];

        return c->row_count ? c->ints[merge_input_slot(in, in->row)] : 0;
}

static enum symbol_quality get_row_quality(const struct merge_input *in)
{
        const struct parquet_column *c = &in->columns[in->schema->quality];
        enum symbol_quality ret = QUALITY_NONE;
        uint32_t code = c->row_count ? c->codes[merge_input_slot(in, in->row)] : PARQUET_NULL_CODE;
        char name[32];

        if (code == PARQUET_NULL_CODE)
                return ret;
        snprintf(name, sizeof name, "%.*s", (int)(c->dict[code].size < 31 ? c->dict[code].size : 31),
                 (const char *)c->dict[code].data);
        return symbol_quality_parse(name, &ret) ? ret : QUALITY_NONE;
}

static bool has_row_frames(const struct merge_input *in)
{
        for (size_t i = 0; i < in->schema->field_count; i++) {
                const struct merge_field *f = &in->schema->fields[i];
                const struct parquet_column *c = &in->columns[f->first_leaf];
                uint64_t slot = merge_input_slot(in, in->row);

                if (f->is_repeated)
                        return c->row_count && c->offsets[slot + 1] > c->offsets[slot];
        }
        return false;
}

/* Frames are never removed; better ones replace others. Generations decide last: those of two nodes do not compare. */
static bool has_better_frames(const struct merge_input *x, const struct merge_input *y)
{
        const enum symbol_quality x_quality = get_row_quality(x), y_quality = get_row_quality(y);

        if (has_row_frames(x) != has_row_frames(y))
                return has_row_frames(x);
        if (x_quality != y_quality)
                return x_quality > y_quality;
        return (uint64_t)get_int_at_row(x, x->schema->generation) > (uint64_t)get_int_at_row(y, y->schema->generation);
}

/* Pop the inputs whose current row has the least id. */
static size_t pop_equal_inputs(struct merge *m)
{
        size_t n = 0;

        m->equals[n++] = pop_heap(m);
        while (m->heap_count && is_same_row(m, m->equals[0], m->heap[0]))
                m->equals[n++] = pop_heap(m);
        return n;
}

/* Append the best of the rows with one id that are not dropped. */
static enum status append_best_row(struct merge *m, size_t count, struct error *err)
{
        struct merge_input *best = NULL;

        for (size_t i = 0; i < count; i++) {
                struct merge_input *in = m->equals[i];
                bool is_kept;
                enum status st = look_at_row(m, in, &is_kept, err);

                if (st)
                        return st;
                if (is_kept && (!best || (m->schema.table == TABLE_LOCATIONS && has_better_frames(in, best))))
                        best = in;
        }
        return best ? append_run_row(m, best, err) : ST_OK;
}

static enum status merge_distinct_rows(struct merge *m, struct error *err)
{
        while (m->heap_count) {
                size_t n = pop_equal_inputs(m);
                enum status st = append_best_row(m, n, err);

                for (size_t i = 0; !st && i < n; i++) {
                        st = advance_input(m, m->equals[i], err);
                        if (!st)
                                push_heap(m, m->equals[i]);
                        st = st == ST_NOT_FOUND ? ST_OK : st;
                }
                if (st)
                        return st;
        }
        return flush_runs(m, err);
}

/* ---- merge -------------------------------------------------------------------------------------- */

static enum status merge_once(struct merge *m, struct error *err)
{
        enum status st = begin_inputs(m, err);

        m->failed_part = st ? m->failed_part : MERGE_NO_PART;
        for (size_t i = m->heap_count / 2; !st && i-- > 0;)
                sift_heap_down(m, i);
        if (!st)
                st = m->schema.table == TABLE_SAMPLES ? merge_all_rows(m, err) : merge_distinct_rows(m, err);
        if (!st && m->is_writing)
                st = finish_output(m, err);
        if (!st)
                st = report_bytes(m, err);
        return st;
}

static size_t count_splits(const struct merge *m)
{
        size_t n = 0;

        for (size_t i = 0; i < m->request->part_count; i++)
                n += m->splits[i];
        return n;
}

static void forget_outputs(struct merge *m)
{
        abandon_output(m);
        merge_result_discard(m->request->logs, m->request->table, &m->result);
        merge_result_deinit(&m->result);
        m->reported_bytes = 0;
}

static enum status prepare_merge(struct merge *m, struct error *err)
{
        const struct part_merge_request *q = m->request;
        uint64_t rows = 0;
        enum status st = merge_schema_init(&m->schema, q->table, q->columns, err);

        if (st)
                return st;
        m->files = calloc(q->part_count, sizeof *m->files);
        m->splits = calloc(q->part_count, sizeof *m->splits);
        m->nodes = calloc(m->schema.leaf_count, sizeof *m->nodes);
        m->runs = calloc(FLUSHED_ROWS, sizeof *m->runs);
        if (!m->files || !m->splits || !m->nodes || !m->runs)
                return error_no_memory(err);
        st = merge_schema_fetch_files(&m->schema, q->parts, q->part_count, err);
        if (!st)
                st = open_merge_files(m, err);
        if (!st)
                st = find_used_labels(m, err);
        for (size_t i = 0; !st && i < q->part_count; i++) {
                for (uint32_t g = 0; g < part_file_count_groups(&m->files[i]); g++)
                        rows += parquet_file_group_rows(m->files[i].file, g);
        }
        m->output_rows = rows / q->output_count + 1;
        return st;
}

static void merge_deinit(struct merge *m)
{
        end_inputs(m);
        for (size_t i = 0; m->files && i < m->request->part_count; i++)
                part_file_close(&m->files[i]);
        free(m->files);
        free(m->splits);
        free(m->nodes);
        free(m->runs);
        label_columns_deinit(&m->labels);
        merge_schema_deinit(&m->schema);
}

enum status merge_parts(const struct part_merge_request *q, struct merge_result *ret, size_t *failed_part_ret,
                        struct error *err)
{
        struct merge m = { .request = q, .failed_part = MERGE_NO_PART };
        enum status st;

        assert(q->part_count > 0 && q->output_count > 0);
        *failed_part_ret = MERGE_NO_PART;
        st = prepare_merge(&m, err);
        for (size_t splits = 0; !st; splits = count_splits(&m)) {
                st = merge_once(&m, err);
                end_inputs(&m);
                if (st != ST_UNSUPPORTED || count_splits(&m) == splits)
                        break;
                forget_outputs(&m);
                st = ST_OK;
        }
        if (st) {
                *failed_part_ret = m.failed_part;
                forget_outputs(&m);
        } else {
                *ret = m.result;
        }
        merge_deinit(&m);
        return st;
}

void merge_result_deinit(struct merge_result *r)
{
        for (size_t i = 0; i < r->add_count; i++)
                table_add_deinit(&r->adds[i]);
        free(r->adds);
        *r = (struct merge_result){ 0 };
}

enum status merge_result_check_files(const struct table_logs *logs, enum table table, const struct merge_result *r,
                                     struct error *err)
{
        for (size_t i = 0; i < r->add_count; i++) {
                _cleanup_free_ char *key = make_table_key(table, r->adds[i].name);
                struct storage_info info;
                struct error why = { 0 };
                enum status st = key ? storage_stat(logs->storage, key, &info, &why) : error_no_memory(&why);

                if (st == ST_NO_MEMORY)
                        return error_no_memory(err);
                if (st)
                        return error_os(err, why.os_errno ? why.os_errno : ENOENT,
                                        "cannot find '%s/%s', which a merge wrote", storage_root(logs->storage), key);
                if (info.size != r->adds[i].written.bytes)
                        return error_os(err, EIO, "another program changed '%s/%s', which a merge wrote",
                                        storage_root(logs->storage), key);
        }
        return ST_OK;
}

void merge_result_discard(const struct table_logs *logs, enum table table, const struct merge_result *r)
{
        for (size_t i = 0; i < r->add_count; i++) {
                _cleanup_free_ char *key = make_table_key(table, r->adds[i].name);

                if (key)
                        (void)!storage_remove(logs->storage, key, NULL);
        }
}
