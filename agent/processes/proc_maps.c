/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/processes/proc_maps.h"

#include "agent/processes/text_line.h"
#include "common/memory/array.h"
#include "common/limits.h"
#include "common/search.h"

#define DELETED " (deleted)"

/* "START-END PERM OFFSET MAJOR:MINOR INODE   PATH": hexadecimal except the inode. */
static bool parse_maps_line(struct text_line l, struct proc_mapping *ret, bool *executable_ret,
                            struct text_line *path_ret)
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
        *executable_ret = permissions.at[2] == 'x';
        *path_ret = l;
        return ret->start < ret->end;
}

static enum status append_mapping(struct proc_maps *m, size_t *capacity, const struct proc_mapping *line,
                                  struct text_line path, struct error *err)
{
        size_t n = text_size(&path);
        struct proc_mapping *to;

        if (m->count == LIMIT_AGENT_MAPPINGS)
                return error_set(err, ST_TOO_BIG, "the process has more than %d executable mappings",
                                 LIMIT_AGENT_MAPPINGS);
        if (!array_reserve(&m->items, capacity, m->count))
                return error_no_memory(err);
        to = &m->items[m->count];
        *to = *line;
        to->deleted =
                line->inode && n > strlen(DELETED) && memcmp(path.end - strlen(DELETED), DELETED, strlen(DELETED)) == 0;
        if (to->deleted)
                n -= strlen(DELETED);
        to->path = arena_strndup(&m->arena, path.at, n);
        if (!to->path)
                return error_no_memory(err);
        m->count++;
        return ST_OK;
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

enum status proc_maps_parse(const char *text, size_t n, struct proc_maps *ret, struct error *err)
{
        _cleanup_proc_maps_ struct proc_maps m = { 0 };
        struct text_line left = { text, text + n }, line, path;
        size_t capacity = 0;
        uint64_t before = 0;

        arena_init(&m.arena, LIMIT_AGENT_MAPS_BYTES);
        while (text_next_line(&left, &line)) {
                struct proc_mapping mapping = { 0 };
                bool executable;

                if (!parse_maps_line(line, &mapping, &executable, &path))
                        return error_at(err, ST_BAD_DATA, (uint64_t)(line.at - text),
                                        "line at byte %zu is not a mapping", (size_t)(line.at - text));
                if (!clip_mapping(&mapping, before))
                        continue;
                before = mapping.end;
                if (executable) {
                        enum status st = append_mapping(&m, &capacity, &mapping, path, err);

                        if (st)
                                return st;
                }
        }
        *ret = m;
        m = (struct proc_maps){ 0 };
        return ST_OK;
}

void proc_maps_deinit(struct proc_maps *m)
{
        arena_deinit(&m->arena);
        free(m->items);
        *m = (struct proc_maps){ 0 };
}

const struct proc_mapping *proc_maps_find(const struct proc_maps *m, uint64_t addr)
{
        size_t at = find_lower_bound(i, 0, m->count, m->items[i].end <= addr);

        return at < m->count && m->items[at].start <= addr ? &m->items[at] : NULL;
}
