/* SPDX-License-Identifier: Apache-2.0 */
/* POST /api/v1/symbolize: docs/formats/symbolize.md */
#include <inttypes.h>
#include <string.h>

#include "common/json_out.h"
#include "common/metrics.h"
#include "common/options.h"
#include "server/json_in.h"
#include "server/server_internal.h"

static struct metric looked_up = METRIC_COUNTER("cairn_symbolize_addresses_total", "Addresses asked for over HTTP.", "");

/* All keys of a request in order, and where each object's begin. */
struct request_keys {
        struct build_id *ids;
        size_t *first;            /* object_count + 1 */
        size_t object_count;
        struct symbol_key *keys;
        size_t key_count;
};

static void keys_deinit(struct request_keys *k)
{
        free(k->ids);
        free(k->first);
        free(k->keys);
}

static enum status count_keys(struct json_object *objects, size_t *ret, struct error *err)
{
        *ret = 0;
        for (size_t i = 0; i < json_in_array_size(objects); i++) {
                struct json_object *object = json_in_array_object(objects, i);
                struct json_object *addresses = object ? json_in_array(object, "addresses") : NULL;

                if (!addresses)
                        return error_set(err, ST_BAD_DATA, "each of 'objects' needs build_id as text and addresses as an array");
                *ret += json_in_array_size(addresses);
        }
        if (*ret > LIMIT_SYMBOLIZE_KEYS)
                return error_set(err, ST_TOO_BIG, "more than %d addresses; ask in several requests", LIMIT_SYMBOLIZE_KEYS);
        return ST_OK;
}

static enum status read_object(struct json_object *object, struct request_keys *k, struct error *err)
{
        struct build_id *id = &k->ids[k->object_count];
        struct json_object *addresses = json_in_array(object, "addresses");
        const char *hex = json_in_str(object, "build_id");

        if (!hex || !build_id_from_hex(id, hex, strlen(hex)))
                return error_set(err, ST_BAD_DATA, "'%.130s' is no build-id", hex ? hex : "(none)");
        k->first[k->object_count++] = k->key_count;
        for (size_t i = 0; i < json_in_array_size(addresses); i++) {
                const char *text = json_in_array_str(addresses, i);
                struct symbol_key *key = &k->keys[k->key_count++];

                key->build_id = id;
                if (!text || !parse_hex(text, &key->address))
                        return error_set(err, ST_BAD_DATA, "'%.40s' is no hexadecimal address in quotes", text ? text : "(other type)");
        }
        return ST_OK;
}

static enum status read_keys(struct json_object *request, struct request_keys *ret, struct error *err)
{
        struct json_object *objects = json_in_array(request, "objects");
        size_t object_count, key_count;
        enum status st;

        if (!objects)
                return error_set(err, ST_BAD_DATA, "the body has no array 'objects'");
        st = count_keys(objects, &key_count, err);
        if (st)
                return st;
        object_count = json_in_array_size(objects);
        ret->ids = calloc(object_count + 1, sizeof *ret->ids);
        ret->first = calloc(object_count + 1, sizeof *ret->first);
        ret->keys = calloc(key_count + 1, sizeof *ret->keys);
        if (!ret->ids || !ret->first || !ret->keys)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < object_count; i++)
                st = read_object(json_in_array_object(objects, i), ret, err);
        ret->first[ret->object_count] = ret->key_count;
        return st;
}

static enum status put_frame(struct json_out *j, struct symbol_view *view, const struct symbol_frame *f, struct error *err)
{
        const char *name, *linkage_name, *file;
        enum status st = symbol_view_function(view, f->function, &name, &linkage_name, err);

        if (!st)
                st = symbol_view_file(view, f->file, &file, err);
        if (st)
                return st;
        json_out_object(j, NULL);
        json_out_str(j, "function", name);
        json_out_str(j, "linkage_name", linkage_name);
        json_out_str(j, "file", file);
        json_out_uint(j, "line", f->line);
        json_out_bool(j, "inlined", f->inlined);
        json_out_object_end(j);
        return ST_OK;
}

