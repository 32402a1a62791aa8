/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm-symbolizer and llvm-addr2line. A line of input is a request: a command, an object unless --obj names it, and an
 * address. Requests are parsed by parse_llvm_request() and answered in their order by cli/drop-in/tool_output.h, or by
 * append_llvm_failure() if they cannot be.
 *
 * Requests, messages and answers are those of version 19. Not supported: formats other than ELF.
 *
 * Order: answers, requests, a log, the program.
 * Source: LLVM manual, "llvm-symbolizer".
 */
#include <getopt.h>
#include <inttypes.h>
#include <libiberty/libiberty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/drop-in/drop_in.h"
#include "cli/drop-in/indented_json.h"
#include "cli/drop-in/line_zero.h"
#include "cli/drop-in/llvm_arguments.h"
#include "cli/drop-in/llvm_output.h"
#include "cli/drop-in/markup_filter.h"
#include "cli/drop-in/tool_output.h"
#include "common/build_id.h"
#include "common/cleanup.h"
#include "common/exit_code.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "symbolizer/extraction/debug_file_search.h"
#include "symbolizer/formats/symcache.h"

#define SAME_NAME_MAX SYMCACHE_LOOKUP_BATCH /* symbols of one name that are answered */
#define ARGUMENTS_MAX 256                   /* in the environment variable with options */
#define LLVM_LINE_BYTES 1023                /* a longer line is more than one request */

struct llvm_symbolizer {
        struct llvm_arguments arguments;
        const struct llvm_options *options; /* those of the arguments */
        struct tool_output output;
        struct buf function_name; /* of the last answer */
        char unreadable[4096];    /* the file of the last message */
        bool is_list;             /* JSON answers to arguments are one array */
        size_t answered;
        size_t answer_at; /* the start of the current answer in the output */
        uint64_t tag;     /* of the address that is looked up without it */
};

/* ---- answers ---- */

static bool is_json_indented(const struct llvm_symbolizer *t)
{
        return t->options->style == LLVM_STYLE_JSON && t->options->pretty;
}

static void begin_llvm_answer(struct llvm_symbolizer *t)
{
        struct buf *out = &t->output.out;

        if (t->is_list && t->answered)
                buf_append_u8(out, ',');
        if (t->is_list && is_json_indented(t))
                buf_append_str(out, "\n  ");
        t->answered++;
        t->answer_at = out->size;
}

static void indent_llvm_answer(struct llvm_symbolizer *t)
{
        struct buf *out = &t->output.out;
        size_t size = out->size - t->answer_at;
        _cleanup_free_ char *json = out->size > t->answer_at ? malloc(size) : NULL;

        if (!json)
                return;
        memcpy(json, out->data + t->answer_at, size);
        out->size = t->answer_at;
        append_indented_json(out, json, size, t->is_list);
}

static void end_llvm_answer(struct llvm_symbolizer *t)
{
        if (is_json_indented(t))
                indent_llvm_answer(t);
        if (t->options->style == LLVM_STYLE_JSON && !t->is_list)
                buf_append_u8(&t->output.out, '\n');
}

/*
 * The symbol at an address, which names the outermost frame, and the only one where nothing else is known. Labels of
 * the assembler, which RISC-V keeps in object files, name no function; LLVM's tool prints them.
 */
static const struct object_symbol *find_llvm_function(struct llvm_symbolizer *t, const struct answer *a)
{
        const struct object_symbols *symbols;
        const struct object_symbol *symbol;

        if (t->options->functions != LLVM_FUNCTIONS_LINKAGE)
                return NULL;
        symbols = named_objects_symbols(&t->output.objects, t->output.object);
        symbol = a->frame_count ? object_symbols_at(symbols, a->address) : object_symbols_before(symbols, a->address);
        return symbol && !starts_with(symbol->name, ".L") ? symbol : NULL;
}

static bool is_frame_named(const struct answer_frame *f, const char *name)
{
        const struct answer_text *t = f->linkage_name.size ? &f->linkage_name : &f->function;

        return strlen(name) == t->size && memcmp(name, t->data, t->size) == 0;
}

/* Its texts are valid until the next call. */
static struct llvm_subject describe_llvm_answer(struct llvm_symbolizer *t, const struct answer *a)
{
        struct llvm_subject ret = { .module = t->output.object->name,
                                    .tag = t->tag,
                                    .source = &t->output.object->source,
                                    .function = find_llvm_function(t, a) };

