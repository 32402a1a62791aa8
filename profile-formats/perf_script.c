/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the lines. read_perf_line() decides about each: an empty line ends a sample; a header begins one, or
 * is a PERF_RECORD_ line (a mapping, or skipped); a line of perf buildid-list is recorded while no sample is open;
 * every other line below a header is one of its fields, mostly a frame; lines elsewhere are refused. Lines are cut and
 * headers parsed in perf_line.c. struct perf_text is a slice of the input; only strings of the profile are copies.
 *
 * Two states: struct perf_maps turns (file, address) into a mapping and a file offset; the mappings of a file form a
 * list, latest first. struct perf_decoder has the open sample. "(inlined)" lines precede the frame they belong to, so
 * they wait in `inlined` until that frame becomes a location. A stack on lines of its own replaces a frame found on
 * the header's line.
 *
 * In the file: build-ids and mappings; frames; samples with event types and labels; the
 * dispatch of lines; the end, where shift_times() converts the times of the recording's clock to wall clock times.
 */
#include "profile-formats/perf_script.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "profile-formats/number_map.h"
#include "profile-formats/perf_line.h"
#include "profile-formats/profile.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/return_address.h"
#include "profile-formats/sample_labels.h"

struct perf_mmap {
        uint32_t file;    /* string */
        uint32_t mapping; /* of the profile */
        uint32_t earlier; /* mmap of the same file, plus one; 0: none */
        uint64_t start, end, file_offset;
};

struct perf_maps {
        struct profile *p;
        struct perf_mmap *mmaps; /* owned */
        uint32_t mmap_count;
        size_t mmap_capacity;
        struct number_map mapped; /* files of mmaps: (string) */
        uint32_t *latest;         /* mmap of a file, plus one, by number in mapped; owned */
        size_t latest_capacity;
        struct number_map files; /* mappings of files without a known mmap: (string) */
        uint32_t *file_mappings; /* by number in files; owned */
        size_t file_capacity;
        /* From lines of perf buildid-list: build-ids by the number of a path. */
        struct number_map identified;
        struct build_id *build_ids; /* owned */
        size_t build_id_capacity;
};

#define PROCESS_START                                                                                                  \
        (UINT64_C(1) << 40) /* newer perf prints file offsets of user code, older perf process addresses */
#define LIMIT_MMAPS 1000000

static void perf_maps_deinit(struct perf_maps *maps)
{
        free(maps->mmaps);
        free(maps->latest);
        number_map_deinit(&maps->mapped);
        free(maps->file_mappings);
        number_map_deinit(&maps->files);
        number_map_deinit(&maps->identified);
        free(maps->build_ids);
}

/* A line of perf buildid-list, "BUILD-ID FILE"; false for other lines. */
static bool parse_build_id_line(struct perf_text line, struct build_id *id, struct perf_text *path)
{
        struct perf_text rest = line, word = cut_perf_word(&rest);

        *path = trim_perf_text(rest);
        return word.n >= BUILD_ID_CHARS_LEAST && path->n && strchr("/[", path->at[0]) &&
               build_id_from_hex(id, word.at, word.n) && !build_id_is_placeholder(id);
}

/* The first of several files of one path counts. */
static enum status add_file_build_id(struct perf_maps *maps, const struct build_id *id, struct perf_text path,
                                     struct error *err)
{
        uint32_t file, number;
        bool fresh = false;
        enum status st;

        if (path.at[0] == '[') /* the kernel, whose addresses are not those of its file */
                return ST_OK;
        st = profile_add_string(maps->p, path.at, utf8_truncate(path.at, path.n, LIMIT_PATH_BYTES), &file, err);
        if (!st && maps->identified.count == LIMIT_MMAPS)
                st = error_set(err, ST_TOO_BIG, "more than %d build-ids", LIMIT_MMAPS);
        if (!st)
                st = number_map_get(&maps->identified, &(struct number_key){ { file } }, &number, &fresh, err);
        if (st || !fresh)
                return st;
        if (!array_reserve(&maps->build_ids, &maps->build_id_capacity, number))
                return error_no_memory(err);
        assert(maps->build_ids);
        maps->build_ids[number] = *id;
        return ST_OK;
}

