/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is split into its parts first. One with an element of context is replaced by what precedes the element and, if
 * the element starts another one, the open summary line; parts of other lines are written in their order.
 *
 * Order: messages, colors, context, code and data, lines.
 */
#include "cli/drop-in/markup_filter.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/drop-in/llvm_arguments.h"
#include "common/cleanup.h"
#include "common/memory/array.h"
#include "common/text/utf8.h"

#define COLOR_BLUE 34
#define COLOR_CYAN 36
#define COLOR_GREEN 32

/* ---- messages ---- */

/* A message, the line, and a mark below the place. */
static void report_markup(const struct markup_filter *f, const char *at, const char *fmt, ...) PRINTF(3, 4);

static void report_markup(const struct markup_filter *f, const char *at, const char *fmt, ...)
{
        va_list args;

        va_start(args, fmt);
        vfprintf(stderr, fmt, args);
        va_end(args);
        fprintf(stderr, "\n%s\n%*s^\n", f->line, (int)(at - f->line), "");
}

static bool refuse_field(const struct markup_filter *f, const struct markup_span *field, const char *expected)
{
        report_markup(f, field->data, "error: expected %s; found '%.*s'", expected, (int)field->size, field->data);
        return false;
}

/* Too many fields are only reported. */
static bool check_field_count(const struct markup_filter *f, const struct markup_node *n, size_t at_least,
                              size_t at_most)
{
        const char *kind = at_least == at_most ? "" : n->field_count < at_least ? "at least " : "at most ";

        if (n->field_count >= at_least && n->field_count <= at_most)
                return true;
        report_markup(f, n->tag.data + n->tag.size, "%s: expected %s%zu field(s); found %zu",
                      n->field_count < at_least ? "error" : "warning", kind,
                      n->field_count < at_least ? at_least : at_most, n->field_count);
        return n->field_count >= at_least;
}

/* ---- colors ---- */

static void append_color(struct markup_filter *f, unsigned color)
{
        if (f->has_colors)
                buf_printf(&f->output->out, "\033[0;%s%um", f->is_bold ? "1;" : "", color);
}

/* Of text that replaces an element. */
static void begin_highlight(struct markup_filter *f)
{
        append_color(f, f->color == COLOR_BLUE ? COLOR_CYAN : COLOR_BLUE);
}

/* Back to the color of the text. */
static void end_highlight(struct markup_filter *f)
{
        if (!f->has_colors)
                return;
        if (f->color)
                append_color(f, f->color);
        else
                buf_append_str(&f->output->out, f->is_bold ? "\033[0m\033[1m" : "\033[0m");
}

static void reset_color(struct markup_filter *f)
{
        if (f->has_colors && (f->color || f->is_bold))
                buf_append_str(&f->output->out, "\033[0m");
        f->color = 0;
        f->is_bold = false;
}

static void change_color(struct markup_filter *f, unsigned color)
{
        if (color == 0) {
                reset_color(f);
        } else if (color == 1) {
                f->is_bold = true;
                if (f->has_colors)
                        buf_append_str(&f->output->out, "\033[1m");
        } else {
                f->color = color;
                if (f->has_colors) /* not bold, as LLVM */
                        buf_printf(&f->output->out, "\033[0;%um", color);
        }
}

/* A value in a highlighted text. */
static void append_value(struct markup_filter *f, const char *fmt, ...) PRINTF(2, 3);

static void append_value(struct markup_filter *f, const char *fmt, ...)
{
        char text[64];
        va_list args;

        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        append_color(f, COLOR_GREEN);
        buf_append_str(&f->output->out, text);
        begin_highlight(f);
}

static void append_value_text(struct markup_filter *f, const struct answer_text *t)
{
        append_color(f, COLOR_GREEN);
        append_known_text(&f->output->out, t);
        begin_highlight(f);
}

static void append_value_span(struct markup_filter *f, const struct markup_span *s)
{
        append_color(f, COLOR_GREEN);
        buf_append(&f->output->out, s->data, s->size);
        begin_highlight(f);
}

static const char *get_line_end(const struct markup_filter *f)
{
        size_t size = strlen(f->line);

        return size && f->line[size - 1] == '\r' ? "\r\n" : "\n";
}

