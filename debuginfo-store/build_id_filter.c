/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each key has three slots, in three adjacent segments, and the XOR of their fingerprints is the key's. Writing: slots
 * that only one key has are taken off in turn, with their keys, until none is left; the fingerprints are assigned in
 * the opposite order, so that each key has one slot whose value no earlier assignment depends on. If some keys have no
 * such slot, another seed is tried, which fails once in some dozens of times.
 */
#include "debuginfo-store/build_id_filter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/limits.h"

#define VERSION 1
#define SEGMENT_LENGTH_MAX (1u << 18)
#define SEEDS_MAX 100

static const char magic[8] = "cairnidf";

/* Offsets in the header; numbers are little-endian. */
enum {
        AT_VERSION = 8,
        AT_SEGMENT_LENGTH = 12,
        AT_SEGMENT_COUNT = 16, /* zeros follow */
        AT_SEED = 24,
        AT_COUNT = 32,
        AT_CHECKSUM = 40, /* of the fingerprints, and of the header before it */
};

/* ---- keys, slots, fingerprints ---- */

uint64_t build_id_filter_key(const struct build_id *id)
{
        return hash_bytes64(id->bytes, id->size);
}

/* The last steps of MurmurHash3 with 128 bits. */
static uint64_t mix_seed(uint64_t key, uint64_t seed)
{
        uint64_t h = key + seed;

        h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
        h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
        return h ^ h >> 33;
}

static void find_slots(const struct build_id_filter *f, uint64_t h, uint32_t ret[static 3])
{
        uint64_t span = (uint64_t)f->segment_count * f->segment_length;
        uint32_t mask = f->segment_length - 1;

        ret[0] = (uint32_t)((unsigned __int128)h * span >> 64);
        ret[1] = (ret[0] + f->segment_length) ^ ((uint32_t)(h >> 18) & mask);
        ret[2] = (ret[0] + 2 * f->segment_length) ^ ((uint32_t)h & mask);
}

static uint8_t compute_fingerprint(uint64_t h)
{
        return (uint8_t)(h ^ h >> 32);
}

static size_t get_slot_count(const struct build_id_filter *f)
{
        return ((size_t)f->segment_count + 2) * f->segment_length;
}

bool build_id_filter_may_contain(const struct build_id_filter *f, const struct build_id *id)
{
        uint64_t h = mix_seed(build_id_filter_key(id), f->seed);
        const uint8_t *p = f->fingerprints;
        uint32_t at[3];

        if (f->count == 0)
                return false;
        find_slots(f, h, at);
        return compute_fingerprint(h) == (p[at[0]] ^ p[at[1]] ^ p[at[2]]);
}

/* ---- writing ---- */

/* The paper's sizes, which let the taking off succeed with most seeds. */
static void choose_segments(struct build_id_filter *f)
{
        double n = f->count < 2 ? 2 : (double)f->count;
        double length = exp2(floor(log(n) / log(3.33) + 2.25));
        double slots = round(n * fmax(1.125, 0.875 + 0.25 * log(1e6) / log(n)));
        double segments;

        f->segment_length = (uint32_t)fmin(fmax(length, 4), SEGMENT_LENGTH_MAX);
        segments = ceil(slots / f->segment_length);
        f->segment_count = segments > 3 ? (uint32_t)segments - 2 : 1;
}

/* Of the keys that are not taken off. */
struct slot {
        uint64_t keys; /* XOR of their hashes */
        uint32_t degree;
};

struct peeling {
        struct build_id_filter *filter;
        const uint64_t *keys;
        struct slot *slots;
        uint32_t *single; /* slots that had one key; a stack */
        size_t single_count;
        uint64_t *taken;      /* hashes of keys, in their order */
        uint32_t *taken_from; /* the slot of each */
        size_t taken_count;
};

static void flip_key(struct peeling *p, uint64_t h, int by)
{
        uint32_t at[3];

        find_slots(p->filter, h, at);
        for (int i = 0; i < 3; i++) {
                struct slot *s = &p->slots[at[i]];

                s->keys ^= h;
                s->degree += (uint32_t)by;
                if (by < 0 && s->degree == 1)
                        p->single[p->single_count++] = at[i];
        }
}

/* Whether all keys could be taken off. */
static bool take_keys_off(struct peeling *p)
{
        size_t slots = get_slot_count(p->filter);

        memset(p->slots, 0, slots * sizeof p->slots[0]);
        p->single_count = p->taken_count = 0;
        for (uint64_t i = 0; i < p->filter->count; i++)
                flip_key(p, mix_seed(p->keys[i], p->filter->seed), 1);
        for (size_t i = 0; i < slots; i++)
                if (p->slots[i].degree == 1)
                        p->single[p->single_count++] = (uint32_t)i;
        while (p->single_count) {
                uint32_t at = p->single[--p->single_count];
                uint64_t h = p->slots[at].keys;

                if (p->slots[at].degree != 1) /* its key was taken off with another slot */
                        continue;
                p->taken[p->taken_count] = h;
                p->taken_from[p->taken_count++] = at;
                flip_key(p, h, -1);
        }
        return p->taken_count == p->filter->count;
}

static void assign_fingerprints(const struct peeling *p, uint8_t *fingerprints)
{
        for (size_t i = p->taken_count; i-- > 0;) {
                uint64_t h = p->taken[i];
                uint32_t at[3];
                uint8_t value = compute_fingerprint(h);

                find_slots(p->filter, h, at);
                for (int k = 0; k < 3; k++)
                        value ^= at[k] == p->taken_from[i] ? 0 : fingerprints[at[k]];
                fingerprints[p->taken_from[i]] = value;
        }
}

