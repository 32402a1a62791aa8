/* SPDX-License-Identifier: Apache-2.0 */
/* Each request has two forms, text in the styles LLVM and GNU, and JSON: first those of code, then variables. */
#include "cli/drop-in/llvm_output.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/drop-in/source_context.h"
#include "cli/drop-in/tool_output.h"
#include "common/cleanup.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text.h"
#include "common/text/utf8.h"
#include "symbol-index/demangle.h"
#include "symbolizer/extraction/extract_variables.h"

struct llvm_frame {
        struct answer_frame frame;
        struct answer_detail detail;
        uint64_t entry; /* start address of the function; UINT64_MAX unknown */
        bool is_approximate;
        const struct answer_source *source; /* for its text; NULL none */
        uint64_t address;
};

/* ---- texts ---- */

static bool is_operator_at(const struct answer_text *name, size_t i)
{
        return i + 8 < name->size && strncmp(name->data + i, "operator", 8) == 0 &&
               (i == 0 || strchr(":* &", name->data[i - 1])) && !isalnum((unsigned char)name->data[i + 8]) &&
               name->data[i + 8] != '_';
}

/* "operator" with the symbol behind it, as in "operator()" or "operator new[]"; a type converted to is left out. */
static size_t measure_operator(const char *text)
{
        static const char *const symbols[] = { "()", "[]", "<=>", "->*", "->", "<<=", ">>=",
                                               "<<", ">>", "<=",  ">=",  "<",  ">",   "," };

        for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
                if (starts_with(text + 8, symbols[i]))
                        return 8 + strlen(symbols[i]);
        return 8;
}

/* The name of a function without its parameters, enclosing scopes and result, as in DW_AT_name. */
static struct answer_text shorten_function_name(const struct answer_text *name)
{
        struct answer_text ret = *name;
        size_t end = name->size, start = 0;
        int depth = 0;

        for (size_t i = 0; i < name->size; i++) {
                char c = name->data[i];

                if (depth == 0 && is_operator_at(name, i)) {
                        start = i;
                        i += measure_operator(name->data + i); /* its brackets and blanks are part of the name */
                        c = name->data[i];
                        if (i >= name->size)
                                break;
                        if (c == '<')
                                depth++;
                        if (c != '(')
                                continue;
                }
                if (c == '(' && depth == 0 && i && strncmp(name->data + i, "(anonymous", 10) != 0) {
                        end = i;
                        break;
                }
                depth += (c == '<' || c == '(' || c == '{') - (c == '>' || c == ')' || c == '}');
                if (depth == 0 && !is_operator_at(name, start) &&
                    (c == ' ' || (c == ':' && i && name->data[i - 1] == ':')))
                        start = i + 1;
        }
        ret.data += start;
        ret.size = end - start;
        return ret;
}

void append_llvm_symbol_name(struct buf *out, const char *name, bool is_readable)
{
        const char *suffix = is_readable && starts_with(name, "_Z") ? strchr(name, '.') : NULL;
        _cleanup_free_ char *base = suffix ? strndup(name, (size_t)(suffix - name)) : NULL;

        if (!base || !symbol_can_be_demangled(base)) {
                append_raw_symbol_name(out, name, is_readable);
                return;
        }
        append_raw_symbol_name(out, base, true);
        buf_printf(out, " (%s)", suffix);
}

struct answer_text get_llvm_function_text(const struct llvm_options *o, const struct answer_frame *f)
{
        /* Short names are those of DWARF: what has no file is only a symbol. */
        if (o->functions == LLVM_FUNCTIONS_NONE || (o->functions == LLVM_FUNCTIONS_SHORT && !f->file.size))
                return (struct answer_text){ .size = 0 };
        if (o->functions == LLVM_FUNCTIONS_SHORT)
                return shorten_function_name(&f->function);
        return o->demangle || !f->linkage_name.size ? f->function : f->linkage_name;
}

/* ---- text styles ---- */

