/* SPDX-License-Identifier: Apache-2.0 */
#include "query/merged.h"

#include <stdlib.h>

enum status merged_make(struct store_scan *scan, const struct selection *s, const char *type,
                        struct frame_table *frames, struct merged *ret, struct error *err)
{
        const struct scan_filter filter = selection_filter(s, type);
        struct merged m = { .meter = frames->meter, .selection = s };
        enum status st;

        st = store_scan_sum(scan, &filter, &m.sums, err);
        if (st)
                return st;
        st = store_scan_resolve(scan, &m.sums, &m.stacks, err);
        if (!st)
                st = location_frames_make(frames, m.stacks, &m.locations, err);
        if (st) {
                merged_deinit(&m);
                return st;
        }
        for (size_t i = 0; i < m.sums.count; i++) {
                m.total = (int64_t)((uint64_t)m.total + (uint64_t)m.sums.items[i].value);
                m.samples += m.sums.items[i].samples;
        }
        *ret = m;
        return ST_OK;
}

void merged_deinit(struct merged *m)
{
        free(m->sums.items);
        location_frames_deinit(&m->locations);
        *m = (struct merged){ 0 };
}
