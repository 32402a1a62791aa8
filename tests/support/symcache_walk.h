/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_SYMCACHE_WALK_H
#define CAIRN_TESTS_SUPPORT_SYMCACHE_WALK_H

/*
 * Fixes the checksums of modified symcaches, and reads everything in them, aborting if the reader violates the
 * guarantees of symbolizer/formats/symcache.h. Header-only, since fuzz targets do not link test support.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/memory/buf.h"
#include "symbol-index/demangle.h"
#include "symbolizer/formats/symcache_internal.h"

#define SYMCACHE_CHECK(x)                                                                                              \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

#define SYMCACHE_WALK_ADDRESSES 256
#define SYMCACHE_WALK_DEPTH 300 /* more than LIMIT_INLINE_DEPTH */

/** A memfd with these bytes. */
static inline int symcache_make_file(const void *data, size_t size)
{
        int fd = memfd_create("symbol-symcache", MFD_CLOEXEC);

        SYMCACHE_CHECK(fd >= 0 && (!size || write(fd, data, size) == (ssize_t)size));
        return fd;
}

/** Fix the checksums of a file whose sizes are consistent; any other file is left unchanged. */
static inline void symcache_fix_checksums(uint8_t *file, size_t size)
{
        struct symcache_layout l;
        struct symcache_header h;
        uint64_t chunks, checksum;
        uint8_t *checksums;

        if (size < sizeof h)
                return;
        memcpy(&h, file, sizeof h);
        if (!symcache_compute_layout(&h, &l) || l.body > size || l.body_size != size - l.body)
                return;
        chunks = symcache_chunk_count(&l);
        checksums = file + symcache_front_bytes(&h);
        for (uint64_t i = 0; i < chunks; i++) {
                uint64_t at = i * SYMCACHE_CHUNK_BYTES, left = l.body_size - at;

                checksum = hash_bytes64(file + l.body + at, left < SYMCACHE_CHUNK_BYTES ? left : SYMCACHE_CHUNK_BYTES);
                memcpy(checksums + i * sizeof checksum, &checksum, sizeof checksum);
        }
        h.checksum = 0;
        h.checksum = hash_bytes64(&h, sizeof h) ^
                     hash_bytes64(file + sizeof h, symcache_front_bytes(&h) - sizeof h + chunks * sizeof checksum);
        memcpy(file, &h, sizeof h);
}

/**
 * Make an open symcache use a copy on the heap, so that AddressSanitizer detects out-of-bounds reads.
 * @param ret to be released with free()
 */
static inline void symcache_move_to_heap(struct symcache *b, uint8_t **ret)
{
        const uint8_t *mapped = b->map.data;
        uint8_t *copy = malloc(b->map.size);

        SYMCACHE_CHECK(copy);
        memcpy(copy, mapped, b->map.size);
        b->body = copy + (b->body - mapped);
        b->checksums = copy + (b->checksums - mapped);
        b->segments = copy + (b->segments - mapped);
        b->partial = (const char *)copy + (b->partial - (const char *)mapped);
        *ret = copy;
}

static inline size_t symcache_walk_text(const struct symcache_text *t)
{
        SYMCACHE_CHECK(t->data[t->size] == 0);
        return strnlen(t->data, t->size);
}

/** Read all frames of a chain. @return the first error. */
static inline enum status symcache_walk_frames(struct symcache *b, uint32_t frame)
{
        for (unsigned depth = 0; frame && depth < SYMCACHE_WALK_DEPTH; depth++) {
                struct symcache_text readable, linkage, path, start;
                struct symcache_frame_detail d;
                struct symcache_frame f;
                enum status st = symcache_get_frame(b, frame, &f, NULL);

                if (!st)
                        st = symcache_get_names(b, f.function, &readable, &linkage, NULL);
                if (!st)
                        st = symcache_get_path(b, f.file, &path, NULL);
                if (st)
                        return st;
                SYMCACHE_CHECK(f.caller < frame);
                st = symcache_get_detail(b, frame, &d, NULL);
                if (!st)
                        st = symcache_get_path(b, d.start_file, &start, NULL);
                if (st)
                        return st;
                SYMCACHE_CHECK(symcache_walk_text(&readable) + symcache_walk_text(&linkage) +
                                       symcache_walk_text(&path) <
                               SIZE_MAX);
                frame = f.caller;
        }
        return ST_OK;
}

