/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_FRAME_FILTER_H
#define CAIRN_QUERY_ENGINE_FRAME_FILTER_H

/**
 * @file
 * focus, ignore, hide and show, as in pprof: the first two filter stacks, the others frames.
 *
 * A frame matches when the pattern occurs in one of its names, in its file, or in the path of its object. A stack is
 * kept when a frame matches focus and none matches ignore. Frames that match hide, or do not match show, are removed
 * from the stacks; their cost is attributed to the remaining callers. A stack without remaining frames is dropped.
 *
 * Threads: belongs to one thread.
 * Source: google/pprof profile/filter.go, FilterSamplesByName().
 */
#include "query/engine/location_frames.h"
#include "query/engine/request.h"

struct frame_filter {
        struct regex_match *focus, *ignore, *hide, *show; /* owned; NULL: not set */
        struct work_meter *meter;                         /* NULL: unlimited; borrowed */
        /* Readable names of the outermost frames of the stacks to keep; borrowed, not set by frame_filter_parse(). */
        const char *const *call_site;
        size_t call_site_count;
};

enum status frame_filter_parse(const struct query_param_source *params, struct frame_filter *ret,
                               struct error *err) MUST_CHECK;
void frame_filter_deinit(struct frame_filter *f);

static inline bool frame_filter_is_set(const struct frame_filter *f)
{
        return f->focus || f->ignore || f->hide || f->show || f->call_site_count;
}

/**
 * Remove hidden frames from the locations, and select stacks.
 * @param kept_ret  one byte per stack, 1: kept; owned by the caller.
 */
enum status frame_filter_apply(const struct frame_filter *f, const struct frame_table *frames,
                               const struct scan_stacks *stacks, struct location_frames *locations, uint8_t **kept_ret,
                               struct error *err) MUST_CHECK;

#endif