        if (!ret.function || (a->frame_count && is_frame_named(&a->frames[a->frame_count - 1], ret.function->name)))
                return ret;
        buf_clear(&t->function_name);
        append_llvm_symbol_name(&t->function_name, ret.function->name, t->options->demangle);
        ret.function_name = (struct answer_text){ .data = buf_cstr(&t->function_name), .size = t->function_name.size };
        if (!ret.function_name.data)
                ret.function_name.size = 0;
        return ret;
}

static void print_llvm_line(void *context, const struct answer *a, bool is_approximate)
{
        struct llvm_symbolizer *t = context;
        struct llvm_subject subject = describe_llvm_answer(t, a);

        subject.is_approximate = is_approximate;
        begin_llvm_answer(t);
        append_llvm_answer(t->options, &subject, a, &t->output.out);
        end_llvm_answer(t);
}

static void print_llvm_answer(void *context, const struct answer *a)
{
        print_llvm_line(context, a, false);
}

/* With the place of other code if this has none. */
static void answer_llvm_line(struct llvm_symbolizer *t, struct named_object *object, uint64_t address)
{
        struct error err;

        tool_output_answer(&t->output);
        t->output.object = object;
        if (answer_without_line_zero(&object->source, address, print_llvm_line, t, &err)) {
                report_tool_error(&t->output, "error: %s", PRINTABLE(err.text));
                print_llvm_line(t, &(struct answer){ .address = address }, false);
        }
}

/* ---- requests ---- */

struct llvm_request {
        const char *object; /* a file or a build-id in capitals; "" none */
        char build_id[BUILD_ID_HEX_MAX];
        bool is_build_id;
        enum llvm_command command;
        struct answer_text symbol; /* in place of an address; empty: none */
        uint64_t address;
        uint64_t tag; /* what was removed from the address */
};

static char *skip_blanks(char *at)
{
        return at + strspn(at, " \t");
}

static bool consume_prefix(char **at, const char *prefix)
{
        if (!starts_with(*at, prefix))
                return false;
        *at += strlen(prefix);
        return true;
}

/* Cut the object off, which may be quoted. @return a message; NULL: none */
static const char *parse_request_object(struct llvm_request *r, char **at)
{
        bool is_file = false;
        char *start, *end;

        r->is_build_id = consume_prefix(at, "BUILDID:");
        if (!r->is_build_id)
                is_file = consume_prefix(at, "FILE:");
        start = *at = skip_blanks(*at);
        if ((is_file || r->is_build_id) && (starts_with(start, "FILE:") || starts_with(start, "BUILDID:")))
                return "duplicate input file specification prefix";
        if (*start == '"' || *start == '\'') {
                end = strchr(++start, **at);
                if (!end || end == start)
                        return is_file ? "unbalanced quotes in input file name"
                                       : "no input filename has been specified";
        } else {
                end = start + strcspn(start, " \r");
        }
        *at = end + (*end != 0);
        *end = 0;
        if (!*start && r->is_build_id)
                return "must be followed by a hash";
        if (!*start && is_file)
                return "must be followed by an input file";
        if (r->is_build_id && !parse_llvm_build_id(start, r->build_id))
                return "wrong format of build-id";
        r->object = r->is_build_id ? r->build_id : start;
        return NULL;
}

/* @return a message, "" for a line without a request; NULL: none */
static const char *parse_llvm_request(const struct llvm_symbolizer *t, char *line, struct llvm_request *ret)
{
        const char *message = NULL;

        *ret = (struct llvm_request){ .command = LLVM_CODE, .object = "" };
        if (!*line)
                return "";
        line = skip_blanks(line);
        if (!*line && !t->arguments.object && !t->arguments.build_id[0])
                return "no input filename has been specified";
        if (consume_prefix(&line, "DATA "))
                ret->command = LLVM_DATA;
        else if (consume_prefix(&line, "FRAME "))
                ret->command = LLVM_FRAME;
        else
                consume_prefix(&line, "CODE ");
        line = skip_blanks(line);
        ret->is_build_id = t->arguments.build_id[0] != 0;
        if (t->arguments.object || ret->is_build_id)
                ret->object = t->arguments.object ? t->arguments.object : t->arguments.build_id;
        else
                message = parse_request_object(ret, &line);
        if (message)
                return message;
        line = skip_blanks(line);
        line[strcspn(line, " \r\n")] = 0; /* the rest is ignored */
        if (!*line)
                return "no module offset has been specified";
        if (parse_llvm_address(line, t->arguments.is_addr2line, &ret->address)) {
                if (!t->options->are_tags_kept) {
                        ret->tag = ret->address - untag_address(ret->address);
                        ret->address -= ret->tag;
                }
                return NULL;
        }
        if (*line >= '0' && *line <= '9')
                return "expected a number as module offset";
        ret->symbol = (struct answer_text){ .data = line, .size = strlen(line) };
        return NULL;
}

