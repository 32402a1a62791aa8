/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table belongs to an object and has a state: UNKNOWN, WAITING for a worker, then READY (in the kernel), SAME (equal
 * to a READY table, which is used in its place) or NONE (no CFI, failed, or over quota). Eviction and lack of space
 * lead back to UNKNOWN, so that it is requested again when a process maps the file; FREE numbers are reused.
 *
 * Path of a table: unwinder_set_process() calls request_table() for each mapping; unwinder_poll() takes what workers
 * have built, and load_table() finds an equal table or charges the quota and writes to the BPF maps. A process with a
 * WAITING table is not written to the kernel: the process table calls unwinder_set_process() again after
 * unwinder_poll() returned true. The new state of a process counts its tables before the old state releases them, so
 * that a shared one is never unused.
 *
 * unwinder_find_rule() repeats the lookup of the BPF program, for stacks that are unwound in user space.
 *
 * Order: tables, building and loading, creation and destruction, processes, lookup.
 */
#include "sampling/unwinding/unwinder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash/id_table.h"
#include "common/memory/array.h"
#include "common/search.h"
#include "sampling/objects/object_cache.h"
#include "sampling/objects/vdso.h"
#include "sampling/unwinding/unwind_eviction.h"
#include "sampling/unwinding/unwind_result.h"
#include "sampling/unwinding/unwinder_internal.h"

#define WORKER_RETRY_NS (60 * INT64_C(1000000000))

/* ---- tables, by number ---- */

static inline struct unwinder_table *get_table(struct unwinder *u, uint32_t number)
{
        assert(number && number <= u->table_count);
        return &u->tables[number - 1];
}

/* The number of the object's table, created if necessary; 0 without memory. */
static uint32_t add_table(struct unwinder *u, const struct object *o)
{
        uint32_t number;

        if (id_table_find(u->by_object, &o->serial, sizeof o->serial, &number))
                return number;
        for (; u->free_from < u->table_count; u->free_from++) {
                if (u->tables[u->free_from].state != TABLE_FREE)
                        continue;
                if (!id_table_put(u->by_object, &o->serial, sizeof o->serial, (uint32_t)u->free_from + 1))
                        return 0;
                u->tables[u->free_from] = (struct unwinder_table){ 0 };
                return (uint32_t)u->free_from + 1;
        }
        if (u->table_count >= UINT32_MAX - 1 || !array_reserve(&u->tables, &u->table_capacity, u->table_count))
                return 0;
        u->tables[u->table_count] = (struct unwinder_table){ 0 };
        number = (uint32_t)u->table_count + 1;
        if (!id_table_put(u->by_object, &o->serial, sizeof o->serial, number))
                return 0;
        u->free_from = ++u->table_count;
        return number;
}

/* The number of the table that holds the content of this one. */
static uint32_t resolve_table(const struct unwinder *u, uint32_t number)
{
        const struct unwinder_table *t = &u->tables[number - 1];

        return t->state == TABLE_SAME ? t->same_as : number;
}

/* Rule numbers are permanent, so equal tables have equal bytes. False without memory. */
static bool hash_table_content(const struct unwind_table *t, uint8_t ret[static SHA256_BYTES])
{
        _cleanup_sha256_ struct sha256 s = { 0 };

        if (sha256_init(&s, NULL))
                return false;
        sha256_update(&s, t->pages, t->page_count * sizeof *t->pages);
        sha256_update(&s, t->rows, t->row_count * sizeof *t->rows);
        sha256_final(&s, ret);
        return true;
}

/* The number of the loaded table with this content; 0 none. */
static uint32_t find_table_by_content(struct unwinder *u, const uint8_t content[static SHA256_BYTES])
{
        const struct unwinder_table *t;
        uint32_t number;

        if (!id_table_find(u->by_content, content, SHA256_BYTES, &number))
                return 0;
        t = get_table(u, number);
        return t->state == TABLE_READY && memcmp(t->content, content, SHA256_BYTES) == 0 ? number : 0;
}

