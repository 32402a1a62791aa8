/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path of a lookup: the header gives the parts of the table; the table of functions gives the entry and the offset of
 * the record of each function; the record gives its name, the tables of steps (file, line and inlined call by pc) and,
 * by its funcdata, the inline tree. A step is a difference of the value and of the pc, both varints, so a table is
 * decoded from the function's entry on.
 *
 * The layouts differ mainly in read_go_header_1_2() and read_go_header(), get_entry_size(), read_go_record(),
 * find_inline_tree(), go_get_file_path() and read_inlined_call(). Numbers are read by read_word(), a reader, or
 * read_image_bytes(), all of which check bounds.
 *
 * Order: steps, words, the header, functions, inline trees.
 */
#include "symbolizer/sources/go_pclntab.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"
#include "common/search.h"
#include "symbolizer/table/huge_array.h"
#include "symbolizer/sources/data_pieces.h"

/* Go's tables of values by pc. */

void go_steps_deinit(struct go_steps *s)
{
        free(s->items);
        *s = (struct go_steps){ 0 };
}

/* At most five bytes. */
static bool read_go_varint(struct reader *r, uint32_t *ret)
{
        uint32_t value = 0;
        uint8_t byte;

        for (unsigned shift = 0; shift < 35; shift += 7) {
                if (!reader_u8(r, &byte))
                        return false;
                value |= (uint32_t)(byte & 0x7f) << shift;
                if (!(byte & 0x80)) {
                        *ret = value;
                        return true;
                }
        }
        return false;
}

bool go_steps_read(const struct go_pclntab *t, const struct go_function *f, uint32_t offset, struct go_steps *s)
{
        uint32_t value = UINT32_MAX, change, length;
        uint64_t pc = f->entry;
        struct reader r;

        s->count = 0;
        reader_init(&r, t->data, t->size);
        if (offset == 0 || !reader_seek(&r, t->tables + offset))
                return true;
        while (pc < f->end && read_go_varint(&r, &change) && (change || pc == f->entry) &&
               read_go_varint(&r, &length) && length) {
                value += change & 1 ? ~(change >> 1) : change >> 1;
                if (__builtin_add_overflow(pc, (uint64_t)length * t->quantum, &pc) || pc > f->end)
                        pc = f->end;
                if (!huge_array_reserve(&s->items, &s->capacity, s->count))
                        return false;
                s->items[s->count++] = (struct go_step){ pc, (int32_t)value };
        }
        return true;
}

int32_t go_steps_at(const struct go_steps *s, uint64_t address)
{
        size_t at = find_lower_bound(i, 0, s->count, s->items[i].end <= address);

        return at < s->count ? s->items[at].value : -1;
}

/* ---- the table ---- */

enum { MAGIC_1_2 = 0xfffffffb, MAGIC_1_16 = 0xfffffffa, MAGIC_1_18 = 0xfffffff0u, MAGIC_1_20 = 0xfffffff1u };
#define FIRST_WORD 8   /* offset of the header's words */
#define TREES_TRIED 64 /* functions whose inline trees are checked before the location is accepted */
#define NO_DATA UINT32_MAX

static bool read_word(const uint8_t *data, size_t size, bool big_endian, uint64_t at, unsigned bytes, uint64_t *ret)
{
        struct reader r;
        uint16_t v16;
        uint32_t v32;

        reader_init(&r, data, size);
        r.big_endian = big_endian;
        if (!reader_seek(&r, at))
                return false;
        if (bytes == 8)
                return reader_u64(&r, ret);
        if (bytes == 2) {
                if (!reader_u16(&r, &v16))
                        return false;
                *ret = v16;
                return true;
        }
        if (!reader_u32(&r, &v32))
                return false;
        *ret = v32;
        return true;
}

static bool get_word(const struct go_pclntab *t, uint64_t at, unsigned bytes, uint64_t *ret)
{
        return read_word(t->data, t->size, t->big_endian, at, bytes, ret);
}

static bool get_u32(const struct go_pclntab *t, uint64_t at, uint32_t *ret)
{
        uint64_t v;

        if (!get_word(t, at, 4, &v))
                return false;
        *ret = (uint32_t)v;
        return true;
}

/* ---- the header ---- */

