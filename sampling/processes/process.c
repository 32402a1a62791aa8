/* SPDX-License-Identifier: Apache-2.0 */
/*
 * items are the processes; by_id finds one by its life (pid, start time and exec). Both are rebuilt at the end of each
 * drain, when unused processes are forgotten.
 *
 * read_process() reads a process from /proc: it applies the filter, reads the mappings, finds an object for each in
 * the shared object cache, and passes both to the unwinder. It runs when a process is added, when a notice reports new
 * mappings, when an address has no mapping, and when the mappings are old; the constants below limit how often. Names
 * of generated code are read later, by process_table_locate(), when an address without an object needs them, once per
 * drain and within a budget of bytes for all processes.
 *
 * Order: names of generated code, creation and destruction, reading, the table and its callers' entry points, locating
 * addresses.
 */
#include "sampling/processes/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/program/log.h"
#include "common/text.h"
#include "sampling/objects/mount_probe.h"
#include "sampling/objects/object_cache.h"
#include "sampling/objects/vdso.h"
#include "sampling/processes/moved_text.h"
#include "sampling/processes/process_hotspot.h"
#include "sampling/processes/process_python.h"
#include "sampling/processes/process_request.h"
#include "sampling/processes/process_v8.h"
#include "sampling/processes/process_read.h"

static void init_jit_names(struct jit_names *j, struct code_budget *budget)
{
        perf_map_init(&j->map, budget);
        jitdump_init(&j->dump, budget);
}

static void deinit_jit_names(struct jit_names *j)
{
        perf_map_deinit(&j->map);
        jitdump_deinit(&j->dump);
}

/* Runtimes map "jit-PID.dump" executable to announce it to profilers. */
static bool is_jitdump_mapping(const struct proc_mapping *m)
{
        const char *name = strrchr(m->path, '/');
        size_t n = name ? strlen(name) : 0;

        return m->inode && n > strlen("/jit-.dump") && starts_with(name, "/jit-") && strcmp(name + n - 5, ".dump") == 0;
}

static void refresh_jit_names(struct jit_names *j, int proc_fd, const struct proc_maps *maps, uint64_t *left)
{
        _cleanup_close_ int root = -1;
        char path[64];
        uid_t uid;
        pid_t ns_pid;

        if (!process_read_identity(proc_fd, &uid, &ns_pid))
                return;
        for (size_t i = 0; i < maps->count; i++) {
                _cleanup_close_ int fd =
                        is_jitdump_mapping(&maps->items[i]) ? object_cache_open(proc_fd, &maps->items[i]) : -1;

                if (fd < 0)
                        continue;
                if (jitdump_refresh(&j->dump, fd, ns_pid, uid, left, NULL))
                        continue;
                break;
        }
        snprintf(path, sizeof path, "/" PERF_MAP_PATH, (int)ns_pid);
        if (!mount_probe_is_responsive(&(struct mount_probe_file){ .mount = mount_probe_make_key(proc_fd),
                                                                   .kind = MOUNT_PROBE_IN_ROOT,
                                                                   .proc_fd = proc_fd,
                                                                   .name = "",
                                                                   .path = path }))
                return;
        root = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root >= 0 && perf_map_refresh(&j->map, root, ns_pid, uid, left, NULL))
                return;
}

static uint64_t count_dropped_jit_names(const struct jit_names *j)
{
        return j->map.dropped + j->dump.dropped;
}

static bool find_jit_name(struct jit_names *j, uint64_t addr, struct jit_location *ret)
{
        const struct named_range *s;

        if (jitdump_find(&j->dump, addr, ret))
                return true;
        s = code_names_find(&j->map.code, addr);
        if (s)
                *ret = (struct jit_location){ .name = code_names_get_text(&j->map.code, s), .file = "" };
        return s;
}

