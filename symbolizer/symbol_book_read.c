/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/hash.h"
#include "common/limits.h"
#include "symbolizer/symbol_book_internal.h"

void symbol_book_close(struct symbol_book *b)
{
        file_map_close(&b->map);
        free(b->seen);
        *b = (struct symbol_book){ 0 };
}

static enum status bad(const char *name, const char *what, struct error *err)
{
        return error_set(err, ST_BAD_DATA, "cannot read '%s': %s", name, what);
}

static enum status parse(struct symbol_book *b, const char *name, struct error *err)
{
        const uint8_t *data = b->map.data;
        struct book_header h;
        uint64_t checksum, bytes;
        size_t front;

        if (b->map.size < sizeof h || memcmp(data, BOOK_MAGIC, sizeof h.magic) != 0)
                return bad(name, "not a symbol book", err);
        memcpy(&h, data, sizeof h);
        if (h.version != BOOK_VERSION || h.byte_order != BOOK_BYTE_ORDER)
                return error_set(err, ST_UNSUPPORTED, "cannot read '%s': a symbol book of another version or byte order",
                                 name);
        if (!book_lay_out(&h, &b->at) || b->at.body > b->map.size || b->at.body_size != b->map.size - b->at.body)
                return bad(name, "the sizes in the symbol book's header do not add up", err);
        front = (size_t)(book_front_bytes(&h) + book_chunk_count(&b->at) * sizeof(uint64_t));
        checksum = h.checksum;
        h.checksum = 0;
        bytes = hash64(&h, sizeof h) ^ hash64(data + sizeof h, front - sizeof h);
        if (bytes != checksum || h.quality > QUALITY_DWARF || data[sizeof h + h.partial_size - 1] != 0)
                return bad(name, "the symbol book's header has a wrong checksum", err);
        b->partial = (const char *)data + sizeof h;
        b->segments = data + sizeof h + h.partial_size;
        b->segment_count = h.segment_count;
        b->checksums = data + book_front_bytes(&h);
        b->body = data + b->at.body;
        b->quality = (enum symbol_quality)h.quality;
        b->is_complete = h.is_complete;
        b->build_id.size = (uint8_t)h.build_id_size;
        memcpy(b->build_id.bytes, h.build_id, sizeof h.build_id);
        b->seen = calloc(book_chunk_count(&b->at) + 1, 1);
        return b->seen ? ST_OK : error_no_memory(err);
}

enum status symbol_book_open(int fd, const char *name, struct symbol_book *ret, struct error *err)
{
        struct symbol_book b = { .seen = NULL };
        enum status st = file_map_fd(fd, LIMIT_SYMBOL_TABLE_BYTES, name, &b.map, err);

        if (st)
                return st;
        st = parse(&b, name, err);
        if (st) {
                symbol_book_close(&b);
                return st;
        }
        madvise((void *)b.map.data, b.map.size, MADV_WILLNEED);
        *ret = b;
        return ST_OK;
}

/* ---- chunks ---- */

static bool verify(struct symbol_book *b, uint64_t chunk)
{
        uint64_t at = chunk << BOOK_CHUNK_SHIFT, size = b->at.body_size - at, checksum;

        memcpy(&checksum, b->checksums + chunk * sizeof checksum, sizeof checksum);
        if (hash64(b->body + at, size < BOOK_CHUNK_BYTES ? size : BOOK_CHUNK_BYTES) != checksum)
                return false;
        b->seen[chunk] = 1;
        return true;
}

/* What lies at an offset of the body is sound. Elements have sizes that divide a chunk's, and lie in one. */
static inline bool look(struct symbol_book *b, uint64_t offset)
{
        return __builtin_expect(b->seen[offset >> BOOK_CHUNK_SHIFT], 1) || verify(b, offset >> BOOK_CHUNK_SHIFT);
}

static bool look_at_all(struct symbol_book *b, uint64_t offset, uint64_t size)
{
        uint64_t last = (offset + size - 1) >> BOOK_CHUNK_SHIFT;

        for (uint64_t chunk = offset >> BOOK_CHUNK_SHIFT; chunk <= last; chunk++)
                if (!b->seen[chunk] && !verify(b, chunk))
                        return false;
        return true;
}

