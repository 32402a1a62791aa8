/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sources/dwarf_chains.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "symbol-index/demangle.h"
#include "symbolizer/table/huge_array.h"

#define NOT_ASKED (UINT32_MAX - 1)
#define NO_TEXT UINT32_MAX
#define FEW_SLOTS 1024 /* a power of two */

void dwarf_chains_init(struct dwarf_chains *c)
{
        *c = (struct dwarf_chains){ 0 };
        buf_init(&c->texts, LIMIT_DWARF_UNIT_TEXT_BYTES);
        buf_init(&c->scratch, 4 * LIMIT_NAME_BYTES);
}

static void text_list_deinit(struct dwarf_text_list *l)
{
        free(l->items);
        free(l->numbers);
}

void dwarf_chains_deinit(struct dwarf_chains *c)
{
        free(c->items);
        free(c->places);
        free(c->frames);
        free(c->slots);
        free(c->entries);
        text_list_deinit(&c->functions);
        text_list_deinit(&c->files);
        buf_deinit(&c->texts);
        buf_deinit(&c->scratch);
        dwarf_chains_init(c);
}

static bool text_list_begin(struct dwarf_text_list *l, size_t count)
{
        if (!array_reserve_many(&l->numbers, &l->number_capacity, 0, count))
                return false;
        for (size_t i = 0; i < count; i++)
                l->numbers[i] = NOT_ASKED;
        l->count = 0;
        return true;
}

bool dwarf_chains_begin(struct dwarf_chains *c, const struct dwarf_code *code)
{
        c->count = c->frame_count = c->entry_count = 0;
        c->failed = false;
        buf_clear(&c->texts);
        c->slot_count = c->slots ? FEW_SLOTS : 0;
        if (c->slots)
                memset(c->slots, 0, c->slot_count * sizeof *c->slots);
        return text_list_begin(&c->functions, code->name_count) && text_list_begin(&c->files, code->lines.file_count);
}

/* ---- texts ---- */

const char *dwarf_make_plain_name(const struct dwarf_name *n, struct buf *text)
{
        _cleanup_buf_ struct buf scratch = { 0 };
        const char *full;

        if (!n->plain || !n->around)
                return n->plain ? n->plain : "";
        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        buf_init(text, LIMIT_DEMANGLED_BYTES + LIMIT_NAME_BYTES);
        buf_printf(text, "%s::%s", symbol_demangle(n->around, &scratch), n->plain);
        full = buf_cstr(text);
        return full ? full : n->plain;
}

/* @return its number; NO_TEXT for "" and without memory */
static uint32_t add_unit_text(struct dwarf_chains *c, struct dwarf_text_list *l, const char *text, bool is_made,
                              bool is_linkage_name)
{
        struct dwarf_text t = { .borrowed = is_made ? NULL : text,
                                .offset = c->texts.size,
                                .is_linkage_name = is_linkage_name,
                                .start_file = NO_TEXT };

        t.size = (uint32_t)strnlen(text, LIMIT_NAME_BYTES);
        if (!t.size || (is_made && buf_append(&c->texts, text, t.size)))
                return NO_TEXT;
        if (!huge_array_reserve(&l->items, &l->capacity, l->count)) {
                c->failed = true;
                return NO_TEXT;
        }
        t.hash = hash_symbol_text(text, t.size);
        l->items[l->count] = t;
        return (uint32_t)l->count++;
}

static uint32_t add_file_text(struct dwarf_chains *c, const struct dwarf_code *code, uint32_t file)
{
        const char *path;

        buf_clear(&c->scratch);
        dwarf_lines_path(&code->lines, file, &c->scratch);
        path = buf_cstr(&c->scratch);
        return add_unit_text(c, &c->files, path ? path : "", true, false);
}

static inline uint32_t number_file(struct dwarf_chains *c, const struct dwarf_code *code, uint32_t file)
{
        if (file >= code->lines.file_count)
                return NO_TEXT;
        if (c->files.numbers[file] == NOT_ASKED)
                c->files.numbers[file] = add_file_text(c, code, file);
        return c->files.numbers[file];
}

static uint32_t add_name_text(struct dwarf_chains *c, const struct dwarf_name *n)
{
        struct buf text = { 0 };
        const char *plain;
        uint32_t number;

        if (n->linkage)
                return add_unit_text(c, &c->functions, n->linkage, false, true);
        plain = dwarf_make_plain_name(n, &text);
        number = add_unit_text(c, &c->functions, plain, plain != n->plain, false);
        buf_deinit(&text);
        return number;
}

