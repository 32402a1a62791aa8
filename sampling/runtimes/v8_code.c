/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/v8_code.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/reader.h"
#include "sampling/runtimes/v8_function.h"

#define CODE_ALIGNMENT 32
#define CHUNK 4096
#define TYPE_READS_MAX 64 /* words that may be a Map, of which the type is read */
#define STREAM_CODE 8     /* in an InstructionStream: its Code */
#define ARRAY_LENGTH 8
#define ARRAY_DATA 16

/* Of an inlined call: the position of the call, and the number of the function that was inlined. */
#define INLINING_BYTES 16
#define INLINING_FUNCTION 8

static bool read_code_range(const struct v8_heap *h, uint64_t object, struct v8_code *ret)
{
        const struct v8_objects *o = h->objects;
        struct v8_code c = { .object = object, .code = object + 1 };
        uint32_t size;

        if (o->code_stream_start) {
                c.code = v8_heap_read_word(h, object + 1, STREAM_CODE);
                if (v8_heap_read_type(h, c.code) != o->code_type)
                        return false;
                c.start = object + o->code_stream_start;
        } else {
                c.start = object + o->code_start;
        }
        if (!h->memory.read(h->memory.ctx, c.code - 1 + o->code_size, &size, sizeof size))
                return false;
        c.end = c.start + size;
        *ret = c;
        return true;
}

/* Whether the word is the first one of an object with code. */
static bool is_code_map(const struct v8_heap *h, uint64_t word, uint64_t *map, int *reads)
{
        uint16_t type;

        if (!v8_is_object(word))
                return false;
        if (*map)
                return word == *map;
        if (word >> 47 || !*reads)
                return false;
        --*reads;
        if (!h->memory.read(h->memory.ctx, word - 1 + 12, &type, sizeof type) || type != h->objects->stream_type)
                return false;
        return true;
}

bool v8_code_find(const struct v8_heap *h, uint64_t pc, uint64_t *map, struct v8_code *ret)
{
        const struct v8_objects *o = h->objects;
        uint64_t header = o->code_stream_start ? o->code_stream_start : o->code_start, chunk[CHUNK / sizeof(uint64_t)],
                 chunk_start = UINT64_MAX;
        int reads = TYPE_READS_MAX;

        if (!o->code_size || !header || header % sizeof *chunk)
                return false;
        for (uint64_t start = pc & ~(uint64_t)(CODE_ALIGNMENT - 1); start > header && pc - start < LIMIT_V8_CODE_BYTES;
             start -= CODE_ALIGNMENT) { /* an instruction is first if the object's Map precedes it */
                uint64_t object = start - header, word;

                if ((object & ~(uint64_t)(CHUNK - 1)) != chunk_start) {
                        chunk_start = object & ~(uint64_t)(CHUNK - 1);
                        if (!v8_heap_take(h, CHUNK) || !h->memory.read(h->memory.ctx, chunk_start, chunk, sizeof chunk))
                                return false;
                }
                word = chunk[(object - chunk_start) / sizeof *chunk];
                if (!is_code_map(h, word, map, &reads) || !read_code_range(h, object, ret))
                        continue;
                if (pc < ret->start || pc >= ret->end)
                        return false;
                *map = word;
                return true;
        }
        return false;
}

bool v8_code_is_current(const struct v8_heap *h, const struct v8_code *c)
{
        struct v8_code now;

        return v8_heap_read_type(h, c->object + 1) == h->objects->stream_type && read_code_range(h, c->object, &now) &&
               now.start == c->start && now.end == c->end && now.code == c->code;
}

/* Word i of an array that has more than i; 0 otherwise. */
static uint64_t read_array_word(const struct v8_heap *h, uint64_t array, uint32_t i)
{
        uint64_t length = v8_heap_read_word(h, array, ARRAY_LENGTH);

        return v8_is_smi(length) && i < length >> 32 ? v8_heap_read_word(h, array, ARRAY_DATA + 8 * i) : 0;
}

/* Call number i of those that were inlined. */
static bool read_inlining(const struct v8_heap *h, uint64_t calls, int32_t i, struct v8_position *call_ret,
                          int32_t *function_ret)
{
        uint64_t length = v8_heap_read_word(h, calls, ARRAY_LENGTH);
        uint8_t bytes[INLINING_BYTES];
        uint64_t word;

        if (!v8_is_smi(length) || (uint64_t)i >= (length >> 32) / INLINING_BYTES ||
            !h->memory.read(h->memory.ctx, calls - 1 + ARRAY_DATA + (uint64_t)i * INLINING_BYTES, bytes, sizeof bytes))
                return false;
        memcpy(&word, bytes, sizeof word);
        memcpy(function_ret, bytes + INLINING_FUNCTION, sizeof *function_ret);
        *call_ret = v8_position_decode(word);
        return true;
}

/* The function that was compiled; 0: unknown. Newer versions wrap the pointer. */
static uint64_t read_compiled_function(const struct v8_heap *h, uint64_t data)
{
        uint64_t word = read_array_word(h, data, h->objects->function_index);

        if (v8_heap_read_type(h, word) != h->objects->shared_type)
                word = v8_heap_read_word(h, word, 8);
        return v8_heap_read_type(h, word) == h->objects->shared_type ? word : 0;
}

