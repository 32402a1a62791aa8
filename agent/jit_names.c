/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jit_names.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/mount_probe.h"
#include "agent/object_cache.h"
#include "agent/process_read.h"
#include "common/cleanup.h"

void jit_names_init(struct jit_names *j, struct code_budget *budget)
{
        perf_map_init(&j->map, budget);
        jitdump_init(&j->dump, budget);
}

void jit_names_deinit(struct jit_names *j)
{
        perf_map_deinit(&j->map);
        jitdump_deinit(&j->dump);
}

/* The mark that runtimes leave for profilers: "jit-PID.dump", mapped executable. */
static bool is_mark(const struct proc_mapping *m)
{
        const char *name = strrchr(m->path, '/');
        size_t n = name ? strlen(name) : 0;

        return m->inode && n > strlen("/jit-.dump") && strncmp(name, "/jit-", 5) == 0 && strcmp(name + n - 5, ".dump") == 0;
}

void jit_names_refresh(struct jit_names *j, int proc_fd, const struct proc_maps *maps, uint64_t *left)
{
        _cleanup_close_ int root = -1;
        char path[64];
        uid_t uid;
        pid_t ns_pid;

        if (!process_read_identity(proc_fd, &uid, &ns_pid))
                return;
        for (size_t i = 0; i < maps->count; i++) {
                _cleanup_close_ int fd = is_mark(&maps->items[i]) ? object_cache_open(proc_fd, &maps->items[i]) : -1;

                if (fd < 0)
                        continue;
                if (jitdump_refresh(&j->dump, fd, ns_pid, uid, left, NULL))
                        continue;
                break;
        }
        snprintf(path, sizeof path, "/" PERF_MAP_PATH, (int)ns_pid);
        if (!mount_probe_answers(mount_probe_process_key(proc_fd), MOUNT_PROBE_IN_ROOT, proc_fd, "", path))
                return;
        root = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root >= 0 && perf_map_refresh(&j->map, root, ns_pid, uid, left, NULL))
                return;
}

uint64_t jit_names_left_out(const struct jit_names *j)
{
        return j->map.left_out + j->dump.left_out;
}

bool jit_names_find(struct jit_names *j, uint64_t addr, struct jit_place *ret)
{
        const struct code_symbol *s;

        if (jitdump_find(&j->dump, addr, ret))
                return true;
        s = code_names_find(&j->map.code, addr);
        if (s)
                *ret = (struct jit_place){ .name = code_names_name(&j->map.code, s), .file = "" };
        return s;
}
