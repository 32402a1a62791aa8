/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question to all upstreams whose answers are joined.
 *
 * Any reader may ask, and anything, so what an upstream makes of such a question says little of it: one that takes its
 * whole time, or is answered with an error, which is what servers do that do not know it, leaves the breaker as it is.
 * Nobody opens it for others by asking for what is slow. An upstream that cannot be reached is one that failed.
 */
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "debuginfo-store/federation_internal.h"
#include "debuginfo-store/store_internal.h"

#define AT_ONCE 8

/* One upstream's part in it. */
struct poll {
        struct federation *f;
        const struct federation_question *question;
        const struct forwarded *way;
        struct upstream *upstream;
        uint64_t epoch;
        pthread_t thread;
        bool is_asked, has_thread;
        int fd;                     /* -1 none */
        struct fetch_answer answer;
        uint64_t took_ms;
        enum status st;
        struct error err;
};

static void *ask(void *context)
{
        struct poll *p = context;
        const struct fetch_question question = { .url = upstream_url(p->upstream), .header = upstream_header(p->upstream), .part = p->question->path,
                                                 .forwarded_for = p->way->header, .timeout_s = p->question->total_s,
                                                 .total_s = p->question->total_s, .max_bytes = p->question->max_bytes };
        int64_t began_ns = monotonic_ns();

        p->fd = object_scratch(p->f->asker.store, &p->err);
        p->st = p->fd < 0 ? ST_OS : fetch_object(&question, p->fd, &p->f->stop, &p->answer, &p->err);
        p->took_ms = (uint64_t)(monotonic_ns() - began_ns) / 1000000;
        return NULL;
}

static enum upstream_outcome outcome_of(const struct poll *p)
{
        switch (p->st) {
        case ST_OK:
                return UPSTREAM_FOUND;
        case ST_NOT_FOUND:
                return UPSTREAM_MISSING;
        case ST_TOO_BIG:
        case ST_BAD_DATA:
                return UPSTREAM_REFUSED;
        case ST_BUSY:
                return p->answer.http_status >= 400 || p->took_ms >= 1000 * p->question->total_s || p->f->stop ? UPSTREAM_UNSURE
                                                                                                            : UPSTREAM_FAILED;
        default:
                return UPSTREAM_UNSURE; /* of ours */
        }
}

static void begin(struct poll *p)
{
        p->fd = -1;
        p->is_asked = !upstream_begin(p->upstream, &p->epoch, &p->err);
        p->st = p->is_asked ? ST_OK : ST_BUSY;
        if (!p->is_asked)
                return;
        p->has_thread = pthread_create(&p->thread, NULL, ask, p) == 0;
        if (!p->has_thread)
                ask(p);
}

static void end(struct poll *p)
{
        struct federation_asker *a = &p->f->asker;
        struct upstream_status status;

        if (p->has_thread)
                pthread_join(p->thread, NULL);
        if (!p->is_asked)
                return;
        if (!p->st)
                p->st = p->question->answered(p->question->context, p->fd, &p->err);
        if (p->fd >= 0)
                close(p->fd);
        if (upstream_end(p->upstream, p->epoch, outcome_of(p), &p->answer, p->took_ms, &p->err) != UPSTREAM_UNCHANGED &&
            a->upstream_changed) {
                upstream_get(p->upstream, &status);
                a->upstream_changed(a->context, &status);
        }
        if (p->st) {
                upstream_get(p->upstream, &status);
                p->question->failed(p->question->context, status.url, &p->err);
        }
}

enum status federation_ask_all(struct federation *f, const struct federation_question *question,
                               const struct federation_client *client, struct error *err)
{
        struct poll *polls;
        struct forwarded way;
        enum status st = ST_OK;

        if (forwarded_parse(client->forwarded_for, f->name, &way, NULL))
                return ST_OK;
        polls = calloc(AT_ONCE, sizeof *polls);
        if (!polls)
                return error_no_memory(err);
        for (size_t first = 0, n; first < f->asker.upstream_count && !(client->cancel && *client->cancel); first += n) {
                n = f->asker.upstream_count - first < AT_ONCE ? f->asker.upstream_count - first : AT_ONCE;
                for (size_t i = 0; i < n; i++) {
                        polls[i] = (struct poll){ .f = f, .question = question, .way = &way,
                                                  .upstream = f->asker.upstreams[first + i] };
                        begin(&polls[i]);
                }
                for (size_t i = 0; i < n; i++) {
                        end(&polls[i]);
                        if (polls[i].st)
                                st = error_set(err, ST_BUSY, "not all upstreams have answered");
                }
        }
        free(polls);
        return client->cancel && *client->cancel ? error_set(err, ST_BUSY, "the service stops") : st;
}