static void report_llvm_request(struct llvm_symbolizer *t, const char *subject, const char *message)
{
        if (*subject)
                fprintf(stderr, "%s: error: '%s': %s\n", t->output.program, PRINTABLE(subject), PRINTABLE(message));
        else
                fprintf(stderr, "%s: error: %s\n", t->output.program, PRINTABLE(message));
}

/* Answer a request that cannot be read. @param given  the line */
static void answer_llvm_error(struct llvm_symbolizer *t, const struct llvm_request *r, const char *given,
                              const char *message)
{
        if (*message)
                report_llvm_request(t, given, message);
        tool_output_answer(&t->output);
        begin_llvm_answer(t);
        append_llvm_failure(t->options, r->command, r->is_build_id ? "" : r->object, NULL, &r->symbol, NULL,
                            &t->output.out);
        end_llvm_answer(t);
}

static const char *describe_open_failure(const char *name, enum status st, const struct error *err)
{
        if (st == ST_OS && err->os_errno)
                return strerror(err->os_errno);
        if (st == ST_BAD_DATA && is_object_archive(name))
                return "No object file for requested architecture";
        return st == ST_BAD_DATA ? "The file was not recognized as a valid object file" : err->text;
}

static enum status get_request_object(struct llvm_symbolizer *t, const struct llvm_request *r,
                                      struct named_object **ret, struct error *err)
{
        struct named_objects *objects = &t->output.objects;

        return r->is_build_id ? named_objects_get_build_id(objects, r->object, ret, err)
                              : named_objects_get(objects, r->object, ret, err);
}

/* Answer a request whose object cannot be read. A file is reported once for requests that follow each other, by JSON in
 * the answer. */
static void answer_llvm_failure(struct llvm_symbolizer *t, const struct llvm_request *r, const char *message)
{
        bool is_known = !r->is_build_id && strcmp(t->unreadable, r->object) == 0;

        tool_output_answer(&t->output);
        if (!is_known && t->options->style != LLVM_STYLE_JSON)
                report_llvm_request(t, r->object, message);
        snprintf(t->unreadable, sizeof t->unreadable, "%s", r->object);
        begin_llvm_answer(t);
        append_llvm_failure(t->options, r->command, r->object, r->symbol.size ? NULL : &r->address, &r->symbol,
                            is_known ? NULL : message, &t->output.out);
        end_llvm_answer(t);
}

/* "NAME" or "NAME+OFFSET"; a text of another form is a name, of no symbol. */
static bool parse_llvm_symbol(const struct answer_text *given, struct answer_text *name_ret, uint64_t *offset_ret)
{
        const char *plus = strchr(given->data, '+');

        *name_ret = *given;
        *offset_ret = 0;
        if (!plus || plus == given->data)
                return true;
        if (!parse_llvm_address(plus + 1, false, offset_ret))
                return false;
        name_ret->size = (size_t)(plus - given->data);
        return true;
}

struct llvm_symbol_printer {
        struct llvm_symbolizer *tool;
        struct llvm_symbol_answer answer;
};

static void print_llvm_place(void *context, const struct answer *a)
{
        struct llvm_symbol_printer *p = context;
        const struct llvm_subject subject = describe_llvm_answer(p->tool, a);

        llvm_symbol_answer_add(&p->answer, &subject, a);
}

static void answer_llvm_symbol(struct llvm_symbolizer *t, struct named_object *object, const struct llvm_request *r)
{
        const struct object_symbols *symbols = named_objects_symbols(&t->output.objects, object);
        const struct object_symbol *found[SAME_NAME_MAX];
        struct llvm_symbol_printer p = { .tool = t };
        uint64_t addresses[SAME_NAME_MAX], offset;
        struct answer_text name;
        struct error err;
        size_t count = 0;

        if (parse_llvm_symbol(&r->symbol, &name, &offset))
                count = object_symbols_all_named(symbols, name.data, name.size, found, SAME_NAME_MAX);
        for (size_t i = 0; i < count; i++)
                addresses[i] = found[i]->address + (offset < found[i]->size ? offset : 0);
        tool_output_answer(&t->output);
        t->output.object = object;
        begin_llvm_answer(t);
        llvm_symbol_answer_begin(&p.answer, t->options, &t->output.out);
        if (count && object->source.ask(object->source.context, addresses, count, print_llvm_place, &p, &err))
                report_tool_error(&t->output, "error: %s", PRINTABLE(err.text));
        llvm_symbol_answer_end(&p.answer, object->name, &name);
        end_llvm_answer(t);
}