static void append_llvm_position(const struct llvm_options *o, const struct llvm_frame *l, struct buf *out)
{
        const struct answer_frame *f = &l->frame;
        const char *note = l->is_approximate ? " (approximate)" : "";

        append_file_name(out, &f->file, o->base_names);
        if (o->style == LLVM_STYLE_LLVM)
                buf_printf(out, ":%" PRIu32 ":%" PRIu32 "%s\n", f->line, l->detail.column, note);
        else if (l->detail.discriminator)
                buf_printf(out, ":%" PRIu32 "%s (discriminator %" PRIu32 ")\n", f->line, note, l->detail.discriminator);
        else
                buf_printf(out, ":%" PRIu32 "%s\n", f->line, note);
}

static void append_verbose_frame(const struct llvm_options *o, const struct llvm_frame *l, struct buf *out)
{
        const struct answer_detail *d = &l->detail;

        buf_append_str(out, "  Filename: ");
        append_file_name(out, &l->frame.file, o->base_names);
        buf_append_u8(out, '\n');
        if (d->start_line) {
                buf_append_str(out, "  Function start filename: ");
                append_file_name(out, &d->start_file, o->base_names);
                buf_printf(out, "\n  Function start line: %" PRIu32 "\n", d->start_line);
        }
        if (l->entry != UINT64_MAX && o->style == LLVM_STYLE_LLVM)
                buf_printf(out, "  Function start address: 0x%" PRIx64 "\n", l->entry);
        buf_printf(out, "  Line: %" PRIu32 "\n  Column: %" PRIu32 "\n", l->frame.line, d->column);
        if (d->discriminator)
                buf_printf(out, "  Discriminator: %" PRIu32 "\n", d->discriminator);
        if (l->is_approximate)
                buf_append_str(out, "  Approximate: true\n");
}

static void append_llvm_frame(const struct llvm_options *o, const struct llvm_frame *l, bool is_inlined_into,
                              struct buf *out)
{
        const char *after = o->pretty ? " at " : "\n";
        const struct answer_text name = get_llvm_function_text(o, &l->frame);

        if (o->functions != LLVM_FUNCTIONS_NONE) {
                if (o->pretty && is_inlined_into)
                        buf_append_str(out, " (inlined by) ");
                append_known_text(out, &name);
                buf_append_str(out, after);
        }
        if (o->verbose)
                append_verbose_frame(o, l, out);
        else
                append_llvm_position(o, l, out);
        append_source_lines(l->source, l->address, &l->frame, o->source_lines, out);
}

/* The number of frames that are printed: an unknown one in an answer without any. */
static size_t count_llvm_frames(const struct llvm_options *o, const struct answer *a)
{
        return !o->inlines || !a->frame_count ? 1 : a->frame_count;
}

/* The symbol of the function has precedence over DWARF for its name and its start. */
static void add_symbol_facts(struct llvm_frame *l, const struct llvm_subject *s)
{
        l->entry = s->function->address;
        if (!l->frame.file.size)
                l->frame.file = (struct answer_text){ .data = s->function->file, .size = strlen(s->function->file) };
        if (s->function_name.size)
                l->frame.function = l->frame.linkage_name = s->function_name;
}

/* Without inlined calls: the innermost position, with the name of the symbol. */
static struct llvm_frame get_llvm_frame(const struct llvm_options *o, const struct llvm_subject *s,
                                        const struct answer *a, size_t i)
{
        struct llvm_frame ret = { .entry = UINT64_MAX,
                                  .is_approximate = s->is_approximate && i == 0,
                                  .source = s->source,
                                  .address = a->address };
        const struct answer_frame *outermost;

        if (!a->frame_count) {
                if (s->function)
                        add_symbol_facts(&ret, s);
                return ret;
        }
        ret.frame = a->frames[i];
        if (a->details) {
                ret.detail = a->details[i];
                ret.entry = ret.detail.entry;
        }
        if (!o->inlines && o->functions == LLVM_FUNCTIONS_LINKAGE && o->style != LLVM_STYLE_GNU) {
                outermost = &a->frames[a->frame_count - 1];
                ret.frame.function = outermost->function;
                ret.frame.linkage_name = outermost->linkage_name;
        }
        if (s->function && (i + 1 == a->frame_count || (!o->inlines && o->style != LLVM_STYLE_GNU)))
                add_symbol_facts(&ret, s);
        return ret;
}

