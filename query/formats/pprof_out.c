/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operation "pprof": a selection as a gzip'd pprof file with its symbols, all sample types and the labels of its
 * samples (docs/formats/query-api.md).
 */
#include <stdlib.h>
#include <string.h>

#include "common/compress/compress.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/text/utf8.h"
#include "profile-formats/hidden_label.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/return_address.h"
#include "query/engine/merged_profile.h"
#include "query/engine/query_call.h"

struct label_range {
        uint32_t first, count;
};

struct pprof_output {
        struct query_call *q;
        struct frame_table frames;
        struct frame_filter filter;
        struct type_plan plan; /* of the CPU time; what it does not sum is in the file as well */
        const char **types;    /* of the selection that are in the file; owned */
        size_t type_count;
        struct merged_profile m;
        struct profile p;
        struct scan_span span; /* of all selected samples */
        struct number_map mappings;
        uint32_t *locations;    /* by location of the scan: its index in p, PROFILE_NONE when hidden; owned */
        uint32_t *type_numbers; /* by group: the type of its values as sent; PROFILE_NONE: only converted; owned */
        uint32_t time_type;     /* of converted values */
        struct scan_series_set with_time; /* the series that have CPU time; items are owned */
        struct label_range *labels;       /* by group; owned */
};

static void pprof_output_deinit(struct pprof_output *o)
{
        merged_profile_deinit(&o->m);
        type_plan_deinit(&o->plan);
        frame_filter_deinit(&o->filter);
        frame_table_deinit(&o->frames);
        number_map_deinit(&o->mappings);
        profile_deinit(&o->p);
        free(o->locations);
        free(o->types);
        free(o->type_numbers);
        free(o->with_time.items);
        free(o->labels);
}

static enum status add_profile_text(struct profile *p, const char *text, uint32_t *ret, struct error *err)
{
        return profile_add_string(p, text, strlen(text), ret, err);
}

/* ---- locations ---- */

/* Locations of one object share its mapping. Only a mapping tells readers of pprof that a frame is in the kernel. */
static enum status add_profile_mapping(struct pprof_output *o, const struct scan_location *l, uint32_t *ret,
                                       struct error *err)
{
        struct profile_mapping m = { .build_id = *l->build_id };
        struct number_key key = { 0 };
        struct hash128 hash;
        uint32_t number;
        bool fresh = false;
        enum status st = add_profile_text(&o->p, *l->mapping || !l->is_kernel ? l->mapping : KERNEL_FILE, &m.file, err);

        hash = hash_bytes128(l->build_id->bytes, l->build_id->size);
        memcpy(key.parts, hash.bytes, sizeof hash.bytes);
        key.parts[4] = m.file;
        if (!st)
                st = number_map_get(&o->mappings, &key, ret, &fresh, err);
        if (st || !fresh)
                return st;
        return profile_add_mapping(&o->p, &m, &number, err); /* number equals *ret: both count up together */
}

/* Add frame k of the filtered locations. */
static enum status add_profile_frame(struct pprof_output *o, uint32_t k, struct error *err)
{
        const struct location_frames *l = &o->m.locations;
        const struct query_frame *f = &o->frames.items[l->frames[k]];
        struct profile_line line = { .line = l->lines[k], .start_line = l->start_lines[k] };
        uint32_t number;
        enum status st = add_profile_text(&o->p, f->function, &line.function, err);

        if (!st)
                st = add_profile_text(&o->p, f->linkage_name, &line.linkage_name, err);
        if (!st)
                st = add_profile_text(&o->p, f->file, &line.file, err);
        return st ? st : profile_add_line(&o->p, &line, &number, err);
}

static enum status add_profile_location(struct pprof_output *o, uint32_t number, struct error *err)
{
        const struct scan_location *from = &o->m.stacks->locations[number];
        const struct location_frames *l = &o->m.locations;
        struct profile_location location = { .mapping = PROFILE_NONE,
                                             .address = from->address,
                                             .kind = from->is_file_offset ? ADDRESS_FILE_OFFSET : ADDRESS_OBJECT,
                                             .frame_type =
                                                     from->is_kernel ? PROFILE_FRAME_KERNEL : PROFILE_FRAME_UNKNOWN,
                                             .first_line = o->p.lines.count };
        uint32_t first = l->first[number];
        enum status st = ST_OK;

        o->locations[number] = PROFILE_NONE;
        if (first == l->end[number])
                return ST_OK;                                  /* hidden */
        if (l->end[number] - first > LIMIT_LINES_PER_LOCATION) /* keep the innermost */
                first = l->end[number] - LIMIT_LINES_PER_LOCATION;
        if (from->build_id->size || *from->mapping || from->is_kernel)
                st = add_profile_mapping(o, from, &location.mapping, err);
        for (uint32_t k = l->end[number]; !st && from->frame_count && k-- > first;) { /* innermost first */
                st = add_profile_frame(o, k, err);
                location.line_count++;
        }
        return st ? st : profile_add_location(&o->p, &location, &o->locations[number], err);
}

