/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of the BPF program are mapped into the agent, so that writing an entry is a store; only the hash of pages is
 * updated by system calls. Space of rows and mappings is allocated in extents that are reused after a grace period.
 * Without a program the arrays are anonymous memory.
 *
 * Order: creation, tables, processes, runtimes.
 */
#include "sampling/unwinding/unwind_maps.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/search.h"

#define SEGMENT_BYTES (UNWIND_SEGMENT_ROWS * sizeof(struct unwind_row))
#define RULES_BYTES (UNWIND_RULES_MAX * sizeof(struct unwind_rule))
#define MAPPINGS_BYTES (UNWIND_MAPPINGS_MAX * sizeof(struct unwind_mapping))
#define BUCKETS_BYTES (UNWIND_BUCKETS * sizeof(struct unwind_bucket))
#define V8_BYTES (V8_LAYOUTS_MAX * sizeof(struct v8_layout))
#define HOTSPOT_BYTES (HOTSPOT_PROCESSES_MAX * sizeof(struct hotspot_process))
#define CONTEXT_BYTES (CONTEXT_PROCESSES_MAX * sizeof(struct context_process))
#define PYTHON_BYTES (PYTHON_PROCESSES_MAX * sizeof(struct python_process))

static const struct unwind_map_fds no_program = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };

/* bpf_map_update_elem(), if there is a map. */
static int update_map(int fd, const void *key, const void *value)
{
        return fd < 0 ? 0 : bpf_map_update_elem(fd, key, value, BPF_ANY);
}

static void delete_from_map(int fd, const void *key)
{
        if (fd >= 0)
                bpf_map_delete_elem(fd, key);
}

static enum status mmap_map_array(int fd, size_t bytes, void *ret, struct error *err)
{
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED, fd, 0);

        if (at == MAP_FAILED)
                return error_os(err, errno, "cannot map an array of unwind tables");
        *(void **)ret = at;
        return ST_OK;
}

enum status unwind_maps_init(struct unwind_maps *m, const struct unwind_map_fds *fds, uint64_t row_bytes,
                             struct error *err)
{
        uint64_t segments = row_bytes / SEGMENT_BYTES;
        enum status st;

        *m = (struct unwind_maps){ .fds = fds ? *fds : no_program };
        m->segment_limit = segments < UNWIND_SEGMENTS_MAX ? (uint32_t)segments : UNWIND_SEGMENTS_MAX;
        if (!extent_alloc_init(&m->rows, m->segment_limit * UNWIND_SEGMENT_ROWS, UNWIND_SEGMENT_ROWS) ||
            !extent_alloc_init(&m->mappings, UNWIND_MAPPINGS_MAX, 0)) {
                unwind_maps_deinit(m);
                return error_no_memory(err);
        }
        st = mmap_map_array(m->fds.rules, RULES_BYTES, &m->rule_items, err);
        if (!st)
                st = mmap_map_array(m->fds.mappings, MAPPINGS_BYTES, &m->mapping_items, err);
        if (!st)
                st = mmap_map_array(m->fds.process_runs, BUCKETS_BYTES, &m->buckets, err);
        if (!st && m->fds.python_processes >= 0)
                st = mmap_map_array(m->fds.python_processes, PYTHON_BYTES, &m->python_items, err);
        if (!st && m->fds.v8_layouts >= 0)
                st = mmap_map_array(m->fds.v8_layouts, V8_BYTES, &m->v8_items, err);
        if (!st && m->fds.hotspot_processes >= 0)
                st = mmap_map_array(m->fds.hotspot_processes, HOTSPOT_BYTES, &m->hotspot_items, err);
        if (!st && m->fds.context_processes >= 0)
                st = mmap_map_array(m->fds.context_processes, CONTEXT_BYTES, &m->context_items, err);
        if (st)
                unwind_maps_deinit(m);
        return st;
}

static void unmap_array(void *at, size_t bytes)
{
        if (at)
                munmap(at, bytes);
}

void unwind_maps_deinit(struct unwind_maps *m)
{
        for (size_t i = 0; i < UNWIND_SEGMENTS_MAX; i++)
                unmap_array(m->segments[i], SEGMENT_BYTES);
        unmap_array(m->rule_items, RULES_BYTES);
        unmap_array(m->mapping_items, MAPPINGS_BYTES);
        unmap_array(m->buckets, BUCKETS_BYTES);
        unmap_array(m->python_items, PYTHON_BYTES);
        unmap_array(m->v8_items, V8_BYTES);
        unmap_array(m->hotspot_items, HOTSPOT_BYTES);
        unmap_array(m->context_items, CONTEXT_BYTES);
        free(m->v8_builds);
        extent_alloc_deinit(&m->rows);
        extent_alloc_deinit(&m->mappings);
        *m = (struct unwind_maps){ 0 };
}