static bool parse_layout(uint64_t magic, enum go_layout *ret)
{
        switch (magic) {
        case MAGIC_1_2:
                *ret = GO_1_2;
                return true;
        case MAGIC_1_16:
                *ret = GO_1_16;
                return true;
        case MAGIC_1_18:
                *ret = GO_1_18;
                return true;
        case MAGIC_1_20:
                *ret = GO_1_20;
                return true;
        default:
                return false;
        }
}

bool go_pclntab_has_magic(const uint8_t *data, size_t size, bool big_endian)
{
        enum go_layout layout;
        uint64_t magic;

        return size > FIRST_WORD && read_word(data, size, big_endian, 0, 4, &magic) && parse_layout(magic, &layout) &&
               data[4] == 0 && data[5] == 0 && (data[6] == 1 || data[6] == 2 || data[6] == 4) &&
               (data[7] == 4 || data[7] == 8);
}

/* Size of one half of an entry of the table of functions. */
static unsigned get_entry_size(const struct go_pclntab *t)
{
        return t->layout >= GO_1_18 ? 4 : t->pointer_size;
}

static bool read_go_header_1_2(struct go_pclntab *t)
{
        uint64_t table_bytes, files;

        t->functions = FIRST_WORD + t->pointer_size;
        if (!get_word(t, FIRST_WORD, t->pointer_size, &t->function_count) ||
            t->function_count > t->size / (2 * t->pointer_size))
                return false;
        table_bytes = (2 * t->function_count + 1) * t->pointer_size;
        if (!get_word(t, t->functions + table_bytes, 4, &files))
                return false;
        t->files = files;
        return true;
}

static bool read_go_header(struct go_pclntab *t)
{
        uint64_t *const words[] = { &t->names, &t->units, &t->files, &t->tables, &t->functions };
        uint64_t at = FIRST_WORD, file_count;

        if (!get_word(t, at, t->pointer_size, &t->function_count) ||
            !get_word(t, at += t->pointer_size, t->pointer_size, &file_count))
                return false;
        if (t->layout >= GO_1_18 && !get_word(t, at += t->pointer_size, t->pointer_size, &t->text_start))
                return false;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
                if (!get_word(t, at += t->pointer_size, t->pointer_size, words[i]) || *words[i] > t->size)
                        return false;
        t->function_base = t->functions;
        return true;
}

enum status go_pclntab_open(const struct elf_image *img, const uint8_t *data, size_t size, uint64_t address,
                            struct go_pclntab *ret, struct error *err)
{
        struct go_pclntab t = {
                .img = img, .data = data, .size = size, .address = address, .big_endian = img->big_endian
        };
        uint64_t magic, table_bytes;

        if (!go_pclntab_has_magic(data, size, t.big_endian) || !get_word(&t, 0, 4, &magic) ||
            !parse_layout(magic, &t.layout))
                return error_set(err, ST_BAD_DATA, "the pclntab of '%s' has an unknown header", img->name);
        t.quantum = data[6];
        t.pointer_size = data[7];
        if (!(t.layout == GO_1_2 ? read_go_header_1_2(&t) : read_go_header(&t)) || t.function_count == 0 ||
            __builtin_mul_overflow(t.function_count, 2ull * get_entry_size(&t), &table_bytes) || t.functions > t.size ||
            table_bytes > t.size - t.functions)
                return error_set(err, ST_BAD_DATA, "the pclntab of '%s' is cut off or malformed", img->name);
        *ret = t;
        return ST_OK;
}

/* ---- functions ---- */

static const char *get_name_at(const struct go_pclntab *t, uint64_t base, uint32_t offset)
{
        uint64_t at = base + offset, left = at < t->size ? t->size - at : 0;

        if (!left || !memchr(t->data + at, 0, left < LIMIT_NAME_BYTES ? left : LIMIT_NAME_BYTES))
                return "";
        return (const char *)t->data + at;
}

/* Before Go 1.16 names are interleaved with other data: the byte before a name is arbitrary. */
static bool is_text_start(const struct go_pclntab *t, uint32_t offset)
{
        uint64_t at = t->names + offset;

        return at > 0 && at < t->size && t->data[at] > ' ' && (t->layout == GO_1_2 || t->data[at - 1] == 0);
}

