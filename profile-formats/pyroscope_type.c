/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/pyroscope_type.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/profile_sum.h"
#include "profile-formats/profile_type.h"

#define NAME_BYTES 256

/* ---- pprof ---- */

static const struct {
        const char *sample_type, *display_name;
        bool is_cumulative;
} usual_types[] = {
        { "samples", "cpu", false },
        { "goroutine", "goroutines", false },
        { "contentions", "mutex_count", true },
        { "delay", "mutex_duration", true },
        { "alloc_objects", NULL, true },
        { "alloc_space", NULL, true },
};

static void copy_sample_type(const char *type_id, char *to)
{
        size_t n;
        const char *part = profile_type_part(type_id, TYPE_SAMPLE_TYPE, &n);

        snprintf(to, NAME_BYTES, "%.*s", (int)(n < NAME_BYTES ? n : NAME_BYTES - 1), part);
}

/* Replace a sample type by the name that the sender wants to be shown. */
static void apply_display_name(const struct json_value *config, char *type)
{
        struct json_value entry;
        char display[NAME_BYTES];

        if (config) {
                if (json_value_member(config, type, &entry) &&
                    json_value_text(&entry, "display-name", display, sizeof display) && *display)
                        memcpy(type, display, strlen(display) + 1);
                return;
        }
        for (size_t i = 0; i < sizeof usual_types / sizeof *usual_types; i++)
                if (usual_types[i].display_name && strcmp(usual_types[i].sample_type, type) == 0) {
                        snprintf(type, NAME_BYTES, "%s", usual_types[i].display_name);
                        return;
                }
}

static const char *find_family(const char *shown)
{
        static const struct {
                const char *part, *name;
        } families[] = {
                { "cpu", "process_cpu" }, { "alloc_", "memory" }, { "inuse_", "memory" },
                { "mutex_", "mutex" },    { "block_", "block" },  { "goroutines", "goroutines" },
        };

        if (strcmp(shown, "space") == 0 || strcmp(shown, "objects") == 0)
                return "memory";
        for (size_t i = 0; i < sizeof families / sizeof *families; i++)
                if (strstr(shown, families[i].part))
                        return families[i].name;
        return NULL;
}

/* The name of a file with these types; when none belongs to a family, the shown name of the last one, or without such
 * a name the one that it was decoded with. */
static const char *choose_type_name(const struct profile *p, const struct json_value *config, char *shown)
{
        const char *family;

        *shown = 0;
        for (uint32_t i = 0; i < p->types.count; i++) {
                copy_sample_type(profile_text(p, p->types.items[i].id), shown);
                if (strcmp(shown, "wall") == 0)
                        return "wall";
        }
        for (uint32_t i = 0; i < p->types.count; i++) {
                copy_sample_type(profile_text(p, p->types.items[i].id), shown);
                apply_display_name(config, shown);
                family = find_family(shown);
                if (family)
                        return family;
        }
        if (!config && p->types.count) {
                const char *id = profile_text(p, p->types.items[p->types.count - 1].id);
                size_t n = strcspn(id, ":");

                snprintf(shown, NAME_BYTES, "%.*s", (int)(n < NAME_BYTES ? n : NAME_BYTES - 1), id);
        }
        for (char *c = shown; *c; c++)
                if (*c == ':')
                        *c = '_';
        return shown;
}

enum status pyroscope_name_types(struct profile *p, const struct json_value *config, struct error *err)
{
        char shown[NAME_BYTES];
        const char *name = p->states_types ? "" : choose_type_name(p, config, shown);
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && *name && i < p->types.count; i++) {
                const char *rest = strchr(profile_text(p, p->types.items[i].id), ':');
                _cleanup_buf_ struct buf id;

                buf_init(&id, LIMIT_LABEL_BYTES + NAME_BYTES);
                buf_append_str(&id, name);
                buf_append_str(&id, rest ? rest : "::::");
                st = buf_status(&id, err, "profile type");
                if (!st) /* types stay distinct: they differed in another part */
                        st = profile_add_string(p, (const char *)id.data, id.size, &p->types.items[i].id, err);
        }
        return st;
}

/* Whether values of this sample type are totals since the start of the process. Reads all of config. */
static bool is_cumulative_type(const char *type_id, const struct json_value *config)
{
        struct json_value entry;
        char type[NAME_BYTES];
        bool is_cumulative = false;

        copy_sample_type(type_id, type);
        if (config) {
                if (json_value_member(config, type, &entry) && !json_value_bool(&entry, "cumulative", &is_cumulative))
                        return false;
                return is_cumulative;
        }
        for (size_t i = 0; i < sizeof usual_types / sizeof *usual_types; i++)
                if (strcmp(usual_types[i].sample_type, type) == 0)
                        return usual_types[i].is_cumulative;
        return false;
}

static void negate_cumulative_samples(struct profile *previous, const struct profile *p,
                                      const struct json_value *config)
{
        bool cumulative[LIMIT_PROFILE_TYPES];

        assert(previous->types.count <= LIMIT_PROFILE_TYPES);
        for (uint32_t i = 0; i < previous->types.count; i++)
                cumulative[i] = is_cumulative_type(profile_text(previous, previous->types.items[i].id), config);
        for (uint32_t i = 0; i < previous->samples.count; i++) {
                struct profile_sample *s = &previous->samples.items[i];

                s->value = cumulative[s->type] && s->value != INT64_MIN ? -s->value : 0;
                s->time_unix_ns = p->samples.count ? p->samples.items[0].time_unix_ns : 0;
                s->duration_ns = p->samples.count ? p->samples.items[0].duration_ns : 0;
        }
}

