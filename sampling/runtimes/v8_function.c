/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/v8_function.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "common/search.h"
#include "common/text.h"

#define ARRAY_LENGTH 8
#define SCRIPT_LINE_OFFSET 24
#define DEBUG_INFO_SHARED 8
#define SCOPE_NAMES_MAX 75 /* ScopeInfos with more variables have their names in a table */
#define SCOPE_WORDS 10     /* words after the variables that are read */
#define CODE_WORDS 3       /* words of a Code or of similar data, one of which is the bytecode */

/* ---- functions ---- */

void v8_function_deinit(struct v8_function *f)
{
        free(f->name);
        free(f->positions);
        *f = (struct v8_function){ 0 };
}

bool v8_function_read_key(const struct v8_heap *h, uint64_t shared, struct v8_function_key *ret)
{
        const struct v8_objects *o = h->objects;

        if (v8_heap_read_type(h, shared) != o->shared_type)
                return false;
        *ret = (struct v8_function_key){ .name = v8_heap_read_word(h, shared, o->shared_name),
                                         .script = v8_heap_read_word(h, shared, o->shared_script),
                                         .data = v8_heap_read_word(h, shared, o->shared_data) };
        return true;
}

/* The name and the start in the words that follow the variables of a ScopeInfo. */
struct scope_tail {
        uint64_t name; /* a string; 0: none */
        int32_t start; /* -1: none */
};

/*
 * The words are, each if it exists: name and a number, inferred name, start and end, then other objects. The numbers of
 * the variables precede them. So the range is the last two numbers in the last sequence of at least two.
 */
static struct scope_tail parse_scope_tail(const struct v8_heap *h, const uint64_t *words, size_t n)
{
        struct scope_tail ret = { .start = -1 };
        size_t numbers = 0;

        for (size_t i = 0; i < n; i++) {
                if (v8_is_smi(words[i])) {
                        if (++numbers >= 2)
                                ret.start = (int32_t)(words[i - 1] >> 32);
                        continue;
                }
                if (!v8_is_object(words[i]))
                        break;
                if (v8_heap_is_string(h, v8_heap_read_type(h, words[i]))) {
                        uint64_t length = v8_heap_read_word(h, words[i], ARRAY_LENGTH) >> 32; /* behind the hash */

                        if (!ret.name && length)
                                ret.name = words[i];
                } else if (ret.start >= 0 && numbers >= 2) {
                        break;
                }
                numbers = 0;
        }
        return ret;
}

static struct scope_tail read_scope(const struct v8_heap *h, uint64_t scope)
{
        const struct v8_objects *o = h->objects;
        uint64_t variables = v8_heap_read_word(h, scope, o->scope_slots + 8u * o->scope_locals_count), first, skipped,
                 words[SCOPE_WORDS], n = 0;
        struct scope_tail ret;
        bool has_table;

        if (!v8_is_smi(variables) || variables >> 32 > UINT16_MAX)
                return (struct scope_tail){ .start = -1 };
        variables >>= 32;
        first = o->scope_slots + 8u * o->scope_first_local;
        has_table = variables >= SCOPE_NAMES_MAX &&
                    !v8_heap_is_string(h, v8_heap_read_type(h, v8_heap_read_word(h, scope, (uint32_t)first)));
        skipped = variables + (has_table ? 1 : variables);
        for (; n < SCOPE_WORDS; n++) /* the end of the object may be the end of readable memory */
                if (!h->memory.read(h->memory.ctx, scope - 1 + first + 8 * (skipped + n), &words[n], sizeof *words))
                        break;
        ret = parse_scope_tail(h, words, n);
        if (o->scope_first_local >= 5) /* the range precedes the variables */
                ret.start = (int32_t)(v8_heap_read_word(h, scope, (uint32_t)first - 16) >> 32);
        return ret;
}

uint64_t v8_function_find_bytecode(const struct v8_heap *h, uint64_t data)
{
        if (v8_heap_read_type(h, data) == h->objects->bytecode_type)
                return data;
        for (uint32_t i = 1; v8_is_object(data) && i <= CODE_WORDS; i++) {
                uint64_t word = v8_heap_read_word(h, data, 8 * i);
                uint16_t type = v8_heap_read_type(h, word);

                if (type == h->objects->interpreter_data_type) {
                        word = v8_heap_read_word(h, word, 8);
                        type = v8_heap_read_type(h, word);
                }
                if (type == h->objects->bytecode_type)
                        return word;
        }
        return 0;
}

static uint64_t find_script(const struct v8_heap *h, uint64_t word)
{
        uint16_t type = v8_heap_read_type(h, word);

        if (type == h->objects->debug_info_type) { /* of a function with a breakpoint, it is that of the function */
                word = v8_heap_read_word(h, v8_heap_read_word(h, word, DEBUG_INFO_SHARED), h->objects->shared_script);
                type = v8_heap_read_type(h, word);
        }
        return type == h->objects->script_type ? word : 0;
}

bool v8_function_read(const struct v8_heap *h, uint64_t shared, struct v8_function *ret)
{
        struct v8_function f = { .start = -1 };
        struct scope_tail scope = { .start = -1 };
        uint16_t type;

        if (!v8_function_read_key(h, shared, &f.key))
                return false;
        f.script = find_script(h, f.key.script);
        type = v8_heap_read_type(h, f.key.name);
        if (type == h->objects->scope_info_type)
                scope = read_scope(h, f.key.name);
        else if (v8_heap_is_string(h, type))
                scope.name = f.key.name;
        f.start = scope.start;
        if (scope.name)
                f.name = v8_heap_read_text(h, scope.name, LIMIT_V8_NAME);
        else
                f.name = strdup("");
        if (!f.name)
                return false;
        f.bytecode = v8_function_find_bytecode(h, f.key.data);
        f.positions = v8_heap_read_bytes(h, v8_heap_read_word(h, f.bytecode, h->objects->bytecode_lines),
                                         LIMIT_V8_LINE_TABLE, &f.position_bytes);
        *ret = f;
        return true;
}

