/* SPDX-License-Identifier: Apache-2.0 */
/* cairn index FILE...: each file on its own; a bad one is told and does not keep the others out. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/index.h"
#include "cli/index_inputs.h"
#include "cli/index_progress.h"
#include "common/clock.h"
#include "symbolizer/extract_find.h"
#include "symbolizer/extract_worker.h"
#include "symbolizer/index_load.h"

struct adder {
        struct index_command *c;
        struct index_progress progress;
        uint64_t added, kept, failed;
        int code;       /* of the first failure */
};

struct added {
        const char *path;
        struct build_id id;
        struct symbol_object object;
        bool replaced;  /* else the index had better symbols */
        uint64_t file_bytes;
        int64_t ms;
};

static uint64_t size_of(int fd)
{
        struct stat s;

        return fd >= 0 && fstat(fd, &s) == 0 ? (uint64_t)s.st_size : 0;
}

static enum status add_file(struct index_command *c, const char *path, struct added *ret, struct error *err)
{
        struct symbol_table table = { 0 };
        struct extract_inputs in;
        int64_t begin = monotonic_ns();
        uint64_t generation;
        enum status st = extract_inputs_find(path, c->debug_directory, &in, err);

        if (st)
                return st;
        ret->path = path;
        ret->file_bytes = size_of(in.debuginfo_fd) + size_of(in.executable_fd);
        st = symbol_table_extract_confined(&in, NULL, &table, err);
        extract_inputs_close(&in);
        if (!st && table.build_id.size == 0)
                st = error_set(err, ST_BAD_DATA, "cannot index '%s': it has no build-id; link it with --build-id", path);
        if (!st)
                st = symbol_index_load(c->index, &table, &ret->replaced, &generation, err);
        ret->id = table.build_id;
        if (!st)
                st = index_object_known(c, &ret->id, &ret->object, err);
        ret->ms = (monotonic_ns() - begin) / 1000000;
        symbol_table_deinit(&table);
        return st;
}

static void write_json(struct index_command *c, const struct added *a)
{
        json_out_init(&c->out, &c->text);
        json_out_object(&c->out, NULL);
        json_out_str(&c->out, "file", a->path);
        json_out_bool(&c->out, "replaced", a->replaced);
        json_out_uint(&c->out, "file_bytes", a->file_bytes);
        json_out_int(&c->out, "ms", a->ms);
        index_write_members(c, &a->id, &a->object);
        json_out_object_end(&c->out);
        buf_append_str(&c->text, "\n");
}

static void write_json_failure(struct index_command *c, const char *path, const struct error *reason)
{
        json_out_init(&c->out, &c->text);
        json_out_object(&c->out, NULL);
        json_out_str(&c->out, "file", path);
        json_out_str(&c->out, "error", reason->text);
        json_out_object_end(&c->out);
        buf_append_str(&c->text, "\n");
}

static void write_line(struct index_command *c, const struct added *a)
{
        const struct symbol_object *o = &a->object;
        char hex[BUILD_ID_HEX_MAX];

        buf_printf(&c->text, "%s: %s: %s%" PRIu64 " ranges, %" PRIu64 " functions, %" PRIu64 " files from %s", a->path,
                   build_id_hex(&a->id, hex), a->replaced ? "" : "kept the ", o->range_count, o->function_count,
                   o->file_count, symbol_quality_name(o->quality));
        buf_printf(&c->text, a->replaced ? ", %" PRIu64 " bytes in the index, %" PRId64 " ms\n"
                                         : ", which are better (%" PRIu64 " bytes, %" PRId64 " ms)\n",
                   o->index_bytes, a->ms);
}

/* What stands on a terminal next to the progress: only what somebody may want to act on. */
static void write_added(struct adder *a, const struct added *f)
{
        if (a->c->json)
                write_json(a->c, f);
        else if (!a->progress.is_terminal)
                write_line(a->c, f);
        if (!a->c->json && f->object.partial[0])
                buf_printf(&a->c->text, "%s: partial: %s\n", f->path, f->object.partial);
}

static void fail(struct adder *a, enum status st, const struct error *reason)
{
        int code;

        index_progress_hide(&a->progress);
        code = index_fail(st, reason);
        a->failed++;
        if (a->code == EXIT_DONE)
                a->code = code;
}

/* False when standard output takes no more. */
static bool print(struct adder *a)
{
        struct error err;
        enum status st;

        if (a->c->text.size == 0)
                return true;
        index_progress_hide(&a->progress);
        st = index_print(a->c, &err);
        if (st)
                fail(a, st, &err);
        return !st;
}

static bool add_one(struct adder *a, const char *path)
{
        struct added f = { 0 };
        struct error err;
        enum status st;

        index_progress_show(&a->progress, path);
        st = add_file(a->c, path, &f, &err);
        index_progress_done(&a->progress, f.file_bytes);
        if (st) {
                fail(a, st, &err);
                if (a->c->json)
                        write_json_failure(a->c, path, &err);
        } else {
                a->added += f.replaced;
                a->kept += !f.replaced;
                write_added(a, &f);
        }
        return print(a);
}

static void write_sums(struct adder *a)
{
        buf_printf(&a->c->text,
                   "%" PRIu64 " files: %" PRIu64 " indexed, %" PRIu64 " kept as they were, %" PRIu64 " failed; %.1f MB, "
                   "%.1f MB/s\n",
                   a->progress.done, a->added, a->kept, a->failed, (double)a->progress.bytes / 1e6,
                   index_progress_rate(&a->progress));
}

int index_add(struct index_command *c, int argc, char **argv)
{
        struct adder a = { .c = c, .code = EXIT_DONE };
        struct index_inputs in = { 0 };
        struct error err;
        bool more = true;

        for (int i = 0; i < argc; i++) {
                enum status st = index_inputs_add(&in, argv[i], &err);

                if (st)
                        fail(&a, st, &err);
        }
        index_progress_init(&a.progress, in.count, !c->json && isatty(STDOUT_FILENO));
        for (size_t i = 0; more && i < in.count; i++)
                more = add_one(&a, in.paths[i]);
        if (more && !c->json && (a.progress.is_terminal || in.count > 1)) {
                write_sums(&a);
                print(&a);
        }
        index_inputs_deinit(&in);
        return a.code;
}
