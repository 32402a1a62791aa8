/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/objects/proc_maps.h"

#include "common/limits.h"
#include "common/memory/array.h"
#include "common/search.h"
#include "sampling/objects/text_line.h"

#define DELETED " (deleted)"

/* "START-END PERM OFFSET MAJOR:MINOR INODE   PATH": hexadecimal except the inode. */
static bool parse_maps_line(struct text_line l, struct proc_mapping *ret, struct text_line *path_ret)
{
        struct text_line permissions;
        uint64_t major, minor;

        if (!text_number(&l, 16, &ret->start) || !text_char(&l, '-') || !text_number(&l, 16, &ret->end) ||
            !text_field(&l, &permissions) || text_size(&permissions) != 4)
                return false;
        text_skip_blanks(&l);
        if (!text_number(&l, 16, &ret->file_offset))
                return false;
        text_skip_blanks(&l);
        if (!text_number(&l, 16, &major) || !text_char(&l, ':') || !text_number(&l, 16, &minor))
                return false;
        text_skip_blanks(&l);
        if (!text_number(&l, 10, &ret->inode))
                return false;
        text_skip_blanks(&l);
        ret->device_major = (uint32_t)major;
        ret->device_minor = (uint32_t)minor;
        ret->executable = permissions.at[2] == 'x';
        *path_ret = l;
        return ret->start < ret->end;
}

/* Complete *to, whose path is in the text. */
static enum status copy_path(struct proc_maps *m, const struct text_line *path, struct proc_mapping *to,
                             struct error *err)
{
        size_t n = text_size(path);

        to->deleted =
                to->inode && n > strlen(DELETED) && memcmp(path->end - strlen(DELETED), DELETED, strlen(DELETED)) == 0;
        if (to->deleted)
                n -= strlen(DELETED);
        to->path = arena_strndup(&m->arena, path->at, n);
        return to->path ? ST_OK : error_no_memory(err);
}

static enum status append_mapping(struct proc_maps *m, size_t *capacity, const struct proc_mapping *line,
                                  const struct text_line *path, struct error *err)
{
        enum status st;

        if (m->count == LIMIT_AGENT_MAPPINGS)
                return error_set(err, ST_TOO_BIG, "the process has more than %d executable mappings",
                                 LIMIT_AGENT_MAPPINGS);
        if (!array_reserve(&m->items, capacity, m->count))
                return error_no_memory(err);
        m->items[m->count] = *line;
        st = copy_path(m, path, &m->items[m->count], err);
        m->count += !st;
        return st;
}

/* ---- neighbors ---- */

bool is_memory_path(const char *path, size_t n)
{
        static const char *const memory[] = { "/memfd:", "/anon_hugepage", "/dev/zero", "/SYSV" };

        for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
                if (n >= strlen(memory[i]) && memcmp(path, memory[i], strlen(memory[i])) == 0)
                        return true;
        return false;
}

struct neighbors {
        struct proc_mapping last; /* the last mapping of a file; inode 0: none */
        struct text_line last_path;
        bool is_last_kept, needs_next;
        size_t capacity;
};

/* Whether it is of a file that a program can be loaded from. */
static bool is_of_file(const struct proc_mapping *m, const struct text_line *path)
{
        return m->inode && text_size(path) && path->at[0] == '/' && !is_memory_path(path->at, text_size(path));
}

static enum status keep_last_neighbor(struct proc_maps *m, struct neighbors *n, struct error *err)
{
        enum status st;

        if (!n->last.inode || n->is_last_kept || m->neighbor_count == LIMIT_AGENT_MAPPINGS)
                return ST_OK;
        if (!array_reserve(&m->neighbors, &n->capacity, m->neighbor_count))
                return error_no_memory(err);
        m->neighbors[m->neighbor_count] = n->last;
        st = copy_path(m, &n->last_path, &m->neighbors[m->neighbor_count], err);
        m->neighbor_count += !st;
        n->is_last_kept = true;
        return st;
}

static bool has_same_inode(const struct proc_mapping *a, const struct proc_mapping *b)
{
        return a->inode == b->inode && a->device_major == b->device_major && a->device_minor == b->device_minor;
}

/* Keep the mappings of other files right before and after each executable mapping, except "[vdso]" and "[vsyscall]". */
static enum status note_neighbor(struct proc_maps *m, struct neighbors *n, const struct proc_mapping *line,
                                 const struct text_line *path, struct error *err)
{
        bool is_file = is_of_file(line, path), is_kernels = text_size(path) > 1 && memcmp(path->at, "[v", 2) == 0;
        enum status st = ST_OK;

        if (line->executable && !is_kernels && !(is_file && has_same_inode(&n->last, line))) {
                st = keep_last_neighbor(m, n, err);
                n->needs_next = !is_file;
        }
        if (!is_file || st)
                return st;
        n->last = *line;
        n->last_path = *path;
        n->is_last_kept = false;
        if (!n->needs_next)
                return ST_OK;
        n->needs_next = false;
        return keep_last_neighbor(m, n, err);
}

/* A mapping that grew between two reads of the file appears again with its new end: clip it to the part from `before`
   on. False when nothing is left. */
static bool clip_mapping(struct proc_mapping *m, uint64_t before)
{
        if (m->end <= before)
                return false;
        if (m->start < before) {
                m->file_offset += m->inode ? before - m->start : 0;
                m->start = before;
        }
        return true;
}

/* Whether it is the mapping of OTEP 4719: of a file in memory, or anonymous, with that name. */
static bool is_context_mapping(const struct text_line *path)
{
        static const char *const names[] = { "/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]" };
        size_t n = text_size(path);

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (n >= strlen(names[i]) && memcmp(path->at, names[i], strlen(names[i])) == 0 &&
                    (n == strlen(names[i]) || path->at[strlen(names[i])] == ' '))
                        return true;
        return false;
}

enum status proc_maps_parse(const char *text, size_t n, struct proc_maps *ret, struct error *err)
{
        _cleanup_proc_maps_ struct proc_maps m = { 0 };
        struct text_line left = { text, text + n }, line, path;
        struct neighbors neighbors = { 0 };
        size_t capacity = 0;
        uint64_t before = 0;

        arena_init(&m.arena, LIMIT_AGENT_MAPS_BYTES);
        while (text_next_line(&left, &line)) {
                struct proc_mapping mapping = { 0 };
                enum status st = ST_OK;

                if (!parse_maps_line(line, &mapping, &path))
                        return error_at(err, ST_BAD_DATA, (uint64_t)(line.at - text),
                                        "line at byte %zu is not a mapping", (size_t)(line.at - text));
                if (!clip_mapping(&mapping, before))
                        continue;
                before = mapping.end;
                if (!m.context_address && is_context_mapping(&path))
                        m.context_address = mapping.start;
                if (mapping.executable)
                        st = append_mapping(&m, &capacity, &mapping, &path, err);
                if (!st)
                        st = note_neighbor(&m, &neighbors, &mapping, &path, err);
                if (st)
                        return st;
        }
        *ret = m;
        m = (struct proc_maps){ 0 };
        return ST_OK;
}

void proc_maps_deinit(struct proc_maps *m)
{
        arena_deinit(&m->arena);
        free(m->items);
        free(m->neighbors);
        *m = (struct proc_maps){ 0 };
}

const struct proc_mapping *proc_maps_find(const struct proc_maps *m, uint64_t addr)
{
        size_t at = find_lower_bound(i, 0, m->count, m->items[i].end <= addr);

        return at < m->count && m->items[at].start <= addr ? &m->items[at] : NULL;
}
