/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SYMBOL_BOOK_INTERNAL_H
#define CAIRN_SYMBOLIZER_SYMBOL_BOOK_INTERNAL_H

/* What the writer and the reader of books agree on; docs/formats/symbol-book.md. Numbers have this machine's byte order. */
#include <stdint.h>

#include "common/limits.h"
#include "symbolizer/symbol_book.h"

#define BOOK_MAGIC "cairnbok"
#define BOOK_VERSION 1
#define BOOK_BYTE_ORDER 0x01020304u
#define BOOK_CHUNK_SHIFT 16 /* of the body: 64 KiB have one checksum */
#define BOOK_CHUNK_BYTES (UINT64_C(1) << BOOK_CHUNK_SHIFT)
#define BOOK_ALIGNMENT 4096
#define BOOK_PARTIAL_MAX 4096
#define BOOK_SEGMENTS_MAX (LIMIT_ELF_SEGMENTS + LIMIT_ELF_SECTIONS)
#define BOOK_TEXT_UNIT 8 /* texts begin at multiples of it, and are named by the quotient */
#define BOOK_SAME UINT32_MAX

struct book_header {
        char magic[8];
        uint32_t version, byte_order;
        uint32_t quality, is_complete;
        uint64_t range_count, bucket_count, node_count, text_bytes;
        uint64_t base;
        uint32_t shift, partial_size; /* the NUL counted */
        uint32_t build_id_size, segment_count;
        uint8_t build_id[BUILD_ID_MAX];
        uint64_t checksum; /* of the header with 0 here, what could not be read, the segments and the chunks' checksums */
};

struct book_node {
        uint32_t function, file, line, caller;
};

/* In front of a text: the readable name or the path with a NUL, then the linkage name with one. */
struct book_text_head {
        uint32_t size;
        uint32_t linkage_size; /* BOOK_SAME: the linkage name is the readable one */
};

/** What the file has in memory of a segment. */
struct book_segment {
        uint64_t address, size;
};

/** In front of the chunks' checksums. */
static inline uint64_t book_front_bytes(const struct book_header *h)
{
        return sizeof *h + h->partial_size + h->segment_count * sizeof(struct book_segment);
}

/** Where everything is, from the counts. @return false when they cannot be right. */
static inline bool book_lay_out(const struct book_header *h, struct symbol_book_layout *ret)
{
        const uint64_t most = UINT64_C(1) << 40;
        struct symbol_book_layout l = { .range_count = h->range_count, .bucket_count = h->bucket_count,
                                        .node_count = h->node_count, .text_bytes = h->text_bytes, .base = h->base,
                                        .shift = h->shift };
        uint64_t chunks;

        if (l.range_count >= UINT32_MAX || l.bucket_count >= UINT32_MAX || l.node_count > UINT32_MAX ||
            l.text_bytes > most || h->shift > 63 || h->partial_size == 0 || h->partial_size > BOOK_PARTIAL_MAX || h->segment_count > BOOK_SEGMENTS_MAX || h->build_id_size > BUILD_ID_MAX)
                return false;
        l.nodes_of = l.starts + (l.range_count + 1) * sizeof(uint64_t);
        l.buckets = (l.nodes_of + l.range_count * sizeof(uint32_t) + 15) & ~UINT64_C(15);
        l.nodes = (l.buckets + (l.bucket_count + 1) * sizeof(uint32_t) + 15) & ~UINT64_C(15);
        l.texts = l.nodes + l.node_count * sizeof(struct book_node);
        l.body_size = l.texts + l.text_bytes;
        chunks = (l.body_size + BOOK_CHUNK_BYTES - 1) >> BOOK_CHUNK_SHIFT;
        l.body = book_front_bytes(h) + chunks * sizeof(uint64_t);
        l.body = (l.body + BOOK_ALIGNMENT - 1) & ~(uint64_t)(BOOK_ALIGNMENT - 1);
        *ret = l;
        return true;
}

static inline uint64_t book_chunk_count(const struct symbol_book_layout *l)
{
        return (l->body_size + BOOK_CHUNK_BYTES - 1) >> BOOK_CHUNK_SHIFT;
}

#endif