/* An element without an answer, as in "[[[pc:0x1234]]]". */
static void append_raw_element(struct markup_filter *f, const struct markup_node *n)
{
        const char *end = n->text.data + n->text.size - 3, *start = n->tag.data + n->tag.size;
        struct markup_span rest = { start, (size_t)(end - start) }, field;

        begin_highlight(f);
        buf_append_str(&f->output->out, "[[[");
        append_value_span(f, &n->tag);
        while (markup_next_field(&rest, &field)) {
                buf_append_u8(&f->output->out, ':');
                append_value_span(f, &field);
        }
        buf_append_str(&f->output->out, "]]]");
        end_highlight(f);
}

/* ---- context ---- */

static void append_markup_part(struct markup_filter *f, const struct markup_node *n);

/* The parts of a line before a node. */
static void append_markup_before(struct markup_filter *f, const struct markup_node *end)
{
        struct markup_cursor c = { .at = f->line };
        struct markup_node n;

        while (markup_line_next(&c, &n) && n.text.data != end->text.data)
                append_markup_part(f, &n);
}

static int compare_mmaps(const void *a, const void *b)
{
        const struct markup_mmap *x = a, *y = b;

        return x->address < y->address ? -1 : x->address > y->address;
}

static void end_module_line(struct markup_filter *f)
{
        struct buf *out = &f->output->out;

        if (!f->has_open_line)
                return;
        if (f->added_count)
                qsort(f->added, f->added_count, sizeof *f->added, compare_mmaps);
        for (size_t i = 0; i < f->added_count; i++) {
                const struct markup_mmap *m = &f->added[i];

                buf_append_str(out, i ? ",[" : " [");
                append_value(f, "0x%" PRIx64, m->address);
                buf_append_u8(out, '-');
                append_value(f, "0x%" PRIx64, m->address + m->size - 1);
                buf_append_str(out, "](");
                append_value(f, "%s", m->mode);
                buf_append_u8(out, ')');
        }
        buf_append_str(out, "]]]");
        buf_append_str(out, get_line_end(f));
        end_highlight(f);
        f->added_count = 0;
        f->has_open_line = false;
}

/* In place of a node, after what precedes it. */
static void begin_module_line(struct markup_filter *f, const struct markup_node *n, size_t module)
{
        const struct markup_module *m = &f->context.modules[module];
        struct buf *out = &f->output->out;

        end_module_line(f);
        append_markup_before(f, n);
        begin_highlight(f);
        buf_append_str(out, "[[[ELF module");
        append_value(f, " #0x%" PRIx64 " ", m->id);
        buf_append_u8(out, '"');
        append_value_text(f, &(struct answer_text){ .data = m->name, .size = strlen(m->name) });
        buf_append_str(out, "\"; ");
        f->has_open_line = true;
        f->open_module = module;
}

static bool parse_markup_build_id(const struct markup_span *s, struct build_id *ret)
{
        char text[BUILD_ID_HEX_MAX], digits[BUILD_ID_HEX_MAX];

        if (!s->size || s->size >= sizeof text)
                return false;
        memcpy(text, s->data, s->size);
        text[s->size] = 0;
        return parse_llvm_build_id(text, digits) && build_id_from_hex(ret, digits, strlen(digits));
}

static void add_markup_module(struct markup_filter *f, const struct markup_node *n)
{
        char hex[BUILD_ID_HEX_MAX];
        struct build_id build_id;
        struct error err;
        uint64_t id;

        if (!check_field_count(f, n, 3, SIZE_MAX))
                return;
        if (!markup_parse_number(&n->fields[0], 0, &id)) {
                refuse_field(f, &n->fields[0], "module ID");
        } else if (!markup_span_equals(&n->fields[2], "elf")) {
                report_markup(f, n->fields[2].data, "error: unknown module type");
        } else if (!check_field_count(f, n, 4, 4)) {
                return;
        } else if (!parse_markup_build_id(&n->fields[3], &build_id)) {
                refuse_field(f, &n->fields[3], "build ID");
        } else if (markup_context_find_module(&f->context, id) < f->context.module_count) {
                report_markup(f, n->fields[0].data, "error: duplicate module ID");
        } else if (markup_context_add_module(&f->context, id, &n->fields[1], &build_id, &err)) {
                report_markup(f, n->fields[0].data, "error: %s", PRINTABLE(err.text));
        } else {
                begin_module_line(f, n, f->context.module_count - 1);
                buf_append_str(&f->output->out, "BuildID=");
                append_value_text(
                        f, &(struct answer_text){ .data = build_id_hex(&build_id, hex), .size = 2u * build_id.size });
        }
}

