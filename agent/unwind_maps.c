/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEGMENT_BYTES (UNWIND_SEGMENT_ROWS * sizeof(struct unwind_row))
#define RULES_BYTES (UNWIND_RULES_MAX * sizeof(struct unwind_rule))
#define MAPPINGS_BYTES (UNWIND_MAPPINGS_MAX * sizeof(struct unwind_mapping))
#define BUCKETS_BYTES (UNWIND_BUCKETS * sizeof(struct unwind_bucket))

static const struct unwind_map_fds no_program = { -1, -1, -1, -1, -1, -1 };

/* As bpf_map_update_elem(), where there is a map. */
static int update(int fd, const void *key, const void *value)
{
        return fd < 0 ? 0 : bpf_map_update_elem(fd, key, value, BPF_ANY);
}

static void delete(int fd, const void *key)
{
        if (fd >= 0)
                bpf_map_delete_elem(fd, key);
}

static enum status map_array(int fd, size_t bytes, void *ret, struct error *err)
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
        if (!runs_init(&m->rows, m->segment_limit * UNWIND_SEGMENT_ROWS, UNWIND_SEGMENT_ROWS) ||
            !runs_init(&m->mappings, UNWIND_MAPPINGS_MAX, 0)) {
                unwind_maps_deinit(m);
                return error_no_memory(err);
        }
        st = map_array(m->fds.rules, RULES_BYTES, &m->rule_items, err);
        if (!st)
                st = map_array(m->fds.mappings, MAPPINGS_BYTES, &m->mapping_items, err);
        if (!st)
                st = map_array(m->fds.process_runs, BUCKETS_BYTES, &m->buckets, err);
        if (st)
                unwind_maps_deinit(m);
        return st;
}

static void unmap(void *at, size_t bytes)
{
        if (at)
                munmap(at, bytes);
}

void unwind_maps_deinit(struct unwind_maps *m)
{
        for (size_t i = 0; i < UNWIND_SEGMENTS_MAX; i++)
                unmap(m->segments[i], SEGMENT_BYTES);
        unmap(m->rule_items, RULES_BYTES);
        unmap(m->mapping_items, MAPPINGS_BYTES);
        unmap(m->buckets, BUCKETS_BYTES);
        runs_deinit(&m->rows);
        runs_deinit(&m->mappings);
        *m = (struct unwind_maps){ 0 };
}

void unwind_maps_rules(struct unwind_maps *m, const struct unwind_rules *rules)
{
        memcpy(m->rule_items + m->rules_written, rules->items + m->rules_written,
               (rules->count - m->rules_written) * sizeof *rules->items);
        m->rules_written = rules->count;
}

/* ---- tables -------------------------------------------------------------------- */

static enum status make_segment(struct unwind_maps *m, uint32_t segment, struct error *err)
{
        LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
        enum status st;
        int fd;

        if (m->fds.row_segments < 0)
                return map_array(-1, SEGMENT_BYTES, &m->segments[segment], err);
        fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "rows", sizeof(uint32_t), sizeof(struct unwind_chunk),
                            UNWIND_SEGMENT_ROWS / UNWIND_CHUNK_ROWS, &options);
        if (fd < 0)
                return error_os(err, -fd, "cannot create a BPF map of unwind rows");
        st = map_array(fd, SEGMENT_BYTES, &m->segments[segment], err);
        if (!st && bpf_map_update_elem(m->fds.row_segments, &segment, &fd, BPF_ANY) < 0)
                st = error_os(err, errno, "cannot add a BPF map of unwind rows");
        if (st && m->segments[segment]) {
                munmap(m->segments[segment], SEGMENT_BYTES);
                m->segments[segment] = NULL;
        }
        close(fd);
        return st;
}

/* Rows of some pages that follow each other, and the pages. */
static enum status place(struct unwind_maps *m, const struct unwind_table *t, size_t first_page, size_t page_count,
                         struct run_of_numbers run, struct unwind_placed *p, struct error *err)
{
        uint32_t segment = run.first >> UNWIND_SEGMENT_BITS, at = run.first;
        enum status st = m->segments[segment] ? ST_OK : make_segment(m, segment, err);

