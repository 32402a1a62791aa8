/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwinder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/id_table.h"
#include "agent/object_cache.h"
#include "agent/unwind_result.h"
#include "agent/vdso.h"
#include "common/sha256.h"

enum table_state { TABLE_UNKNOWN, TABLE_WAITING, TABLE_READY, TABLE_SAME, TABLE_NONE, TABLE_FREE };

struct unwinder_table {
        enum table_state state;
        uint32_t users;    /* processes */
        uint64_t used_at;  /* the unwinder's clock */
        struct unwind_placed placed;
        uint32_t same_as;  /* number of the table with this content, TABLE_SAME */
        uint8_t content[SHA256_BYTES]; /* once it was built */
};

enum status unwinder_init(struct unwinder *u, const struct unwind_map_fds *fds, uint64_t row_bytes, struct error *err)
{
        enum status st;

        *u = (struct unwinder){ .by_object = calloc(1, sizeof *u->by_object), .by_content = calloc(1, sizeof *u->by_content) };
        if (!u->by_object || !u->by_content) {
                unwinder_deinit(u);
                return error_no_memory(err);
        }
        st = unwind_maps_init(&u->maps, fds, row_bytes, err);
        if (!st)
                st = unwind_rules_init(&u->rules, err);
        if (!st)
                st = unwind_builder_create(&u->builder, err);
        if (st)
                unwinder_deinit(u);
        else
                unwind_maps_rules(&u->maps, &u->rules);
        return st;
}

void unwinder_deinit(struct unwinder *u)
{
        unwind_builder_destroy(u->builder);
        for (size_t i = 0; i < u->table_count; i++) {
                free(u->tables[i].placed.runs);
                free(u->tables[i].placed.pages);
        }
        free(u->tables);
        if (u->by_object)
                id_table_deinit(u->by_object);
        if (u->by_content)
                id_table_deinit(u->by_content);
        free(u->by_object);
        free(u->by_content);
        unwind_rules_deinit(&u->rules);
        unwind_maps_deinit(&u->maps);
        *u = (struct unwinder){ 0 };
}

/* ---- tables -------------------------------------------------------------------- */

static struct unwinder_table *table(struct unwinder *u, uint32_t number)
{
        return &u->tables[number - 1];
}

/* The number of the object's table, made if need be; 0 without memory. */
static uint32_t number_of(struct unwinder *u, const struct object *o)
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
        if (u->table_count == u->table_capacity) {
                size_t wanted = u->table_capacity ? 2 * u->table_capacity : 64;
                struct unwinder_table *grown = reallocarray(u->tables, wanted, sizeof *grown);

                if (!grown || wanted > UINT32_MAX)
                        return 0;
                u->tables = grown;
                u->table_capacity = wanted;
        }
        u->tables[u->table_count] = (struct unwinder_table){ 0 };
        number = (uint32_t)u->table_count + 1;
        if (!id_table_put(u->by_object, &o->serial, sizeof o->serial, number))
                return 0;
        u->free_from = ++u->table_count;
        return number;
}

/* The number of the table that has the content. */
static uint32_t resolve(const struct unwinder *u, uint32_t number)
{
        const struct unwinder_table *t = &u->tables[number - 1];

        return t->state == TABLE_SAME ? t->same_as : number;
}

/* Rules have their numbers for good, so equal tables are equal bytes. False without memory. */
static bool digest(const struct unwind_table *t, uint8_t ret[static SHA256_BYTES])
{
        _cleanup_sha256_ struct sha256 s = { 0 };

        if (sha256_init(&s, NULL))
                return false;
        sha256_update(&s, t->pages, t->page_count * sizeof *t->pages);
        sha256_update(&s, t->rows, t->row_count * sizeof *t->rows);
        sha256_final(&s, ret);
        return true;
}