static void answer_llvm_data(struct llvm_symbolizer *t, struct named_object *object, uint64_t address)
{
        const struct object_symbols *symbols = named_objects_symbols(&t->output.objects, object);

        tool_output_answer(&t->output);
        begin_llvm_answer(t);
        append_llvm_data(t->options, object->name, address,
                         object_symbols_before(symbols, address - t->options->adjust_vma), &t->output.out);
        end_llvm_answer(t);
}

static void answer_llvm_frame(struct llvm_symbolizer *t, struct named_object *object, uint64_t address)
{
        _cleanup_buf_ struct buf report;
        struct error err;
        enum status st;

        buf_init(&report, LIMIT_STACK_VARIABLES_BYTES);
        tool_output_answer(&t->output);
        st = object->source.list_variables(object->source.context, address - t->options->adjust_vma, &report, &err);
        if (st)
                report_tool_error(&t->output, "%s", PRINTABLE(err.text));
        begin_llvm_answer(t);
        append_llvm_variables(t->options, object->name, address, &report, &t->output.out);
        end_llvm_answer(t);
}

/* One with a tag has an answer of its own, which shows the tag. */
static void add_llvm_address(struct llvm_symbolizer *t, struct named_object *object, const struct llvm_request *r)
{
        if (r->tag)
                tool_output_answer(&t->output);
        t->tag = r->tag;
        tool_output_add(&t->output, object, r->address - t->options->adjust_vma);
        if (r->tag)
                tool_output_answer(&t->output);
        t->tag = 0;
}

static void answer_llvm_request(void *context, char *line)
{
        struct llvm_symbolizer *t = context;
        struct named_object *object;
        const char *message;
        struct llvm_request r;
        char given[1024];
        struct error err;
        enum status st;

        snprintf(given, sizeof given, "%s", line);
        message = parse_llvm_request(t, line, &r);
        if (message) {
                r.command = LLVM_CODE;
                answer_llvm_error(t, &r, given, message);
                return;
        }
        st = get_request_object(t, &r, &object, &err);
        if (st)
                answer_llvm_failure(t, &r, describe_open_failure(r.object, st, &err));
        else if (r.symbol.size && r.command != LLVM_CODE)
                answer_llvm_error(t, &r, given, "");
        else if (r.symbol.size)
                answer_llvm_symbol(t, object, &r);
        else if (r.command == LLVM_DATA)
                answer_llvm_data(t, object, r.address);
        else if (r.command == LLVM_FRAME)
                answer_llvm_frame(t, object, r.address);
        else if (t->options->skips_line_zero)
                answer_llvm_line(t, object, r.address - t->options->adjust_vma);
        else
                add_llvm_address(t, object, &r);
}

/* @return the number of arguments that are not empty, which are the first ones now */
static int drop_empty_arguments(int argc, char **argv)
{
        int kept = 0;

        for (int i = 0; i < argc; i++) {
                char *text = argv[i];

                if (!*text)
                        continue;
                argv[i] = argv[kept];
                argv[kept++] = text;
        }
        return kept;
}

/* Without its carriage returns, wherever they are. */
static void answer_llvm_input(void *context, char *line)
{
        char *end = line;

        for (const char *at = line; *at; at++)
                if (*at != '\r')
                        *end++ = *at;
        *end = 0;
        answer_llvm_request(context, line);
}

/* The file of --obj is read before any request. */
static enum status check_llvm_object(struct llvm_symbolizer *t)
{
        const struct llvm_request r = { .object = t->arguments.object };
        struct named_object *object;
        struct error err;
        enum status st = r.object ? named_objects_get(&t->output.objects, r.object, &object, &err) : ST_OK;
        const char *message = st ? describe_open_failure(r.object, st, &err) : NULL;

        if (st && t->options->style == LLVM_STYLE_JSON) {
                begin_llvm_answer(t);
                append_llvm_failure(t->options, r.command, r.object, &r.address, &r.symbol, message, &t->output.out);
                end_llvm_answer(t);
        } else if (st) {
                report_llvm_request(t, r.object, message);
        }
        return st;
}

/* JSON answers to arguments are one array. */
static enum status answer_llvm_requests(struct llvm_symbolizer *t, int argc, char **argv, struct error *err)
{
        enum status st;

        argc = drop_empty_arguments(argc, argv);
        t->is_list = argc && t->options->style == LLVM_STYLE_JSON;
        if (t->is_list)
                buf_append_u8(&t->output.out, '[');
        st = tool_output_handle_requests(&t->output, argc, argv, argc ? answer_llvm_request : answer_llvm_input, err);
        tool_output_answer(&t->output);
        if (t->is_list && is_json_indented(t))
                buf_append_u8(&t->output.out, '\n');
        if (t->is_list)
                buf_append_str(&t->output.out, "]\n");
        return st;
}