static inline const void *element(struct symbol_book *b, uint64_t array, uint64_t i, size_t size)
{
        return b->body + array + i * size;
}

static inline bool look_at_element(struct symbol_book *b, uint64_t array, uint64_t i, size_t size)
{
        return look(b, array + i * size);
}

static enum status damaged(struct error *err)
{
        return error_set(err, ST_BAD_DATA, "the symbol book is damaged");
}

/* ---- from addresses to frames ---- */

struct search {
        uint64_t low, high; /* the range is one of [low, high] */
        bool is_outside;
};

/* Which ranges begin in the address' bucket: between its entry and the next one's. */
static bool open_bucket(struct symbol_book *b, uint64_t address, struct search *s)
{
        uint64_t bucket = (address - b->at.base) >> b->at.shift;
        uint32_t ends[2];

        s->is_outside = address < b->at.base || bucket >= b->at.bucket_count;
        if (s->is_outside)
                return true;
        if (!look_at_element(b, b->at.buckets, bucket, sizeof *ends) ||
            !look_at_element(b, b->at.buckets, bucket + 1, sizeof *ends))
                return false;
        memcpy(ends, element(b, b->at.buckets, bucket, sizeof *ends), sizeof ends);
        if (ends[0] > ends[1] || ends[1] >= b->at.range_count)
                return false;
        s->low = ends[0];
        s->high = ends[1];
        __builtin_prefetch(element(b, b->at.starts, s->low, sizeof(uint64_t)));
        __builtin_prefetch(element(b, b->at.nodes_of, s->low, sizeof(uint32_t)));
        return true;
}

/* The last range that begins at or before the address. */
static bool search_bucket(struct symbol_book *b, uint64_t address, struct search *s)
{
        while (s->low < s->high) {
                uint64_t mid = s->low + (s->high - s->low + 1) / 2, start;

                if (!look_at_element(b, b->at.starts, mid, sizeof start))
                        return false;
                memcpy(&start, element(b, b->at.starts, mid, sizeof start), sizeof start);
                if (start <= address)
                        s->low = mid;
                else
                        s->high = mid - 1;
        }
        return look_at_element(b, b->at.nodes_of, s->low, sizeof(uint32_t));
}

/* The ranges stop at the last one's end, which nothing else says. */
static bool ends_before(struct symbol_book *b, uint64_t address, const struct search *s, bool *ret)
{
        uint64_t end;

        *ret = false;
        if (s->low + 1 < b->at.range_count)
                return true;
        if (!look_at_element(b, b->at.starts, b->at.range_count, sizeof end))
                return false;
        memcpy(&end, element(b, b->at.starts, b->at.range_count, sizeof end), sizeof end);
        *ret = address >= end;
        return true;
}

static bool frame_of(struct symbol_book *b, uint64_t address, struct search *s, uint32_t *ret)
{
        *ret = 0;
        if (s->is_outside)
                return true;
        if (!search_bucket(b, address, s) || !ends_before(b, address, s, &s->is_outside))
                return false;
        if (s->is_outside)
                return true;
        memcpy(ret, element(b, b->at.nodes_of, s->low, sizeof *ret), sizeof *ret);
        if (*ret >= b->at.node_count)
                return false;
        __builtin_prefetch(element(b, b->at.nodes, *ret, sizeof(struct book_node)));
        return true;
}

enum status symbol_book_find(struct symbol_book *b, const uint64_t *addresses, size_t count, uint32_t *frames_ret,
                             struct error *err)
{
        struct search searches[SYMBOL_BOOK_TOGETHER];