void unwind_maps_write_rules(struct unwind_maps *m, const struct unwind_rules *rules)
{
        memcpy(m->rule_items + m->rules_written, rules->items + m->rules_written,
               (rules->count - m->rules_written) * sizeof *rules->items);
        m->rules_written = rules->count;
}

/* ---- tables -------------------------------------------------------------------- */

static enum status create_row_segment(struct unwind_maps *m, uint32_t segment, struct error *err)
{
        LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
        enum status st;
        int fd;

        if (m->fds.row_segments < 0)
                return mmap_map_array(-1, SEGMENT_BYTES, &m->segments[segment], err);
        fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "rows", sizeof(uint32_t), sizeof(struct unwind_chunk),
                            UNWIND_SEGMENT_ROWS / UNWIND_CHUNK_ROWS, &options);
        if (fd < 0)
                return error_os(err, -fd, "cannot create a BPF map of unwind rows");
        st = mmap_map_array(fd, SEGMENT_BYTES, &m->segments[segment], err);
        if (!st && bpf_map_update_elem(m->fds.row_segments, &segment, &fd, BPF_ANY) < 0)
                st = error_os(err, errno, "cannot add a BPF map of unwind rows");
        if (st && m->segments[segment]) {
                munmap(m->segments[segment], SEGMENT_BYTES);
                m->segments[segment] = NULL;
        }
        close(fd);
        return st;
}

/* Write the rows of consecutive pages, and the page entries. */
static enum status write_rows(struct unwind_maps *m, const struct unwind_table *t, size_t first_page, size_t page_count,
                              struct extent run, struct unwind_loaded_table *p, struct error *err)
{
        uint32_t segment = run.first >> UNWIND_SEGMENT_BITS, at = run.first;
        enum status st = m->segments[segment] ? ST_OK : create_row_segment(m, segment, err);

        if (st)
                return st;
        memcpy((struct unwind_row *)m->segments[segment] + (at & (UNWIND_SEGMENT_ROWS - 1)),
               t->rows + t->pages[first_page].first_row, run.count * sizeof *t->rows);
        for (size_t i = first_page; i < first_page + page_count; i++) {
                const struct unwind_page_key key = { p->table, (uint32_t)t->pages[i].number };
                const struct unwind_page_rows rows = { at, t->pages[i].row_count };

                if (update_map(m->fds.pages, &key, &rows) < 0)
                        return error_set(err, errno == E2BIG || errno == ENOMEM ? ST_TOO_BIG : ST_OS,
                                         "no space for pages of unwind tables");
                p->pages[p->page_count++] = (struct unwind_loaded_page){ key.page, rows };
                m->page_count++;
                at += rows.count;
        }
        return ST_OK;
}

/* Reserve an extent for the rows of several pages from first_page on, fewer when none is large enough. Returns the
   number of pages; 0 when not even one fits. */
static size_t reserve_rows(struct unwind_maps *m, const struct unwind_table *t, size_t first_page, struct extent *ret)
{
        size_t count = 0;
        uint32_t rows = 0;

        while (first_page + count < t->page_count &&
               rows + t->pages[first_page + count].row_count <= UNWIND_SEGMENT_ROWS)
                rows += t->pages[first_page + count++].row_count;
        while (count) {
                size_t half = count / 2;

                if (extent_alloc_reserve(&m->rows, rows, ret))
                        return count;
                while (count > half)
                        rows -= t->pages[first_page + --count].row_count;
        }
        return 0;
}

enum status unwind_maps_add_table(struct unwind_maps *m, const struct unwind_table *t, struct unwind_loaded_table *ret,
                                  struct error *err)
{
        struct unwind_loaded_table p = { .table = ++m->last_table,
                                         .extents = calloc(t->page_count + 1, sizeof *p.extents),
                                         .pages = calloc(t->page_count + 1, sizeof *p.pages) };
        enum status st = p.extents && p.pages ? ST_OK : error_no_memory(err);

        if (!st && t->page_count && t->pages[t->page_count - 1].number > UINT32_MAX)
                st = error_set(err, ST_TOO_BIG, "addresses past 48 bits have no unwind table");
        for (size_t page = 0; !st && page < t->page_count;) {
                struct extent run;
                size_t n = reserve_rows(m, t, page, &run);

                if (!n) {
                        st = error_set(err, ST_TOO_BIG, "no space for rows of unwind tables");
                        break;
                }
                p.extents[p.extent_count++] = run;
                st = write_rows(m, t, page, n, run, &p, err);
                page += n;
        }
        if (st) {
                unwind_maps_remove_table(m, &p);
                return st;
        }
        *ret = p;
        return ST_OK;
}

