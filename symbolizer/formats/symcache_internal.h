/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_FORMATS_SYMCACHE_INTERNAL_H
#define CAIRN_SYMBOLIZER_FORMATS_SYMCACHE_INTERNAL_H

/* Layout of a symcache, for its writer and reader (docs/formats/symcache.md). Numbers have this machine's byte order.
 */
#include <stdint.h>

#include "common/limits.h"
#include "symbolizer/formats/symcache.h"

#define SYMCACHE_MAGIC "cairnsyc"
#define SYMCACHE_VERSION 1
#define SYMCACHE_BYTE_ORDER 0x01020304u
#define SYMCACHE_CHUNK_SHIFT 16 /* of the body: 64 KiB have one checksum */
#define SYMCACHE_CHUNK_BYTES (UINT64_C(1) << SYMCACHE_CHUNK_SHIFT)
#define SYMCACHE_ALIGNMENT 4096
#define SYMCACHE_PARTIAL_MAX 4096
#define SYMCACHE_SEGMENTS_MAX (LIMIT_ELF_SEGMENTS + LIMIT_ELF_SECTIONS)
#define SYMCACHE_TEXT_ALIGNMENT 8 /* texts begin at multiples of it, and are named by the quotient */
#define SYMCACHE_SAME_NAME UINT32_MAX

#define SYMCACHE_IS_COMPLETE 1u /* flags: covers the whole object */
#define SYMCACHE_HAS_DETAILS 2u

struct symcache_header {
        char magic[8];
        uint32_t version, byte_order;
        uint32_t quality, flags;
        uint64_t range_count, bucket_count, node_count, text_bytes;
        uint64_t base;
        uint32_t shift, partial_size; /* the NUL counted */
        uint32_t build_id_size, segment_count;
        uint8_t build_id[BUILD_ID_MAX];
        uint64_t checksum; /* of the header with 0 in this field, the partial text, the segments, the chunk checksums */
};

struct symcache_node {
        uint32_t function, file, line, caller;
};

/* Of a node: the rest of its position, and where its function is declared and begins. */
struct symcache_detail {
        uint32_t column, discriminator, start_file, start_line;
        uint64_t entry;
};

/* Precedes a text: the readable name or path, then the linkage name, each NUL-terminated. */
struct symcache_text_header {
        uint32_t size;
        uint32_t linkage_size; /* SYMCACHE_SAME_NAME: the linkage name is the readable one */
};

/** A loaded segment: bytes that come from the file. */
struct symcache_segment {
        uint64_t address, size;
};

/** Size of the data before the chunk checksums. */
static inline uint64_t symcache_front_bytes(const struct symcache_header *h)
{
        return sizeof *h + h->partial_size + h->segment_count * sizeof(struct symcache_segment);
}

/** Compute all offsets from the counts. @return false when the counts are impossible. */
static inline bool symcache_compute_layout(const struct symcache_header *h, struct symcache_layout *ret)
{
        const uint64_t most = UINT64_C(1) << 40;
        struct symcache_layout l = { .range_count = h->range_count,
                                     .bucket_count = h->bucket_count,
                                     .node_count = h->node_count,
                                     .text_bytes = h->text_bytes,
                                     .detail_count = h->flags & SYMCACHE_HAS_DETAILS ? h->node_count : 0,
                                     .base = h->base,
                                     .shift = h->shift };
        uint64_t chunks;

        if (l.range_count >= UINT32_MAX || l.bucket_count >= UINT32_MAX || l.node_count > UINT32_MAX ||
            l.text_bytes > most || h->shift > 63 || h->partial_size == 0 || h->partial_size > SYMCACHE_PARTIAL_MAX ||
            h->segment_count > SYMCACHE_SEGMENTS_MAX || h->build_id_size > BUILD_ID_MAX)
                return false;
        l.nodes_of = l.starts + (l.range_count + 1) * sizeof(uint64_t);
        l.buckets = (l.nodes_of + l.range_count * sizeof(uint32_t) + 15) & ~UINT64_C(15);
        l.nodes = (l.buckets + (l.bucket_count + 1) * sizeof(uint32_t) + 15) & ~UINT64_C(15);
        l.details = l.nodes + l.node_count * sizeof(struct symcache_node);
        l.texts = l.details + l.detail_count * sizeof(struct symcache_detail);
        l.body_size = l.texts + l.text_bytes;
        chunks = (l.body_size + SYMCACHE_CHUNK_BYTES - 1) >> SYMCACHE_CHUNK_SHIFT;
        l.body = symcache_front_bytes(h) + chunks * sizeof(uint64_t);
        l.body = (l.body + SYMCACHE_ALIGNMENT - 1) & ~(uint64_t)(SYMCACHE_ALIGNMENT - 1);
        *ret = l;
        return true;
}

static inline uint64_t symcache_chunk_count(const struct symcache_layout *l)
{
        return (l->body_size + SYMCACHE_CHUNK_BYTES - 1) >> SYMCACHE_CHUNK_SHIFT;
}

#endif
