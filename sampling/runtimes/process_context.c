/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/process_context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "profile-formats/sample_labels.h"
#include "profile-formats/wire.h"

#define SIGNATURE "OTEL_CTX"
#define VERSION 2
#define ATTEMPTS 3

struct context_head {
        char signature[8];
        uint32_t version;
        uint32_t payload_bytes;
        uint64_t published_ns; /* 0: it is being changed */
        uint64_t payload;      /* address */
};
_Static_assert(sizeof(struct context_head) == 32, "no padding");

/* Numbers of fields. */
enum { CONTEXT_RESOURCE = 1, CONTEXT_EXTRA = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum { ANY_STRING = 1, ANY_BOOL = 2, ANY_INT = 3, ANY_DOUBLE = 4, ANY_ARRAY = 5 };
enum { ARRAY_VALUES = 1 };

void process_context_deinit(struct process_context *c)
{
        arena_deinit(&c->arena);
        *c = (struct process_context){ 0 };
}

/* ---- values ---- */

/* The text of a value: of strings cut at a limit, of numbers in decimal. NULL for other values, and without memory. */
static const char *copy_value(struct process_context *c, struct reader value)
{
        struct wire_field f;
        char text[40];

        while (wire_next(&value, &f)) {
                double number;

                switch (f.number) {
                case ANY_STRING:
                        if (f.type == WIRE_BYTES)
                                return arena_strndup(&c->arena, (const char *)f.bytes.data,
                                                     utf8_truncate(f.bytes.data, f.bytes.size, LIMIT_CONTEXT_VALUE));
                        break;
                case ANY_BOOL:
                        if (f.type == WIRE_VARINT)
                                return f.value ? "true" : "false";
                        break;
                case ANY_INT:
                        if (f.type == WIRE_VARINT)
                                return arena_strndup(&c->arena, text,
                                                     (size_t)snprintf(text, sizeof text, "%" PRId64, (int64_t)f.value));
                        break;
                case ANY_DOUBLE:
                        if (f.type != WIRE_FIXED64)
                                break;
                        memcpy(&number, &f.value, sizeof number);
                        return arena_strndup(&c->arena, text, (size_t)snprintf(text, sizeof text, "%.15g", number));
                }
        }
        return NULL;
}

/* A key and the message of its value, borrowed. False without either. */
static bool read_key_value(struct reader attribute, struct reader *key_ret, struct reader *value_ret)
{
        bool has_key = false, has_value = false;
        struct wire_field f;

        while (wire_next(&attribute, &f)) {
                if (f.type != WIRE_BYTES)
                        continue;
                if (f.number == KEY_VALUE_KEY) {
                        *key_ret = f.bytes;
                        has_key = f.bytes.size > 0;
                } else if (f.number == KEY_VALUE_VALUE) {
                        *value_ret = f.bytes;
                        has_value = true;
                }
        }
        return has_key && has_value && !attribute.failed;
}

static bool is_key(const struct reader *key, const char *text)
{
        return key->size == strlen(text) && memcmp(key->data, text, key->size) == 0;
}

/* ---- attributes ---- */

static void add_resource_label(struct process_context *c, struct reader attribute)
{
        struct reader key, value;
        struct context_label label;

        if (!read_key_value(attribute, &key, &value))
                return;
        if (c->label_count == LIMIT_CONTEXT_LABELS || key.size > LIMIT_LABEL_KEY_BYTES) {
                c->dropped++;
                return;
        }
        label = (struct context_label){ arena_strndup(&c->arena, (const char *)key.data, key.size),
                                        copy_value(c, value) };
        if (label.key && *label.key && label.value && *label.value)
                c->labels[c->label_count++] = label;
        else
                c->dropped++;
}

/* The names of the attributes of threads, by number: a value that is no text takes its number too. */
static void add_attribute_names(struct process_context *c, struct reader value)
{
        struct wire_field array, f;

        c->names = arena_alloc_array(&c->arena, CONTEXT_NAMES_MAX, sizeof *c->names);
        if (!c->names)
                return;
        while (wire_next(&value, &array)) {
                if (array.number != ANY_ARRAY || array.type != WIRE_BYTES)
                        continue;
                while (wire_next(&array.bytes, &f)) {
                        if (f.number != ARRAY_VALUES || f.type != WIRE_BYTES)
                                continue;
                        if (c->name_count == CONTEXT_NAMES_MAX) {
                                c->dropped++;
                                return;
                        }
                        c->names[c->name_count++] = copy_value(c, f.bytes);
                }
        }
}

static void read_extra_attribute(struct process_context *c, struct reader attribute)
{
        struct reader key, value;
        const char *text;

        if (!read_key_value(attribute, &key, &value))
                return;
        if (is_key(&key, "threadlocal.schema_version")) {
                text = copy_value(c, value);
                c->has_threads = text && (strcmp(text, "tls_v1") == 0 || strcmp(text, "tlsdesc_v1_dev") == 0);
        } else if (is_key(&key, "threadlocal.attribute_key_map") && !c->name_count) {
                add_attribute_names(c, value);
        }
}

/* False: malformed, or without memory. */
static bool decode_payload(struct process_context *c, const uint8_t *bytes, size_t size)
{
        struct reader message;
        struct wire_field f, attribute;

        c->labels = arena_alloc_array(&c->arena, LIMIT_CONTEXT_LABELS, sizeof *c->labels);
        if (!c->labels)
                return false;
        reader_init(&message, bytes, size);
        while (wire_next(&message, &f)) {
                if (f.type != WIRE_BYTES)
                        continue;
                if (f.number == CONTEXT_EXTRA)
                        read_extra_attribute(c, f.bytes);
                if (f.number != CONTEXT_RESOURCE)
                        continue;
                while (wire_next(&f.bytes, &attribute))
                        if (attribute.number == RESOURCE_ATTRIBUTES && attribute.type == WIRE_BYTES)
                                add_resource_label(c, attribute.bytes);
                if (f.bytes.failed)
                        return false;
        }
        return !message.failed;
}

/* ---- reading ---- */

static enum process_context_state read_process_context_once(const struct process_memory *m, uint64_t address,
                                                            struct process_context *c)
{
        struct process_context now = { 0 };
        struct context_head head, after;
        _cleanup_free_ uint8_t *payload = NULL;
        bool is_decoded = false;

