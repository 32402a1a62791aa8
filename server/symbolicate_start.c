/* SPDX-License-Identifier: Apache-2.0 */
#include "server/symbolicate_start.h"

#include <stdbool.h>
#include <stdlib.h>

struct search {
        size_t key;
        uint32_t function; /* of the outermost frame */
        uint64_t inside;   /* lowest address known to be of the function */
        uint64_t outside;  /* highest below it known not to be, plus one; 0: none is known */
        uint64_t step;     /* of the next probe; 0: by halves */
};

static uint32_t outermost(const struct symbol_batch *b, size_t i)
{
        const struct symbol_result *r = &b->results[i];

        return r->frame_count ? b->frames[r->first_frame + r->frame_count - 1].function : 0;
}

static uint64_t probe_of(const struct search *s)
{
        if (!s->step)
                return s->outside + (s->inside - s->outside) / 2;
        return s->inside < s->step ? 0 : s->inside - s->step;
}

static void take_probe(struct search *s, uint64_t probe, bool same)
{
        if (same) {
                s->inside = probe;
                s->step *= 2;
                return;
        }
        s->outside = probe + 1;
        s->step = 0;
}

/* One probe for each of count searches; those that have ended are dropped. */
static enum status probe_all(struct symbol_view *view, const struct symbol_key *keys, struct search *searches,
                             size_t *count, struct symbol_key *probes, struct symbol_batch *batch, uint64_t *ret,
                             struct error *err)
{
        size_t left = 0;
        enum status st;

        for (size_t i = 0; i < *count; i++)
                probes[i] = (struct symbol_key){ .build_id = keys[searches[i].key].build_id,
                                                 .address = probe_of(&searches[i]) };
        st = symbol_view_lookup(view, probes, *count, batch, err);
        for (size_t i = 0; !st && i < *count; i++) {
                struct search s = searches[i];

                take_probe(&s, probes[i].address, outermost(batch, i) == s.function);
                if (s.inside == s.outside || s.inside == 0)
                        ret[s.key] = s.inside;
                else
                        searches[left++] = s;
        }
        *count = left;
        return st;
}

enum status function_starts(struct symbol_view *view, const struct symbol_key *keys, const struct symbol_batch *batch,
                            uint64_t *ret, struct error *err)
{
        size_t n = batch->result_count, count = 0;
        struct search *searches = calloc(n + 1, sizeof *searches);
        struct symbol_key *probes = calloc(n + 1, sizeof *probes);
        struct symbol_batch found = { 0 };
        enum status st = searches && probes ? ST_OK : error_no_memory(err);

        for (size_t i = 0; !st && i < n; i++) {
                uint32_t function = outermost(batch, i);

                ret[i] = batch->results[i].address;
                if (function && ret[i])
                        searches[count++] = (struct search){ .key = i, .function = function, .inside = ret[i], .step = 1 };
        }
        while (!st && count)
                st = probe_all(view, keys, searches, &count, probes, &found, ret, err);
        symbol_batch_deinit(&found);
        free(searches);
        free(probes);
        return st;
}