static void append_llvm_text(const struct llvm_options *o, const struct llvm_subject *s, const struct answer *a,
                             struct buf *out)
{
        if (o->addresses && !s->has_no_address)
                buf_printf(out, "0x%" PRIx64 "%s", a->address + o->adjust_vma + s->tag, o->pretty ? ": " : "\n");
        for (size_t i = 0; i < count_llvm_frames(o, a); i++) {
                const struct llvm_frame frame = get_llvm_frame(o, s, a, i);

                append_llvm_frame(o, &frame, i != 0, out);
        }
        if (o->style == LLVM_STYLE_LLVM)
                buf_append_u8(out, '\n');
}

/* ---- JSON ---- */

static void put_json_text(struct json_out *j, const char *key, const struct answer_text *t)
{
        json_out_strn(j, key, t->size ? t->data : "", t->size);
}

static void put_llvm_frame(const struct llvm_options *o, struct json_out *j, const struct llvm_frame *l)
{
        const struct answer_text name = get_llvm_function_text(o, &l->frame);
        const struct answer_text file = get_file_text(&l->frame.file, o->base_names);
        const struct answer_text start_file = get_file_text(&l->detail.start_file, o->base_names);
        _cleanup_buf_ struct buf lines;
        char start[32];

        buf_init(&lines, LIMIT_SOURCE_FILE_BYTES);
        append_source_lines(l->source, l->address, &l->frame, o->source_lines, &lines);

        json_out_object(j, NULL);
        if (l->is_approximate)
                json_out_bool(j, "Approximate", true);
        json_out_uint(j, "Column", l->detail.column);
        json_out_uint(j, "Discriminator", l->detail.discriminator);
        put_json_text(j, "FileName", &file);
        put_json_text(j, "FunctionName", &name);
        json_out_uint(j, "Line", l->frame.line);
        if (lines.size)
                json_out_strn(j, "Source", (const char *)lines.data, lines.size);
        snprintf(start, sizeof start, "0x%" PRIx64, l->entry);
        json_out_str(j, "StartAddress", l->entry == UINT64_MAX ? "" : start);
        put_json_text(j, "StartFileName", &start_file);
        json_out_uint(j, "StartLine", l->detail.start_line);
        json_out_object_end(j);
}

static void put_json_address(struct json_out *j, uint64_t address)
{
        char text[32];

        snprintf(text, sizeof text, "0x%" PRIx64, address);
        json_out_str(j, "Address", text);
}

static void append_llvm_json(const struct llvm_options *o, const struct llvm_subject *s, const struct answer *a,
                             struct buf *out)
{
        struct json_out j;

        json_out_init(&j, out);
        json_out_object(&j, NULL);
        if (!s->has_no_address)
                put_json_address(&j, a->address + o->adjust_vma + s->tag);
        json_out_str(&j, "ModuleName", s->module);
        json_out_array(&j, "Symbol");
        for (size_t i = 0; i < count_llvm_frames(o, a); i++) {
                const struct llvm_frame frame = get_llvm_frame(o, s, a, i);

                put_llvm_frame(o, &j, &frame);
        }
        json_out_array_end(&j);
        json_out_object_end(&j);
}

/* @param variable  NULL unknown */
static void put_json_variable(struct json_out *j, const struct object_symbol *variable, bool is_readable)
{
        _cleanup_buf_ struct buf name = { 0 };
        char number[32];

        json_out_object(j, "Data");
        buf_init(&name, KiB(64));
        if (variable)
                append_raw_symbol_name(&name, variable->name, is_readable);
        json_out_str(j, "Name", buf_cstr(&name));
        snprintf(number, sizeof number, "0x%" PRIx64, variable ? variable->size : 0);
        json_out_str(j, "Size", number);
        snprintf(number, sizeof number, "0x%" PRIx64, variable ? variable->address : 0);
        json_out_str(j, "Start", number);
        json_out_object_end(j);
}

static void append_json_data(const struct llvm_options *o, const char *module, uint64_t address,
                             const struct object_symbol *variable, struct buf *out)
{
        struct json_out j;

        json_out_init(&j, out);
        json_out_object(&j, NULL);
        put_json_address(&j, address);
        put_json_variable(&j, variable, o->demangle);
        json_out_str(&j, "ModuleName", module);
        json_out_object_end(&j);
}

/* ---- variables ---- */

static struct answer_text get_variable_text(const char *text)
{
        return (struct answer_text){ .data = text, .size = strlen(text) };
}

