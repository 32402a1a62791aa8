/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/block_map.h"

#include <assert.h>
#include <string.h>

#include "common/debug_check.h"
#include "common/hash.h"
#include "symbol-index/block_bits.h"

#define MAP_VERSION 1

struct map_key map_key_make(uint32_t object, uint64_t last)
{
        struct map_key key;

        object = htobe32(object);
        last = htobe64(last);
        memcpy(key.bytes, &object, 4);
        memcpy(key.bytes + 4, &last, 8);
        return key;
}

uint32_t map_key_object(const void *key)
{
        uint32_t object;

        memcpy(&object, key, 4);
        return be32toh(object);
}

uint64_t map_key_last(const void *key)
{
        uint64_t last;

        memcpy(&last, (const uint8_t *)key + 4, 8);
        return be64toh(last);
}

static uint64_t compute_map_checksum(const void *key, const void *value, size_t size)
{
        return hash_bytes64(value, size) ^ hash_bytes64(key, MAP_KEY_BYTES);
}

static enum status set_map_page_error(struct error *err, const void *key)
{
        return error_set(err, ST_BAD_DATA, "map page of object %u up to 0x%llx is damaged; index its file again",
                         map_key_object(key), (unsigned long long)map_key_last(key));
}

enum status map_page_open(struct map_page *p, const void *key, size_t key_size, const void *value, size_t size,
                          struct error *err)
{
        enum status st = map_page_open_verified(p, key, key_size, value, size, err);

        if (!st && load_le64((const uint8_t *)value + size - MAP_CHECKSUM_BYTES) !=
                           compute_map_checksum(key, value, size - MAP_CHECKSUM_BYTES))
                return set_map_page_error(err, key);
        return st;
}

enum status map_page_open_verified(struct map_page *p, const void *key, size_t key_size, const void *value, size_t size,
                                   struct error *err)
{
        const uint8_t *v = value;
        uint32_t count;

        if (key_size != MAP_KEY_BYTES || size < MAP_HEAD_BYTES + MAP_CHECKSUM_BYTES)
                return error_set(err, ST_BAD_DATA, "a map page of the index is cut off; index its file again");
        count = load_le16(v + 2);
        if (v[0] != MAP_VERSION || count == 0 ||
            size != MAP_HEAD_BYTES + (size_t)count * MAP_ENTRY_BYTES + MAP_CHECKSUM_BYTES)
                return set_map_page_error(err, key);
        *p = (struct map_page){ v + MAP_HEAD_BYTES, load_le64(v + 4), map_key_last(key), count };
        return ST_OK;
}

uint64_t map_page_start(const struct map_page *p, uint32_t entry)
{
        assert(entry < p->count);
        return p->base + load_le32(p->entries + (size_t)entry * MAP_ENTRY_BYTES);
}

uint32_t map_page_block(const struct map_page *p, uint32_t entry)
{
        assert(entry < p->count);
        return load_le32(p->entries + (size_t)entry * MAP_ENTRY_BYTES + 4);
}

uint32_t map_page_find(const struct map_page *p, uint32_t from, uint64_t address)
{
        uint32_t low = from, high = p->count;

        if (from >= p->count || map_page_start(p, from) > address)
                return p->count;
        /* Usually the next entry, when a batch walks. */
        for (unsigned i = 0; i < 4; i++, low++)
                if (low + 1 == high || map_page_start(p, low + 1) > address)
                        return low;
        while (high - low > 1) {
                uint32_t mid = low + (high - low) / 2;

                if (map_page_start(p, mid) <= address)
                        low = mid;
                else
                        high = mid;
        }
        return low;
}

bool map_builder_add(struct map_builder *b, uint64_t start, uint64_t last, uint32_t block)
{
        uint32_t entry[2];

        assert(start <= last);
        if (b->count == 0)
                b->base = start;
        if (b->count == MAP_ENTRIES_MAX || start - b->base > UINT32_MAX)
                return false;
        assert(b->count == 0 || start > b->last);
        entry[0] = htole32((uint32_t)(start - b->base));
        entry[1] = htole32(block);
        memcpy(b->page + MAP_HEAD_BYTES + (size_t)b->count++ * MAP_ENTRY_BYTES, entry, sizeof entry);
        b->last = last;
        return true;
}

/* Debug builds read the page back: it opens, and its starts ascend up to the last address. */
static void check_written_page(const struct map_key *key, const uint8_t *page, size_t size)
{
#if DEBUG_CHECKS
        struct map_page p;

        assert(map_page_open(&p, key->bytes, sizeof key->bytes, page, size, NULL) == ST_OK);
        assert(map_page_start(&p, 0) == p.base && map_page_start(&p, p.count - 1) <= p.last);
        for (uint32_t i = 1; i < p.count; i++)
                assert(map_page_start(&p, i - 1) < map_page_start(&p, i));
#else
        (void)key;
        (void)page;
        (void)size;
#endif
}

size_t map_builder_finish(struct map_builder *b, uint32_t object, struct map_key *key_ret)
{
        size_t size = MAP_HEAD_BYTES + (size_t)b->count * MAP_ENTRY_BYTES;
        struct map_key key = map_key_make(object, b->last);
        uint64_t base = htole64(b->base), sum;
        uint16_t count = htole16((uint16_t)b->count);

        assert(b->count > 0 && b->count <= MAP_ENTRIES_MAX && b->base <= b->last);
        b->page[0] = MAP_VERSION;
        b->page[1] = 0;
        memcpy(b->page + 2, &count, sizeof count);
        memcpy(b->page + 4, &base, sizeof base);
        sum = htole64(compute_map_checksum(key.bytes, b->page, size));
        memcpy(b->page + size, &sum, sizeof sum);
        check_written_page(&key, b->page, size + MAP_CHECKSUM_BYTES);
        b->count = 0;
        *key_ret = key;
        return size + MAP_CHECKSUM_BYTES;
}