void unwind_maps_remove_table(struct unwind_maps *m, struct unwind_loaded_table *p)
{
        for (size_t i = 0; i < p->page_count; i++) {
                const struct unwind_page_key key = { p->table, p->pages[i].page };

                delete_from_map(m->fds.pages, &key);
                m->page_count--;
        }
        for (size_t i = 0; i < p->extent_count; i++)
                extent_alloc_release(&m->rows, p->extents[i]);
        free(p->extents);
        free(p->pages);
        *p = (struct unwind_loaded_table){ 0 };
}

static int compare_page_numbers(const void *a, const void *b)
{
        const struct unwind_loaded_page *x = a, *y = b;

        return x->page < y->page ? -1 : x->page > y->page;
}

uint16_t unwind_maps_find_rule(const struct unwind_maps *m, const struct unwind_loaded_table *table, uint64_t address)
{
        const struct unwind_loaded_page wanted = { .page = (uint32_t)(address >> UNWIND_PAGE_BITS) }, *found = NULL;
        const struct unwind_row *rows;
        size_t next;

        if (table->page_count && address >> UNWIND_PAGE_BITS <= UINT32_MAX)
                found = bsearch(&wanted, table->pages, table->page_count, sizeof wanted, compare_page_numbers);
        if (!found)
                return UNWIND_RULE_GAP;
        rows = (const struct unwind_row *)m->segments[found->rows.first >> UNWIND_SEGMENT_BITS] +
               (found->rows.first & (UNWIND_SEGMENT_ROWS - 1));
        next = find_lower_bound(i, 0, found->rows.count, rows[i].offset <= (address & (UNWIND_PAGE_SIZE - 1)));
        return next ? rows[next - 1].rule : UNWIND_RULE_GAP;
}

/* ---- processes -------------------------------------------------------------------- */

/* The slot of a process, or a free one; NULL when the bucket is full. */
static __u64 *find_process_slot(struct unwind_maps *m, uint32_t tgid)
{
        __u64 *runs = m->buckets[unwind_bucket_index(tgid)].runs, *free_place = NULL;

        for (size_t i = 0; i < UNWIND_BUCKET_RUNS; i++) {
                if ((uint32_t)runs[i] == tgid)
                        return &runs[i];
                if (!runs[i] && !free_place)
                        free_place = &runs[i];
        }
        return free_place;
}

/*
 * Whether the slot belongs to a later life of the pid: lives are written when their tables are ready, in any
 * order.
 */
static bool is_of_later_life(const struct unwind_maps *m, __u64 run, const struct sample_process *id)
{
        const struct unwind_process *head = (const void *)&m->mapping_items[run >> 32];

        if (!run || head->start_boot_ns < id->start_boot_ns)
                return false;
        return head->start_boot_ns > id->start_boot_ns || head->exec_id > id->exec_id;
}

/* A head and its mappings, rounded up to an even number, so that each head begins a cache line. */
static bool reserve_process_mappings(struct unwind_maps *m, uint32_t mapping_count, struct extent *ret)
{
        return extent_alloc_reserve(&m->mappings, (mapping_count + 2) & ~1u, ret);
}

static void write_process_mappings(struct unwind_maps *m, const struct unwind_process *head,
                                   const struct unwind_mapping *mappings, uint32_t first)
{
        struct unwind_mapping *at = m->mapping_items + first;

        memcpy(at++, head, sizeof *head);
        for (uint32_t i = 0; i < head->mapping_count; i++) {
                at[i] = mappings[i];
                at[i].generation = head->generation;
        }
}

enum status unwind_maps_set_process(struct unwind_maps *m, const struct sample_process *id,
                                    const struct unwind_process_mappings *mappings, struct extent *run,
                                    struct error *err)
{
        __u64 *slot = find_process_slot(m, id->tgid);
        struct extent old = *run, now;
        struct unwind_process head = { .start_boot_ns = id->start_boot_ns,
                                       .exec_id = id->exec_id,
                                       .generation = mappings->generation,
                                       .executable_pages = (uint32_t)mappings->executable_pages,
                                       .context = (uint16_t)mappings->context,
                                       .python = (uint16_t)mappings->python,
                                       .v8 = (uint16_t)mappings->v8,
                                       .hotspot = (uint16_t)mappings->hotspot };
        bool fits;

