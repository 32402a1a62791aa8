/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eu-addr2line: addresses of one file, or of the memory of a process or core, with the output of elfutils 0.188. The
 * kernel and flags of the line table are refused: its files can be given, and the table of symbols has no flags.
 * Source: elfutils, eu-addr2line(1).
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/drop-in/drop_in.h"
#include "cli/drop-in/mapped_files.h"
#include "cli/drop-in/tool_output.h"
#include "common/exit_code.h"
#include "common/text/utf8.h"
#include "symbolizer/extraction/debug_file_search.h"

struct eu_options {
        const char *file, *section;
        const char *maps, *core, *process; /* whose memory the addresses are of; NULL: addresses of the file */
        bool addresses, functions, inlines, pretty, base_names, demangle;
        bool symbols, symbol_sections;
};

struct eu_addr2line {
        struct eu_options options;
        struct tool_output output;
        struct named_object *object;
        struct mapped_files mapped; /* of the process */
        bool has_mapped;
        bool has_failed; /* the last request, which the exit status is that of */
        uint64_t bias;   /* of the object in the memory of the process */
};

/* ---- output ---- */

static void print_eu_position(const struct eu_options *o, struct buf *out, const struct answer *a, size_t i)
{
        const struct answer_frame *f = &a->frames[i];

        if (!f->file.size) {
                buf_append_str(out, "??:0");
                return;
        }
        append_file_name(out, &f->file, o->base_names);
        buf_printf(out, ":%" PRIu32, f->line);
        if (a->details[i].column)
                buf_printf(out, ":%" PRIu32, a->details[i].column);
}

/* As in "inner inlined at FILE:LINE in outer"; with symbols, the outer function is the symbol that follows. */
static void print_eu_function(const struct eu_options *o, struct buf *out, const struct answer *a)
{
        append_function_name(out, &a->frames[0], o->demangle);
        if (!o->pretty && a->frame_count > 1) {
                buf_append_str(out, " inlined at ");
                print_eu_position(o, out, a, 1);
                buf_append_str(out, " in ");
                if (o->symbols)
                        return;
                append_function_name(out, &a->frames[a->frame_count - 1], o->demangle);
        }
        buf_append_u8(out, o->pretty ? ' ' : '\n');
}

/* As in "main+0x10 (.text)", or "(.plt)+0x20" in a relocatable file. */
static void print_eu_symbol(struct eu_addr2line *t, uint64_t address)
{
        const struct object_symbols *symbols = named_objects_symbols(&t->output.objects, t->object);
        const struct object_symbol *symbol = object_symbols_at(symbols, address);
        const struct eu_options *o = &t->options;
        struct buf *out = &t->output.out;

        if (!symbol) {
                if (symbols->image.type == ET_DYN && object_symbols_is_loaded(symbols, address))
                        buf_printf(out, "()+%#" PRIx64, address);
                else
                        buf_append_str(out, "??");
        } else {
                append_symbol_name(out, symbol->name, o->demangle);
                if (address != symbol->address)
                        buf_printf(out, "+%#" PRIx64, address - symbol->address);
                if (o->symbol_sections) {
                        const struct elf_section *section = object_symbols_section_at(symbols, address);

                        if (section)
                                buf_printf(out, " (%s)", PRINTABLE(section->name));
                }
        }
        buf_append_u8(out, o->pretty ? ' ' : '\n');
}

/* In place of a function: the symbol of data, too. */
static void print_eu_symbol_name(struct eu_addr2line *t, uint64_t address)
{
        const struct object_symbols *symbols = named_objects_symbols(&t->output.objects, t->object);
        const struct object_symbol *symbol = object_symbols_at(symbols, address);

        append_symbol_name(&t->output.out, symbol ? symbol->name : "", t->options.demangle);
        buf_append_u8(&t->output.out, t->options.pretty ? ' ' : '\n');
}

