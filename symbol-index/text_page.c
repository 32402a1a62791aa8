/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing: front_code() stores each text as the length of the prefix that it shares with the previous one and the
 * rest, all lengths before all rests; compress_page() adds header and checksum. A page must fit TEXT_PAGE_BYTES after
 * compression, which is known only afterwards: text_page_pack() guesses the input from the last page's rate and
 * corrects the guess a few times.
 *
 * Unpacking: count_chars() checks all lengths first, so that write_texts() needs no checks and the page is one
 * allocation. The checksum includes the page's key, so a page under a wrong key is detected.
 *
 * The cache is direct-mapped by the last number, with 16 locks shared by the slots; a text is copied out under the
 * lock, because another thread may replace the page.
 *
 * Order: packing, unpacking, search, the cache.
 */
#include "symbol-index/text_page.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/compress/zstd_contexts.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/reader.h"
#include "common/search.h"
#include "symbol-index/block_bits.h"

#define PAGE_VERSION 1
#define HEADER_BYTES 7 /* version, count, uncompressed bytes */
#define CHECKSUM_BYTES 8
#define LEVEL 6 /* higher levels save 1% at several times the cost */
#define TRIES_MAX 5
#define FIRST_GUESS 3600
#define CODED_MAX (2 * TEXT_PAGE_CHARS_MAX + 5 * TEXT_PAGE_TEXTS_MAX)
#define CHARS_MOST (TEXT_PAGE_CHARS_MAX + LIMIT_NAME_BYTES)

struct text_packer {
        ZSTD_CCtx *zstd;
        struct buf lengths, coded;
        size_t guess; /* estimate of the front-coded bytes that fill a page */
};

enum status text_packer_create(struct text_packer **ret, struct error *err)
{
        struct text_packer *p = calloc(1, sizeof *p);

        if (!p)
                return error_no_memory(err);
        buf_init(&p->lengths, CODED_MAX);
        buf_init(&p->coded, CODED_MAX);
        p->guess = FIRST_GUESS;
        p->zstd = ZSTD_createCCtx();
        if (!p->zstd) {
                text_packer_destroy(p);
                return error_no_memory(err);
        }
        *ret = p;
        return ST_OK;
}

void text_packer_destroy(struct text_packer *p)
{
        if (!p)
                return;
        ZSTD_freeCCtx(p->zstd);
        buf_deinit(&p->lengths);
        buf_deinit(&p->coded);
        free(p);
}

int text_compare(const char *a, uint32_t a_size, const char *b, uint32_t b_size)
{
        int c = memcmp(a, b, a_size < b_size ? a_size : b_size);

        return c ? c : (a_size > b_size) - (a_size < b_size);
}

static uint32_t count_shared_prefix(const struct text_item *a, const struct text_item *b)
{
        uint32_t shared = 0;

        while (shared < a->size && shared < b->size && a->text[shared] == b->text[shared])
                shared++;
        return shared;
}

/* Front-code texts up to a size, at least one: all lengths, then all suffixes. Returns their number. */
static size_t front_code(struct text_packer *p, const struct text_item *items, size_t count, size_t bytes)
{
        size_t n = 0, chars = 0;

        buf_clear(&p->lengths);
        buf_clear(&p->coded);
        for (; n < count && n < TEXT_PAGE_TEXTS_MAX; n++) {
                uint32_t shared = n ? count_shared_prefix(&items[n - 1], &items[n]) : 0, rest = items[n].size - shared;

                if (n &&
                    (p->lengths.size + p->coded.size + 2 + rest > bytes || chars + items[n].size > TEXT_PAGE_CHARS_MAX))
                        break;
                buf_append_uleb128(&p->lengths, shared);
                buf_append(&p->coded, items[n].text + shared, rest);
                buf_append_u8(&p->coded, 0);
                chars += items[n].size;
        }
        buf_append(&p->lengths, p->coded.data, p->coded.size);
        return n;
}

static enum status compress_page(struct text_packer *p, uint32_t last, size_t n, struct buf *out, struct error *err)
{
        size_t bound = ZSTD_compressBound(p->lengths.size), packed;
        void *room;

        buf_clear(out);
        buf_append_u8(out, PAGE_VERSION);
        buf_append_u16(out, (uint16_t)n);
        buf_append_u32(out, (uint32_t)p->lengths.size);
        room = buf_reserve(out, bound);
        if (!room || p->lengths.failed || p->coded.failed)
                return error_no_memory(err);
        packed = ZSTD_compressCCtx(p->zstd, room, bound, p->lengths.data, p->lengths.size, LEVEL);
        if (ZSTD_isError(packed))
                return error_set(err, ST_NO_MEMORY, "cannot pack texts: %s", ZSTD_getErrorName(packed));
        buf_commit(out, packed);
        buf_append_u64(out, hash_bytes64(out->data, out->size) ^ last);
        return buf_status(out, err, "a page of texts");
}