/** Look up addresses throughout the symcache and at its bounds. @return ST_OK or ST_BAD_DATA, of the last error. */
static inline enum status symcache_walk(struct symcache *b)
{
        uint64_t span = b->at.bucket_count << b->at.shift, step = span / SYMCACHE_WALK_ADDRESSES + 1;
        uint64_t address = b->at.base - 3 * step;
        enum status st = ST_OK;

        SYMCACHE_CHECK(strlen(b->partial) < SYMCACHE_PARTIAL_MAX && b->build_id.size <= BUILD_ID_MAX);
        for (uint32_t n = 0; n < SYMCACHE_WALK_ADDRESSES + 6; n++, address += step) {
                uint32_t frame;
                enum status one = symcache_find(b, &address, 1, &frame, NULL);

                if (!one && frame)
                        one = symcache_walk_frames(b, frame);
                else if (!one)
                        SYMCACHE_CHECK(symcache_gap_state(b, address) != SYMBOL_RESOLVED);
                SYMCACHE_CHECK(!one || one == ST_BAD_DATA);
                st = one ? one : st;
        }
        return st;
}

static inline bool symcache_text_is(const struct symcache_text *t, const char *text)
{
        return t->size == strlen(text) && strcmp(t->data, text) == 0;
}

/** Check that the symcache's frame equals the table's. @param caller_ret number of the next one */
static inline void symcache_check_frame(struct symcache *b, uint32_t number, const struct symbol_table *t,
                                        const struct symbol_table_frame *want, struct buf *scratch,
                                        uint32_t *caller_ret)
{
        static const struct symbol_function nobody;
        const struct symbol_function *function =
                want->function == SYMBOL_NO_FUNCTION ? &nobody : &t->functions[want->function];
        const char *linkage_name = t->strings + function->linkage_name, *name = t->strings + function->name;
        struct symcache_text readable, linkage, path;
        struct symcache_frame f;

        SYMCACHE_CHECK(number);
        SYMCACHE_CHECK(symcache_get_frame(b, number, &f, NULL) == ST_OK);
        SYMCACHE_CHECK(symcache_get_names(b, f.function, &readable, &linkage, NULL) == ST_OK);
        SYMCACHE_CHECK(symcache_get_path(b, f.file, &path, NULL) == ST_OK);
        SYMCACHE_CHECK(f.line == want->line && symcache_text_is(&path, t->strings + want->file));
        SYMCACHE_CHECK(symcache_text_is(&linkage, linkage_name));
        SYMCACHE_CHECK(symcache_text_is(&readable, linkage_name[0] ? symbol_demangle(linkage_name, scratch) : name));
        *caller_ret = f.caller;
}

/** Check that the frames found by the symcache for an address are those of the table; 0: neither has any. */
static inline void symcache_check_lookup(struct symcache *b, uint32_t frame, const struct symbol_table *t,
                                         uint64_t address)
{
        const struct symbol_range *r = symbol_table_find(t, address);
        struct buf scratch;

        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        for (uint32_t i = 0; r && i < t->chains[r->chain].frame_count; i++)
                symcache_check_frame(b, frame, t, &t->frames[t->chains[r->chain].first_frame + i], &scratch, &frame);
        SYMCACHE_CHECK(frame == 0);
        if (!r && b->is_complete)
                SYMCACHE_CHECK(symcache_gap_state(b, address) == symbol_table_gap_state(t, address));
        buf_deinit(&scratch);
}

#endif