static void append_variable_number(struct buf *out, const char *text, const char *after)
{
        buf_append_str(out, *text ? text : "??");
        buf_append_str(out, after);
}

/* With the whole path of its file in any case. */
static void append_llvm_variable(const char *const *fields, struct buf *out)
{
        const struct answer_text function = get_variable_text(fields[VARIABLE_FUNCTION]);
        const struct answer_text name = get_variable_text(fields[VARIABLE_NAME]);
        const struct answer_text path = get_variable_text(fields[VARIABLE_PATH]);

        append_known_text(out, &function);
        buf_append_u8(out, '\n');
        append_known_text(out, &name);
        buf_append_u8(out, '\n');
        append_known_text(out, &path);
        buf_append_u8(out, ':');
        append_variable_number(out, fields[VARIABLE_LINE], "\n");
        append_variable_number(out, fields[VARIABLE_FRAME_OFFSET], " ");
        append_variable_number(out, fields[VARIABLE_SIZE], " ");
        append_variable_number(out, fields[VARIABLE_TAG_OFFSET], "\n");
}

static void put_llvm_hex(struct json_out *j, const char *key, const char *decimal, const char *unknown)
{
        char text[32];

        snprintf(text, sizeof text, "0x%" PRIx64, (uint64_t)strtoull(decimal, NULL, 10));
        json_out_str(j, key, *decimal ? text : unknown);
}

static void put_llvm_variable(struct json_out *j, const char *const *fields)
{
        json_out_object(j, NULL);
        json_out_str(j, "DeclFile", fields[VARIABLE_PATH]);
        json_out_uint(j, "DeclLine", strtoull(fields[VARIABLE_LINE], NULL, 10));
        if (*fields[VARIABLE_FRAME_OFFSET])
                json_out_int(j, "FrameOffset", strtoll(fields[VARIABLE_FRAME_OFFSET], NULL, 10));
        json_out_str(j, "FunctionName", fields[VARIABLE_FUNCTION]);
        json_out_str(j, "Name", fields[VARIABLE_NAME]);
        put_llvm_hex(j, "Size", fields[VARIABLE_SIZE], "0x0");
        put_llvm_hex(j, "TagOffset", fields[VARIABLE_TAG_OFFSET], "");
        json_out_object_end(j);
}

static void append_json_variables(const char *module, uint64_t address, const struct buf *report, struct buf *out)
{
        const char *fields[VARIABLE_FIELDS];
        struct json_out j;
        size_t at = 0;

        json_out_init(&j, out);
        json_out_object(&j, NULL);
        put_json_address(&j, address);
        json_out_array(&j, "Frame");
        while (extract_variables_next(report, &at, fields))
                put_llvm_variable(&j, fields);
        json_out_array_end(&j);
        json_out_str(&j, "ModuleName", module);
        json_out_object_end(&j);
}

void append_llvm_variables(const struct llvm_options *o, const char *module, uint64_t address, const struct buf *report,
                           struct buf *out)
{
        const char *fields[VARIABLE_FIELDS];
        size_t at = 0;

        if (o->style == LLVM_STYLE_JSON) {
                append_json_variables(module, address, report, out);
                return;
        }
        if (o->addresses)
                buf_printf(out, "0x%" PRIx64 "%s", address, o->pretty ? ": " : "\n");
        if (!report->size)
                buf_append_str(out, "??\n");
        while (extract_variables_next(report, &at, fields))
                append_llvm_variable(fields, out);
        if (o->style == LLVM_STYLE_LLVM)
                buf_append_u8(out, '\n');
}

/* ---- answers ---- */

void append_llvm_answer(const struct llvm_options *o, const struct llvm_subject *s, const struct answer *a,
                        struct buf *out)
{
        if (o->style == LLVM_STYLE_JSON)
                append_llvm_json(o, s, a, out);
        else
                append_llvm_text(o, s, a, out);
}

