/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/beneath.h"
#include "agent/text_line.h"
#include "common/limits.h"

#define NAME_MAX_BYTES 1024
#define READ_BYTES KiB(256)

void perf_map_init(struct perf_map *m)
{
        *m = (struct perf_map){ 0 };
        buf_init(&m->names, LIMIT_AGENT_PERF_MAP_BYTES);
}

void perf_map_deinit(struct perf_map *m)
{
        free(m->symbols);
        free(m->ranges);
        buf_deinit(&m->names);
        *m = (struct perf_map){ 0 };
}

static bool parse_line(struct text_line l, uint64_t *start, uint64_t *end, struct text_line *name_ret)
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

static enum status add_symbol(struct perf_map *m, uint64_t start, uint64_t end, struct text_line name, struct error *err)
{
        uint32_t offset = (uint32_t)m->names.size;

        if (m->symbol_count == LIMIT_AGENT_PERF_MAP_SYMBOLS)
                return error_set(err, ST_TOO_BIG, "the perf map has more than %d symbols", LIMIT_AGENT_PERF_MAP_SYMBOLS);
        if (m->symbol_count == m->symbol_capacity) {
                size_t grown = m->symbol_capacity ? 2 * m->symbol_capacity : 256;
                struct perf_map_symbol *symbols = reallocarray(m->symbols, grown, sizeof *symbols);

                if (!symbols)
                        return error_no_memory(err);
                m->symbols = symbols;
                m->symbol_capacity = grown;
        }
        buf_append(&m->names, name.at, text_size(&name));
        if (buf_append_u8(&m->names, 0))
                return buf_status(&m->names, err, "names of the perf map");
        m->symbols[m->symbol_count++] = (struct perf_map_symbol){ start, end, offset };
        m->stale = true;
        return ST_OK;
}

enum status perf_map_feed(struct perf_map *m, const char *text, size_t n, size_t *ret, struct error *err)
{
        struct text_line left = { text, text + n }, line;
        size_t used = 0;

        while (text_next_line(&left, &line) && line.end < text + n) {
                uint64_t start, end;
                struct text_line name;

                if (parse_line(line, &start, &end, &name)) {
                        enum status st = add_symbol(m, start, end, name, err);

                        if (st)
                                return st;
                }
                used = (size_t)(left.at - text);
        }
        *ret = used;
        return ST_OK;
}

/* ---- from symbols to ranges: a sweep over their starts and ends ------------- */

static int compare_starts(const void *a, const void *b)
{
        const struct perf_map_symbol *const *x = a, *const *y = b;

        if ((*x)->start != (*y)->start)
                return (*x)->start < (*y)->start ? -1 : 1;
        return *x < *y ? -1 : *x > *y;
}

/* A max-heap on the place in `symbols`: the symbol that came last is on top. */
struct heap {
        const struct perf_map_symbol **items;
        size_t count;
};

static void heap_push(struct heap *h, const struct perf_map_symbol *s)
{
        size_t i = h->count++;

        for (; i > 0 && h->items[(i - 1) / 2] < s; i = (i - 1) / 2)
                h->items[i] = h->items[(i - 1) / 2];
        h->items[i] = s;
}

static void heap_pop(struct heap *h)
{
        const struct perf_map_symbol *last = h->items[--h->count];
        size_t i = 0;

        for (;;) {
                size_t child = 2 * i + 1;

                if (child >= h->count)
                        break;
                if (child + 1 < h->count && h->items[child + 1] > h->items[child])
                        child++;
                if (h->items[child] <= last)
                        break;
                h->items[i] = h->items[child];
                i = child;
        }
        if (h->count)
                h->items[i] = last;
}

static void add_range(struct perf_map *m, uint64_t start, uint64_t end, uint32_t name)
{
        struct perf_map_symbol *last = m->range_count ? &m->ranges[m->range_count - 1] : NULL;

        if (start == end)
                return;
        if (last && last->end == start && last->name == name)
                last->end = end;
        else
                m->ranges[m->range_count++] = (struct perf_map_symbol){ start, end, name };
}

