/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses flow in batches: arguments or standard input -> s->batch -> the answer source (a file or a service,
 * cli/symbols/answer_source.h) -> print_answer() for each answer, in the order of the addresses -> s->out -> standard
 * output. Buffers and batches have fixed limits, so the input may be endless. Before a read that may block, the batch
 * is resolved and the output written, so that another program can use the command through two pipes.
 *
 * Order: the three output formats (addr2line, llvm, json), output and batches, input, options, the command. Profiles
 * (--pprof, --perf-script, --folded) share the options only; their work is in symbolize_profile.c.
 *
 * Parsing and printing of ordinary addresses and frames avoid printf() and escaping tests: parse_plain_address() and
 * begin_printed_frame() are the fast paths, with the general functions behind them.
 */
#include "cli/symbols/answer_source.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/command.h"
#include "cli/commands/symbolize_profile.h"
#include "cli/symbols/debug_files.h"
#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "symbolizer/extraction/debug_file_search.h"

/* ---- output formats ---- */

#define NUMBER_BYTES 16 /* a line number and its separators */

static char *copy_bytes_to(char *at, const char *data, size_t size)
{
        memcpy(at, data, size);
        return at + size;
}

static char *copy_text_to(char *at, const struct answer_text *t)
{
        return t->size ? copy_bytes_to(at, t->data, t->size) : copy_bytes_to(at, "??", 2);
}

/* As begin_printed_frame(), for texts that may need escapes. */
static char *append_escaped_texts(struct buf *out, const struct answer_frame *f, char **start_ret)
{
        const struct answer_text *const texts[] = { &f->function, &f->file };

        for (int i = 0; i < 2; i++) {
                utf8_append_escaped_n(out, texts[i]->size ? texts[i]->data : "??", texts[i]->size ? texts[i]->size : 2);
                buf_append_u8(out, i ? ':' : '\n');
        }
        return *start_ret = buf_reserve(out, NUMBER_BYTES);
}

static char *copy_number_to(char *at, uint32_t n)
{
        char digits[10];
        size_t used = sizeof digits;

        do
                digits[--used] = (char)('0' + n % 10);
        while (n /= 10);
        return copy_bytes_to(at, digits + used, sizeof digits - used);
}

/* Append function and file; *at_ret is the position of the line number. */
static bool begin_printed_frame(struct buf *out, const struct answer_frame *f, char **start_ret, char **at_ret)
{
        char *at;

        if (!f->function.is_plain || !f->file.is_plain)
                return (*at_ret = append_escaped_texts(out, f, start_ret)) != NULL;
        at = buf_reserve(out, f->function.size + f->file.size + 8 + NUMBER_BYTES);

        *start_ret = at;
        if (!at)
                return false;
        at = copy_text_to(at, &f->function);
        *at++ = '\n';
        at = copy_text_to(at, &f->file);
        *at++ = ':';
        *at_ret = at;
        return true;
}

static void answer_print_addr2line(struct buf *out, const struct answer *a)
{
        char *start, *at;

        if (a->frame_count == 0)
                buf_append(out, "??\n??:0\n", 8);
        for (size_t i = 0; i < a->frame_count; i++) {
                const struct answer_frame *f = &a->frames[i];

                if (!begin_printed_frame(out, f, &start, &at))
                        return;
                if (f->line)
                        at = copy_number_to(at, f->line);
                else
                        *at++ = '?';
                *at++ = '\n';
                buf_commit(out, (size_t)(at - start));
        }
}

/* Columns are not stored; llvm-symbolizer prints 0 for an unknown one. */
static void answer_print_llvm(struct buf *out, const struct answer *a)
{
        char *start, *at;

        if (a->frame_count == 0)
                buf_append(out, "??\n??:0:0\n", 10);
        for (size_t i = 0; i < a->frame_count; i++) {
                if (!begin_printed_frame(out, &a->frames[i], &start, &at))
                        return;
                at = copy_number_to(at, a->frames[i].line);
                at = copy_bytes_to(at, ":0\n", 3);
                buf_commit(out, (size_t)(at - start));
        }
        buf_append_u8(out, '\n');
}