void append_llvm_data(const struct llvm_options *o, const char *module, uint64_t address,
                      const struct object_symbol *variable, struct buf *out)
{
        if (o->style == LLVM_STYLE_JSON) {
                append_json_data(o, module, address, variable, out);
                return;
        }
        if (o->addresses)
                buf_printf(out, "0x%" PRIx64 "%s", address, o->pretty ? ": " : "\n");
        append_symbol_name(out, variable ? variable->name : "", o->demangle);
        buf_printf(out, "\n%" PRIu64 " %" PRIu64 "\n??:?\n", variable ? variable->address : 0,
                   variable ? variable->size : 0);
        if (o->style == LLVM_STYLE_LLVM)
                buf_append_u8(out, '\n');
}

/* ---- symbols in place of addresses ---- */

void llvm_symbol_answer_begin(struct llvm_symbol_answer *a, const struct llvm_options *o, struct buf *out)
{
        *a = (struct llvm_symbol_answer){ .options = *o, .out = out };
        a->options.inlines = false;
        if (o->style == LLVM_STYLE_JSON)
                a->options.source_lines = 0; /* as LLVM's */
        if (o->style != LLVM_STYLE_JSON)
                return;
        json_out_init(&a->json, out);
        json_out_object(&a->json, NULL);
        json_out_array(&a->json, "Loc");
}

void llvm_symbol_answer_add(struct llvm_symbol_answer *a, const struct llvm_subject *s, const struct answer *answer)
{
        struct llvm_options alone = a->options;
        struct llvm_frame frame;

        alone.style = LLVM_STYLE_LLVM; /* in each style the name is that of the symbol */
        frame = get_llvm_frame(&alone, s, answer, 0);
        if (!frame.frame.file.size)
                return;
        a->count++;
        if (a->options.style == LLVM_STYLE_JSON)
                put_llvm_frame(&a->options, &a->json, &frame);
        else
                append_llvm_frame(&a->options, &frame, false, a->out);
}

void llvm_symbol_answer_end(struct llvm_symbol_answer *a, const char *module, const struct answer_text *symbol)
{
        if (a->options.style == LLVM_STYLE_JSON) {
                json_out_array_end(&a->json);
                json_out_str(&a->json, "ModuleName", module);
                put_json_text(&a->json, "SymName", symbol);
                json_out_object_end(&a->json);
                return;
        }
        if (!a->count)
                append_llvm_frame(&a->options, &(struct llvm_frame){ .entry = UINT64_MAX }, false, a->out);
        if (a->options.style == LLVM_STYLE_LLVM)
                buf_append_u8(a->out, '\n');
}

/* ---- failures ---- */

/* Without a message, the answer of a request of its kind that nothing is known about. */
static void append_json_failure(enum llvm_command command, const char *module, const uint64_t *address,
                                const struct answer_text *symbol, const char *message, struct buf *out)
{
        struct json_out j;

        json_out_init(&j, out);
        json_out_object(&j, NULL);
        if (address)
                put_json_address(&j, *address);
        if (message) {
                json_out_object(&j, "Error");
                json_out_str(&j, "Message", message);
                json_out_object_end(&j);
        } else if (command == LLVM_DATA) {
                put_json_variable(&j, NULL, false);
        } else if (command == LLVM_FRAME || symbol->size) {
                json_out_array(&j, command == LLVM_FRAME ? "Frame" : "Loc");
                json_out_array_end(&j);
        }
        json_out_str(&j, "ModuleName", module);
        if (symbol->size)
                put_json_text(&j, "SymName", symbol);
        if (!message && command == LLVM_CODE && !symbol->size) {
                json_out_array(&j, "Symbol");
                json_out_array_end(&j);
        }
        json_out_object_end(&j);
}

void append_llvm_failure(const struct llvm_options *o, enum llvm_command command, const char *module,
                         const uint64_t *address, const struct answer_text *symbol, const char *message,
                         struct buf *out)
{
        const struct answer a = { .address = address ? *address - o->adjust_vma : 0 };
        const struct llvm_subject subject = { .module = module, .has_no_address = !address };

        if (o->style == LLVM_STYLE_JSON && (message || address || symbol->size))
                append_json_failure(command, module, address, symbol, message, out);
        else if (command == LLVM_DATA)
                append_llvm_data(o, module, address ? *address : 0, NULL, out);
        else if (command == LLVM_FRAME)
                append_llvm_variables(o, module, address ? *address : 0, &(struct buf){ .size = 0 }, out);
        else
                append_llvm_answer(o, &subject, &a, out);
}
