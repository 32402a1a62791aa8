/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/s3/s3_upload.h"

#include <string.h>
#include <sys/random.h>

#include "common/limits.h"
#include "common/text.h"
#include "storage/s3/s3_location.h"
#include "storage/s3/s3_xml.h"

#define ID_BYTES 16
#define ID_TEXT_BYTES (2 * ID_BYTES + 1)
#define UPLOAD_ID_BYTES 1025
#define RACE_ATTEMPTS 5

static enum status make_upload_token(char ret[static ID_TEXT_BYTES], struct error *err)
{
        uint8_t id[ID_BYTES];

        if (getrandom(id, sizeof id, 0) != sizeof id)
                return error_os(err, errno, "cannot get random bytes");
        hex_encode(id, sizeof id, ret);
        return ST_OK;
}

/* ST_OK when the object is the one of this upload, ST_BUSY when it is another's, ST_NOT_FOUND without one. */
static enum status check_winner(struct s3_client *c, const char *key, const char *token, struct error *err)
{
        const struct s3_request q = { .method = "HEAD", .key = key };
        _cleanup_s3_response_ struct s3_response response = { 0 };
        enum status st = s3_send(c, &q, &response, err);

        if (st)
                return st;
        return strcmp(response.upload, token) == 0 ? ST_OK
                                                   : error_set(err, ST_BUSY, "'%.150s' was written by another", key);
}

/* Completing an upload may fail after the answer has begun with 200. One that was cut says nothing. */
static enum status check_answer_of_completion(const struct s3_request *q, const struct buf *body, struct error *err)
{
        char failure[64];
        enum status st = s3_xml_find(body->data, body->size, "Code", failure, sizeof failure, NULL);

        if (!st)
                return error_set(err, ST_OS, "the object store could not complete '%.120s': %s", q->key, failure);
        return st == ST_BAD_DATA ? error_set(err, ST_OS, "the object store's answer about '%.120s' was cut", q->key)
                                 : ST_OK;
}

/* One try of the request that makes the object, and what became of it. */
static enum status send_deciding_request(struct s3_client *c, const struct s3_request *q, const char *token,
                                         enum storage_mode mode, bool *is_open_ret, struct error *err)
{
        _cleanup_s3_response_ struct s3_response response = { 0 };
        enum status st = s3_send(c, q, &response, err), winner;

        *is_open_ret = false;
        if (!st && response.body.size)
                st = check_answer_of_completion(q, &response.body, err);
        if (st != ST_OS && st != ST_BUSY && st != ST_NOT_FOUND)
                return st;
        winner = check_winner(c, q->key, token, NULL);
        if (!winner)
                return ST_OK;
        if (winner == ST_BUSY && mode == STORAGE_NEW)
                return error_set(err, ST_BUSY, "'%.150s' exists", q->key);
        *is_open_ret = winner == ST_NOT_FOUND || winner == ST_BUSY;
        return st == ST_OS ? st : error_set(err, ST_OS, "the object store has a conflict about '%.120s'", q->key);
}

static enum status decide_upload(struct s3_client *c, const struct s3_request *q, const char *token,
                                 enum storage_mode mode, struct error *err)
{
        bool is_open = true;
        enum status st = ST_OS;

        for (unsigned i = 0; st && is_open && i < RACE_ATTEMPTS; i++)
                st = send_deciding_request(c, q, token, mode, &is_open, err);
        return st;
}

static void add_header(struct s3_request *q, const char *name, const char *value)
{
        q->headers[q->header_count++] = (struct s3_header){ name, value };
}

static void add_object_headers(const struct s3_client *c, struct s3_request *q, const char *token)
{
        const struct s3_location *l = s3_client_location(c);

        add_header(q, "x-amz-meta-cairn-upload", token);
        if (l->encryption)
                add_header(q, "x-amz-server-side-encryption", l->encryption);
        if (l->kms_key)
                add_header(q, "x-amz-server-side-encryption-aws-kms-key-id", l->kms_key);
}

static enum status put_whole(struct s3_client *c, const char *key, int fd, uint64_t size, const char *token,
                             enum storage_mode mode, struct error *err)
{
        struct s3_request q = { .method = "PUT", .key = key, .fd = fd, .range = { 0, size } };

        add_object_headers(c, &q, token);
        if (mode == STORAGE_NEW)
                add_header(&q, "if-none-match", "*");
        return decide_upload(c, &q, token, mode, err);
}

/* ---- in parts ---- */

