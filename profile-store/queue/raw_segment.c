/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/queue/raw_segment.h"

#include <string.h>

#include "common/limits.h"

#define VERSION 1

static const uint8_t segment_magic[8] = "CAIRNRQ\n";
static const uint8_t record_magic[4] = "RECD";

static void store_segment_u32(uint8_t *to, uint32_t v)
{
        for (int i = 0; i < 4; i++)
                to[i] = (uint8_t)(v >> (8 * i));
}

static void store_segment_u64(uint8_t *to, uint64_t v)
{
        for (int i = 0; i < 8; i++)
                to[i] = (uint8_t)(v >> (8 * i));
}

void raw_segment_encode_header(uint64_t first_position, uint8_t ret[static RAW_SEGMENT_HEADER_BYTES])
{
        memcpy(ret, segment_magic, sizeof segment_magic);
        store_segment_u32(ret + 8, VERSION);
        store_segment_u32(ret + 12, 0);
        store_segment_u64(ret + 16, first_position);
        store_segment_u64(ret + 24, hash_bytes64(ret, 24));
}

void raw_record_encode_header(const struct raw_record *record, uint8_t ret[static RAW_RECORD_HEADER_BYTES])
{
        memcpy(ret, record_magic, sizeof record_magic);
        store_segment_u32(ret + 4, record->payload_size);
        store_segment_u64(ret + 8, record->position);
        store_segment_u64(ret + 16, (uint64_t)record->received_unix_ns);
        memcpy(ret + 24, record->batch_id.bytes, sizeof record->batch_id.bytes);
        store_segment_u64(ret + 40, hash_bytes64(record->payload, record->payload_size));
        store_segment_u64(ret + 48, hash_bytes64(ret, 48));
}

enum status raw_segment_begin(struct raw_segment *s, const void *data, size_t n, const char *name, struct error *err)
{
        const uint8_t *magic;
        uint32_t version, reserved;
        uint64_t first, checksum;

        *s = (struct raw_segment){ 0 };
        reader_init(&s->reader, data, n);
        if (!reader_bytes(&s->reader, sizeof segment_magic, &magic) || !reader_u32(&s->reader, &version) ||
            !reader_u32(&s->reader, &reserved) || !reader_u64(&s->reader, &first) ||
            !reader_u64(&s->reader, &checksum) || memcmp(magic, segment_magic, sizeof segment_magic) != 0 ||
            checksum != hash_bytes64(data, 24))
                return error_set(err, ST_BAD_DATA,
                                 "cannot read '%s': not a raw queue segment, or its header is damaged", name);
        if (version != VERSION)
                return error_set(err, ST_UNSUPPORTED, "cannot read '%s': raw queue version %u, this program reads %u",
                                 name, version, VERSION);
        s->next_position = first;
        s->valid_end = s->reader.pos;
        return ST_OK;
}

void raw_segment_continue(struct raw_segment *s, const void *data, size_t n, uint64_t position)
{
        *s = (struct raw_segment){ .next_position = position };
        reader_init(&s->reader, data, n);
}

bool raw_segment_next(struct raw_segment *s, struct raw_record *ret)
{
        struct raw_record record = { 0 };
        const uint8_t *header, *payload;
        struct reader r;
        uint64_t received, payload_sum, header_sum;

        if (!reader_bytes(&s->reader, RAW_RECORD_HEADER_BYTES, &header) ||
            memcmp(header, record_magic, sizeof record_magic) != 0)
                return false;
        reader_init(&r, header, RAW_RECORD_HEADER_BYTES);
        if (!reader_skip(&r, sizeof record_magic) || !reader_u32(&r, &record.payload_size) ||
            !reader_u64(&r, &record.position) || !reader_u64(&r, &received) ||
            !reader_skip(&r, sizeof record.batch_id.bytes) || !reader_u64(&r, &payload_sum) ||
            !reader_u64(&r, &header_sum))
                return false;
        if (header_sum != hash_bytes64(header, 48) || record.position != s->next_position ||
            record.payload_size > LIMIT_QUEUE_RECORD_BYTES ||
            !reader_bytes(&s->reader, record.payload_size, &payload) ||
            payload_sum != hash_bytes64(payload, record.payload_size))
                return false;
        memcpy(record.batch_id.bytes, header + 24, sizeof record.batch_id.bytes);
        record.received_unix_ns = (int64_t)received;
        record.payload = payload;
        s->next_position++;
        s->valid_end = s->reader.pos;
        *ret = record;
        return true;
}