/* Lines are signed. */
static uint32_t get_go_line(uint32_t line)
{
        return line <= INT32_MAX ? line : 0;
}

struct go_record { /* of a function: fields after the entry */
        uint64_t at;
        uint32_t name, file_table, line_table, pcdata_count, unit, start_line;
        uint8_t funcdata_count;
        uint64_t pcdata; /* offset of the words */
        uint64_t funcdata;
};

static bool read_go_record(const struct go_pclntab *t, uint64_t offset, struct go_record *ret)
{
        struct go_record r = { .at = t->function_base + offset };
        uint64_t at = r.at + (t->layout >= GO_1_18 ? 4 : t->pointer_size);
        uint32_t last;

        if (offset > t->size || !get_u32(t, at, &r.name) || !get_u32(t, at + 16, &r.file_table) ||
            !get_u32(t, at + 20, &r.line_table) || !get_u32(t, at + 24, &r.pcdata_count))
                return false;
        at += 28;
        if (t->layout >= GO_1_16) {
                if (!get_u32(t, at, &r.unit))
                        return false;
                at += 4;
        }
        if (t->layout >= GO_1_20) {
                if (!get_u32(t, at, &r.start_line))
                        return false;
                at += 4;
        }
        if (!get_u32(t, at, &last)) /* kind, flags, padding, number of funcdata */
                return false;
        r.funcdata_count = t->data[at + 3];
        r.pcdata = at + 4;
        if (r.pcdata_count > (t->size - r.pcdata) / 4)
                return false;
        r.funcdata = r.pcdata + 4ull * r.pcdata_count;
        if (t->layout < GO_1_18)
                r.funcdata += -(t->address + r.funcdata) & (t->pointer_size - 1u);
        *ret = r;
        return true;
}

/* Entry and record of a function; index function_count is the end of the last one, without a record. */
static bool read_go_entry(const struct go_pclntab *t, uint64_t index, uint64_t *entry_ret, uint64_t *offset_ret)
{
        unsigned word = get_entry_size(t);
        uint64_t at = t->functions + index * 2 * word, entry;

        if (!get_word(t, at, word, &entry))
                return false;
        if (t->layout >= GO_1_18 && __builtin_add_overflow(entry, t->text_start, &entry))
                return false;
        *entry_ret = entry;
        return !offset_ret || get_word(t, at + word, word, offset_ret);
}

static uint64_t find_inline_tree(const struct go_pclntab *t, const struct go_record *r)
{
        uint64_t offset, word = t->layout >= GO_1_18 ? 4 : t->pointer_size;

        if (t->inline_tree >= r->funcdata_count ||
            !get_word(t, r->funcdata + t->inline_tree * word, (unsigned)word, &offset))
                return 0;
        if (t->layout < GO_1_18)
                return offset;
        return offset == NO_DATA ? 0 : t->tree_base + offset;
}

static bool read_go_function(const struct go_pclntab *t, uint64_t index, struct go_function *ret, struct go_record *r)
{
        struct go_function f = { 0 };
        uint64_t offset;

        if (index >= t->function_count || !read_go_entry(t, index, &f.entry, &offset) ||
            !read_go_entry(t, index + 1, &f.end, NULL) || f.end <= f.entry || !read_go_record(t, offset, r))
                return false;
        f.name = get_name_at(t, t->names, r->name);
        f.file_table = r->file_table;
        f.line_table = r->line_table;
        f.unit = r->unit;
        f.start_line = get_go_line(r->start_line);
        *ret = f;
        return true;
}

static void find_function_inlining(const struct go_pclntab *t, const struct go_record *r, struct go_function *f)
{
        if (t->inline_table < r->pcdata_count && get_u32(t, r->pcdata + 4ull * t->inline_table, &f->inline_table) &&
            f->inline_table)
                f->tree = find_inline_tree(t, r);
}

bool go_pclntab_get_function(const struct go_pclntab *t, uint64_t index, struct go_function *ret)
{
        struct go_record r;

        if (!read_go_function(t, index, ret, &r))
                return false;
        if (t->inlining)
                find_function_inlining(t, &r, ret);
        return true;
}