static uint32_t add_function_text(struct dwarf_chains *c, const struct dwarf_code *code, const struct dwarf_name *n)
{
        uint32_t number = add_name_text(c, n);
        struct dwarf_text *t;

        if (number == NO_TEXT || !n->start_line)
                return number;
        t = &c->functions.items[number];
        t->start_line = n->start_line;
        if (!n->start_path)
                t->start_file = number_file(c, code, n->start_file);
        else if (code->lines.wants_positions && *n->start_path) /* symbols with positions have it as it is written */
                t->start_file = add_unit_text(c, &c->files, n->start_path, true, false);
        else
                t->start_path = n->start_path;
        return number;
}

static inline uint32_t number_function(struct dwarf_chains *c, const struct dwarf_code *code, uint32_t name)
{
        if (c->functions.numbers[name] == NOT_ASKED)
                c->functions.numbers[name] = add_function_text(c, code, &code->names[name]);
        return c->functions.numbers[name];
}

/* ---- chains ---- */

static uint32_t hash_place(struct dwarf_place p)
{
        uint64_t h = (uint64_t)p.scope << 32 ^ (uint64_t)p.file << 20 ^ p.line;

        h = (h ^ h >> 29) * UINT64_C(0x9e3779b97f4a7c15);
        return (uint32_t)(h >> 32);
}

/* The slot of a place, or the free one where it belongs. */
static uint64_t *find_place_slot(const struct dwarf_chains *c, struct dwarf_place p, uint32_t hash)
{
        size_t at = hash & (c->slot_count - 1);

        while (c->slots[at] &&
               (c->slots[at] >> 32 != hash || memcmp(&c->places[(uint32_t)c->slots[at] - 1], &p, sizeof p) != 0))
                at = (at + 1) & (c->slot_count - 1);
        return &c->slots[at];
}

static bool grow_place_slots(struct dwarf_chains *c)
{
        size_t slot_count = c->slot_count ? c->slot_count * 2 : FEW_SLOTS;

        if (c->count * 2 < c->slot_count)
                return true;
        if (slot_count > c->slot_capacity) {
                free(c->slots);
                c->slot_count = c->slot_capacity = 0;
                c->slots = calloc(slot_count, sizeof *c->slots);
                if (!c->slots)
                        return false;
                c->slot_capacity = slot_count;
        } else {
                memset(c->slots, 0, slot_count * sizeof *c->slots);
        }
        c->slot_count = slot_count;
        for (size_t i = 0; i < c->count; i++) {
                uint32_t hash = hash_place(c->places[i]);

                *find_place_slot(c, c->places[i], hash) = (uint64_t)hash << 32 | (i + 1);
        }
        return true;
}

/* Whether path ends with '/' and `relative`, whose leading "./" are ignored. */
static bool is_path_behind_directory(const char *path, size_t size, const char *relative)
{
        size_t n;

        while (relative[0] == '.' && relative[1] == '/')
                relative += 2;
        n = strlen(relative);
        return n && relative[0] != '/' && n < size && path[size - n - 1] == '/' &&
               memcmp(path + size - n, relative, n) == 0;
}

/*
 * Whether the file of a frame is that of a declaration in another unit. With link-time optimization the two units may
 * have different directories: -ffile-prefix-map and similar options do not apply to the units that the linker makes.
 */
static bool is_start_file(const struct dwarf_chains *c, const struct dwarf_text *function, uint32_t file)
{
        const struct dwarf_text *t = &c->files.items[file];
        const char *path = dwarf_text_of(c, t);
        size_t n = strlen(function->start_path);

        return n == 0 || (n == t->size && memcmp(path, function->start_path, n) == 0) ||
               is_path_behind_directory(path, t->size, function->start_path);
}

static struct symbol_table_frame make_unit_frame(struct dwarf_chains *c, const struct dwarf_code *code, uint32_t name,
                                                 struct dwarf_place p)
{
        uint32_t function = number_function(c, code, name), file = number_file(c, code, p.file);
        struct dwarf_text *t = function == NO_TEXT ? NULL : &c->functions.items[function];

        if (t && t->start_path && file != NO_TEXT && is_start_file(c, t, file)) {
                t->start_file = file;
                t->start_path = NULL;
        }
        return (struct symbol_table_frame){ function, file, p.line };
}

