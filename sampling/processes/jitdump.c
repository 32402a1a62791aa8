/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitdump_refresh() reads the file from where the last read ended, in windows, and jitdump_feed() applies the complete
 * records of each window; code bytes are skipped without being read. A file that was replaced or truncated is read
 * from the start.
 *
 * Line numbers precede their code: they are kept as pending lines at the end of `lines`, and the next load record
 * takes them if they are for its address. A load adds a range to code_names, whose tag is the index in `codes`; a
 * later range replaces what it overlaps. A move adds the old range as unnamed and the code at its new address.
 *
 * A bad record is counted and skipped by its length; a length that cannot be used ends the reading of the file.
 *
 * Order: header and records, the file, lookup.
 */
#include "sampling/processes/jitdump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/reader.h"
#include "common/search.h"

#define MAGIC 0x4a695444u
#define VERSION_MAX 2
#define HEADER_BYTES 40
#define RECORD_BYTES 16 /* id, length, time */
#define LOAD_BYTES 40   /* fields of a load record between header and name */
#define NAME_MAX_BYTES 1024
#define ELF_HEADER_BYTES 64

enum { RECORD_LOAD, RECORD_MOVE, RECORD_LINES, RECORD_CLOSE };

void jitdump_init(struct jitdump *j, struct code_budget *budget)
{
        *j = (struct jitdump){ 0 };
        code_names_init(&j->code, budget);
        j->code.keeps_names = true;
}

void jitdump_deinit(struct jitdump *j)
{
        code_names_deinit(&j->code);
        id_table_deinit(&j->by_index);
        free(j->codes);
        free(j->lines);
        *j = (struct jitdump){ 0 };
}

/* ---- records ------------------------------------------------------------------- */

static enum status parse_file_header(struct jitdump *j, const uint8_t *data, size_t n, pid_t ns_pid, size_t *ret,
                                     struct error *err)
{
        uint32_t magic, version, size, machine, padding, pid;
        struct reader r;

        reader_init(&r, data, n);
        if (!reader_u32(&r, &magic) || (magic != MAGIC && magic != __builtin_bswap32(MAGIC)))
                return error_set(err, ST_BAD_DATA, "not a jitdump");
        j->big_endian = r.big_endian = magic != MAGIC;
        if (!reader_u32(&r, &version) || !reader_u32(&r, &size) || !reader_u32(&r, &machine) ||
            !reader_u32(&r, &padding) || !reader_u32(&r, &pid))
                return reader_error(&r, err, "header of the jitdump");
        if (!version || version > VERSION_MAX)
                return error_set(err, ST_BAD_DATA, "a jitdump of version %u", version);
        if (size < HEADER_BYTES || size > JITDUMP_WINDOW_BYTES)
                return error_set(err, ST_BAD_DATA, "a jitdump with a header of %u bytes", size);
        if (pid != (uint32_t)ns_pid)
                return error_set(err, ST_BAD_DATA, "the jitdump of process %u, not of %d", pid, (int)ns_pid);
        j->has_header = size <= n; /* else the rest is not written yet */
        *ret = j->has_header ? size : 0;
        return ST_OK;
}

static enum status add_jit_code(struct jitdump *j, const struct jit_code *c, uint64_t size, struct error *err)
{
        uint64_t end;
        enum status st;

        if (!size || __builtin_add_overflow(c->addr, size, &end))
                return error_set(err, ST_TOO_BIG, "code of size 0");
        st = code_names_charge(&j->code, sizeof *c + ID_TABLE_ENTRY_BYTES, err);
        if (st)
                return st;
        if (!array_reserve(&j->codes, &j->code_capacity, j->code_count))
                return error_no_memory(err);
        st = code_names_add(&j->code, c->addr, end, c->name, (uint32_t)j->code_count, err);
        if (!st)
                j->codes[j->code_count++] = *c;
        return st;
}

/*
 * Attach the pending lines to their code, whose address they contain. Node 20 writes freed memory as file names, with
 * NUL bytes in the middle: the bytes after such a name are misread as lines, whose addresses are outside of the code.
 */
static void attach_pending_lines(struct jitdump *j, uint64_t addr, uint64_t size, struct jit_code *ret)
{
        size_t count = j->line_count - j->next_first_line;
        const struct jit_line *pending;

        if (!count || j->next_code != addr)
                return;
        pending = j->lines + j->next_first_line;
        if (pending[count - 1].offset >= size + ELF_HEADER_BYTES + 1) {
                j->dropped++;
                return;
        }
        j->adds_header |= pending[count - 1].offset >= size;
        j->is_plain |= pending[0].offset < ELF_HEADER_BYTES;
        ret->first_line = (uint32_t)j->next_first_line;
        ret->line_count = (uint32_t)count;
        j->next_first_line = j->line_count;
}