static void print_json_text(struct json_out *j, const char *key, const struct answer_text *t)
{
        if (t->is_plain)
                json_out_plain(j, key, t->data, t->size);
        else
                json_out_strn(j, key, t->data, t->size);
}

static void answer_print_json(struct json_out *j, const struct answer *a)
{
        char address[32];

        snprintf(address, sizeof address, "0x%" PRIx64, a->address);
        json_out_object(j, NULL);
        json_out_str(j, "address", address);
        json_out_str(j, "state", a->state);
        json_out_array(j, "frames");
        for (size_t i = 0; i < a->frame_count; i++) {
                const struct answer_frame *f = &a->frames[i];

                json_out_object(j, NULL);
                print_json_text(j, "function", &f->function);
                print_json_text(j, "linkage_name", &f->linkage_name);
                print_json_text(j, "file", &f->file);
                json_out_uint(j, "line", f->line);
                json_out_bool(j, "inlined", f->inlined);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        json_out_object_end(j);
}

/* ---- the command ---- */

#define NAME "symbolize"
#define LINE_MAX_BYTES 256 /* of one line of stdin */
#define BATCH_MAX 65536    /* addresses per lookup */
#define INPUT_BYTES MiB(1)
#define OUTPUT_BYTES MiB(1) /* buffered output */

enum answer_format { FORMAT_ADDR2LINE, FORMAT_LLVM, FORMAT_JSON };

struct symbolize {
        struct service_options service;
        const char *file, *build_id, *format_name;
        struct debug_files debug_files;
        bool verbose, no_cache;
        struct symbolize_profile profile;
        enum answer_format format;
        struct answer_source source;
        bool is_described; /* the source is described and the output's header written */
        struct buf out;
        struct json_out json; /* writes to out */
        enum status failed;   /* status of a failed write */
        struct error failure;
        char *input;
        uint64_t *batch;
        size_t batch_count;
};

static const struct usage usage = {
        .synopsis = "cairn symbolize -e FILE [OPTION]... [ADDRESS]...\n"
                    "       cairn symbolize --server URL --build-id ID [OPTION]... [ADDRESS]...\n"
                    "       cairn symbolize --pprof|--perf-script|--folded FILE [-o FILE] [OPTION]...",
        .about = "Print function, file and line of each address, with all inlined calls, innermost first. Addresses\n"
                 "are link-time addresses, hexadecimal with or without 0x, from the arguments or one per line from\n"
                 "standard input. Or resolve the addresses of a profile: its objects are found by their build-ids\n"
                 "and paths. Debug files that are not installed are fetched from the servers in DEBUGINFOD_URLS, if\n"
                 "it is set.",
        .examples = "  cairn symbolize -e /usr/bin/python3.11 0x1f2a40\n"
                    "  cairn symbolize -e ./server --format=json <addresses.txt\n"
                    "  cairn symbolize --pprof cpu.pb.gz --debug-dir ./debug -o named.pb.gz\n"
                    "  perf script --show-mmap-events | cairn symbolize --perf-script - --format=folded",
};

static void write_symbolize_output(struct symbolize *s)
{
        if (!s->failed)
                s->failed = buf_status(&s->out, &s->failure, "output");
        if (!s->failed && s->out.size)
                s->failed = file_write_all(STDOUT_FILENO, s->out.data, s->out.size, "standard output", &s->failure);
        buf_clear(&s->out);
}

static void print_source_description(struct symbolize *s)
{
        struct answer_source *source = &s->source;

        if (s->is_described)
                return;
        s->is_described = true;
        if (source->describe)
                source->describe(source->context, source);
        if (s->verbose && source->origin)
                fprintf(stderr, "cairn symbolize: symbols come from %s\n", PRINTABLE(source->origin));
        if (source->partial)
                fprintf(stderr, "cairn symbolize: symbols are partial: %s\n", PRINTABLE(source->partial));
        if (s->format != FORMAT_JSON)
                return;
        json_out_object(&s->json, NULL);
        json_out_str(&s->json, "build_id", source->build_id);
        if (source->quality)
                json_out_str(&s->json, "quality", source->quality);
        if (source->partial)
                json_out_str(&s->json, "partial", PRINTABLE(source->partial));
        json_out_array(&s->json, "results");
}

static void print_answer(void *context, const struct answer *a)
{
        struct symbolize *s = context;

        print_source_description(s);
        if (s->verbose && a->frame_count == 0)
                fprintf(stderr, "cairn symbolize: 0x%" PRIx64 ": %s\n", a->address, a->state);
        switch (s->format) {
        case FORMAT_ADDR2LINE:
                answer_print_addr2line(&s->out, a);
                break;
        case FORMAT_LLVM:
                answer_print_llvm(&s->out, a);
                break;
        case FORMAT_JSON:
                answer_print_json(&s->json, a);
                break;
        }
        if (s->out.size >= OUTPUT_BYTES)
                write_symbolize_output(s);
}

static enum status resolve_batch(struct symbolize *s, struct error *err)
{
        enum status st = s->source.ask(s->source.context, s->batch, s->batch_count, print_answer, s, err);

        s->batch_count = 0;
        if (!st && s->failed) {
                *err = s->failure;
                st = s->failed;
        }
        return st;
}

static enum status flush_batch(struct symbolize *s, struct error *err)
{
        return s->batch_count ? resolve_batch(s, err) : ST_OK;
}

static enum status add_batch_address(struct symbolize *s, uint64_t address, struct error *err)
{
        assert(s->batch_count < BATCH_MAX);
        s->batch[s->batch_count++] = address;
        return s->batch_count == BATCH_MAX ? flush_batch(s, err) : ST_OK;
}

/* A malformed address gets the answer of an unknown one, so that answers stay aligned with lines. */
static enum status add_address_line(struct symbolize *s, char *line, bool *bad, struct error *err)
{
        uint64_t address;
        char *end;

        line += strspn(line, " \t");
        end = line + strcspn(line, " \t\r");
        *end = 0;
        if (!parse_hex(line, &address)) {
                if (!*bad || s->verbose)
                        fprintf(stderr, "cairn symbolize: '%s' is not a hexadecimal address\n", line);
                *bad = true;
                address = UINT64_MAX;
        }
        return add_batch_address(s, address, err);
}

/* Whether input can be read without waiting. */
static bool is_input_waiting(void)
{
        struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };

        return poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN);
}

