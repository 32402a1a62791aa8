/* SPDX-License-Identifier: Apache-2.0 */
#include "server/routes/connect_question.h"

#include <string.h>

#include "common/json_value.h"
#include "common/limits.h"
#include "profile-formats/proto/connect_upload.pb-c.h"
#include "profile-formats/proto_message.h"

#define REQUEST_MEMORY_BYTES MiB(8) /* decoded from a body of at most 64 KiB */

/* A longer text is none: no id is, and a name can do without. */
static void take_text(char *to, size_t size, const char *text, size_t n)
{
        if (n < size && !memchr(text, 0, n)) {
                memcpy(to, text, n);
                to[n] = 0;
        }
}

static void copy_proto_text(char *to, size_t size, const ProtobufCBinaryData *text)
{
        if (text->len) /* data is NULL in a field that is absent or empty */
                take_text(to, size, (const char *)text->data, text->len);
}

static enum status read_proto(const uint8_t *body, size_t n, bool has_file, struct connect_question *q,
                              struct error *err)
{
        _cleanup_arena_ struct arena memory;
        const void *message;
        enum status st;

        arena_init_budget(&memory, REQUEST_MEMORY_BYTES, MEMORY_BODIES);
        st = proto_message_decode(has_file ? &connect_upload__should_initiate_upload_request__descriptor
                                           : &connect_upload__upload_finished_request__descriptor,
                                  body, n, &memory, "request", &message, err);
        if (st)
                return st;
        if (has_file) {
                const ConnectUpload__ShouldInitiateUploadRequest *request = message;

                if (request->file) {
                        copy_proto_text(q->gnu_id, sizeof q->gnu_id, &request->file->gnu_build_id);
                        copy_proto_text(q->otel_id, sizeof q->otel_id, &request->file->otel_file_id);
                        copy_proto_text(q->name, sizeof q->name, &request->file->name);
                }
        } else {
                const ConnectUpload__UploadFinishedRequest *request = message;

                copy_proto_text(q->gnu_id, sizeof q->gnu_id, &request->gnu_build_id);
        }
        return ST_OK;
}

/* Both spellings, as protobuf's own parsers take them; "" where both are absent or too long. */
static void json_text(const struct json_value *o, const char *key, const char *other, char *to, size_t size)
{
        if (!json_value_text(o, key, to, size))
                json_value_text(o, other, to, size);
}

static enum status read_json(const uint8_t *body, size_t n, bool has_file, struct connect_question *q,
                             struct error *err)
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

enum status connect_question_read(const uint8_t *body, size_t n, bool proto, bool has_file,
                                  struct connect_question *ret, struct error *err)
{
        *ret = (struct connect_question){ .name = "" };
        return proto ? read_proto(body, n, has_file, ret, err) : read_json(body, n, has_file, ret, err);
}
