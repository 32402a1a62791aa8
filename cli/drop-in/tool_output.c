/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/drop-in/tool_output.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/drop-in/line_input.h"
#include "common/exit_code.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/text/utf8.h"
#include "symbol-index/demangle.h"

#define OUTPUT_BYTES MiB(1)

enum status tool_output_open(struct tool_output *o, struct error *err)
{
        buf_init(&o->out, MiB(256));
        o->batch = calloc(TOOL_BATCH_MAX, sizeof *o->batch);
        return o->batch ? ST_OK : error_no_memory(err);
}

void tool_output_deinit(struct tool_output *o)
{
        named_objects_deinit(&o->objects);
        buf_deinit(&o->out);
        free(o->batch);
        o->batch = NULL;
}

void report_tool_error(struct tool_output *o, const char *fmt, ...)
{
        va_list args;

        o->has_failed = true;
        fprintf(stderr, "%s: ", o->program);
        va_start(args, fmt);
        vfprintf(stderr, fmt, args);
        va_end(args);
        fputc('\n', stderr);
}

static void write_tool_output(struct tool_output *o)
{
        struct error err;
        enum status st = buf_status(&o->out, &err, "output");

        if (!st)
                st = file_write_all(STDOUT_FILENO, o->out.data, o->out.size, "standard output", &err);
        buf_clear(&o->out);
        if (st) {
                report_tool_error(o, "%s", err.text);
                exit(EXIT_FAILED);
        }
}

static void print_counted(void *context, const struct answer *a)
{
        struct tool_output *o = context;

        o->print(o->context, a);
        o->batch_count++;
        if (o->out.size >= OUTPUT_BYTES)
                write_tool_output(o);
}

void tool_output_answer(struct tool_output *o)
{
        size_t count = o->batch_count;
        struct error err;
        enum status st;

        if (!count)
                return;
        o->batch_count = 0; /* answered so far */
        st = o->object->source.ask(o->object->source.context, o->batch, count, print_counted, o, &err);
        if (st)
                report_tool_error(o, "%s", PRINTABLE(err.text));
        for (size_t i = o->batch_count; i < count; i++)
                o->print(o->context, &(struct answer){ .address = o->batch[i] });
        o->batch_count = 0;
}

void tool_output_add(struct tool_output *o, struct named_object *object, uint64_t address)
{
        if (o->object != object || o->batch_count == TOOL_BATCH_MAX)
                tool_output_answer(o);
        o->object = object;
        o->batch[o->batch_count++] = address;
}

void tool_output_flush(struct tool_output *o)
{
        tool_output_answer(o);
        write_tool_output(o);
}

static void flush_before_wait(void *context)
{
        tool_output_flush(context);
}

enum status tool_output_handle_requests(struct tool_output *o, int argc, char **argv,
                                        void (*handle)(void *context, char *request), struct error *err)
{
        struct line_input input = { .before_wait = flush_before_wait, .context = o, .split_bytes = o->line_bytes };
        enum status st;
        char *line;

        for (int i = 0; i < argc; i++)
                handle(o->context, argv[i]);
        if (argc)
                return ST_OK;
        st = line_input_open(&input, err);
        while (!st) {
                st = line_input_next(&input, &line, err);
                if (!st)
                        handle(o->context, line);
        }
        line_input_deinit(&input);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

void append_known_text(struct buf *out, const struct answer_text *t)
{
        if (!t->size)
                buf_append(out, "??", 2);
        else if (t->is_plain)
                buf_append(out, t->data, t->size);
        else
                utf8_append_escaped_n(out, t->data, t->size);
}

void append_function_name(struct buf *out, const struct answer_frame *f, bool is_readable)
{
        append_known_text(out, is_readable || !f->linkage_name.size ? &f->function : &f->linkage_name);
}

void append_raw_symbol_name(struct buf *out, const char *name, bool is_readable)
{
        _cleanup_buf_ struct buf scratch = { 0 };
        const char *text = NULL;

        buf_init(&scratch, KiB(64));
        if (is_readable)
                text = symbol_demangle(name, &scratch);
        buf_append_str(out, text ? text : name);
}

void append_symbol_name(struct buf *out, const char *name, bool is_readable)
{
        _cleanup_buf_ struct buf text;

        buf_init(&text, KiB(64));
        append_raw_symbol_name(&text, name, is_readable);
        append_known_text(out, &(struct answer_text){ .data = buf_cstr(&text), .size = text.size });
}

struct answer_text get_file_text(const struct answer_text *file, bool base_only)
{
        struct answer_text base = *file;
        const char *slash = base_only && file->size ? memrchr(file->data, '/', file->size) : NULL;

        if (slash) {
                base.size -= (size_t)(slash + 1 - base.data);
                base.data = slash + 1;
        }
        return base;
}

void append_file_name(struct buf *out, const struct answer_text *file, bool base_only)
{
        const struct answer_text text = get_file_text(file, base_only);

        append_known_text(out, &text);
}
