/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "profile-store/scan/scan_internal.h"

struct object_visit {
        void (*visit)(void *context, const struct build_id *id);
        void *context;
};

static void visit_head_objects(const struct batch *b, const struct object_visit *v)
{
        for (uint32_t i = 0; i < b->location_count; i++) {
                const struct build_id *id = b->locations[i].identity.build_id;

                if (id && id->size)
                        v->visit(v->context, id);
        }
}

static enum status visit_group_objects(const struct part_file *f, uint32_t group, const struct object_visit *v,
                                       struct error *err)
{
        _cleanup_column_source_ struct column_source from = { .file = f,
                                                              .group = group,
                                                              .memory.use = MEMORY_RESYMBOLIZE };
        _cleanup_parquet_column_ struct parquet_column c = { 0 };
        enum status st = scan_read_column(&from, "build_id", PARQUET_STRING, &c, err);

        for (uint32_t i = 0; !st && i < c.dict_count; i++) {
                struct build_id id;

                if (build_id_from_hex(&id, (const char *)c.dict[i].data, c.dict[i].size))
                        v->visit(v->context, &id);
        }
        return st;
}

static enum status visit_part_objects(const struct table_part *part, const struct object_visit *v, struct error *err)
{
        _cleanup_part_file_ struct part_file f;
        enum status st = part_file_open(part, &f, err);

        for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++)
                st = visit_group_objects(&f, g, v, err);
        return st;
}

enum status store_scan_visit_objects(struct store_scan *scan, void (*visit)(void *context, const struct build_id *id),
                                     void *context, struct error *err)
{
        const struct object_visit v = { visit, context };
        const struct tables *t = scan->tables;
        enum status st = ST_OK;

        for (size_t i = 0; i < scan->head_count; i++)
                visit_head_objects(scan->head[i], &v);
        for (size_t i = 0; !st && i < t->part_count[TABLE_LOCATIONS]; i++)
                st = visit_part_objects(t->parts[TABLE_LOCATIONS][i], &v, err);
        return st;
}
