/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is a sequence of chunks. A chunk is read twice, because its constants and settings may come after the events
 * that need them: PASS_POOLS records the offset of each constant and reads the settings, PASS_SAMPLES converts events.
 * A constant is parsed when an event refers to it; its memo is a stack, the name of a method or the type of a frame.
 * The encoding of chunks, classes and values is in jfr_chunk.c, labels by context are in jfr_labels.c.
 *
 * Lifetimes: `constants` belongs to one chunk. `chains`, which finds equal locations, belongs to the file. The keys of
 * `samples` have the chunk's number, so samples of two chunks are not summed. Settings hold until a chunk has its own,
 * which also resets `types`, since those have the periods.
 *
 * Order: names of methods, stacks, events (settings, period, type, labels, sample), chunks.
 * event_rules has the sample types of each event; the exceptions of jdk.ExecutionSample are in add_execution_sample().
 */
#include "profile-formats/jfr/jfr_decode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/memory/buf.h"
#include "common/limits.h"
#include "common/text/java_class.h"
#include "profile-formats/jfr/jfr_chunk.h"
#include "profile-formats/jfr/jfr_constants.h"
#include "profile-formats/jfr/jfr_labels.h"
#include "profile-formats/number_map.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/sample_labels.h"

#define DEFAULT_PERIOD_NS 10000000
#define DEFAULT_WALL_PERIOD_NS 50000000 /* of async-profiler */
#define NS_PER_S 1000000000
#define TYPES_PER_EVENT 2

/* How an event becomes samples: a count, or the amount of a field, or both. */
struct event_rule {
        const char *name, *sample_types[TYPES_PER_EVENT], *units[TYPES_PER_EVENT], *period_type, *period_unit;
        enum jfr_name amount; /* of the second type; JFR_NAMES: none */
};

static const struct event_rule event_rules[JFR_KINDS] = {
        [JFR_EXECUTION_SAMPLE] = { "process_cpu", { "cpu" }, { "nanoseconds" }, "cpu", "nanoseconds", JFR_NAMES },
        [JFR_CPU_TIME_SAMPLE] = { "process_cpu", { "cpu" }, { "nanoseconds" }, "cpu", "nanoseconds", JFR_NAMES },
        [JFR_WALL_CLOCK_SAMPLE] = { "wall", { "wall" }, { "nanoseconds" }, "wall", "nanoseconds", JFR_NAMES },
        [JFR_NATIVE_METHOD_SAMPLE] = { "native_method", { "samples" }, { "count" }, "", "", JFR_NAMES },
        [JFR_ALLOCATION_IN_NEW_TLAB] = { "memory",
                                         { "alloc_in_new_tlab_objects", "alloc_in_new_tlab_bytes" },
                                         { "count", "bytes" },
                                         "space",
                                         "bytes",
                                         JFR_TLAB_SIZE },
        [JFR_ALLOCATION_OUTSIDE_TLAB] = { "memory",
                                          { "alloc_outside_tlab_objects", "alloc_outside_tlab_bytes" },
                                          { "count", "bytes" },
                                          "space",
                                          "bytes",
                                          JFR_ALLOCATION_SIZE },
        [JFR_ALLOCATION_SAMPLE] = { "memory",
                                    { "alloc_sample_objects", "alloc_sample_bytes" },
                                    { "count", "bytes" },
                                    "space",
                                    "bytes",
                                    JFR_WEIGHT },
        [JFR_LIVE_OBJECT] = { "memory", { "live" }, { "count" }, "objects", "count", JFR_NAMES },
        [JFR_MALLOC] = { "memory", { "malloc_objects", "malloc_bytes" }, { "count", "bytes" }, "", "", JFR_SIZE },
        [JFR_MONITOR_ENTER] = { "mutex",
                                { "contentions", "delay" },
                                { "count", "nanoseconds" },
                                "mutex",
                                "count",
                                JFR_DURATION },
        [JFR_PARK] = { "block",
                       { "contentions", "delay" },
                       { "count", "nanoseconds" },
                       "block",
                       "count",
                       JFR_DURATION },
};

#define EVENT_NAME_BYTES 64

/* Of the JDK, and of async-profiler, which writes its options as settings of jdk.ExecutionSample. */
struct jfr_settings {
        char event[EVENT_NAME_BYTES]; /* of async-profiler, "" with the JDK */
        bool has_interval, has_wall, is_unbatched;
        int64_t interval_ns, wall_ns; /* of async-profiler, 0: its default */
        int64_t period_ns;            /* of the JDK's jdk.ExecutionSample */
};

