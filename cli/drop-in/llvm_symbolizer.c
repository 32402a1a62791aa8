/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm-symbolizer and llvm-addr2line. A line of input is a request: a command, an object unless --obj names it, and an
 * address. Requests are parsed by parse_llvm_request() and answered in their order by cli/drop-in/tool_output.h, or by
 * append_llvm_failure() if they cannot be.
 *
 * Messages are those of version 14, which prints a line that is no request as it is, and names of objects that cannot
 * be read on standard error; options are those of 19. So a name in place of an address is a request only if the object
 * has a function of this name. Not supported: formats other than ELF.
 *
 * Order: answers, requests, options, the program.
 * Source: LLVM manual, "llvm-symbolizer".
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <libiberty/libiberty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/drop-in/drop_in.h"
#include "cli/drop-in/llvm_output.h"
#include "cli/drop-in/tool_output.h"
#include "common/cleanup.h"
#include "common/exit_code.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "symbolizer/extraction/debug_file_search.h"

#define ARGUMENTS_MAX 256 /* in the environment variable with options */

struct llvm_symbolizer {
        struct llvm_options options;
        const char *object, *build_id;
        bool is_addr2line; /* addresses are hexadecimal without 0x, too */
        struct tool_output output;
        char unreadable[4096]; /* the object of the last message */
        bool is_list;          /* JSON answers to arguments are one array */
        size_t answered;
        struct answer_text symbol; /* that the request being answered names in place of an address; empty: none */
};

/* ---- answers ---- */

static void begin_llvm_answer(struct llvm_symbolizer *t)
{
        if (t->is_list && t->answered)
                buf_append_u8(&t->output.out, ',');
        t->answered++;
}

static void end_llvm_answer(struct llvm_symbolizer *t)
{
        if (t->options.style == LLVM_STYLE_JSON && !t->is_list)
                buf_append_u8(&t->output.out, '\n');
}

/* The symbol of the function at an address, if its start is printed. */
static const struct object_symbol *find_llvm_function(struct llvm_symbolizer *t, const struct answer *a)
{
        const struct object_symbol *symbol;

        if (!a->frame_count || (t->options.style != LLVM_STYLE_JSON && !t->options.verbose))
                return NULL;
        symbol = object_symbols_at(named_objects_symbols(&t->output.objects, t->output.object), a->address);
        return symbol && symbol->is_function ? symbol : NULL;
}

static void print_llvm_answer(void *context, const struct answer *a)
{
        struct llvm_symbolizer *t = context;
        const struct llvm_subject subject = { .module = t->output.object->name,
                                              .symbol = t->symbol,
                                              .function = find_llvm_function(t, a) };

        begin_llvm_answer(t);
        append_llvm_answer(&t->options, &subject, a, &t->output.out);
        end_llvm_answer(t);
}

/* Answer a request whose object cannot be read. */
static void answer_llvm_failure(struct llvm_symbolizer *t, const char *module, uint64_t address, const char *message)
{
        tool_output_answer(&t->output);
        begin_llvm_answer(t);
        append_llvm_failure(&t->options, module, &address, message, &t->output.out);
        end_llvm_answer(t);
}

/* Print a line that is no request. @param module  what precedes the address */
static void echo_llvm_line(struct llvm_symbolizer *t, const char *module, const char *line)
{
        const struct answer_text text = { .data = line, .size = strlen(line) };
        char message[1100];

        tool_output_answer(&t->output);
        begin_llvm_answer(t);
        if (t->options.style == LLVM_STYLE_JSON) {
                snprintf(message, sizeof message, "unable to parse arguments: %s", line);
                append_llvm_failure(&t->options, module, NULL, message, &t->output.out);
        } else {
                if (text.size)
                        append_known_text(&t->output.out, &text);
                buf_append_u8(&t->output.out, '\n');
        }
        end_llvm_answer(t);
}

/* ---- requests ---- */

enum llvm_command { LLVM_CODE, LLVM_DATA, LLVM_FRAME };

