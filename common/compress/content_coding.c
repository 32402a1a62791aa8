/* SPDX-License-Identifier: Apache-2.0 */
#include "common/compress/content_coding.h"

#include <lz4frame.h>
#include <snappy-c.h>
#include <string.h>
#include <strings.h>

#include "common/compress/compress.h"
#include "common/reader.h"

/* ---- snappy ---- */

#define SNAPPY_RATIO 32          /* a copy of 64 bytes takes 3 */
#define SNAPPY_CHUNK_BYTES 65536 /* of one chunk in a stream, decompressed */
#define SNAPPY_MAGIC "\xff\x06\x00\x00sNaPpY"
#define SNAPPY_MAGIC_BYTES 10

enum snappy_chunk { CHUNK_PACKED = 0, CHUNK_PLAIN = 1, CHUNK_FIRST_SKIPPABLE = 0x80, CHUNK_IDENTIFIER = 0xff };

static enum status decode_snappy_block(const uint8_t *data, size_t n, size_t max, struct buf *ret, struct error *err)
{
        size_t size;
        char *to;

        if (snappy_uncompressed_length((const char *)data, n, &size) != SNAPPY_OK || size / SNAPPY_RATIO > n)
                return error_set(err, ST_BAD_DATA, "snappy data is damaged");
        if (size > max || size > ret->max - ret->size)
                return error_set(err, ST_TOO_BIG, "snappy data unpacks to more than %zu bytes",
                                 max < ret->max ? max : ret->max);
        to = buf_reserve(ret, size);
        if (!to)
                return buf_status(ret, err, "snappy data");
        if (snappy_uncompress((const char *)data, n, to, &size) != SNAPPY_OK)
                return error_set(err, ST_BAD_DATA, "snappy data is damaged");
        buf_commit(ret, size);
        return ST_OK;
}

/* CRC-32C, four bits at a time. RFC 3720, B.4. */
static uint32_t compute_crc32c(const uint8_t *data, size_t n)
{
        static const uint32_t table[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                            0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                            0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75 };
        uint32_t crc = UINT32_MAX;

        for (size_t i = 0; i < n; i++) {
                crc ^= data[i];
                crc = crc >> 4 ^ table[crc & 15];
                crc = crc >> 4 ^ table[crc & 15];
        }
        return ~crc;
}

static enum status decode_snappy_chunk(struct reader *chunk, bool is_packed, struct buf *ret, struct error *err)
{
        size_t before = ret->size;
        uint32_t crc, computed;
        enum status st = ST_OK;

        if (!reader_u32(chunk, &crc))
                return reader_error(chunk, err, "snappy chunk");
        if (is_packed)
                st = decode_snappy_block(chunk->data + chunk->pos, reader_left(chunk), SNAPPY_CHUNK_BYTES, ret, err);
        else if (reader_left(chunk) > SNAPPY_CHUNK_BYTES)
                st = error_set(err, ST_BAD_DATA, "a snappy chunk has more than %d bytes", SNAPPY_CHUNK_BYTES);
        else if (buf_append(ret, chunk->data + chunk->pos, reader_left(chunk)))
                st = buf_status(ret, err, "snappy data");
        if (st)
                return st;
        computed = compute_crc32c(ret->data + before, ret->size - before);
        if ((computed >> 15 | computed << 17) + 0xa282ead8u != crc)
                return error_set(err, ST_BAD_DATA, "a snappy chunk has a wrong checksum");
        return ST_OK;
}

static enum status decode_snappy_stream(const uint8_t *data, size_t n, struct buf *ret, struct error *err)
{
        struct reader r;
        enum status st = ST_OK;