static void load_table(struct unwinder *u, uint32_t number, const struct unwind_table *built)
{
        struct unwinder_table *t = get_table(u, number);
        bool digested = hash_table_content(built, t->content);
        uint32_t same = digested ? find_table_by_content(u, t->content) : 0;
        struct error err;

        if (same && same != number) {
                t->state = TABLE_SAME;
                t->same_as = same;
                return;
        }
        unwind_maps_write_rules(&u->maps, &u->rules);
        u->stats.rules = u->rules.count;
        if (!unwind_evict_for_quota(u, t->owner, built)) {
                t->state = TABLE_NONE;
                u->stats.tables_over_quota++;
                return;
        }
        if (unwind_maps_add_table(&u->maps, built, &t->placed, &err)) {
                /* Evicted space is free at the next drain; the table of this object is requested again then. */
                unwind_evict_rows(u, built->row_count);
                t->state = TABLE_UNKNOWN;
                u->stats.tables_refused++;
                return;
        }
        unwind_quota_charge(&u->quota, t->owner, UNWIND_ROWS, unwind_count_loaded_rows(&t->placed));
        unwind_quota_charge(&u->quota, t->owner, UNWIND_PAGES, t->placed.page_count);
        t->state = TABLE_READY;
        u->stats.tables_ready++;
        if (digested)
                (void)id_table_put(u->by_content, t->content, sizeof t->content,
                                   number); /* on failure the table is not shared */
}

/* Read the table that the worker built, within the rule quota of its owner. */
static bool read_built_table(struct unwinder *u, const struct unwind_built *built, struct unwind_table *ret)
{
        uint32_t owner = get_table(u, built->ticket)->owner;
        struct unwind_rules_part part = { .left = unwind_quota_get_remaining(&u->quota, owner, UNWIND_RULES) };
        struct unwinder_table *t = get_table(u, built->ticket);
        struct runtime_symbols runtimes;
        bool read = built->fd >= 0 && !unwind_result_read(built->fd, &u->rules, &part, ret, &runtimes, NULL);

        if (read) {
                t->python = runtimes.python;
                t->hotspot = runtimes.hotspot;
                t->context = runtimes.context;
                t->go = runtimes.go;
                t->v8 = runtimes.has_v8 ? unwind_maps_add_v8(&u->maps, &runtimes.v8) : 0;
        }

        unwind_quota_charge(&u->quota, owner, UNWIND_RULES, part.taken);
        if (part.left)
                u->stats.rules_refused += part.refused;
        else
                u->stats.rules_over_quota += part.refused;
        return read && ret->row_count;
}

/* A table for which no worker was there is counted once, although it is requested again. */
static void note_missing_table(struct unwinder *u, const struct unwind_built *built)
{
        struct unwinder_table *t = get_table(u, built->ticket);
        bool no_worker = built->end == UNWIND_BUILD_NO_WORKER;

        t->state = TABLE_NONE;
        if (no_worker)
                u->stats.tables_no_worker += !t->retry_ns;
        else if (built->end == UNWIND_BUILD_FAILED)
                u->stats.tables_failed++;
        else
                u->stats.tables_none++;
        t->retry_ns = no_worker ? monotonic_ns() + WORKER_RETRY_NS : 0;
}

static void take_built_table(struct unwinder *u, const struct unwind_built *built)
{
        _cleanup_unwind_table_ struct unwind_table t = { 0 };

        u->tables_waiting--;
        if (!read_built_table(u, built, &t)) {
                note_missing_table(u, built);
        } else {
                load_table(u, built->ticket, &t);
        }
        if (built->fd >= 0)
                close(built->fd);
}

/* The vDSO image is from the kernel and needs no worker. */
static void build_vdso_table(struct unwinder *u, uint32_t number)
{
        const void *image;
        size_t size;
        _cleanup_unwind_table_ struct unwind_table t = { 0 };
        struct elf_image elf;

        get_table(u, number)->state = TABLE_NONE;
        if (!vdso_get_image(&image, &size) || elf_image_from_memory(image, size, "[vdso]", &elf, NULL))
                return;
        if (!unwind_table_build(&elf, &u->rules, &t, NULL) && t.row_count)
                load_table(u, number, &t);
        elf_image_close(&elf);
}

/* Where the files of a process are, and on whose account: parameters of unwinder_set_process(). */
struct file_source {
        int proc_fd;
        const char *container;
};

