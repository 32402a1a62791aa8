/* SPDX-License-Identifier: Apache-2.0 */
/* cairn index FILE...: a file that cannot be indexed is reported; the others are indexed. */
#include "cli/commands/index_command.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/symbols/named_file.h"
#include "cli/symbols/object_directory.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/memory/array.h"
#include "common/text/number_text.h"
#include "symbol-index/index_load.h"
#include "symbolizer/extraction/debug_file_search.h"
#include "symbolizer/workers/extract_worker.h"

struct index_inputs {
        char **paths; /* owned */
        size_t count, capacity;
};

struct index_progress {
        uint64_t done, total; /* files */
        uint64_t bytes;       /* of finished files */
        int64_t begin_ns;
        bool is_shown; /* the progress line is on the terminal */
        bool is_terminal;
};

/* ---- the files to index ---- */

static void index_inputs_deinit(struct index_inputs *in)
{
        for (size_t i = 0; i < in->count; i++)
                free(in->paths[i]);
        free(in->paths);
        *in = (struct index_inputs){ 0 };
}

static enum status append_input(struct index_inputs *in, const char *path, struct error *err)
{
        char *copy;

        if (!array_reserve(&in->paths, &in->capacity, in->count))
                return error_no_memory(err);
        copy = strdup(path);
        if (!copy)
                return error_no_memory(err);
        in->paths[in->count++] = copy;
        return ST_OK;
}

static int compare_input_paths(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum status append_input_directory(struct index_inputs *in, const char *path, struct error *err)
{
        struct object_directory found = { 0 };
        size_t first = in->count;
        enum status st = object_directory_scan(path, &found, err);

        for (size_t i = 0; !st && i < found.count; i++) {
                struct stat s;

                if (lstat(found.objects[i].path, &s) == 0 && S_ISREG(s.st_mode))
                        st = append_input(in, found.objects[i].path, err);
        }
        object_directory_deinit(&found);
        if (!st && in->count == first)
                st = error_set(err, ST_NOT_FOUND, "'%s' contains no ELF file with a build-id", path);
        if (!st)
                qsort(in->paths + first, in->count - first, sizeof *in->paths, compare_input_paths);
        return st;
}

static enum status index_inputs_add(struct index_inputs *in, const char *path, struct error *err)
{
        struct stat s;

        if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
                return append_input_directory(in, path, err);
        return append_input(in, path, err);
}

/* ---- progress on a terminal ---- */

#define COLUMNS 80 /* of a terminal that does not report its width */
#define COLUMNS_MAX 500

static void index_progress_init(struct index_progress *p, uint64_t total, bool is_terminal)
{
        *p = (struct index_progress){ .total = total, .begin_ns = monotonic_ns(), .is_terminal = is_terminal };
}

static double index_progress_rate(const struct index_progress *p)
{
        int64_t ns = monotonic_ns() - p->begin_ns;

        return ns > 0 ? (double)p->bytes * 1e3 / (double)ns : 0;
}

static int count_terminal_columns(void)
{
        struct winsize size;

        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col == 0)
                return COLUMNS;
        return size.ws_col < COLUMNS_MAX ? size.ws_col : COLUMNS_MAX;
}