#define MAPS_AGE_MAX_NS (30 * (int64_t)1000000000)
#define UNUSED_DRAINS_MAX 6
#define ALL_MAPPINGS_MAX 1048576 /* of all processes; one may add a quarter of what is left */
#define FIRST_NOTICES 8          /* handled at once: the dynamic linker is running */
#define NOTICE_PAUSE_NS ((int64_t)500000000)
#define READ_SHARE 20    /* rereading the mappings of a process uses at most 1/20 of a CPU */
#define VAIN_READS_MAX 6 /* the pause doubles up to half a minute */

void process_table_init(struct process_table *t)
{
        *t = (struct process_table){ .jit_budget.max = LIMIT_AGENT_JIT_BYTES, .jit_left = LIMIT_AGENT_JIT_READ_BYTES };
}

static void process_destroy(struct process_table *t, struct process *p)
{
        if (t->unwinder)
                unwinder_remove_process(t->unwinder, &p->id, &p->unwind);
        t->mapping_count -= p->maps.count;
        proc_maps_deinit(&p->maps);
        deinit_jit_names(&p->jit);
        free(p->objects);
        free(p->executable);
        pod_release(p->pod.pod);
        free(p->container);
        process_python_deinit(t, p);
        process_v8_deinit(t, p);
        process_hotspot_deinit(t, p);
        process_request_deinit(t, p);
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

static void update_unwinder(struct process_table *t, struct process *p, int proc_fd)
{
        bool found;

        if (!t->unwinder)
                return;
        unwinder_set_process(t->unwinder, &p->id, proc_fd, p->cgroup.container, &p->maps, p->objects, &p->unwind);
        found = process_python_attach(t, p);
        found = process_hotspot_attach(t, p) || found;
        found = process_request_attach(t, p) || found;
        if (process_v8_attach(t, p) || found) /* which the kernel has to know */
                unwinder_set_process(t->unwinder, &p->id, proc_fd, p->cgroup.container, &p->maps, p->objects,
                                     &p->unwind);
}

/* Whether two current mappings are of the same file. */
static bool is_same_mapped_file(const struct proc_mapping *a, const struct proc_mapping *b)
{
        return a->inode && a->inode == b->inode && a->device_major == b->device_major &&
               a->device_minor == b->device_minor && a->deleted == b->deleted && strcmp(a->path, b->path) == 0;
}

struct mapping_finder {
        struct process_table *table;
        int proc_fd;
};

static const struct object *find_mapped_object(void *context, const struct proc_mapping *m)
{
        const struct mapping_finder *f = context;

        return object_cache_get(&f->table->objects, f->proc_fd, m);
}

/* The mappings of a process and one object for each, NULL when unknown; both owned. False when they cannot be read. */
static bool find_mapped_objects(struct process_table *t, int proc_fd, struct proc_maps *maps_ret,
                                const struct object ***objects_ret)
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
                objects[i] = i && is_same_mapped_file(&maps.items[i - 1], &maps.items[i])
                                     ? objects[i - 1]
                                     : object_cache_get(&t->objects, proc_fd, &maps.items[i]);
        moved_text_assign(&maps, &objects, find_mapped_object, &(struct mapping_finder){ t, proc_fd });
        *maps_ret = maps;
        *objects_ret = objects;
        return true;
}

/* Returns false when the mappings cannot be read. */
static bool read_process_maps(struct process_table *t, struct process *p, int proc_fd)
{
        struct proc_maps maps;
        const struct object **objects;

        if (!find_mapped_objects(t, proc_fd, &maps, &objects))
                return false;
        /* An exiting process has no mappings any more: keep those read before. */
        if (maps.count == 0 && p->maps.count > 0) {
                proc_maps_deinit(&maps);
                free(objects);
                return false;
        }
        t->mapping_count -= p->maps.count;
        proc_maps_deinit(&p->maps);
        free(p->objects);
        if (maps.count > (ALL_MAPPINGS_MAX - t->mapping_count) / 4) {
                t->too_many_mappings++;
                proc_maps_deinit(&maps);
                maps = (struct proc_maps){ 0 };
                free(objects);
                objects = NULL;
        }
        t->mapping_count += maps.count;
        p->maps = maps;
        p->objects = objects;
        p->has_maps = true;
        return true;
}

