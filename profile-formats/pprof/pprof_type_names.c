/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/pprof/pprof_type_names.h"

#include <string.h>

#include "common/memory/buf.h"
#include "common/limits.h"
#include "profile-formats/profile_type.h"

/* How much of a type is in its name. */
enum name_detail { NAME_SAMPLE_TYPE, NAME_PROFILE, NAME_UNIT, NAME_PERIOD, NAME_NUMBER };

struct pprof_type_name {
        const char *text;
        enum name_detail detail;
        bool is_taken; /* another type has the same text */
};

static void append_name_part(struct buf *b, const char *id, enum profile_type_part part)
{
        size_t n;
        const char *text = profile_type_part(id, part, &n);

        if (n && b->size)
                buf_append_u8(b, '_');
        buf_append(b, text, n);
}

static enum status compose_type_name(const struct profile *p, uint32_t i, struct arena *a, struct pprof_type_name *name,
                                     struct error *err)
{
        const char *id = profile_text(p, p->types.items[i].id);
        _cleanup_buf_ struct buf b;
        enum status st;

        buf_init(&b, SIZE_MAX);
        if (name->detail >= NAME_PROFILE)
                append_name_part(&b, id, TYPE_NAME);
        append_name_part(&b, id, TYPE_SAMPLE_TYPE);
        if (name->detail >= NAME_UNIT)
                append_name_part(&b, id, TYPE_SAMPLE_UNIT);
        if (name->detail >= NAME_PERIOD) {
                append_name_part(&b, id, TYPE_PERIOD_TYPE);
                append_name_part(&b, id, TYPE_PERIOD_UNIT);
        }
        if (name->detail >= NAME_NUMBER)
                buf_printf(&b, "_%u", i + 1);
        st = buf_status(&b, err, "sample type");
        if (st)
                return st;
        name->text = arena_strndup(a, (const char *)b.data, b.size);
        return name->text ? ST_OK : arena_error(a, err, "names of sample types");
}

static bool is_known_by_name(const char *id)
{
        return profile_type_has_part(id, TYPE_NAME, "process_cpu") &&
               ((profile_type_has_part(id, TYPE_SAMPLE_TYPE, "cpu") &&
                 profile_type_has_part(id, TYPE_SAMPLE_UNIT, "nanoseconds")) ||
                (profile_type_has_part(id, TYPE_SAMPLE_TYPE, "samples") &&
                 profile_type_has_part(id, TYPE_SAMPLE_UNIT, "count")));
}

/* Mark the names that several types have, except that of the first one that is to keep it. */
static bool find_taken_names(const struct profile *p, struct pprof_type_name *names)
{
        bool any = false;

        for (uint32_t i = 0; i < p->types.count; i++) {
                bool keeps = !names[i].detail && is_known_by_name(profile_text(p, p->types.items[i].id));

                names[i].is_taken = false;
                for (uint32_t k = 0; k < p->types.count; k++) {
                        if (k == i || strcmp(names[i].text, names[k].text) != 0)
                                continue;
                        names[i].is_taken = true;
                        keeps = keeps && !(k < i && is_known_by_name(profile_text(p, p->types.items[k].id)));
                }
                names[i].is_taken = names[i].is_taken && !keeps && names[i].detail < NAME_NUMBER;
                any = any || names[i].is_taken;
        }
        return any;
}

enum status name_pprof_types(const struct profile *p, struct arena *a, const char ***ret, struct error *err)
{
        struct pprof_type_name *names = arena_alloc_array(a, p->types.count + 1u, sizeof *names);
        const char **texts = arena_alloc_array(a, p->types.count + 1u, sizeof *texts);
        enum status st = ST_OK;

        if (!names || !texts)
                return arena_error(a, err, "names of sample types");
        for (uint32_t i = 0; !st && i < p->types.count; i++)
                st = compose_type_name(p, i, a, &names[i], err);
        while (!st && find_taken_names(p, names)) {
                for (uint32_t i = 0; !st && i < p->types.count; i++) {
                        if (!names[i].is_taken)
                                continue;
                        names[i].detail++;
                        st = compose_type_name(p, i, a, &names[i], err);
                }
        }
        for (uint32_t i = 0; !st && i < p->types.count; i++)
                texts[i] = names[i].text;
        *ret = texts;
        return st;
}