static enum status add_profile_locations(struct pprof_output *o, struct error *err)
{
        const struct scan_stacks *s = o->m.stacks;
        enum status st = ST_OK;

        o->locations = calloc(s->location_count + 1, sizeof *o->locations);
        if (!o->locations)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < s->location_count; i++) {
                st = work_meter_add(o->q->meter, 64 * (1 + (uint64_t)s->locations[i].frame_count), err);
                if (!st)
                        st = add_profile_location(o, (uint32_t)i, err);
        }
        return st;
}

/* ---- types and labels ---- */

/* Whether the values of a type are also, or only, in the file as CPU time in nanoseconds. */
static bool is_converted_type(const struct pprof_output *o, const char *type)
{
        for (size_t i = 0; o->plan.converts && i < o->plan.type_count; i++)
                if (strcmp(o->plan.types[i], type) == 0)
                        return true;
        return false;
}

/* The period of a group in the unit of a type of the file, 0 if it has none. */
static int64_t convert_period(const struct scan_group *g, const char *type)
{
        int64_t unit = 0, period;

        if (strcmp(g->type, type) == 0)
                unit = 1;
        else if (profile_type_has_part(g->type, TYPE_PERIOD_TYPE, "cpu"))
                unit = profile_type_get_time_unit(g->type, TYPE_PERIOD_UNIT);
        return __builtin_mul_overflow(g->period, unit, &period) ? 0 : period;
}

/* The greatest period of a type's groups, as in files merged by go tool pprof. */
static int64_t find_greatest_period(const struct pprof_output *o, const char *type)
{
        const bool is_sum = o->plan.converts && strcmp(type, o->plan.type) == 0;
        int64_t greatest = 0;

        for (size_t i = 0; i < o->m.groups.group_count; i++) {
                const struct scan_group *g = &o->m.groups.groups[i];
                const bool is_part = is_sum ? is_converted_type(o, g->type) : strcmp(g->type, type) == 0;
                const int64_t period = is_part ? convert_period(g, type) : 0;

                greatest = period > greatest ? period : greatest;
        }
        return greatest;
}

/*
 * The type that readers should show first: the requested one, else the one that a sender named for a type of the file,
 * else CPU time. NULL: theirs to choose, which by convention is the last one (inuse_space, delay).
 */
static enum status find_default_type(struct pprof_output *o, const char **ret, struct error *err)
{
        const struct query_call *q = o->q;
        const struct scan_filter filter = query_selection_make_filter(&q->r.selection, NULL);
        struct scan_names sent;
        enum status st;

        *ret = q->r.type || (o->plan.type && is_cpu_time_type(o->plan.type)) ? o->plan.type : NULL;
        if (q->r.type)
                return ST_OK;
        st = store_scan_list_label_values(q->scan, DEFAULT_TYPE_LABEL, &filter, &sent, err);
        for (size_t i = 0; !st && i < sent.count; i++)
                for (size_t k = 0; k < o->type_count; k++) {
                        const char *type = o->types[k];

                        if (profile_type_has_part(type, TYPE_SAMPLE_TYPE, sent.items[i]))
                                *ret = is_cpu_time_type(type) && is_converted_type(o, type) ? o->plan.type : type;
                }
        return st;
}

/* Readers may convert counts by the file's period. Those whose CPU time is in the file as well need no note. */
static void note_several_periods(struct pprof_output *o, const char *type)
{
        const int64_t greatest = find_greatest_period(o, type);
        const char *separator = o->q->note.size ? "; " : "";

        for (size_t i = 0; is_cpu_count_type(type) && i < o->m.groups.group_count; i++) {
                const struct scan_group *g = &o->m.groups.groups[i];

                if (strcmp(g->type, type) != 0 || g->period == greatest ||
                    (g->period > 0 && is_converted_type(o, type)))
                        continue;
                buf_printf(&o->q->note, "%ssamples of type ", separator);
                utf8_append_escaped(&o->q->note, type);
                buf_append_str(&o->q->note, " have several periods, of which the file has the greatest");
                return;
        }
}

static enum status add_profile_type(struct pprof_output *o, const char *type, const char *shown, uint32_t *ret,
                                    struct error *err)
{
        enum status st = work_meter_add(o->q->meter, o->m.groups.group_count, err);

        if (!st)
                st = profile_type_add_id(&o->p, type, find_greatest_period(o, type), ret, err);
        if (!st && shown && strcmp(type, shown) == 0)
                o->p.first_shown_type = *ret + 1;
        return st;
}