static bool settle(struct perf_map *m)
{
        const struct perf_map_symbol **order = reallocarray(NULL, m->symbol_count, sizeof *order);
        struct heap heap = { .items = reallocarray(NULL, m->symbol_count, sizeof *heap.items) };
        /* Each symbol's start and each symbol's end begins at most one range. */
        struct perf_map_symbol *ranges = reallocarray(m->ranges, 2 * m->symbol_count, sizeof *ranges);
        size_t next = 0;
        uint64_t at = 0;

        if (ranges)
                m->ranges = ranges;
        if (!order || !heap.items || !ranges) {
                free(order);
                free(heap.items);
                return false;
        }
        for (size_t i = 0; i < m->symbol_count; i++)
                order[i] = &m->symbols[i];
        qsort(order, m->symbol_count, sizeof *order, compare_starts);
        m->range_count = 0;
        while (next < m->symbol_count || heap.count) {
                if (!heap.count)
                        at = order[next]->start;
                while (next < m->symbol_count && order[next]->start <= at)
                        heap_push(&heap, order[next++]);
                while (heap.count && heap.items[0]->end <= at)
                        heap_pop(&heap);
                if (heap.count) {
                        uint64_t until = heap.items[0]->end;

                        if (next < m->symbol_count && order[next]->start < until)
                                until = order[next]->start;
                        add_range(m, at, until, heap.items[0]->name);
                        at = until;
                }
        }
        free(order);
        free(heap.items);
        m->stale = false;
        return true;
}

const char *perf_map_find(struct perf_map *m, uint64_t addr)
{
        size_t low = 0, high;

        if (m->stale && !settle(m))
                return NULL;
        high = m->range_count;
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (m->ranges[middle].end <= addr)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == m->range_count || m->ranges[low].start > addr)
                return NULL;
        return (const char *)m->names.data + m->ranges[low].name;
}

/* ---- the file ------------------------------------------------------------------ */

static enum status read_on(struct perf_map *m, int fd, const char *path, struct error *err)
{
        _cleanup_free_ char *text = malloc(READ_BYTES);

        if (!text)
                return error_no_memory(err);
        while (m->read_to < LIMIT_AGENT_PERF_MAP_BYTES) {
                ssize_t n = pread(fd, text, READ_BYTES, (off_t)m->read_to);
                size_t used = 0;
                enum status st;

                if (n < 0)
                        return error_os(err, errno, "cannot read '%s'", path);
                st = perf_map_feed(m, text, (size_t)n, &used, err);
                if (st)
                        return st;
                if (used == 0 && (size_t)n == READ_BYTES)
                        used = (size_t)n; /* a line without an end: step over it */
                m->read_to += used;
                if (used == 0)
                        return ST_OK;
        }
        return ST_OK;
}

enum status perf_map_refresh(struct perf_map *m, int root_fd, pid_t ns_pid, uid_t uid, struct error *err)
{
        char path[64];
        _cleanup_close_ int fd = -1;
        struct stat st;

        snprintf(path, sizeof path, "tmp/perf-%d.map", (int)ns_pid);
        fd = open_beneath(root_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return errno == ENOENT ? error_set(err, ST_NOT_FOUND, "no '%s'", path)
                                       : error_os(err, errno, "cannot open '%s'", path);
        if (fstat(fd, &st) < 0)
                return error_os(err, errno, "cannot stat '%s'", path);
        if (!S_ISREG(st.st_mode) || (st.st_uid != uid && st.st_uid != 0))
                return error_set(err, ST_UNSUPPORTED, "'%s' is not the process's own file", path);
        if (st.st_dev != m->device || st.st_ino != m->inode || (uint64_t)st.st_size < m->read_to) {
                perf_map_deinit(m);
                perf_map_init(m);
                m->device = st.st_dev;
                m->inode = st.st_ino;
        }
        return read_on(m, fd, path, err);
}