        reader_init(&r, data, n);
        while (!st && reader_left(&r)) {
                const uint8_t *content;
                struct reader chunk;
                uint32_t head, type;

                if (!reader_u32(&r, &head) || !reader_bytes(&r, head >> 8, &content))
                        return reader_error(&r, err, "snappy stream");
                reader_init(&chunk, content, head >> 8);
                type = head & 0xff;
                if (type == CHUNK_PACKED || type == CHUNK_PLAIN)
                        st = decode_snappy_chunk(&chunk, type == CHUNK_PACKED, ret, err);
                else if (type < CHUNK_FIRST_SKIPPABLE)
                        st = error_set(err, ST_BAD_DATA, "snappy chunks of type %u are not known", type);
                else if (type == CHUNK_IDENTIFIER && (chunk.size != 6 || memcmp(content, "sNaPpY", 6) != 0))
                        st = error_set(err, ST_BAD_DATA, "the identifier of the snappy stream is damaged");
        }
        return st;
}

static enum status decode_snappy(const char *coding, const uint8_t *data, size_t n, struct buf *ret, struct error *err)
{
        if (n >= SNAPPY_MAGIC_BYTES && memcmp(data, SNAPPY_MAGIC, SNAPPY_MAGIC_BYTES) == 0)
                return decode_snappy_stream(data, n, ret, err);
        if (strcasecmp(coding, "snappy") == 0)
                return decode_snappy_block(data, n, SIZE_MAX, ret, err);
        return error_set(err, ST_BAD_DATA, "the snappy stream does not begin with its identifier");
}

/* ---- lz4 ---- */

#define LZ4_STEP_BYTES ((size_t)64 << 10)

static enum status decode_lz4_frames(LZ4F_dctx *z, const uint8_t *data, size_t n, struct buf *ret, struct error *err)
{
        size_t taken = 0, rc = 1;

        while (taken < n || rc != 0) {
                size_t left = ret->max - ret->size, room = left < LZ4_STEP_BYTES ? left : LZ4_STEP_BYTES;
                size_t in = n - taken, out = room ? room : 1;
                uint8_t spare = 0;
                void *to = room ? buf_reserve(ret, room) : &spare;

                if (!to)
                        return buf_status(ret, err, "lz4 data");
                rc = LZ4F_decompress(z, to, &out, data + taken, &in, NULL);
                if (LZ4F_isError(rc))
                        return error_set(err, ST_BAD_DATA, "lz4 data is damaged: %s", LZ4F_getErrorName(rc));
                taken += in;
                if (!room && out) /* at the maximum, one spare byte shows whether the output continues */
                        return error_set(err, ST_TOO_BIG, "lz4 data unpacks to more than %zu bytes", ret->max);
                if (room)
                        buf_commit(ret, out);
                if (rc && taken == n && !in && !out)
                        return error_set(err, ST_BAD_DATA, "lz4 data is cut off");
        }
        return ST_OK;
}

static enum status decode_lz4(const uint8_t *data, size_t n, struct buf *ret, struct error *err)
{
        LZ4F_dctx *z;
        enum status st;

        if (LZ4F_isError(LZ4F_createDecompressionContext(&z, LZ4F_VERSION)))
                return error_no_memory(err);
        st = decode_lz4_frames(z, data, n, ret, err);
        LZ4F_freeDecompressionContext(z);
        return st;
}

enum status content_coding_decode(const char *coding, const void *data, size_t n, struct buf *ret, struct error *err)
{
        size_t before = ret->size;
        enum status st;

        if (strcasecmp(coding, "zlib") == 0)
                return gzip_decompress(data, n, ret, err);
        if (strcasecmp(coding, "lz4") == 0)
                st = decode_lz4(data, n, ret, err);
        else if (strcasecmp(coding, "snappy") == 0 || strcasecmp(coding, "x-snappy-framed") == 0)
                st = decode_snappy(coding, data, n, ret, err);
        else
                return error_set(err, ST_UNSUPPORTED,
                                 "Content-Encoding '%.40s' is not known; use gzip, deflate, zstd, zlib, snappy, lz4 or "
                                 "none",
                                 coding);
        if (st)
                ret->size = before;
        return st;
}