struct llvm_request {
        const char *object; /* NULL none */
        bool is_build_id;
        enum llvm_command command;
        const char *symbol; /* in place of an address; NULL none */
        uint64_t address;
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

/* Cut the object off, which may be quoted. */
static bool parse_request_object(struct llvm_request *r, char **at)
{
        char *end;

        if (consume_prefix(at, "BUILDID:"))
                r->is_build_id = true;
        else
                consume_prefix(at, "FILE:");
        *at = skip_blanks(*at);
        if (**at == '"' || **at == '\'') {
                r->object = *at + 1;
                end = strchr(r->object, **at);
                if (!end)
                        return false;
        } else {
                r->object = *at;
                end = *at + strcspn(*at, " \r");
        }
        *at = end + (*end != 0);
        *end = 0;
        return r->object[0] != 0;
}

static bool parse_request_address(const char *text, bool is_addr2line, uint64_t *ret)
{
        int base = is_addr2line ? 16 : 0;
        char *end;

        if (text[0] == '0' && ((text[1] | 0x20) == 'b' || text[1] == 'o') && !is_addr2line) {
                base = text[1] == 'o' ? 8 : 2;
                text += 2;
        }
        if (text[0] == '-' || text[0] == '+')
                return false;
        errno = 0;
        *ret = strtoull(text, &end, base);
        return end != text && *end == 0 && !errno;
}

static bool parse_llvm_request(const struct llvm_symbolizer *t, char *line, struct llvm_request *ret)
{
        *ret = (struct llvm_request){ .command = LLVM_CODE };
        line = skip_blanks(line);
        if (consume_prefix(&line, "DATA "))
                ret->command = LLVM_DATA;
        else if (consume_prefix(&line, "FRAME "))
                ret->command = LLVM_FRAME;
        else
                consume_prefix(&line, "CODE ");
        line = skip_blanks(line);
        if (t->object || t->build_id) {
                ret->object = t->object ? t->object : t->build_id;
                ret->is_build_id = !t->object;
        } else if (!parse_request_object(ret, &line)) {
                return false;
        }
        line = skip_blanks(line);
        line[strcspn(line, " \r")] = 0; /* the rest is ignored */
        if (parse_request_address(line, t->is_addr2line, &ret->address)) {
                if (!t->options.are_tags_kept)
                        ret->address = untag_address(ret->address);
                return true;
        }
        ret->symbol = line;
        return *line && ret->command == LLVM_CODE;
}

/* The debug file of a build-id in the debug directory. */
static bool find_build_id_file(const struct llvm_symbolizer *t, const char *id, char *path, size_t size)
{
        int n = snprintf(path, size, "%s/.build-id/%.2s/%s.debug", t->output.objects.debug_files.directory, id,
                         strlen(id) > 2 ? id + 2 : "");

        return n > 0 && (size_t)n < size && strspn(id, "0123456789abcdefABCDEF") == strlen(id) &&
               access(path, R_OK) == 0;
}

static const char *describe_open_failure(enum status st, const struct error *err)
{
        if (st == ST_OS && err->os_errno)
                return strerror(err->os_errno);
        return st == ST_BAD_DATA ? "The file was not recognized as a valid object file" : err->text;
}

static enum status get_request_object(struct llvm_symbolizer *t, const struct llvm_request *r,
                                      struct named_object **ret, struct error *err)
{
        char path[4096];