static enum status put_result(struct json_out *j, struct symbol_view *view, uint64_t asked, const struct symbol_batch *batch,
                              const struct symbol_result *r, struct error *err)
{
        char address[24];
        enum status st = ST_OK;

        snprintf(address, sizeof address, "0x%" PRIx64, asked);
        json_out_object(j, NULL);
        json_out_str(j, "address", address);
        json_out_str(j, "state", symbol_state_name(r->state));
        json_out_array(j, "frames");
        for (uint32_t i = 0; !st && i < r->frame_count; i++)
                st = put_frame(j, view, &batch->frames[r->first_frame + i], err);
        json_out_array_end(j);
        json_out_object_end(j);
        return st;
}

static enum status put_object(struct json_out *j, struct symbol_view *view, const struct request_keys *k, size_t n,
                              const struct symbol_batch *batch, struct error *err)
{
        struct symbol_object object;
        char hex[BUILD_ID_HEX_MAX];
        enum status st = symbol_view_object(view, &k->ids[n], &object, err);

        if (st)
                return st;
        json_out_object(j, NULL);
        json_out_str(j, "build_id", build_id_hex(&k->ids[n], hex));
        json_out_str(j, "state", symbol_object_state_name(object.state));
        json_out_str(j, "quality", symbol_quality_name(object.quality));
        json_out_uint(j, "generation", object.generation);
        if (object.partial[0])
                json_out_str(j, "partial", object.partial);
        json_out_array(j, "results");
        for (size_t i = k->first[n]; !st && i < k->first[n + 1]; i++)
                st = put_result(j, view, k->keys[i].address, batch, &batch->results[i], err);
        json_out_array_end(j);
        json_out_object_end(j);
        return st ? st : buf_status(j->buf, err, "the answer");
}

static enum status answer_keys(struct server *s, const struct request_keys *k, struct buf *body, struct error *err)
{
        struct symbol_batch batch = { 0 };
        struct symbol_view *view;
        struct json_out j;
        enum status st;

        if (!s->symbols)
                return error_set(err, ST_NOT_FOUND, "this read-only service has no symbol index; ask one that has");
        st = symbol_view_begin(s->symbols, &view, err);
        if (st)
                return st;
        st = symbol_view_lookup(view, k->keys, k->key_count, &batch, err);
        json_out_init(&j, body);
        json_out_object(&j, NULL);
        json_out_array(&j, "objects");
        for (size_t i = 0; !st && i < k->object_count; i++)
                st = put_object(&j, view, k, i, &batch, err);
        json_out_array_end(&j);
        json_out_object_end(&j);
        if (!st && batch.damaged_count)
                log_error("index", "%zu lookups met damage in the symbol index", batch.damaged_count);
        symbol_view_end(view);
        symbol_batch_deinit(&batch);
        return st;
}

static void symbolize(struct http_request *req, void *context)
{
        struct request_keys keys = { 0 };
        struct json_object *request;
        struct buf body;
        struct error err;
        const uint8_t *data;
        size_t n;
        enum status st;

        data = http_body(req, &n);
        st = json_in_parse(data, n, &request, &err);
        if (!st) {
                st = read_keys(request, &keys, &err);
                json_in_free(request);
        }
        buf_init(&body, LIMIT_RESPONSE_BYTES);
        if (!st)
                st = answer_keys(context, &keys, &body, &err);
        metric_add(&looked_up, (int64_t)keys.key_count);
        keys_deinit(&keys);
        if (!st) {
                respond_json(req, &body);
                return;
        }
        buf_deinit(&body);
        http_fail(req, st, &err);
}

static const struct http_route routes[] = {
        { .method = "POST", .path = "/api/v1/symbolize", .scope = SCOPE_READ, .max_body = LIMIT_HTTP_JSON_BYTES,
          .handle = symbolize },
};
const struct route_table symbolize_routes = ROUTE_TABLE(routes);