/* For mappings without a build-id. */
static void fill_build_id(const struct perf_maps *maps, struct profile_mapping *m)
{
        uint32_t number;

        if (m->build_id.size || !number_map_find(&maps->identified, &(struct number_key){ { m->file } }, &number))
                return;
        assert(maps->build_ids);
        m->build_id = maps->build_ids[number];
}

static enum status append_perf_mmap(struct perf_maps *maps, struct perf_mmap *map, struct error *err)
{
        uint32_t number;
        bool fresh;
        enum status st;

        if (maps->mmap_count == LIMIT_MMAPS)
                return error_set(err, ST_TOO_BIG, "more than %d mappings", LIMIT_MMAPS);
        st = number_map_get(&maps->mapped, &(struct number_key){ { map->file } }, &number, &fresh, err);
        if (st)
                return st;
        if (!array_reserve(&maps->mmaps, &maps->mmap_capacity, maps->mmap_count) ||
            !array_reserve(&maps->latest, &maps->latest_capacity, number))
                return error_no_memory(err);
        map->earlier = fresh ? 0 : maps->latest[number];
        maps->mmaps[maps->mmap_count++] = *map;
        maps->latest[number] = maps->mmap_count;
        return ST_OK;
}

/* Read a line from after its event name: PID/TID: [0x55b87a6bc000(0x1000) @ 0x1000 <BUILD-ID>]: r-xp FILE. Lines of
 * another form are skipped. */
static enum status add_perf_mmap(struct perf_maps *maps, struct perf_text t, struct error *err)
{
        const char *open = memchr(t.at, '[', t.n), *close, *paren;
        struct profile_mapping m = { 0 };
        struct perf_mmap map = { 0 };
        struct perf_text inside, word;
        uint64_t size;
        enum status st;

        close = open ? memmem(open, (size_t)(t.at + t.n - open), "]: ", 3) : NULL;
        if (!close)
                return ST_OK;
        inside = (struct perf_text){ open + 1, (size_t)(close - open - 1) };
        word = cut_perf_word(&inside);
        paren = memchr(word.at, '(', word.n);
        if (!paren || word.at[word.n - 1] != ')' ||
            !parse_perf_number((struct perf_text){ word.at, (size_t)(paren - word.at) }, 16, &map.start) ||
            !parse_perf_number((struct perf_text){ paren + 1, (size_t)(word.at + word.n - 1 - (paren + 1)) }, 16,
                               &size) ||
            __builtin_add_overflow(map.start, size, &map.end))
                return ST_OK;
        (void)cut_perf_word(&inside); /* @ */
        word = cut_perf_word(&inside);
        if (!parse_perf_number(word, 16, &map.file_offset))
                return ST_OK;
        word = cut_perf_word(&inside);
        if (word.n > 2 && word.at[0] == '<' && !build_id_from_hex(&m.build_id, word.at + 1, word.n - 2))
                m.build_id.size = 0;
        t = (struct perf_text){ close + 3, (size_t)(t.at + t.n - (close + 3)) };
        m.file_offset = map.file_offset;
        m.size = size;
        cut_perf_word(&t); /* r-xp */
        t = trim_perf_text(t);
        if (t.n > 17 && memcmp(t.at, "[kernel.kallsyms]", 17) == 0)
                t.n = 17; /* perf appends the reference symbol here, not in stacks */
        st = profile_add_string(maps->p, t.at, utf8_truncate(t.at, t.n, LIMIT_PATH_BYTES), &m.file, err);
        if (!st && !(map.start >> 63)) /* addresses of modules are not those of their files */
                fill_build_id(maps, &m);
        if (!st)
                st = profile_add_mapping(maps->p, &m, &map.mapping, err);
        if (st)
                return st;
        map.file = m.file;
        return append_perf_mmap(maps, &map, err);
}

