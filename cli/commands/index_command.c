/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subcommand is a row of `verbs` (options, help) and of `runs` (function, arguments); the one without a name adds
 * files and is in index_add.c. command_index() parses the options, opens the index, for writing only if files are
 * added, and runs the subcommand, which returns an exit code.
 *
 * Output is collected in c->text, as text or by c->out as JSON, and printed by index_print(). dump prints in pieces of
 * PIECE_BYTES, each read in its own transaction, so a slow consumer of the output keeps no old pages of the index in
 * use.
 *
 * Order: helpers shared with index_add.c, stat, dump, verify, the command.
 */
#include "cli/commands/index_command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/command.h"
#include "cli/symbols/named_file.h"
#include "common/files/data_format.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "elf-image/elf_image.h"
#include "symbol-index/range_walk.h"
#include "symbolizer/extraction/debug_file_search.h"

#define NAME "index"

static const struct usage usage = {
        .synopsis = "cairn index [OPTION]... FILE|DIRECTORY...",
        .about = "Add the symbols of ELF files to the index of a data directory (every ELF file with a build-id in a\n"
                 "DIRECTORY), or show what is in the index. The debug file of a FILE is found automatically, also on\n"
                 "the servers in DEBUGINFOD_URLS, if it is set. While a service has the directory open, upload files\n"
                 "with cairn-upload instead.",
        .examples = "  cairn index --data ./cairn-data /usr/bin/python3.11\n"
                    "  cairn index --data ./cairn-data /usr/lib/debug/.build-id\n"
                    "  cairn index stat --json /usr/bin/python3.11",
};

static const struct usage stat_usage = {
        .synopsis = "cairn index stat FILE|BUILD-ID [--data DIR] [--json]",
        .about = "Print the statistics of one object in the index.",
        .examples = "  cairn index stat --json /usr/bin/python3.11",
};

static const struct usage dump_usage = {
        .synopsis = "cairn index dump FILE|BUILD-ID [--data DIR] [--json]",
        .about = "Print the ranges and frames of one object in the index.",
};

static const struct usage verify_usage = {
        .synopsis = "cairn index verify [--data DIR] [--json]",
        .about = "Check the whole index.",
};

int index_report_failure(enum status st, const struct error *err)
{
        return command_fail(NAME, st, err);
}

enum status index_print(struct index_command *c, struct error *err)
{
        enum status st = buf_status(&c->text, err, "the output");

        if (!st && (fwrite(c->text.data, 1, c->text.size, stdout) != c->text.size || fflush(stdout))) {
                st = error_os(err, errno, "cannot write standard output");
                clearerr(stdout); /* reported here, to end a long dump early */
        }
        buf_clear(&c->text);
        return st;
}

/* The build-id given as text, or of the file with that path. ST_USAGE when it is neither. */
static enum status index_parse_object(const char *text, struct build_id *ret, struct error *err)
{
        _cleanup_close_ int fd = -1;
        struct elf_image image;
        enum status st;

        if (access(text, F_OK) != 0) {
                if (build_id_from_hex(ret, text, strlen(text)))
                        return ST_OK;
                return error_set(err, ST_USAGE, "'%s' is neither a file nor a build-id", text);
        }
        st = named_file_open(text, &fd, err);
        if (!st)
                st = elf_image_from_fd(fd, text, &image, err);
        if (st)
                return st;
        *ret = image.build_id;
        elf_image_close(&image);
        return ret->size ? ST_OK : error_set(err, ST_BAD_DATA, "'%s' has no build-id", text);
}

enum status index_find_object(struct index_command *c, const struct build_id *id, struct symbol_object *ret,
                              struct error *err)
{
        char hex[BUILD_ID_HEX_MAX];
        struct symbol_object object;
        struct symbol_view *view;
        enum status st = symbol_view_begin(c->index, &view, err);