static enum status begin_parts(struct s3_client *c, const char *key, const char *token,
                               char upload_id[static UPLOAD_ID_BYTES], struct error *err)
{
        struct s3_request q = { .method = "POST", .key = key, .query = "uploads=", .wants_xml = true };
        _cleanup_s3_response_ struct s3_response response = { 0 };
        enum status st;

        add_object_headers(c, &q, token);
        st = s3_send(c, &q, &response, err);
        return st ? st
                  : s3_xml_find(response.body.data, response.body.size, "UploadId", upload_id, UPLOAD_ID_BYTES, err);
}

static enum status put_part(struct s3_client *c, const char *key, const char *upload_id, unsigned number, int fd,
                            const struct file_range *range, struct buf *list, struct error *err)
{
        struct s3_request q = { .method = "PUT", .key = key, .fd = fd, .range = *range };
        _cleanup_s3_response_ struct s3_response response = { 0 };
        _cleanup_buf_ struct buf query;
        enum status st;

        buf_init(&query, LIMIT_S3_REQUEST_TEXT_BYTES);
        buf_printf(&query, "partNumber=%u&uploadId=", number);
        buf_append_url_encoded(&query, upload_id, "");
        q.query = buf_cstr(&query);
        st = q.query ? s3_send(c, &q, &response, err) : error_no_memory(err);
        if (st)
                return st;
        return buf_printf(list, "<Part><PartNumber>%u</PartNumber><ETag>\"%s\"</ETag></Part>", number, response.etag);
}

static enum status put_all_parts(struct s3_client *c, const char *key, const char *upload_id, int fd, uint64_t size,
                                 struct buf *list, struct error *err)
{
        uint64_t part = S3_PART_BYTES;
        unsigned number = 0;
        enum status st = ST_OK;

        while (size / part >= S3_PARTS_MAX)
                part *= 2;
        buf_printf(list, "<CompleteMultipartUpload>");
        for (uint64_t at = 0; !st && at < size; at += part) {
                const struct file_range range = { at, part < size - at ? part : size - at };

                st = put_part(c, key, upload_id, ++number, fd, &range, list, err);
        }
        buf_printf(list, "</CompleteMultipartUpload>");
        return st ? st : buf_status(list, err, "the list of an upload's parts");
}

static enum status put_in_parts(struct s3_client *c, const char *key, int fd, uint64_t size, const char *token,
                                enum storage_mode mode, struct error *err)
{
        struct s3_request q = { .method = "POST", .key = key, .may_take_minutes = true };
        char upload_id[UPLOAD_ID_BYTES];
        _cleanup_buf_ struct buf list, query;
        enum status st = begin_parts(c, key, token, upload_id, err);

        buf_init(&list, MiB(2));
        buf_init(&query, LIMIT_S3_REQUEST_TEXT_BYTES);
        if (st)
                return st;
        st = put_all_parts(c, key, upload_id, fd, size, &list, err);
        buf_printf(&query, "uploadId=");
        buf_append_url_encoded(&query, upload_id, "");
        q.query = buf_cstr(&query);
        q.body = list.data;
        q.body_size = list.size;
        if (mode == STORAGE_NEW)
                add_header(&q, "if-none-match", "*");
        if (!st)
                st = q.query ? decide_upload(c, &q, token, mode, err) : error_no_memory(err);
        if (st && s3_abort_upload(c, key, upload_id, NULL))
                return st; /* storage_remove_unfinished() will find it */
        return st;
}

enum status s3_abort_upload(struct s3_client *c, const char *key, const char *upload_id, struct error *err)
{
        struct s3_request q = { .method = "DELETE", .key = key };
        _cleanup_s3_response_ struct s3_response response = { 0 };
        _cleanup_buf_ struct buf query;

        buf_init(&query, LIMIT_S3_REQUEST_TEXT_BYTES);
        buf_printf(&query, "uploadId=");
        buf_append_url_encoded(&query, upload_id, "");
        q.query = buf_cstr(&query);
        return q.query ? s3_send(c, &q, &response, err) : error_no_memory(err);
}

enum status s3_upload_file(struct s3_client *c, const char *key, int fd, uint64_t size, enum storage_mode mode,
                           struct error *err)
{
        char token[ID_TEXT_BYTES];
        enum status st = make_upload_token(token, err);

        if (st)
                return st;
        return size > S3_PART_BYTES ? put_in_parts(c, key, fd, size, token, mode, err)
                                    : put_whole(c, key, fd, size, token, mode, err);
}
