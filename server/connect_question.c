/* SPDX-License-Identifier: Apache-2.0 */
#include "server/connect_question.h"

#include <string.h>

#include "common/json_value.h"
#include "profile-formats/wire.h"

enum { SHOULD_FILE = 1 };
enum { FILE_GNU_ID = 1, FILE_OTEL_ID = 3, FILE_NAME = 4 };
enum { FINISHED_GNU_ID = 1 };

/* A longer text is none: no id is, and a name can do without. */
static void take_text(char *to, size_t size, const char *text, size_t n)
{
        if (n < size && !memchr(text, 0, n)) {
                memcpy(to, text, n);
                to[n] = 0;
        }
}

static enum status read_proto_file(struct reader r, struct connect_question *q, struct error *err)
{
        struct wire_field f;

        while (wire_next(&r, &f)) {
                const char *text = (const char *)f.bytes.data;

                if (f.type != WIRE_BYTES)
                        continue;
                if (f.number == FILE_GNU_ID)
                        take_text(q->gnu_id, sizeof q->gnu_id, text, f.bytes.size);
                else if (f.number == FILE_OTEL_ID)
                        take_text(q->otel_id, sizeof q->otel_id, text, f.bytes.size);
                else if (f.number == FILE_NAME)
                        take_text(q->name, sizeof q->name, text, f.bytes.size);
        }
        return r.failed ? reader_error(&r, err, "request") : ST_OK;
}

static enum status read_proto(const uint8_t *body, size_t n, bool has_file, struct connect_question *q, struct error *err)
{
        struct wire_field f;
        struct reader r;
        enum status st = ST_OK;

        reader_init(&r, body, n);
        while (!st && wire_next(&r, &f)) {
                if (f.type != WIRE_BYTES)
                        continue;
                if (has_file && f.number == SHOULD_FILE)
                        st = read_proto_file(f.bytes, q, err);
                else if (!has_file && f.number == FINISHED_GNU_ID)
                        take_text(q->gnu_id, sizeof q->gnu_id, (const char *)f.bytes.data, f.bytes.size);
        }
        return st ? st : r.failed ? reader_error(&r, err, "request") : ST_OK;
}

/* Both spellings, as protobuf's own parsers take them; "" where both are absent or too long. */
static void json_text(const struct json_value *o, const char *key, const char *other, char *to, size_t size)
{
        if (!json_value_text(o, key, to, size))
                json_value_text(o, other, to, size);
}

static enum status read_json(const uint8_t *body, size_t n, bool has_file, struct connect_question *q, struct error *err)
{
        struct json_value request, file;
        enum status st = json_value_parse(body, n, &request, err);

        if (st)
                return st;
        file = request;
        if (!has_file || json_value_member(&request, "file", &file)) {
                json_text(&file, "gnuBuildId", "gnu_build_id", q->gnu_id, sizeof q->gnu_id);
                json_text(&file, "otelFileId", "otel_file_id", q->otel_id, sizeof q->otel_id);
                json_text(&file, "name", "name", q->name, sizeof q->name);
        }
        return ST_OK;
}

enum status connect_question_read(const uint8_t *body, size_t n, bool proto, bool has_file, struct connect_question *ret,
                                  struct error *err)
{
        *ret = (struct connect_question){ .name = "" };
        return proto ? read_proto(body, n, has_file, ret, err) : read_json(body, n, has_file, ret, err);
}