static enum status compute_fingerprints(struct build_id_filter *f, const uint64_t *keys, uint8_t *fingerprints,
                                        struct error *err)
{
        size_t slots = get_slot_count(f);
        _cleanup_free_ struct slot *slot = calloc(slots, sizeof *slot);
        _cleanup_free_ uint32_t *single = calloc(slots, sizeof *single);
        _cleanup_free_ uint64_t *taken = calloc(f->count + 1, sizeof *taken);
        _cleanup_free_ uint32_t *taken_from = calloc(f->count + 1, sizeof *taken_from);
        struct peeling p = {
                .filter = f, .keys = keys, .slots = slot, .single = single, .taken = taken, .taken_from = taken_from
        };

        if (!slot || !single || !taken || !taken_from)
                return error_no_memory(err);
        for (int i = 0; i < SEEDS_MAX; i++) {
                if (getrandom(&f->seed, sizeof f->seed, 0) != sizeof f->seed)
                        return error_os(err, errno, "cannot draw the seed of a filter");
                if (!take_keys_off(&p))
                        continue;
                assign_fingerprints(&p, fingerprints);
                return ST_OK;
        }
        return error_set(err, ST_OS, "no seed of %d suits the filter of %zu build-ids", SEEDS_MAX, (size_t)f->count);
}

static int compare_filter_keys(const void *a, const void *b)
{
        const uint64_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static size_t remove_equal_keys(uint64_t *keys, size_t count)
{
        size_t kept = 0;

        if (count)
                qsort(keys, count, sizeof keys[0], compare_filter_keys);
        for (size_t i = 0; i < count; i++)
                if (!kept || keys[i] != keys[kept - 1])
                        keys[kept++] = keys[i];
        return kept;
}

/* Covers the header before it, too. */
static uint64_t compute_checksum(const uint8_t *file, size_t slots)
{
        uint64_t parts[2] = { htole64(hash_bytes64(file, AT_CHECKSUM)),
                              htole64(hash_bytes64(file + BUILD_ID_FILTER_HEADER_BYTES, slots)) };

        return hash_bytes64(parts, sizeof parts);
}

enum status build_id_filter_write(uint64_t *keys, size_t count, struct buf *to, struct error *err)
{
        struct build_id_filter f = { .count = remove_equal_keys(keys, count) };
        uint8_t *file;
        size_t slots;
        enum status st;

        if (count > LIMIT_FILTER_IDS)
                return error_set(err, ST_TOO_BIG, "a filter has at most %d build-ids", LIMIT_FILTER_IDS);
        choose_segments(&f);
        slots = get_slot_count(&f);
        file = buf_reserve(to, BUILD_ID_FILTER_HEADER_BYTES + slots);
        if (!file)
                return buf_status(to, err, "the filter of build-ids");
        memset(file, 0, BUILD_ID_FILTER_HEADER_BYTES + slots);
        st = compute_fingerprints(&f, keys, file + BUILD_ID_FILTER_HEADER_BYTES, err);
        if (st)
                return st;
        memcpy(file, magic, sizeof magic);
        store_le32(file + AT_VERSION, VERSION);
        store_le32(file + AT_SEGMENT_LENGTH, f.segment_length);
        store_le32(file + AT_SEGMENT_COUNT, f.segment_count);
        store_le64(file + AT_SEED, f.seed);
        store_le64(file + AT_COUNT, f.count);
        store_le64(file + AT_CHECKSUM, compute_checksum(file, slots));
        buf_commit(to, BUILD_ID_FILTER_HEADER_BYTES + slots);
        return ST_OK;
}

/* ---- reading ---- */

enum status build_id_filter_open(const void *bytes, size_t n, struct build_id_filter *ret, struct error *err)
{
        const uint8_t *file = bytes;
        struct build_id_filter f;

        if (n < BUILD_ID_FILTER_HEADER_BYTES || memcmp(file, magic, sizeof magic) != 0)
                return error_set(err, ST_BAD_DATA, "not a filter of build-ids");
        if (load_le32(file + AT_VERSION) != VERSION)
                return error_set(err, ST_UNSUPPORTED, "a filter of build-ids of version %u",
                                 load_le32(file + AT_VERSION));
        f = (struct build_id_filter){ .seed = load_le64(file + AT_SEED),
                                      .count = load_le64(file + AT_COUNT),
                                      .segment_length = load_le32(file + AT_SEGMENT_LENGTH),
                                      .segment_count = load_le32(file + AT_SEGMENT_COUNT),
                                      .fingerprints = file + BUILD_ID_FILTER_HEADER_BYTES };
        if (f.segment_length < 4 || f.segment_length > SEGMENT_LENGTH_MAX ||
            (f.segment_length & (f.segment_length - 1)) || f.segment_count < 1 ||
            f.segment_count > UINT32_MAX / SEGMENT_LENGTH_MAX ||
            get_slot_count(&f) != n - BUILD_ID_FILTER_HEADER_BYTES || f.count > LIMIT_FILTER_IDS)
                return error_set(err, ST_BAD_DATA, "a filter of build-ids has impossible sizes");
        if (load_le64(file + AT_CHECKSUM) != compute_checksum(file, get_slot_count(&f)))
                return error_set(err, ST_BAD_DATA, "a filter of build-ids has the wrong checksum");
        *ret = f;
        return ST_OK;
}