/* An event that does not become samples. */
struct unused_event {
        struct jfr_text name; /* borrowed from the recording */
        uint64_t count;
        bool has_stack;
};

struct jfr_decoder {
        const struct jfr_options *options;
        struct profile *p;
        struct jfr_labels labels;
        struct jfr_settings settings; /* of the last chunk that has any */
        struct jfr_chunk chunk;       /* the current one */
        bool has_settings;            /* the current chunk has its own */
        bool has_cpu_time;            /* the current chunk has jdk.CPUTimeSample */
        struct unused_event unused[LIMIT_JFR_UNUSED];
        uint32_t unused_count;
        struct jfr_constants constants; /* of the current chunk */
        /* Frames of one location: the key of a chain is the chain before its last frame, and that. For all chunks. */
        struct number_map chains;
        uint32_t *chain_locations;
        size_t chain_capacity;
        struct number_map samples;                  /* by stack, type and labels; numbered as in the profile */
        uint32_t types[JFR_KINDS][TYPES_PER_EVENT]; /* plus one; 0: not added yet */
        uint32_t chunk_number;
        uint32_t no_stack; /* the stack of events without one, plus one */
        struct buf name;
        uint32_t stack[LIMIT_STACK_FRAMES];
};

/* ---- names ---- */

static void append_utf16_unit(struct buf *to, uint32_t c)
{
        const uint8_t two[] = { (uint8_t)(0xc0 | c >> 6), (uint8_t)(0x80 | (c & 0x3f)) };
        const uint8_t three[] = { (uint8_t)(0xe0 | c >> 12), (uint8_t)(0x80 | (c >> 6 & 0x3f)),
                                  (uint8_t)(0x80 | (c & 0x3f)) };
        const uint8_t one = (uint8_t)c;

        if (c < 0x80)
                buf_append(to, &one, 1);
        else if (c < 0x800)
                buf_append(to, two, 2);
        else
                buf_append(to, three, 3);
}

/* Halves of surrogate pairs become bytes that are not UTF-8, which the profile replaces. */
static void append_jfr_string(struct buf *to, const struct jfr_string *s)
{
        struct reader r;
        uint64_t unit;

        switch (s->encoding) {
        case JFR_STRING_UTF8:
                buf_append(to, s->text.data, s->text.size);
                break;
        case JFR_STRING_LATIN1:
                for (size_t i = 0; i < s->text.size; i++)
                        append_utf16_unit(to, s->text.data[i]);
                break;
        case JFR_STRING_CHARS:
                reader_init(&r, s->text.data, s->text.size);
                while (jfr_read_number(&r, &unit))
                        append_utf16_unit(to, (uint16_t)unit);
                break;
        case JFR_STRING_NONE:
                break;
        }
}

static void append_symbol(struct jfr_decoder *d, uint64_t key)
{
        struct jfr_value v;

        if (jfr_constant_read(&d->chunk, jfr_constants_find(&d->constants, JFR_SYMBOLS, key), &v))
                append_jfr_string(&d->name, &v.strings[JFR_STRING]);
}

/* The name of a method as a string of the profile. */
static enum status name_method(struct jfr_decoder *d, uint64_t key, uint32_t *ret, struct error *err)
{
        struct jfr_constant *e = jfr_constants_find(&d->constants, JFR_METHODS, key);
        struct jfr_value method, class;
        enum status st;

        if (e && e->memo != JFR_MEMO_UNSET) {
                *ret = e->memo;
                return ST_OK;
        }
        buf_clear(&d->name);
        if (jfr_constant_read(&d->chunk, e, &method)) {
                if (jfr_constant_read(&d->chunk,
                                      jfr_constants_find(&d->constants, JFR_CLASSES, method.numbers[JFR_TYPE]), &class))
                        append_symbol(d, class.numbers[JFR_NAME]);
                if (d->name.size && !d->name.failed) {
                        d->name.size = java_class_stable_size((const char *)d->name.data, d->name.size);
                        buf_append_str(&d->name, ".");
                }
                append_symbol(d, method.numbers[JFR_NAME]);
        }
        st = buf_status(&d->name, err, "the name of a method");
        if (!st && !d->name.size)
                buf_append_str(&d->name, "[unknown]");
        if (!st)
                st = profile_add_string(d->p, (const char *)d->name.data, d->name.size, ret, err);
        if (!st && e)
                e->memo = *ret;
        return st;
}

/* ---- stacks ---- */