/* Long paths are cut at the start: their end is more informative. */
static void index_progress_show(struct index_progress *p, const char *file)
{
        char head[80];
        int used, room;
        size_t length = strlen(file), skip = 0;

        if (!p->is_terminal)
                return;
        used = snprintf(head, sizeof head, "%" PRIu64 "/%" PRIu64 " files, %.1f MB/s: ", p->done, p->total,
                        index_progress_rate(p));
        room = count_terminal_columns() - used - 1;
        if (room < 8)
                room = 8;
        if (length > (size_t)room)
                skip = length - (size_t)room + 3;
        printf("\r\033[K%s%s", head, skip ? "..." : "");
        for (const char *c = file + skip; *c; c++)
                putchar((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
        fflush(stdout);
        p->is_shown = true;
}

static void index_progress_done(struct index_progress *p, uint64_t bytes)
{
        assert(p->done < p->total);
        p->done++;
        p->bytes += bytes;
}

static void index_progress_hide(struct index_progress *p)
{
        if (p->is_shown) {
                fputs("\r\033[K", stdout);
                fflush(stdout);
        }
        p->is_shown = false;
}

/* ---- indexing ---- */

struct adder {
        struct index_command *c;
        struct index_progress progress;
        uint64_t added, kept, failed;
        int code; /* of the first failure */
};

struct added {
        const char *path;
        struct build_id id;
        struct symbol_object object;
        bool replaced; /* false: the index had better symbols */
        uint64_t file_bytes;
        int64_t ms;
};

static uint64_t size_of_input(int fd)
{
        struct stat s;

        return fd >= 0 && fstat(fd, &s) == 0 ? (uint64_t)s.st_size : 0;
}

static enum status index_file(struct index_command *c, const char *path, struct added *ret, struct error *err)
{
        struct symbol_table table = { 0 };
        struct extract_inputs in;
        int64_t begin = monotonic_ns();
        uint64_t generation;
        const struct debug_file_search search = debug_files_search(&c->debug_files);
        enum status st = named_file_search(path, &search, &in, err);

        if (st)
                return st;
        ret->path = path;
        ret->file_bytes = size_of_input(in.debuginfo_fd) + size_of_input(in.executable_fd);
        st = symbol_table_extract_confined(&in, NULL, &table, err);
        extract_inputs_close(&in);
        if (!st && table.build_id.size == 0)
                st = error_set(err, ST_BAD_DATA,
                               "cannot index '%s': it has no build-id, or a placeholder; link it with --build-id",
                               path);
        if (!st)
                st = symbol_index_load(c->index, &table, &ret->replaced, &generation, err);
        ret->id = table.build_id;
        if (!st)
                st = index_find_object(c, &ret->id, &ret->object, err);
        ret->ms = (monotonic_ns() - begin) / 1000000;
        symbol_table_deinit(&table);
        return st;
}

static void write_indexed_json(struct index_command *c, const struct added *a)
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

static void write_failure_json(struct index_command *c, const char *path, const struct error *reason)
{
        json_out_init(&c->out, &c->text);
        json_out_object(&c->out, NULL);
        json_out_str(&c->out, "file", path);
        json_out_str(&c->out, "error", reason->text);
        json_out_object_end(&c->out);
        buf_append_str(&c->text, "\n");
}

static void write_indexed_line(struct index_command *c, const struct added *a)
{
        const struct symbol_object *o = &a->object;
        char hex[BUILD_ID_HEX_MAX];

        buf_printf(&c->text, "%s: %s: %s%s, %s, %s %s", a->path, build_id_hex(&a->id, hex),
                   a->replaced ? "" : "kept the ", COUNTED(o->range_count, "range", "ranges"),
                   COUNTED(o->function_count, "function", "functions"),
                   COUNTED(o->file_count, "file from", "files from"), symbol_quality_name(o->quality));
        buf_printf(&c->text,
                   a->replaced ? ", %" PRIu64 " bytes in the index, %" PRId64 " ms\n"
                               : ", which are better (%" PRIu64 " bytes, %" PRId64 " ms)\n",
                   o->index_bytes, a->ms);
}

/* A terminal shows progress, so it gets only results that may need action. */
static void write_indexed(struct adder *a, const struct added *f)
{
        if (a->c->json)
                write_indexed_json(a->c, f);
        else if (!a->progress.is_terminal)
                write_indexed_line(a->c, f);
        if (!a->c->json && f->object.partial[0])
                buf_printf(&a->c->text, "%s: partial: %s\n", f->path, f->object.partial);
}

static void report_index_failure(struct adder *a, enum status st, const struct error *reason)
{
        int code;

        index_progress_hide(&a->progress);
        code = index_report_failure(st, reason);
        a->failed++;
        if (a->code == EXIT_DONE)
                a->code = code;
}

/* False when standard output cannot be written. */
static bool print_indexed(struct adder *a)
{
        struct error err;
        enum status st;

        if (a->c->text.size == 0)
                return true;
        index_progress_hide(&a->progress);
        st = index_print(a->c, &err);
        if (st)
                report_index_failure(a, st, &err);
        return !st;
}

static bool index_input(struct adder *a, const char *path)
{
        struct added f = { 0 };
        struct error err;
        enum status st;

        index_progress_show(&a->progress, path);
        st = index_file(a->c, path, &f, &err);
        index_progress_done(&a->progress, f.file_bytes);
        if (st) {
                report_index_failure(a, st, &err);
                if (a->c->json)
                        write_failure_json(a->c, path, &err);
        } else {
                a->added += f.replaced;
                a->kept += !f.replaced;
                write_indexed(a, &f);
        }
        return print_indexed(a);
}

static void write_index_totals(struct adder *a)
{
        buf_printf(&a->c->text,
                   "%s%" PRIu64 " indexed, %" PRIu64 " kept as they were, %" PRIu64 " failed; %.1f MB, %.1f MB/s\n",
                   COUNTED(a->progress.done, "file: ", "files: "), a->added, a->kept, a->failed,
                   (double)a->progress.bytes / 1e6, index_progress_rate(&a->progress));
}

int index_add(struct index_command *c, int argc, char **argv)
{
        struct adder a = { .c = c, .code = EXIT_DONE };
        struct index_inputs in = { 0 };
        struct error err;
        bool more = true;

        if (debug_files_open(&c->debug_files, &err))
                return index_report_failure(err.code, &err);
        for (int i = 0; i < argc; i++) {
                enum status st = index_inputs_add(&in, argv[i], &err);

                if (st)
                        report_index_failure(&a, st, &err);
        }
        index_progress_init(&a.progress, in.count, !c->json && isatty(STDOUT_FILENO));
        for (size_t i = 0; more && i < in.count; i++)
                more = index_input(&a, in.paths[i]);
        if (more && !c->json && (a.progress.is_terminal || in.count > 1)) {
                write_index_totals(&a);
                print_indexed(&a);
        }
        index_inputs_deinit(&in);
        debug_files_close(&c->debug_files);
        return a.code;
}