        if (!r->is_build_id)
                return named_objects_get(&t->output.objects, r->object, ret, err);
        if (!find_build_id_file(t, r->object, path, sizeof path))
                return error_set(err, ST_NOT_FOUND, "could not find build ID");
        return named_objects_get(&t->output.objects, path, ret, err);
}

/* Once for requests of one object that follow each other; JSON has the message in the answer. */
static void report_unreadable_object(struct llvm_symbolizer *t, const char *object, const char *message)
{
        if (t->options.style == LLVM_STYLE_JSON || strcmp(t->unreadable, object) == 0)
                return;
        fprintf(stderr, "LLVMSymbolizer: error reading file: %s\n", message);
        snprintf(t->unreadable, sizeof t->unreadable, "%s", object);
}

/* @return false if the object has no such symbol. */
static bool answer_llvm_symbol(struct llvm_symbolizer *t, struct named_object *object, const char *text)
{
        const struct object_symbol *symbol;
        struct symbol_offset given;

        if (!parse_symbol_offset(text, &given))
                return false;
        symbol = object_symbols_named(named_objects_symbols(&t->output.objects, object), given.name, given.name_size);
        if (!symbol || !symbol->is_function)
                return false;
        tool_output_answer(&t->output);
        t->symbol = (struct answer_text){ .data = given.name, .size = given.name_size };
        tool_output_add(&t->output, object, symbol->address + (uint64_t)given.offset);
        tool_output_answer(&t->output);
        t->symbol.size = 0;
        return true;
}

static void answer_llvm_data(struct llvm_symbolizer *t, struct named_object *object, uint64_t address)
{
        const struct object_symbols *symbols = named_objects_symbols(&t->output.objects, object);

        tool_output_answer(&t->output);
        begin_llvm_answer(t);
        append_llvm_data(&t->options, object->name, address,
                         object_symbols_at(symbols, address - t->options.adjust_vma), &t->output.out);
        end_llvm_answer(t);
}

static void answer_llvm_frame(struct llvm_symbolizer *t, struct named_object *object, uint64_t address)
{
        _cleanup_buf_ struct buf report;
        struct error err;
        enum status st;

        buf_init(&report, LIMIT_STACK_VARIABLES_BYTES);
        tool_output_answer(&t->output);
        st = object->source.list_variables(object->source.context, address - t->options.adjust_vma, &report, &err);
        if (st)
                report_tool_error(&t->output, "%s", PRINTABLE(err.text));
        begin_llvm_answer(t);
        append_llvm_variables(&t->options, object->name, address, &report, &t->output.out);
        end_llvm_answer(t);
}

static void answer_llvm_request(void *context, char *line)
{
        struct llvm_symbolizer *t = context;
        struct named_object *object;
        struct llvm_request r;
        char given[1024];
        struct error err;
        enum status st;

        line[strcspn(line, "\r\n")] = 0;
        utf8_printable(line, given, sizeof given);
        if (!parse_llvm_request(t, line, &r)) {
                echo_llvm_line(t, r.object ? r.object : given, given);
                return;
        }
        st = get_request_object(t, &r, &object, &err);
        if (r.symbol) {
                if (st || !answer_llvm_symbol(t, object, r.symbol))
                        echo_llvm_line(t, r.object, given);
        } else if (st) {
                const char *message = describe_open_failure(st, &err);

                tool_output_answer(&t->output);
                report_unreadable_object(t, r.object, message);
                answer_llvm_failure(t, r.object, r.address, message);
        } else if (r.command == LLVM_DATA) {
                answer_llvm_data(t, object, r.address);
        } else if (r.command == LLVM_FRAME) {
                answer_llvm_frame(t, object, r.address);
        } else {
                tool_output_add(&t->output, object, r.address - t->options.adjust_vma);
        }
}

/* JSON answers to arguments are one array. */
static enum status answer_llvm_requests(struct llvm_symbolizer *t, int argc, char **argv, struct error *err)
{
        enum status st;

