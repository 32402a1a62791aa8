/* SPDX-License-Identifier: Apache-2.0 */
/* From the build-ids of a profile to open files, while the processes live. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/beneath.h"
#include "agent/object_cache.h"
#include "agent/process_read.h"
#include "agent/uploads_internal.h"
#include "common/cleanup.h"
#include "common/clock.h"

struct wanted {
        const struct build_id *id; /* in the profile */
        const char *path;
        struct upload_offer offer;
        bool found;
};

/* Under the lock. What does not fit is met again. */
static size_t choose(struct uploads *u, const struct profile *p, struct wanted *ret)
{
        int64_t now = monotonic_ns();
        size_t n = 0;

        if (u->not_before_ns > now)
                return 0;
        for (uint32_t i = 0; i < p->mappings.count && u->offer_count + n < LIMIT_AGENT_UPLOAD_OFFERS; i++) {
                const struct profile_mapping *m = &p->mappings.items[i];

                if (!m->build_id.size || !upload_known_begin(&u->known, &m->build_id, now))
                        continue;
                ret[n++] = (struct wanted){ .id = &m->build_id, .path = profile_text(p, m->file),
                                            .offer = { .id = m->build_id, .fd = -1, .root_fd = -1 } };
        }
        u->stats.met += n;
        return n;
}

static void open_in_process(struct wanted *w, const struct process *process, const struct proc_mapping *m)
{
        _cleanup_close_ int proc_fd = process_open(&process->id);

        if (proc_fd < 0)
                return;
        w->offer.fd = object_cache_open(proc_fd, m);
        w->offer.root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
        w->found = w->offer.fd >= 0;
        if (!w->found && w->offer.root_fd >= 0) {
                close(w->offer.root_fd);
                w->offer.root_fd = -1;
        }
}

static void look_in_process(const struct process *process, struct wanted *wanted, size_t count)
{
        for (size_t i = 0; i < process->maps.count; i++) {
                const struct object *o = process->objects[i];

                for (size_t k = 0; o && k < count; k++)
                        if (!wanted[k].found && build_id_equal(&o->build_id, wanted[k].id))
                                open_in_process(&wanted[k], process, &process->maps.items[i]);
        }
}

/* The process is gone, or it is the kernel: by its path on the host, if that is still the same file. */
static void open_on_host(struct wanted *w)
{
        w->offer.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (w->offer.root_fd >= 0 && w->path[0] == '/')
                w->offer.fd = open_regular_beneath(w->offer.root_fd, w->path, 0);
}

void uploads_meet(struct uploads *u, const struct profile *p, const struct process_table *processes)
{
        struct wanted wanted[LIMIT_AGENT_UPLOAD_OFFERS];
        size_t count;

        pthread_mutex_lock(&u->lock);
        count = choose(u, p, wanted);
        pthread_mutex_unlock(&u->lock);
        if (!count)
                return;
        for (size_t i = 0; i < processes->count; i++)
                if (processes->items[i]->has_maps && processes->items[i]->objects)
                        look_in_process(processes->items[i], wanted, count);
        for (size_t i = 0; i < count; i++) {
                if (!wanted[i].found)
                        open_on_host(&wanted[i]);
                wanted[i].offer.path = strdup(wanted[i].path);
        }
        pthread_mutex_lock(&u->lock);
        for (size_t i = 0; i < count; i++) {
                if (wanted[i].offer.path) {
                        u->offers[u->offer_count++] = wanted[i].offer;
                        u->stats.waiting++;
                } else {
                        upload_known_end(&u->known, wanted[i].id, UPLOAD_END_LATER, monotonic_ns());
                        upload_offer_deinit(&wanted[i].offer);
                }
        }
        pthread_cond_broadcast(&u->changed);
        pthread_mutex_unlock(&u->lock);
}