static void locate_optimized(const struct v8_heap *h, uint64_t data, uint64_t calls, struct v8_position position,
                             struct v8_code_place *ret)
{
        uint64_t functions = read_array_word(h, data, h->objects->literals_index);
        int32_t function;

        while (position.inlining >= 0 && ret->count < LIMIT_V8_INLINED - 1) {
                struct v8_position call;
                uint64_t shared;

                if (!read_inlining(h, calls, position.inlining, &call, &function))
                        break;
                shared = function < 0 ? 0 : read_array_word(h, functions, (uint32_t)function);
                if (v8_is_object(shared)) { /* else a built-in function */
                        ret->items[ret->count].shared = shared;
                        ret->items[ret->count++].offset = position.offset;
                }
                if (call.inlining >= position.inlining) /* calls are numbered after their callers */
                        break;
                position = call;
        }
        ret->items[ret->count].shared = read_compiled_function(h, data);
        ret->items[ret->count++].offset = position.inlining >= 0 ? -1 : position.offset;
}

/* Seven bits per byte, lowest first; bit 7: more follow. */
static bool read_unsigned_number(struct reader *r, uint64_t *ret)
{
        uint8_t byte;

        *ret = 0;
        for (unsigned shift = 0; shift < 35 && reader_u8(r, &byte); shift += 7) {
                *ret |= (uint64_t)(byte & 127) << shift;
                if (!(byte & 128))
                        return true;
        }
        return false;
}

/* Bytes of the instruction at the start; 0: unknown. The first four bytecodes are prefixes of wider operands. */
static size_t get_instruction_size(const struct v8_objects *o, const uint8_t *at, size_t left)
{
        size_t prefix = left && at[0] < 4, size;

        if (left <= prefix)
                return 0;
        size = o->bytecode_sizes[prefix ? 1 + (at[0] & 1) : 0][at[prefix]];
        return size && size <= left - prefix ? prefix + size : 0;
}

/*
 * The table has the end of the code before the first instruction, then the length of the code of each.
 */
static int32_t find_baseline_instruction(const struct v8_objects *o, const uint8_t *code, size_t size,
                                         struct reader *table, uint64_t pc_offset)
{
        uint64_t end, length;
        size_t at = 0;

        if (!read_unsigned_number(table, &end) || pc_offset < end)
                return -1;
        while (read_unsigned_number(table, &length)) {
                size_t n = get_instruction_size(o, code + at, size - at);

                if (!n)
                        return -1;
                end += length;
                if (pc_offset < end)
                        return (int32_t)at;
                at += n;
        }
        return -1;
}

static void locate_baseline(const struct v8_heap *h, const struct v8_code *c, uint64_t pc, struct v8_code_place *ret)
{
        uint64_t length = v8_heap_read_word(h, ret->bytecode, ARRAY_LENGTH);
        _cleanup_free_ uint8_t *table = NULL, *code = NULL;
        struct reader r;
        size_t size;

        if (!ret->bytecode || !v8_is_smi(length) || length >> 32 > LIMIT_V8_BYTECODE || !v8_heap_take(h, length >> 32))
                return;
        length >>= 32;
        table = v8_heap_read_bytes(h, v8_heap_read_word(h, c->code, h->objects->code_lines), LIMIT_V8_LINE_TABLE,
                                   &size);
        code = malloc(length + 1);
        if (!table || !code ||
            !h->memory.read(h->memory.ctx, ret->bytecode - 1 + h->objects->bytecode_start, code, length))
                return;
        reader_init(&r, table, size);
        ret->bytecode_offset = find_baseline_instruction(h->objects, code, length, &r, pc - c->start);
}

void v8_code_locate(const struct v8_heap *h, const struct v8_code *c, uint64_t pc, uint64_t bytecode,
                    struct v8_code_place *ret)
{
        uint64_t data = v8_heap_read_word(h, c->code, h->objects->code_deoptimization),
                 calls = read_array_word(h, data, h->objects->inlining_index);
        _cleanup_free_ uint8_t *table = NULL;
        uint32_t flags;
        size_t size;

        *ret = (struct v8_code_place){ .bytecode_offset = -1 };
        ret->is_maglev = h->objects->maglev_kind &&
                         h->memory.read(h->memory.ctx, c->code - 1 + h->objects->code_flags, &flags, sizeof flags) &&
                         (flags & 15) == h->objects->maglev_kind;
        ret->bytecode = v8_function_find_bytecode(h, data);
        if (!ret->bytecode && v8_is_object(calls)) {
                table = v8_heap_read_bytes(h, v8_heap_read_word(h, c->code, h->objects->code_lines),
                                           LIMIT_V8_LINE_TABLE, &size);
                locate_optimized(
                        h, data, calls,
                        table ? v8_positions_find(&h->objects->positions, table, size, (int64_t)(pc - c->start))
                              : V8_POSITION_UNKNOWN,
                        ret);
                return;
        }
        if (!ret->bytecode)
                ret->bytecode = bytecode;
        ret->items[ret->count++].offset = -1;
        locate_baseline(h, c, pc, ret);
}
