/* SPDX-License-Identifier: Apache-2.0 */
#include "query/pprof_out.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "profile-formats/pprof.h"
#include "profile-formats/profile_type.h"

static enum status add_profile_text(struct profile *p, const char *text, uint32_t *ret, struct error *err)
{
        return profile_add_string(p, text, strlen(text), ret, err);
}

/* Locations of one object share its mapping. */
static enum status add_profile_mapping(struct profile *p, struct number_map *seen, const struct scan_location *l,
                                       uint32_t *ret, struct error *err)
{
        struct profile_mapping m = { .build_id = l->build_id };
        struct number_key key = { 0 };
        struct hash128 hash;
        uint32_t number;
        bool fresh = false;
        enum status st = add_profile_text(p, l->mapping, &m.file, err);

        hash = hash_bytes128(l->build_id.bytes, l->build_id.size);
        memcpy(key.parts, hash.bytes, sizeof hash.bytes);
        key.parts[4] = m.file;
        if (!st)
                st = number_map_get(seen, &key, ret, &fresh, err);
        if (st || !fresh)
                return st;
        return profile_add_mapping(p, &m, &number, err); /* number is *ret: both count up together */
}

static enum status add_profile_location(struct profile *p, struct number_map *mappings, const struct scan_location *l,
                                        struct error *err)
{
        struct profile_location location = {
                .mapping = PROFILE_NONE, .address = l->address, .is_kernel = l->is_kernel, .first_line = p->lines.count
        };
        uint32_t number;
        enum status st = ST_OK;

        if (l->build_id.size || *l->mapping)
                st = add_profile_mapping(p, mappings, l, &location.mapping, err);
        for (uint32_t i = 0; !st && i < l->frame_count; i++) {
                struct profile_line line = { .line = l->frames[i].line };

                st = add_profile_text(p, l->frames[i].function, &line.function, err);
                if (!st)
                        st = add_profile_text(p, l->frames[i].linkage_name, &line.linkage_name, err);
                if (!st)
                        st = add_profile_text(p, l->frames[i].file, &line.file, err);
                if (!st)
                        st = profile_add_line(p, &line, &number, err);
                location.line_count++;
        }
        return st ? st : profile_add_location(p, &location, &number, err);
}

static enum status fill_pprof_profile(struct profile *p, struct number_map *mappings, const struct merged_profile *m,
                                      struct error *err)
{
        const struct scan_stacks *s = m->stacks;
        struct profile_sample sample = { .time_unix_ns = m->selection->from_unix_ns,
                                         .duration_ns = m->selection->to_unix_ns - m->selection->from_unix_ns };
        uint32_t number;
        enum status st = profile_type_add_id(p, m->sums.type, 0, &sample.type, err);

        for (size_t i = 0; !st && i < s->location_count; i++) {
                st = work_meter_add(m->meter, 64 * (1 + (uint64_t)s->locations[i].frame_count), err);
                if (!st)
                        st = add_profile_location(p, mappings, &s->locations[i], err);
        }
        for (size_t i = 0; !st && i < s->count; i++) {
                st = work_meter_add(m->meter, 16 + s->first[i + 1] - s->first[i], err);
                if (!st)
                        st = profile_add_stack(p, s->indexes + s->first[i], (uint32_t)(s->first[i + 1] - s->first[i]),
                                               &sample.stack, err);
                sample.value = m->sums.items[i].value;
                if (!st)
                        st = profile_add_sample(p, &sample, &number, err);
        }
        return st;
}

enum status merged_profile_put_pprof(const struct merged_profile *m, struct buf *ret, struct error *err)
{
        _cleanup_number_map_ struct number_map mappings = { 0 };
        struct profile p;
        enum status st = profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, err);

        if (st)
                return st;
        st = fill_pprof_profile(&p, &mappings, m, err);
        if (!st)
                st = work_meter_check(m->meter, err);
        if (!st)
                st = pprof_encode(&p, ret, err);
        profile_deinit(&p);
        return st;
}