enum frame_type { FRAME_UNKNOWN, FRAME_INTERPRETED, FRAME_JIT, FRAME_INLINED, FRAME_NATIVE, FRAME_CPP, FRAME_KERNEL };

static const struct {
        const char *description, *mapping;
} frame_types[] = {
        [FRAME_UNKNOWN] = { NULL, NULL },          [FRAME_INTERPRETED] = { "Interpreted", "[interpreted]" },
        [FRAME_JIT] = { "JIT compiled", "[jit]" }, [FRAME_INLINED] = { "Inlined", "[jit]" },
        [FRAME_NATIVE] = { "Native", "[native]" }, [FRAME_CPP] = { "C++", "[native]" },
        [FRAME_KERNEL] = { "Kernel", NULL },
};

static enum frame_type find_frame_type(struct jfr_decoder *d, uint64_t key)
{
        struct jfr_constant *e = jfr_constants_find(&d->constants, JFR_FRAME_TYPES, key);
        struct jfr_value v;

        if (!e)
                return FRAME_UNKNOWN;
        if (e->memo != JFR_MEMO_UNSET)
                return e->memo;
        e->memo = FRAME_UNKNOWN;
        if (jfr_constant_read(&d->chunk, e, &v)) {
                const struct jfr_text *t = &v.strings[JFR_DESCRIPTION].text;

                if (t->size == 11 && memcmp(t->data, "C1 compiled", 11) == 0)
                        e->memo = FRAME_JIT;
                for (unsigned i = FRAME_UNKNOWN + 1; i <= FRAME_KERNEL; i++)
                        if (t->size == strlen(frame_types[i].description) &&
                            memcmp(t->data, frame_types[i].description, t->size) == 0)
                                e->memo = i;
        }
        return e->memo;
}

struct jfr_frame {
        uint32_t function;
        uint32_t line;
        enum frame_type type;
};

static enum status read_frame(struct jfr_decoder *d, struct reader *r, uint32_t class, struct jfr_frame *ret,
                              struct error *err)
{
        struct jfr_value v;

        if (class >= d->chunk.class_count || !jfr_read_value(&d->chunk, r, &d->chunk.classes[class], &v))
                return error_set(err, ST_BAD_DATA, "a stack of the JFR file is malformed");
        ret->line = v.numbers[JFR_LINE_NUMBER] <= INT32_MAX ? (uint32_t)v.numbers[JFR_LINE_NUMBER] : 0;
        ret->type = find_frame_type(d, v.numbers[JFR_TYPE]);
        return name_method(d, v.numbers[JFR_METHOD], &ret->function, err);
}

static enum status add_frames_location(struct jfr_decoder *d, const struct jfr_frame *frames, uint32_t count,
                                       uint32_t *ret, struct error *err)
{
        const char *mapping = frame_types[frames[count - 1].type].mapping;
        struct profile_location l = { .mapping = PROFILE_NONE,
                                      .line_count = count,
                                      .kind = ADDRESS_NONE,
                                      .frame_type = frames[count - 1].type == FRAME_KERNEL ? PROFILE_FRAME_KERNEL
                                                                                           : PROFILE_FRAME_UNKNOWN };
        struct profile_mapping m = { 0 };
        uint32_t number;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < count; i++) {
                const struct profile_line line = { .function = frames[i].function, .line = frames[i].line };

                st = profile_add_line(d->p, &line, &number, err);
                if (i == 0)
                        l.first_line = number;
        }
        for (uint32_t i = 0; !st && mapping && i < d->p->mappings.count; i++)
                if (strcmp(profile_text(d->p, d->p->mappings.items[i].file), mapping) == 0)
                        l.mapping = i;
        if (!st && mapping && l.mapping == PROFILE_NONE) {
                st = profile_add_string(d->p, mapping, strlen(mapping), &m.file, err);
                if (!st)
                        st = profile_add_mapping(d->p, &m, &l.mapping, err);
        }
        return st ? st : profile_add_location(d->p, &l, ret, err);
}

/* The location of frames of which all but the last were inlined into the next; equal frames share one. */
static enum status find_frames_location(struct jfr_decoder *d, const struct jfr_frame *frames, uint32_t count,
                                        uint32_t *ret, struct error *err)
{
        uint32_t chain = UINT32_MAX;
        bool fresh = false;
        enum status st;

        for (uint32_t i = 0; i < count; i++) {
                const struct number_key key = { { chain, frames[i].function, frames[i].line, frames[i].type } };

                st = number_map_get(&d->chains, &key, &chain, &fresh, err);
                if (st)
                        return st;
                if (!fresh)
                        continue;
                if (!array_reserve(&d->chain_locations, &d->chain_capacity, chain))
                        return error_no_memory(err);
                d->chain_locations[chain] = PROFILE_NONE;
        }
        if (d->chain_locations[chain] == PROFILE_NONE) {
                st = add_frames_location(d, frames, count, &d->chain_locations[chain], err);
                if (st)
                        return st;
        }
        *ret = d->chain_locations[chain];
        return ST_OK;
}

