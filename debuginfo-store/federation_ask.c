/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/federation_ask.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "debuginfo-store/pieces.h"
#include "debuginfo-store/store_internal.h"

#define TIMEOUT_S 90 /* as libdebuginfod */

enum status federation_asker_init(struct federation_asker *a, struct debuginfo_store *store,
                                  const struct federation_options *o, struct error *err)
{
        *a = (struct federation_asker){ .store = store, .timeout_s = o->timeout_s ? o->timeout_s : TIMEOUT_S,
                                        .upstream_changed = o->upstream_changed, .context = o->context };
        a->upstreams = calloc(o->url_count + 1, sizeof *a->upstreams);
        if (!a->upstreams)
                return error_no_memory(err);
        while (a->upstream_count < o->url_count) {
                const struct upstream_options u = { .url = o->urls[a->upstream_count],
                                                    .header = o->headers ? o->headers[a->upstream_count] : NULL, .failures_max = o->breaker_failures,
                                                    .pause_s = o->breaker_pause_s };
                enum status st = upstream_create(&u, &a->upstreams[a->upstream_count], err);

                if (st)
                        return st;
                a->upstream_count++;
        }
        return ST_OK;
}

void federation_asker_deinit(struct federation_asker *a)
{
        for (size_t i = 0; i < a->upstream_count; i++)
                upstream_destroy(a->upstreams[i]);
        free(a->upstreams);
}

/* ---- what comes ---- */

struct arrival {
        struct download *download;
        void (*show)(void *context, struct download *d);
        void *context;
        bool is_shown;
};

static void grew(void *context, const struct fetch_answer *answer)
{
        struct arrival *a = context;

        download_grew(a->download, answer);
        if (!a->is_shown)
                a->show(a->context, a->download);
        a->is_shown = true;
}

/* Verified and in the store. *is_bad_ret: it was not what was asked for. */
static enum status keep_object(struct federation_asker *a, const struct wanted *w, enum object_kind kind, int fd,
                               bool *is_bad_ret, struct stored_object *ret, struct error *err)
{
        struct object_claim claim = { .build_id = w->id, .kind = kind, .source = SOURCE_UPSTREAM };
        struct object_upload *upload;
        enum refusal why;
        bool same;
        enum status st = object_upload_begin(a->store, &claim, &upload, &why, err);

        if (st)
                return st;
        st = object_upload_append_file(upload, fd, &why, err);
        if (st)
                object_upload_abort(upload);
        else
                st = object_upload_finish(upload, ret, &same, &why, err);
        *is_bad_ret = st && why != REFUSED_NOT;
        return st;
}

/* ---- one upstream ---- */

static enum status fetch(struct federation_asker *a, const struct upstream *u, const struct wanted *w,
                         const atomic_bool *cancel, struct arrival *arrival, struct fetch_answer *answer,
                         struct error *err)
{
        const struct fetch_question question = { .url = upstream_url(u), .header = upstream_header(u), .id = &w->id, .part = w->part,
                                                 .forwarded_for = w->forwarded_for, .timeout_s = a->timeout_s,
                                                 .max_bytes = wanted_is_piece(w->part) ? LIMIT_PIECE_BYTES : 0,
                                                 .progress = grew, .context = arrival };
        enum status st = fetch_object(&question, download_fd(arrival->download), cancel, answer, err);

        if (!st)
                download_grew(arrival->download, answer);
        return st;
}

static enum status keep(struct federation_asker *a, const struct wanted *w, int fd, bool *is_bad_ret,
                        struct stored_object *ret, struct error *err)
{
        enum object_kind kind;

        if (wanted_is_piece(w->part))
                return piece_put(a->store, &w->id, w->part, fd, err);
        if (!object_kind_parse(w->part, &kind))
                return error_set(err, ST_USAGE, "'%.40s' is no kind", w->part);
        return keep_object(a, w, kind, fd, is_bad_ret, ret, err);
}