        if (st)
                return st;
        st = symbol_view_get_object(view, id, &object, err);
        symbol_view_end(view);
        if (!st && object.state == OBJECT_ABSENT)
                st = error_set(err, ST_NOT_FOUND, "the index does not have %s; index or upload its file",
                               build_id_hex(id, hex));
        if (!st)
                *ret = object;
        return st;
}

void index_write_members(struct index_command *c, const struct build_id *id, const struct symbol_object *o)
{
        char hex[BUILD_ID_HEX_MAX];

        json_out_str(&c->out, "build_id", build_id_hex(id, hex));
        json_out_str(&c->out, "state", symbol_object_state_name(o->state));
        if (o->reason[0])
                json_out_str(&c->out, "reason", o->reason);
        json_out_str(&c->out, "quality", symbol_quality_name(o->quality));
        if (o->partial[0])
                json_out_str(&c->out, "partial", o->partial);
        json_out_uint(&c->out, "generation", o->generation);
        json_out_uint(&c->out, "ranges", o->range_count);
        json_out_uint(&c->out, "chains", o->chain_count);
        json_out_uint(&c->out, "functions", o->function_count);
        json_out_uint(&c->out, "files", o->file_count);
        json_out_uint(&c->out, "index_bytes", o->index_bytes);
        json_out_uint(&c->out, "block_bytes", o->block_bytes);
        json_out_uint(&c->out, "string_bytes", o->string_bytes);
        json_out_int(&c->out, "indexed_unix_s", o->indexed_unix_s);
}

/* ---- stat ---- */

/* Bytes by kind of all blocks of an object, shared ones included. */
static void write_stat_json(struct index_command *c, const struct build_id *id, const struct symbol_object *o,
                            const struct index_object_blocks *b)
{
        json_out_object(&c->out, NULL);
        index_write_members(c, id, o);
        json_out_object(&c->out, "blocks");
        json_out_uint(&c->out, "count", b->blocks);
        json_out_uint(&c->out, "shared", b->shared);
        json_out_uint(&c->out, "map_bytes", b->map_bytes);
        json_out_uint(&c->out, "start_bytes", b->sizes.starts);
        json_out_uint(&c->out, "run_bytes", b->sizes.runs);
        json_out_uint(&c->out, "line_bytes", b->sizes.lines);
        json_out_uint(&c->out, "scope_bytes", b->sizes.scopes);
        json_out_uint(&c->out, "node_bytes", b->sizes.nodes);
        json_out_uint(&c->out, "site_bytes", b->sizes.sites);
        json_out_uint(&c->out, "head_bytes", b->sizes.heads);
        json_out_object_end(&c->out);
        json_out_object_end(&c->out);
        buf_append_str(&c->text, "\n");
}

static void write_stat_text(struct index_command *c, const struct build_id *id, const struct symbol_object *o,
                            const struct index_object_blocks *b)
{
        char hex[BUILD_ID_HEX_MAX];

        buf_printf(&c->text, "build-id:    %s\nstate:       %s%s%s\nquality:     %s\ngeneration:  %" PRIu64 "\n",
                   build_id_hex(id, hex), symbol_object_state_name(o->state), o->reason[0] ? ": " : "", o->reason,
                   symbol_quality_name(o->quality), o->generation);
        if (o->partial[0])
                buf_printf(&c->text, "partial:     %s\n", o->partial);
        buf_printf(&c->text, "ranges:      %" PRIu64 "\nfunctions:   %" PRIu64 "\nfiles:       %" PRIu64 "\n",
                   o->range_count, o->function_count, o->file_count);
        buf_printf(&c->text, "index bytes: %" PRIu64 " (blocks %" PRIu64 ", strings %" PRIu64 ")\n", o->index_bytes,
                   o->block_bytes, o->string_bytes);
        buf_printf(&c->text,
                   "blocks:      %" PRIu64 ", %" PRIu64 " of them shared; maps %" PRIu64 " bytes\n"
                   "in blocks:   starts %" PRIu64 ", runs %" PRIu64 ", lines %" PRIu64 ", scopes %" PRIu64
                   ", nodes %" PRIu64 ", sites %" PRIu64 ", heads %" PRIu64 " bytes\n",
                   b->blocks, b->shared, b->map_bytes, b->sizes.starts, b->sizes.runs, b->sizes.lines, b->sizes.scopes,
                   b->sizes.nodes, b->sizes.sites, b->sizes.heads);
}