static enum status add_no_stack(struct jfr_decoder *d, uint32_t *ret, struct error *err)
{
        static const char text[] = "[no stack]";
        struct jfr_frame frame = { 0 };
        uint32_t location;
        enum status st = ST_OK;

        if (!d->no_stack) {
                st = profile_add_string(d->p, text, sizeof text - 1, &frame.function, err);
                if (!st)
                        st = find_frames_location(d, &frame, 1, &location, err);
                if (!st)
                        st = profile_add_stack(d->p, &location, 1, ret, err);
                if (!st)
                        d->no_stack = *ret + 1;
        }
        if (!st)
                *ret = d->no_stack - 1;
        return st;
}

/* Frames come leaf first. */
static enum status read_stack(struct jfr_decoder *d, struct jfr_value *trace, uint32_t *ret, struct error *err)
{
        struct jfr_frame frames[LIMIT_JFR_INLINED];
        uint32_t open = 0, count = 0;
        bool cut = trace->numbers[JFR_TRUNCATED];
        enum status st = ST_OK;

        for (uint64_t i = 0; !st && i < trace->frame_count; i++) {
                if (count == LIMIT_STACK_FRAMES) {
                        cut = true;
                        break;
                }
                st = read_frame(d, &trace->frames, trace->frame_class, &frames[open], err);
                if (!st && frames[open++].type == FRAME_INLINED && open < LIMIT_JFR_INLINED &&
                    i + 1 < trace->frame_count)
                        continue;
                if (!st)
                        st = find_frames_location(d, frames, open, &d->stack[count++], err);
                open = 0;
        }
        if (!st && !count)
                return add_no_stack(d, ret, err);
        if (!st)
                st = profile_add_stack(d->p, d->stack, count, ret, err);
        if (!st && cut)
                d->p->stacks.items[*ret].truncated = true;
        return st;
}

static enum status find_stack(struct jfr_decoder *d, uint64_t key, uint32_t *ret, struct error *err)
{
        struct jfr_constant *e = jfr_constants_find(&d->constants, JFR_STACK_TRACES, key);
        struct jfr_value trace;
        enum status st;

        if (e && e->memo != JFR_MEMO_UNSET) {
                *ret = e->memo;
                return ST_OK;
        }
        st = jfr_constant_read(&d->chunk, e, &trace) ? read_stack(d, &trace, ret, err) : add_no_stack(d, ret, err);
        if (!st && e)
                e->memo = *ret;
        return st;
}

/* ---- events ---- */

static bool jfr_string_is(const struct jfr_string *s, const char *text)
{
        return s->text.size == strlen(text) && memcmp(s->text.data, text, s->text.size) == 0;
}

/* "20 ms", "10000000" (nanoseconds), 0 for others ("everyChunk"). */
static int64_t parse_jfr_time(const struct jfr_string *s)
{
        static const struct {
                const char *unit;
                uint64_t ns;
        } units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", NS_PER_S }, { "", 1 } };
        size_t digits = 0;
        uint64_t n = 0;

        while (digits < s->text.size && digits < 12 && s->text.data[digits] >= '0' && s->text.data[digits] <= '9')
                n = n * 10 + (s->text.data[digits++] - '0');
        for (size_t i = 0; digits && i < sizeof units / sizeof *units; i++) {
                size_t at = digits + (digits < s->text.size && s->text.data[digits] == ' ');

                if (s->text.size - at == strlen(units[i].unit) &&
                    memcmp(s->text.data + at, units[i].unit, s->text.size - at) == 0)
                        return (int64_t)(n * units[i].ns <= NS_PER_S * UINT64_C(60) ? n * units[i].ns : 0);
        }
        return 0;
}

