/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwinder.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/id_table.h"
#include "agent/unwinder_internal.h"

enum status unwinder_init(struct unwinder *u, const struct unwind_map_fds *fds, struct nursery *nursery, uint64_t row_bytes,
                          struct error *err)
{
        const uint64_t sizes[UNWIND_RESOURCE_COUNT] = {
                [UNWIND_RULES] = UNWIND_RULES_MAX,
                [UNWIND_ROWS] = row_bytes / sizeof(struct unwind_row),
                [UNWIND_PAGES] = UNWIND_PAGES_MAX,
                [UNWIND_MAPPINGS] = UNWIND_MAPPINGS_MAX,
        };
        enum status st;

        *u = (struct unwinder){ .by_object = calloc(1, sizeof *u->by_object), .by_content = calloc(1, sizeof *u->by_content) };
        if (!u->by_object || !u->by_content) {
                unwinder_deinit(u);
                return error_no_memory(err);
        }
        unwind_quota_init(&u->quota, sizes, geteuid());
        st = unwind_maps_init(&u->maps, fds, row_bytes, err);
        if (!st)
                st = unwind_rules_init(&u->rules, err);
        if (!st)
                st = unwind_builder_create(nursery, &u->builder, err);
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
        unwind_quota_deinit(&u->quota);
        unwind_rules_deinit(&u->rules);
        unwind_maps_deinit(&u->maps);
        *u = (struct unwinder){ 0 };
}

/* ---- processes ------------------------------------------------------------------ */

static void release(struct unwinder *u, struct unwinder_process *p)
{
        for (size_t i = 0; i < p->table_count; i++) {
                unwinder_table(u, p->tables[i])->users--;
                unwinder_table(u, p->tables[i])->used_at = ++u->clock;
        }
        free(p->tables);
        free(p->mappings);
        free(p->numbers);
}

static void fill(struct unwinder *u, int proc_fd, const char *container, const struct proc_mapping *m, const struct object *o,
                 struct unwind_mapping *ret, uint32_t *number_ret, struct unwinder_process *p)
{
        uint32_t number = o ? unwinder_table_number(u, o) : 0;
        uint64_t address;

        *ret = (struct unwind_mapping){ .start = m->start, .end = m->end, .table = UNWIND_TABLE_NONE };
        if (!number || !object_code_address(o, m->file_offset, m->end - m->start, &address))
                return;
        unwinder_table_want(u, proc_fd, container, m, number);
        if (unwinder_table(u, number)->state == TABLE_WAITING)
                p->waits = true;
        number = unwinder_table_resolve(u, number);
        if (unwinder_table(u, number)->state != TABLE_READY)
                return;
        *number_ret = number;
        ret->table = unwinder_table(u, number)->placed.table;
        ret->bias = m->start - address;
        for (size_t i = 0; i < p->table_count; i++)
                if (p->tables[i] == number)
                        return;
        p->tables[p->table_count++] = number;
        unwinder_table(u, number)->users++;
}

/* Hand the mappings to the kernel, within the part that their owner has. */
static void tell(struct unwinder *u, const struct sample_process *id, struct unwinder_process *p)
{
        uint64_t before = p->run.count, left = unwind_quota_left(&u->quota, p->owner, UNWIND_MAPPINGS),
                 most = left > UINT64_MAX - before ? left : left + before;
        enum status st = unwind_maps_process(&u->maps, id, p->executable_pages, ++u->last_generation, p->mappings,
                                             p->mapping_count, most, &p->run, NULL);

        unwind_quota_give_back(&u->quota, p->owner, UNWIND_MAPPINGS, before);
        unwind_quota_take(&u->quota, p->owner, UNWIND_MAPPINGS, p->run.count);
        if (st && p->mapping_count > most)
                u->stats.processes_over_quota++;
        else if (st)
                u->stats.processes_refused++;
}

void unwinder_process(struct unwinder *u, const struct sample_process *id, int proc_fd, const char *container,
                      const struct proc_maps *maps, const struct object *const *objects, struct unwinder_process *p)
{
        struct unwinder_process now = { .run = p->run, .executable_pages = p->executable_pages,
                                        .has_owner = p->has_owner, .owner = p->owner,
                                        .mappings = calloc(maps->count + 1, sizeof *now.mappings),
                                        .numbers = calloc(maps->count + 1, sizeof *now.numbers),
                                        .tables = calloc(maps->count + 1, sizeof *now.tables) };
        struct stat st;

        if (!now.mappings || !now.numbers || !now.tables) {
                free(now.mappings);
                free(now.numbers);
                free(now.tables);
                return;
        }
        now.mapping_count = (uint32_t)maps->count;
        if (!now.has_owner && proc_fd >= 0 && fstat(proc_fd, &st) == 0) {
                now.owner = unwind_quota_owner(&u->quota, st.st_uid, container);
                now.has_owner = true;
        }
        for (size_t i = 0; i < maps->count; i++)
                fill(u, proc_fd, container, &maps->items[i], objects[i], &now.mappings[i], &now.numbers[i], &now);
        if (!now.executable_pages)
                unwind_maps_ask(&u->maps, id->tgid);
        else if (!now.waits)
                tell(u, id, &now);
        release(u, p);
        *p = now;
}

void unwinder_forget(struct unwinder *u, const struct sample_process *id, struct unwinder_process *p)
{
        unwind_quota_give_back(&u->quota, p->owner, UNWIND_MAPPINGS, p->run.count);
        unwind_maps_forget(&u->maps, id, &p->run);
        release(u, p);
        *p = (struct unwinder_process){ 0 };
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
        uint32_t number;

        *ret = UNWIND_RULE_GAP;
        if (!p->mappings)
                return SAMPLE_END_NEW_PROCESS;
        if (!m)
                return SAMPLE_END_NO_MAPPING;
        number = p->numbers[m - p->mappings];
        *ret = number ? unwind_maps_rule(&u->maps, &u->tables[number - 1].placed, pc - m->bias) : UNWIND_RULE_FRAME_POINTER;
        return number ? SAMPLE_END_NO_RULE : SAMPLE_END_NO_TABLE;
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

void unwinder_settle(struct unwinder *u)
{
        unwind_maps_settle(&u->maps);
}