static enum status find_file_mapping(struct perf_maps *maps, uint32_t file, uint32_t *ret, struct error *err)
{
        struct profile_mapping m = { .file = file };
        uint32_t number;
        bool fresh;
        enum status st = number_map_get(&maps->files, &(struct number_key){ { file } }, &number, &fresh, err);

        if (!st && fresh && !array_reserve(&maps->file_mappings, &maps->file_capacity, number))
                return error_no_memory(err);
        if (!st && fresh)
                st = profile_add_mapping(maps->p, &m, &maps->file_mappings[number], err);
        if (!st)
                *ret = maps->file_mappings[number];
        return st;
}

/* Find the mapping of an address in a file (a string of the profile), and convert the address to a file offset where
 * possible. */
static enum status locate_perf_address(struct perf_maps *maps, uint32_t file, struct profile_location *l,
                                       struct error *err)
{
        bool offset = l->address < PROCESS_START;
        bool is_kernel = l->address >> 63 || starts_with(profile_text(maps->p, file), "[kernel");
        uint32_t number, next = 0;

        l->frame_type = is_kernel ? PROFILE_FRAME_KERNEL : PROFILE_FRAME_UNKNOWN;
        if (number_map_find(&maps->mapped, &(struct number_key){ { file } }, &number))
                next = maps->latest[number];
        while (next) { /* the latest mapping has precedence */
                const struct perf_mmap *m = &maps->mmaps[next - 1];
                enum status st = profile_count_work(maps->p, 1, err);

                if (st)
                        return st;
                next = m->earlier;
                if (!offset && !is_kernel && (l->address < m->start || l->address >= m->end))
                        continue;
                l->mapping = m->mapping;
                if (!is_kernel) {
                        l->kind = ADDRESS_FILE_OFFSET;
                        if (!offset)
                                l->address = l->address - m->start + m->file_offset;
                }
                return ST_OK;
        }
        if (profile_text(maps->p, file)[0] == '/' && offset)
                l->kind = ADDRESS_FILE_OFFSET;
        return file ? find_file_mapping(maps, file, &l->mapping, err) : ST_OK;
}

struct perf_decoder {
        struct profile *p;
        struct perf_maps maps;
        struct number_map locations; /* see add_perf_location() */

        bool has_header;   /* a header has been read */
        bool open;         /* the last one was that of a sample */
        bool has_stack;    /* its frames are on lines of their own, which begin with a tab */
        const char *clock; /* the first event that is a clock; static, NULL: none */
        struct profile_sample sample;
        uint32_t frames[LIMIT_STACK_FRAMES + 1];
        uint32_t frame_count, depth;
        uint32_t last_line;                          /* of the frame on the line before, plus one; 0: it has no name */
        bool kernel_below;                           /* the frame before was a kernel frame */
        const struct perf_script_observer *observer; /* NULL: none */
        struct profile_line inlined[LIMIT_LINES_PER_LOCATION];
        uint32_t inlined_count;
};

/* ---- frames ---------------------------------------------------------------------------------- */