        if (!m->read(m->ctx, address, &head, sizeof head))
                return PROCESS_CONTEXT_BAD;
        if (memcmp(head.signature, SIGNATURE, sizeof head.signature) != 0 || head.version != VERSION)
                return PROCESS_CONTEXT_NONE;
        if (!head.published_ns)
                return PROCESS_CONTEXT_CHANGING;
        if (head.published_ns == c->published_ns)
                return PROCESS_CONTEXT_UNCHANGED;
        arena_init(&now.arena, LIMIT_CONTEXT_BYTES);
        now.published_ns = head.published_ns;
        if (head.payload_bytes <= LIMIT_CONTEXT_PAYLOAD) {
                payload = malloc(head.payload_bytes + 1u);
                is_decoded = payload && m->read(m->ctx, head.payload, payload, head.payload_bytes) &&
                             decode_payload(&now, payload, head.payload_bytes);
        }
        if (!m->read(m->ctx, address, &after, sizeof after) || memcmp(&after, &head, sizeof head) != 0) {
                process_context_deinit(&now);
                return PROCESS_CONTEXT_CHANGING;
        }
        if (!is_decoded) {
                process_context_deinit(&now);
                return PROCESS_CONTEXT_BAD;
        }
        process_context_deinit(c);
        *c = now;
        return PROCESS_CONTEXT_READ;
}

enum process_context_state process_context_read(const struct process_memory *m, uint64_t address,
                                                struct process_context *c)
{
        enum process_context_state state = PROCESS_CONTEXT_CHANGING;

        for (int i = 0; i < ATTEMPTS && state == PROCESS_CONTEXT_CHANGING; i++)
                state = read_process_context_once(m, address, c);
        return state;
}