/* Some of "rwx", in this order and in any case. */
static bool parse_markup_mode(const struct markup_span *s, char ret[static 4])
{
        size_t count = 0;

        for (const char *c = "rwx"; *c; c++)
                if (count < s->size && (s->data[count] | 0x20) == *c)
                        ret[count++] = *c;
        ret[count] = 0;
        return count && count == s->size;
}

static bool parse_markup_mmap(const struct markup_filter *f, const struct markup_node *n, struct markup_mmap *ret)
{
        uint64_t module;

        if (!check_field_count(f, n, 3, SIZE_MAX))
                return false;
        if (!markup_parse_address(&n->fields[0], &ret->address))
                return refuse_field(f, &n->fields[0], "address");
        if (!markup_parse_number(&n->fields[1], 0, &ret->size))
                return refuse_field(f, &n->fields[1], "size");
        if (!markup_span_equals(&n->fields[2], "load")) {
                report_markup(f, n->fields[2].data, "error: unknown mmap type");
                return false;
        }
        if (!check_field_count(f, n, 6, 6))
                return false;
        if (!markup_parse_number(&n->fields[3], 0, &module))
                return refuse_field(f, &n->fields[3], "module ID");
        if (!parse_markup_mode(&n->fields[4], ret->mode))
                return refuse_field(f, &n->fields[4], "mode");
        ret->module = markup_context_find_module(&f->context, module);
        if (ret->module == f->context.module_count) {
                report_markup(f, n->fields[3].data, "error: unknown module ID");
                return false;
        }
        return markup_parse_address(&n->fields[5], &ret->module_address) || refuse_field(f, &n->fields[5], "address");
}

static void add_markup_mmap(struct markup_filter *f, const struct markup_node *n)
{
        const struct markup_mmap *other;
        struct markup_mmap m = { 0 };
        struct error err;

        if (!parse_markup_mmap(f, n, &m))
                return;
        other = markup_context_overlap(&f->context, &m);
        if (other) {
                report_markup(f, n->fields[0].data,
                              "error: overlapping mmap: #0x%" PRIx64 " [0x%" PRIx64 "-0x%" PRIx64 "]",
                              f->context.modules[other->module].id, other->address, other->address + other->size - 1);
                return;
        }
        if (!array_reserve(&f->added, &f->added_capacity, f->added_count)) {
                report_markup(f, n->fields[0].data, "error: out of memory");
                return;
        }
        if (markup_context_add_mmap(&f->context, &m, &err)) {
                report_markup(f, n->fields[0].data, "error: %s", err.text);
                return;
        }
        if (!f->has_open_line || f->open_module != m.module) {
                begin_module_line(f, n, m.module);
                buf_append_str(&f->output->out, "adds");
        }
        f->added[f->added_count++] = m;
}

static void reset_markup_context(struct markup_filter *f, const struct markup_node *n)
{
        check_field_count(f, n, 0, 0);
        if (!f->context.module_count)
                return;
        end_module_line(f);
        append_markup_before(f, n);
        append_raw_element(f, n);
        buf_append_str(&f->output->out, get_line_end(f));
        markup_context_clear(&f->context);
}

/* @return false for an element that is none of context. */
static bool apply_markup_context(struct markup_filter *f, const struct markup_node *n)
{
        if (n->kind != MARKUP_ELEMENT)
                return false;
        if (markup_span_equals(&n->tag, "module"))
                add_markup_module(f, n);
        else if (markup_span_equals(&n->tag, "mmap"))
                add_markup_mmap(f, n);
        else if (markup_span_equals(&n->tag, "reset"))
                reset_markup_context(f, n);
        else
                return false;
        return true;
}

/* ---- code and data ---- */

struct markup_place {
        struct markup_filter *filter;
        const struct markup_node *node;
        const struct markup_module *module;
        struct named_object *object;
        uint64_t address, module_address;
        uint64_t number; /* of a frame of a backtrace */
        bool is_printed;
};

/* @return false after a message: the address is in no mapping, or the module cannot be read. */
static bool find_markup_place(struct markup_place *p, uint64_t address)
{
        struct markup_filter *f = p->filter;
        const struct markup_mmap *m = markup_context_at(&f->context, address);
        char hex[BUILD_ID_HEX_MAX];
        struct error err;
        enum status st;

        if (!m) {
                report_markup(f, p->node->fields[0].data, "error: no mmap covers address");
                return false;
        }
        p->address = address;
        p->module_address = address - m->address + m->module_address;
        p->module = &f->context.modules[m->module];
        st = named_objects_get_build_id(&f->output->objects, build_id_hex(&p->module->build_id, hex), &p->object, &err);
        if (st)
                fprintf(stderr, "error: %s\n", PRINTABLE(err.text));
        return !st;
}

