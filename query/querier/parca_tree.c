/* SPDX-License-Identifier: Apache-2.0 */
#include "query/querier/parca_tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/text/utf8.h"
#include "profile-formats/proto_message.h"
#include "profile-formats/wire.h"

#define OTHER_NAME "other"

/* Fields of FlamegraphNode. The root node has no meta; its other fields have numbers one lower. */
enum { NODE_META = 1, NODE_CUMULATIVE = 2, NODE_DIFF = 3, NODE_CHILDREN = 4, ROOT_CHILDREN = 3 };
#define TAG_BYTES 1 /* size of each of their tags */
#define TAG_OF_BYTES(number) ((uint8_t)((number) << 3 | WIRE_BYTES))

struct tree_encoder {
        struct querier_call *c;
        const struct loaded_sides *l;
        const struct drawing *d;
        uint64_t *sizes; /* by node: size of its content with its descendants */
        struct buf own;  /* content of one node without children */
};

static void tree_encoder_deinit(struct tree_encoder *e)
{
        free(e->sizes);
        buf_deinit(&e->own);
}

static size_t compute_varint_size(uint64_t v)
{
        size_t n = 1;

        for (; v >= 0x80; v >>= 7)
                n++;
        return n;
}

/* A frame as protobuf messages; texts are not copied. */
struct node_meta {
        ParcaQuery__NodeMeta meta;
        ParcaQuery__Mapping mapping;
        ParcaQuery__Function function;
        ParcaQuery__Line line;
};

/* Names of ELF symbols may be any bytes; protobuf readers reject messages with invalid UTF-8. */
static char *get_valid_text(struct querier_call *c, const char *text)
{
        size_t n = text ? strlen(text) : 0;

        return !n || utf8_valid(text, n) ? (char *)(uintptr_t)(text ? text : "") : querier_copy_text(c, text, n);
}

/* False with the error when out of memory. */
static bool fill_node_meta(struct querier_call *c, struct node_meta *m, const struct query_frame *frame, int64_t line)
{
        parca_query__node_meta__init(&m->meta);
        parca_query__mapping__init(&m->mapping);
        parca_query__function__init(&m->function);
        parca_query__line__init(&m->line);
        m->meta.function = &m->function;
        if (!frame) {
                m->function.name = (char *)(uintptr_t)OTHER_NAME;
                return true;
        }
        m->function.name = get_valid_text(c, frame->function);
        m->function.system_name = get_valid_text(c, frame->linkage_name);
        m->function.filename = get_valid_text(c, frame->file);
        m->mapping.file = get_valid_text(c, frame->mapping);
        if (*frame->mapping)
                m->meta.mapping = &m->mapping;
        m->line.line = line;
        if (line)
                m->meta.line = &m->line;
        return m->function.name && m->function.system_name && m->function.filename && m->mapping.file;
}

ParcaQuery__NodeMeta *parca_make_meta(struct querier_call *c, const struct query_frame *frame, int64_t line)
{
        struct node_meta *m = querier_alloc(c, 1, sizeof *m);

        if (!m || !fill_node_meta(c, m, frame, line))
                return NULL;
        m->function.name = querier_copy_text(c, m->function.name, strlen(m->function.name));
        m->function.system_name = querier_copy_text(c, m->function.system_name, strlen(m->function.system_name));
        m->function.filename = querier_copy_text(c, m->function.filename, strlen(m->function.filename));
        m->mapping.file = querier_copy_text(c, m->mapping.file, strlen(m->mapping.file));
        return m->function.name && m->function.system_name && m->function.filename && m->mapping.file ? &m->meta : NULL;
}

/* Encode a node without its children in e->own. */
static enum status put_own_content(struct tree_encoder *e, uint32_t i)
{
        const struct drawn_node *n = &e->d->nodes[i];
        unsigned last = e->l->side_count - 1, first_value = i ? NODE_CUMULATIVE : NODE_CUMULATIVE - 1;
        struct node_meta m;

        buf_clear(&e->own);
        if (i) {
                size_t size;

                if (!fill_node_meta(e->c, &m, n->frame == DRAWN_OTHER ? NULL : &e->l->frames.items[n->frame], n->line))
                        return querier_get_failure(e->c);
                size = protobuf_c_message_get_packed_size(&m.meta.base);
                buf_append_u8(&e->own, TAG_OF_BYTES(NODE_META));
                buf_append_uleb128(&e->own, size);
                proto_message_append(&e->own, &m.meta.base);
        }
        wire_put_varint(&e->own, first_value, (uint64_t)n->total[last]);
        if (last)
                wire_put_varint(&e->own, first_value + 1, (uint64_t)n->total[1] - (uint64_t)n->total[0]);
        return buf_status(&e->own, e->c->q.err, "a node");
}

static enum status compute_node_sizes(struct tree_encoder *e)
{
        enum status st = ST_OK;

        for (uint32_t i = e->d->count; !st && i-- > 0;) {
                st = put_own_content(e, i);
                e->sizes[i] += e->own.size;
                if (i)
                        e->sizes[e->d->nodes[i].parent] += TAG_BYTES + compute_varint_size(e->sizes[i]) + e->sizes[i];
                if (!st)
                        st = work_meter_add(e->c->q.meter, 64, e->c->q.err);
        }
        return st;
}

enum status parca_tree_encode(struct querier_call *c, const struct loaded_sides *l, const struct drawing *d,
                              ProtobufCBinaryData *ret)
{
        _cleanup_(tree_encoder_deinit) struct tree_encoder e = { .c = c, .l = l, .d = d };
        uint8_t *data;
        size_t at = 0;
        enum status st;

        buf_init(&e.own, MiB(1));
        e.sizes = calloc(d->count, sizeof *e.sizes);
        if (!e.sizes)
                return error_no_memory(c->q.err);
        st = compute_node_sizes(&e);
        if (!st && e.sizes[0] > LIMIT_RESPONSE_BYTES)
                st = error_set(c->q.err, ST_TOO_BIG, "the flame graph is larger than %zu bytes",
                               (size_t)LIMIT_RESPONSE_BYTES);
        data = st ? NULL : querier_alloc(c, e.sizes[0], 1);
        if (!data)
                return st ? st : querier_get_failure(c);
        for (uint32_t i = 0; !st && i < d->count; i++) { /* each node is followed by its descendants */
                if (i) {
                        buf_clear(&e.own);
                        buf_append_u8(&e.own, TAG_OF_BYTES(d->nodes[i].parent ? NODE_CHILDREN : ROOT_CHILDREN));
                        buf_append_uleb128(&e.own, e.sizes[i]);
                        memcpy(data + at, e.own.data, e.own.size);
                        at += e.own.size;
                }
                st = put_own_content(&e, i);
                if (st)
                        break;
                assert(e.own.size <= e.sizes[0] - at); /* equal to the computed size */
                memcpy(data + at, e.own.data, e.own.size);
                at += e.own.size;
        }
        *ret = (ProtobufCBinaryData){ .len = at, .data = data };
        return st;
}
