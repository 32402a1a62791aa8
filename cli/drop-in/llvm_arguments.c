/* SPDX-License-Identifier: Apache-2.0 */
/*
 * getopt_long() reads the command line, though LLVM's options are not quite those that it knows. So arguments are
 * rewritten before it, where it reads a form otherwise, and refused behind it, where it accepts more.
 *
 * Order: texts of requests, tables of options and values, one option, the form of arguments, messages, the command
 * line.
 */
#include "cli/drop-in/llvm_arguments.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit_code.h"
#include "common/files/file.h"
#include "common/text/utf8.h"
#include "common/text.h"

bool parse_llvm_build_id(const char *text, char ret[static BUILD_ID_HEX_MAX])
{
        size_t size = strlen(text), odd = size % 2;
        char digits[BUILD_ID_HEX_MAX] = "0";
        struct build_id id;

        if (size + odd >= sizeof digits)
                return false;
        memcpy(digits + odd, text, size);
        if (!build_id_from_hex(&id, digits, size + odd))
                return false;
        build_id_hex(&id, ret);
        for (; *ret; ret++)
                *ret = (char)toupper((unsigned char)*ret);
        return true;
}

bool parse_llvm_address(const char *text, bool is_addr2line, uint64_t *ret)
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

enum {
        OPTION_ADJUST_VMA = 256,
        OPTION_BUILD_ID,
        OPTION_CACHE_SIZE,
        OPTION_COLOR,
        OPTION_DEBUG_DIRECTORY,
        OPTION_DEBUGINFOD,
        OPTION_NO_DEBUGINFOD,
        OPTION_FILTER_MARKUP,
        OPTION_NO_DEMANGLE,
        OPTION_NO_INLINES,
        OPTION_INLINING,
        OPTION_OUTPUT_STYLE,
        OPTION_SKIP_LINE_ZERO,
        OPTION_SOURCE_LINES,
        OPTION_VERBOSE,
        OPTION_PACKAGE,
        OPTION_RELATIVE_NAMES,
        OPTION_UNTAG,
        OPTION_NO_UNTAG,
        OPTION_IGNORED,
};

static const char llvm_short_options[] = "aCe:fhipsv";