        t->is_list = argc && t->options.style == LLVM_STYLE_JSON;
        if (t->is_list)
                buf_append_u8(&t->output.out, '[');
        st = tool_output_handle_requests(&t->output, argc, argv, answer_llvm_request, err);
        tool_output_answer(&t->output);
        if (t->is_list)
                buf_append_str(&t->output.out, "]\n");
        return st;
}

/* ---- options ---- */

enum {
        OPTION_ADJUST_VMA = 256,
        OPTION_BUILD_ID,
        OPTION_DEBUG_DIRECTORY,
        OPTION_DEBUGINFOD,
        OPTION_NO_DEBUGINFOD,
        OPTION_NO_DEMANGLE,
        OPTION_NO_INLINES,
        OPTION_INLINING,
        OPTION_OUTPUT_STYLE,
        OPTION_SOURCE_LINES,
        OPTION_VERBOSE,
        OPTION_PACKAGE,
        OPTION_RELATIVE_NAMES,
        OPTION_UNTAG,
        OPTION_NO_UNTAG,
        OPTION_IGNORED,
        OPTION_UNSUPPORTED,
};

static const struct option llvm_long_options[] = {
        { "addresses", no_argument, NULL, 'a' },
        { "print-address", no_argument, NULL, 'a' },
        { "adjust-vma", required_argument, NULL, OPTION_ADJUST_VMA },
        { "basenames", no_argument, NULL, 's' },
        { "build-id", required_argument, NULL, OPTION_BUILD_ID },
        { "cache-size", required_argument, NULL, OPTION_IGNORED },
        { "color", optional_argument, NULL, OPTION_IGNORED },
        { "debug-file-directory", required_argument, NULL, OPTION_DEBUG_DIRECTORY },
        { "fallback-debug-path", required_argument, NULL, OPTION_DEBUG_DIRECTORY },
        { "debuginfod", no_argument, NULL, OPTION_DEBUGINFOD },
        { "no-debuginfod", no_argument, NULL, OPTION_NO_DEBUGINFOD },
        { "default-arch", required_argument, NULL, OPTION_IGNORED },
        { "demangle", optional_argument, NULL, 'C' },
        { "no-demangle", no_argument, NULL, OPTION_NO_DEMANGLE },
        { "dia", no_argument, NULL, OPTION_IGNORED },
        { "dsym-hint", required_argument, NULL, OPTION_IGNORED },
        { "dwp", required_argument, NULL, OPTION_PACKAGE },
        { "exe", required_argument, NULL, 'e' },
        { "obj", required_argument, NULL, 'e' },
        { "filter-markup", no_argument, NULL, OPTION_UNSUPPORTED },
        { "functions", optional_argument, NULL, 'f' },
        { "help", no_argument, NULL, 'h' },
        { "inlines", no_argument, NULL, 'i' },
        { "inlining", optional_argument, NULL, OPTION_INLINING },
        { "no-inlines", no_argument, NULL, OPTION_NO_INLINES },
        { "no-untag-addresses", no_argument, NULL, OPTION_NO_UNTAG },
        { "output-style", required_argument, NULL, OPTION_OUTPUT_STYLE },
        { "pretty-print", no_argument, NULL, 'p' },
        { "print-source-context-lines", required_argument, NULL, OPTION_SOURCE_LINES },
        { "relative-address", no_argument, NULL, OPTION_IGNORED }, /* the image base of ELF files is 0 */
        { "relativenames", no_argument, NULL, OPTION_RELATIVE_NAMES },
        { "skip-line-zero", no_argument, NULL, OPTION_UNSUPPORTED },
        { "untag-addresses", no_argument, NULL, OPTION_UNTAG },
        { "use-symbol-table", optional_argument, NULL, OPTION_IGNORED },
        { "verbose", no_argument, NULL, OPTION_VERBOSE },
        { "version", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 },
};

#define LLVM_USAGE                                                                                                     \
        "OVERVIEW: %s\n\nUSAGE: %s [options] addresses...\n\n"                                                         \
        "OPTIONS:\n"                                                                                                   \
        "  -a, --addresses               Show addresses before line information\n"                                     \
        "  --adjust-vma=<offset>         Add specified offset to object file addresses\n"                              \
        "  -s, --basenames               Strip directory names from paths\n"                                           \
        "  --build-id=<id>               Build ID used to look up the object file\n"                                   \
        "  --debug-file-directory=<dir>  Path to directory where to look for debug files\n"                            \
        "  --debuginfod                  Use debuginfod to find debug files (default if DEBUGINFOD_URLS is set)\n"     \
        "  --no-debuginfod               Don't use debuginfod\n"                                                       \
        "  --dwp=<file>                  Package of split DWARF\n"                                                     \
        "  -C, --demangle                Demangle function names\n"                                                    \
        "  --no-demangle                 Don't demangle function names\n"                                              \
        "  -e, --exe, --obj=<file>       Path to object file to be symbolized\n"                                       \
        "  -f, --functions[=<value>]     Print function name: none, short, linkage\n"                                  \
        "  -i, --inlines                 Print all inlined frames for a given address\n"                               \
        "  --no-inlines                  Do not print inlined frames\n"                                                \
        "  --output-style=<style>        LLVM, GNU or JSON\n"                                                          \
        "  -p, --pretty-print            Make the output more human friendly\n"                                        \
        "  --print-source-context-lines=<value>  Print N lines of source file context\n"                               \
        "  --relativenames               Strip the compilation directory from paths\n"                                 \
        "  --no-untag-addresses          Keep the top byte of addresses, in which some targets have a tag\n"           \
        "  --verbose                     Print verbose line info\n"                                                    \
        "  -v, --version                 Display the version\n"                                                        \
        "  -h, --help                    Display this help\n"                                                          \
        "\nPass @FILE as argument to read options from FILE.\n"

static bool parse_functions(const char *text, struct llvm_options *o)
{
        if (!text || strcmp(text, "linkage") == 0)
                o->functions = LLVM_FUNCTIONS_LINKAGE;
        else if (strcmp(text, "short") == 0)
                o->functions = LLVM_FUNCTIONS_SHORT;
        else if (strcmp(text, "none") == 0)
                o->functions = LLVM_FUNCTIONS_NONE;
        else
                return false;
        return true;
}

static bool parse_output_style(const char *text, struct llvm_options *o)
{
        if (strcmp(text, "LLVM") == 0)
                o->style = LLVM_STYLE_LLVM;
        else if (strcmp(text, "GNU") == 0)
                o->style = LLVM_STYLE_GNU;
        else if (strcmp(text, "JSON") == 0)
                o->style = LLVM_STYLE_JSON;
        else
                return false;
        return true;
}

static bool is_true_value(const char *text)
{
        return !text || strcmp(text, "false") != 0;
}

/* @return false if its value is invalid */
static bool set_llvm_option(struct llvm_symbolizer *t, int option, const char *value)
{
        struct llvm_options *o = &t->options;

        switch (option) {
        case 'a':
                return o->addresses = true;
        case 's': /* the last of both options counts */
                t->output.objects.has_relative_paths = false;
                return o->base_names = true;
        case OPTION_RELATIVE_NAMES:
                o->base_names = false;
                return t->output.objects.has_relative_paths = true;
        case OPTION_PACKAGE:
                t->output.objects.debug_files.package = value;
                return true;
        case OPTION_UNTAG:
        case OPTION_NO_UNTAG:
                o->are_tags_kept = option == OPTION_NO_UNTAG;
                return true;
        case 'C':
                o->demangle = is_true_value(value); /* "-demangle=false" is from pprof */
                return true;
        case 'e':
                t->object = value;
                return true;
        case 'f':
                return parse_functions(value, o);
        case 'i':
                return o->inlines = true;
        case 'p':
                return o->pretty = true;
        case OPTION_ADJUST_VMA:
                return parse_request_address(value, false, &o->adjust_vma);
        case OPTION_BUILD_ID:
                t->build_id = value;
                return true;
        case OPTION_DEBUG_DIRECTORY:
                t->output.objects.debug_files.directory = value;
                return true;
        case OPTION_DEBUGINFOD:
        case OPTION_NO_DEBUGINFOD:
                t->output.objects.debug_files.no_debuginfod = option == OPTION_NO_DEBUGINFOD;
                return true;
        case OPTION_NO_DEMANGLE:
                o->demangle = false;
                return true;
        case OPTION_NO_INLINES:
                o->inlines = false;
                return true;
        case OPTION_INLINING:
                o->inlines = is_true_value(value);
                return true;
        case OPTION_OUTPUT_STYLE:
                return parse_output_style(value, o);
        case OPTION_SOURCE_LINES:
                return parse_request_address(value, false, &o->source_lines) && o->source_lines < 10000;
        case OPTION_VERBOSE:
                return o->verbose = true;
        default:
                return true;
        }
}

/* Forms that getopt_long() reads otherwise: -f=VALUE, and -demangle=VALUE of pprof. @param argv  with owned items */
static void rewrite_llvm_arguments(int argc, char **argv)
{
        static const struct {
                const char *given, *meant;
        } forms[] = {
                { "-f=linkage", "--functions=linkage" }, { "-f=short", "--functions=short" },
                { "-f=none", "--functions=none" },       { "-demangle=true", "--demangle" },
                { "-demangle=false", "--no-demangle" },
        };

        for (int i = 1; i < argc; i++) {
                for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
                        char *meant = strcmp(argv[i], forms[k].given) == 0 ? strdup(forms[k].meant) : NULL;

                        if (!meant)
                                continue;
                        free(argv[i]);
                        argv[i] = meant;
                }
        }
}