/* ---- a log ---- */

static void filter_markup_line(void *context, char *line)
{
        markup_filter_line(context, line);
}

static enum status filter_llvm_markup(struct llvm_symbolizer *t, struct error *err)
{
        struct markup_filter filter = { .options = t->options,
                                        .output = &t->output,
                                        .has_colors = t->arguments.color == COLOR_ALWAYS ||
                                                      (t->arguments.color == COLOR_AUTO && isatty(STDOUT_FILENO)) };
        enum status st;

        t->output.context = &filter;
        t->output.line_bytes = 0;
        st = tool_output_handle_requests(&t->output, 0, NULL, filter_markup_line, err);
        markup_filter_finish(&filter);
        t->output.context = t;
        return st;
}

/* ---- the program ---- */

static int run_with_llvm_arguments(struct llvm_symbolizer *t, int argc, char **argv)
{
        struct error err;
        enum status st;
        int code;

        t->options = &t->arguments.options;
        t->output.program = argv[0];
        t->output.line_bytes = LLVM_LINE_BYTES;
        t->output.print = print_llvm_answer;
        t->output.context = t;
        t->output.objects.debug_files.directory = DEBUG_DIRECTORY;
        code = parse_llvm_arguments(&t->arguments, &t->output, argc, argv);
        if (code >= 0)
                return code;
        t->output.objects.has_untagged_symbols = !t->options->are_tags_kept;
        t->output.objects.symbol_preference = PREFER_LATER_SYMBOLS;
        buf_init(&t->function_name, LIMIT_DEMANGLED_BYTES);
        st = tool_output_open(&t->output, &err);
        if (!st && check_llvm_object(t)) {
                tool_output_flush(&t->output);
                tool_output_deinit(&t->output);
                return EXIT_FAILED;
        }
        if (!st)
                st = t->arguments.is_filter ? filter_llvm_markup(t, &err)
                                            : answer_llvm_requests(t, argc - optind, argv + optind, &err);
        if (st)
                report_tool_error(&t->output, "error: %s", PRINTABLE(err.text));
        tool_output_flush(&t->output);
        tool_output_deinit(&t->output);
        buf_deinit(&t->function_name);
        return st ? EXIT_FAILED : EXIT_DONE;
}

/* Options in an environment variable, separated by blanks, come first. @return owned, with owned items; NULL */
static char **collect_llvm_arguments(const char *variable, int *argc, char **argv)
{
        const char *options = getenv(variable);
        char **all = calloc((size_t)*argc + ARGUMENTS_MAX + 2, sizeof *all), *save = NULL;
        _cleanup_free_ char *copy = strdup(options ? options : "");
        int n = 0;

        if (!all || !copy) {
                free(all);
                return NULL;
        }
        all[n++] = strdup(argv[0]);
        for (char *word = strtok_r(copy, " \t\n", &save); word && n < ARGUMENTS_MAX;
             word = strtok_r(NULL, " \t\n", &save))
                all[n++] = strdup(word);
        for (int i = 1; i < *argc; i++)
                all[n++] = strdup(argv[i]);
        for (*argc = 0; *argc < n && all[*argc];)
                ++*argc;
        return all;
}

static int run_llvm_tool(struct llvm_symbolizer *t, const char *variable, int argc, char **argv)
{
        char **all = collect_llvm_arguments(variable, &argc, argv), **expanded = all;
        int code;

        if (!all) {
                fprintf(stderr, "%s: out of memory\n", argv[0]);
                return EXIT_FAILED;
        }
        expandargv(&argc, &expanded); /* @FILE */
        code = run_with_llvm_arguments(t, argc, expanded);
        if (expanded != all)
                freeargv(expanded);
        freeargv(all);
        return code;
}

int run_llvm_symbolizer(int argc, char **argv)
{
        struct llvm_symbolizer t = { .arguments.options = {
                                             .functions = LLVM_FUNCTIONS_LINKAGE, .demangle = true, .inlines = true } };

        return run_llvm_tool(&t, "LLVM_SYMBOLIZER_OPTS", argc, argv);
}

int run_llvm_addr2line(int argc, char **argv)
{
        struct llvm_symbolizer t = { .arguments.options = { .style = LLVM_STYLE_GNU, .are_tags_kept = true },
                                     .arguments.is_addr2line = true };

        return run_llvm_tool(&t, "LLVM_ADDR2LINE_OPTS", argc, argv);
}