static int index_stat(struct index_command *c, int argc, char **argv)
{
        struct index_object_blocks blocks;
        struct symbol_object object;
        struct build_id id;
        struct error err;
        enum status st = index_parse_object(argv[0], &id, &err);

        (void)argc;
        if (!st)
                st = index_find_object(c, &id, &object, &err);
        if (!st)
                st = symbol_index_measure_blocks(c->index, &id, &blocks, &err);
        if (st)
                return index_report_failure(st, &err);
        if (c->json)
                write_stat_json(c, &id, &object, &blocks);
        else
                write_stat_text(c, &id, &object, &blocks);
        st = index_print(c, &err);
        return st ? index_report_failure(st, &err) : EXIT_DONE;
}

/* ---- dump ---- */

#define PIECE_BYTES KiB(256)

struct dump {
        struct index_command *c;
        struct symbol_view *view;
};

struct frame_texts {
        const char *function, *linkage_name, *file;
};

static enum status read_frame_texts(const struct dump *d, const struct symbol_frame *f, struct frame_texts *ret,
                                    struct error *err)
{
        enum status st = symbol_view_get_function(d->view, f->function, &ret->function, &ret->linkage_name, err);

        if (!st)
                st = symbol_view_get_file(d->view, f->file, &ret->file, err);
        if (!st && strcmp(ret->function, ret->linkage_name) == 0)
                ret->linkage_name = "";
        return st;
}

/* Names are untrusted: a tab or newline in one must not look like a field or line separator. */
static void append_dump_text(struct buf *b, const char *text)
{
        size_t first = b->size;

        buf_append_str(b, text);
        for (size_t i = first; i < b->size; i++)
                if (b->data[i] < ' ' || b->data[i] == 0x7f)
                        b->data[i] = '?';
}

static enum status write_range_text(struct dump *d, const struct walked_range *r, struct error *err)
{
        struct buf *b = &d->c->text;
        struct frame_texts texts;

        buf_printf(b, "0x%" PRIx64 "\t0x%" PRIx64 "\n", r->start, r->end);
        for (uint32_t i = 0; i < r->frame_count; i++) {
                enum status st = read_frame_texts(d, &r->frames[i], &texts, err);

                if (st)
                        return st;
                buf_append_u8(b, '\t');
                append_dump_text(b, texts.function);
                buf_append_u8(b, '\t');
                append_dump_text(b, texts.linkage_name);
                buf_append_u8(b, '\t');
                append_dump_text(b, texts.file);
                buf_printf(b, "\t%" PRIu32 "%s\n", r->frames[i].line, r->frames[i].inlined ? "\tinlined" : "");
        }
        return ST_OK;
}

static void write_address_json(struct json_out *out, const char *key, uint64_t address)
{
        char text[24];

        snprintf(text, sizeof text, "0x%" PRIx64, address);
        json_out_str(out, key, text);
}

static enum status write_range_json(struct dump *d, const struct walked_range *r, struct error *err)
{
        struct json_out *out = &d->c->out;
        struct frame_texts texts;