static void report_unknown_llvm_option(struct llvm_symbolizer *t, const char *argument)
{
        if (optopt == 'e')
                report_tool_error(&t->output, "error: -e: missing argument");
        else if (optopt > 0 && optopt < 128)
                report_tool_error(&t->output, "error: unknown argument '-%c'", optopt);
        else
                report_tool_error(&t->output, "error: unknown argument '%s'", PRINTABLE(argument));
}

/* getopt_long() accepts them, LLVM does not. */
static bool is_abbreviated_option(const char *argument, const char *name)
{
        return starts_with(argument, "--") && strcspn(argument + 2, "=") < strlen(name);
}

/* @return the exit code; -1: go on. The arguments are argv + optind. */
static int parse_llvm_options(struct llvm_symbolizer *t, int argc, char **argv)
{
        const char *argument;
        int c, index = -1;

        rewrite_llvm_arguments(argc, argv);
        opterr = 0;
        for (; (c = getopt_long(argc, argv, "aCe:fhipsv", llvm_long_options, &index)) != -1; index = -1) {
                const char *value = optarg && *optarg == '=' ? optarg + 1 : optarg;

                if (c == 'h') {
                        printf(LLVM_USAGE, path_base(argv[0]), path_base(argv[0]));
                        return EXIT_DONE;
                }
                if (c == 'v') {
                        printf("%s\nCairn %s, compatible with LLVM version 14\n", path_base(argv[0]), CAIRN_VERSION);
                        return EXIT_DONE;
                }
                argument = optarg && optarg == argv[optind - 1] ? argv[optind - 2] : argv[optind - 1];
                if (c == '?')
                        report_unknown_llvm_option(t, argument);
                else if (index >= 0 && is_abbreviated_option(argument, llvm_long_options[index].name))
                        report_tool_error(&t->output, "error: unknown argument '%s', did you mean '--%s'?",
                                          PRINTABLE(argument), llvm_long_options[index].name);
                else if (c == OPTION_UNSUPPORTED)
                        report_tool_error(&t->output, "error: '--%s' is not supported by Cairn",
                                          llvm_long_options[index].name);
                else if (!set_llvm_option(t, c, value))
                        report_tool_error(&t->output, "error: invalid value '%s'", PRINTABLE(value));
        }
        return t->output.has_failed ? EXIT_FAILED : -1;
}