        if (st)
                return st;
        memcpy((struct unwind_row *)m->segments[segment] + (at & (UNWIND_SEGMENT_ROWS - 1)),
               t->rows + t->pages[first_page].first_row, run.count * sizeof *t->rows);
        for (size_t i = first_page; i < first_page + page_count; i++) {
                const struct unwind_page_key key = { p->table, (uint32_t)t->pages[i].number };
                const struct unwind_page_rows rows = { at, t->pages[i].row_count };

                if (update(m->fds.pages, &key, &rows) < 0)
                        return error_set(err, errno == E2BIG || errno == ENOMEM ? ST_TOO_BIG : ST_OS,
                                         "no room for pages of unwind tables");
                p->pages[p->page_count++] = (struct unwind_placed_page){ key.page, rows };
                m->page_count++;
                at += rows.count;
        }
        return ST_OK;
}

/* How many pages from here on fit a run that can be had; 0 none. */
static size_t take_run(struct unwind_maps *m, const struct unwind_table *t, size_t first_page,
                       struct run_of_numbers *ret)
{
        size_t count = 0;
        uint32_t rows = 0;

        while (first_page + count < t->page_count && rows + t->pages[first_page + count].row_count <= UNWIND_SEGMENT_ROWS)
                rows += t->pages[first_page + count++].row_count;
        while (count) {
                size_t half = count / 2;

                if (runs_take(&m->rows, rows, ret))
                        return count;
                while (count > half)
                        rows -= t->pages[first_page + --count].row_count;
        }
        return 0;
}

enum status unwind_maps_add(struct unwind_maps *m, const struct unwind_table *t, struct unwind_placed *ret,
                            struct error *err)
{
        struct unwind_placed p = { .table = ++m->last_table, .runs = calloc(t->page_count + 1, sizeof *p.runs),
                                   .pages = calloc(t->page_count + 1, sizeof *p.pages) };
        enum status st = p.runs && p.pages ? ST_OK : error_no_memory(err);

        if (!st && t->page_count && t->pages[t->page_count - 1].number > UINT32_MAX)
                st = error_set(err, ST_TOO_BIG, "addresses past 48 bits have no unwind table");
        for (size_t page = 0; !st && page < t->page_count;) {
                struct run_of_numbers run;
                size_t n = take_run(m, t, page, &run);

                if (!n) {
                        st = error_set(err, ST_TOO_BIG, "no room for rows of unwind tables");
                        break;
                }
                p.runs[p.run_count++] = run;
                st = place(m, t, page, n, run, &p, err);
                page += n;
        }
        if (st) {
                unwind_maps_remove(m, &p);
                return st;
        }
        *ret = p;
        return ST_OK;
}

void unwind_maps_remove(struct unwind_maps *m, struct unwind_placed *p)
{
        for (size_t i = 0; i < p->page_count; i++) {
                const struct unwind_page_key key = { p->table, p->pages[i].page };

                delete(m->fds.pages, &key);
                m->page_count--;
        }
        for (size_t i = 0; i < p->run_count; i++)
                runs_give_back(&m->rows, p->runs[i]);
        free(p->runs);
        free(p->pages);
        *p = (struct unwind_placed){ 0 };
}

static int compare_pages(const void *a, const void *b)
{
        const struct unwind_placed_page *x = a, *y = b;

        return x->page < y->page ? -1 : x->page > y->page;
}

uint16_t unwind_maps_rule(const struct unwind_maps *m, const struct unwind_placed *table, uint64_t address)
{
        const struct unwind_placed_page wanted = { .page = (uint32_t)(address >> UNWIND_PAGE_BITS) }, *found = NULL;
        const struct unwind_row *rows;
        uint32_t low = 0, high;

        if (table->page_count && address >> UNWIND_PAGE_BITS <= UINT32_MAX)
                found = bsearch(&wanted, table->pages, table->page_count, sizeof wanted, compare_pages);
        if (!found)
                return UNWIND_RULE_GAP;
        rows = (const struct unwind_row *)m->segments[found->rows.first >> UNWIND_SEGMENT_BITS] +
               (found->rows.first & (UNWIND_SEGMENT_ROWS - 1));
        high = found->rows.count;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (rows[middle].offset <= (address & (UNWIND_PAGE_SIZE - 1)))
                        low = middle + 1;
                else
                        high = middle;
        }
        return low ? rows[low - 1].rule : UNWIND_RULE_GAP;
}