/* Take the table that was not used for longest out of the kernel. Its rows; 0 when all are in use. */
static uint64_t evict_one(struct unwinder *u)
{
        struct unwinder_table *oldest = NULL;
        uint64_t rows = 0;

        for (size_t i = 0; i < u->table_count; i++) {
                struct unwinder_table *t = &u->tables[i];

                if (t->state == TABLE_READY && !t->users && (!oldest || t->used_at < oldest->used_at))
                        oldest = t;
        }
        if (!oldest)
                return 0;
        for (size_t i = 0; i < oldest->placed.run_count; i++)
                rows += oldest->placed.runs[i].count;
        unwind_maps_remove(&u->maps, (uint32_t)(oldest - u->tables) + 1, &oldest->placed);
        oldest->state = TABLE_UNKNOWN;
        for (size_t i = 0; i < u->table_count; i++)
                if (u->tables[i].state == TABLE_SAME && &u->tables[u->tables[i].same_as - 1] == oldest)
                        u->tables[i].state = TABLE_UNKNOWN;
        u->stats.tables_ready--;
        u->stats.tables_evicted++;
        return rows;
}

static void place(struct unwinder *u, uint32_t number, const struct unwind_table *built)
{
        struct unwinder_table *t = table(u, number);
        bool digested = digest(built, t->content);
        uint32_t same;
        struct error err;

        if (digested && id_table_find(u->by_content, t->content, sizeof t->content, &same) && same != number &&
            table(u, same)->state == TABLE_READY && memcmp(table(u, same)->content, t->content, sizeof t->content) == 0) {
                t->state = TABLE_SAME;
                t->same_as = same;
                return;
        }
        unwind_maps_rules(&u->maps, &u->rules);
        if (unwind_maps_add(&u->maps, number, built, &t->placed, &err)) {
                /* What is evicted now is free at the next drain: this object is tried again when it is met then. */
                for (uint64_t freed = 0, rows = 1; rows && freed < built->row_count; freed += rows)
                        rows = evict_one(u);
                t->state = TABLE_UNKNOWN;
                u->stats.tables_refused++;
                return;
        }
        t->state = TABLE_READY;
        u->stats.tables_ready++;
        if (digested)
                (void)id_table_put(u->by_content, t->content, sizeof t->content, number); /* else it is not shared */
}

static void take(struct unwinder *u, const struct unwind_built *built)
{
        _cleanup_unwind_table_ struct unwind_table t = { 0 };

        u->tables_waiting--;
        if (built->fd < 0 || unwind_result_read(built->fd, &u->rules, &t, NULL) || !t.row_count) {
                table(u, built->ticket)->state = TABLE_NONE;
                u->stats.tables_none++;
        } else {
                place(u, built->ticket, &t);
        }
        if (built->fd >= 0)
                close(built->fd);
}

/* The kernel's own image needs no worker. */
static void build_vdso(struct unwinder *u, uint32_t number)
{
        const void *image;
        size_t size;
        _cleanup_unwind_table_ struct unwind_table t = { 0 };
        struct elf_image elf;

        table(u, number)->state = TABLE_NONE;
        if (!vdso_image(&image, &size) || elf_image_from_memory(image, size, "[vdso]", &elf, NULL))
                return;
        if (!unwind_table_build(&elf, &u->rules, &t, NULL) && t.row_count)
                place(u, number, &t);
        elf_image_close(&elf);
}

/* Ask for the table of what is mapped there unless that was done. */
static void want(struct unwinder *u, int proc_fd, const struct proc_mapping *m, uint32_t number)
{
        struct unwinder_table *t = table(u, number);
        int fd;

        if (t->state != TABLE_UNKNOWN)
                return;
        if (strcmp(m->path, "[vdso]") == 0) {
                build_vdso(u, number);
                return;
        }
        fd = proc_fd < 0 ? -1 : object_cache_open(proc_fd, m);
        if (fd < 0)
                return;
        if (unwind_builder_put(u->builder, number, fd)) {
                t->state = TABLE_WAITING;
                u->tables_waiting++;
        }
}

/* ---- processes ------------------------------------------------------------------ */

static void release(struct unwinder *u, struct unwinder_process *p)
{
        for (size_t i = 0; i < p->table_count; i++) {
                table(u, p->tables[i])->users--;
                table(u, p->tables[i])->used_at = ++u->clock;
        }
        free(p->tables);
        free(p->mappings);
}

static void fill(struct unwinder *u, int proc_fd, const struct proc_mapping *m, const struct object *o,
                 struct unwind_mapping *ret, struct unwinder_process *p)
{
        uint32_t number = o ? number_of(u, o) : 0;
        uint64_t address;