/* Request the table of a mapped file unless it was requested before. */
static void request_table(struct unwinder *u, const struct file_source *source, const struct proc_mapping *m,
                          uint32_t number)
{
        struct unwinder_table *t = get_table(u, number);
        struct stat st;
        int fd;

        if (t->state == TABLE_NONE && t->retry_ns && monotonic_ns() >= t->retry_ns)
                t->state = TABLE_UNKNOWN;
        if (t->state != TABLE_UNKNOWN)
                return;
        if (strcmp(m->path, "[vdso]") == 0) {
                build_vdso_table(u, number);
                return;
        }
        fd = source->proc_fd < 0 ? -1 : object_cache_open(source->proc_fd, m);
        if (fd < 0)
                return;
        if (fstat(fd, &st) == 0)
                t->owner = unwind_quota_get_owner(&u->quota, st.st_uid, source->container);
        if (unwind_builder_request(u->builder, number, fd)) {
                t->state = TABLE_WAITING;
                u->tables_waiting++;
        }
}

bool unwinder_poll(struct unwinder *u)
{
        struct unwind_built built;
        bool any = false;

        while (unwind_builder_take(u->builder, &built)) {
                take_built_table(u, &built);
                any = true;
        }
        return any;
}

void unwinder_forget_objects(struct unwinder *u)
{
        id_table_deinit(u->by_object);
        for (size_t i = 0; i < u->table_count; i++) {
                struct unwinder_table *t = &u->tables[i];

                if (!t->users && t->state != TABLE_READY && t->state != TABLE_WAITING)
                        t->state = TABLE_FREE;
        }
        u->free_from = 0;
}

enum status unwinder_init(struct unwinder *u, const struct unwind_map_fds *fds, struct fork_server *fork_server,
                          uint64_t row_bytes, struct error *err)
{
        const uint64_t sizes[UNWIND_RESOURCE_COUNT] = {
                [UNWIND_RULES] = UNWIND_RULES_MAX,
                [UNWIND_ROWS] = row_bytes / sizeof(struct unwind_row),
                [UNWIND_PAGES] = UNWIND_PAGES_MAX,
                [UNWIND_MAPPINGS] = UNWIND_MAPPINGS_MAX,
        };
        enum status st;

        *u = (struct unwinder){ .by_object = calloc(1, sizeof *u->by_object),
                                .by_content = calloc(1, sizeof *u->by_content) };
        if (!u->by_object || !u->by_content) {
                unwinder_deinit(u);
                return error_no_memory(err);
        }
        unwind_quota_init(&u->quota, sizes, geteuid());
        st = unwind_maps_init(&u->maps, fds, row_bytes, err);
        if (!st)
                st = unwind_rules_init(&u->rules, err);
        if (!st)
                st = unwind_builder_create(fork_server, &u->builder, err);
        if (st)
                unwinder_deinit(u);
        else
                unwind_maps_write_rules(&u->maps, &u->rules);
        return st;
}

void unwinder_deinit(struct unwinder *u)
{
        unwind_builder_destroy(u->builder);
        for (size_t i = 0; i < u->table_count; i++) {
                free(u->tables[i].placed.extents);
                free(u->tables[i].placed.pages);
        }
        free(u->tables);
        if (u->by_object)
                id_table_deinit(u->by_object);
        if (u->by_content)
                id_table_deinit(u->by_content);
        free(u->by_object);
        free(u->by_content);
        unwind_quota_deinit(&u->quota);
        unwind_rules_deinit(&u->rules);
        unwind_maps_deinit(&u->maps);
        *u = (struct unwinder){ 0 };
}

/* ---- processes ------------------------------------------------------------------ */

static void release_tables(struct unwinder *u, struct unwinder_process *p)
{
        for (size_t i = 0; i < p->table_count; i++) {
                get_table(u, p->tables[i])->users--;
                get_table(u, p->tables[i])->used_at = ++u->clock;
        }
        free(p->tables);
        free(p->mappings);
        free(p->numbers);
}

/* An interpreter in a file that the process maps with this bias. The first one counts. */
static void note_python(const struct python_symbols *s, uint64_t bias, struct unwinder_process *p)
{
        if (!s->runtime || p->python.runtime)
                return;
        p->python.runtime = s->runtime + bias;
        p->python.version = s->version ? s->version + bias : 0;
        p->python.code_type = s->code_type ? s->code_type + bias : 0;
        p->python.text_type = s->text_type ? s->text_type + bias : 0;
        p->python.eval = s->eval + bias;
        p->python.eval_bytes = s->eval_bytes;
}

static void note_hotspot(const struct hotspot_symbols *s, uint64_t bias, struct unwinder_process *p)
{
        if (s->structs && !p->hotspot.structs)
                p->hotspot = (struct hotspot_symbols){ s->structs + bias, s->types + bias, s->struct_stride + bias,
                                                       s->type_stride + bias };
}