        json_out_init(out, &d->c->text);
        json_out_object(out, NULL);
        write_address_json(out, "start", r->start);
        write_address_json(out, "end", r->end);
        json_out_array(out, "frames");
        for (uint32_t i = 0; i < r->frame_count; i++) {
                enum status st = read_frame_texts(d, &r->frames[i], &texts, err);

                if (st)
                        return st;
                json_out_object(out, NULL);
                json_out_str(out, "function", texts.function);
                json_out_str(out, "linkage_name", texts.linkage_name);
                json_out_str(out, "file", texts.file);
                json_out_uint(out, "line", r->frames[i].line);
                json_out_uint(out, "start_line", r->frames[i].start_line);
                json_out_bool(out, "inlined", r->frames[i].inlined);
                json_out_object_end(out);
        }
        json_out_array_end(out);
        json_out_object_end(out);
        buf_append_str(&d->c->text, "\n");
        return ST_OK;
}

static enum status write_dump_range(void *context, const struct walked_range *range, bool *pause, struct error *err)
{
        struct dump *d = context;
        enum status st = d->c->json ? write_range_json(d, range, err) : write_range_text(d, range, err);

        *pause = d->c->text.size >= PIECE_BYTES;
        return st;
}

static enum status dump_piece(struct dump *d, struct range_walk *walk, struct error *err)
{
        enum status st = symbol_view_begin(d->c->index, &d->view, err);

        if (st)
                return st;
        st = range_walk_continue(walk, d->view, write_dump_range, d, err);
        symbol_view_end(d->view);
        return st ? st : index_print(d->c, err);
}

static int index_dump(struct index_command *c, int argc, char **argv)
{
        struct dump d = { .c = c };
        struct symbol_object object;
        struct range_walk walk;
        struct build_id id;
        struct error err;
        enum status st = index_parse_object(argv[0], &id, &err);

        (void)argc;
        if (!st)
                st = index_find_object(c, &id, &object, &err);
        if (!st)
                st = range_walk_init(&walk, &id, &err);
        if (st)
                return index_report_failure(st, &err);
        while (!st && !walk.is_done)
                st = dump_piece(&d, &walk, &err);
        range_walk_deinit(&walk);
        return st ? index_report_failure(st, &err) : EXIT_DONE;
}

/* ---- verify ---- */

static void write_index_problem(void *context, const char *text)
{
        struct index_command *c = context;

        if (c->json)
                json_out_str(&c->out, NULL, text);
        else
                buf_printf(&c->text, "%s\n", text);
}

static void write_verify_totals(struct index_command *c, const struct index_verify *v)
{
        if (!c->json) {
                buf_printf(&c->text, "%s, %s, %s (%" PRIu64 " shared), %s: %s\n",
                           COUNTED(v->objects, "object", "objects"), COUNTED(v->map_pages, "map page", "map pages"),
                           COUNTED(v->blocks, "block", "blocks"), v->shared_blocks,
                           COUNTED(v->string_pages, "page of strings", "pages of strings"),
                           COUNTED(v->problems, "problem", "problems"));
                return;
        }
        json_out_array_end(&c->out);
        json_out_uint(&c->out, "objects", v->objects);
        json_out_uint(&c->out, "map_pages", v->map_pages);
        json_out_uint(&c->out, "blocks", v->blocks);
        json_out_uint(&c->out, "shared_blocks", v->shared_blocks);
        json_out_uint(&c->out, "string_pages", v->string_pages);
        json_out_object_end(&c->out);
        buf_append_str(&c->text, "\n");
}

static int index_verify(struct index_command *c, int argc, char **argv)
{
        struct index_verify v = { .problem = write_index_problem, .context = c };
        struct error err;
        enum status st;

        (void)argc;
        (void)argv;
        if (c->json) {
                json_out_object(&c->out, NULL);
                json_out_array(&c->out, "problems");
        }
        st = symbol_index_verify(c->index, &v, &err);
        if (!st) {
                write_verify_totals(c, &v);
                st = index_print(c, &err);
        }
        if (!st && v.problems)
                st = error_set(&err, ST_BAD_DATA,
                               "the index has %s; index the files again, or delete it; cairn serve then rebuilds it",
                               COUNTED(v.problems, "problem", "problems"));
        return st ? index_report_failure(st, &err) : EXIT_DONE;
}

