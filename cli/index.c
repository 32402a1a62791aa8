/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json_out.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "symbolizer/extract_find.h"
#include "symbolizer/extract_worker.h"
#include "symbolizer/index_load.h"
#include "symbolizer/index_verify.h"

#define NAME "index"

struct index_command {
        const char *data, *debug_directory;
        bool json;
        struct symbol_index *index;
        struct buf text;
        struct json_out out;
};

static const struct usage usage = {
        .synopsis = "cairn index [OPTION]... FILE...\n"
                    "       cairn index stat [OPTION]... FILE|BUILD-ID\n"
                    "       cairn index verify [OPTION]...",
        .about = "Put the symbols of ELF files into the index of a data directory, say what the index has\n"
                 "of one object, or check all of it. Debug files that belong to a FILE are found by themselves.\n"
                 "While a service has the directory open, hand it files with cairn-upload instead.",
        .examples = "  cairn index --data ./cairn-data /usr/bin/python3.11\n"
                    "  cairn index stat --json /usr/bin/python3.11",
};

static enum status object_of(struct symbol_index *index, const struct build_id *id, struct symbol_object *ret,
                             struct error *err)
{
        struct symbol_view *view;
        enum status st = symbol_view_begin(index, &view, err);

        if (st)
                return st;
        st = symbol_view_object(view, id, ret, err);
        symbol_view_end(view);
        return st;
}

/* Bytes of an object's blocks by kind; blocks shared with others are counted too. */
static void write_json_blocks(struct index_command *c, const struct index_object_blocks *b)
{
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
}

static void write_json(struct index_command *c, const char *file, const struct build_id *id,
                       const struct symbol_object *o, const struct index_object_blocks *b)
{
        char hex[BUILD_ID_HEX_MAX];

        json_out_object(&c->out, NULL);
        if (file)
                json_out_str(&c->out, "file", file);
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
        if (b)
                write_json_blocks(c, b);
        json_out_object_end(&c->out);
}