/* ---- processes -------------------------------------------------------------------- */

/* Where a process's run is noted, or could be; NULL without room. */
static __u64 *place_of_process(struct unwind_maps *m, uint32_t tgid)
{
        __u64 *runs = m->buckets[unwind_bucket_of(tgid)].runs, *free_place = NULL;

        for (size_t i = 0; i < UNWIND_BUCKET_RUNS; i++) {
                if ((uint32_t)runs[i] == tgid)
                        return &runs[i];
                if (!runs[i] && !free_place)
                        free_place = &runs[i];
        }
        return free_place;
}

/* Does a later life of the number have its run there? Lives are told of when their tables are there, in any order. */
static bool is_of_later_life(const struct unwind_maps *m, __u64 run, const struct sample_process *id)
{
        const struct unwind_process *head = (const void *)&m->mapping_items[run >> 32];

        if (!run || head->start_boot_ns < id->start_boot_ns)
                return false;
        return head->start_boot_ns > id->start_boot_ns || head->exec_id > id->exec_id;
}

/* A head and its mappings; of an even number, so that each head begins a line of the cache. */
static bool take_process_run(struct unwind_maps *m, uint32_t mapping_count, struct run_of_numbers *ret)
{
        return runs_take(&m->mappings, (mapping_count + 2) & ~1u, ret);
}

static void write_process_run(struct unwind_maps *m, const struct unwind_process *head, const struct unwind_mapping *mappings,
                              uint32_t first)
{
        struct unwind_mapping *at = m->mapping_items + first;

        memcpy(at++, head, sizeof *head);
        for (uint32_t i = 0; i < head->mapping_count; i++) {
                at[i] = mappings[i];
                at[i].generation = head->generation;
        }
}

enum status unwind_maps_process(struct unwind_maps *m, const struct sample_process *id, uint64_t executable_pages,
                                uint32_t generation, const struct unwind_mapping *mappings, uint32_t count, uint64_t count_max,
                                struct run_of_numbers *run, struct error *err)
{
        __u64 *place = place_of_process(m, id->tgid);
        struct run_of_numbers old = *run, now;
        struct unwind_process head = { .start_boot_ns = id->start_boot_ns, .exec_id = id->exec_id, .generation = generation,
                                       .executable_pages = executable_pages };
        bool fits;

        if (place && is_of_later_life(m, *place, id))
                return ST_OK;
        fits = count <= UNWIND_PROCESS_MAPPINGS_MAX && count <= count_max && take_process_run(m, count, &now);
        head.mapping_count = fits ? count : 0;
        if (!fits && !take_process_run(m, 0, &now))
                return error_set(err, ST_TOO_BIG, "no room for one more process to unwind");
        if (!place) {
                runs_give_back(&m->mappings, now);
                return error_set(err, ST_TOO_BIG, "no room for one more process to unwind");
        }
        write_process_run(m, &head, mappings, now.first);
        __atomic_store_n(place, (uint64_t)now.first << 32 | id->tgid, __ATOMIC_RELEASE);
        runs_give_back(&m->mappings, old);
        *run = now;
        return fits ? ST_OK : error_set(err, ST_TOO_BIG, "process %u has too many executable mappings", id->tgid);
}

void unwind_maps_ask(struct unwind_maps *m, uint32_t tgid)
{
        delete(m->fds.known, &tgid);
}

void unwind_maps_forget(struct unwind_maps *m, const struct sample_process *id, struct run_of_numbers *run)
{
        __u64 *place = place_of_process(m, id->tgid);

        if (run->count && place && *place == ((uint64_t)run->first << 32 | id->tgid)) { /* else another life of it is there */
                __atomic_store_n(place, 0, __ATOMIC_RELAXED);
                unwind_maps_ask(m, id->tgid);
        }
        runs_give_back(&m->mappings, *run);
        *run = (struct run_of_numbers){ 0 };
}

void unwind_maps_settle(struct unwind_maps *m)
{
        runs_settle(&m->rows);
        runs_settle(&m->mappings);
}