/* CPU time of several types is one type in the file, before the first of them. */
static enum status add_profile_types(struct pprof_output *o, struct error *err)
{
        const struct scan_group_sums *groups = &o->m.groups;
        const char *shown;
        enum status st = find_default_type(o, &shown, err);

        if (st)
                return st;
        o->time_type = PROFILE_NONE;
        o->type_numbers = calloc(groups->group_count + 1, sizeof *o->type_numbers);
        if (!o->type_numbers)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < o->type_count; i++) {
                const char *type = o->types[i];
                const bool is_converted = is_converted_type(o, type);
                uint32_t number = PROFILE_NONE;

                if (is_converted && o->time_type == PROFILE_NONE)
                        st = add_profile_type(o, o->plan.type, shown, &o->time_type, err);
                if (!st && !(is_converted && is_cpu_time_type(type))) {
                        st = add_profile_type(o, type, shown, &number, err);
                        note_several_periods(o, type);
                }
                for (size_t k = 0; !st && k < groups->group_count; k++)
                        if (strcmp(groups->groups[k].type, type) == 0)
                                o->type_numbers[k] = number;
        }
        return st ? st : scan_series_set_build(groups, is_cpu_time_type, &o->with_time, err);
}

static enum status add_group_labels(struct pprof_output *o, const struct scan_group *g, struct label_range *ret,
                                    struct error *err)
{
        struct profile_label labels[LIMIT_LABELS_PER_SAMPLE];
        uint32_t count = 0;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < g->label_count && count < LIMIT_LABELS_PER_SAMPLE; i++) {
                if (!*g->labels[i].value)
                        continue;
                st = add_profile_text(&o->p, g->labels[i].name, &labels[count].key, err);
                if (!st)
                        st = add_profile_text(&o->p, g->labels[i].value, &labels[count++].value, err);
        }
        ret->count = count;
        return st ? st : profile_add_label_set(&o->p, labels, count, &ret->first, err);
}

static enum status add_profile_labels(struct pprof_output *o, struct error *err)
{
        const struct scan_group_sums *groups = &o->m.groups;
        enum status st = ST_OK;

        o->labels = calloc(groups->group_count + 1, sizeof *o->labels);
        if (!o->labels)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < groups->group_count; i++) {
                st = work_meter_add(o->q->meter, 64 * (1 + (uint64_t)groups->groups[i].label_count), err);
                if (!st)
                        st = add_group_labels(o, &groups->groups[i], &o->labels[i], err);
        }
        return st;
}

/* ---- samples ---- */

/* Add a stack without its hidden locations. */
static enum status add_profile_stack(struct pprof_output *o, uint32_t stack, uint32_t *scratch, uint32_t *ret,
                                     struct error *err)
{
        const struct scan_stacks *s = o->m.stacks;
        uint32_t count = 0;

        for (size_t j = s->first[stack]; j < s->first[stack + 1]; j++)
                if (o->locations[s->indexes[j]] != PROFILE_NONE)
                        scratch[count++] = o->locations[s->indexes[j]];
        return profile_add_stack(&o->p, scratch, count, ret, err);
}

/* Add the value of an entry as it was sent, and as CPU time. */
static enum status add_profile_values(struct pprof_output *o, const struct merged_entry *e,
                                      struct profile_sample *sample, struct error *err)
{
        const struct scan_group *g = &o->m.groups.groups[e->group];
        uint32_t number;
        enum status st = ST_OK;

        sample->value = e->value;
        sample->type = o->type_numbers[e->group];
        if (sample->type != PROFILE_NONE)
                st = profile_add_sample(&o->p, sample, &number, err);
        if (st || !is_converted_type(o, g->type) || !type_plan_convert(&o->plan, g, &o->with_time, &sample->value))
                return st;
        sample->type = o->time_type;
        return profile_add_sample(&o->p, sample, &number, err);
}

static enum status add_profile_samples(struct pprof_output *o, struct error *err)
{
        const struct scan_stacks *s = o->m.stacks;
        _cleanup_free_ uint32_t *stacks =
                calloc(s->count + 1, sizeof *stacks); /* indices in p, plus one; 0: not added yet */
        _cleanup_free_ uint32_t *scratch = NULL;
        struct profile_sample sample = { .time_unix_ns = o->span.first_unix_ns,
                                         .duration_ns = o->span.end_unix_ns - o->span.first_unix_ns };
        size_t longest = 0;
        uint32_t number;
        enum status st = ST_OK;