/* Compression rates of pages are similar: start from the last page's rate and retry a few times until it fits. */
enum status text_page_pack(struct text_packer *p, uint32_t last_before, const struct text_item *items, size_t count,
                           struct buf *out, size_t *used_ret, struct error *err)
{
        assert(count > 0);
        for (unsigned try = 1;; try++) {
                size_t n = front_code(p, items, count, p->guess), coded = p->lengths.size;
                enum status st = compress_page(p, last_before + (uint32_t)n, n, out, err);

                if (st)
                        return st;
                if (n == 1 || (out->size <= TEXT_PAGE_BYTES && (try >= TRIES_MAX || n == count ||
                                                                out->size > TEXT_PAGE_BYTES - TEXT_PAGE_BYTES / 32))) {
                        *used_ret = n;
                        return ST_OK;
                }
                p->guess = coded * (TEXT_PAGE_BYTES - 16) / out->size;
                /* Later attempts only shrink. */
                if (try >= TRIES_MAX - 1)
                        p->guess = (p->guess < coded ? p->guess : coded) * 15 / 16;
        }
}

struct text_unpacker {
        ZSTD_DCtx *zstd;
        struct buf coded;
};

enum status text_unpacker_create(struct text_unpacker **ret, struct error *err)
{
        struct text_unpacker *u = calloc(1, sizeof *u);

        if (!u)
                return error_no_memory(err);
        buf_init(&u->coded, CODED_MAX);
        u->zstd = take_zstd_context();
        if (!u->zstd) {
                text_unpacker_destroy(u);
                return error_no_memory(err);
        }
        *ret = u;
        return ST_OK;
}

void text_unpacker_destroy(struct text_unpacker *u)
{
        if (!u)
                return;
        give_zstd_context(u->zstd);
        buf_deinit(&u->coded);
        free(u);
}

static enum status set_text_page_error(struct error *err, uint32_t last, const char *how)
{
        return error_set(err, ST_BAD_DATA, "index page of texts up to %u %s; index the files again", last, how);
}

/* Total size of the decoded texts; SIZE_MAX for invalid lengths or suffixes. */
static size_t count_chars(struct reader lengths, struct reader rests, uint32_t count)
{
        uint64_t shared, before = 0, sum = 0;

        for (uint32_t i = 0; i < count; i++) {
                const char *rest;

                if (!reader_uleb128(&lengths, &shared) || !reader_cstr(&rests, &rest) || shared > before)
                        return SIZE_MAX;
                before = shared + strlen(rest);
                sum += before;
                if (before == 0 || before > LIMIT_NAME_BYTES || sum > CHARS_MOST)
                        return SIZE_MAX;
        }
        return reader_left(&rests) == 0 ? sum : SIZE_MAX;
}

static void write_texts(struct reader lengths, struct reader rests, struct text_page *page, char *chars)
{
        uint32_t begin = 0, at = 0;

        for (uint32_t i = 0; i < page->count; i++) {
                const char *rest = NULL;
                uint64_t shared = 0;

                (void)!reader_uleb128(&lengths, &shared);
                (void)!reader_cstr(&rests, &rest);
                memcpy(chars + at, chars + begin, shared);
                begin = at;
                at += (uint32_t)shared;
                for (; *rest; rest++)
                        chars[at++] = *rest;
                page->ends[i] = at;
        }
}

/* The suffixes follow the lengths. */
static enum status decode_page(const struct buf *coded, uint32_t last, uint32_t count, struct text_page **ret,
                               struct error *err)
{
        struct reader lengths, rests;
        struct text_page *page;
        uint64_t shared;
        size_t chars;

        reader_init(&lengths, coded->data, coded->size);
        rests = lengths;
        for (uint32_t i = 0; i < count; i++)
                if (!reader_uleb128(&rests, &shared))
                        return set_text_page_error(err, last, "has too few texts");
        chars = count_chars(lengths, rests, count);
        if (chars == SIZE_MAX)
                return set_text_page_error(err, last, "has impossible texts");
        page = malloc(sizeof *page + count * sizeof *page->ends + chars);
        if (!page)
                return error_no_memory(err);
        *page = (struct text_page){ .last = last,
                                    .count = count,
                                    .size = sizeof *page + count * sizeof *page->ends + chars,
                                    .chars = (char *)&page->ends[count] };
        write_texts(lengths, rests, page, (char *)&page->ends[count]);
        *ret = page;
        return ST_OK;
}