static void read_active_setting(struct jfr_decoder *d, const struct jfr_value *v)
{
        const struct jfr_class *class = jfr_chunk_find_class(&d->chunk, v->numbers[JFR_ID]);
        const struct jfr_string *name = &v->strings[JFR_NAME], *value = &v->strings[JFR_VALUE];
        const bool is_execution = class && class->kind == JFR_EXECUTION_SAMPLE;
        const bool is_event = jfr_string_is(name, "event"), is_period = is_execution && jfr_string_is(name, "period"),
                   is_interval = is_execution && jfr_string_is(name, "interval"),
                   is_wall = is_execution && jfr_string_is(name, "wall"),
                   is_unbatched = is_execution && jfr_string_is(name, "nobatch");
        struct jfr_settings *s = &d->settings;

        if (!is_event && !is_period && !is_interval && !is_wall && !is_unbatched)
                return;
        if (!d->has_settings) { /* the earlier ones may be of another recording in the same file */
                memset(s, 0, sizeof *s);
                memset(d->types, 0, sizeof d->types); /* they have the periods */
        }
        d->has_settings = true;
        if (is_event)
                snprintf(s->event, sizeof s->event, "%.*s",
                         (int)(value->text.size < sizeof s->event ? value->text.size : sizeof s->event - 1),
                         value->text.size ? (const char *)value->text.data : "");
        else if (is_period)
                s->period_ns = parse_jfr_time(value);
        else if (is_interval) {
                s->has_interval = true;
                s->interval_ns = parse_jfr_time(value);
        } else if (is_wall) {
                s->has_wall = true;
                s->wall_ns = parse_jfr_time(value);
        } else {
                s->is_unbatched = jfr_string_is(value, "true");
        }
}

static bool is_wall_event(const struct jfr_decoder *d)
{
        return strcmp(d->settings.event, "wall") == 0;
}

/* Whether the event of async-profiler is one that does not measure time, such as page-faults or a Java method. */
static bool is_counted_event(const struct jfr_decoder *d)
{
        static const char *const timed[] = { "", "cpu", "itimer", "ctimer", "cpu-clock", "task-clock", "wall" };

        for (size_t i = 0; i < sizeof timed / sizeof *timed; i++)
                if (strcmp(d->settings.event, timed[i]) == 0)
                        return false;
        return true;
}

/* async-profiler has one interval for CPU time and one for wall time; that of the event wall is `interval`. */
static int64_t choose_period(const struct jfr_decoder *d, enum jfr_kind kind)
{
        const struct jfr_settings *s = &d->settings;
        const bool is_wall = kind == JFR_WALL_CLOCK_SAMPLE || is_wall_event(d);

        if (is_wall && s->has_wall)
                return s->wall_ns ? s->wall_ns : DEFAULT_WALL_PERIOD_NS;
        if (d->options->period_ns)
                return d->options->period_ns;
        if (s->has_interval && s->interval_ns)
                return s->interval_ns;
        if (!s->has_interval && s->period_ns && !is_wall)
                return s->period_ns;
        return is_wall ? DEFAULT_WALL_PERIOD_NS : DEFAULT_PERIOD_NS;
}