static size_t count_row_positions(const struct dwarf_code *code)
{
        return code->lines.position_count ? code->lines.position_count : 1;
}

size_t dwarf_chains_position_count(const struct dwarf_chains *c, const struct dwarf_code *code)
{
        return count_row_positions(code) + code->scope_count + c->entry_count;
}

static struct symbol_position get_row_position(const struct dwarf_code *code, size_t number)
{
        return (struct symbol_position){
                .place = number ? code->lines.positions[number] : (struct source_position){ 0 },
                .entry = UINT64_MAX,
        };
}

static uint64_t get_scope_entry(const struct dwarf_code *code, uint32_t scope)
{
        return scope == DWARF_NO_SCOPE ? UINT64_MAX : code->scopes[scope].low_pc;
}

struct symbol_position dwarf_chains_position(const struct dwarf_chains *c, const struct dwarf_code *code, size_t number)
{
        size_t rows = count_row_positions(code);
        struct symbol_position ret;

        if (number < rows)
                return get_row_position(code, number);
        number -= rows;
        if (number < code->scope_count) {
                const struct dwarf_scope *s = &code->scopes[number];

                return (struct symbol_position){ { s->call_line, s->call_column, s->call_discriminator },
                                                 get_scope_entry(code, s->parent) };
        }
        number -= code->scope_count;
        ret = get_row_position(code, c->entries[number].line);
        ret.entry = get_scope_entry(code, c->entries[number].scope);
        return ret;
}

/* The line of the innermost frame. */
static uint32_t number_row_line(struct dwarf_chains *c, const struct dwarf_code *code, struct dwarf_place p)
{
        if (!code->lines.wants_positions || get_scope_entry(code, p.scope) == UINT64_MAX)
                return p.line;
        if (!array_reserve(&c->entries, &c->entry_capacity, c->entry_count)) {
                c->failed = true;
                return p.line;
        }
        c->entries[c->entry_count++] = (struct dwarf_entry_place){ p.scope, p.line };
        return (uint32_t)(dwarf_chains_position_count(c, code) - 1);
}

static inline uint32_t number_call_line(const struct dwarf_code *code, uint32_t scope)
{
        return code->lines.wants_positions ? (uint32_t)(count_row_positions(code) + scope)
                                           : code->scopes[scope].call_line;
}

/* The innermost frame is at the line row; each frame around it is at the call. */
static bool add_frames(struct dwarf_chains *c, const struct dwarf_code *code, struct dwarf_place p)
{
        struct symbol_table_frame *to;

        if (!huge_array_reserve_more(&c->frames, &c->frame_capacity, c->frame_count, LIMIT_INLINE_DEPTH + 1))
                return false;
        to = c->frames + c->frame_count;
        p.line = number_row_line(c, code, p);
        if (p.scope == DWARF_NO_SCOPE)
                *to++ = (struct symbol_table_frame){ NO_TEXT, number_file(c, code, p.file), p.line };
        while (p.scope != DWARF_NO_SCOPE) {
                const struct dwarf_scope *s = &code->scopes[p.scope];

                *to++ = make_unit_frame(c, code, s->name, p);
                p = (struct dwarf_place){ s->parent, s->call_file, number_call_line(code, p.scope) };
        }
        c->frame_count = (size_t)(to - c->frames);
        return true;
}

uint32_t dwarf_chains_intern(struct dwarf_chains *c, const struct dwarf_code *code, struct dwarf_place place)
{
        uint32_t hash = hash_place(place);
        size_t first = c->frame_count;
        uint64_t *slot;

        if (!grow_place_slots(c))
                return UINT32_MAX;
        slot = find_place_slot(c, place, hash);
        if (*slot)
                return (uint32_t)*slot - 1;
        if (!huge_array_reserve(&c->items, &c->capacity, c->count) ||
            !huge_array_reserve(&c->places, &c->place_capacity, c->count) || !add_frames(c, code, place) || c->failed ||
            c->frame_count > UINT32_MAX || c->count >= UINT32_MAX - 1)
                return UINT32_MAX;
        c->items[c->count] = (struct symbol_chain){ (uint32_t)first, (uint32_t)(c->frame_count - first) };
        c->places[c->count++] = place;
        *slot = (uint64_t)hash << 32 | c->count;
        return (uint32_t)c->count - 1;
}
