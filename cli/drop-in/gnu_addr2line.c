/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GNU addr2line. Output and messages are those of binutils 2.40; the limit of recursion of its demangler, the object
 * format and the style of mangled names are accepted and ignored, since they are found automatically.
 * Source: binutils manual, "addr2line".
 */
#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <libiberty/libiberty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/drop-in/drop_in.h"
#include "cli/drop-in/tool_output.h"
#include "common/cleanup.h"
#include "common/exit_code.h"
#include "common/limits.h"
#include "common/text.h"
#include "common/text/utf8.h"
#include "symbol-index/demangle.h"
#include "symbolizer/extraction/debug_file_search.h"

#define GNU_LINE_BYTES 99 /* a longer line is more than one request */

struct gnu_options {
        const char *file, *section;
        bool addresses, inlines, pretty, base_names, functions, demangle;
};

struct gnu_addr2line {
        struct gnu_options options;
        struct tool_output output;
        struct named_object *object;
        uint64_t section_address, section_size; /* of options.section */
        struct buf symbol_name;                 /* of a frame */
};

/* ---- output ---- */

static void print_gnu_frame(const struct gnu_options *o, struct buf *out, const struct answer_frame *f,
                            uint32_t discriminator)
{
        if (o->functions) {
                append_function_name(out, f, o->demangle);
                buf_append_str(out, o->pretty ? " at " : "\n");
        }
        append_file_name(out, &f->file, o->base_names);
        if (!f->line)
                buf_append_str(out, ":?\n");
        else if (discriminator)
                buf_printf(out, ":%" PRIu32 " (discriminator %" PRIu32 ")\n", f->line, discriminator);
        else
                buf_printf(out, ":%" PRIu32 "\n", f->line);
}

/* Whether DWARF has only the plain name of a function in C++, as of the parts of coroutines of GCC. */
static bool has_plain_name(const struct answer_frame *f)
{
        return !f->linkage_name.size && f->function.size && memmem(f->function.data, f->function.size, "::", 2);
}

/* With what its symbol tells: the file that a local symbol is in, and the name of a function with a plain name. The
 * symbols are not read for other frames, which are nearly all. */
static struct answer_frame complete_gnu_frame(struct gnu_addr2line *t, const struct answer *a, size_t i)
{
        bool wants_name = i + 1 == a->frame_count && has_plain_name(&a->frames[i]);
        struct answer_frame ret = a->frames[i];
        const struct object_symbol *symbol;

        if (ret.file.size && !wants_name)
                return ret;
        symbol = object_symbols_at(named_objects_symbols(&t->output.objects, t->object), a->address);
        if (!symbol)
                return ret;
        if (!ret.file.size)
                ret.file = (struct answer_text){ .data = symbol->file, .size = strlen(symbol->file) };
        if (wants_name && starts_with(symbol->name, "_Z")) {
                buf_clear(&t->symbol_name);
                append_raw_symbol_name(&t->symbol_name, symbol->name, t->options.demangle);
                ret.function = ret.linkage_name =
                        (struct answer_text){ .data = buf_cstr(&t->symbol_name), .size = t->symbol_name.size };
        }
        return ret;
}

static void print_gnu_answer(void *context, const struct answer *a)
{
        struct gnu_addr2line *t = context;
        const struct gnu_options *o = &t->options;
        struct buf *out = &t->output.out;
        uint64_t given = o->section ? a->address - t->section_address : a->address;

        if (o->addresses)
                buf_printf(out, "0x%0*" PRIx64 "%s", t->object->is_64 ? 16 : 8, given, o->pretty ? ": " : "\n");
        if (!a->frame_count) {
                if (o->functions)
                        buf_append_str(out, o->pretty ? "?? " : "??\n");
                buf_append_str(out, "??:0\n");
        }
        for (size_t i = 0; i < a->frame_count && (o->inlines || i == 0); i++) {
                const struct answer_frame f = complete_gnu_frame(t, a, i);

                if (i && o->pretty)
                        buf_append_str(out, " (inlined by) ");
                print_gnu_frame(o, out, &f, a->details[0].discriminator); /* GNU's keeps the first one */
        }
}

/* ---- input ---- */

#define BLANKS " \t\r\n\v\f"

/* "NAME" or "NAME + OFFSET"; a name that could be a hexadecimal number is one unless "+" follows. */
static bool parse_gnu_symbol(const char *text, struct answer_text *name_ret, uint64_t *offset_ret)
{
        size_t size = strcspn(text, "+" BLANKS), plus = size + strspn(text + size, BLANKS);

        if (!text[0] || isdigit((unsigned char)text[0]) || (isxdigit((unsigned char)text[0]) && !strchr(text, '+')))
                return false;
        *name_ret = (struct answer_text){ .data = text, .size = size };
        *offset_ret = text[plus] == '+' ? (uint64_t)strtoll(text + plus + 1, NULL, 0) : 0;
        return true;
}