/* The type to show first in the sum, by the one of p. */
static uint32_t find_first_shown_type(const struct profile *sum, const struct profile *p)
{
        const char *id = p->first_shown_type ? profile_text(p, p->types.items[p->first_shown_type - 1].id) : NULL;

        for (uint32_t i = 0; id && i < sum->types.count; i++)
                if (strcmp(profile_text(sum, sum->types.items[i].id), id) == 0)
                        return i + 1;
        return 0;
}

enum status pyroscope_subtract_previous(struct profile *p, struct profile *previous, const struct json_value *config,
                                        struct error *err)
{
        struct profile_sum sum;
        uint32_t added, kept = 0;
        enum status st = profile_sum_init(&sum, LIMIT_PROFILE_MEMORY_BYTES, err);

        if (st)
                return st;
        negate_cumulative_samples(previous, p, config);
        st = profile_sum_add(&sum, p, &added, err);
        if (!st)
                st = profile_sum_add(&sum, previous, &added, err);
        for (uint32_t i = 0; i < sum.profile.samples.count; i++)
                if (sum.profile.samples.items[i].value > 0)
                        sum.profile.samples.items[kept++] = sum.profile.samples.items[i];
        sum.profile.samples.count = kept;
        if (!st) {
                sum.profile.first_shown_type = find_first_shown_type(&sum.profile, p);
                sum.profile.states_types = p->states_types;
                sum.profile.rejected_samples = p->rejected_samples;
                memcpy(sum.profile.rejected_reason, p->rejected_reason, sizeof p->rejected_reason);
                profile_deinit(p);
                *p = sum.profile;
                sum.profile = (struct profile){ 0 };
        }
        profile_sum_deinit(&sum);
        return st;
}

/* ---- stacks ---- */

#define CPU_TYPE "process_cpu:samples:count::", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define WALL_TYPE "wall:samples:count::", "wall:wall:nanoseconds:cpu:nanoseconds"

static const struct {
        const char *suffix;
        struct pyroscope_stack_type type;
} suffix_types[] = {
        { "cpu", { CPU_TYPE } },
        { "itimer", { CPU_TYPE } },
        { "wall", { WALL_TYPE } },
        { "seconds", { WALL_TYPE } },
        { "milliseconds", { WALL_TYPE } },
        { "microseconds", { WALL_TYPE } },
        { "nanoseconds", { WALL_TYPE } },
        { "inuse_objects", { "memory:inuse_objects:count::", NULL } },
        { "inuse_space", { "memory:inuse_space:bytes::", NULL } },
        { "alloc_objects", { "memory:alloc_objects:count::", NULL } },
        { "alloc_space", { "memory:alloc_space:bytes::", NULL } },
        { "alloc_in_new_tlab_objects", { "memory:alloc_in_new_tlab_objects:count::", NULL } },
        { "alloc_in_new_tlab_bytes", { "memory:alloc_in_new_tlab_bytes:bytes::", NULL } },
        { "alloc_outside_tlab_objects", { "memory:alloc_outside_tlab_objects:count::", NULL } },
        { "alloc_outside_tlab_bytes", { "memory:alloc_outside_tlab_bytes:bytes::", NULL } },
        { "live", { "memory:live:count::", NULL } },
        { "bytes", { "memory:samples:bytes::", NULL } },
        { "goroutines", { "goroutine:goroutines:count::", NULL } },
        { "mutex_count", { "mutex:contentions:count::", NULL } },
        { "mutex_duration", { "mutex:delay:nanoseconds::", NULL } },
        { "block_count", { "block:contentions:count::", NULL } },
        { "block_duration", { "block:delay:nanoseconds::", NULL } },
        { "lock_count", { "block:contentions:count::", NULL } },
        { "lock_duration", { "block:delay:nanoseconds::", NULL } },
        { "exceptions", { "exceptions:samples:count::", NULL } },
};

static bool find_stack_type(const char *suffix, struct pyroscope_stack_type *ret)
{
        for (size_t i = 0; i < sizeof suffix_types / sizeof *suffix_types; i++)
                if (strcmp(suffix_types[i].suffix, suffix) == 0) {
                        *ret = suffix_types[i].type;
                        return true;
                }
        return false;
}

bool pyroscope_find_suffix_type(const char *name, struct pyroscope_stack_type *ret, size_t *prefix_size_ret)
{
        const char *dot = strrchr(name, '.');

        if (!dot || dot == name || !find_stack_type(dot + 1, ret))
                return false;
        *prefix_size_ret = (size_t)(dot - name);
        return true;
}

bool pyroscope_find_unit_type(const char *units, struct pyroscope_stack_type *ret)
{
        static const struct {
                const char *unit, *suffix;
        } units_of[] = {
                { "samples", "cpu" },
                { "objects", "inuse_objects" },
                { "bytes", "bytes" },
                { "goroutines", "goroutines" },
                { "lock_samples", "mutex_count" },
                { "lock_nanoseconds", "mutex_duration" },
                { "exceptions", "exceptions" },
        };

        for (size_t i = 0; i < sizeof units_of / sizeof *units_of; i++)
                if (strcmp(units_of[i].unit, units) == 0)
                        return find_stack_type(units_of[i].suffix, ret);
        return false;
}
