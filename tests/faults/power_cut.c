/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/limits.h"
#include "tests/faults/power_cut_internal.h"

struct state {
        const struct power_cut *p;
        const struct cut *cut;
        uint64_t random;
        size_t moment;     /* names of changes before this one are durable */
        struct buf *files; /* indexed by object */
        struct name *names;
        size_t name_count;
        uint64_t sum;
};

static uint64_t draw_random(struct state *s, uint64_t below)
{
        s->random = s->random * 6364136223846793005u + 1442695040888963407u;
        return below ? (s->random >> 33) % below : 0;
}

static size_t get_journal_moment(struct state *s, uint32_t dir)
{
        struct state own = { .random = s->cut->seed ^ (dir + 1) * UINT64_C(0x9e3779b97f4a7c15) };

        if (s->cut->way == CUT_JOURNAL)
                return s->moment;
        (void)draw_random(&own, 2);
        return draw_random(&own, s->cut->changes + 1);
}

static bool is_name_durable(struct state *s, const struct effect *e)
{
        if (e->durable_at < s->cut->changes || s->cut->way == CUT_NAMES)
                return true;
        if (s->cut->way == CUT_JOURNAL || s->cut->way == CUT_SCATTERED)
                return e->change < get_journal_moment(s, e->object);
        return false;
}

/* How many of n unsynced bytes are durable; zeros_ret: the file nevertheless has its full size, filled with zeros. */
static size_t count_durable_bytes(struct state *s, const struct effect *e, size_t n, bool *zeros_ret)
{
        static const size_t sectors[] = { 512, 4096 };
        size_t sector = sectors[draw_random(s, 2)];

        *zeros_ret = false;
        if (e->durable_at < s->cut->changes || s->cut->way == CUT_BYTES)
                return n;
        if (s->cut->way == CUT_SYNCED || s->cut->way == CUT_NAMES)
                return 0;
        *zeros_ret = draw_random(s, 2);
        switch (draw_random(s, 3)) {
        case 0:
                return 0;
        case 1:
                return n;
        default:
                n = draw_random(s, n / sector + 1) * sector;
                return n;
        }
}

static void resize_file(struct buf *b, size_t size)
{
        static const uint8_t zeros[4096];

        while (b->size < size)
                buf_append(b, zeros, size - b->size < sizeof zeros ? size - b->size : sizeof zeros);
        b->size = size;
        power_cut_must(!b->failed, "no memory");
}

static void apply_bytes(struct state *s, const struct effect *e)
{
        const struct change *c = &s->p->changes[e->change];
        struct buf *to = &s->files[e->object];
        bool zeros;
        size_t n = count_durable_bytes(s, e, c->h.op == FAULT_TRUNCATE ? 1 : c->h.byte_count, &zeros);

        if (c->h.op == FAULT_TRUNCATE) {
                if (n)
                        resize_file(to, c->h.offset);
                return;
        }
        if (n && to->size < c->h.offset + n)
                resize_file(to, c->h.offset + n);
        if (n)
                memcpy(to->data + c->h.offset, c->bytes, n);
        if (zeros && to->size < c->h.offset + c->h.byte_count)
                resize_file(to, c->h.offset + c->h.byte_count);
}

static void apply_name(struct state *s, const struct effect *e)
{
        size_t i = 0;

        while (i < s->name_count && (s->names[i].dir != e->object || strcmp(s->names[i].text, e->name) != 0))
                i++;
        if (e->target == NOTHING) {
                if (i < s->name_count)
                        s->names[i] = s->names[--s->name_count];
                return;
        }
        s->names[i] = (struct name){ e->object, e->target, e->name };
        s->name_count += i == s->name_count;
}

/* A journal that contains a name contains all earlier ones. */
static size_t journal_moment(struct state *s)
{
        size_t least = 0;

        for (size_t i = 0; i < s->p->effect_count; i++)
                if (s->p->effects[i].name && s->p->effects[i].durable_at < s->cut->changes)
                        least = s->p->effects[i].change + 1;
        return least + draw_random(s, s->cut->changes - least + 1);
}

static int compare_names(const void *a, const void *b)
{
        const struct name *x = a, *y = b;

        return x->dir != y->dir ? (x->dir > y->dir) - (x->dir < y->dir) : strcmp(x->text, y->text);
}