/* @return the end of the address, NULL when the line needs add_address_line(). */
static char *parse_plain_address(char *at, uint64_t *ret)
{
        uint64_t value = 0;
        char *start;

        if (at[0] == '0' && (at[1] | 0x20) == 'x')
                at += 2;
        for (start = at;; at++) {
                unsigned digit = (unsigned char)*at - '0', letter = ((unsigned char)*at | 0x20) - 'a';

                if (digit > 9 && letter > 5)
                        break;
                value = value << 4 | (digit <= 9 ? digit : letter + 10);
        }
        *ret = value;
        return *at == '\n' && at != start && at - start <= 16 ? at : NULL;
}

/* Add the lines of [text, end); the last one is complete. */
static enum status add_address_lines(struct symbolize *s, char *text, char *end, bool *bad, struct error *err)
{
        enum status st = ST_OK;

        while (!st && text < end) {
                uint64_t address;
                char *newline = parse_plain_address(text, &address);

                if (newline) {
                        st = add_batch_address(s, address, err);
                } else {
                        newline = memchr(text, '\n', (size_t)(end - text));
                        *newline = 0;
                        st = add_address_line(s, text, bad, err);
                }
                text = newline + 1;
        }
        return st;
}

/* Interactive use: all input is answered before a read that may block. */
static enum status read_addresses_from_stdin(struct symbolize *s, bool *bad, struct error *err)
{
        char *text = s->input;
        size_t have = 0;
        enum status st;

