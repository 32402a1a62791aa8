/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/id_table.h"
#include "agent/object_cache.h"
#include "agent/unwind_result.h"
#include "agent/unwinder_internal.h"
#include "agent/vdso.h"

uint32_t unwinder_table_number(struct unwinder *u, const struct object *o)
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

uint32_t unwinder_table_resolve(const struct unwinder *u, uint32_t number)
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

static uint64_t rows_of(const struct unwind_placed *p)
{
        uint64_t rows = 0;

        for (size_t i = 0; i < p->run_count; i++)
                rows += p->runs[i].count;
        return rows;
}

#define OF_ANYBODY UINT32_MAX

/* Take the table that was not used for longest out of the kernel, one of the owner's. Its rows; 0 when all are in use. */
static uint64_t evict_one(struct unwinder *u, uint32_t owner)
{
        struct unwinder_table *oldest = NULL;
        uint64_t rows;

        for (size_t i = 0; i < u->table_count; i++) {
                struct unwinder_table *t = &u->tables[i];

                if (t->state == TABLE_READY && !t->users && (owner == OF_ANYBODY || t->owner == owner) &&
                    (!oldest || t->used_at < oldest->used_at))
                        oldest = t;
        }
        if (!oldest)
                return 0;
        rows = rows_of(&oldest->placed);
        unwind_quota_give_back(&u->quota, oldest->owner, UNWIND_ROWS, rows);
        unwind_quota_give_back(&u->quota, oldest->owner, UNWIND_PAGES, oldest->placed.page_count);
        unwind_maps_remove(&u->maps, &oldest->placed);
        oldest->state = TABLE_UNKNOWN;
        for (size_t i = 0; i < u->table_count; i++)
                if (u->tables[i].state == TABLE_SAME && &u->tables[u->tables[i].same_as - 1] == oldest)
                        u->tables[i].state = TABLE_UNKNOWN;
        u->stats.tables_ready--;
        u->stats.tables_evicted++;
        return rows;
}

/* Does the table fit its owner's part? What the owner does not use any more makes room. */
static bool fits_quota(struct unwinder *u, uint32_t owner, const struct unwind_table *built)
{
        for (;;) {
                if (built->row_count <= unwind_quota_left(&u->quota, owner, UNWIND_ROWS) &&
                    built->page_count <= unwind_quota_left(&u->quota, owner, UNWIND_PAGES))
                        return true;
                if (!evict_one(u, owner))
                        return false;
        }
}

/* The number of a table in the kernel with this content; 0 none. */
static uint32_t with_content(struct unwinder *u, const uint8_t content[static SHA256_BYTES])
{
        const struct unwinder_table *t;
        uint32_t number;

        if (!id_table_find(u->by_content, content, SHA256_BYTES, &number))
                return 0;
        t = unwinder_table(u, number);
        return t->state == TABLE_READY && memcmp(t->content, content, SHA256_BYTES) == 0 ? number : 0;
}

static void place(struct unwinder *u, uint32_t number, const struct unwind_table *built)
{
        struct unwinder_table *t = unwinder_table(u, number);
        bool digested = digest(built, t->content);
        uint32_t same = digested ? with_content(u, t->content) : 0;
        struct error err;

        if (same && same != number) {
                t->state = TABLE_SAME;
                t->same_as = same;
                return;
        }
        unwind_maps_rules(&u->maps, &u->rules);
        u->stats.rules = u->rules.count;
        if (!fits_quota(u, t->owner, built)) {
                t->state = TABLE_NONE;
                u->stats.tables_over_quota++;
                return;
        }
        if (unwind_maps_add(&u->maps, built, &t->placed, &err)) {
                /* What is evicted now is free at the next drain: this object is tried again when it is met then. */
                for (uint64_t freed = 0, rows = 1; rows && freed < built->row_count; freed += rows)
                        rows = evict_one(u, OF_ANYBODY);
                t->state = TABLE_UNKNOWN;
                u->stats.tables_refused++;
                return;
        }
        unwind_quota_take(&u->quota, t->owner, UNWIND_ROWS, rows_of(&t->placed));
        unwind_quota_take(&u->quota, t->owner, UNWIND_PAGES, t->placed.page_count);
        t->state = TABLE_READY;
        u->stats.tables_ready++;
        if (digested)
                (void)id_table_put(u->by_content, t->content, sizeof t->content, number); /* else it is not shared */
}

/* The table that the worker made, within the part that its owner has of the rules. */
static bool read_built(struct unwinder *u, const struct unwind_built *built, struct unwind_table *ret)
{
        uint32_t owner = unwinder_table(u, built->ticket)->owner;
        struct unwind_rules_part part = { .left = unwind_quota_left(&u->quota, owner, UNWIND_RULES) };
        bool read = built->fd >= 0 && !unwind_result_read(built->fd, &u->rules, &part, ret, NULL);

        unwind_quota_take(&u->quota, owner, UNWIND_RULES, part.taken);
        if (part.left)
                u->stats.rules_refused += part.refused;
        else
                u->stats.rules_over_quota += part.refused;
        return read && ret->row_count;
}

static void take(struct unwinder *u, const struct unwind_built *built)
{
        _cleanup_unwind_table_ struct unwind_table t = { 0 };

        u->tables_waiting--;
        if (!read_built(u, built, &t)) {
                unwinder_table(u, built->ticket)->state = TABLE_NONE;
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

        unwinder_table(u, number)->state = TABLE_NONE;
        if (!vdso_image(&image, &size) || elf_image_from_memory(image, size, "[vdso]", &elf, NULL))
                return;
        if (!unwind_table_build(&elf, &u->rules, &t, NULL) && t.row_count)
                place(u, number, &t);
        elf_image_close(&elf);
}

void unwinder_table_want(struct unwinder *u, int proc_fd, const char *container, const struct proc_mapping *m, uint32_t number)
{
        struct unwinder_table *t = unwinder_table(u, number);
        struct stat st;
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
        if (fstat(fd, &st) == 0)
                t->owner = unwind_quota_owner(&u->quota, st.st_uid, container);
        if (unwind_builder_put(u->builder, number, fd)) {
                t->state = TABLE_WAITING;
                u->tables_waiting++;
        }
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