static enum status parse_load_record(struct jitdump *j, struct reader *r, struct error *err)
{
        uint32_t pid, tid, number;
        uint64_t vma, addr, size, index;
        struct jit_code c = { 0 };
        const uint8_t *name = r->data + r->pos + LOAD_BYTES;
        size_t room;
        enum status st;

        if (!reader_u32(r, &pid) || !reader_u32(r, &tid) || !reader_u64(r, &vma) || !reader_u64(r, &addr) ||
            !reader_u64(r, &size) || !reader_u64(r, &index))
                return reader_error(r, err, "record of code");
        room = reader_left(r) < NAME_MAX_BYTES ? reader_left(r) : NAME_MAX_BYTES;
        c.addr = addr;
        attach_pending_lines(j, addr, size, &c);
        st = code_names_add_text(&j->code, (const char *)name, strnlen((const char *)name, room), &c.name, err);
        number = (uint32_t)j->code_count;
        if (!st)
                st = add_jit_code(j, &c, size, err);
        if (!st && !id_table_put(&j->by_index, &index, sizeof index, number))
                st = error_no_memory(err);
        return st;
}

/* Move code to its new address. */
static enum status parse_move_record(struct jitdump *j, struct reader *r, struct error *err)
{
        uint32_t pid, tid, number;
        uint64_t vma, from, to, size, index, end;
        struct jit_code c;
        enum status st;

        if (!reader_u32(r, &pid) || !reader_u32(r, &tid) || !reader_u64(r, &vma) || !reader_u64(r, &from) ||
            !reader_u64(r, &to) || !reader_u64(r, &size) || !reader_u64(r, &index))
                return reader_error(r, err, "record of code that moved");
        if (!id_table_find(&j->by_index, &index, sizeof index, &number) || __builtin_add_overflow(from, size, &end) ||
            !size)
                return error_set(err, ST_TOO_BIG, "move of unknown code");
        c = j->codes[number];
        c.addr = to;
        st = code_names_add(&j->code, from, end, CODE_NAME_NONE, 0, err);
        number = (uint32_t)j->code_count;
        if (!st)
                st = add_jit_code(j, &c, size, err);
        if (!st && !id_table_put(&j->by_index, &index, sizeof index, number))
                st = error_no_memory(err);
        return st;
}

/* The name 0xff NUL repeats the previous one. */
static bool intern_file_name(struct jitdump *j, const char *name, const char **last, uint32_t *last_offset,
                             struct error *err)
{
        size_t n = strnlen(name, LIMIT_PATH_BYTES);

        if (*last && (strcmp(name, "\xff") == 0 || (strncmp(*last, name, LIMIT_PATH_BYTES) == 0)))
                return true;
        if (code_names_add_text(&j->code, name, n, last_offset, err))
                return false;
        *last = name;
        return true;
}