        for (size_t done = 0; done < count; done += SYMBOL_BOOK_TOGETHER) {
                size_t n = count - done < SYMBOL_BOOK_TOGETHER ? count - done : SYMBOL_BOOK_TOGETHER;
                const uint64_t *a = addresses + done;

                for (size_t i = 0; i < n; i++)
                        __builtin_prefetch(element(b, b->at.buckets, a[i] >= b->at.base &&
                                                   (a[i] - b->at.base) >> b->at.shift < b->at.bucket_count ?
                                                   (a[i] - b->at.base) >> b->at.shift : 0, sizeof(uint32_t)));
                for (size_t i = 0; i < n; i++)
                        if (!open_bucket(b, a[i], &searches[i]))
                                return damaged(err);
                for (size_t i = 0; i < n; i++)
                        if (!frame_of(b, a[i], &searches[i], &frames_ret[done + i]))
                                return damaged(err);
        }
        return ST_OK;
}

enum status symbol_book_frame(struct symbol_book *b, uint32_t frame, struct symbol_book_frame *ret, struct error *err)
{
        struct book_node n;

        if (frame >= b->at.node_count || !look_at_element(b, b->at.nodes, frame, sizeof n))
                return damaged(err);
        memcpy(&n, element(b, b->at.nodes, frame, sizeof n), sizeof n);
        if (n.caller >= frame || n.function >= b->at.text_bytes / BOOK_TEXT_UNIT || n.file >= b->at.text_bytes / BOOK_TEXT_UNIT)
                return damaged(err);
        __builtin_prefetch(element(b, b->at.texts, n.function, BOOK_TEXT_UNIT));
        __builtin_prefetch(element(b, b->at.texts, n.file, BOOK_TEXT_UNIT));
        if (n.caller)
                __builtin_prefetch(element(b, b->at.nodes, n.caller, sizeof n));
        *ret = (struct symbol_book_frame){ n.function, n.file, n.line, n.caller };
        return ST_OK;
}

/* @param linkage_ret NULL: of no interest */
static bool text_at(struct symbol_book *b, uint32_t text, struct symbol_book_text *ret, struct symbol_book_text *linkage_ret)
{
        uint64_t at = (uint64_t)text * BOOK_TEXT_UNIT, left, size;
        struct book_text_head head;
        bool is_same;

        if (at + sizeof head > b->at.text_bytes || !look(b, b->at.texts + at))
                return false;
        memcpy(&head, element(b, b->at.texts, text, BOOK_TEXT_UNIT), sizeof head);
        left = b->at.text_bytes - at - sizeof head;
        is_same = head.linkage_size == BOOK_SAME;
        size = (uint64_t)head.size + 1 + (is_same ? 0 : head.linkage_size + UINT64_C(1));
        if (size > left || !look_at_all(b, b->at.texts + at, sizeof head + size))
                return false;
        *ret = (struct symbol_book_text){ (const char *)b->body + b->at.texts + at + sizeof head, head.size };
        if (ret->data[ret->size])
                return false;
        if (!linkage_ret)
                return true;
        *linkage_ret = is_same ? *ret : (struct symbol_book_text){ ret->data + ret->size + 1, head.linkage_size };
        return linkage_ret->data[linkage_ret->size] == 0;
}

enum status symbol_book_names(struct symbol_book *b, uint32_t function, struct symbol_book_text *readable_ret,
                              struct symbol_book_text *linkage_ret, struct error *err)
{
        return text_at(b, function, readable_ret, linkage_ret) ? ST_OK : damaged(err);
}

enum status symbol_book_path(struct symbol_book *b, uint32_t file, struct symbol_book_text *ret, struct error *err)
{
        return text_at(b, file, ret, NULL) ? ST_OK : damaged(err);
}

enum symbol_state symbol_book_missing(const struct symbol_book *b, uint64_t address)
{
        bool has_bytes = false;

        if (b->is_complete && !b->at.range_count)
                return SYMBOL_STRIPPED;
        for (uint32_t i = 0; i < b->segment_count; i++) {
                struct book_segment s;

                memcpy(&s, b->segments + i * sizeof s, sizeof s);
                if (address >= s.address && address - s.address < s.size)
                        return SYMBOL_UNCOVERED;
                has_bytes |= s.size != 0;
        }
        return has_bytes ? SYMBOL_NOT_IN_OBJECT : SYMBOL_OUTSIDE;
}
