/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the log: the effects of each change, and when they became durable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "tests/faults/power_cut_internal.h"

void power_cut_must(bool ok, const char *what)
{
        if (ok)
                return;
        fprintf(stderr, "power cut: %s\n", what);
        abort();
}

static uint32_t add_object(struct power_cut *p, uint64_t inode, bool is_dir)
{
        GROW(p->objects, p->object_count);
        p->objects[p->object_count] = (struct object){ inode, is_dir };
        return p->object_count++;
}

/* The most recent one: inode numbers are reused. */
static uint32_t find_object(const struct power_cut *p, uint64_t inode)
{
        for (uint32_t i = p->object_count; i-- > 0;)
                if (!p->objects[i].is_dir && p->objects[i].inode == inode)
                        return i;
        return NOTHING;
}

static struct name *find_name(struct power_cut *p, uint32_t dir, const char *text, size_t n)
{
        for (size_t i = 0; i < p->name_count; i++)
                if (p->names[i].dir == dir && strncmp(p->names[i].text, text, n) == 0 && !p->names[i].text[n])
                        return &p->names[i];
        return NULL;
}

/* The directory of a path, and its last component. */
static uint32_t resolve_path(struct power_cut *p, const char *path, const char **last_ret)
{
        uint32_t dir = 0;

        path += strlen(p->dir);
        while (*path == '/')
                path++;
        for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
                const struct name *n = slash == path ? NULL : find_name(p, dir, path, (size_t)(slash - path));

                if (slash == path)
                        continue;
                power_cut_must(n, path);
                dir = n->object;
        }
        *last_ret = path;
        return dir;
}

static uint32_t find_object_by_path(struct power_cut *p, const char *path)
{
        const char *last;
        uint32_t dir = resolve_path(p, path, &last);
        const struct name *n = *last ? find_name(p, dir, last, strlen(last)) : NULL;

        return !*last ? dir : n ? n->object : NOTHING;
}

static struct effect *add_effect(struct power_cut *p, uint32_t change, uint32_t object)
{
        GROW(p->effects, p->effect_count);
        p->effects[p->effect_count] =
                (struct effect){ .object = object, .durable_at = NEVER, .change = change, .target = NOTHING };
        return &p->effects[p->effect_count++];
}

/* Make target the entry of a path; NOTHING removes it. */
static void set_name(struct power_cut *p, uint32_t change, const char *path, uint32_t target)
{
        const char *last;
        uint32_t dir = resolve_path(p, path, &last);
        struct name *n = find_name(p, dir, last, strlen(last));
        struct effect *e = add_effect(p, change, dir);

        e->name = last;
        e->target = target;
        if (n && target == NOTHING) {
                *n = p->names[--p->name_count];
        } else if (n) {
                n->object = target;
        } else if (target != NOTHING) {
                GROW(p->names, p->name_count);
                p->names[p->name_count++] = (struct name){ dir, target, last };
        }
}

/* Everything in this object (NOTHING: in any) becomes durable with this change. */
static void sync_effects(struct power_cut *p, size_t change, uint32_t object)
{
        for (size_t i = 0; i < p->effect_count; i++)
                if (p->effects[i].durable_at == NEVER && !p->effects[i].is_lost &&
                    (object == NOTHING || p->effects[i].object == object))
                        p->effects[i].durable_at = change;
}

static void copy_log_bytes(struct power_cut *p, uint32_t number, const struct change *c)
{
        uint32_t object = find_object(p, c->h.inode);

        power_cut_must(object != NOTHING, "a write to an unknown file");
        add_effect(p, number, object)->durable_at = c->h.synced ? number : NEVER;
}

static void add_effects(struct power_cut *p, uint32_t number)
{
        const struct change *c = &p->changes[number];
        uint32_t object;

        switch ((enum fault_op)c->h.op) {
        case FAULT_CREATE:
                object = add_object(p, c->h.inode, false);
                if (c->path)
                        set_name(p, number, c->path, object);
                break;
        case FAULT_MKDIR:
                set_name(p, number, c->path, add_object(p, 0, true));
                break;
        case FAULT_WRITE:
        case FAULT_TRUNCATE:
                copy_log_bytes(p, number, c);
                break;
        case FAULT_SYNC:
                object = find_object(p, c->h.inode);
                power_cut_must(object != NOTHING, "a sync of an unknown file");
                sync_effects(p, number, object);
                break;
        case FAULT_SYNC_LOST:
                object = find_object(p, c->h.inode);
                for (size_t i = 0; i < p->effect_count; i++)
                        p->effects[i].is_lost |= p->effects[i].object == object && p->effects[i].durable_at == NEVER;
                break;
        case FAULT_SYNC_DIR:
                object = find_object_by_path(p, c->path);
                power_cut_must(object != NOTHING, "a sync of an unknown directory");
                sync_effects(p, number, object);
                break;
        case FAULT_SYNC_ALL:
                sync_effects(p, number, NOTHING);
                break;
        case FAULT_LINK:
                object = find_object_by_path(p, c->path);
                power_cut_must(object != NOTHING, "a link to an unknown file");
                set_name(p, number, c->other, object);
                break;
        case FAULT_RENAME:
                object = find_object_by_path(p, c->path);
                power_cut_must(object != NOTHING, "a rename of an unknown file");
                set_name(p, number, c->other, object);
                set_name(p, number, c->path, NOTHING);
                break;
        case FAULT_UNLINK:
                set_name(p, number, c->path, NOTHING);
                break;
        case FAULT_MARK:
                break;
        }
}

static void read_log(int fd, struct buf *to)
{
        ssize_t n;

        buf_init(to, GiB(1));
        power_cut_must(lseek(fd, 0, SEEK_SET) == 0, "the log cannot be read");
        do {
                void *room = buf_reserve(to, KiB(256));

                power_cut_must(room, "the log is too large");
                n = read(fd, room, KiB(256));
                power_cut_must(n >= 0, "the log cannot be read");
                buf_commit(to, (size_t)n);
        } while (n);
}

struct power_cut *power_cut_read(int log_fd, const char *dir)
{
        struct power_cut *p = calloc(1, sizeof *p);

        power_cut_must(p && (p->dir = strdup(dir)), "no memory");
        read_log(log_fd, &p->log);
        add_object(p, 0, true);
        for (size_t at = 0; at + sizeof(struct fault_log_header) <= p->log.size;) {
                struct change c = { 0 };

                memcpy(&c.h, p->log.data + at, sizeof c.h);
                at += sizeof c.h;
                c.path = c.h.path_size ? (const char *)p->log.data + at : NULL;
                at += c.h.path_size;
                c.other = c.h.other_size ? (const char *)p->log.data + at : NULL;
                at += c.h.other_size;
                c.bytes = p->log.data + at;
                at += c.h.byte_count;
                power_cut_must(at <= p->log.size, "the log is cut off");
                GROW(p->changes, p->change_count);
                p->changes[p->change_count] = c;
                add_effects(p, (uint32_t)p->change_count++);
        }
        return p;
}

void power_cut_free(struct power_cut *p)
{
        buf_deinit(&p->log);
        free(p->changes);
        free(p->objects);
        free(p->effects);
        free(p->names);
        free(p->seen);
        free(p->dir);
        free(p);
}

size_t power_cut_changes(const struct power_cut *p)
{
        return p->change_count;
}
