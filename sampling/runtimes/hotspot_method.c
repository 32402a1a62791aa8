/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/hotspot_method.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/text/java_class.h"
#include "common/text/utf8.h"
#include "sampling/runtimes/hotspot_streams.h"

#define FLAG_HAS_LINES 1 /* of a ConstMethod, in all versions */

void hotspot_method_deinit(struct hotspot_method *x)
{
        free(x->name);
        free(x->file);
        free(x->lines);
        *x = (struct hotspot_method){ 0 };
}

static bool read_object_field(const struct process_memory *m, uint64_t object, struct hotspot_slot field, uint64_t *ret)
{
        uint64_t value = 0;

        if (!object || object > SAMPLE_FRAME_ADDRESS_MAX || !m->read(m->ctx, object + field.offset, &value, field.size))
                return false;
        *ret = value;
        return true;
}

/* The headers of a Method. */
struct method_head {
        struct hotspot_method_key key;
        uint64_t const_method, class;
        uint64_t const_bytes; /* of the ConstMethod with its bytecode and tables */
        bool has_lines;
};

static bool read_method_head(const struct process_memory *m, const struct hotspot_objects *o, uint64_t address,
                             struct method_head *ret)
{
        uint8_t bytes[LIMIT_HOTSPOT_CONST_METHOD];
        struct method_head h = { .has_lines = false };
        uint64_t constants, entry;

        if (!read_object_field(m, address, o->method_const, &h.const_method) || !h.const_method ||
            !m->read(m->ctx, h.const_method, bytes, o->const_bytes))
                return false;
        h.key.code = h.const_method + o->const_bytes;
        h.key.constants = (uint64_t)hotspot_get_field(bytes, o->const_bytes, o->const_constants);
        h.key.code_bytes = (uint32_t)hotspot_get_field(bytes, o->const_bytes, o->const_code_bytes);
        h.key.name = (uint32_t)hotspot_get_field(bytes, o->const_bytes, o->const_name);
        h.const_bytes = (uint64_t)hotspot_get_field(bytes, o->const_bytes, o->const_words) * 8;
        h.has_lines = hotspot_get_field(bytes, o->const_bytes, o->const_flags) & FLAG_HAS_LINES;
        if (!read_object_field(m, h.key.constants, o->constants_holder, &h.class) ||
            !read_object_field(m, h.class, o->class_constants, &constants))
                return false;
        if (constants != h.key.constants &&
            (!read_object_field(m, address, o->method_entry, &entry) || entry - o->code >= o->code_bytes))
                return false;
        *ret = h;
        return true;
}

bool hotspot_method_read_key(const struct process_memory *m, const struct hotspot_objects *o, uint64_t address,
                             struct hotspot_method_key *ret)
{
        struct method_head h;

        if (!read_method_head(m, o, address, &h))
                return false;
        *ret = h.key;
        return true;
}

/* Append the text of a Symbol, which is modified UTF-8: what is not UTF-8 is replaced. */
static bool append_symbol_text(const struct process_memory *m, const struct hotspot_objects *o, uint64_t symbol,
                               struct buf *to)
{
        char text[LIMIT_HOTSPOT_NAME + 1];
        _cleanup_buf_ struct buf scratch = { 0 };
        uint64_t length;

        if (!read_object_field(m, symbol, o->symbol_length, &length))
                return false;
        length = length < LIMIT_HOTSPOT_NAME ? length : LIMIT_HOTSPOT_NAME;
        if (!m->read(m->ctx, symbol + o->symbol_text, text, length))
                return false;
        text[length] = 0;
        buf_init(&scratch, 4 * sizeof text);
        buf_append_str(to, utf8_replace_invalid(text, &scratch));
        return true;
}

/* Append an entry of the constant pool that is a text. */
static bool append_constant(const struct process_memory *m, const struct hotspot_objects *o, uint64_t constants,
                            uint64_t number, struct buf *to)
{
        uint64_t symbol;

        return number && m->read(m->ctx, constants + o->constants_bytes + number * 8, &symbol, sizeof symbol) &&
               append_symbol_text(m, o, symbol, to);
}

static bool append_method_name(const struct process_memory *m, const struct hotspot_objects *o,
                               const struct method_head *h, struct buf *to)
{
        uint64_t symbol;

        if (!read_object_field(m, h->class, o->class_name, &symbol) || !append_symbol_text(m, o, symbol, to))
                return false;
        to->size = java_class_stable_size((const char *)to->data, to->size);
        buf_append_str(to, ".");
        return append_constant(m, o, h->key.constants, h->key.name, to);
}

static void append_source_file(const struct process_memory *m, const struct hotspot_objects *o,
                               const struct method_head *h, struct buf *to)
{
        bool is_in_constants = o->constants_file.size;
        uint64_t number;

        if (read_object_field(m, is_in_constants ? h->key.constants : h->class,
                              is_in_constants ? o->constants_file : o->class_file, &number))
                (void)append_constant(m, o, h->key.constants, number, to);
}

/* Read the line table, which follows the bytecode. */
static void read_method_lines(const struct process_memory *m, const struct hotspot_objects *o,
                              const struct method_head *h, struct hotspot_method *ret)
{
        uint64_t before = o->const_bytes + (uint64_t)h->key.code_bytes, size;
        _cleanup_free_ uint8_t *bytes = NULL;

        if (!h->has_lines || h->const_bytes <= before)
                return;
        size = h->const_bytes - before < LIMIT_HOTSPOT_LINE_TABLE ? h->const_bytes - before : LIMIT_HOTSPOT_LINE_TABLE;
        bytes = malloc(size);
        if (!bytes || !m->read(m->ctx, h->const_method + before, bytes, size))
                return;
        ret->line_bytes = (uint32_t)hotspot_measure_lines(bytes, size, o->number_base);
        if (ret->line_bytes)
                ret->lines = malloc(ret->line_bytes);
        if (ret->lines)
                memcpy(ret->lines, bytes, ret->line_bytes);
        else
                ret->line_bytes = 0;
}

bool hotspot_method_read(const struct process_memory *m, const struct hotspot_objects *o, uint64_t address,
                         struct hotspot_method *ret)
{
        _cleanup_buf_ struct buf name, file;
        struct hotspot_method x = { .lines = NULL };
        struct method_head h;

        buf_init(&name, 16 * LIMIT_HOTSPOT_NAME);
        buf_init(&file, 8 * LIMIT_HOTSPOT_NAME);
        if (!read_method_head(m, o, address, &h) || !append_method_name(m, o, &h, &name))
                return false;
        append_source_file(m, o, &h, &file);
        if (!buf_cstr(&name) || !buf_cstr(&file))
                return false;
        x.key = h.key;
        x.name = strdup(buf_cstr(&name));
        x.file = strdup(buf_cstr(&file));
        if (!x.name || !x.file) {
                hotspot_method_deinit(&x);
                return false;
        }
        read_method_lines(m, o, &h, &x);
        *ret = x;
        return true;
}