/* ---- the command ---- */

enum { VERB_ADD, VERB_STAT, VERB_DUMP, VERB_VERIFY, VERB_COUNT };

static const struct option_verb verbs[VERB_COUNT] = {
        [VERB_ADD] = { "", "data tenant debug-dir no-debuginfod json", "", &usage },
        [VERB_STAT] = { "stat", "data tenant json", "the statistics of one object", &stat_usage },
        [VERB_DUMP] = { "dump", "data tenant json", "the ranges and frames of one object", &dump_usage },
        [VERB_VERIFY] = { "verify", "data tenant json", "check the whole index", &verify_usage },
};

static const struct {
        int (*run)(struct index_command *c, int argc, char **argv);
        int arguments;
        const char *takes;
} runs[VERB_COUNT] = {
        [VERB_ADD] = { index_add, -1, NULL },
        [VERB_STAT] = { index_stat, 1, "one file or build-id" },
        [VERB_DUMP] = { index_dump, 1, "one file or build-id" },
        [VERB_VERIFY] = { index_verify, 0, "no file" },
};

static enum status parse_index_options(struct index_command *c, int *argc, char ***argv, size_t *verb_ret,
                                       struct error *err)
{
        static const struct option_verbs all = {
                .command = "cairn index", .usage = &usage, .items = verbs, .count = VERB_COUNT
        };
        const struct option_spec specs[] = {
                OPTION_STRING("data", 0, "DIR", &c->data, "data directory (default ./cairn-data)"),
                OPTION_STRING("tenant", 0, "NAME", &c->service.tenant,
                              "index of this tenant's own debuginfo (default: the index that tenants share)"),
                DEBUG_FILES_OPTIONS(&c->debug_files),
                OPTION_FLAG("json", 0, &c->json, "print JSON, one object per line"),
                OPTION_END,
        };
        const struct option_verb *verb;
        size_t v;
        enum status st = options_parse_verb(&all, specs, argc, argv, &verb, err);

        if (st)
                return st;
        v = (size_t)(verb - verbs);
        if (v == VERB_ADD && *argc == 0)
                return error_set(err, ST_USAGE, "expected files to index, stat or dump with one object, or verify");
        if (v != VERB_ADD && *argc != runs[v].arguments)
                return error_set(err, ST_USAGE, "%s takes %s", verb->name, runs[v].takes);
        *verb_ret = v;
        return ST_OK;
}

static enum status open_data_index(struct index_command *c, bool read_only, struct error *err)
{
        _cleanup_free_ char *base = NULL, *dir = NULL;
        enum status st = service_own_debuginfo_path(&c->service, c->data, &base, err);

        if (!st && !read_only)
                st = file_make_dirs(c->data, err);
        if (!st && !read_only)
                st = data_format_write(c->data, err);
        if (st)
                return st;
        dir = path_join(base, "index");
        st = dir ? symbol_index_open(dir, read_only, &c->index, err) : error_no_memory(err);
        if (st == ST_BUSY && !read_only)
                return error_set(err, st, "a service has '%s' open; upload files with cairn-upload", c->data);
        return st;
}

int command_index(int argc, char **argv)
{
        struct index_command c = { .data = "./cairn-data", .debug_files = { .directory = DEBUG_DIRECTORY } };
        struct error err;
        size_t verb = VERB_ADD;
        enum status st = parse_index_options(&c, &argc, &argv, &verb, &err);
        int code;

        if (!st)
                st = open_data_index(&c, verb != VERB_ADD, &err);
        if (st)
                return index_report_failure(st, &err);
        buf_init(&c.text, MiB(256));
        json_out_init(&c.out, &c.text);
        code = runs[verb].run(&c, argc, argv);
        buf_deinit(&c.text);
        symbol_index_close(c.index);
        return code;
}