static const struct option llvm_long_options[] = {
        { "addresses", no_argument, NULL, 'a' },
        { "print-address", no_argument, NULL, 'a' },
        { "adjust-vma", required_argument, NULL, OPTION_ADJUST_VMA },
        { "basenames", no_argument, NULL, 's' },
        { "build-id", required_argument, NULL, OPTION_BUILD_ID },
        { "cache-size", required_argument, NULL, OPTION_CACHE_SIZE },
        { "color", optional_argument, NULL, OPTION_COLOR },
        { "debug-file-directory", required_argument, NULL, OPTION_DEBUG_DIRECTORY },
        { "fallback-debug-path", required_argument, NULL, OPTION_DEBUG_DIRECTORY },
        { "debuginfod", no_argument, NULL, OPTION_DEBUGINFOD },
        { "no-debuginfod", no_argument, NULL, OPTION_NO_DEBUGINFOD },
        { "default-arch", required_argument, NULL, OPTION_IGNORED },
        { "demangle", no_argument, NULL, 'C' },
        { "no-demangle", no_argument, NULL, OPTION_NO_DEMANGLE },
        { "dia", no_argument, NULL, OPTION_IGNORED },
        { "dsym-hint", required_argument, NULL, OPTION_IGNORED },
        { "dwp", required_argument, NULL, OPTION_PACKAGE },
        { "exe", required_argument, NULL, 'e' },
        { "obj", required_argument, NULL, 'e' },
        { "filter-markup", no_argument, NULL, OPTION_FILTER_MARKUP },
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
        { "skip-line-zero", no_argument, NULL, OPTION_SKIP_LINE_ZERO },
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
        "  --color[=<value>]             Colors in the output of --filter-markup: always, auto, never\n"               \
        "  --debug-file-directory=<dir>  Path to directory where to look for debug files\n"                            \
        "  --debuginfod                  Use debuginfod to find debug files (default if DEBUGINFOD_URLS is set)\n"     \
        "  --no-debuginfod               Don't use debuginfod\n"                                                       \
        "  --dwp=<file>                  Package of split DWARF\n"                                                     \
        "  -C, --demangle                Demangle function names\n"                                                    \
        "  --no-demangle                 Don't demangle function names\n"                                              \
        "  -e, --exe, --obj=<file>       Path to object file to be symbolized\n"                                       \
        "  --filter-markup               Replace addresses in a log with symbolizer markup from standard input\n"      \
        "  -f, --functions[=<value>]     Print function name: none, short, linkage\n"                                  \
        "  -i, --inlines                 Print all inlined frames for a given address\n"                               \
        "  --no-inlines                  Do not print inlined frames\n"                                                \
        "  --output-style=<style>        LLVM, GNU or JSON\n"                                                          \
        "  -p, --pretty-print            Make the output more human friendly\n"                                        \
        "  --print-source-context-lines=<value>  Print N lines of source file context\n"                               \
        "  --skip-line-zero              For code without a line, print the last one before it\n"                      \
        "  --relativenames               Strip the compilation directory from paths\n"                                 \
        "  --no-untag-addresses          Keep the top byte of addresses, in which some targets have a tag\n"           \
        "  --verbose                     Print verbose line info\n"                                                    \
        "  -v, --version                 Display the version\n"                                                        \
        "  -h, --help                    Display this help\n"                                                          \
        "\nPass @FILE as argument to read options from FILE.\n"

/* Unknown values of these three are the default. */
static enum llvm_functions parse_functions(const char *text)
{
        if (text && strcmp(text, "short") == 0)
                return LLVM_FUNCTIONS_SHORT;
        return text && strcmp(text, "none") == 0 ? LLVM_FUNCTIONS_NONE : LLVM_FUNCTIONS_LINKAGE;
}

static enum llvm_style parse_output_style(const char *text)
{
        if (strcmp(text, "GNU") == 0)
                return LLVM_STYLE_GNU;
        return strcmp(text, "JSON") == 0 ? LLVM_STYLE_JSON : LLVM_STYLE_LLVM;
}

static enum markup_color parse_color(const char *text)
{
        if (text && strcmp(text, "auto") == 0)
                return COLOR_AUTO;
        return text && strcmp(text, "never") == 0 ? COLOR_NEVER : COLOR_ALWAYS;
}

static void report_llvm_argument(struct tool_output *output, const char *argument)
{
        fprintf(stderr, "error: unknown argument '%s'\n", PRINTABLE(argument));
        output->has_failed = true;
}

static void parse_llvm_number(struct tool_output *output, const char *option, const char *value, uint64_t *ret)
{
        if (parse_llvm_address(value, false, ret))
                return;
        fprintf(stderr, "--%s=: expected a non-negative integer, but got '%s'", option, PRINTABLE(value));
        output->has_failed = true;
}

/* @return false if its value is invalid */
static bool set_llvm_option(struct llvm_arguments *a, struct tool_output *output, int option, const char *value)
{
        struct llvm_options *o = &a->options;
        uint64_t ignored;

        switch (option) {
        case 'a':
                return o->addresses = true;
        case 's': /* the last of both options counts */
                output->objects.has_relative_paths = false;
                return o->base_names = true;
        case OPTION_RELATIVE_NAMES:
                o->base_names = false;
                return output->objects.has_relative_paths = true;
        case OPTION_PACKAGE:
                output->objects.debug_files.package = value;
                return true;
        case OPTION_UNTAG:
        case OPTION_NO_UNTAG:
                o->are_tags_kept = option == OPTION_NO_UNTAG;
                return true;
        case 'C':
                return o->demangle = true;
        case 'e':
                a->object = value;
                return true;
        case 'f':
                o->functions = parse_functions(value);
                return true;
        case 'i':
                return o->inlines = true;
        case 'p':
                return o->pretty = true;
        case OPTION_ADJUST_VMA:
                parse_llvm_number(output, "adjust-vma", value, &o->adjust_vma);
                return true;
        case OPTION_CACHE_SIZE:
                parse_llvm_number(output, "cache-size", value, &ignored);
                return true;
        case OPTION_COLOR:
                a->color = parse_color(value);
                return true;
        case OPTION_FILTER_MARKUP:
                return a->is_filter = true;
        case OPTION_DEBUG_DIRECTORY:
                output->objects.debug_files.directory = value;
                return true;
        case OPTION_DEBUGINFOD:
        case OPTION_NO_DEBUGINFOD:
                output->objects.debug_files.no_debuginfod = option == OPTION_NO_DEBUGINFOD;
                return true;
        case OPTION_NO_DEMANGLE:
                o->demangle = false;
                return true;
        case OPTION_NO_INLINES:
                o->inlines = false;
                return true;
        case OPTION_INLINING:
                o->inlines = !value || strcmp(value, "false") != 0;
                return !value || !o->inlines || strcmp(value, "true") == 0;
        case OPTION_OUTPUT_STYLE:
                o->style = parse_output_style(value);
                return true;
        case OPTION_SKIP_LINE_ZERO:
                return o->skips_line_zero = true;
        case OPTION_SOURCE_LINES:
                parse_llvm_number(output, "print-source-context-lines", value, &o->source_lines);
                return o->source_lines < 10000;
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

/* Whether one letter more, less or another makes a name of a text. */
static bool is_almost_name(const char *text, size_t size, const char *name)
{
        size_t length = strlen(name), same = 0, end = 0;

        while (same < size && same < length && text[same] == name[same])
                same++;
        while (end < size - same && end < length - same && text[size - 1 - end] == name[length - 1 - end])
                end++;
        return (size > length ? size : length) - same - end == 1;
}

/* Of a group of letters only the unknown one, in optopt; argument is the one before the group then, or the group. */
static void report_unknown_llvm_option(struct tool_output *output, const char *argument)
{
        const char *text = argument + 2;
        size_t size = strcspn(text, "=");

        if (!starts_with(argument, "--") || (optopt && optopt < 128 && !strchr(llvm_short_options, optopt))) {
                report_llvm_argument(output, (char[]){ '-', (char)optopt, 0 });
                return;
        }
        for (size_t i = 0; llvm_long_options[i].name; i++) {
                const char *name = llvm_long_options[i].name;

                if (!is_almost_name(text, size, name))
                        continue;
                fprintf(stderr, "error: unknown argument '%s', did you mean '--%s%s'?\n", PRINTABLE(argument), name,
                        PRINTABLE(text + size));
                output->has_failed = true;
                return;
        }
        report_llvm_argument(output, argument);
}

static void set_llvm_build_id(struct llvm_arguments *a, struct tool_output *output, const char *value)
{
        if (a->object) {
                fprintf(stderr, "error: cannot specify both --build-id and --obj\n");
                output->has_failed = true;
        } else if (!parse_llvm_build_id(value, a->build_id)) {
                fprintf(stderr, "--build-id=: expected a build ID, but got '%s'\n", PRINTABLE(value));
                output->has_failed = true;
        }
}

/* getopt_long() accepts them, LLVM does not. */
static bool is_abbreviated_option(const char *argument, const char *name)
{
        return starts_with(argument, "--") && strcspn(argument + 2, "=") < strlen(name);
}

int parse_llvm_arguments(struct llvm_arguments *a, struct tool_output *output, int argc, char **argv)
{
        const char *argument, *build_id = NULL;
        int c, index = -1;

        rewrite_llvm_arguments(argc, argv);
        for (int i = 1; i < argc; i++)
                if (strcmp(argv[i], "--") == 0)
                        report_llvm_argument(output, argv[i]);
        opterr = 0;
        for (; (c = getopt_long(argc, argv, llvm_short_options, llvm_long_options, &index)) != -1; index = -1) {
                const char *value = optarg && *optarg == '=' ? optarg + 1 : optarg;

                if (c == 'h') {
                        printf(LLVM_USAGE, path_base(argv[0]), path_base(argv[0]));
                        return EXIT_DONE;
                }
                if (c == 'v') {
                        printf("%s\nCairn %s, compatible with LLVM version 19\n", path_base(argv[0]), CAIRN_VERSION);
                        return EXIT_DONE;
                }
                argument = optarg && optarg == argv[optind - 1] ? argv[optind - 2] : argv[optind - 1];
                if (c == '?' && optopt == 'e' && !starts_with(argument, "--"))
                        report_tool_error(output, "error: -e: missing argument");
                else if (c == '?' || (index >= 0 && is_abbreviated_option(argument, llvm_long_options[index].name)))
                        report_unknown_llvm_option(output, argument);
                else if (c == OPTION_BUILD_ID)
                        build_id = value;
                else if (!set_llvm_option(a, output, c, value))
                        report_llvm_argument(output, argument);
        }
        if (build_id)
                set_llvm_build_id(a, output, build_id);
        return output->has_failed ? EXIT_FAILED : -1;
}