static void add_to_sum(struct state *s, const void *data, size_t n)
{
        s->sum = s->sum * 31 + hash_bytes64(data, n);
}

static void write_state(struct state *s, uint32_t dir, const char *path)
{
        for (size_t i = 0; i < s->name_count; i++) {
                const struct name *n = &s->names[i];
                char inner[PATH_MAX];
                int fd;

                if (n->dir != dir)
                        continue;
                power_cut_must((size_t)snprintf(inner, sizeof inner, "%s/%s", path, n->text) < sizeof inner,
                               "a path is too long");
                if (s->p->objects[n->object].is_dir) {
                        power_cut_must(mkdir(inner, 0755) == 0, inner);
                        write_state(s, n->object, inner);
                        continue;
                }
                fd = open(inner, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
                power_cut_must(fd >= 0 && write(fd, s->files[n->object].data, s->files[n->object].size) ==
                                                  (ssize_t)s->files[n->object].size,
                               inner);
                close(fd);
        }
}

static bool is_known_state(struct power_cut *p, uint64_t sum)
{
        for (size_t i = 0; i < p->seen_count; i++)
                if (p->seen[i] == sum)
                        return true;
        GROW(p->seen, p->seen_count);
        p->seen[p->seen_count++] = sum;
        return false;
}

uint64_t power_cut_make(struct power_cut *p, const struct cut *cut, const char *to, uint32_t *marks_ret)
{
        struct state s = { .p = p,
                           .cut = cut,
                           .random = cut->seed,
                           .files = calloc(p->object_count, sizeof *s.files),
                           .names = calloc(p->effect_count + 1, sizeof *s.names) };
        uint64_t ret;

        power_cut_must(s.files && s.names, "no memory");
        for (uint32_t i = 0; i < p->object_count; i++)
                buf_init(&s.files[i], GiB(1));
        s.moment = journal_moment(&s);
        *marks_ret = 0;
        for (size_t i = 0; i < cut->changes; i++)
                if (p->changes[i].h.op == FAULT_MARK)
                        *marks_ret |= UINT32_C(1) << p->changes[i].h.offset;
        for (size_t i = 0; i < p->effect_count && p->effects[i].change < cut->changes; i++) {
                const struct effect *e = &p->effects[i];

                if (!e->name)
                        apply_bytes(&s, e);
                else if (is_name_durable(&s, e))
                        apply_name(&s, e);
        }
        qsort(s.names, s.name_count, sizeof *s.names, compare_names);
        add_to_sum(&s, marks_ret, sizeof *marks_ret);
        for (size_t i = 0; i < s.name_count; i++) {
                add_to_sum(&s, s.names[i].text, strlen(s.names[i].text) + 1);
                add_to_sum(&s, &s.names[i].dir, sizeof s.names[i].dir);
                add_to_sum(&s, s.files[s.names[i].object].data, s.files[s.names[i].object].size);
        }
        ret = is_known_state(p, s.sum) ? 0 : s.sum;
        if (ret)
                write_state(&s, 0, to);
        for (uint32_t i = 0; i < p->object_count; i++)
                buf_deinit(&s.files[i]);
        free(s.files);
        free(s.names);
        return ret;
}

const char *power_cut_describe(const struct power_cut *p, const struct cut *cut)
{
        static const char *const ops[] = { "create",   "write",       "truncate",
                                           "sync",     "failed sync", "sync the directory",
                                           "sync all", "rename",      "link",
                                           "unlink",   "mkdir",       "mark" };
        static const char *const ways[] = { "only what was synced", "all names, only synced bytes",
                                            "all bytes, only synced names", "names up to a moment",
                                            "names of each directory up to a moment" };
        static char ret[2 * PATH_MAX];
        const struct change *c = cut->changes ? &p->changes[cut->changes - 1] : NULL;

        snprintf(ret, sizeof ret, "%zu of %zu changes, the last: %s %s (inode %llu, %llu bytes); %s, seed %llu",
                 cut->changes, p->change_count, c ? ops[c->h.op] : "", c && c->path ? c->path : "",
                 (unsigned long long)(c ? c->h.inode : 0), (unsigned long long)(c ? c->h.byte_count : 0),
                 ways[cut->way], (unsigned long long)cut->seed);
        return ret;
}
