/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/wanted.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

bool wanted_is_piece(const char *part)
{
        return strchr(part, '/') != NULL;
}

static struct wanted **bucket_of(struct wanted_table *t, const struct build_id *id, const char *part)
{
        uint32_t h = 2166136261u;

        for (unsigned i = 0; i < id->size; i++)
                h = (h ^ id->bytes[i]) * 16777619u;
        for (const char *p = part; *p; p++)
                h = (h ^ (unsigned char)*p) * 16777619u;
        return &t->buckets[h % WANTED_BUCKETS];
}

static void free_wanted(struct wanted *w)
{
        download_unref(w->download);
        free(w->part);
        free(w->forwarded_for);
        free(w->via);
        free(w);
}

static bool is_over(const struct wanted *w)
{
        return (w->state == WANTED_MISSING || w->state == WANTED_FAILED) && w->forget_ns <= monotonic_ns();
}

static bool answers(const struct wanted *w, const struct build_id *id, const char *part, const struct forwarded *way)
{
        return build_id_equal(&w->id, id) && strcmp(w->part, part) == 0 &&
               (strcmp(w->via, way->via) == 0 || (w->state == WANTED_MISSING && !w->via[0]));
}

struct wanted *wanted_find(struct wanted_table *t, const struct build_id *id, const char *part, const struct forwarded *way)
{
        struct wanted **at = bucket_of(t, id, part), *found = NULL;

        while (*at) {
                struct wanted *w = *at;

                if (is_over(w)) {
                        *at = w->next;
                        free_wanted(w);
                        t->count--;
                        continue;
                }
                if (answers(w, id, part, way))
                        found = w;
                at = &w->next;
        }
        return found;
}

void wanted_forget(struct wanted_table *t, struct wanted *gone)
{
        for (struct wanted **at = bucket_of(t, &gone->id, gone->part); *at; at = &(*at)->next) {
                if (*at == gone) {
                        *at = gone->next;
                        free_wanted(gone);
                        t->count--;
                        return;
                }
        }
}

/* Whoever asks for very many things must not keep others from being asked for: what has its answer goes early. */
static void make_room(struct wanted_table *t)
{
        for (size_t i = 0; i < WANTED_BUCKETS; i++, t->hand = (t->hand + 1) % WANTED_BUCKETS) {
                for (struct wanted *w = t->buckets[t->hand]; w; w = w->next) {
                        if (w->state == WANTED_MISSING || w->state == WANTED_FAILED) {
                                wanted_forget(t, w);
                                return;
                        }
                }
        }
}

struct wanted *wanted_add(struct wanted_table *t, const struct build_id *id, const char *part, const struct forwarded *way)
{
        struct wanted **bucket = bucket_of(t, id, part);
        struct wanted *w;

        if (t->count >= WANTED_MAX)
                make_room(t);
        w = t->count < WANTED_MAX ? calloc(1, sizeof *w) : NULL;
        if (!w)
                return NULL;
        w->part = strdup(part);
        w->forwarded_for = strdup(way->header);
        w->via = strdup(way->via);
        if (!w->part || !w->forwarded_for || !w->via) {
                free_wanted(w);
                return NULL;
        }
        w->id = *id;
        w->next = *bucket;
        *bucket = w;
        t->count++;
        return w;
}

void wanted_deinit(struct wanted_table *t)
{
        for (size_t b = 0; b < WANTED_BUCKETS; b++) {
                while (t->buckets[b]) {
                        struct wanted *w = t->buckets[b];

                        t->buckets[b] = w->next;
                        free_wanted(w);
                }
        }
}
