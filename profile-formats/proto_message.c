/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/proto_message.h"

#include <assert.h>
#include <string.h>

#include "common/text/utf8.h"
#include "profile-formats/wire.h"

/* ---- checks before decoding ------------------------------------------------------------------ */

static bool is_packable_type(ProtobufCType type)
{
        return type != PROTOBUF_C_TYPE_STRING && type != PROTOBUF_C_TYPE_BYTES && type != PROTOBUF_C_TYPE_MESSAGE;
}

static enum wire_type get_scalar_wire_type(ProtobufCType type)
{
        switch (type) {
        case PROTOBUF_C_TYPE_FIXED32:
        case PROTOBUF_C_TYPE_SFIXED32:
        case PROTOBUF_C_TYPE_FLOAT:
                return WIRE_FIXED32;
        case PROTOBUF_C_TYPE_FIXED64:
        case PROTOBUF_C_TYPE_SFIXED64:
        case PROTOBUF_C_TYPE_DOUBLE:
                return WIRE_FIXED64;
        case PROTOBUF_C_TYPE_STRING:
        case PROTOBUF_C_TYPE_BYTES:
        case PROTOBUF_C_TYPE_MESSAGE:
                return WIRE_BYTES;
        default:
                return WIRE_VARINT;
        }
}

static bool has_expected_wire_type(const ProtobufCFieldDescriptor *field, enum wire_type type)
{
        if (type == get_scalar_wire_type(field->type))
                return true;
        return type == WIRE_BYTES && field->label == PROTOBUF_C_LABEL_REPEATED && is_packable_type(field->type);
}

/* protobuf-c would end the text at its first NUL. */
static bool is_whole_text(const struct reader *r)
{
        const char *text = (const char *)r->data + r->pos;
        size_t n = r->size - r->pos;

        return !n || (!memchr(text, 0, n) && utf8_valid(text, n));
}

/*
 * False when it was seen before. protobuf-c merges the occurrences of a message, and copies the elements so far with
 * each, which is quadratic; no encoder writes a field of this kind twice.
 */
static bool mark_field_seen(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field,
                            uint64_t *seen)
{
        const unsigned position = (unsigned)(field - type->fields);
        const uint64_t bit = UINT64_C(1) << position;
        const bool fresh = !(*seen & bit);

        assert(position < 64);
        *seen |= bit;
        return fresh;
}

static enum status check_message(const ProtobufCMessageDescriptor *type, struct reader *r, unsigned depth,
                                 const char *what, struct error *err)
{
        struct wire_field f;
        uint64_t seen = 0; /* fields that are one message each, by their position in the descriptor */

        if (depth > PROTO_DEPTH_MAX)
                return error_at(err, ST_BAD_DATA, r->base, "%s has messages nested more than %d deep", what,
                                PROTO_DEPTH_MAX);
        while (wire_next(r, &f)) {
                const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, f.number);
                enum status st;

                if (!field)
                        continue;
                if (!has_expected_wire_type(field, f.type))
                        return error_at(err, ST_BAD_DATA, r->base + r->pos, "%s has field '%s' with a wrong wire type",
                                        what, field->name);
                if (field->type == PROTOBUF_C_TYPE_STRING && !is_whole_text(&f.bytes))
                        return error_at(err, ST_BAD_DATA, r->base + r->pos,
                                        "%s has field '%s' with NUL or invalid UTF-8", what, field->name);
                if (field->type != PROTOBUF_C_TYPE_MESSAGE)
                        continue;
                if (field->label != PROTOBUF_C_LABEL_REPEATED && !mark_field_seen(type, field, &seen))
                        return error_at(err, ST_BAD_DATA, r->base + r->pos, "%s has field '%s' twice", what,
                                        field->name);
                st = check_message(field->descriptor, &f.bytes, depth + 1, what, err);
                if (st)
                        return st;
        }
        return r->failed ? reader_error(r, err, what) : ST_OK;
}

/* ---- decoding and encoding ------------------------------------------------------------------- */

static void *alloc_from_arena(void *memory, size_t size)
{
        return arena_alloc(memory, size);
}

static void keep_until_arena_ends(void *memory, void *p)
{
        (void)memory;
        (void)p;
}

enum status proto_message_decode(const ProtobufCMessageDescriptor *type, const void *data, size_t n,
                                 struct arena *memory, const char *what, const void **ret, struct error *err)
{
        ProtobufCAllocator allocator = { alloc_from_arena, keep_until_arena_ends, memory };
        const ProtobufCMessage *message;
        struct reader r;
        enum status st;

        assert(type->magic == PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC);
        assert(memory->max > 0);
        reader_init(&r, data, n);
        st = check_message(type, &r, 1, what, err);
        if (st)
                return st;
        memory->failed = ST_OK;
        message = protobuf_c_message_unpack(type, &allocator, n, data);
        if (!message)
                return memory->failed ? arena_error(memory, err, what)
                                      : error_set(err, ST_BAD_DATA, "%s is malformed", what);
        assert(message->descriptor == type);
        *ret = message;
        return ST_OK;
}

void proto_message_append(struct buf *b, const ProtobufCMessage *message)
{
        size_t size, written;
        uint8_t *to;

        assert(protobuf_c_message_check(message));
        size = protobuf_c_message_get_packed_size(message);
        if (size == 0)
                return;
        to = buf_reserve(b, size);
        if (!to)
                return;
        written = protobuf_c_message_pack(message, to);
        assert(written == size);
        buf_commit(b, written);
}