static void write_text(struct index_command *c, const struct build_id *id, const struct symbol_object *o,
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

static enum status index_file(struct index_command *c, const char *path, struct error *err)
{
        struct symbol_table table = { 0 };
        struct extract_inputs in;
        struct symbol_object object;
        int64_t begin = monotonic_ns();
        uint64_t generation;
        bool replaced;
        enum status st = extract_inputs_find(path, c->debug_directory, &in, err);

        if (st)
                return st;
        st = symbol_table_extract_confined(&in, NULL, &table, err);
        extract_inputs_close(&in);
        if (!st && table.build_id.size == 0)
                st = error_set(err, ST_BAD_DATA, "cannot index '%s': it has no build-id; link it with --build-id", path);
        if (!st)
                st = symbol_index_load(c->index, &table, &replaced, &generation, err);
        if (!st)
                st = object_of(c->index, &table.build_id, &object, err);
        if (!st && c->json) {
                write_json(c, path, &table.build_id, &object, NULL);
        } else if (!st) {
                char hex[BUILD_ID_HEX_MAX];

                buf_printf(&c->text,
                           replaced ? "%s: %s: %" PRIu64 " ranges, %" PRIu64 " functions, %" PRIu64
                                      " files from %s, %" PRIu64 " bytes in the index, %" PRId64 " ms\n"
                                    : "%s: %s: kept the %" PRIu64 " ranges, %" PRIu64 " functions, %" PRIu64
                                      " files from %s, which are better (%" PRIu64 " bytes, %" PRId64 " ms)\n",
                           path, build_id_hex(&table.build_id, hex), object.range_count, object.function_count,
                           object.file_count, symbol_quality_name(object.quality), object.index_bytes,
                           (monotonic_ns() - begin) / 1000000);
                if (object.partial[0])
                        buf_printf(&c->text, "%s: partial: %s\n", path, object.partial);
        }
        symbol_table_deinit(&table);
        return st;
}

static void print(struct index_command *c)
{
        fwrite(c->text.data, 1, c->text.size, stdout);
        buf_clear(&c->text);
        fflush(stdout);
}

/* Each file on its own: a bad one is told and does not keep the others out. */
static int index_files(struct index_command *c, int argc, char **argv)
{
        int code = EXIT_DONE;

        if (c->json)
                json_out_array(&c->out, NULL);
        for (int i = 0; i < argc; i++) {
                struct error err;
                enum status st = index_file(c, argv[i], &err);

                print(c);
                if (st && code == EXIT_DONE)
                        code = exit_code_of(st);
                if (st)
                        command_fail(NAME, st, &err);
        }
        if (c->json) {
                json_out_array_end(&c->out);
                buf_append_str(&c->text, "\n");
                print(c);
        }
        return code;
}

/* A file's build-id when there is such a file, else the argument itself. */
static enum status parse_object(const char *text, struct build_id *ret, struct error *err)
{
        struct elf_image image;
        enum status st;

        if (access(text, F_OK) != 0) {
                if (build_id_from_hex(ret, text, strlen(text)))
                        return ST_OK;
                return error_set(err, ST_USAGE, "'%s' is neither a file nor a build-id", text);
        }
        st = elf_image_open(text, &image, err);
        if (st)
                return st;
        *ret = image.build_id;
        elf_image_close(&image);
        return ret->size ? ST_OK : error_set(err, ST_BAD_DATA, "'%s' has no build-id", text);
}

static enum status stat_object(struct index_command *c, const char *text, struct error *err)
{
        char hex[BUILD_ID_HEX_MAX];
        struct index_object_blocks blocks;
        struct symbol_object object;
        struct build_id id;
        enum status st = parse_object(text, &id, err);

        if (!st)
                st = object_of(c->index, &id, &object, err);
        if (st)
                return st;
        if (object.state == OBJECT_ABSENT)
                return error_set(err, ST_NOT_FOUND, "the index has nothing of %s; index or upload its file",
                                 build_id_hex(&id, hex));
        st = symbol_index_blocks(c->index, &id, &blocks, err);
        if (st)
                return st;
        if (c->json)
                write_json(c, NULL, &id, &object, &blocks);
        else
                write_text(c, &id, &object, &blocks);
        if (c->json)
                buf_append_str(&c->text, "\n");
        print(c);
        return ST_OK;
}

static void note_problem(void *context, const char *text)
{
        struct index_command *c = context;

        if (c->json)
                json_out_str(&c->out, NULL, text);
        else
                buf_printf(&c->text, "%s\n", text);
}

static enum status verify(struct index_command *c, struct error *err)
{
        struct index_verify v = { .problem = note_problem, .context = c };
        enum status st;

        if (c->json) {
                json_out_object(&c->out, NULL);
                json_out_array(&c->out, "problems");
        }
        st = symbol_index_verify(c->index, &v, err);
        if (st)
                return st;
        if (c->json) {
                json_out_array_end(&c->out);
                json_out_uint(&c->out, "objects", v.objects);
                json_out_uint(&c->out, "map_pages", v.map_pages);
                json_out_uint(&c->out, "blocks", v.blocks);
                json_out_uint(&c->out, "shared_blocks", v.shared_blocks);
                json_out_uint(&c->out, "string_pages", v.string_pages);
                json_out_object_end(&c->out);
                buf_append_str(&c->text, "\n");
        } else {
                buf_printf(&c->text,
                           "%" PRIu64 " objects, %" PRIu64 " map pages, %" PRIu64 " blocks (%" PRIu64 " shared), %" PRIu64
                           " pages of strings: %" PRIu64 " problems\n",
                           v.objects, v.map_pages, v.blocks, v.shared_blocks, v.string_pages, v.problems);
        }
        print(c);
        return v.problems ? error_set(err, ST_BAD_DATA, "the index has %" PRIu64 " problems; index the files again, or "
                                      "delete it and let cairn serve make it anew", v.problems)
                          : ST_OK;
}

static enum status parse(struct index_command *c, int *argc, char ***argv, struct error *err)
{
        const struct option_spec specs[] = {
                OPTION_STRING("data", 0, "DIR", &c->data, "data directory (./cairn-data)"),
                OPTION_STRING("debug-dir", 0, "DIR", &c->debug_directory, "where debug files are (" DEBUG_DIRECTORY ")"),
                OPTION_FLAG("json", 0, &c->json, "print JSON"),
                OPTION_END,
        };
        enum status st = options_parse(&usage, specs, argc, argv, err);

        if (!st && *argc == 0)
                st = error_set(err, ST_USAGE, "name a file to index, or stat and an object, or verify");
        return st;
}

static enum status open_index(struct index_command *c, bool read_only, struct error *err)
{
        _cleanup_free_ char *dir = path_join(c->data, "index");
        enum status st;

        if (!dir)
                return error_no_memory(err);
        st = symbol_index_open(dir, read_only, &c->index, err);
        if (st == ST_BUSY && !read_only)
                return error_set(err, st, "a service has '%s' open; hand it files with cairn-upload", c->data);
        return st;
}

int command_index(int argc, char **argv)
{
        struct index_command c = { .data = "./cairn-data", .debug_directory = DEBUG_DIRECTORY };
        struct error err;
        enum status st = parse(&c, &argc, &argv, &err);
        bool stat = !st && strcmp(argv[0], "stat") == 0, check = !st && strcmp(argv[0], "verify") == 0;
        int code = EXIT_DONE;

        if (stat && argc != 2)
                st = error_set(&err, ST_USAGE, "stat takes one file or build-id");
        if (check && argc != 1)
                st = error_set(&err, ST_USAGE, "verify takes no file");
        if (!st)
                st = open_index(&c, stat || check, &err);
        buf_init(&c.text, MiB(16));
        json_out_init(&c.out, &c.text);
        if (!st && stat)
                st = stat_object(&c, argv[1], &err);
        else if (!st && check)
                st = verify(&c, &err);
        else if (!st)
                code = index_files(&c, argc, argv);
        buf_deinit(&c.text);
        symbol_index_close(c.index);
        return st ? command_fail(NAME, st, &err) : code;
}
