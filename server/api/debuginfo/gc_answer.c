/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api/debuginfo/gc_answer.h"

#include "common/json/json_out.h"

struct gc_report_writer {
        struct json_out j;
        const struct gc_options *options;
};

static bool is_needed_by_caller(void *context, const struct stored_object *object)
{
        const struct gc_report_writer *a = context;

        return a->options->needed && a->options->needed(a->options->context, object);
}

static void write_removed_object(void *context, const struct stored_object *object, enum gc_reason why)
{
        struct gc_report_writer *a = context;
        char hex[BUILD_ID_HEX_MAX];

        json_out_object(&a->j, NULL);
        json_out_str(&a->j, "build_id", build_id_hex(&object->build_id, hex));
        json_out_str(&a->j, "kind", object_kind_name(object->kind));
        json_out_str(&a->j, "name", object->name);
        json_out_str(&a->j, "tag", object->tag);
        json_out_uint(&a->j, "stored_bytes", object->stored_bytes);
        json_out_str(&a->j, "reason", gc_reason_name(why));
        json_out_object_end(&a->j);
}

enum status run_gc_with_report(struct debuginfo_store *objects, const struct gc_options *options,
                               struct gc_result *r_ret, struct buf *ret, struct error *err)
{
        struct gc_report_writer a = { .options = options };
        struct gc_options o = *options;
        enum status st;

        o.needed = is_needed_by_caller;
        o.removed = write_removed_object;
        o.context = &a;
        json_out_init(&a.j, ret);
        json_out_object(&a.j, NULL);
        json_out_bool(&a.j, "dry_run", o.dry_run);
        json_out_array(&a.j, "removed");
        st = debuginfo_store_collect_garbage(objects, &o, r_ret, err);
        if (st)
                return st;
        json_out_array_end(&a.j);
        json_out_uint(&a.j, "removed_bytes", r_ret->removed_bytes);
        json_out_uint(&a.j, "objects", r_ret->objects);
        json_out_uint(&a.j, "bytes", r_ret->bytes);
        json_out_uint(&a.j, "pinned", r_ret->pinned);
        json_out_uint(&a.j, "needed", r_ret->needed);
        json_out_uint(&a.j, "companions", r_ret->companions);
        json_out_uint(&a.j, "strays", r_ret->orphans);
        json_out_uint(&a.j, "stray_bytes", r_ret->orphan_bytes);
        json_out_object_end(&a.j);
        return buf_status(ret, err, "report of the collection");
}
