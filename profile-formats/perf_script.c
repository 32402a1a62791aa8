/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/perf_script.h"

#include <inttypes.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/label_list.h"
#include "profile-formats/number_map.h"
#include "profile-formats/perf_maps.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/return_address.h"

struct decoder {
        struct profile *p;
        struct perf_maps maps;
        struct number_map locations; /* see add_location() */

        bool open; /* a sample's header has been read */
        struct profile_sample sample;
        uint32_t frames[LIMIT_STACK_FRAMES + 1];
        uint32_t frame_count, depth;
        bool kernel_below; /* the frame before was a kernel frame */
        const struct perf_script_observer *observer; /* NULL: none */
        struct profile_line inlined[LIMIT_LINES_PER_LOCATION];
        uint32_t inlined_count;
};

/* ---- frames ---------------------------------------------------------------------------------- */

static enum status add_location(struct decoder *d, struct profile_location *l, const struct profile_line *line,
                                uint32_t *ret, struct error *err)
{
        struct number_key key = { { l->mapping, (uint32_t)l->address, (uint32_t)(l->address >> 32),
                                    line ? line->function : 0, d->inlined_count,
                                    (uint32_t)l->kind << 1 | l->is_kernel } };
        uint32_t number;
        bool fresh;
        enum status st = number_map_get(&d->locations, &key, ret, &fresh, err);

        if (st || !fresh)
                return st;
        l->first_line = d->p->lines.count;
        for (uint32_t i = 0; !st && i < d->inlined_count; i++, l->line_count++)
                st = profile_add_line(d->p, &d->inlined[i], &number, err);
        if (!st && line) {
                st = profile_add_line(d->p, line, &number, err);
                l->line_count++;
        }
        return st ? st : profile_add_location(d->p, l, &number, err); /* number is *ret: both count up together */
}

static enum status observe(const struct decoder *d, struct perf_text t, uint32_t location, struct error *err)
{
        return d->observer ? d->observer->frame(d->observer->context, t.at, t.n, location, err) : ST_OK;
}

static bool is_unknown(struct perf_text t)
{
        return t.n == 9 && memcmp(t.at, "[unknown]", 9) == 0;
}

/* ADDRESS SYMBOL[+0xOFFSET] (FILE) */
static enum status read_frame(struct decoder *d, struct perf_text t, struct error *err)
{
        const struct perf_text whole = t;
        struct profile_location l = { .mapping = PROFILE_NONE };
        struct profile_line line = { 0 };
        struct perf_text word = perf_text_word(&t), symbol, file = { "", 0 };
        uint32_t file_string, location;
        enum status st;
        bool named;

        if (!perf_text_number(word, 16, &l.address))
                return error_set(err, ST_BAD_DATA, "neither a header nor a frame");
        symbol = perf_text_trim(t);
        for (size_t i = symbol.n; symbol.n && symbol.at[symbol.n - 1] == ')' && i-- > 1;) {
                if (symbol.at[i] == '(' && symbol.at[i - 1] == ' ') {
                        file = (struct perf_text){ symbol.at + i + 1, symbol.n - i - 2 };
                        symbol.n = i;
                        break;
                }
        }
        symbol = perf_text_trim(symbol);
        for (size_t i = symbol.n; i-- > 1;) { /* +0x21 */
                uint64_t offset;

                if (symbol.at[i] == '+' && symbol.n - i > 3 &&
                    perf_text_number((struct perf_text){ symbol.at + i + 1, symbol.n - i - 1 }, 16, &offset)) {
                        symbol.n = i;
                        break;
                }
        }
        named = symbol.n && !is_unknown(symbol);
        if (named) {
                st = profile_add_string(d->p, symbol.at, text_cut(symbol.at, symbol.n, LIMIT_NAME_BYTES),
                                        &line.function, err);
                if (st)
                        return st;
        }
        if (file.n == 7 && memcmp(file.at, "inlined", 7) == 0) {
                if (d->inlined_count < LIMIT_LINES_PER_LOCATION - 1)
                        d->inlined[d->inlined_count++] = line;
                return observe(d, whole, PROFILE_NONE, err);
        }
        if (is_unknown(file))
                file.n = 0;
        st = profile_add_string(d->p, file.at, text_cut(file.at, file.n, LIMIT_PATH_BYTES), &file_string, err);
        if (!st)
                st = perf_maps_place(&d->maps, file_string, &l, err);
        if (st)
                return st;
        l.address = profile_caller_address(ADDRESS_SOURCE_RAW_CHAIN, l.address, d->depth,
                                           d->kernel_below && !l.is_kernel);
        d->kernel_below = l.is_kernel;
        d->depth++;
        st = add_location(d, &l, named ? &line : NULL, &location, err);
        d->inlined_count = 0;
        if (!st && d->frame_count <= LIMIT_STACK_FRAMES)
                d->frames[d->frame_count++] = location;
        return st ? st : observe(d, whole, location, err);
}

/* ---- samples --------------------------------------------------------------------------------- */

static enum status close_sample(struct decoder *d, struct error *err)
{
        uint32_t number;
        enum status st;

        if (!d->open)
                return ST_OK;
        d->open = false;
        st = profile_add_stack(d->p, d->frames, d->frame_count, &d->sample.stack, err);
        return st ? st : profile_add_sample(d->p, &d->sample, &number, err);
}