enum status text_page_unpack(struct text_unpacker *u, uint32_t last, const void *value, size_t size,
                             struct text_page **ret, struct error *err)
{
        const uint8_t *v = value;
        size_t unpacked, packed;
        uint32_t count, bytes;
        void *room;

        if (size < HEADER_BYTES + CHECKSUM_BYTES)
                return set_text_page_error(err, last, "is cut off");
        if ((load_le64(v + size - CHECKSUM_BYTES) ^ last) != hash_bytes64(v, size - CHECKSUM_BYTES))
                return set_text_page_error(err, last, "does not match its checksum");
        count = load_le16(v + 1);
        bytes = load_le32(v + 3);
        packed = size - HEADER_BYTES - CHECKSUM_BYTES;
        if (v[0] != PAGE_VERSION)
                return set_text_page_error(err, last, "has an unknown version");
        if (count == 0 || count > TEXT_PAGE_TEXTS_MAX || count > last || bytes > CODED_MAX)
                return set_text_page_error(err, last, "has impossible sizes");
        buf_clear(&u->coded);
        room = buf_reserve(&u->coded, bytes + 1);
        if (!room)
                return error_no_memory(err);
        unpacked = ZSTD_decompressDCtx(u->zstd, room, bytes, v + HEADER_BYTES, packed);
        if (ZSTD_isError(unpacked) || unpacked != bytes)
                return set_text_page_error(err, last, "cannot be unpacked");
        buf_commit(&u->coded, bytes);
        return decode_page(&u->coded, last, count, ret, err);
}

static int compare_entry(const struct text_page *p, uint32_t index, const char *text, uint32_t size)
{
        uint32_t entry_size;
        const char *entry = text_page_get(p, index, &entry_size);

        return text_compare(entry, entry_size, text, size);
}

uint32_t text_page_find(const struct text_page *p, const char *text, uint32_t size)
{
        size_t at = find_lower_bound(i, 0, p->count, compare_entry(p, (uint32_t)i, text, size) < 0);

        return at < p->count && compare_entry(p, (uint32_t)at, text, size) == 0 ? (uint32_t)at : UINT32_MAX;
}

/* ---- cache of unpacked pages ---- */

#define SHARDS 16

struct text_page_cache {
        pthread_mutex_t locks[SHARDS];
        struct text_page *slots[TEXT_PAGE_CACHE_SLOTS];
};

struct text_page_cache *text_page_cache_create(void)
{
        struct text_page_cache *c = calloc(1, sizeof *c);

        for (unsigned i = 0; c && i < SHARDS; i++)
                pthread_mutex_init(&c->locks[i], NULL);
        return c;
}

void text_page_cache_destroy(struct text_page_cache *c)
{
        if (!c)
                return;
        for (unsigned i = 0; i < TEXT_PAGE_CACHE_SLOTS; i++)
                free(c->slots[i]);
        for (unsigned i = 0; i < SHARDS; i++)
                pthread_mutex_destroy(&c->locks[i]);
        free(c);
}

/* Neighbouring pages have last numbers a few hundred apart. */
static uint32_t get_page_slot(uint32_t last)
{
        return last * 2654435761u >> 21;
}

static_assert(TEXT_PAGE_CACHE_SLOTS == 1 << (32 - 21), "slot_of() reaches all slots");

bool text_page_cache_get(struct text_page_cache *c, uint32_t last, uint32_t number, struct buf *out)
{
        uint32_t slot = get_page_slot(last);
        const struct text_page *page;
        bool found;

        buf_clear(out);
        pthread_mutex_lock(&c->locks[slot % SHARDS]);
        page = c->slots[slot];
        found = page && page->last == last && last - number < page->count;
        if (found) {
                uint32_t size;
                const char *text = text_page_get(page, page->count - 1 - (last - number), &size);

                found = buf_append(out, text, size) == ST_OK;
        }
        pthread_mutex_unlock(&c->locks[slot % SHARDS]);
        return found;
}

void text_page_cache_put(struct text_page_cache *c, struct text_page *page)
{
        uint32_t slot = get_page_slot(page->last);

        assert(page->count > 0 && page->last >= page->count);
        if (page->size <= TEXT_PAGE_CACHE_PAGE_BYTES) {
                struct text_page *old;

                pthread_mutex_lock(&c->locks[slot % SHARDS]);
                old = c->slots[slot];
                c->slots[slot] = page;
                pthread_mutex_unlock(&c->locks[slot % SHARDS]);
                page = old;
        }
        free(page);
}