/* With symbols, the function is only that of DWARF. */
static void print_eu_names(struct eu_addr2line *t, const struct answer *a)
{
        const struct eu_options *o = &t->options;
        struct buf *out = &t->output.out;

        if (o->functions && a->frame_count && (a->frames[0].file.size || !o->symbols))
                print_eu_function(o, out, a);
        else if (o->functions && !o->symbols)
                print_eu_symbol_name(t, a->address);
        if (o->symbols)
                print_eu_symbol(t, a->address);
        if (o->pretty && (o->functions || o->symbols))
                buf_append_str(out, "at ");
}

static void print_eu_callers(const struct eu_options *o, struct buf *out, const struct answer *a)
{
        for (size_t i = 1; i < a->frame_count; i++) {
                if (o->pretty)
                        buf_append_str(out, " (inlined by) ");
                if (o->functions) {
                        append_function_name(out, &a->frames[i], o->demangle);
                        buf_append_str(out, o->pretty ? " at " : "\n");
                }
                print_eu_position(o, out, a, i);
                buf_append_u8(out, '\n');
        }
}

static void print_eu_answer(void *context, const struct answer *a)
{
        struct eu_addr2line *t = context;
        const struct eu_options *o = &t->options;
        struct buf *out = &t->output.out;

        if (o->addresses)
                buf_printf(out, "0x%0*" PRIx64 "%s", t->object->is_64 ? 16 : 8, a->address + t->bias,
                           o->pretty ? ": " : "\n");
        print_eu_names(t, a);
        if (a->frame_count)
                print_eu_position(o, out, a, 0);
        else
                buf_append_str(out, "??:0");
        buf_append_u8(out, '\n');
        if (o->inlines)
                print_eu_callers(o, out, a);
        t->has_failed = o->inlines && (!a->frame_count || !a->frames[a->frame_count - 1].file.size);
}

/* ---- input ---- */

/* An offset in a section of a relocatable file, as an address. Other files have no sections for eu-addr2line. */
static bool adjust_to_eu_section(struct eu_addr2line *t, const char *section, uint64_t *address)
{
        uint64_t start, size;

        if (named_objects_symbols(&t->output.objects, t->object)->image.type != ET_REL ||
            !find_section_addresses(t->options.file, section, &start, &size))
                return false;
        if (*address >= size) {
                tool_output_flush(&t->output);
                report_tool_error(&t->output, "offset %#" PRIx64 " lies outside section '%s'", *address,
                                  PRINTABLE(section));
        }
        *address += start;
        return true;
}

/* "(SECTION)OFFSET", as in "(.text)+0x10". */
static bool is_eu_section_offset(struct eu_addr2line *t, const char *text)
{
        const char *close = text[0] == '(' ? strchr(text, ')') : NULL;
        _cleanup_free_ char *section = NULL;
        uint64_t offset;
        char *end;

        if (!close || close == text + 1 || !close[1])
                return false;
        offset = (uint64_t)strtoll(close + 1, &end, 0);
        section = strndup(text + 1, (size_t)(close - text - 1));
        return !*end && section && adjust_to_eu_section(t, section, &offset);
}

static void report_unknown_eu_symbol(struct eu_addr2line *t, const char *name, size_t size)
{
        _cleanup_free_ char *text = strndup(name, size);

        tool_output_flush(&t->output);
        report_tool_error(&t->output, "cannot find symbol '%s'", text ? PRINTABLE(text) : "");
}

/*
 * "SYMBOL", "SYMBOL+OFFSET". An offset outside of the symbol is reported and used.
 * @param ret  without such a symbol: the offset.
 */