static int compare_jit_lines(const void *a, const void *b)
{
        const struct jit_line *x = a, *y = b;

        return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static enum status parse_line_record(struct jitdump *j, struct reader *r, struct error *err)
{
        uint64_t code, count;
        const char *last = NULL;
        uint32_t file = 0;
        enum status st;

        j->line_count = j->next_first_line; /* drop lines whose code was never loaded */
        if (!reader_u64(r, &code) || !reader_u64(r, &count) ||
            count > reader_left(r) / 17) /* minimum bytes of a line */
                return error_set(err, ST_TOO_BIG, "line record with more lines than it has room for");
        st = code_names_charge(&j->code, count * sizeof *j->lines, err);
        if (st)
                return st;
        if (!array_reserve_many(&j->lines, &j->line_capacity, j->line_count, count))
                return error_no_memory(err);
        j->next_code = code;
        for (uint64_t i = 0; i < count; i++) {
                uint64_t addr;
                uint32_t line, discriminator;
                const char *name;

                if (!reader_u64(r, &addr) || !reader_u32(r, &line) || !reader_u32(r, &discriminator) ||
                    !reader_cstr(r, &name) || addr - code > UINT32_MAX ||
                    !intern_file_name(j, name, &last, &file, err)) {
                        j->line_count = j->next_first_line;
                        return error_set(err, ST_TOO_BIG, "line %llu of a record is invalid", (unsigned long long)i);
                }
                j->lines[j->line_count++] = (struct jit_line){ (uint32_t)(addr - code), line, file };
        }
        if (count)
                qsort(j->lines + j->next_first_line, j->line_count - j->next_first_line, sizeof *j->lines,
                      compare_jit_lines);
        return ST_OK;
}

/* ---- the file -------------------------------------------------------------------- */

/* Bytes of a record that must be present to parse it. */
static size_t record_bytes_needed(uint32_t id, uint32_t size)
{
        size_t most = RECORD_BYTES + LOAD_BYTES + NAME_MAX_BYTES;

        return id == RECORD_LINES || size < most ? size : most;
}

static enum status parse_jit_record(struct jitdump *j, uint32_t id, struct reader *r, struct error *err)
{
        switch (id) {
        case RECORD_LOAD:
                return parse_load_record(j, r, err);
        case RECORD_MOVE:
                return parse_move_record(j, r, err);
        case RECORD_LINES:
                return parse_line_record(j, r, err);
        case RECORD_CLOSE:
                j->is_over = true;
                return ST_OK;
        default:
                return ST_OK;
        }
}

enum status jitdump_feed(struct jitdump *j, const void *data, size_t n, uint64_t left, pid_t ns_pid, uint64_t *ret,
                         struct error *err)
{
        const uint8_t *bytes = data;
        size_t at = 0;

        if (!j->has_header && n >= HEADER_BYTES) {
                enum status st = parse_file_header(j, bytes, n, ns_pid, &at, err);

                if (st) {
                        j->is_over = true;
                        return st;
                }
        }
        *ret = at;
        while (j->has_header && !j->is_over && at < n && n - at >= RECORD_BYTES) {
                struct reader r;
                uint32_t id = 0, size = 0;
                size_t part;
                enum status st;

                reader_init(&r, bytes + at, RECORD_BYTES);
                r.big_endian = j->big_endian;
                if (!reader_u32(&r, &id) || !reader_u32(&r, &size) || size < RECORD_BYTES) {
                        j->is_over = true; /* the next record cannot be found */
                        return error_set(err, ST_BAD_DATA, "a record of the jitdump has %u bytes", size);
                }
                if (size > left - at)
                        break; /* not completely written yet */
                part = record_bytes_needed(id, size);
                if (part > n - at && part <= JITDUMP_WINDOW_BYTES)
                        break; /* continue in the next window */
                if (part <= n - at) {
                        reader_init(&r, bytes + at + RECORD_BYTES, part - RECORD_BYTES);
                        r.big_endian = j->big_endian;
                        st = parse_jit_record(j, id, &r, err);
                        if (st == ST_NO_MEMORY)
                                return st;
                        j->dropped += st != ST_OK;
                } else {
                        j->dropped++;
                }
                *ret += size;
                if (size > n - at)
                        break;
                at += size;
        }
        return ST_OK;
}

static enum status read_new_records(struct jitdump *j, int fd, uint64_t size, pid_t ns_pid, uint64_t *left,
                                    struct error *err)
{
        _cleanup_free_ char *window = malloc(JITDUMP_WINDOW_BYTES);

        if (!window)
                return error_no_memory(err);
        while (!j->is_over && j->read_to < size && *left >= JITDUMP_WINDOW_BYTES) {
                ssize_t n = pread(fd, window, JITDUMP_WINDOW_BYTES, (off_t)j->read_to);
                uint64_t used = 0;
                enum status st;

                if (n < 0)
                        return error_os(err, errno, "cannot read the jitdump");
                *left -= (uint64_t)n;
                st = jitdump_feed(j, window, (size_t)n, size - j->read_to, ns_pid, &used, err);
                if (st)
                        return st;
                j->read_to += used;
                if (!used)
                        return ST_OK;
        }
        return ST_OK;
}

enum status jitdump_refresh(struct jitdump *j, int fd, pid_t ns_pid, uid_t uid, uint64_t *left, struct error *err)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return error_os(err, errno, "cannot stat the jitdump");
        if (!S_ISREG(st.st_mode) || (st.st_uid != uid && st.st_uid != 0))
                return error_set(err, ST_UNSUPPORTED, "the jitdump is not the process's own file");
        if (st.st_dev != j->device || st.st_ino != j->inode || (uint64_t)st.st_size < j->read_to) {
                struct code_budget *budget = j->code.budget;

                jitdump_deinit(j);
                jitdump_init(j, budget);
                j->device = st.st_dev;
                j->inode = st.st_ino;
        }
        return read_new_records(j, fd, (uint64_t)st.st_size, ns_pid, left, err);
}

/* ---- lookup ---- */

static const struct jit_line *find_jit_line(const struct jitdump *j, const struct jit_code *c, uint64_t offset)
{
        size_t first = c->first_line, next;

        if (j->adds_header && !j->is_plain)
                offset += ELF_HEADER_BYTES;
        next = find_lower_bound(i, first, first + c->line_count, j->lines[i].offset <= offset);
        return next > first ? &j->lines[next - 1] : NULL;
}

bool jitdump_find(struct jitdump *j, uint64_t addr, struct jit_location *ret)
{
        const struct named_range *s = code_names_find(&j->code, addr);
        const struct jit_code *c;
        const struct jit_line *line;

        if (!s)
                return false;
        c = &j->codes[s->tag];
        line = find_jit_line(j, c, addr - c->addr);
        *ret = (struct jit_location){ .name = code_names_get_text(&j->code, s),
                                      .file = line ? (const char *)j->code.names.data + line->file : "",
                                      .line = line ? line->line : 0 };
        return true;
}
