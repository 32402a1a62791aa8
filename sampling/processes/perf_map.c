/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"
#include "sampling/objects/open_in_root.h"
#include "sampling/objects/text_line.h"

#define NAME_MAX_BYTES 1024
#define READ_BYTES KiB(256)

void perf_map_init(struct perf_map *m, struct code_budget *budget)
{
        *m = (struct perf_map){ 0 };
        code_names_init(&m->code, budget);
}

void perf_map_deinit(struct perf_map *m)
{
        code_names_deinit(&m->code);
        *m = (struct perf_map){ 0 };
}

static bool parse_perf_map_line(struct text_line l, uint64_t *start, uint64_t *end, struct text_line *name_ret)
{
        uint64_t size;

        if (text_size(&l) > 2 && l.at[0] == '0' && (l.at[1] | 0x20) == 'x')
                l.at += 2;
        if (!text_number(&l, 16, start))
                return false;
        text_skip_blanks(&l);
        if (text_size(&l) > 2 && l.at[0] == '0' && (l.at[1] | 0x20) == 'x')
                l.at += 2;
        if (!text_number(&l, 16, &size) || size == 0 || __builtin_add_overflow(*start, size, end))
                return false;
        text_skip_blanks(&l);
        if (text_size(&l) > NAME_MAX_BYTES)
                l.end = l.at + NAME_MAX_BYTES;
        *name_ret = l;
        return l.at != l.end;
}

enum status perf_map_feed(struct perf_map *m, const char *text, size_t n, size_t *ret, struct error *err)
{
        struct text_line left = { text, text + n }, line;
        size_t used = 0;

        while (text_next_line(&left, &line) && line.end < text + n) {
                uint64_t start, end;
                struct text_line name;

                if (parse_perf_map_line(line, &start, &end, &name)) {
                        uint32_t offset;
                        enum status st = code_names_add_text(&m->code, name.at, text_size(&name), &offset, err);

                        if (!st)
                                st = code_names_add(&m->code, start, end, offset, 0, err);
                        if (st == ST_TOO_BIG)
                                m->dropped++;
                        else if (st)
                                return st;
                }
                used = (size_t)(left.at - text);
        }
        *ret = used;
        return ST_OK;
}

/* ---- the file ------------------------------------------------------------------ */

static enum status read_new_lines(struct perf_map *m, int fd, const char *path, uint64_t *left, struct error *err)
{
        _cleanup_free_ char *text = malloc(READ_BYTES);

        if (!text)
                return error_no_memory(err);
        while (*left >= READ_BYTES) {
                ssize_t n = pread(fd, text, READ_BYTES, (off_t)m->read_to);
                size_t used = 0;
                enum status st;

                if (n < 0)
                        return error_os(err, errno, "cannot read '%s'", path);
                *left -= (uint64_t)n;
                st = perf_map_feed(m, text, (size_t)n, &used, err);
                if (st)
                        return st;
                if (used == 0 && (size_t)n == READ_BYTES)
                        used = (size_t)n; /* longer than the buffer: skip it */
                m->read_to += used;
                if (used == 0)
                        return ST_OK;
        }
        return ST_OK;
}

enum status perf_map_refresh(struct perf_map *m, int root_fd, pid_t ns_pid, uid_t uid, uint64_t *left,
                             struct error *err)
{
        char path[64];
        _cleanup_close_ int fd = -1;
        struct stat st;

        snprintf(path, sizeof path, PERF_MAP_PATH, (int)ns_pid);
        fd = open_regular_in_root(root_fd, path, O_NOFOLLOW);
        if (fd < 0 && errno == EINVAL)
                return error_set(err, ST_UNSUPPORTED, "'%s' is not a regular file", path);
        if (fd < 0)
                return errno == ENOENT ? error_set(err, ST_NOT_FOUND, "no '%s'", path)
                                       : error_os(err, errno, "cannot open '%s'", path);
        if (fstat(fd, &st) < 0)
                return error_os(err, errno, "cannot stat '%s'", path);
        if (st.st_uid != uid && st.st_uid != 0)
                return error_set(err, ST_UNSUPPORTED, "'%s' is not the process's own file", path);
        if (st.st_dev != m->device || st.st_ino != m->inode || (uint64_t)st.st_size < m->read_to) {
                struct code_budget *budget = m->code.budget;

                perf_map_deinit(m);
                perf_map_init(m, budget);
                m->device = st.st_dev;
                m->inode = st.st_ino;
        }
        return read_new_lines(m, fd, path, left, err);
}