static bool find_eu_symbol(struct eu_addr2line *t, const char *text, uint64_t *ret)
{
        const struct object_symbols *symbols = named_objects_symbols(&t->output.objects, t->object);
        const struct object_symbol *symbol;
        struct symbol_offset given;

        *ret = 0;
        if (!parse_symbol_offset(text, &given))
                return false;
        *ret = (uint64_t)given.offset;
        symbol = object_symbols_named(symbols, given.name, given.name_size);
        if (!symbol) {
                report_unknown_eu_symbol(t, given.name, given.name_size);
                return false;
        }
        if (symbol->size && (uint64_t)given.offset >= symbol->size) {
                tool_output_flush(&t->output);
                report_tool_error(&t->output, "offset %#" PRIx64 " lies outside contents of '%s'",
                                  (uint64_t)given.offset, PRINTABLE(symbol->name));
        }
        *ret = symbol->address + (uint64_t)given.offset;
        return true;
}

/*
 * elfutils 0.188 parses an offset in a section again, as a symbol that there is not: it reports the symbol, and takes
 * the offset for the address.
 */
static bool parse_eu_address(struct eu_addr2line *t, const char *text, uint64_t *ret)
{
        bool is_in_section;
        char *end;

        *ret = strtoull(text, &end, 16);
        if (end != text && !*end)
                return !t->options.section || adjust_to_eu_section(t, t->options.section, ret);
        is_in_section = is_eu_section_offset(t, text);
        return find_eu_symbol(t, text, ret) || is_in_section;
}

/* An address in memory where no file can be read. */
static void print_eu_unknown(struct eu_addr2line *t, uint64_t address)
{
        const struct eu_options *o = &t->options;
        struct buf *out = &t->output.out;

        tool_output_answer(&t->output);
        if (o->addresses)
                buf_printf(out, "0x%016" PRIx64 "%s", address, o->pretty ? ": " : "\n");
        if (o->functions || o->symbols)
                buf_append_str(out, o->pretty ? "?? at " : "??\n");
        buf_append_str(out, "??:0\n");
        t->has_failed = o->inlines;
}

static void add_eu_mapped_address(struct eu_addr2line *t, uint64_t address)
{
        const struct mapped_file *file = mapped_files_at(&t->mapped, address);
        struct named_object *object;
        uint64_t bias;

        if (!file || named_objects_get(&t->output.objects, file->path, &object, NULL) ||
            !mapped_file_bias(file, &named_objects_symbols(&t->output.objects, object)->image, &bias)) {
                print_eu_unknown(t, address);
                return;
        }
        if (object != t->object || bias != t->bias)
                tool_output_answer(&t->output);
        t->object = object;
        t->bias = bias;
        tool_output_add(&t->output, object, address - bias);
}

static void add_eu_address(void *context, char *text)
{
        struct eu_addr2line *t = context;
        uint64_t address;
        char *end;

        if (t->has_mapped) {
                address = strtoull(text, &end, 16);
                if (end != text && !*end) {
                        add_eu_mapped_address(t, address);
                        return;
                }
                report_unknown_eu_symbol(t, text, strlen(text));
                t->has_failed = true;
        } else if (parse_eu_address(t, text, &address)) {
                tool_output_add(&t->output, t->object, address);
        } else {
                tool_output_answer(&t->output); /* else the status is that of a request before */
                t->has_failed = true;
        }
}

static bool parse_eu_process(const char *text, pid_t *ret)
{
        char *end;
        long value = strtol(text, &end, 10);

        *ret = (pid_t)value;
        return end != text && !*end && value > 0 && value <= INT32_MAX;
}

/* Read the mappings that an option names, if one does. */
static enum status read_eu_mappings(struct eu_addr2line *t, struct error *err)
{
        const struct eu_options *o = &t->options;
        char path[64];
        pid_t pid;

        t->has_mapped = true;
        if (o->maps)
                return mapped_files_read_maps(o->maps, &t->mapped, err);
        if (o->core)
                return mapped_files_read_core(o->core, &t->mapped, err);
        if (!parse_eu_process(o->process, &pid))
                return error_set(err, ST_USAGE, "'%s' is no process", o->process);
        snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
        return mapped_files_read_maps(path, &t->mapped, err);
}

