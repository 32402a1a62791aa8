/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/symbolize.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/symbolize_profile.h"
#include "common/utf8.h"
#include "common/file.h"
#include "common/json_out.h"
#include "common/limits.h"
#include "symbolizer/extract_find.h"

#define NAME "symbolize"
#define LINE_MAX_BYTES 256   /* of stdin: an address and spaces */
#define BATCH_MAX 65536      /* addresses asked for at once */
#define INPUT_BYTES MiB(1)
#define OUTPUT_BYTES MiB(1)  /* gathered before it is written */

struct symbolize {
        struct service_options service;
        const char *file, *build_id, *format_name, *debug_directory;
        bool verbose, no_cache;
        struct symbolize_profile profile;
        enum answer_format format;
        struct answer_source source;
        bool is_described; /* the source has, and what goes in front of the answers is out */
        struct buf out;
        struct json_out json; /* into out */
        enum status failed;   /* to write */
        struct error failure;
        char *input;
        uint64_t *batch;
        size_t batch_count;
};

static const struct usage usage = {
        .synopsis = "cairn symbolize -e FILE [OPTION]... [ADDRESS]...\n"
                    "       cairn symbolize --server URL --build-id ID [OPTION]... [ADDRESS]...\n"
                    "       cairn symbolize --pprof|--perf-script|--folded FILE [-o FILE] [OPTION]...",
        .about = "Print function, file and line of each address, with all inlined calls, innermost first.\n"
                 "Addresses are the object's own, hexadecimal with or without 0x, from the arguments or one\n"
                 "per line from standard input. Or put names into a profile: its objects are found by their\n"
                 "build-ids and paths.",
        .examples = "  cairn symbolize -e /usr/bin/python3.11 0x1f2a40\n"
                    "  cairn symbolize -e ./server --format=json <addresses.txt\n"
                    "  cairn symbolize --pprof cpu.pb.gz --debug-dir ./debug -o named.pb.gz\n"
                    "  perf script --show-mmap-events | cairn symbolize --perf-script - --format=folded",
};

static void write_out(struct symbolize *s)
{
        if (!s->failed)
                s->failed = buf_status(&s->out, &s->failure, "output");
        if (!s->failed && s->out.size)
                s->failed = file_write_all(STDOUT_FILENO, s->out.data, s->out.size, "standard output", &s->failure);
        buf_clear(&s->out);
}

static void describe(struct symbolize *s)
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

static void give(void *context, const struct answer *a)
{
        struct symbolize *s = context;

        describe(s);
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
                write_out(s);
}

static enum status ask(struct symbolize *s, struct error *err)
{
        enum status st = s->source.ask(s->source.context, s->batch, s->batch_count, give, s, err);

        s->batch_count = 0;
        if (!st && s->failed) {
                *err = s->failure;
                st = s->failed;
        }
        return st;
}

static enum status flush_batch(struct symbolize *s, struct error *err)
{
        return s->batch_count ? ask(s, err) : ST_OK;
}

static enum status add_address(struct symbolize *s, uint64_t address, struct error *err)
{
        s->batch[s->batch_count++] = address;
        return s->batch_count == BATCH_MAX ? flush_batch(s, err) : ST_OK;
}

/* Something that is no address is answered like an unknown one, so that answers still pair up with lines. */
static enum status add_line(struct symbolize *s, char *line, bool *bad, struct error *err)
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
        return add_address(s, address, err);
}

/* Whether there is more to read at once. */
static bool more_waits(void)
{
        struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };

        return poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN);
}

/* @return the end of a plain address, NULL when it needs a closer look. */
static char *parse_plain(char *at, uint64_t *ret)
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

/* The lines of [text, end), which ends with a line. */
static enum status add_lines(struct symbolize *s, char *text, char *end, bool *bad, struct error *err)
{
        enum status st = ST_OK;

        while (!st && text < end) {
                uint64_t address;
                char *newline = parse_plain(text, &address);

                if (newline) {
                        st = add_address(s, address, err);
                } else {
                        newline = memchr(text, '\n', (size_t)(end - text));
                        *newline = 0;
                        st = add_line(s, text, bad, err);
                }
                text = newline + 1;
        }
        return st;
}

/*
 * Whoever writes one address and waits for its answer gets it: everything read
 * so far is answered before the next read may wait.
 */
static enum status read_stdin(struct symbolize *s, bool *bad, struct error *err)
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
                        st = add_lines(s, text, newline + 1, bad, err);
                        if (st)
                                return st;
                        have -= (size_t)(newline + 1 - text);
                        memmove(text, newline + 1, have);
                }
                if (have > LINE_MAX_BYTES)
                        return error_set(err, ST_USAGE, "a line of standard input is too long for an address");
                if (more_waits())
                        continue;
                st = flush_batch(s, err);
                if (st)
                        return st;
                write_out(s);
        }
        if (have) { /* a last line without its newline */
                text[have] = 0;
                st = add_line(s, text, bad, err);
                if (st)
                        return st;
        }
        return flush_batch(s, err);
}

static enum status read_arguments(struct symbolize *s, int argc, char **argv, struct error *err)
{
        enum status st = ST_OK;

        for (int i = 0; !st && i < argc; i++) {
                uint64_t address;

                if (!parse_hex(argv[i], &address))
                        return error_set(err, ST_USAGE, "'%s' is not a hexadecimal address", argv[i]);
                st = add_address(s, address, err);
        }
        return st ? st : flush_batch(s, err);
}