static void append_markup_answer(struct markup_place *p, void (*give)(void *printer, const struct answer *))
{
        struct answer_source *source = &p->object->source;
        struct error err;

        if (source->ask(source->context, &p->module_address, 1, give, p, &err))
                fprintf(stderr, "error: %s\n", PRINTABLE(err.text));
}

static void append_known_value(struct markup_filter *f, const struct answer_text *t)
{
        const struct answer_text unknown = { .data = "<invalid>", .size = sizeof "<invalid>" - 1, .is_plain = true };

        append_value_text(f, t->size ? t : &unknown);
}

static void append_frame_file(struct markup_filter *f, const struct answer_frame *frame)
{
        const struct answer_text file = get_file_text(&frame->file, f->options->base_names);

        append_known_value(f, &file);
        buf_append_u8(&f->output->out, ':');
        append_value(f, "%" PRIu32, frame->line);
}

/* As in "main[main.c:12]": the function with the line of the innermost inlined call. */
static void print_markup_pc(void *printer, const struct answer *a)
{
        struct markup_place *p = printer;
        struct markup_filter *f = p->filter;
        struct answer_text name;

        if (!a->frame_count)
                return;
        name = get_llvm_function_text(f->options, &a->frames[a->frame_count - 1]);
        begin_highlight(f);
        append_known_value(f, &name);
        buf_append_u8(&f->output->out, '[');
        append_frame_file(f, &a->frames[0]);
        buf_append_u8(&f->output->out, ']');
        end_highlight(f);
        p->is_printed = true;
}

/* As in "   #0.1  0x0000000000401234 ", with the number of a frame, and of an inlined call in it. */
static void append_frame_number(const struct markup_place *p, size_t inlined)
{
        struct markup_filter *f = p->filter;
        char number[24];
        int size = snprintf(number, sizeof number, "%" PRIu64, p->number);

        buf_printf(&f->output->out, "%*s#", size < 5 ? 5 - size : 0, "");
        append_value(f, "%s", number);
        if (inlined) {
                buf_append_u8(&f->output->out, '.');
                append_value(f, "%-2zu", inlined);
        } else {
                buf_append_str(&f->output->out, "   ");
        }
        append_value(f, " 0x%016" PRIx64 " ", p->address);
}

static void print_markup_frame(const struct markup_place *p, const struct answer *a, size_t i)
{
        const struct answer_text module = { .data = p->module->name, .size = strlen(p->module->name) };
        struct markup_filter *f = p->filter;
        struct buf *out = &f->output->out;

        append_frame_number(p, a->frame_count ? a->frame_count - 1 - i : 0);
        if (a->frame_count) {
                const struct answer_text name = get_llvm_function_text(f->options, &a->frames[i]);

                append_known_value(f, &name);
                buf_append_u8(out, ' ');
                append_frame_file(f, &a->frames[i]);
                buf_append_u8(out, ':');
                append_value(f, "%" PRIu32, a->details[i].column);
                buf_append_u8(out, ' ');
        }
        buf_append_u8(out, '(');
        append_value_text(f, &module);
        buf_append_u8(out, '+');
        append_value(f, "0x%" PRIx64, p->module_address);
        buf_append_u8(out, ')');
}

static void print_markup_backtrace(void *printer, const struct answer *a)
{
        struct markup_place *p = printer;
        struct markup_filter *f = p->filter;

        begin_highlight(f);
        print_markup_frame(p, a, 0);
        for (size_t i = 1; i < a->frame_count; i++) {
                buf_append_str(&f->output->out, get_line_end(f));
                print_markup_frame(p, a, i);
        }
        end_highlight(f);
        p->is_printed = true;
}

/* A field with an address of code, and one after it that says whether it is the return address of a call: "ra", "pc".
 */
static bool parse_code_address(const struct markup_filter *f, const struct markup_node *n, size_t i,
                               bool is_return_address, uint64_t *ret)
{
        if (!markup_parse_address(&n->fields[i], ret))
                return refuse_field(f, &n->fields[i], "address");
        if (n->field_count == i + 2) {
                is_return_address = markup_span_equals(&n->fields[i + 1], "ra");
                if (!is_return_address && !markup_span_equals(&n->fields[i + 1], "pc"))
                        return refuse_field(f, &n->fields[i + 1], "PC type");
        }
        *ret -= is_return_address;
        return true;
}