        for (size_t i = 0; i < s->count; i++)
                longest = s->first[i + 1] - s->first[i] > longest ? s->first[i + 1] - s->first[i] : longest;
        scratch = calloc(longest + 1, sizeof *scratch);
        if (!stacks || !scratch)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < o->m.count; i++) {
                const struct merged_entry *e = &o->m.entries[i];

                st = work_meter_add(o->q->meter, 16 + s->first[e->stack + 1] - s->first[e->stack], err);
                if (!st && !stacks[e->stack]) {
                        st = add_profile_stack(o, e->stack, scratch, &number, err);
                        stacks[e->stack] = st ? 0 : number + 1;
                }
                if (st)
                        break;
                sample.stack = stacks[e->stack] - 1;
                sample.first_label = o->labels[e->group].first;
                sample.label_count = o->labels[e->group].count;
                st = add_profile_values(o, e, &sample, err);
        }
        return st;
}

/* ---- selection ---- */

/*
 * All types of the selection, or all that match the requested type; without any that of the plan, which other samples
 * of the range have. Samples of other writers may lack a type.
 */
static enum status choose_output_types(struct pprof_output *o)
{
        struct query_call *q = o->q;
        const struct query_selection *selection = &q->r.selection;
        const struct scan_filter filter = query_selection_make_filter(selection, NULL);
        struct scan_names types = { 0 };
        enum status st = type_plan_make_for_request(q->scan, &selection, 1, &q->r, &o->plan, q->err);

        if (!st && !q->r.is_type_exact)
                st = store_scan_list_types(q->scan, &filter, &types, q->err);
        if (st)
                return st;
        o->types = calloc(types.count + 1, sizeof *o->types);
        if (!o->types)
                return error_no_memory(q->err);
        if (q->r.type)
                o->type_count = find_matching_types(&types, q->r.type, o->types);
        else
                for (; o->type_count < types.count; o->type_count++)
                        o->types[o->type_count] = types.items[o->type_count];
        if (!o->type_count) /* no type in `by` would mean every type */
                o->types[o->type_count++] = o->plan.type ? o->plan.type : "";
        return ST_OK;
}

static enum status parse_output_labels(struct query_call *q, struct scan_group_by *by)
{
        const char *labels = query_param_get(&q->params, "", "labels");

        if (labels && strcmp(labels, "all") != 0 && strcmp(labels, "none") != 0)
                return error_set(q->err, ST_USAGE, "labels '%.40s' is neither all nor none; use by=LABEL,... for some",
                                 labels);
        by->labels = q->r.by.names;
        by->label_count = q->r.by.count;
        by->all_labels = by->hidden = !by->label_count && !(labels && strcmp(labels, "none") == 0);
        return ST_OK;
}

static enum status fill_output(struct pprof_output *o)
{
        struct query_call *q = o->q;
        struct scan_group_by by = { 0 };
        struct scan_filter filter;
        const struct merged_profile_request request = { .plan = &o->plan, .filter = &o->filter, .frames = &o->frames };
        enum status st = parse_output_labels(q, &by);

        if (!st)
                st = frame_filter_parse(&q->params, &o->filter, q->err);
        o->filter.call_site = q->r.call_site;
        o->filter.call_site_count = q->r.call_site_count;
        if (!st)
                st = choose_output_types(o);
        if (st)
                return st;
        by.types = o->types;
        by.type_count = o->type_count;
        by.series = o->plan.by_series;
        filter = query_selection_make_filter(&q->r.selection, o->type_count == 1 ? o->types[0] : NULL);
        st = store_scan_find_span(q->scan, &filter, &o->span, q->err);
        if (!st)
                st = merged_profile_load_groups(q->scan, &q->r.selection, &by, &request, &o->m, q->err);
        if (!st)
                st = add_profile_locations(o, q->err);
        if (!st)
                st = add_profile_types(o, q->err);
        if (!st)
                st = add_profile_labels(o, q->err);
        return st ? st : add_profile_samples(o, q->err);
}

enum status query_put_plain_pprof(struct query_call *q, struct buf *ret)
{
        struct pprof_output o = { .q = q };
        enum status st = profile_init_budget(&o.p, LIMIT_PROFILE_MEMORY_BYTES, MEMORY_QUERIES, q->err);

        if (st)
                return st;
        frame_table_init(&o.frames, q->meter);
        st = fill_output(&o);
        if (!st)
                st = work_meter_check(q->meter, q->err);
        if (!st)
                st = pprof_encode_plain(&o.p, ret, q->err);
        pprof_output_deinit(&o);
        return st;
}

enum status query_answer_pprof(struct query_call *q)
{
        _cleanup_buf_ struct buf plain;
        enum status st;

        buf_init(&plain, LIMIT_RESPONSE_BYTES);
        q->content_type = content_type_binary;
        st = query_put_plain_pprof(q, &plain);
        return st ? st : gzip_compress(plain.data, plain.size, 6, q->ret, q->err);
}
