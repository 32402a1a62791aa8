/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object is copied, then it joins a batch; the batch becomes one commit of the target's table of objects, or in a
 * directory one record for each. An object of a batch that fails has no row, so it is copied again under another key.
 */
#include "debuginfo-store/object_copy.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "debuginfo-store/debuginfo_store_internal.h"

#define NOTES_BYTES MiB(16)
#define BATCH OBJECT_COMMIT_CHANGES

/* A copied object that has no row yet. */
struct copied_object {
        struct object_commit commit; /* first */
        struct stored_object object;
        struct buf links, sections;
};

struct object_copy {
        struct debuginfo_store *from, *to;
        struct storage_copies *count;
        struct copied_object *batch;
        size_t waiting;
        struct error *err;
};

/* ---- rows of the target ---- */

static enum status record_copy(struct debuginfo_store *to, const struct copied_object *c, struct error *err)
{
        const struct section_note note = { c->sections.data, c->sections.size };
        _cleanup_free_ struct object_name *companions = NULL;
        struct object_links links = { 0 };
        enum status st = c->links.size ? links_decode(c->links.data, c->links.size, &links, &companions, err) : ST_OK;

        return st ? st : meta_put(to->meta, &c->object, c->links.size ? &links : NULL, &note, err);
}

static enum status record_all_copies(struct object_copy *o)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < o->waiting; i++)
                st = record_copy(o->to, &o->batch[i], o->err);
        return st;
}

static enum status commit_all_copies(struct object_copy *o)
{
        struct object_commit *commits[BATCH];

        for (size_t i = 0; i < o->waiting; i++) {
                struct copied_object *c = &o->batch[i];

                c->commit = (struct object_commit){ .name = { c->object.build_id, c->object.kind },
                                                    .change = { .row = { .object = c->object,
                                                                         .links = c->links.data,
                                                                         .links_size = c->links.size,
                                                                         .sections = c->sections.data,
                                                                         .sections_size = c->sections.size } } };
                commits[i] = &c->commit;
        }
        object_commits_run_all(o->to->commits, commits, o->waiting);
        for (size_t i = 0; i < o->waiting; i++) {
                if (!commits[i]->result)
                        continue;
                *o->err = commits[i]->error;
                return commits[i]->result;
        }
        return ST_OK;
}

static enum status end_copy_batch(struct object_copy *o)
{
        enum status st = !o->waiting ? ST_OK : o->to->commits ? commit_all_copies(o) : record_all_copies(o);

        for (size_t i = 0; i < o->waiting; i++) {
                buf_deinit(&o->batch[i].links);
                buf_deinit(&o->batch[i].sections);
        }
        o->waiting = 0;
        return st;
}

/* ---- one object ---- */

static enum status copy_object_content(struct object_copy *o, const struct stored_object *source,
                                       struct stored_object *copy)
{
        _cleanup_free_ char *key = object_format_key(source), *to_key = NULL;
        enum status st = ST_OK;

        *copy = *source;
        copy->put_id = 0;
        if (o->to->is_remote)
                st = object_draw_put_id(&copy->put_id, o->err);
        to_key = object_format_key(copy);
        if (!st && (!key || !to_key))
                st = error_no_memory(o->err);
        return st ? st : storage_copy(o->from->storage, key, o->to->storage, to_key, o->count, o->err);
}

static enum status add_to_copy_batch(struct object_copy *o, const struct stored_object *source)
{
        struct copied_object *c = &o->batch[o->waiting];
        enum status st = copy_object_content(o, source, &c->object);

        if (st)
                return st;
        buf_init(&c->links, NOTES_BYTES);
        buf_init(&c->sections, LIMIT_SECTION_LIST_BYTES);
        o->waiting++;
        if (source->kind != OBJECT_ROW_SYMBOL_TABLE)
                st = meta_read_notes(o->from->meta, source, &c->links, &c->sections, o->err);
        return !st && o->waiting == BATCH ? end_copy_batch(o) : st;
}

static void count_present_object(struct storage_copies *count)
{
        count->present++;
        if (count->progress)
                count->progress(count->context, count);
}

static enum status copy_listed_object(void *context, const struct stored_object *object)
{
        struct object_copy *o = context;
        struct stored_object there;
        enum status st = meta_get(o->to->meta, &object->build_id, object->kind, &there, o->err);

        if (!st && memcmp(there.sha256, object->sha256, sizeof there.sha256) == 0) {
                count_present_object(o->count);
                return ST_OK;
        }
        if (st && st != ST_NOT_FOUND)
                return st;
        st = add_to_copy_batch(o, object);
        return st == ST_NOT_FOUND ? ST_OK : st; /* removed meanwhile */
}

/* ---- symbol tables ---- */

struct table_rows {
        struct stored_object *items;
        size_t count, capacity;
};

static enum status append_table_row(void *context, const struct object_row *row, struct error *err)
{
        struct table_rows *r = context;

        if (row->object.kind != OBJECT_ROW_SYMBOL_TABLE)
                return ST_OK;
        if (!array_reserve(&r->items, &r->capacity, r->count))
                return error_no_memory(err);
        r->items[r->count++] = row->object;
        return ST_OK;
}

static enum status copy_symbol_tables(struct object_copy *o)
{
        struct object_table *source = NULL;
        struct table_rows rows = { 0 };
        enum status st = object_table_open(o->from->storage, true, &source, o->err);

        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        st = object_table_visit(source, append_table_row, &rows, o->err);
        for (size_t i = 0; !st && i < rows.count; i++) {
                const struct stored_object *row = &rows.items[i];
                struct stored_object there;

                if (object_table_find_put(o->to->table, &(struct object_name){ row->build_id, row->kind }, &there) &&
                    memcmp(there.sha256, row->sha256, OBJECT_GENERATION_BYTES) == 0) {
                        count_present_object(o->count);
                        continue;
                }
                st = add_to_copy_batch(o, row);
                st = st == ST_NOT_FOUND ? ST_OK : st;
        }
        free(rows.items);
        object_table_close(source);
        return st;
}

enum status debuginfo_store_copy(struct debuginfo_store *from, struct debuginfo_store *to, struct storage_copies *count,
                                 struct error *err)
{
        _cleanup_free_ struct copied_object *batch = calloc(BATCH, sizeof *batch);
        struct object_copy o = { .from = from, .to = to, .count = count, .batch = batch, .err = err };
        enum status st = batch ? debuginfo_store_list(from, copy_listed_object, &o, err) : error_no_memory(err), ended;

        if (!st && from->is_remote && to->is_remote)
                st = copy_symbol_tables(&o);
        ended = end_copy_batch(&o); /* also after a failure: what was copied counts */
        return st ? st : ended;
}