        for (;;) {
                ssize_t n = read(STDIN_FILENO, text + have, INPUT_BYTES - have);
                char *newline;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read standard input");
                if (n == 0)
                        break;
                have += (size_t)n;
                newline = memrchr(text, '\n', have);
                if (newline) {
                        st = add_address_lines(s, text, newline + 1, bad, err);
                        if (st)
                                return st;
                        have -= (size_t)(newline + 1 - text);
                        memmove(text, newline + 1, have);
                }
                if (have > LINE_MAX_BYTES)
                        return error_set(err, ST_USAGE, "a line of standard input is too long for an address");
                if (is_input_waiting())
                        continue;
                st = flush_batch(s, err);
                if (st)
                        return st;
                write_symbolize_output(s);
        }
        if (have) { /* last line without a newline */
                text[have] = 0;
                st = add_address_line(s, text, bad, err);
                if (st)
                        return st;
        }
        return flush_batch(s, err);
}

static enum status read_addresses_from_arguments(struct symbolize *s, int argc, char **argv, struct error *err)
{
        enum status st = ST_OK;

        for (int i = 0; !st && i < argc; i++) {
                uint64_t address;

                if (!parse_hex(argv[i], &address))
                        return error_set(err, ST_USAGE, "'%s' is not a hexadecimal address", argv[i]);
                st = add_batch_address(s, address, err);
        }
        return st ? st : flush_batch(s, err);
}

static enum status check_profile_options(struct symbolize *s, int argc, struct error *err)
{
        struct symbolize_profile *p = &s->profile;

        if (!!p->pprof + !!p->perf_script + !!p->folded > 1)
                return error_set(err, ST_USAGE, "--pprof, --perf-script and --folded exclude each other");
        if (argc || s->build_id)
                return error_set(err, ST_USAGE, "a profile contains its addresses and build-ids; give no others");
        p->fold = s->format_name && strcmp(s->format_name, "folded") == 0;
        if (s->format_name && !(p->perf_script && (p->fold || strcmp(s->format_name, "perf") == 0)))
                return error_set(err, ST_USAGE,
                                 "a profile keeps its format; only --perf-script supports --format=folded");
        p->verbose = s->verbose;
        p->objects = (struct object_finder_options){ .file = s->file,
                                                     .debug_files = &s->debug_files,
                                                     .service = s->service };
        return ST_OK;
}

static bool is_profile_input(const struct symbolize *s)
{
        return s->profile.pprof || s->profile.perf_script || s->profile.folded;
}

/* Check the options against the input: a profile, a file, or an object of a service. */
static enum status check_symbolize_options(const struct symbolize *s, const struct option_spec *specs,
                                           const bool *given, struct error *err)
{
        if (is_profile_input(s))
                return options_check_given(specs, given,
                                           "exe server token-file ca tenant build-id format pprof perf-script folded "
                                           "output force debug-dir no-debuginfod verbose",
                                           "cairn symbolize of a profile", err);
        if (s->service.server && !s->file)
                return options_check_given(specs, given, "server build-id token-file ca tenant format verbose",
                                           "cairn symbolize --server", err);
        return options_check_given(specs, given, "exe server build-id format debug-dir no-debuginfod no-cache verbose",
                                   "cairn symbolize --exe", err);
}

static enum status parse_symbolize_options(struct symbolize *s, int *argc, char ***argv, struct error *err)
{
        const struct option_spec specs[] = {
                OPTION_STRING("exe", 'e', "FILE", &s->file, "the ELF file; its debug file is found automatically"),
                OPTION_STRING("server", 0, "URL", &s->service.server, "use the service at URL instead of a file"),
                OPTION_STRING("build-id", 0, "ID", &s->build_id, "build-id of the object at the service"),
                SERVICE_OPTIONS(&s->service),
                DEBUGINFO_TENANT_OPTION(&s->service),
                OPTION_STRING("format", 0, "FORMAT", &s->format_name,
                              "addr2line (default), llvm or json; with --perf-script: perf (default) or folded"),
                OPTION_STRING("pprof", 0, "FILE", &s->profile.pprof, "resolve the locations of a pprof FILE"),
                OPTION_STRING("perf-script", 0, "FILE", &s->profile.perf_script,
                              "resolve the frames of perf script output in FILE"),
                OPTION_STRING("folded", 0, "FILE", &s->profile.folded,
                              "resolve the addresses in the folded stacks of FILE"),
                OPTION_STRING("output", 'o', "FILE", &s->profile.output,
                              "output file of a profile (default: standard output)"),
                OPTION_FLAG("force", 0, &s->profile.force, "also resolve frames that already have names"),
                DEBUG_FILES_OPTIONS(&s->debug_files),
                OPTION_FLAG("no-cache", 0, &s->no_cache, "do not use the symbol cache"),
                OPTION_FLAG("verbose", 'v', &s->verbose,
                            "print on stderr which symbols were read, and why an address is unknown"),
                OPTION_END,
        };
        bool given[OPTION_SPECS_MAX] = { false };
        enum status st = options_parse_given(&usage, specs, argc, argv, given, err);