static enum status open_eu_file(struct eu_addr2line *t)
{
        struct error err;
        enum status st;

        if (t->options.maps || t->options.core || t->options.process) {
                st = read_eu_mappings(t, &err);
                if (st)
                        report_tool_error(&t->output, "%s", PRINTABLE(err.text));
                return st;
        }
        st = named_objects_get(&t->output.objects, t->options.file, &t->object, &err);
        if (st == ST_OS && err.os_errno)
                report_tool_error(&t->output, "%s: %s", PRINTABLE(t->options.file), strerror(err.os_errno));
        else if (st == ST_BAD_DATA)
                report_tool_error(&t->output, "%s: not a valid ELF file", PRINTABLE(t->options.file));
        else if (st)
                report_tool_error(&t->output, "%s", PRINTABLE(err.text));
        return st;
}

/* ---- options ---- */

enum { OPTION_EU_PRETTY = 256, OPTION_EU_CORE, OPTION_EU_DEBUGINFO_PATH, OPTION_EU_RELATIVE, OPTION_EU_HELP };

static const struct option eu_long_options[] = {
        { "absolute", no_argument, NULL, 'A' },
        { "addresses", no_argument, NULL, 'a' },
        { "basenames", no_argument, NULL, 's' },
        { "core", required_argument, NULL, OPTION_EU_CORE },
        { "debuginfo-path", required_argument, NULL, OPTION_EU_DEBUGINFO_PATH },
        { "demangle", optional_argument, NULL, 'C' },
        { "executable", required_argument, NULL, 'e' },
        { "flags", no_argument, NULL, 'F' },
        { "functions", no_argument, NULL, 'f' },
        { "help", no_argument, NULL, OPTION_EU_HELP },
        { "inlines", no_argument, NULL, 'i' },
        { "kernel", no_argument, NULL, 'k' },
        { "linux-process-map", required_argument, NULL, 'M' },
        { "offline-kernel", optional_argument, NULL, 'K' },
        { "pid", required_argument, NULL, 'p' },
        { "pretty-print", no_argument, NULL, OPTION_EU_PRETTY },
        { "relative", no_argument, NULL, OPTION_EU_RELATIVE },
        { "section", required_argument, NULL, 'j' },
        { "symbols", no_argument, NULL, 'S' },
        { "symbols-sections", no_argument, NULL, 'x' },
        { "target", required_argument, NULL, 'b' },
        { "version", no_argument, NULL, 'V' },
        { NULL, 0, NULL, 0 },
};

#define EU_USAGE                                                                                                       \
        "Usage: %s [OPTION...] [ADDR...]\n"                                                                            \
        "Locate source files and line information for ADDRs (in a.out by default).\n\n"                                \
        "  -a, --addresses            Print address before each entry\n"                                               \
        "  -A, --absolute             Show absolute file names (default)\n"                                            \
        "  -C, --demangle             Show demangled symbols\n"                                                        \
        "      --core=COREFILE        Addresses of the memory of a core, whose files are there\n"                      \
        "      --debuginfo-path=PATHS Directories of debug files, with colons between (default "                       \
        ":.debug:" DEBUG_DIRECTORY ")\n"                                                                               \
        "  -e, --executable=FILE      Find addresses in FILE\n"                                                        \
        "  -f, --functions            Also show function names\n"                                                      \
        "  -i, --inlines              Show all source locations that caused inline expansion\n"                        \
        "  -j, --section=NAME         Treat addresses as offsets relative to NAME section\n"                           \
        "  -M, --linux-process-map=FILE  Addresses of files that are mapped as in FILE, of the format "                \
        "/proc/PID/maps\n"                                                                                             \
        "  -p, --pid=PID              Addresses of the memory of a process\n"                                          \
        "      --pretty-print         Print all information on one line, and indent inlines\n"                         \
        "      --relative             Show file names without the compilation directory\n"                             \
        "  -s, --basenames            Show only base names of source files\n"                                          \
        "  -S, --symbols              Also show the ELF symbol of the address\n"                                       \
        "  -x, --symbols-sections     Also show the symbol and its section\n"                                          \
        "  -?, --help                 Give this help list\n"                                                           \
        "  -V, --version              Print program version\n"

