/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/queue/head_page.h"

#include <assert.h>
#include <string.h>

#define VERSION 1
#define HEADER_BYTES 64
#define HAS_MORE 1u

static const uint8_t page_magic[8] = "CAIRNHP\n";

static void store_page_number(uint8_t *to, uint64_t v, unsigned bytes)
{
        for (unsigned i = 0; i < bytes; i++)
                to[i] = (uint8_t)(v >> 8 * i);
}

static void encode_page_header(const struct head_page_header *h, uint8_t ret[static HEADER_BYTES])
{
        memset(ret, 0, HEADER_BYTES);
        memcpy(ret, page_magic, sizeof page_magic);
        store_page_number(ret + 8, VERSION, 4);
        store_page_number(ret + 12, h->has_more ? HAS_MORE : 0, 4);
        memcpy(ret + 16, h->node, NODE_ID_SIZE - 1);
        store_page_number(ret + 32, h->flushed, 8);
        store_page_number(ret + 40, h->last, 8);
        store_page_number(ret + 48, (uint64_t)h->version, 8);
        store_page_number(ret + 56, hash_bytes64(ret, 56), 8);
}

void head_page_write_header(struct buf *to, const struct head_page_header *h)
{
        uint8_t bytes[HEADER_BYTES];

        encode_page_header(h, bytes);
        buf_append(to, bytes, sizeof bytes);
}

void head_page_replace_header(struct buf *page, const struct head_page_header *h)
{
        if (page->failed)
                return;
        assert(page->size >= HEADER_BYTES);
        encode_page_header(h, page->data);
}

void head_page_write_record(struct head_page_writer *w, const struct raw_record *record)
{
        uint8_t begin[RAW_SEGMENT_HEADER_BYTES], header[RAW_RECORD_HEADER_BYTES];

        assert(record->position >= w->next_position);
        if (record->position != w->next_position) {
                raw_segment_encode_header(record->position, begin);
                buf_append(w->to, begin, sizeof begin);
        }
        raw_record_encode_header(record, header);
        buf_append(w->to, header, sizeof header);
        buf_append(w->to, record->payload, record->payload_size);
        w->next_position = record->position + 1;
}

static bool is_node_text(const uint8_t *text)
{
        for (size_t i = 0; i < NODE_ID_SIZE - 1; i++)
                if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
                        return false;
        return true;
}

enum status head_page_read(struct head_page_reader *r, const void *page, size_t n, struct error *err)
{
        struct head_page_reader found = { 0 };
        const uint8_t *magic, *node;
        uint32_t version, flags;
        uint64_t table_version, checksum;
        struct reader in;

        reader_init(&in, page, n);
        if (!reader_bytes(&in, sizeof page_magic, &magic) || !reader_u32(&in, &version) || !reader_u32(&in, &flags) ||
            !reader_bytes(&in, NODE_ID_SIZE - 1, &node) || !reader_u64(&in, &found.header.flushed) ||
            !reader_u64(&in, &found.header.last) || !reader_u64(&in, &table_version) || !reader_u64(&in, &checksum) ||
            memcmp(magic, page_magic, sizeof page_magic) != 0 || checksum != hash_bytes64(page, 56))
                return error_set(err, ST_BAD_DATA, "the answer is not a page of the head of a node, or is damaged");
        if (version != VERSION)
                return error_set(err, ST_UNSUPPORTED, "the page of a head has version %u, this program reads %u",
                                 version, VERSION);
        if (!is_node_text(node) || table_version > INT64_MAX)
                return error_set(err, ST_BAD_DATA, "the page of a head has no valid node or version");
        memcpy(found.header.node, node, NODE_ID_SIZE - 1);
        found.header.version = (int64_t)table_version;
        found.header.has_more = flags & HAS_MORE;
        found.rest = (const uint8_t *)page + HEADER_BYTES;
        found.rest_size = n - HEADER_BYTES;
        *r = found;
        return ST_OK;
}

enum status head_page_next(struct head_page_reader *r, struct raw_record *ret, bool *found_ret, struct error *err)
{
        struct raw_record record;
        enum status st;

        if (!r->in_segment || !raw_segment_next(&r->segment, &record)) {
                if (r->in_segment) {
                        r->rest += r->segment.valid_end;
                        r->rest_size -= r->segment.valid_end;
                        r->in_segment = false;
                }
                if (!r->rest_size) {
                        *found_ret = false;
                        return ST_OK;
                }
                st = raw_segment_begin(&r->segment, r->rest, r->rest_size, "page of a head", err);
                if (st)
                        return st;
                r->in_segment = true;
                if (!raw_segment_next(&r->segment, &record))
                        return error_set(err, ST_BAD_DATA, "the page of a head has a damaged record");
        }
        if (record.position <= r->before || record.position > r->header.last)
                return error_set(err, ST_BAD_DATA, "the page of a head has a record out of order");
        r->before = record.position;
        *ret = record;
        *found_ret = true;
        return ST_OK;
}