static int64_t convert_ticks(const struct jfr_decoder *d, uint64_t ticks)
{
        unsigned __int128 ns =
                (unsigned __int128)ticks * NS_PER_S / (d->chunk.ticks_per_s ? d->chunk.ticks_per_s : NS_PER_S);

        return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static enum status find_event_type(struct jfr_decoder *d, enum jfr_kind kind, unsigned i, uint32_t *ret,
                                   struct error *err)
{
        const struct event_rule *rule = &event_rules[kind];
        bool is_timed = kind == JFR_EXECUTION_SAMPLE || kind == JFR_WALL_CLOCK_SAMPLE;
        enum status st = ST_OK;

        if (!d->types[kind][i]) {
                const struct profile_type_parts parts = { .name = rule->name,
                                                          .sample_type = rule->sample_types[i],
                                                          .sample_unit = rule->units[i],
                                                          .period_type = rule->period_type,
                                                          .period_unit = rule->period_unit,
                                                          .period = is_timed ? choose_period(d, kind) : 0 };

                st = profile_type_add(d->p, &parts, ret, err);
                if (!st)
                        d->types[kind][i] = *ret + 1;
        }
        if (!st)
                *ret = d->types[kind][i] - 1;
        return st;
}

/* The labels of the event's context, and of its span if labels came with the recording. */
static enum status find_event_labels(struct jfr_decoder *d, const struct jfr_value *v, struct jfr_label_set *ret,
                                     struct error *err)
{
        struct sample_labels labels = { .count = 0 };
        uint64_t span = v->numbers[JFR_SPAN_ID];
        uint32_t span_name = jfr_labels_find_string(&d->labels, v->numbers[JFR_SPAN_NAME]), key;
        char hex[17];
        enum status st = ST_OK;

        *ret = jfr_labels_find(&d->labels, v->numbers[JFR_CONTEXT_ID]);
        if (!d->labels.is_given || (!span && !span_name))
                return ST_OK;
        for (uint32_t i = 0; !st && i < ret->count; i++)
                st = sample_labels_set(&labels, d->p->labels.items[ret->first + i].key,
                                       d->p->labels.items[ret->first + i].value, err);
        snprintf(hex, sizeof hex, "%016" PRIx64, span);
        if (!st && span)
                st = sample_labels_set_text(&labels, d->p, "profile_id", hex, 16, err);
        if (!st && span_name)
                st = profile_add_string(d->p, "span_name", 9, &key, err);
        if (!st && span_name)
                st = sample_labels_set(&labels, key, span_name, err);
        ret->count = labels.count;
        return st ? st : profile_add_label_set(d->p, labels.items, labels.count, &ret->first, err);
}

/* Add a value to the sample with this stack, type and labels. */
static enum status add_event_value(struct jfr_decoder *d, const struct profile_sample *sample, struct error *err)
{
        const struct number_key key = { { sample->stack, sample->type, sample->first_label, sample->label_count,
                                          d->chunk_number } };
        int64_t *value;
        uint32_t number, at;
        bool fresh = false;
        enum status st;

        if (sample->value <= 0)
                return ST_OK;
        st = number_map_get(&d->samples, &key, &number, &fresh, err);
        if (st || fresh)
                return st ? st : profile_add_sample(d->p, sample, &at, err);
        value = &d->p->samples.items[number].value;
        if (__builtin_add_overflow(*value, sample->value, value))
                *value = INT64_MAX;
        return ST_OK;
}

static enum status add_event_as(struct jfr_decoder *d, enum jfr_kind kind, const struct jfr_value *v,
                                struct profile_sample *s, struct error *err)
{
        const struct event_rule *rule = &event_rules[kind];
        enum status st = ST_OK;

        for (unsigned i = 0; !st && i < TYPES_PER_EVENT && rule->sample_types[i]; i++) {
                uint64_t amount = i ? v->numbers[rule->amount] : 1;

                if (i && rule->amount == JFR_DURATION)
                        amount = (uint64_t)convert_ticks(d, amount);
                if (kind == JFR_WALL_CLOCK_SAMPLE && v->has[JFR_SAMPLES])
                        amount = v->numbers[JFR_SAMPLES];
                if (kind == JFR_WALL_CLOCK_SAMPLE || kind == JFR_EXECUTION_SAMPLE)
                        amount = amount > INT32_MAX ? 0 : amount * (uint64_t)choose_period(d, kind);
                if (kind == JFR_CPU_TIME_SAMPLE)
                        amount = (uint64_t)convert_ticks(d, v->numbers[JFR_SAMPLING_PERIOD]);
                s->value = amount > INT64_MAX ? 0 : (int64_t)amount;
                st = find_event_type(d, kind, i, &s->type, err);
                if (!st)
                        st = add_event_value(d, s, err);
        }
        return st;
}

static bool has_state(struct jfr_decoder *d, const struct jfr_value *event, const char *state)
{
        struct jfr_value v;

        return jfr_constant_read(&d->chunk,
                                 jfr_constants_find(&d->constants, JFR_THREAD_STATES, event->numbers[JFR_STATE]), &v) &&
               jfr_string_is(&v.strings[JFR_NAME], state);
}

/* Add a sample that is not of CPU time: perf:EVENT by the interval of an event, else a count of executions. */
static enum status add_counted_sample(struct jfr_decoder *d, struct profile_sample *s, struct error *err)
{
        const int64_t interval = is_counted_event(d) ? d->settings.interval_ns : 0;
        const struct profile_type_parts counted = { .name = "perf",
                                                    .sample_type = d->settings.event,
                                                    .sample_unit = interval ? "count" : "samples" };
        enum status st = is_counted_event(d)
                                 ? profile_type_add(d->p, &counted, &s->type, err)
                                 : profile_type_add_id(d->p, "process_cpu:samples:count::", 0, &s->type, err);

        s->value = interval ? interval : 1;
        return st ? st : add_event_value(d, s, err);
}

/*
 * jdk.ExecutionSample is CPU time: sampled by the JDK, or at the event of async-profiler. With async-profiler's event
 * wall it is a sample of wall time, and of CPU time if the thread runs. With `nobatch`, samples of wall time beside
 * another event differ by their state. Beside jdk.CPUTimeSample, which measures the same time more precisely, it is a
 * count.
 */
static enum status add_execution_sample(struct jfr_decoder *d, const struct jfr_value *v, struct profile_sample *s,
                                        struct error *err)
{
        const struct jfr_settings *settings = &d->settings;
        enum status st = ST_OK;

        if (settings->has_wall && settings->is_unbatched && !is_wall_event(d) && !has_state(d, v, "STATE_DEFAULT"))
                return add_event_as(d, JFR_WALL_CLOCK_SAMPLE, v, s, err);
        if (is_counted_event(d) || d->has_cpu_time)
                return add_counted_sample(d, s, err);
        if (!has_state(d, v, "STATE_SLEEPING"))
                st = add_event_as(d, JFR_EXECUTION_SAMPLE, v, s, err);
        return st || !is_wall_event(d) ? st : add_event_as(d, JFR_WALL_CLOCK_SAMPLE, v, s, err);
}

static enum status add_event(struct jfr_decoder *d, enum jfr_kind kind, const struct jfr_value *v, struct error *err)
{
        struct profile_sample s = { .time_unix_ns = d->chunk.start_unix_ns, .duration_ns = d->chunk.duration_ns };
        struct jfr_label_set labels;
        enum status st = find_stack(d, v->numbers[JFR_STACK_TRACE], &s.stack, err);

        if (!st)
                st = find_event_labels(d, v, &labels, err);
        if (st)
                return st;
        s.first_label = labels.first;
        s.label_count = labels.count;
        return kind == JFR_EXECUTION_SAMPLE ? add_execution_sample(d, v, &s, err) : add_event_as(d, kind, v, &s, err);
}

/* ---- chunks ---- */

/* Count an event that is not used, for the note. */
static void count_unused_event(struct jfr_decoder *d, const struct jfr_class *class)
{
        uint32_t i = 0;

        while (i < d->unused_count && (d->unused[i].name.size != class->name.size ||
                                       memcmp(d->unused[i].name.data, class->name.data, class->name.size) != 0))
                i++;
        if (i == LIMIT_JFR_UNUSED || !class->name.size)
                return;
        if (i == d->unused_count)
                d->unused[d->unused_count++] = (struct unused_event){ class->name, 0, class->has_stack };
        d->unused[i].count++;
}

/* Events with stacks first, then the most frequent ones. */
static int compare_unused_events(const void *a, const void *b)
{
        const struct unused_event *x = a, *y = b;

        return x->has_stack != y->has_stack ? y->has_stack - x->has_stack
                                            : (x->count < y->count) - (x->count > y->count);
}

/* With samples, only events with stacks, which are others than one may expect; without, all kinds. */
static void note_unused_events(struct jfr_decoder *d)
{
        char *note = d->p->note;
        const bool is_empty = !d->p->samples.count;
        size_t used = strlen(note);

        qsort(d->unused, d->unused_count, sizeof *d->unused, compare_unused_events);
        if (is_empty)
                used = (size_t)snprintf(note, sizeof d->p->note, "no event of the recording is used%s",
                                        d->unused_count ? "; it has " : "");
        else if (d->unused_count && d->unused[0].has_stack)
                used += (size_t)snprintf(note + used, sizeof d->p->note - used,
                                         "%sevents with stacks that are not used: ", used ? "; " : "");
        for (uint32_t i = 0; i < d->unused_count && i < LIMIT_JFR_UNUSED_NAMES; i++) {
                if (!is_empty && !d->unused[i].has_stack)
                        break;
                const struct unused_event *e = &d->unused[i];
                const int n = e->name.size < EVENT_NAME_BYTES ? (int)e->name.size : EVENT_NAME_BYTES;
                const int added = snprintf(note + used, sizeof d->p->note - used, "%s%" PRIu64 " %.*s", i ? ", " : "",
                                           e->count, n, (const char *)e->name.data);

                if (added < 0 || (size_t)added >= sizeof d->p->note - used) {
                        note[used] = 0;
                        break;
                }
                used += (size_t)added;
        }
}

enum jfr_pass { PASS_POOLS, PASS_SAMPLES };

static enum status read_jfr_event(struct jfr_decoder *d, struct jfr_event *e, enum jfr_pass pass, struct error *err)
{
        const struct jfr_class *class;
        struct jfr_value v;
        enum jfr_kind kind;

        if (e->type_id == JFR_POOLS_EVENT)
                return pass == PASS_POOLS ? jfr_constants_read(&d->constants, &d->chunk, e->payload, err) : ST_OK;
        class = jfr_chunk_find_class(&d->chunk, e->type_id);
        kind = class ? class->kind : JFR_OTHER;
        if (pass == PASS_POOLS && kind == JFR_CPU_TIME_SAMPLE)
                d->has_cpu_time = true;
        if (pass == PASS_POOLS && class && kind == JFR_OTHER && (class->has_stack || !d->p->samples.count))
                count_unused_event(d, class);
        if (pass == PASS_POOLS ? kind != JFR_ACTIVE_SETTING : !event_rules[kind].name)
                return ST_OK;
        if (!jfr_read_value(&d->chunk, &e->payload, class, &v))
                return error_set(err, ST_BAD_DATA, "an event of the JFR file is malformed");
        if (pass == PASS_SAMPLES)
                return add_event(d, kind, &v, err);
        read_active_setting(d, &v);
        return ST_OK;
}

/* Constants and settings come anywhere in a chunk, so it is read twice. */
static enum status read_jfr_chunk(struct jfr_decoder *d, struct error *err)
{
        enum status st = ST_OK;

        d->has_settings = d->has_cpu_time = false;
        for (enum jfr_pass pass = PASS_POOLS; !st && pass <= PASS_SAMPLES; pass++) {
                struct jfr_event event;
                size_t pos = 0;

                while (!st && !(st = jfr_chunk_next_event(&d->chunk, &pos, &event, err)))
                        st = read_jfr_event(d, &event, pass, err);
                if (st == ST_NOT_FOUND)
                        st = ST_OK;
        }
        return st;
}

static bool is_all_zero(const uint8_t *data, size_t n)
{
        return n == 0 || (data[0] == 0 && memcmp(data, data + 1, n - 1) == 0);
}

/* A recording that another one follows is complete in itself; what follows may be padding or cut off. */
static bool ends_before(struct jfr_decoder *d, const uint8_t *data, size_t n)
{
        if (!d->chunk_number || jfr_chunk_is_complete(data, n))
                return false;
        if (!is_all_zero(data, n))
                snprintf(d->p->note, sizeof d->p->note,
                         "the last %zu bytes of the recording are not read: no chunk, or one that is cut off", n);
        return true;
}

static enum status read_jfr_file(struct jfr_decoder *d, const uint8_t *data, size_t n, struct error *err)
{
        enum status st = ST_OK;

        for (; !st && n && !ends_before(d, data, n); d->chunk_number++) {
                if (d->chunk_number == LIMIT_JFR_CHUNKS)
                        return error_set(err, ST_TOO_BIG, "the JFR file has more than %d chunks", LIMIT_JFR_CHUNKS);
                st = jfr_chunk_open(data, n, &d->chunk, err);
                if (st)
                        break;
                data += d->chunk.size;
                n -= d->chunk.size;
                st = read_jfr_chunk(d, err);
                jfr_constants_clear(&d->constants);
                jfr_chunk_close(&d->chunk);
        }
        if (!st)
                note_unused_events(d);
        return st;
}

enum status jfr_decode(const void *data, size_t n, const struct jfr_options *options, struct profile *ret,
                       struct error *err)
{
        struct jfr_decoder *d;
        struct profile p;
        enum status st;

        if (n > LIMIT_JFR_BYTES)
                return error_set(err, ST_TOO_BIG, "the JFR file is larger than %zu bytes", LIMIT_JFR_BYTES);
        if (!jfr_detect(data, n))
                return error_set(err, ST_BAD_DATA, "not a JFR file: it does not begin with FLR");
        d = calloc(1, sizeof *d);
        st = d ? profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, err) : error_no_memory(err);
        if (st) {
                free(d);
                return st;
        }
        d->options = options;
        d->p = &p;
        profile_limit_work(&p, n + (options->labels ? options->labels_size : 0));
        buf_init(&d->name, LIMIT_NAME_BYTES);
        st = jfr_labels_read(options->labels, options->labels ? options->labels_size : 0, &p, &d->labels, err);
        if (!st)
                st = read_jfr_file(d, data, n, err);
        jfr_labels_deinit(&d->labels);
        number_map_deinit(&d->chains);
        number_map_deinit(&d->samples);
        jfr_constants_deinit(&d->constants);
        free(d->chain_locations);
        buf_deinit(&d->name);
        free(d);
        p.max_work = 0; /* additions by the caller are not part of the input */
        if (st)
                profile_deinit(&p);
        else
                *ret = p;
        return st;
}