static void move_context_slots(struct context_symbols *s, uint64_t bias)
{
        if (s->descriptor_slot)
                s->descriptor_slot += bias;
        if (s->module_slot)
                s->module_slot += bias;
        if (s->offset_slot)
                s->offset_slot += bias;
}

/* The variable of a program takes precedence, as in the dynamic linker. */
static void note_context(const struct context_symbols *s, uint64_t bias, struct unwinder_process *p)
{
        if (!s->is_defined || p->context.is_program || (p->context.is_defined && !s->is_program))
                return;
        p->context = *s;
        move_context_slots(&p->context, bias);
}

/* The first one counts: a program with a library of Go in it has two. */
static void note_go(const struct go_symbols *s, uint64_t bias, struct unwinder_process *p)
{
        if (s->state == GO_LABELS_NONE || p->go.state != GO_LABELS_NONE)
                return;
        p->go = *s;
        move_context_slots(&p->go.g, bias);
}

/* Set mapping i of the process from m, which shows the object o or, when that is NULL, an unknown file. */
static void fill_mapping(struct unwinder *u, const struct file_source *source, const struct proc_mapping *m,
                         const struct object *o, struct unwinder_process *p, size_t i)
{
        struct unwind_mapping *ret = &p->mappings[i];
        uint32_t number = o ? add_table(u, o) : 0;
        uint64_t address;

        *ret = (struct unwind_mapping){ .start = m->start, .end = m->end, .table = UNWIND_TABLE_NONE };
        if (!number || !object_find_code_address(o, m->file_offset, m->end - m->start, &address))
                return;
        request_table(u, source, m, number);
        if (get_table(u, number)->state == TABLE_WAITING)
                p->waits = true;
        note_python(&get_table(u, number)->python, m->start - address, p);
        note_hotspot(&get_table(u, number)->hotspot, m->start - address, p);
        note_context(&get_table(u, number)->context, m->start - address, p);
        note_go(&get_table(u, number)->go, m->start - address, p);
        if (!p->v8)
                p->v8 = get_table(u, number)->v8;
        number = resolve_table(u, number);
        if (get_table(u, number)->state != TABLE_READY)
                return;
        p->numbers[i] = number;
        ret->table = get_table(u, number)->placed.table;
        ret->bias = m->start - address;
        for (size_t k = 0; k < p->table_count; k++)
                if (p->tables[k] == number)
                        return;
        p->tables[p->table_count++] = number;
        get_table(u, number)->users++;
}

/* Write the mappings to the kernel, within the quota of their owner. */
static void write_process(struct unwinder *u, const struct sample_process *id, struct unwinder_process *p)
{
        uint64_t before = p->run.count, left = unwind_quota_get_remaining(&u->quota, p->owner, UNWIND_MAPPINGS);
        const struct unwind_process_mappings mappings = {
                .executable_pages = p->executable_pages,
                .generation = ++u->last_generation,
                .items = p->mappings,
                .count = p->mapping_count,
                .python = p->python_number,
                .v8 = p->v8_number,
                .hotspot = p->hotspot_number,
                .context = p->context_number,
                .count_max = left > UINT64_MAX - before ? left : left + before,
        };
        enum status st = unwind_maps_set_process(&u->maps, id, &mappings, &p->run, NULL);

        unwind_quota_refund(&u->quota, p->owner, UNWIND_MAPPINGS, before);
        unwind_quota_charge(&u->quota, p->owner, UNWIND_MAPPINGS, p->run.count);
        if (st && mappings.count > mappings.count_max)
                u->stats.processes_over_quota++;
        else if (st)
                u->stats.processes_refused++;
}

