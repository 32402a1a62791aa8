/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/process_read.h"
#include "agent/vdso.h"
#include "common/clock.h"
#include "common/limits.h"

#define MAPS_AGE_MAX_NS (30 * (int64_t)1000000000)
#define UNUSED_DRAINS_MAX 6
#define FIRST_NOTICES 8 /* a dynamic linker at work */
#define NOTICE_PAUSE_NS ((int64_t)500000000)
#define READ_SHARE 20 /* reading the mappings of one process again takes a part of this much of a CPU */
#define VAIN_READS_MAX 6 /* the pause grows to half a minute */

void process_table_init(struct process_table *t)
{
        *t = (struct process_table){ .jit_budget.max = LIMIT_AGENT_JIT_BYTES, .jit_left = LIMIT_AGENT_JIT_READ_BYTES };
}

static void process_destroy(struct process_table *t, struct process *p)
{
        if (t->unwinder)
                unwinder_forget(t->unwinder, &p->id, &p->unwind);
        proc_maps_deinit(&p->maps);
        jit_names_deinit(&p->jit);
        free(p->objects);
        free(p->executable);
        free(p);
}

void process_table_deinit(struct process_table *t)
{
        for (size_t i = 0; i < t->count; i++)
                process_destroy(t, t->items[i]);
        free(t->items);
        id_table_deinit(&t->by_id);
        object_cache_deinit(&t->objects);
        code_names_deinit(&t->vdso);
        *t = (struct process_table){ 0 };
}

/* ---- reading ------------------------------------------------------------------- */

static void unwind(struct process_table *t, struct process *p, int proc_fd)
{
        if (t->unwinder)
                unwinder_process(t->unwinder, &p->id, proc_fd, p->cgroup.container, &p->maps, p->objects, &p->unwind);
}

/* Two mappings of one file that is mapped at this moment. */
static bool is_same_file(const struct proc_mapping *a, const struct proc_mapping *b)
{
        return a->inode && a->inode == b->inode && a->device_major == b->device_major &&
               a->device_minor == b->device_minor && a->deleted == b->deleted && strcmp(a->path, b->path) == 0;
}

/* False when they could not be read. */
static bool read_maps(struct process_table *t, struct process *p, int proc_fd)
{
        struct proc_maps maps;
        const struct object **objects;

        if (process_read_maps(proc_fd, &maps, NULL))
                return false;
        objects = calloc(maps.count ? maps.count : 1, sizeof(struct object *));
        if (!objects) {
                proc_maps_deinit(&maps);
                return false;
        }
        for (size_t i = 0; i < maps.count; i++)
                objects[i] = i && is_same_file(&maps.items[i - 1], &maps.items[i]) ?
                                     objects[i - 1] :
                                     object_cache_get(&t->objects, proc_fd, &maps.items[i]);
        /* An ending process has no mappings any more: what was read before says more. */
        if (maps.count == 0 && p->maps.count > 0) {
                proc_maps_deinit(&maps);
                free(objects);
                return false;
        }
        proc_maps_deinit(&p->maps);
        free(p->objects);
        p->maps = maps;
        p->objects = objects;
        p->has_maps = true;
        return true;
}

static void read_identity(struct process *p, int proc_fd, bool first)
{
        if ((!first || !p->name[0]) && !process_read_name(proc_fd, p->name))
                return;
        if (first && process_read_cgroup(proc_fd, &p->cgroup))
                p->executable = process_read_executable(proc_fd);
}

void process_table_exclude(struct process_table *t, const struct process *p)
{
        if (t->on_excluded)
                t->on_excluded(t->ctx, &p->id);
}

/* One that ended before its start could be read is none. */
static bool is_stranger(const struct process_table *t, const struct sample_process *id)
{
        for (size_t i = 0; i < t->life_count; i++)
                if (t->lives[i].tgid == id->tgid)
                        return id->start_boot_ns && process_start_ticks(id) != process_start_ticks(&t->lives[i]);
        return false;
}

/* What is left out is decided once in a life. */
static void select_process(struct process_table *t, struct process *p)
{
        if (!is_stranger(t, &p->id) && !(t->selection && selection_excludes(t->selection, p->name, &p->cgroup)))
                return;
        p->is_excluded = true;
        t->excluded++;
        process_table_exclude(t, p);
}