        if (slot && is_of_later_life(m, *slot, id))
                return ST_OK;
        fits = mappings->count <= UNWIND_PROCESS_MAPPINGS_MAX && mappings->count <= mappings->count_max &&
               reserve_process_mappings(m, mappings->count, &now);
        head.mapping_count = fits ? (uint16_t)mappings->count : 0;
        if (!fits && !reserve_process_mappings(m, 0, &now))
                return error_set(err, ST_TOO_BIG, "no space for another process in the BPF map");
        if (!slot) {
                extent_alloc_release(&m->mappings, now);
                return error_set(err, ST_TOO_BIG, "no space for another process in the BPF map");
        }
        assert(now.count > head.mapping_count);
        write_process_mappings(m, &head, mappings->items, now.first);
        __atomic_store_n(slot, (uint64_t)now.first << 32 | id->tgid, __ATOMIC_RELEASE);
        extent_alloc_release(&m->mappings, old);
        *run = now;
        return fits ? ST_OK : error_set(err, ST_TOO_BIG, "process %u has too many executable mappings", id->tgid);
}

void unwind_maps_request_notice(struct unwind_maps *m, uint32_t tgid)
{
        delete_from_map(m->fds.known, &tgid);
}

void unwind_maps_remove_process(struct unwind_maps *m, const struct sample_process *id, struct extent *run)
{
        __u64 *slot = find_process_slot(m, id->tgid);

        if (run->count && slot &&
            *slot == ((uint64_t)run->first << 32 | id->tgid)) { /* else it belongs to another life */
                __atomic_store_n(slot, 0, __ATOMIC_RELAXED);
                unwind_maps_request_notice(m, id->tgid);
        }
        extent_alloc_release(&m->mappings, *run);
        *run = (struct extent){ 0 };
}

/* ---- runtimes ---- */

bool unwind_maps_have_python(const struct unwind_maps *m)
{
        return m->python_items;
}

uint32_t unwind_maps_add_python(struct unwind_maps *m, const struct python_process *p)
{
        for (uint32_t number = 1; m->python_items && number < PYTHON_PROCESSES_MAX; number++) {
                if (m->python_used[number])
                        continue;
                m->python_used[number] = true;
                m->python_items[number] = *p;
                return number;
        }
        return 0;
}

void unwind_maps_remove_python(struct unwind_maps *m, uint32_t number)
{
        if (number)
                m->python_used[number] = false;
}

bool unwind_maps_have_hotspot(const struct unwind_maps *m)
{
        return m->hotspot_items;
}

uint32_t unwind_maps_add_hotspot(struct unwind_maps *m, const struct hotspot_process *p)
{
        for (uint32_t number = 1; m->hotspot_items && number < HOTSPOT_PROCESSES_MAX; number++) {
                if (m->hotspot_used[number])
                        continue;
                m->hotspot_used[number] = true;
                m->hotspot_items[number] = *p;
                return number;
        }
        return 0;
}

void unwind_maps_remove_hotspot(struct unwind_maps *m, uint32_t number)
{
        if (number)
                m->hotspot_used[number] = false;
}

bool unwind_maps_have_context(const struct unwind_maps *m)
{
        return m->context_items;
}

uint32_t unwind_maps_add_context(struct unwind_maps *m, const struct context_process *p)
{
        for (uint32_t number = 1; m->context_items && number < CONTEXT_PROCESSES_MAX; number++) {
                if (m->context_used[number])
                        continue;
                m->context_used[number] = true;
                m->context_items[number] = *p;
                return number;
        }
        return 0;
}

void unwind_maps_remove_context(struct unwind_maps *m, uint32_t number)
{
        if (number)
                m->context_used[number] = false;
}

bool unwind_maps_have_v8(const struct unwind_maps *m)
{
        return m->v8_items;
}

uint32_t unwind_maps_add_v8(struct unwind_maps *m, const struct v8_symbols *s)
{
        if (!m->v8_builds)
                m->v8_builds = calloc(V8_LAYOUTS_MAX, sizeof *m->v8_builds);
        if (!m->v8_builds || !s->objects.version)
                return V8_UNSUPPORTED;
        for (uint32_t number = 1; number <= m->v8_count; number++)
                if (memcmp(&m->v8_builds[number], s, sizeof *s) == 0)
                        return number;
        if (m->v8_count + 1 == V8_LAYOUTS_MAX)
                return V8_UNSUPPORTED;
        m->v8_builds[++m->v8_count] = *s;
        if (m->v8_items)
                m->v8_items[m->v8_count] = s->layout;
        return m->v8_count;
}

const struct v8_objects *unwind_maps_get_v8(const struct unwind_maps *m, uint32_t number)
{
        return &m->v8_builds[number].objects;
}

void unwind_maps_reclaim(struct unwind_maps *m)
{
        extent_alloc_reclaim(&m->rows);
        extent_alloc_reclaim(&m->mappings);
}