static void append_markup_pc(struct markup_filter *f, const struct markup_node *n)
{
        struct markup_place p = { .filter = f, .node = n };
        uint64_t address;

        if (!check_field_count(f, n, 1, SIZE_MAX) || !check_field_count(f, n, 0, 2) ||
            !parse_code_address(f, n, 0, false, &address))
                return;
        if (find_markup_place(&p, address))
                append_markup_answer(&p, print_markup_pc);
        if (!p.is_printed)
                append_raw_element(f, n);
}

static void append_markup_backtrace(struct markup_filter *f, const struct markup_node *n)
{
        struct markup_place p = { .filter = f, .node = n };
        uint64_t address;

        if (!check_field_count(f, n, 2, SIZE_MAX) || !check_field_count(f, n, 0, 3))
                return;
        if (!markup_parse_number(&n->fields[0], 10, &p.number)) {
                refuse_field(f, &n->fields[0], "frame number");
                return;
        }
        if (!parse_code_address(f, n, 1, true, &address))
                return;
        if (find_markup_place(&p, address))
                append_markup_answer(&p, print_markup_backtrace);
        if (!p.is_printed)
                append_raw_element(f, n);
}

static void append_markup_data(struct markup_filter *f, const struct markup_node *n)
{
        struct markup_place p = { .filter = f, .node = n };
        const struct object_symbol *symbol = NULL;
        uint64_t address;

        if (!check_field_count(f, n, 1, 1))
                return;
        if (!markup_parse_address(&n->fields[0], &address)) {
                refuse_field(f, &n->fields[0], "address");
                return;
        }
        if (find_markup_place(&p, address))
                symbol = object_symbols_at(named_objects_symbols(&f->output->objects, p.object), p.module_address);
        if (!symbol) {
                append_raw_element(f, n);
                return;
        }
        begin_highlight(f);
        append_symbol_name(&f->output->out, symbol->name, f->options->demangle);
        end_highlight(f);
}

static void append_markup_symbol(struct markup_filter *f, const struct markup_node *n)
{
        _cleanup_free_ char *name = NULL;

        if (!check_field_count(f, n, 1, 1))
                return;
        name = strndup(n->fields[0].data, n->fields[0].size);
        begin_highlight(f);
        if (name && *name)
                append_symbol_name(&f->output->out, name, true);
        end_highlight(f);
}

/* ---- lines ---- */

static bool is_markup_tag(const struct markup_span *tag)
{
        for (size_t i = 0; i < tag->size; i++)
                if (tag->data[i] < 'a' || tag->data[i] > 'z')
                        return false;
        return true;
}

static void append_markup_part(struct markup_filter *f, const struct markup_node *n)
{
        if (n->kind == MARKUP_COLOR)
                change_color(f, n->color);
        else if (n->kind == MARKUP_ELEMENT && !is_markup_tag(&n->tag))
                report_markup(f, n->tag.data, "error: tags must be all lowercase characters");
        else if (n->kind == MARKUP_ELEMENT && markup_span_equals(&n->tag, "symbol"))
                append_markup_symbol(f, n);
        else if (n->kind == MARKUP_ELEMENT && markup_span_equals(&n->tag, "pc"))
                append_markup_pc(f, n);
        else if (n->kind == MARKUP_ELEMENT && markup_span_equals(&n->tag, "bt"))
                append_markup_backtrace(f, n);
        else if (n->kind == MARKUP_ELEMENT && markup_span_equals(&n->tag, "data"))
                append_markup_data(f, n);
        else
                buf_append(&f->output->out, n->text.data, n->text.size);
}

void markup_filter_line(struct markup_filter *f, const char *line)
{
        struct markup_cursor c = { .at = line };
        struct markup_node n;

        f->line = line;
        reset_color(f);
        while (markup_line_next(&c, &n))
                if (apply_markup_context(f, &n))
                        return;
        end_module_line(f);
        c = (struct markup_cursor){ .at = line };
        while (markup_line_next(&c, &n))
                append_markup_part(f, &n);
        buf_append_u8(&f->output->out, '\n');
}

void markup_filter_finish(struct markup_filter *f)
{
        f->line = "";
        end_module_line(f);
        reset_color(f);
        markup_context_clear(&f->context);
        free(f->added);
        f->added = NULL;
}
