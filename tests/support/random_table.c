/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/random_table.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/buf.h"
#include "common/limits.h"

uint64_t random_next(uint64_t *state)
{
        uint64_t z = *state += 0x9e3779b97f4a7c15; /* splitmix64 */

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
}

struct build_id random_build_id(uint64_t n)
{
        uint64_t bytes[3] = { random_next(&n), random_next(&n), random_next(&n) };
        struct build_id id;
        bool ok = build_id_from_bytes(&id, bytes, 20);

        assert(ok);
        (void)ok;
        return id;
}

static void *require_ok(void *p)
{
        assert(p);
        return p;
}

static uint32_t add_string(struct buf *strings, const char *prefix, uint32_t n, const char *suffix)
{
        uint32_t offset = (uint32_t)strings->size;

        buf_printf(strings, "%s%u%s", prefix, n, suffix);
        buf_append_u8(strings, 0);
        return offset;
}

static void make_frames(struct symbol_table *t, const struct random_table_spec *spec, uint64_t *state,
                        const uint32_t *files)
{
        uint32_t near = 0;

        for (uint32_t c = 0; c < t->chain_count; c++) {
                uint32_t depth = 1 + (uint32_t)(random_next(state) % 8) * (uint32_t)(random_next(state) % 2);

                if (random_next(state) % 40 == 0)
                        near = (uint32_t)(random_next(state) % spec->function_count);
                t->chains[c] = (struct symbol_chain){ t->frame_count, depth };
                for (uint32_t d = 0; d < depth; d++) {
                        uint64_t r = random_next(state);
                        struct symbol_table_frame *f = &t->frames[t->frame_count++];

                        f->function =
                                r % 97 == 0 ? UINT32_MAX : (near + (uint32_t)(r >> 8) % 4 * d) % spec->function_count;
                        f->file = files[(near / 8 + d) % spec->file_count];
                        f->line =
                                r % 89 == 0 ? 0 : (uint32_t)(near * 7 % 5000 + (r >> 32) % 60 + 100000 * spec->version);
                }
        }
}

struct symbol_table random_table(const struct random_table_spec *spec)
{
        uint64_t state = spec->seed, at = spec->base;
        uint32_t *files = require_ok(calloc(spec->file_count, sizeof *files));
        struct symbol_table t = { .build_id = random_build_id(spec->seed), .quality = spec->quality };
        struct buf strings;

        buf_init(&strings, GiB(1));
        buf_append_u8(&strings, 0);
        t.functions = require_ok(calloc(spec->function_count, sizeof *t.functions));
        t.function_count = spec->function_count;
        for (uint32_t i = 0; i < spec->function_count; i++)
                if (i % 3 == 0)
                        t.functions[i].name = add_string(&strings, "plain_", i, "_name");
                else
                        t.functions[i].linkage_name = add_string(&strings, "_ZN5space6insideILi", i, "EEEvv");
        for (uint32_t i = 0; i < spec->file_count; i++)
                files[i] = add_string(&strings, "/usr/src/project/part", i, ".c");
        for (uint32_t i = 0; i < spec->function_count; i++) {
                t.functions[i].file = i % 13 ? files[i / 8 % spec->file_count] : 0;
                t.functions[i].start_line = i % 11 ? i * 7 % 5000 + 100000 * spec->version : 0;
        }
        t.functions[spec->function_count / 2].start_line = UINT32_MAX; /* more than the index stores */
        t.chain_count = spec->range_count;
        t.chains = require_ok(calloc(t.chain_count, sizeof *t.chains));
        t.frames = require_ok(calloc((size_t)t.chain_count * 8, sizeof *t.frames));
        make_frames(&t, spec, &state, files);
        t.range_count = spec->range_count;
        t.ranges = require_ok(calloc(t.range_count, sizeof *t.ranges));
        for (uint32_t i = 0; i < t.range_count; i++) {
                uint64_t r = random_next(&state);

                if (r % 16 == 0)
                        at += 1 + (r >> 8) % 64;
                if (r % 50000 == 1)
                        at += (uint64_t)5 << 32;
                t.ranges[i].start = at;
                at += 1 + (r >> 16) % (r % 3 == 0 ? 40 : 8);
                t.ranges[i].end = at;
                t.ranges[i].chain = (uint32_t)(random_next(&state) % 5 ? i : (r >> 32) % t.chain_count);
        }
        t.segments = require_ok(calloc(2, sizeof *t.segments));
        t.segment_count = 2;
        t.segments[0] = (struct symbol_segment){ 0, 0x1000, 0x10 };
        t.segments[1] = (struct symbol_segment){ 0x2000, at - spec->base, spec->base };
        assert(strings.failed == ST_OK);
        t.strings = (char *)strings.data;
        t.string_bytes = (uint32_t)strings.size;
        free(files);
        return t;
}
