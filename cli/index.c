/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/index.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "common/file.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "symbolizer/extract_find.h"

#define NAME "index"

static const struct usage usage = {
        .synopsis = "cairn index [OPTION]... FILE|DIRECTORY...\n"
                    "       cairn index stat [OPTION]... FILE|BUILD-ID\n"
                    "       cairn index dump [OPTION]... FILE|BUILD-ID\n"
                    "       cairn index verify [OPTION]...",
        .about = "Put the symbols of ELF files into the index of a data directory, say what the index has\n"
                 "of one object, print all of that, or check all of the index. Debug files that belong to a\n"
                 "FILE are found by themselves; in a DIRECTORY every ELF file with a build-id is taken.\n"
                 "While a service has the directory open, hand it files with cairn-upload instead.",
        .examples = "  cairn index --data ./cairn-data /usr/bin/python3.11\n"
                    "  cairn index --data ./cairn-data /usr/lib/debug/.build-id\n"
                    "  cairn index stat --json /usr/bin/python3.11",
};

int index_fail(enum status st, const struct error *err)
{
        return command_fail(NAME, st, err);
}

enum status index_print(struct index_command *c, struct error *err)
{
        enum status st = buf_status(&c->text, err, "what is to be printed");

        if (!st && (fwrite(c->text.data, 1, c->text.size, stdout) != c->text.size || fflush(stdout)))
                st = error_os(err, errno, "cannot write to standard output");
        buf_clear(&c->text);
        return st;
}

enum status index_argument(const char *text, struct build_id *ret, struct error *err)
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

enum status index_object_known(struct index_command *c, const struct build_id *id, struct symbol_object *ret,
                               struct error *err)
{
        char hex[BUILD_ID_HEX_MAX];
        struct symbol_object object;
        struct symbol_view *view;
        enum status st = symbol_view_begin(c->index, &view, err);

        if (st)
                return st;
        st = symbol_view_object(view, id, &object, err);
        symbol_view_end(view);
        if (!st && object.state == OBJECT_ABSENT)
                st = error_set(err, ST_NOT_FOUND, "the index has nothing of %s; index or upload its file",
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

static enum status parse(struct index_command *c, int *argc, char ***argv, struct error *err)
{
        const struct option_spec specs[] = {
                OPTION_STRING("data", 0, "DIR", &c->data, "data directory (./cairn-data)"),
                OPTION_STRING("debug-dir", 0, "DIR", &c->debug_directory, "where debug files are (" DEBUG_DIRECTORY ")"),
                OPTION_FLAG("json", 0, &c->json, "print JSON, an object a line"),
                OPTION_END,
        };
        enum status st = options_parse(&usage, specs, argc, argv, err);

        if (!st && *argc == 0)
                st = error_set(err, ST_USAGE, "name a file to index, or stat or dump and an object, or verify");
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

struct subcommand {
        const char *name;
        int (*run)(struct index_command *c, int argc, char **argv);
        int arguments;
        const char *takes;
};

/* NULL: the arguments are files to index. */
static const struct subcommand *subcommand_of(const char *name)
{
        static const struct subcommand subcommands[] = {
                { "stat", index_stat, 1, "one file or build-id" },
                { "dump", index_dump, 1, "one file or build-id" },
                { "verify", index_verify, 0, "no file" },
        };

        for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++)
                if (strcmp(name, subcommands[i].name) == 0)
                        return &subcommands[i];
        return NULL;
}

int command_index(int argc, char **argv)
{
        struct index_command c = { .data = "./cairn-data", .debug_directory = DEBUG_DIRECTORY };
        const struct subcommand *sub;
        struct error err;
        enum status st = parse(&c, &argc, &argv, &err);
        int code;

        if (st)
                return index_fail(st, &err);
        sub = subcommand_of(argv[0]);
        if (sub && argc != 1 + sub->arguments)
                st = error_set(&err, ST_USAGE, "%s takes %s", sub->name, sub->takes);
        if (!st)
                st = open_index(&c, sub != NULL, &err);
        if (st)
                return index_fail(st, &err);
        buf_init(&c.text, MiB(256));
        json_out_init(&c.out, &c.text);
        code = sub ? sub->run(&c, argc - 1, argv + 1) : index_add(&c, argc, argv);
        buf_deinit(&c.text);
        symbol_index_close(c.index);
        return code;
}