static enum status add_event_type(struct decoder *d, struct perf_text event, bool has_period, struct error *err)
{
        const char *colon = memchr(event.at, ':', event.n);
        struct perf_text base = { event.at, colon && colon > event.at ? (size_t)(colon - event.at) : event.n };
        char name[128];
        bool clock;

        /* A tracepoint's name has a colon of its own ("sched:sched_switch:"); modifiers are short
         * ("cpu-clock:pppH:"). */
        if (colon && event.n - base.n > 6) {
                base = event;
                while (base.n && base.at[base.n - 1] == ':')
                        base.n--;
        }
        snprintf(name, sizeof name, "%.*s", (int)(base.n < 127 ? base.n : 127), base.at);
        clock = strcmp(name, "cpu-clock") == 0 || strcmp(name, "task-clock") == 0;
        if (clock)
                return profile_type_add_id(d->p,
                                           has_period ? "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
                                                      : "process_cpu:samples:count:cpu:nanoseconds",
                                           0, &d->sample.type, err);
        return profile_type_add(d->p, "perf", name, has_period ? "count" : "samples", "", "", 0, &d->sample.type,
                                err);
}

static enum status open_sample(struct decoder *d, struct perf_header *h, struct error *err)
{
        struct label_list labels = { .count = 0 };
        struct perf_text word = perf_text_word(&h->rest);
        uint64_t period = 1;
        bool has_period = perf_text_number(word, 10, &period) && period <= INT64_MAX;
        char pid[24];
        enum status st;

        if (has_period)
                word = perf_text_word(&h->rest);
        d->sample =
                (struct profile_sample){ .value = has_period ? (int64_t)period : 1, .time_unix_ns = h->time_ns };
        d->frame_count = d->depth = d->inlined_count = 0;
        d->kernel_below = false;
        st = add_event_type(d, word, has_period, err);
        if (!st)
                st = label_list_set_text(&labels, d->p, "comm", h->comm.at, h->comm.n, err);
        if (!st)
                st = label_list_set_text(&labels, d->p, "pid", pid,
                                         (size_t)snprintf(pid, sizeof pid, "%" PRIu64, h->pid), err);
        if (!st)
                st = profile_add_label_set(d->p, labels.items, labels.count, &d->sample.first_label, err);
        if (st)
                return st;
        d->sample.label_count = labels.count;
        d->open = true;
        h->rest = perf_text_trim(h->rest);
        return h->rest.n ? read_frame(d, h->rest, err) : ST_OK; /* without a call chain the frame is on this line */
}

static enum status read_line(struct decoder *d, struct perf_text line, struct error *err)
{
        struct perf_text t = perf_text_trim(line), rest;
        struct perf_header h;
        enum status st;

        if (t.n == 0 || t.at[0] == '#')
                return t.n ? ST_OK : close_sample(d, err);
        if (d->open && perf_is_blank(line.at[0]) && !perf_text_header(t, &h))
                return read_frame(d, t, err);
        if (!perf_text_header(t, &h))
                return error_set(err, ST_BAD_DATA, "neither a header nor a frame of one");
        st = close_sample(d, err);
        if (st)
                return st;
        if (h.rest.n > 12 && memcmp(h.rest.at, "PERF_RECORD_", 12) == 0) {
                rest = h.rest;
                t = perf_text_word(&rest);
                return t.n >= 16 && memcmp(t.at, "PERF_RECORD_MMAP", 16) == 0 ? perf_maps_add(&d->maps, rest, err) : ST_OK;
        }
        return open_sample(d, &h, err);
}

static void shift_times(struct profile *p, int64_t end_unix_ns)
{
        int64_t last = 0;

        for (uint32_t i = 0; i < p->samples.count; i++)
                if (p->samples.items[i].time_unix_ns > last)
                        last = p->samples.items[i].time_unix_ns;
        for (uint32_t i = 0; i < p->samples.count; i++)
                p->samples.items[i].time_unix_ns =
                        end_unix_ns ? end_unix_ns - (last - p->samples.items[i].time_unix_ns) : 0;
}

static enum status decode(struct decoder *d, const char *at, const char *end, struct error *err)
{
        uint32_t number = 0;
        enum status st = ST_OK;

        while (!st && at < end) {
                const char *eol = memchr(at, '\n', (size_t)(end - at));

                number++;
                st = read_line(d, (struct perf_text){ at, (size_t)((eol ? eol : end) - at) }, err);
                if (st)
                        return error_prefix(err, st, "line %u of perf script output", number);
                at = eol ? eol + 1 : end;
        }
        return close_sample(d, err);
}

enum status perf_script_decode_observed(const void *data, size_t n, int64_t end_unix_ns,
                                        const struct perf_script_observer *observer, struct profile *ret,
                                        struct error *err)
{
        _cleanup_free_ struct decoder *d = calloc(1, sizeof *d);
        struct profile p;
        enum status st;

        if (!d)
                return error_no_memory(err);
        st = profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, err);
        if (st)
                return st;
        d->p = d->maps.p = &p;
        d->observer = observer;
        st = n ? decode(d, data, (const char *)data + n, err) : ST_OK;
        perf_maps_deinit(&d->maps);
        number_map_deinit(&d->locations);
        if (st) {
                profile_deinit(&p);
                return st;
        }
        shift_times(&p, end_unix_ns);
        *ret = p;
        return ST_OK;
}

enum status perf_script_decode(const void *data, size_t n, int64_t end_unix_ns, struct profile *ret,
                               struct error *err)
{
        return perf_script_decode_observed(data, n, end_unix_ns, NULL, ret, err);
}