void process_table_prepare(struct process_table *t, const struct sample_process *id)
{
        _cleanup_close_ int proc_fd = process_open(id);
        struct cgroup_names cgroup = { 0 };
        struct proc_maps maps;
        const struct object **objects;

        if (!t->unwinder || proc_fd < 0 || !find_mapped_objects(t, proc_fd, &maps, &objects))
                return;
        (void)!process_read_cgroup(proc_fd, &cgroup);
        unwinder_prepare(t->unwinder, proc_fd, cgroup.container, &maps, objects);
        proc_maps_deinit(&maps);
        free(objects);
}

static void read_process_identity(struct process *p, int proc_fd, bool first)
{
        if ((!first || !p->name[0]) && !process_read_name(proc_fd, p->name))
                return;
        if (first && process_read_cgroup(proc_fd, &p->cgroup))
                p->executable = process_read_executable(proc_fd);
}

static void read_process_container(struct process_table *t, struct process *p, int proc_fd)
{
        struct container_names names;

        if (!t->containers || p->container || !p->cgroup.container[0] ||
            !container_cache_find(t->containers, proc_fd, p->cgroup.container, &names))
                return;
        p->container = malloc(sizeof names); /* without memory its labels are left out */
        if (p->container)
                *p->container = names;
}

void process_table_exclude(struct process_table *t, const struct process *p)
{
        if (t->on_excluded)
                t->on_excluded(t->ctx, &p->id);
}

/* Whether the process only has the pid of a selected one. False when it exited before its start time was read. */
static bool is_other_life(const struct process_table *t, const struct sample_process *id)
{
        for (size_t i = 0; i < t->life_count; i++)
                if (t->lives[i].tgid == id->tgid)
                        return id->start_boot_ns && process_start_ticks(id) != process_start_ticks(&t->lives[i]);
        return false;
}

/* Filters are applied once per life. */
static void apply_process_filter(struct process_table *t, struct process *p)
{
        if (!is_other_life(t, &p->id) && !(t->filter && process_filter_excludes(t->filter, p->name, &p->cgroup)))
                return;
        p->is_excluded = true;
        t->excluded++;
        process_table_exclude(t, p);
}

/* Minimum time between two reads of the mappings. */
static int64_t get_read_pause_ns(const struct process *p)
{
        return p->read_cost_ns * READ_SHARE > NOTICE_PAUSE_NS ? p->read_cost_ns * READ_SHARE : NOTICE_PAUSE_NS;
}

static void read_process(struct process_table *t, struct process *p)
{
        _cleanup_close_ int proc_fd = process_open(&p->id);
        bool first = p->read_at_ns == 0, selects = first && (t->filter || t->life_count), has_new_maps;
        int64_t cpu_ns;

        p->read_in = t->drain;
        p->is_stale = false;
        p->read_at_ns = monotonic_ns();
        cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        if (proc_fd >= 0 && selects)
                read_process_identity(p, proc_fd, first);
        if (selects)
                apply_process_filter(t, p);
        if (proc_fd < 0 || p->is_excluded)
                return;
        has_new_maps = read_process_maps(t, p, proc_fd);
        if (!selects)
                read_process_identity(p, proc_fd, first);
        read_process_container(t, p, proc_fd);
        if (has_new_maps)
                update_unwinder(t, p, proc_fd);
        p->read_cost_ns = first ? 0 : clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns; /* the first read opens all files */
}

static void read_jit_names(struct process_table *t, struct process *p)
{
        _cleanup_close_ int proc_fd = process_open(&p->id);
        uint64_t dropped = count_dropped_jit_names(&p->jit);

        p->jit_read_in = t->drain;
        if (proc_fd < 0)
                return;
        refresh_jit_names(&p->jit, proc_fd, &p->maps, &t->jit_left);
        t->jit_dropped += count_dropped_jit_names(&p->jit) > dropped ? count_dropped_jit_names(&p->jit) - dropped : 0;
}