uint64_t go_pclntab_data_end(const struct go_pclntab *t, unsigned alignment)
{
        uint64_t last = 0;

        /* Records are in the order of the functions, so the last one ends last. */
        for (uint64_t i = t->function_count; i > 0 && !last; i--) {
                uint64_t entry, offset;
                struct go_record r;

                if (read_go_entry(t, i - 1, &entry, &offset) && read_go_record(t, offset, &r))
                        last = r.funcdata + r.funcdata_count * (t->layout >= GO_1_18 ? 4ull : t->pointer_size);
        }
        return (t->address + last + alignment - 1) / alignment * alignment;
}

const char *go_get_file_path(const struct go_pclntab *t, const struct go_function *f, int32_t index)
{
        uint32_t offset;

        if (index < 0)
                return "";
        if (t->layout == GO_1_2)
                return get_u32(t, t->files + 4ull * (uint32_t)index, &offset) ? get_name_at(t, 0, offset) : "";
        if (!get_u32(t, t->units + 4 * ((uint64_t)f->unit + (uint32_t)index), &offset) || offset == NO_DATA)
                return "";
        return get_name_at(t, t->files, offset);
}

/* ---- inline trees ---- */

unsigned go_inlined_call_bytes(const struct go_pclntab *t)
{
        return t->layout >= GO_1_20 ? 16 : 20;
}

static bool read_inlined_call(const struct go_pclntab *t, uint64_t tree, uint32_t index, uint32_t *name,
                              struct go_inlined_call *ret)
{
        unsigned size = go_inlined_call_bytes(t), name_at = t->layout >= GO_1_20 ? 4 : 12;
        unsigned pc_at = t->layout >= GO_1_20 ? 8 : 16;
        const uint8_t *bytes;
        uint64_t at, value, start_line = 0;

        if (!tree || __builtin_add_overflow(tree, (uint64_t)index * size, &at) ||
            !read_image_bytes(t->img, at, size, &bytes) || !read_word(bytes, size, t->big_endian, name_at, 4, &value))
                return false;
        *name = (uint32_t)value;
        if (!read_word(bytes, size, t->big_endian, pc_at, 4, &value) ||
            (t->layout >= GO_1_20 && !read_word(bytes, size, t->big_endian, 12, 4, &start_line)))
                return false;
        ret->parent_pc = (uint32_t)value;
        ret->start_line = get_go_line((uint32_t)start_line);
        return true;
}

bool go_read_inlined_call(const struct go_pclntab *t, const struct go_function *f, uint32_t index,
                          struct go_inlined_call *ret)
{
        struct go_inlined_call call;
        uint32_t name;

        if (!read_inlined_call(t, f->tree, index, &name, &call) || call.parent_pc >= f->end - f->entry ||
            !is_text_start(t, name))
                return false;
        call.name = get_name_at(t, t->names, name);
        *ret = call;
        return true;
}

bool go_pclntab_try_inlining(struct go_pclntab *t, unsigned inline_table, unsigned inline_tree, uint64_t tree_base)
{
        struct go_pclntab trial = *t;
        struct go_steps steps = { 0 };
        unsigned seen = 0;
        bool fits = true, has_evidence = false; /* all zeros are consistent but no evidence */

        trial.inlining = true;
        trial.inline_table = inline_table;
        trial.inline_tree = inline_tree;
        trial.tree_base = tree_base;
        for (uint64_t i = 0; fits && seen < TREES_TRIED && i < t->function_count; i++) {
                struct go_inlined_call call;
                struct go_function f;
                bool any = false;

                if (!go_pclntab_get_function(&trial, i, &f) || !f.tree)
                        continue;
                if (!go_steps_read(&trial, &f, f.inline_table, &steps))
                        break;
                for (size_t k = 0; fits && k < steps.count; k++) {
                        if (steps.items[k].value < 0)
                                continue;
                        any = true;
                        fits = go_read_inlined_call(&trial, &f, (uint32_t)steps.items[k].value, &call);
                        has_evidence =
                                has_evidence || (fits && (call.parent_pc || call.name != get_name_at(t, t->names, 0)));
                }
                seen += any;
        }
        go_steps_deinit(&steps);
        if (!fits || !seen || !has_evidence)
                return false;
        *t = trial;
        return true;
}