/* ---- the program ---- */

static int run_with_llvm_arguments(struct llvm_symbolizer *t, int argc, char **argv)
{
        struct error err;
        enum status st;
        int code;

        t->output.program = argv[0];
        t->output.print = print_llvm_answer;
        t->output.context = t;
        t->output.objects.debug_files.directory = DEBUG_DIRECTORY;
        code = parse_llvm_options(t, argc, argv);
        if (code >= 0)
                return code;
        t->output.objects.has_untagged_symbols = !t->options.are_tags_kept;
        st = tool_output_open(&t->output, &err);
        if (!st)
                st = answer_llvm_requests(t, argc - optind, argv + optind, &err);
        if (st)
                report_tool_error(&t->output, "error: %s", PRINTABLE(err.text));
        tool_output_flush(&t->output);
        tool_output_deinit(&t->output);
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
        struct llvm_symbolizer t = { .options = {
                                             .functions = LLVM_FUNCTIONS_LINKAGE, .demangle = true, .inlines = true } };

        return run_llvm_tool(&t, "LLVM_SYMBOLIZER_OPTS", argc, argv);
}

int run_llvm_addr2line(int argc, char **argv)
{
        struct llvm_symbolizer t = { .options = { .style = LLVM_STYLE_GNU, .are_tags_kept = true },
                                     .is_addr2line = true };

        return run_llvm_tool(&t, "LLVM_ADDR2LINE_OPTS", argc, argv);
}