/* ---- the table ------------------------------------------------------------------- */

static struct process *add_process(struct process_table *t, const struct sample_process *id, const char *name,
                                   uint64_t executable_pages)
{
        struct process *p;

        if (!array_reserve(&t->items, &t->capacity, t->count))
                return NULL;
        p = calloc(1, sizeof *p);
        if (!p || !id_table_put(&t->by_id, id, sizeof *id, (uint32_t)t->count)) {
                free(p);
                return NULL;
        }
        t->items[t->count++] = p;
        p->id = *id;
        init_jit_names(&p->jit, &t->jit_budget);
        if (name)
                memcpy(p->name, name, SAMPLE_COMM_SIZE - 1);
        p->used_in = t->drain;
        p->unwind.executable_pages = executable_pages;
        read_process(t, p);
        if (!p->has_maps && !p->is_excluded)
                t->unreadable++;
        return p;
}

static struct process *find_process(struct process_table *t, const struct sample_process *id)
{
        uint32_t i;

        return id_table_find(&t->by_id, id, sizeof *id, &i) ? t->items[i] : NULL;
}

void process_table_handle_notice(struct process_table *t, const struct sample_notice *notice)
{
        struct process *p = find_process(t, &notice->process);

        if (!p) {
                (void)add_process(t, &notice->process, notice->leader_comm, notice->executable_pages);
                return;
        }
        p->unwind.executable_pages = notice->executable_pages;
        if (p->notice_count++ < FIRST_NOTICES || monotonic_ns() - p->read_at_ns > get_read_pause_ns(p))
                read_process(t, p);
        else
                p->is_stale = true;
}

struct process *process_table_get(struct process_table *t, const struct sample_process *id, const char *comm)
{
        struct process *p = find_process(t, id);
        bool is_old;

        if (!p)
                p = add_process(t, id, NULL, 0);
        if (!p)
                return NULL;
        if (!p->name[0])
                memcpy(p->name, comm, SAMPLE_COMM_SIZE - 1);
        p->used_in = t->drain;
        is_old = p->read_in != t->drain && monotonic_ns() - p->read_at_ns > MAPS_AGE_MAX_NS;
        if (is_old && t->unwinder) /* notices of two CPUs may arrive out of order */
                unwind_maps_request_notice(&t->unwinder->maps, id->tgid);
        if (is_old || p->is_stale)
                read_process(t, p);
        return p;
}

bool process_table_has_mapping(struct process_table *t, struct process *p, uint64_t pc)
{
        if (unwinder_has_mapping(&p->unwind, pc))
                return true;
        if (p->is_excluded || monotonic_ns() - p->read_at_ns < get_read_pause_ns(p) << p->vain_reads)
                return false;
        read_process(t, p);
        if (unwinder_has_mapping(&p->unwind, pc)) {
                p->vain_reads = 0;
                return true;
        }
        p->vain_reads += p->vain_reads < VAIN_READS_MAX;
        return false;
}

void process_table_update_waiting(struct process_table *t)
{
        for (size_t i = 0; i < t->count; i++)
                if (t->items[i]->unwind.waits)
                        update_unwinder(t, t->items[i], -1);
}

void process_table_begin_names(struct process_table *t)
{
        if (t->has_named)
                return;
        t->has_named = true;
        t->name_interval++;
        t->python_left = LIMIT_AGENT_PYTHON_WORK;
        t->v8_left = LIMIT_AGENT_V8_READ_BYTES;
        t->hotspot_left = LIMIT_AGENT_HOTSPOT_WORK;
}

bool process_table_has_fleeting_names(const struct process_table *t)
{
        for (size_t i = 0; i < t->count; i++)
                if (t->items[i]->python.state == PYTHON_IS_READ || t->items[i]->hotspot.state == HOTSPOT_IS_READ)
                        return true;
        return false;
}