/* Before its mappings are read again. */
static int64_t pause_ns(const struct process *p)
{
        return p->read_cost_ns * READ_SHARE > NOTICE_PAUSE_NS ? p->read_cost_ns * READ_SHARE : NOTICE_PAUSE_NS;
}

static void read_process(struct process_table *t, struct process *p)
{
        _cleanup_close_ int proc_fd = process_open(&p->id);
        bool first = p->read_at_ns == 0, selects = first && (t->selection || t->life_count), has_new_maps;
        int64_t cpu_ns;

        p->read_in = t->drain;
        p->is_stale = false;
        p->read_at_ns = monotonic_ns();
        cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        if (proc_fd >= 0 && selects)
                read_identity(p, proc_fd, first);
        if (selects)
                select_process(t, p);
        if (proc_fd < 0 || p->is_excluded)
                return;
        has_new_maps = read_maps(t, p, proc_fd);
        if (!selects)
                read_identity(p, proc_fd, first);
        if (has_new_maps)
                unwind(t, p, proc_fd);
        p->read_cost_ns = first ? 0 : clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns; /* the first look opens all files */
}

static void read_jit(struct process_table *t, struct process *p)
{
        _cleanup_close_ int proc_fd = process_open(&p->id);
        uint64_t left_out = jit_names_left_out(&p->jit);

        p->jit_read_in = t->drain;
        if (proc_fd < 0)
                return;
        jit_names_refresh(&p->jit, proc_fd, &p->maps, &t->jit_left);
        t->jit_left_out += jit_names_left_out(&p->jit) > left_out ? jit_names_left_out(&p->jit) - left_out : 0;
}

/* ---- the table ------------------------------------------------------------------- */

static struct process *add(struct process_table *t, const struct sample_process *id, const char *name,
                           uint64_t executable_pages)
{
        struct process *p;
        struct process **items = reallocarray(t->items, t->count + 1, sizeof(struct process *));

        if (!items)
                return NULL;
        t->items = items;
        p = calloc(1, sizeof *p);
        if (!p || !id_table_put(&t->by_id, id, sizeof *id, (uint32_t)t->count)) {
                free(p);
                return NULL;
        }
        t->items[t->count++] = p;
        p->id = *id;
        jit_names_init(&p->jit, &t->jit_budget);
        if (name)
                memcpy(p->name, name, SAMPLE_COMM_SIZE - 1);
        p->used_in = t->drain;
        p->unwind.executable_pages = executable_pages;
        read_process(t, p);
        if (!p->has_maps && !p->is_excluded)
                t->unreadable++;
        return p;
}

static struct process *find(struct process_table *t, const struct sample_process *id)
{
        uint32_t i;

        return id_table_find(&t->by_id, id, sizeof *id, &i) ? t->items[i] : NULL;
}

void process_table_notice(struct process_table *t, const struct sample_notice *notice)
{
        struct process *p = find(t, &notice->process);

        if (!p) {
                (void)add(t, &notice->process, notice->leader_comm, notice->executable_pages);
                return;
        }
        p->unwind.executable_pages = notice->executable_pages;
        if (p->notice_count++ < FIRST_NOTICES || monotonic_ns() - p->read_at_ns > pause_ns(p))
                read_process(t, p);
        else
                p->is_stale = true;
}

struct process *process_table_get(struct process_table *t, const struct sample_process *id, const char *comm)
{
        struct process *p = find(t, id);
        bool is_old;

        if (!p)
                p = add(t, id, NULL, 0);
        if (!p)
                return NULL;
        if (!p->name[0])
                memcpy(p->name, comm, SAMPLE_COMM_SIZE - 1);
        p->used_in = t->drain;
        is_old = p->read_in != t->drain && monotonic_ns() - p->read_at_ns > MAPS_AGE_MAX_NS;
        if (is_old && t->unwinder) /* two CPUs may have told of it in another order than they noted it */
                unwind_maps_ask(&t->unwinder->maps, id->tgid);
        if (is_old || p->is_stale)
                read_process(t, p);
        return p;
}

