/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/drop-in/line_zero.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "symbolizer/formats/symcache.h"

/* ---- the last code with a line ---- */

struct line_search {
        uint64_t address; /* the nearest one with a line, if has_line */
        bool has_line, is_over;
};

/* Addresses come in descending order; code without any symbol ends the search. */
static void note_line(void *context, const struct answer *a)
{
        struct line_search *s = context;

        if (s->is_over)
                return;
        s->address = a->address;
        s->has_line = a->frame_count && a->frames[0].line;
        s->is_over = s->has_line || !a->frame_count;
}

static enum status search_line_before(struct answer_source *source, uint64_t address, struct line_search *ret,
                                      struct error *err)
{
        uint64_t addresses[SYMCACHE_LOOKUP_BATCH], searched = 0;
        enum status st = ST_OK;

        *ret = (struct line_search){ .is_over = address == 0 };
        while (!st && !ret->is_over && searched < LINE_ZERO_BYTES_MAX) {
                size_t n = 0;

                while (n < SYMCACHE_LOOKUP_BATCH && searched < address) {
                        searched++;
                        addresses[n++] = address - searched;
                }
                st = source->ask(source->context, addresses, n, note_line, ret, err);
                ret->is_over |= searched == address;
        }
        return st;
}

/* ---- answers ---- */

struct line_answer {
        struct answer first; /* of the address; its frames are valid until the last call of one batch has returned */
        bool has_first, is_wanted;
        void (*give)(void *printer, const struct answer *a, bool is_approximate);
        void *printer;
};

/* The second answer is that of the code with a line. */
static void combine_answers(void *context, const struct answer *a)
{
        struct line_answer *l = context;
        _cleanup_free_ struct answer_frame *frames = NULL;
        _cleanup_free_ struct answer_detail *details = NULL;
        struct answer combined = l->first;

        if (!l->has_first) {
                l->first = *a;
                l->has_first = true;
                return;
        }
        frames = calloc(combined.frame_count, sizeof *frames);
        details = calloc(combined.frame_count, sizeof *details);
        if (!frames || !details || !a->frame_count) {
                l->give(l->printer, &l->first, false);
                return;
        }
        memcpy(frames, combined.frames, combined.frame_count * sizeof *frames);
        memcpy(details, combined.details, combined.frame_count * sizeof *details);
        frames[0].file = a->frames[0].file;
        frames[0].line = a->frames[0].line;
        details[0].column = a->details[0].column;
        details[0].discriminator = a->details[0].discriminator;
        combined.frames = frames;
        combined.details = details;
        l->give(l->printer, &combined, true);
}

/* Give an answer that has a line, or no code. */
static void give_complete_answer(void *context, const struct answer *a)
{
        struct line_answer *l = context;

        l->is_wanted = a->frame_count && !a->frames[0].line && a->details;
        if (!l->is_wanted)
                l->give(l->printer, a, false);
}

static void give_answer(void *context, const struct answer *a)
{
        struct line_answer *l = context;

        l->give(l->printer, a, false);
}

enum status answer_without_line_zero(struct answer_source *source, uint64_t address,
                                     void (*give)(void *printer, const struct answer *a, bool is_approximate),
                                     void *printer, struct error *err)
{
        struct line_answer l = { .give = give, .printer = printer };
        enum status st = source->ask(source->context, &address, 1, give_complete_answer, &l, err);
        uint64_t both[2] = { address };
        struct line_search s;

        if (st || !l.is_wanted)
                return st;
        st = search_line_before(source, address, &s, err);
        if (st)
                return st;
        both[1] = s.address;
        return s.has_line ? source->ask(source->context, both, 2, combine_answers, &l, err)
                          : source->ask(source->context, both, 1, give_answer, &l, err);
}