/* By the demangled name of a symbol. */
static const struct object_symbol *find_readable_symbol(const struct object_symbols *s, const struct answer_text *name)
{
        const struct object_symbol *first = NULL;
        _cleanup_buf_ struct buf scratch;

        buf_init(&scratch, LIMIT_DEMANGLED_BYTES);
        for (size_t i = 0; i < s->count; i++) {
                const struct object_symbol *symbol = &s->items[i];
                const char *text;

                if (symbol->name[0] != '_' || (first && symbol->order > first->order))
                        continue;
                text = symbol_demangle(symbol->name, &scratch);
                if (text && strlen(text) == name->size && memcmp(text, name->data, name->size) == 0)
                        first = symbol;
        }
        return first;
}

/* 0 for an unknown symbol. */
static uint64_t find_gnu_symbol(struct gnu_addr2line *t, const struct answer_text *name, uint64_t offset)
{
        const struct object_symbols *symbols = named_objects_symbols(&t->output.objects, t->object);
        const struct object_symbol *symbol = object_symbols_named(symbols, name->data, name->size);

        if (!name->size)
                return offset; /* symbols without a name are 0 */
        if (!symbol)
                symbol = find_readable_symbol(symbols, name);
        return symbol ? symbol->address + offset : 0;
}

static void add_gnu_request(void *context, char *text)
{
        struct gnu_addr2line *t = context;
        struct answer_text name;
        uint64_t address;

        text += strspn(text, " \t\r\n\v\f");
        if (parse_gnu_symbol(text, &name, &address))
                address = find_gnu_symbol(t, &name, address);
        else
                address = strtoull(text, NULL, 16); /* 0 if it is none */
        if (!t->object->is_64)
                address = (uint32_t)address;
        if (t->options.section && address >= t->section_size) {
                tool_output_answer(&t->output);
                print_gnu_answer(t, &(struct answer){ .address = address + t->section_address });
                return;
        }
        tool_output_add(&t->output, t->object, address + t->section_address);
}

/* ---- options ---- */

#define GNU_USAGE                                                                                                      \
        "Usage: %s [option(s)] [addr(s)]\n"                                                                            \
        " Convert addresses into line number/file name pairs.\n"                                                       \
        " If no addresses are specified on the command line, they will be read from stdin\n"                           \
        " The options are:\n"                                                                                          \
        "  @<file>                Read options from <file>\n"                                                          \
        "  -a --addresses         Show addresses\n"                                                                    \
        "  -b --target=<bfdname>  Set the binary file format (ignored)\n"                                              \
        "  -e --exe=<executable>  Set the input file name (default is a.out)\n"                                        \
        "  -i --inlines           Unwind inlined functions\n"                                                          \
        "  -j --section=<name>    Read section-relative offsets instead of addresses\n"                                \
        "  -p --pretty-print      Make the output easier to read for humans\n"                                         \
        "  -s --basenames         Strip directory names\n"                                                             \
        "  -f --functions         Show function names\n"                                                               \
        "  -C --demangle[=style]  Demangle function names\n"                                                           \
        "  -R --recurse-limit     Ignored: recursion whilst demangling is always limited\n"                            \
        "  -r --no-recurse-limit  Ignored\n"                                                                           \
        "  -h --help              Display this information\n"                                                          \
        "  -v --version           Display the program's version\n"

static bool is_known_demangling_style(const char *style)
{
        static const char *const styles[] = { "none", "auto", "gnu-v3", "java", "gnat", "dlang", "rust" };

        for (size_t i = 0; i < sizeof styles / sizeof *styles; i++)
                if (strcmp(style, styles[i]) == 0)
                        return true;
        return false;
}