void unwinder_set_process(struct unwinder *u, const struct sample_process *id, int proc_fd, const char *container,
                          const struct proc_maps *maps, const struct object *const *objects, struct unwinder_process *p)
{
        struct unwinder_process now = { .run = p->run,
                                        .executable_pages = p->executable_pages,
                                        .has_owner = p->has_owner,
                                        .owner = p->owner,
                                        .python_number = p->python_number,
                                        .v8_number = p->v8_number,
                                        .hotspot_number = p->hotspot_number,
                                        .context_number = p->context_number,
                                        .mappings = calloc(maps->count + 1, sizeof *now.mappings),
                                        .numbers = calloc(maps->count + 1, sizeof *now.numbers),
                                        .tables = calloc(maps->count + 1, sizeof *now.tables) };
        const struct file_source source = { proc_fd, container };
        struct stat st;

        if (!now.mappings || !now.numbers || !now.tables) {
                free(now.mappings);
                free(now.numbers);
                free(now.tables);
                return;
        }
        now.mapping_count = (uint32_t)maps->count;
        if (!now.has_owner && proc_fd >= 0 && fstat(proc_fd, &st) == 0) {
                now.owner = unwind_quota_get_owner(&u->quota, st.st_uid, container);
                now.has_owner = true;
        }
        for (size_t i = 0; i < maps->count; i++)
                fill_mapping(u, &source, &maps->items[i], objects[i], &now, i);
        if (!now.executable_pages)
                unwind_maps_request_notice(&u->maps, id->tgid);
        else if (!now.waits)
                write_process(u, id, &now);
        release_tables(u, p);
        *p = now;
}

void unwinder_prepare(struct unwinder *u, int proc_fd, const char *container, const struct proc_maps *maps,
                      const struct object *const *objects)
{
        const struct file_source source = { proc_fd, container };
        uint64_t ignored;

        for (size_t i = 0; i < maps->count; i++) {
                const struct proc_mapping *m = &maps->items[i];
                uint32_t number;

                if (!objects[i] || !object_find_code_address(objects[i], m->file_offset, m->end - m->start, &ignored))
                        continue;
                number = add_table(u, objects[i]);
                if (number)
                        request_table(u, &source, m, number);
        }
}

void unwinder_remove_process(struct unwinder *u, const struct sample_process *id, struct unwinder_process *p)
{
        unwind_quota_refund(&u->quota, p->owner, UNWIND_MAPPINGS, p->run.count);
        unwind_maps_remove_process(&u->maps, id, &p->run);
        unwind_maps_remove_python(&u->maps, p->python_number);
        unwind_maps_remove_hotspot(&u->maps, p->hotspot_number);
        unwind_maps_remove_context(&u->maps, p->context_number);
        release_tables(u, p);
        *p = (struct unwinder_process){ 0 };
}

static const struct unwind_mapping *find_mapping(const struct unwinder_process *p, uint64_t pc)
{
        size_t at = find_lower_bound(i, 0, p->mapping_count, p->mappings[i].end <= pc);

        return at < p->mapping_count && p->mappings[at].start <= pc ? &p->mappings[at] : NULL;
}

bool unwinder_has_mapping(const struct unwinder_process *p, uint64_t pc)
{
        return find_mapping(p, pc) != NULL;
}

static enum sample_end find_rule_number(const struct unwinder *u, const struct unwinder_process *p, uint64_t pc,
                                        uint32_t *ret)
{
        const struct unwind_mapping *m = find_mapping(p, pc);
        uint32_t number;

        *ret = UNWIND_RULE_GAP;
        if (!p->mappings)
                return SAMPLE_END_NEW_PROCESS;
        if (!m)
                return SAMPLE_END_NO_MAPPING;
        number = p->numbers[m - p->mappings];
        *ret = number ? unwind_maps_find_rule(&u->maps, &u->tables[number - 1].placed, pc - m->bias)
                      : UNWIND_RULE_FRAME_POINTER;
        return number ? SAMPLE_END_NO_RULE : SAMPLE_END_NO_TABLE;
}

enum sample_end unwinder_find_rule(const struct unwinder *u, const struct unwinder_process *p,
                                   const struct unwind_regs *regs, struct unwind_rule *ret)
{
        uint32_t number, at_pc;
        enum sample_end end = find_rule_number(u, p, unwind_lookup_pc(regs), &number);

        if (number == UNWIND_RULE_GAP && end == SAMPLE_END_NO_RULE && regs->pc_is_return) {
                find_rule_number(u, p, regs->pc, &at_pc);
                number = unwind_rule_at_function_start(&u->rules.items[at_pc], at_pc);
        }
        if (end == SAMPLE_END_NO_RULE)
                number = unwind_rule_in_gap(number);
        number = unwind_select_rule(regs, &u->rules.items[number], number);
        *ret = u->rules.items[number];
        return end;
}

int unwinder_fd(const struct unwinder *u)
{
        return unwind_builder_fd(u->builder);
}

void unwinder_reclaim(struct unwinder *u)
{
        unwind_maps_reclaim(&u->maps);
}
