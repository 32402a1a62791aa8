/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/thread_context.h"

#include <string.h>

#include "common/reader.h"
#include "common/text.h"

struct context_record {
        uint8_t trace_id[16], span_id[8];
        uint8_t kind, trace_flags; /* enum context_record_kind */
        uint16_t attribute_bytes;
};
_Static_assert(sizeof(struct context_record) == CONTEXT_HEAD_BYTES, "no padding");

/* The last value of a key counts. */
static void put_thread_label(struct thread_context *c, const char *key, const char *value)
{
        for (size_t i = 0; i < c->label_count; i++) {
                if (strcmp(c->labels[i].key, key) == 0) {
                        c->labels[i].value = value;
                        return;
                }
        }
        if (c->label_count < THREAD_LABELS_MAX)
                c->labels[c->label_count++] = (struct context_label){ key, value };
}

/* False unless the text is that many bytes, at most 16, in hexadecimal. */
static bool decode_hex_id(const char *text, uint8_t *ret, size_t bytes)
{
        uint8_t id[16];

        if (strlen(text) != 2 * bytes || !hex_decode(text, bytes, id))
                return false;
        memcpy(ret, id, bytes);
        return true;
}

/* Labels of Go. Those by which tracers name the span of a goroutine become the link. */
static void put_text_label(struct thread_context *c, const char *key, const char *value)
{
        if ((strcmp(key, "trace_id") == 0 && decode_hex_id(value, c->trace_id, sizeof c->trace_id)) ||
            (strcmp(key, "span_id") == 0 && decode_hex_id(value, c->span_id, sizeof c->span_id)))
                return;
        if (*key && *value)
                put_thread_label(c, key, value);
}

static const char *copy_context_text(char **to_io, const uint8_t *from, uint8_t n)
{
        char *to = *to_io;

        memcpy(to, from, n);
        to[n] = 0;
        *to_io += n + 1;
        return to;
}

static void decode_text_attributes(struct reader *r, struct thread_context *ret)
{
        char *text = ret->texts;
        uint8_t key_bytes, value_bytes;
        const uint8_t *key, *value;

        while (reader_u8(r, &key_bytes) && reader_u8(r, &value_bytes) && reader_bytes(r, key_bytes, &key) &&
               reader_bytes(r, value_bytes, &value)) {
                const char *name = copy_context_text(&text, key, key_bytes); /* two bytes of sizes, two of ends */

                put_text_label(ret, name, copy_context_text(&text, value, value_bytes));
        }
}

void thread_context_decode(const uint64_t *words, uint32_t count, const struct process_context *names,
                           struct thread_context *ret)
{
        struct context_record record;
        char *text = ret->texts;
        struct reader r;
        uint8_t key, n;
        const uint8_t *value;

        memset(ret->trace_id, 0, sizeof ret->trace_id);
        memset(ret->span_id, 0, sizeof ret->span_id);
        ret->label_count = 0;
        if (count * sizeof *words < sizeof record || count > CONTEXT_WORDS_MAX)
                return;
        memcpy(&record, words, sizeof record);
        memcpy(ret->trace_id, record.trace_id, sizeof ret->trace_id);
        memcpy(ret->span_id, record.span_id, sizeof ret->span_id);
        if (record.attribute_bytes > count * sizeof *words - sizeof record)
                return;
        reader_init(&r, (const uint8_t *)words + sizeof record, record.attribute_bytes);
        if (record.kind == CONTEXT_RECORD_TEXTS) {
                decode_text_attributes(&r, ret);
                return;
        }
        while (reader_u8(&r, &key) && reader_u8(&r, &n) && reader_bytes(&r, n, &value)) {
                if (key >= names->name_count || !names->names[key] || !*names->names[key])
                        continue;
                /* the two bytes before a value leave room for its end */
                put_thread_label(ret, names->names[key], copy_context_text(&text, value, n));
        }
}