/* @return the exit code; -1: go on */
static int parse_gnu_options(struct gnu_options *o, int argc, char **argv)
{
        static const struct option options[] = {
                { "addresses", no_argument, NULL, 'a' },        { "basenames", no_argument, NULL, 's' },
                { "demangle", optional_argument, NULL, 'C' },   { "exe", required_argument, NULL, 'e' },
                { "functions", no_argument, NULL, 'f' },        { "inlines", no_argument, NULL, 'i' },
                { "pretty-print", no_argument, NULL, 'p' },     { "recurse-limit", no_argument, NULL, 'R' },
                { "no-recurse-limit", no_argument, NULL, 'r' }, { "no-recursion-limit", no_argument, NULL, 'r' },
                { "recursion-limit", no_argument, NULL, 'R' },  { "section", required_argument, NULL, 'j' },
                { "target", required_argument, NULL, 'b' },     { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'V' },          { NULL, 0, NULL, 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "ab:Ce:rRsfHhij:pVv", options, NULL)) != -1) {
                switch (c) {
                case 'a':
                        o->addresses = true;
                        break;
                case 'C':
                        o->demangle = !optarg || strcmp(optarg, "none") != 0;
                        if (optarg && !is_known_demangling_style(optarg)) {
                                fprintf(stderr, "%s: unknown demangling style `%s'\n", argv[0], optarg);
                                return EXIT_FAILED;
                        }
                        break;
                case 'e':
                        o->file = optarg;
                        break;
                case 'f':
                        o->functions = true;
                        break;
                case 'i':
                        o->inlines = true;
                        break;
                case 'j':
                        o->section = optarg;
                        break;
                case 'p':
                        o->pretty = true;
                        break;
                case 's':
                        o->base_names = true;
                        break;
                case 'b':
                case 'r':
                case 'R':
                        break;
                case 'v':
                case 'V':
                        printf("Cairn addr2line %s, compatible with GNU addr2line (GNU Binutils) 2.40\n",
                               CAIRN_VERSION);
                        return EXIT_DONE;
                case 'h':
                case 'H':
                        printf(GNU_USAGE, argv[0]);
                        return EXIT_DONE;
                default:
                        fprintf(stderr, GNU_USAGE, argv[0]);
                        return EXIT_FAILED;
                }
        }
        return -1;
}

static void report_gnu_file(struct gnu_addr2line *t, enum status failed, const struct error *err)
{
        const char *name = t->options.file;
        struct stat st;

        if (failed == ST_OS && err->os_errno == ENOENT)
                report_tool_error(&t->output, "'%s': No such file", PRINTABLE(name));
        else if (stat(name, &st) == 0 && S_ISDIR(st.st_mode))
                report_tool_error(&t->output, "Warning: '%s' is a directory", PRINTABLE(name));
        else if (failed != ST_BAD_DATA)
                report_tool_error(&t->output, "%s", PRINTABLE(err->text));
        else if (!S_ISREG(st.st_mode))
                report_tool_error(&t->output, "Warning: '%s' is not an ordinary file", PRINTABLE(name));
        else if (is_object_archive(name))
                report_tool_error(&t->output, "%s: cannot get addresses from archive", PRINTABLE(name));
        else
                report_tool_error(&t->output, "%s: file format not recognized", PRINTABLE(name));
}

static enum status open_gnu_file(struct gnu_addr2line *t)
{
        struct error err;
        enum status st = named_objects_get(&t->output.objects, t->options.file, &t->object, &err);

        if (st)
                report_gnu_file(t, st, &err);
        if (!st && t->options.section &&
            !find_section_addresses(t->options.file, t->options.section, &t->section_address, &t->section_size)) {
                report_tool_error(&t->output, "%s: cannot find section %s", PRINTABLE(t->options.file),
                                  PRINTABLE(t->options.section));
                return ST_NOT_FOUND;
        }
        return st;
}

static int run_with_gnu_arguments(int argc, char **argv)
{
        struct gnu_addr2line t = { .options.file = "a.out", .output.objects.debug_files.directory = DEBUG_DIRECTORY };
        enum status st;
        struct error err;
        int code;

        code = parse_gnu_options(&t.options, argc, argv);
        if (code >= 0)
                return code;
        t.output.program = argv[0];
        buf_init(&t.symbol_name, LIMIT_DEMANGLED_BYTES);
        t.output.line_bytes = GNU_LINE_BYTES;
        t.output.print = print_gnu_answer;
        t.output.context = &t;
        st = tool_output_open(&t.output, &err);
        if (!st)
                st = open_gnu_file(&t);
        if (!st) {
                st = tool_output_handle_requests(&t.output, argc - optind, argv + optind, add_gnu_request, &err);
                if (st)
                        report_tool_error(&t.output, "%s", PRINTABLE(err.text));
        }
        if (!st)
                tool_output_flush(&t.output);
        tool_output_deinit(&t.output);
        buf_deinit(&t.symbol_name);
        return st ? EXIT_FAILED : EXIT_DONE;
}

int run_gnu_addr2line(int argc, char **argv)
{
        char **const given = argv;
        int code;

        expandargv(&argc, &argv); /* @FILE */
        code = run_with_gnu_arguments(argc, argv);
        if (argv != given)
                freeargv(argv);
        return code;
}