        *ret = (struct unwind_mapping){ .start = m->start, .end = m->end, .table = UNWIND_TABLE_NONE };
        if (!number || !object_code_address(o, m->file_offset, m->end - m->start, &address))
                return;
        want(u, proc_fd, m, number);
        if (table(u, number)->state == TABLE_WAITING)
                p->waits = true;
        number = resolve(u, number);
        if (table(u, number)->state != TABLE_READY)
                return;
        ret->table = number;
        ret->bias = m->start - address;
        for (size_t i = 0; i < p->table_count; i++)
                if (p->tables[i] == number)
                        return;
        p->tables[p->table_count++] = number;
        table(u, number)->users++;
}

void unwinder_process(struct unwinder *u, const struct sample_process *id, int proc_fd, const struct proc_maps *maps,
                      const struct object *const *objects, struct unwinder_process *p)
{
        struct unwinder_process now = { .run = p->run, .executable_pages = p->executable_pages,
                                        .mappings = calloc(maps->count + 1, sizeof *now.mappings),
                                        .tables = calloc(maps->count + 1, sizeof *now.tables) };

        if (!now.mappings || !now.tables) {
                free(now.mappings);
                free(now.tables);
                return;
        }
        now.mapping_count = (uint32_t)maps->count;
        for (size_t i = 0; i < maps->count; i++)
                fill(u, proc_fd, &maps->items[i], objects[i], &now.mappings[i], &now);
        if (!now.executable_pages)
                unwind_maps_ask(&u->maps, id->tgid);
        else if (!now.waits && unwind_maps_process(&u->maps, id, now.executable_pages, ++u->last_generation, now.mappings,
                                                   now.mapping_count, &now.run, NULL))
                u->stats.processes_refused++;
        release(u, p);
        *p = now;
}

void unwinder_forget(struct unwinder *u, const struct sample_process *id, struct unwinder_process *p)
{
        unwind_maps_forget(&u->maps, id, &p->run);
        release(u, p);
        *p = (struct unwinder_process){ 0 };
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

static const struct unwind_mapping *find_mapping(const struct unwinder_process *p, uint64_t pc)
{
        size_t low = 0, high = p->mapping_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (pc < p->mappings[middle].start)
                        high = middle;
                else if (pc >= p->mappings[middle].end)
                        low = middle + 1;
                else
                        return &p->mappings[middle];
        }
        return NULL;
}

bool unwinder_covers(const struct unwinder_process *p, uint64_t pc)
{
        return find_mapping(p, pc) != NULL;
}

static enum sample_end rule_at(const struct unwinder *u, const struct unwinder_process *p, uint64_t pc, uint32_t *ret)
{
        const struct unwind_mapping *m = find_mapping(p, pc);

        *ret = UNWIND_RULE_GAP;
        if (!p->mappings)
                return SAMPLE_END_NEW_PROCESS;
        if (!m)
                return SAMPLE_END_NO_MAPPING;
        *ret = m->table ? unwind_maps_rule(&u->maps, &u->tables[m->table - 1].placed, pc - m->bias) :
                          UNWIND_RULE_FRAME_POINTER;
        return m->table ? SAMPLE_END_NO_RULE : SAMPLE_END_NO_TABLE;
}

enum sample_end unwinder_rule(const struct unwinder *u, const struct unwinder_process *p, const struct unwind_regs *regs,
                              struct unwind_rule *ret)
{
        uint32_t number, at_pc;
        enum sample_end end = rule_at(u, p, unwind_lookup_pc(regs), &number);

        if (number == UNWIND_RULE_GAP && end == SAMPLE_END_NO_RULE && regs->pc_is_return) {
                rule_at(u, p, regs->pc, &at_pc);
                number = unwind_rule_at_start(&u->rules.items[at_pc], at_pc);
        }
        if (end == SAMPLE_END_NO_RULE)
                number = unwind_rule_in_hole(number);
        number = unwind_rule_for(regs, &u->rules.items[number], number);
        *ret = u->rules.items[number];
        return end;
}

int unwinder_fd(const struct unwinder *u)
{
        return unwind_builder_fd(u->builder);
}

bool unwinder_poll(struct unwinder *u)
{
        struct unwind_built built;
        bool any = false;

        while (unwind_builder_take(u->builder, &built)) {
                take(u, &built);
                any = true;
        }
        return any;
}

void unwinder_settle(struct unwinder *u)
{
        unwind_maps_settle(&u->maps);
}