/* An older server has no sections, and says so with a status of 400 and more: that is no failure. */
static bool is_no_section(const struct wanted *w, const struct fetch_answer *answer)
{
        return strncmp(w->part, "section/", 8) == 0 && answer->http_status >= 400;
}

static enum upstream_outcome outcome_of(enum status st, const atomic_bool *cancel)
{
        if (!st)
                return UPSTREAM_FOUND;
        if (st == ST_NOT_FOUND)
                return UPSTREAM_MISSING;
        if (st == ST_TOO_BIG)
                return UPSTREAM_REFUSED;
        return *cancel ? UPSTREAM_UNSURE : UPSTREAM_FAILED;
}

static enum asked asked_of(enum upstream_outcome outcome)
{
        switch (outcome) {
        case UPSTREAM_FOUND:
                return ASKED_STORED;
        case UPSTREAM_MISSING:
                return ASKED_MISSING;
        case UPSTREAM_REFUSED:
                return ASKED_REFUSED;
        default:
                return ASKED_FAILED;
        }
}

/* Fetch and keep. A failure to keep what came well is ours and says nothing of the upstream. */
static enum upstream_outcome take(struct federation_asker *a, const struct upstream *u, const struct wanted *w,
                                  const atomic_bool *cancel, struct arrival *arrival, struct fetch_answer *answer,
                                  uint64_t *took_ms_ret, struct stored_object *ret, struct error *err)
{
        int64_t began_ns = monotonic_ns();
        enum upstream_outcome outcome;
        bool is_bad = false;
        int fd = object_scratch(a->store, err);

        if (fd < 0 || download_create(fd, &arrival->download, err))
                return UPSTREAM_UNSURE;
        outcome = outcome_of(fetch(a, u, w, cancel, arrival, answer, err), cancel);
        *took_ms_ret = (uint64_t)(monotonic_ns() - began_ns) / 1000000;
        if (outcome == UPSTREAM_FAILED && is_no_section(w, answer))
                outcome = UPSTREAM_UNSURE;
        if (outcome == UPSTREAM_FOUND && keep(a, w, download_fd(arrival->download), &is_bad, ret, err))
                outcome = is_bad ? UPSTREAM_REFUSED : UPSTREAM_UNSURE;
        return outcome;
}

static enum asked ask_one(struct federation_asker *a, struct upstream *u, const struct wanted *w, const atomic_bool *cancel,
                          struct arrival *arrival, struct stored_object *ret, struct error *err)
{
        struct fetch_answer answer = { 0 };
        enum upstream_outcome outcome;
        struct upstream_status status;
        uint64_t took_ms = 0, epoch;

        if (upstream_begin(u, &epoch, err))
                return ASKED_FAILED;
        outcome = take(a, u, w, cancel, arrival, &answer, &took_ms, ret, err);
        if (upstream_end(u, epoch, outcome, &answer, took_ms, err) != UPSTREAM_UNCHANGED && a->upstream_changed) {
                upstream_get(u, &status);
                a->upstream_changed(a->context, &status);
        }
        if (arrival->is_shown) /* who reads along is answered by this: the figures come first */
                arrival->show(arrival->context, NULL);
        if (arrival->download)
                download_end(arrival->download, outcome == UPSTREAM_FOUND);
        download_unref(arrival->download);
        return asked_of(outcome);
}

/* One that might have it and did not say counts for more than one that sent something else, and that for more than a miss. */
enum asked federation_ask(struct federation_asker *a, const struct wanted *w, const atomic_bool *cancel,
                          void (*show)(void *context, struct download *d), void *context, struct stored_object *ret,
                          struct error *err)
{
        enum asked worst = ASKED_MISSING;

        for (size_t i = 0; i < a->upstream_count && !*cancel; i++) {
                struct arrival arrival = { .show = show, .context = context };
                struct error one = { 0 };
                enum asked asked = ask_one(a, a->upstreams[i], w, cancel, &arrival, ret, &one);

                if (asked == ASKED_STORED)
                        return asked;
                if (asked > worst) {
                        worst = asked;
                        *err = one;
                }
        }
        return *cancel ? ASKED_FAILED : worst;
}
