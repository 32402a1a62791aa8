/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api/debuginfo/debuginfo_list.h"

#include "common/hash/sha256.h"
#include "common/json/json_out.h"

#define SHOWN_ALIASES_MAX 8

struct lister {
        struct symbol_index *symbols;
        struct json_out j;
        struct buf *out;
        struct error *err;
};

static const char *get_object_state(const struct stored_object *stored, const struct symbol_object *o)
{
        if (stored->kind == OBJECT_SUPPLEMENTARY)
                return "supplement";
        return stored->kind == OBJECT_DWO ? "companion" : symbol_object_state_name(o->state);
}

static void write_index_object(struct json_out *j, const struct stored_object *stored, const struct symbol_object *o)
{
        json_out_object(j, "index");
        json_out_str(j, "state", get_object_state(stored, o));
        if (o->state == OBJECT_INDEXED) {
                json_out_str(j, "quality", symbol_quality_name(o->quality));
                json_out_uint(j, "generation", o->generation);
                json_out_uint(j, "ranges", o->range_count);
                json_out_uint(j, "functions", o->function_count);
                json_out_uint(j, "files", o->file_count);
                json_out_uint(j, "index_bytes", o->index_bytes);
                if (o->partial[0])
                        json_out_str(j, "partial", o->partial);
        }
        if (o->state == OBJECT_FAILED)
                json_out_str(j, "error", o->reason);
        json_out_object_end(j);
}

static enum status write_stored_object(void *context, const struct stored_object *object)
{
        struct lister *l = context;
        struct symbol_object symbols = { 0 };
        struct symbol_view *view;
        char id[BUILD_ID_HEX_MAX], sha[SHA256_HEX_MAX];
        enum status st = l->symbols ? symbol_view_begin(l->symbols, &view, l->err) : ST_OK;

        if (!st && l->symbols) {
                st = symbol_view_get_object(view, &object->build_id, &symbols, l->err);
                symbol_view_end(view);
        }
        if (st)
                return st;
        json_out_object(&l->j, NULL);
        json_out_str(&l->j, "build_id", build_id_hex(&object->build_id, id));
        json_out_str(&l->j, "kind", object_kind_name(object->kind));
        json_out_str(&l->j, "name", object->name);
        json_out_str(&l->j, "source", object_source_name(object->source));
        json_out_str(&l->j, "quality", symbol_quality_name(object->quality));
        json_out_uint(&l->j, "size", object->size_bytes);
        json_out_uint(&l->j, "stored_bytes", object->stored_bytes);
        json_out_str(&l->j, "sha256", sha256_hex(object->sha256, sha));
        json_out_int(&l->j, "stored_unix_s", object->stored_unix_s);
        json_out_int(&l->j, "used_unix_s", object->used_unix_s);
        json_out_bool(&l->j, "pinned", object->is_pinned);
        json_out_str(&l->j, "tag", object->tag);
        json_out_str(&l->j, "token", object->token);
        write_index_object(&l->j, object, &symbols);
        json_out_object_end(&l->j);
        return buf_status(l->out, l->err, "list of objects");
}

enum status write_debuginfo_list(struct debuginfo_store *objects, struct symbol_index *symbols, struct buf *ret,
                                 struct error *err)
{
        struct lister l = { .symbols = symbols, .out = ret, .err = err };
        enum status st;

        json_out_init(&l.j, ret);
        json_out_object(&l.j, NULL);
        json_out_array(&l.j, "objects");
        st = objects ? debuginfo_store_list(objects, write_stored_object, &l, err) : ST_OK;
        json_out_array_end(&l.j);
        json_out_object_end(&l.j);
        return st ? st : buf_status(ret, err, "list of objects");
}

enum status write_debuginfo_object(struct debuginfo_store *objects, struct symbol_index *symbols,
                                   const struct build_id *id, struct buf *ret, struct error *err)
{
        struct lister l = { .symbols = symbols, .out = ret, .err = err };
        struct build_id owner, aliases[SHOWN_ALIASES_MAX];
        char hex[BUILD_ID_HEX_MAX];
        size_t alias_count;
        unsigned found = 0;
        enum status st;

        json_out_init(&l.j, ret);
        json_out_object(&l.j, NULL);
        if (debuginfo_store_resolve_alias(objects, id, &owner, err) == ST_OK)
                id = &owner;
        st = debuginfo_store_list_aliases(objects, id, aliases, SHOWN_ALIASES_MAX, &alias_count, err);
        if (st)
                return st;
        json_out_str(&l.j, "build_id", build_id_hex(id, hex));
        json_out_array(&l.j, "aliases");
        for (size_t i = 0; i < alias_count; i++)
                json_out_str(&l.j, NULL, build_id_hex(&aliases[i], hex));
        json_out_array_end(&l.j);
        json_out_array(&l.j, "objects");
        for (unsigned kind = 0; kind < OBJECT_KIND_COUNT; kind++) {
                struct stored_object object;

                st = debuginfo_store_stat(objects, id, kind, &object, err);
                if (!st)
                        st = write_stored_object(&l, &object);
                if (st && st != ST_NOT_FOUND)
                        return st;
                found += !st;
        }
        json_out_array_end(&l.j);
        json_out_object_end(&l.j);
        return found ? buf_status(ret, err, "the object")
                     : error_set(err, ST_NOT_FOUND, "nothing is stored under build-id %s", build_id_hex(id, hex));
}