        if (!st && s->service.tenant && !s->service.server)
                st = error_set(err, ST_USAGE, "--tenant needs --server");
        if (!st)
                st = check_symbolize_options(s, specs, given, err);
        if (st)
                return st;
        if (is_profile_input(s))
                return check_profile_options(s, *argc, err);
        if (!s->format_name || strcmp(s->format_name, "addr2line") == 0)
                s->format = FORMAT_ADDR2LINE;
        else if (strcmp(s->format_name, "llvm") == 0)
                s->format = FORMAT_LLVM;
        else if (strcmp(s->format_name, "json") == 0)
                s->format = FORMAT_JSON;
        else
                return error_set(err, ST_USAGE, "unknown format '%s': addr2line, llvm or json", s->format_name);
        if (s->file ? s->service.server || s->build_id : !s->service.server || !s->build_id)
                return error_set(err, ST_USAGE, "give either a file (-e FILE) or --server URL and --build-id ID");
        return ST_OK;
}

static enum status open_answer_source(struct symbolize *s, struct error *err)
{
        if (s->file) {
                const struct debug_file_search search = debug_files_search(&s->debug_files);

                return answer_source_file(s->file, &search, !s->no_cache, ANSWER_LINES, &s->source, err);
        }
        return answer_source_server(&s->service, s->build_id, &s->source, err);
}

static enum status resolve_all_addresses(struct symbolize *s, int argc, char **argv, bool *bad, struct error *err)
{
        enum status st =
                argc ? read_addresses_from_arguments(s, argc, argv, err) : read_addresses_from_stdin(s, bad, err);

        if (!st && !s->is_described && s->source.describe)
                st = resolve_batch(s, err); /* no address: only the description of the file */
        if (st)
                return st;
        print_source_description(s);
        if (s->format == FORMAT_JSON) {
                json_out_array_end(&s->json);
                json_out_object_end(&s->json);
                buf_append_u8(&s->out, '\n');
        }
        write_symbolize_output(s);
        if (s->failed)
                *err = s->failure;
        return s->failed;
}

int command_symbolize(int argc, char **argv)
{
        struct symbolize s = { .debug_files = { .directory = DEBUG_DIRECTORY } };
        struct error err;
        bool bad = false;
        enum status st = parse_symbolize_options(&s, &argc, &argv, &err);

        if (!st)
                st = debug_files_open(&s.debug_files, &err);
        if (!st && is_profile_input(&s)) {
                st = symbolize_profile(&s.profile, &err);
                debug_files_close(&s.debug_files);
                return st ? command_fail(NAME, st, &err) : EXIT_DONE;
        }
        buf_init(&s.out, MiB(64));
        json_out_init(&s.json, &s.out);
        if (!st)
                st = open_answer_source(&s, &err);
        if (!st) {
                s.batch = calloc(BATCH_MAX, sizeof *s.batch);
                s.input = malloc(INPUT_BYTES + 1);
                st = s.batch && s.input ? resolve_all_addresses(&s, argc, argv, &bad, &err) : error_no_memory(&err);
                s.source.close(s.source.context);
        }
        free(s.batch);
        free(s.input);
        debug_files_close(&s.debug_files);
        buf_deinit(&s.out);
        if (st)
                return command_fail(NAME, st, &err);
        return bad ? EXIT_USAGE : EXIT_DONE;
}