bool process_table_covers(struct process_table *t, struct process *p, uint64_t pc)
{
        if (unwinder_covers(&p->unwind, pc))
                return true;
        if (p->is_excluded || monotonic_ns() - p->read_at_ns < pause_ns(p) << p->vain_reads)
                return false;
        read_process(t, p);
        if (unwinder_covers(&p->unwind, pc)) {
                p->vain_reads = 0;
                return true;
        }
        p->vain_reads += p->vain_reads < VAIN_READS_MAX;
        return false;
}

void process_table_unwind_again(struct process_table *t)
{
        for (size_t i = 0; i < t->count; i++)
                if (t->items[i]->unwind.waits)
                        unwind(t, t->items[i], -1);
}

void process_table_begin_drain(struct process_table *t)
{
        t->drain++;
        t->jit_left = LIMIT_AGENT_JIT_READ_BYTES;
}

static int last_used_first(const void *a, const void *b)
{
        const struct process *const *x = a, *const *y = b;

        return (*x)->used_in > (*y)->used_in ? -1 : (*x)->used_in < (*y)->used_in;
}

void process_table_end_drain(struct process_table *t)
{
        bool forget_objects = object_cache_is_full(&t->objects);
        size_t kept = 0;

        if (t->count > LIMIT_AGENT_PROCESSES)
                qsort(t->items, t->count, sizeof *t->items, last_used_first);
        id_table_deinit(&t->by_id);
        for (size_t i = 0; i < t->count; i++) {
                struct process *p = t->items[i];

                if (forget_objects || kept == LIMIT_AGENT_PROCESSES ||
                    t->drain - p->used_in > UNUSED_DRAINS_MAX ||
                    !id_table_put(&t->by_id, &p->id, sizeof p->id, (uint32_t)kept))
                        process_destroy(t, p);
                else
                        t->items[kept++] = p;
        }
        t->count = kept;
        if (forget_objects) {
                object_cache_forget(&t->objects);
                if (t->unwinder)
                        unwinder_forget_objects(t->unwinder);
        }
}

/* ---- addresses ------------------------------------------------------------------- */

/* Files without a name in any directory hold code made at run time. */
static bool is_memory_file(const struct proc_mapping *m)
{
        return strncmp(m->path, "/memfd:", 7) == 0 || strncmp(m->path, "/dev/zero", 9) == 0 ||
               strncmp(m->path, "/SYSV", 5) == 0;
}

static void name_vdso(struct process_table *t, struct place *p)
{
        const struct code_symbol *s;

        if (!t->vdso_tried) {
                code_names_init(&t->vdso, NULL);
                vdso_names(&t->vdso);
                t->vdso_tried = true;
        }
        s = code_names_find(&t->vdso, p->address);
        if (s)
                p->jit = (struct jit_place){ .name = code_names_name(&t->vdso, s) };
}

static struct place place_in(struct process_table *t, struct process *p, const struct proc_mapping *m, uint64_t addr)
{
        const struct object *object = p->objects[m - p->maps.items];
        struct place ret = { .mapping = m, .address = addr - m->start + m->file_offset };

        if (object && object_address(object, ret.address, &ret.address)) {
                ret.kind = PLACE_OBJECT;
                ret.object = object;
                if (strcmp(m->path, "[vdso]") == 0)
                        name_vdso(t, &ret);
                return ret;
        }
        /* Before any name is used: another piece of code may have come to this address. */
        if (!object && p->jit_read_in != t->drain)
                read_jit(t, p);
        if (strcmp(m->path, "[vsyscall]") == 0)
                ret.jit.name = vsyscall_name(addr - m->start);
        if (ret.jit.name || jit_names_find(&p->jit, addr, &ret.jit))
                ret.kind = PLACE_NAMED;
        else if (m->path[0] == '/' && !is_memory_file(m))
                ret.kind = PLACE_FILE_OFFSET;
        else
                ret.kind = PLACE_ANONYMOUS;
        return ret;
}

struct place process_locate(struct process_table *t, struct process *p, uint64_t addr)
{
        const struct proc_mapping *m = proc_maps_find(&p->maps, addr);

        if (!m && p->read_in != t->drain) {
                read_process(t, p);
                m = proc_maps_find(&p->maps, addr);
        }
        if (m)
                return place_in(t, p, m, addr);
        return (struct place){ .kind = p->has_maps ? PLACE_NOWHERE : PLACE_GONE, .address = addr };
}