static bool set_eu_option(struct eu_addr2line *t, int option)
{
        struct eu_options *o = &t->options;

        switch (option) {
        case 'a':
                return o->addresses = true;
        case 'A':
                t->output.objects.has_relative_paths = false;
                return true;
        case OPTION_EU_RELATIVE:
                return t->output.objects.has_relative_paths = true;
        case 'S':
                return o->symbols = true;
        case 'x':
                return o->symbols = o->symbol_sections = true;
        case 'b': /* the format, which is found */
                return true;
        case 'C':
                return o->demangle = true;
        case 'e':
                o->file = optarg;
                return true;
        case 'f':
                return o->functions = true;
        case 'i':
                return o->inlines = true;
        case 'j':
                o->section = optarg;
                return true;
        case 's':
                return o->base_names = true;
        case 'M':
                o->maps = optarg;
                return true;
        case 'p':
                o->process = optarg;
                return true;
        case OPTION_EU_CORE:
                o->core = optarg;
                return true;
        case OPTION_EU_PRETTY:
                return o->pretty = true;
        case OPTION_EU_DEBUGINFO_PATH:
                t->output.objects.debug_files.path_list = optarg;
                return true;
        default:
                return false;
        }
}

/* @return the exit code; -1: go on. The arguments are argv + optind. */
static int parse_eu_options(struct eu_addr2line *t, int argc, char **argv)
{
        int c;

        while ((c = getopt_long(argc, argv, "aAb:C::e:fFij:kK::M:p:sSx?V", eu_long_options, NULL)) != -1) {
                if (c == OPTION_EU_HELP || (c == '?' && strcmp(argv[optind - 1], "-?") == 0)) {
                        printf(EU_USAGE, argv[0]);
                        return EXIT_DONE;
                }
                if (c == 'V') {
                        printf("Cairn eu-addr2line %s, compatible with elfutils 0.188\n", CAIRN_VERSION);
                        return EXIT_DONE;
                }
                if (c == 'F')
                        report_tool_error(&t->output, "the flags of line tables (-F) are not supported");
                if (c == 'k' || c == 'K')
                        report_tool_error(&t->output,
                                          "finding the kernel (-%c) is not supported: name its file with -e", c);
                if (c == '?')
                        fprintf(stderr, "Try `%s --help' or `%s --usage' for more information.\n", argv[0], argv[0]);
                if (!set_eu_option(t, c))
                        return EXIT_USAGE;
        }
        return -1;
}

int run_eu_addr2line(int argc, char **argv)
{
        struct eu_addr2line t = { .options.file = "a.out",
                                  .output.objects.debug_files = { .directory = DEBUG_DIRECTORY,
                                                                  .path_list = ":.debug:" DEBUG_DIRECTORY } };
        struct error err;
        enum status st;
        int code;

        t.output.program = argv[0];
        t.output.print = print_eu_answer;
        t.output.context = &t;
        code = parse_eu_options(&t, argc, argv);
        if (code >= 0)
                return code;
        st = tool_output_open(&t.output, &err);
        if (!st)
                st = open_eu_file(&t);
        if (!st) {
                st = tool_output_handle_requests(&t.output, argc - optind, argv + optind, add_eu_address, &err);
                if (st)
                        report_tool_error(&t.output, "%s", PRINTABLE(err.text));
        }
        if (!st)
                tool_output_flush(&t.output);
        tool_output_deinit(&t.output);
        mapped_files_deinit(&t.mapped);
        return st || t.has_failed ? EXIT_FAILED : EXIT_DONE;
}