static enum status add_perf_location(struct perf_decoder *d, struct profile_location *l,
                                     const struct profile_line *line, uint32_t *ret, struct error *err)
{
        struct number_key key = { { l->mapping, (uint32_t)l->address, (uint32_t)(l->address >> 32),
                                    line ? line->function : 0, d->inlined_count,
                                    (uint32_t)l->kind << 1 | (l->frame_type == PROFILE_FRAME_KERNEL) } };
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

static enum status notify_frame_observer(const struct perf_decoder *d, struct perf_text t, uint32_t location,
                                         struct error *err)
{
        return d->observer ? d->observer->frame(d->observer->context, t.at, t.n, location, err) : ST_OK;
}

static bool is_unknown_name(struct perf_text t)
{
        return t.n == 9 && memcmp(t.at, "[unknown]", 9) == 0;
}

/* The parenthesis that opens the one at the end, if a blank precedes it; n: none. */
static size_t find_partner(const char *text, size_t n)
{
        size_t open = 0;

        for (size_t i = n; i-- > 1;) {
                open += text[i] == ')';
                if (text[i] == '(' && --open == 0)
                        return text[i - 1] == ' ' ? i : n;
        }
        return n;
}

/* Names of functions and paths may have blanks and parentheses; in paths, these may even lack their partner. */
size_t perf_script_find_file(const char *text, size_t n)
{
        size_t at;

        if (!n || text[n - 1] != ')')
                return n;
        at = find_partner(text, n);
        for (size_t i = 1; at == n && i + 1 < n; i++)
                if (text[i] == '(' && text[i - 1] == ' ' && strchr("/[", text[i + 1]))
                        at = i;
        return at;
}

/* Remove "+0x21" from the end. */
static void strip_perf_offset(struct perf_text *t)
{
        const char *plus = t->n ? memrchr(t->at, '+', t->n) : NULL;
        const size_t size = plus ? (size_t)(plus - t->at) : 0;
        uint64_t offset;

        if (size && t->n - size > 3 && parse_perf_number((struct perf_text){ plus + 1, t->n - size - 1 }, 16, &offset))
                t->n = size;
}

/* ADDRESS SYMBOL[+0xOFFSET] (FILE[+0xOFFSET]); ST_NOT_FOUND: another line. */
static enum status read_perf_frame(struct perf_decoder *d, struct perf_text t, struct error *err)
{
        const struct perf_text whole = t;
        struct profile_location l = { .mapping = PROFILE_NONE };
        struct profile_line line = { 0 };
        struct perf_text word = cut_perf_word(&t), symbol, file = { "", 0 };
        uint32_t file_string, location;
        enum status st;
        size_t open;
        bool named, is_kernel;

        if (!parse_perf_number(word, 16, &l.address))
                return ST_NOT_FOUND;
        cut_perf_branches(&t);
        symbol = (struct perf_text){ t.at, (size_t)(trim_perf_text(t).at + trim_perf_text(t).n - t.at) };
        open = perf_script_find_file(symbol.at, symbol.n); /* with the blank before it: there may be no symbol */
        if (open < symbol.n) {
                file = (struct perf_text){ symbol.at + open + 1, symbol.n - open - 2 };
                symbol.n = open;
                strip_perf_offset(&file);
        }
        symbol = trim_perf_text(symbol);
        strip_perf_offset(&symbol);
        d->last_line = 0;
        named = symbol.n && !is_unknown_name(symbol);
        if (named) {
                st = profile_add_string(d->p, symbol.at, utf8_truncate(symbol.at, symbol.n, LIMIT_NAME_BYTES),
                                        &line.function, err);
                if (st)
                        return st;
        }
        if (file.n == 7 && memcmp(file.at, "inlined", 7) == 0) {
                if (d->inlined_count < LIMIT_LINES_PER_LOCATION - 1)
                        d->inlined[d->inlined_count++] = line;
                return notify_frame_observer(d, whole, PROFILE_NONE, err);
        }
        if (is_unknown_name(file))
                file.n = 0;
        st = profile_add_string(d->p, file.at, utf8_truncate(file.at, file.n, LIMIT_PATH_BYTES), &file_string, err);
        if (!st)
                st = locate_perf_address(&d->maps, file_string, &l, err);
        if (st)
                return st;
        is_kernel = l.frame_type == PROFILE_FRAME_KERNEL;
        l.address = adjust_caller_address(ADDRESS_SOURCE_RAW_CHAIN, l.address, d->depth, d->kernel_below && !is_kernel);
        d->kernel_below = is_kernel;
        d->depth++;
        st = add_perf_location(d, &l, named ? &line : NULL, &location, err);
        d->inlined_count = 0;
        if (!st && named) /* the function's own line is the last one */
                d->last_line = d->p->locations.items[location].first_line + d->p->locations.items[location].line_count;
        if (!st && d->frame_count <= LIMIT_STACK_FRAMES)
                d->frames[d->frame_count++] = location;
        return st ? st : notify_frame_observer(d, whole, location, err);
}

/* ---- samples --------------------------------------------------------------------------------- */

static enum status close_perf_sample(struct perf_decoder *d, struct error *err)
{
        uint32_t number;
        enum status st;

        if (!d->open)
                return ST_OK;
        d->open = false;
        st = profile_add_stack(d->p, d->frames, d->frame_count, &d->sample.stack, err);
        return st ? st : profile_add_sample(d->p, &d->sample, &number, err);
}

/* Remove the colon at the end, and modifiers ("cpu-clock:pppH:"). Returns whether it is a tracepoint or a probe. */
static bool strip_event_modifiers(struct perf_text *event)
{
        const char *colon;
        size_t modifiers = 0;

        while (event->n && event->at[event->n - 1] == ':')
                event->n--;
        colon = event->n ? memrchr(event->at, ':', event->n) : NULL;
        if (!colon)
                return false;
        while (colon + 1 + modifiers < event->at + event->n && strchr("ukhGHIpPSDWeb", colon[1 + modifiers]))
                modifiers++;
        if (colon + 1 + modifiers == event->at + event->n) {
                event->n = (size_t)(colon - event->at);
                colon = event->n ? memrchr(event->at, ':', event->n) : NULL;
        }
        return colon != NULL;
}

/* The name of an event that is a clock, static; NULL for others. Terms may follow: "cpu-clock/period=1000000/". */
static const char *find_clock(const char *name, size_t n)
{
        static const char *const clocks[] = { "cpu-clock", "task-clock" };

        for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
                if (n == strlen(clocks[i]) && memcmp(name, clocks[i], n) == 0)
                        return clocks[i];
        return NULL;
}

/* Two clocks measure the same time, so only the first one of a recording is process_cpu. */
static enum status add_event_type(struct perf_decoder *d, struct perf_text event, bool has_period, struct error *err)
{
        const char *clock;
        char name[128];

        snprintf(name, sizeof name, "%.*s", (int)(event.n < 127 ? event.n : 127), event.n ? event.at : "");
        clock = find_clock(name, strcspn(name, "/"));
        if (!d->clock)
                d->clock = clock;
        if (clock && clock == d->clock)
                return profile_type_add_id(d->p,
                                           has_period ? "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
                                                      : "process_cpu:samples:count:cpu:nanoseconds",
                                           0, &d->sample.type, err);
        return profile_type_add(d->p,
                                &(struct profile_type_parts){ .name = "perf",
                                                              .sample_type = *name ? name : "event",
                                                              .sample_unit = !has_period ? "samples"
                                                                             : clock     ? "nanoseconds"
                                                                                         : "count" },
                                &d->sample.type, err);
}

#define ADDRESS_DIGITS 8 /* fewest of an address that follows the fields of a tracepoint */

/*
 * Find the frame at the end of a header of a recording without call chains: an address and its symbol, after fields
 * such as flags, addr, data_src and weight, or those of the tracepoint. Empty when there is none.
 */
static struct perf_text find_header_frame(struct perf_text t, bool is_tracepoint)
{
        struct perf_text rest = t, word, next;
        uint64_t number;

        for (word = cut_perf_word(&rest); word.n; word = next) {
                const struct perf_text after = rest, frame = { word.at, (size_t)(t.at + t.n - word.at) };

                next = cut_perf_word(&rest);
                if (!parse_perf_number(word, 16, &number) || (next.n && *next.at == '|') ||
                    parse_perf_number(next, 16, &number))
                        continue;
                if (!next.n && word.at != t.at)
                        break;
                if (!is_tracepoint || (word.n >= ADDRESS_DIGITS && perf_script_find_file(after.at, after.n) < after.n))
                        return frame;
        }
        return (struct perf_text){ t.at + t.n, 0 };
}

static enum status add_perf_labels(struct perf_decoder *d, const struct perf_header *h, struct error *err)
{
        struct sample_labels labels = { .count = 0 };
        enum status st = ST_OK;
        char pid[24];

        if (h->comm.n)
                st = sample_labels_set_text(&labels, d->p, "comm", h->comm.at, h->comm.n, err);
        if (!st && h->has_pid)
                st = sample_labels_set_text(&labels, d->p, "pid", pid,
                                            (size_t)snprintf(pid, sizeof pid, "%" PRIu64, h->pid), err);
        if (!st)
                st = profile_add_label_set(d->p, labels.items, labels.count, &d->sample.first_label, err);
        d->sample.label_count = labels.count;
        return st;
}

static enum status open_perf_sample(struct perf_decoder *d, struct perf_header *h, struct error *err)
{
        struct perf_text rest = h->rest, event = cut_perf_word(&rest), frame;
        uint64_t period = 1;
        bool has_period = parse_perf_number(event, 10, &period) && period <= INT64_MAX, is_tracepoint = false;
        enum status st;

        if (has_period) {
                h->rest = rest;
                event = cut_perf_word(&rest);
        }
        if (event.n && event.at[event.n - 1] == ':') {
                h->rest = rest;
                is_tracepoint = strip_event_modifiers(&event);
        } else {
                event.n = 0; /* printed without the field event */
        }
        d->sample = (struct profile_sample){ .value = has_period ? (int64_t)period : 1, .time_unix_ns = h->time_ns };
        d->frame_count = d->depth = d->inlined_count = d->last_line = 0;
        d->kernel_below = d->has_stack = false;
        st = add_event_type(d, event, has_period, err);
        if (!st)
                st = add_perf_labels(d, h, err);
        if (st)
                return st;
        d->open = true;
        frame = find_header_frame(trim_perf_text(h->rest), is_tracepoint);
        st = frame.n ? read_perf_frame(d, frame, err) : ST_OK;
        return st == ST_NOT_FOUND ? ST_OK : st;
}

/* Whether a line is a header without a time: it has PID/TID, or an event, which ends in a colon, after a process. */
static bool lacks_perf_time(struct perf_text line)
{
        struct perf_text word;
        bool has_process = false;
        uint64_t pid;

        for (word = cut_perf_word(&line); word.n; word = cut_perf_word(&line)) {
                if (has_process && word.n > 1 && word.at[word.n - 1] == ':')
                        return true;
                if (parse_perf_pid(word, &pid)) {
                        has_process = true;
                        if (memchr(word.at, '/', word.n))
                                return true;
                }
        }
        return false;
}

static enum status refuse_perf_line(struct perf_text t, struct error *err)
{
        char text[48];

        if (lacks_perf_time(t))
                return error_set(err, ST_BAD_DATA,
                                 "a header without the field time; print it with 'perf script -F +time'");
        snprintf(text, sizeof text, "%.*s", (int)(t.n < sizeof text ? t.n : sizeof text - 1), t.at);
        return error_set(err, ST_BAD_DATA, "neither a header nor a frame: '%s'", PRINTABLE(text));
}

/* Whether a line has the form of a frame: an address and a symbol. */
static bool is_named_frame(struct perf_text t)
{
        uint64_t address;

        return parse_perf_number(cut_perf_word(&t), 16, &address) && trim_perf_text(t).n;
}

/* FILE:LINE of the frame on the line before (field srcline). */
static enum status read_source_line(struct perf_decoder *d, struct perf_text t, struct error *err)
{
        const char *colon = t.n ? memrchr(t.at, ':', t.n) : NULL;
        struct perf_text number;
        struct profile_line *line = NULL;
        uint64_t value;

        if (d->inlined_count)
                line = &d->inlined[d->inlined_count - 1];
        else if (d->last_line)
                line = &d->p->lines.items[d->last_line - 1];
        if (!line || line->file || !colon || colon == t.at || *t.at == '?')
                return ST_OK;
        number = (struct perf_text){ colon + 1, (size_t)(t.at + t.n - colon - 1) };
        if (!parse_perf_number(number, 10, &value) || !value || value > INT32_MAX)
                return ST_OK;
        line->line = (int64_t)value;
        return profile_add_string(d->p, t.at, utf8_truncate(t.at, (size_t)(colon - t.at), LIMIT_PATH_BYTES),
                                  &line->file, err);
}

/*
 * A line below a header: a frame, or other fields of the sample or record. A stack begins with a tab, so that the
 * numbers of fields (phys_addr) after a stack are not taken for frames.
 */
static enum status read_perf_field(struct perf_decoder *d, struct perf_text line, struct error *err)
{
        const bool has_tab = *line.at == '\t';
        enum status st;

        if (!d->open)
                return is_named_frame(trim_perf_text(line)) ? refuse_perf_line(trim_perf_text(line), err) : ST_OK;
        if (has_tab && !d->has_stack) { /* a number on the header's line was not a frame */
                d->has_stack = true;
                d->frame_count = d->depth = d->inlined_count = 0;
                d->kernel_below = false;
        }
        st = d->has_stack && !has_tab ? ST_NOT_FOUND : read_perf_frame(d, trim_perf_text(line), err);
        if (st != ST_NOT_FOUND)
                return st;
        return has_tab ? refuse_perf_line(trim_perf_text(line), err) : read_source_line(d, trim_perf_text(line), err);
}

static enum status read_perf_line(struct perf_decoder *d, struct perf_text line, struct error *err)
{
        struct perf_text t = trim_perf_text(line), rest;
        struct build_id build_id;
        struct perf_header h;
        bool is_header;
        enum status st;

        if (t.n == 0)
                return close_perf_sample(d, err);
        is_header = parse_perf_header(*line.at == '\t' ? line : t, &h);
        if ((t.at[0] == '#' && !(is_header && is_marked_header(&h))) || (!is_header && is_skipped_line(t)))
                return ST_OK;
        if (!is_header) {
                if (d->has_header && perf_is_blank(*line.at))
                        return read_perf_field(d, line, err);
                if (!d->open && parse_build_id_line(t, &build_id, &rest))
                        return add_file_build_id(&d->maps, &build_id, rest, err);
                return refuse_perf_line(t, err);
        }
        d->has_header = true;
        st = close_perf_sample(d, err);
        if (st)
                return st;
        if (h.rest.n > RECORD_PREFIX_SIZE && memcmp(h.rest.at, RECORD_PREFIX, RECORD_PREFIX_SIZE) == 0) {
                rest = h.rest;
                t = cut_perf_word(&rest);
                return t.n >= 16 && memcmp(t.at, "PERF_RECORD_MMAP", 16) == 0 ? add_perf_mmap(&d->maps, rest, err)
                                                                              : ST_OK;
        }
        return open_perf_sample(d, &h, err);
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

static uint32_t count_line_ends(struct perf_text t)
{
        uint32_t count = 0;

        for (size_t i = 0; i < t.n; i++)
                count += t.at[i] == '\n';
        return count;
}

static enum status decode_perf_script(struct perf_decoder *d, const char *at, const char *end, struct error *err)
{
        uint32_t number = 1;
        enum status st = ST_OK;

        while (!st && at < end) {
                const struct perf_text line = cut_perf_line(at, end);

                st = read_perf_line(d, line, err);
                if (st)
                        return error_prefix(err, st, "line %u of perf script output", number);
                number += 1 + count_line_ends(line);
                at = line.at + line.n + (line.at + line.n < end);
        }
        return close_perf_sample(d, err);
}

enum status perf_script_decode_observed(const void *data, size_t n, int64_t end_unix_ns,
                                        const struct perf_script_observer *observer, struct profile *ret,
                                        struct error *err)
{
        _cleanup_free_ struct perf_decoder *d = calloc(1, sizeof *d);
        struct profile p;
        enum status st;

        if (!d)
                return error_no_memory(err);
        st = profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, err);
        if (st)
                return st;
        profile_limit_work(&p, n);
        d->p = d->maps.p = &p;
        d->observer = observer;
        st = n ? decode_perf_script(d, data, (const char *)data + n, err) : ST_OK;
        perf_maps_deinit(&d->maps);
        number_map_deinit(&d->locations);
        p.max_work = 0; /* additions by the caller are not part of the input */
        if (st) {
                profile_deinit(&p);
                return st;
        }
        shift_times(&p, end_unix_ns);
        *ret = p;
        return ST_OK;
}

enum status perf_script_decode(const void *data, size_t n, int64_t end_unix_ns, struct profile *ret, struct error *err)
{
        return perf_script_decode_observed(data, n, end_unix_ns, NULL, ret, err);
}
