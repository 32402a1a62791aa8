/* SPDX-License-Identifier: Apache-2.0 */
#include "sending/spool_file.h"

#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "common/reader.h"

#define VERSION 1
#define CHECKED_BYTES (SPOOL_FILE_HEADER_BYTES - 8)

static const uint8_t magic[8] = "CAIRNSPB";

void spool_file_write_header(const struct spool_batch *b, uint8_t ret[static SPOOL_FILE_HEADER_BYTES])
{
        memcpy(ret, magic, sizeof magic);
        store_le64(ret + 8, VERSION); /* plus four reserved bytes */
        store_le64(ret + 16, b->number);
        store_le64(ret + 24, (uint64_t)b->made_unix_ns);
        memcpy(ret + 32, b->id.bytes, sizeof b->id.bytes);
        store_le64(ret + 48, b->payload_size);
        store_le64(ret + 56, hash_bytes64(b->payload, b->payload_size));
        store_le64(ret + 64, hash_bytes64(ret, CHECKED_BYTES));
}

enum spool_version spool_file_judge_version(const uint8_t head[static SPOOL_FILE_HEADER_BYTES])
{
        if (load_le64(head + CHECKED_BYTES) != hash_bytes64(head, CHECKED_BYTES))
                return SPOOL_VERSION_UNKNOWN;
        return memcmp(head, magic, sizeof magic) == 0 && load_le64(head + sizeof magic) == VERSION
                       ? SPOOL_VERSION_OWN
                       : SPOOL_VERSION_OTHER;
}

enum status spool_file_parse(const void *data, size_t n, uint64_t number, const char *name, struct spool_batch *ret,
                             struct error *err)
{
        struct reader r;
        const uint8_t *found, *id, *payload;
        uint32_t version, reserved;
        uint64_t own_number, made, size, payload_checksum, checksum;

        reader_init(&r, data, n);
        if (!reader_bytes(&r, sizeof magic, &found) || !reader_u32(&r, &version) || !reader_u32(&r, &reserved) ||
            !reader_u64(&r, &own_number) || !reader_u64(&r, &made) || !reader_bytes(&r, sizeof ret->id.bytes, &id) ||
            !reader_u64(&r, &size) || !reader_u64(&r, &payload_checksum) || !reader_u64(&r, &checksum))
                return error_set(err, ST_BAD_DATA, "cannot read '%s': its header is truncated", name);
        if (memcmp(found, magic, sizeof magic) != 0)
                return error_set(err, ST_BAD_DATA, "cannot read '%s': it is not a spooled batch", name);
        if (checksum != hash_bytes64(data, CHECKED_BYTES) || reserved)
                return error_set(err, ST_BAD_DATA, "cannot read '%s': its header is damaged", name);
        if (version != VERSION)
                return error_set(err, ST_UNSUPPORTED,
                                 "cannot read '%s': unsupported version %" PRIu32 ", this agent reads %d", name,
                                 version, VERSION);
        if (own_number != number)
                return error_set(err, ST_BAD_DATA, "cannot read '%s': it is batch %" PRIu64 " under another's name",
                                 name, own_number);
        if (!reader_bytes(&r, size, &payload))
                return error_set(err, ST_BAD_DATA, "cannot read '%s': it is truncated after %zu of %" PRIu64 " bytes",
                                 name, n, SPOOL_FILE_HEADER_BYTES + size);
        if (reader_left(&r) || payload_checksum != hash_bytes64(payload, size))
                return error_set(err, ST_BAD_DATA, "cannot read '%s': its content is damaged", name);
        *ret = (struct spool_batch){
                .number = number, .made_unix_ns = (int64_t)made, .payload = payload, .payload_size = size
        };
        memcpy(ret->id.bytes, id, sizeof ret->id.bytes);
        return ST_OK;
}