static enum status parse_profile(struct symbolize *s, int argc, struct error *err)
{
        struct symbolize_profile *p = &s->profile;

        if (!!p->pprof + !!p->perf_script + !!p->folded > 1)
                return error_set(err, ST_USAGE, "--pprof, --perf-script and --folded exclude each other");
        if (argc || s->build_id)
                return error_set(err, ST_USAGE, "a profile names addresses and build-ids itself");
        p->fold = s->format_name && strcmp(s->format_name, "folded") == 0;
        if (s->format_name && !(p->perf_script && (p->fold || strcmp(s->format_name, "perf") == 0)))
                return error_set(err, ST_USAGE, "a profile keeps its form; only --perf-script takes --format=folded");
        p->verbose = s->verbose;
        p->objects = (struct object_finder_options){ .file = s->file, .debug_directory = s->debug_directory,
                                                     .service = s->service };
        return ST_OK;
}

static bool is_profile(const struct symbolize *s)
{
        return s->profile.pprof || s->profile.perf_script || s->profile.folded;
}

static enum status parse(struct symbolize *s, int *argc, char ***argv, struct error *err)
{
        const struct option_spec specs[] = {
                OPTION_STRING("exe", 'e', "FILE", &s->file, "the ELF file; its debug file is found by itself"),
                OPTION_STRING("server", 0, "URL", &s->service.server, "ask a service instead of reading a file"),
                OPTION_STRING("build-id", 0, "ID", &s->build_id, "the object to ask the service for"),
                SERVICE_OPTIONS(&s->service),
                OPTION_STRING("format", 0, "FORMAT", &s->format_name, "addr2line (default), llvm or json; of --perf-script: perf (default) or folded"),
                OPTION_STRING("pprof", 0, "FILE", &s->profile.pprof, "name the locations of a pprof file"),
                OPTION_STRING("perf-script", 0, "FILE", &s->profile.perf_script, "name the frames of perf script's text"),
                OPTION_STRING("folded", 0, "FILE", &s->profile.folded, "name the addresses in folded stacks"),
                OPTION_STRING("output", 'o', "FILE", &s->profile.output, "where the profile goes (standard output)"),
                OPTION_FLAG("force", 0, &s->profile.force, "also what the profile has names for"),
                OPTION_STRING("debug-dir", 0, "DIR", &s->debug_directory, "where debug files are (" DEBUG_DIRECTORY ")"),
                OPTION_FLAG("no-cache", 0, &s->no_cache, "neither use nor keep what was read of the file"),
                OPTION_FLAG("verbose", 'v', &s->verbose, "say on stderr what was read, and why an address is unknown"),
                OPTION_END,
        };
        enum status st = options_parse(&usage, specs, argc, argv, err);

        if (st)
                return st;
        if (is_profile(s))
                return parse_profile(s, *argc, err);
        if (!s->format_name || strcmp(s->format_name, "addr2line") == 0)
                s->format = FORMAT_ADDR2LINE;
        else if (strcmp(s->format_name, "llvm") == 0)
                s->format = FORMAT_LLVM;
        else if (strcmp(s->format_name, "json") == 0)
                s->format = FORMAT_JSON;
        else
                return error_set(err, ST_USAGE, "unknown format '%s': addr2line, llvm or json", s->format_name);
        if (s->file ? s->service.server || s->build_id : !s->service.server || !s->build_id)
                return error_set(err, ST_USAGE, "name either a file (-e FILE) or --server URL and --build-id ID");
        return ST_OK;
}

static enum status open_source(struct symbolize *s, struct error *err)
{
        if (s->file)
                return answer_source_file(s->file, s->debug_directory, !s->no_cache, &s->source, err);
        return answer_source_server(&s->service, s->build_id, &s->source, err);
}

static enum status answer_all(struct symbolize *s, int argc, char **argv, bool *bad, struct error *err)
{
        enum status st = argc ? read_arguments(s, argc, argv, err) : read_stdin(s, bad, err);

        if (!st && !s->is_described && s->source.describe)
                st = ask(s, err); /* for no address: what there is to say of the file */
        if (st)
                return st;
        describe(s);
        if (s->format == FORMAT_JSON) {
                json_out_array_end(&s->json);
                json_out_object_end(&s->json);
                buf_append_u8(&s->out, '\n');
        }
        write_out(s);
        if (s->failed)
                *err = s->failure;
        return s->failed;
}

int command_symbolize(int argc, char **argv)
{
        struct symbolize s = { .debug_directory = DEBUG_DIRECTORY };
        struct error err;
        bool bad = false;
        enum status st = parse(&s, &argc, &argv, &err);

        if (!st && is_profile(&s)) {
                st = symbolize_profile(&s.profile, &err);
                return st ? command_fail(NAME, st, &err) : EXIT_DONE;
        }
        buf_init(&s.out, MiB(64));
        json_out_init(&s.json, &s.out);
        if (!st)
                st = open_source(&s, &err);
        if (!st) {
                s.batch = calloc(BATCH_MAX, sizeof *s.batch);
                s.input = malloc(INPUT_BYTES + 1);
                st = s.batch && s.input ? answer_all(&s, argc, argv, &bad, &err) : error_no_memory(&err);
                s.source.close(s.source.context);
        }
        free(s.batch);
        free(s.input);
        buf_deinit(&s.out);
        if (st)
                return command_fail(NAME, st, &err);
        return bad ? EXIT_USAGE : EXIT_DONE;
}