void process_table_begin_drain(struct process_table *t)
{
        t->drain++;
        process_table_begin_names(t);
        t->jit_left = LIMIT_AGENT_JIT_READ_BYTES;
        if (t->containers)
                container_cache_begin_drain(t->containers);
        for (size_t i = 0; i < t->count; i++) {
                if (process_request_waits(t->items[i])) {
                        process_request_note_attempt(t->items[i]);
                        read_process(t, t->items[i]);
                } else if (t->items[i]->python.state == PYTHON_IS_STARTING ||
                           t->items[i]->hotspot.state == HOTSPOT_IS_STARTING) {
                        update_unwinder(t, t->items[i], -1);
                }
        }
}

static int compare_process_last_use(const void *a, const void *b)
{
        const struct process *const *x = a, *const *y = b;

        return (*x)->used_in > (*y)->used_in ? -1 : (*x)->used_in < (*y)->used_in;
}

void process_table_end_drain(struct process_table *t)
{
        bool forget_objects = object_cache_is_full(&t->objects);
        size_t kept = 0;

        if (t->count > LIMIT_AGENT_PROCESSES)
                qsort(t->items, t->count, sizeof *t->items, compare_process_last_use);
        id_table_deinit(&t->by_id);
        t->has_named = false;
        for (size_t i = 0; i < t->count; i++) {
                struct process *p = t->items[i];

                process_python_end_drain(t, p);
                process_v8_end_drain(t, p);
                process_hotspot_end_drain(t, p);
                if (forget_objects || kept == LIMIT_AGENT_PROCESSES || t->drain - p->used_in > UNUSED_DRAINS_MAX ||
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

static void set_vdso_name(struct process_table *t, struct user_location *p)
{
        const struct named_range *s;

        if (!t->vdso_tried) {
                code_names_init(&t->vdso, NULL);
                vdso_add_names(&t->vdso);
                t->vdso_tried = true;
        }
        s = code_names_find(&t->vdso, p->address);
        if (s)
                p->jit = (struct jit_location){ .name = code_names_get_text(&t->vdso, s) };
}

static struct user_location locate_in_mapping(struct process_table *t, struct process *p, const struct proc_mapping *m,
                                              uint64_t addr)
{
        const struct object *object = p->objects[m - p->maps.items];
        struct user_location ret = { .mapping = m, .address = addr - m->start + m->file_offset };

        if (object && object_find_address(object, ret.address, &ret.address)) {
                ret.kind = USER_LOCATION_OBJECT;
                ret.object = object;
                if (strcmp(m->path, "[vdso]") == 0)
                        set_vdso_name(t, &ret);
                return ret;
        }
        /* Refresh before any name is used: other code may be at this address now. */
        if (!object && p->jit_read_in != t->drain)
                read_jit_names(t, p);
        if (strcmp(m->path, "[vsyscall]") == 0)
                ret.jit.name = vsyscall_find_name(addr - m->start);
        if (ret.jit.name || find_jit_name(&p->jit, addr, &ret.jit))
                ret.kind = USER_LOCATION_NAMED;
        else if (m->path[0] == '/' && !is_memory_path(m->path, strlen(m->path))) /* which holds generated code */
                ret.kind = USER_LOCATION_FILE_OFFSET;
        else
                ret.kind = USER_LOCATION_ANONYMOUS;
        return ret;
}

struct user_location process_table_locate(struct process_table *t, struct process *p, uint64_t addr)
{
        assert(t->count && p);
        const struct proc_mapping *m = proc_maps_find(&p->maps, addr);

        if (!m && p->read_in != t->drain) {
                read_process(t, p);
                m = proc_maps_find(&p->maps, addr);
        }
        if (m)
                return locate_in_mapping(t, p, m, addr);
        return (struct user_location){ .kind = p->has_maps ? USER_LOCATION_UNMAPPED : USER_LOCATION_PROCESS_GONE,
                                       .address = addr };
}