/* ---- scripts ---- */

void v8_script_deinit(struct v8_script *s)
{
        free(s->file);
        free(s->line_starts);
        *s = (struct v8_script){ 0 };
}

bool v8_script_read_key(const struct v8_heap *h, uint64_t script, struct v8_script_key *ret)
{
        if (v8_heap_read_type(h, script) != h->objects->script_type)
                return false;
        *ret = (struct v8_script_key){ .name = v8_heap_read_word(h, script, h->objects->script_name),
                                       .source = v8_heap_read_word(h, script, h->objects->script_source) };
        return true;
}

/* Lines end with LF, CR, CR LF, and in UTF-16 with U+2028 and U+2029. */
static bool is_line_end(uint32_t c, uint32_t next)
{
        return c == '\n' || (c == '\r' && next != '\n') || c == 0x2028 || c == 0x2029;
}

static uint32_t get_source_unit(const uint8_t *raw, size_t i, uint8_t width)
{
        return width == 1 ? raw[i] : raw[2 * i] | (uint32_t)raw[2 * i + 1] << 8;
}

#define PIECE 65536 /* characters read at once */

/* False without memory, with too many lines, or when the characters cannot be read. */
static bool read_line_starts(const struct v8_heap *h, const struct v8_characters *c, struct v8_script *s)
{
        uint8_t *raw = malloc(2 * (PIECE + 1));
        size_t capacity = 0;
        bool valid = raw && v8_heap_take(h, (uint64_t)c->count * c->width);

        for (uint32_t at = 0; valid && at < c->count; at += PIECE) {
                size_t n = c->count - at < PIECE ? c->count - at : PIECE, more = n < c->count - at;

                valid = h->memory.read(h->memory.ctx, c->address + (uint64_t)at * c->width, raw, (n + more) * c->width);
                for (size_t i = 0; valid && i < n; i++) {
                        uint32_t next = i + 1 < n + more ? get_source_unit(raw, i + 1, c->width) : 0;

                        if (!is_line_end(get_source_unit(raw, i, c->width), next))
                                continue;
                        valid = s->line_count < LIMIT_V8_LINES &&
                                array_reserve(&s->line_starts, &capacity, s->line_count);
                        if (valid)
                                s->line_starts[s->line_count++] = (uint32_t)(at + i + 1);
                }
        }
        free(raw);
        return valid;
}

/* Modules are named by URL: file:///srv/app.mjs, with escaped bytes. */
static void decode_file_url(char *file)
{
        char *to = file;
        unsigned byte;

        if (!starts_with(file, "file:///"))
                return;
        for (const char *from = file + strlen("file://"); *from; from++) {
                int size = 0;

                if (*from == '%' && sscanf(from, "%%%2x%n", &byte, &size) == 1 && size == 3 && byte) {
                        *to++ = (char)byte;
                        from += 2;
                } else {
                        *to++ = *from;
                }
        }
        *to = '\0';
}

bool v8_script_read(const struct v8_heap *h, uint64_t script, struct v8_script *ret)
{
        struct v8_script s = { 0 };
        struct v8_characters source;
        uint64_t line_offset;

        if (!v8_script_read_key(h, script, &s.key))
                return false;
        s.file = v8_heap_read_text(h, s.key.name, LIMIT_PATH_BYTES);
        if (!s.file)
                s.file = strdup("");
        if (!s.file)
                return false;
        decode_file_url(s.file);
        line_offset = v8_heap_read_word(h, script, SCRIPT_LINE_OFFSET);
        s.line_offset = v8_is_smi(line_offset) ? (int32_t)(line_offset >> 32) : 0;
        s.has_lines = v8_heap_find_characters(h, s.key.source, &source) && source.count <= LIMIT_V8_SOURCE &&
                      read_line_starts(h, &source, &s);
        *ret = s;
        return true;
}

bool v8_script_has_loop_at(const struct v8_heap *h, const struct v8_script *s, int32_t offset)
{
        static const char *const keywords[] = { "for", "while", "do" };
        struct v8_characters c;
        uint8_t raw[2 * 5] = { 0 };
        char text[6] = "";
        size_t n;

        if (offset < 0 || !v8_heap_find_characters(h, s->key.source, &c) || (uint32_t)offset >= c.count)
                return false;
        n = c.count - (uint32_t)offset < 5 ? c.count - (uint32_t)offset : 5;
        if (!h->memory.read(h->memory.ctx, c.address + (uint64_t)offset * c.width, raw, n * c.width))
                return false;
        for (size_t i = 0; i < n; i++)
                text[i] = get_source_unit(raw, i, c.width) < 128 ? (char)get_source_unit(raw, i, c.width) : '?';
        for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
                if (starts_with(text, keywords[i]))
                        return true;
        return false;
}

uint32_t v8_script_find_line(const struct v8_script *s, int32_t offset)
{
        size_t line;
        int64_t ret;

        if (!s->has_lines || offset < 0)
                return 0;
        line = find_lower_bound(i, 0, s->line_count, s->line_starts[i] <= (uint32_t)offset);
        ret = (int64_t)line + 1 + s->line_offset;
        return ret > 0 && ret <= INT32_MAX ? (uint32_t)ret : 0;
}
