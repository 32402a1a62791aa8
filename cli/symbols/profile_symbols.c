/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locations to resolve are collected with the number of their object and sorted by object and address, so that
 * each object is one range of `pending`; the objects with the most samples come first. resolve_object() opens the
 * object of a range, translates file offsets to addresses, and looks the addresses up in batches of ASK_MAX. Results
 * arrive in the order of the addresses, so `next` tells the location of a result; store_answer() adds its frames to the
 * profile as lines.
 *
 * An object that is missing or unreadable is reported and its locations keep a reason. Lack of memory, wrong usage, a
 * failing server or a failed lookup end the whole resolution; lines that were added before stay.
 *
 * Order: collection, results, objects, resolution with the files of this machine (local_symbols_fill()).
 */
#include "cli/symbols/profile_symbols.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "symbol-index/symbol_state.h"
#include "symbolizer/extraction/debug_file_search.h"

#define ASK_MAX 65536 /* addresses per lookup */

/* A location to resolve; objects are numbered by build-id and path. */
struct pending_location {
        uint32_t object, location;
        uint32_t rank;    /* of the object */
        uint64_t address; /* link-time address, once the segments are known */
};

struct resolution {
        struct profile_symbols *s;
        struct profile *p;
        struct object_finder *finder;
        struct pending_location *pending;
        size_t count;
        size_t next; /* index of the next answer's location */
        enum status st;
        struct error *err;
};

void profile_symbols_deinit(struct profile_symbols *s)
{
        free(s->changed);
        free(s->reasons);
        s->changed = NULL;
        s->reasons = NULL;
}

/* ---- which locations, of which objects ------------------------------------------------------ */

static bool location_has_name(const struct profile *p, const struct profile_location *l)
{
        for (uint32_t i = 0; i < l->line_count; i++)
                if (p->lines.items[l->first_line + i].function)
                        return true;
        return false;
}

static int compare_objects(const struct profile_mapping *a, const struct profile_mapping *b)
{
        if (a->build_id.size != b->build_id.size)
                return a->build_id.size < b->build_id.size ? -1 : 1;
        if (a->build_id.size)
                return memcmp(a->build_id.bytes, b->build_id.bytes, a->build_id.size);
        return a->file < b->file ? -1 : a->file > b->file;
}

struct mapping_number {
        const struct profile_mapping *mapping;
        uint32_t number;
};

static int compare_mappings(const void *x, const void *y)
{
        const struct mapping_number *a = x, *b = y;

        return compare_objects(a->mapping, b->mapping);
}

/* Mappings of one object get the number of the first. */
static enum status number_objects(const struct profile *p, uint32_t **ret, struct error *err)
{
        struct mapping_number *sorted = calloc(p->mappings.count + 1u, sizeof *sorted);
        uint32_t *objects = calloc(p->mappings.count + 1u, sizeof *objects);

        if (!sorted || !objects) {
                free(sorted);
                free(objects);
                return error_no_memory(err);
        }
        for (uint32_t i = 0; i < p->mappings.count; i++)
                sorted[i] = (struct mapping_number){ &p->mappings.items[i], i };
        qsort(sorted, p->mappings.count, sizeof *sorted, compare_mappings);
        for (uint32_t i = 0, first = 0; i < p->mappings.count; i++) {
                if (compare_objects(sorted[first].mapping, sorted[i].mapping) != 0)
                        first = i;
                objects[sorted[i].number] = sorted[first].number;
        }
        free(sorted);
        *ret = objects;
        return ST_OK;
}

struct object_weight {
        uint32_t object;
        double weight; /* values of the samples whose innermost frame is in it */
};

static int compare_weights(const void *x, const void *y)
{
        const struct object_weight *a = x, *b = y;

        if (a->weight != b->weight)
                return a->weight > b->weight ? -1 : 1;
        return a->object < b->object ? -1 : a->object > b->object;
}

/* Ranks by samples: the download of a rare object does not delay the names of the others. */
static enum status rank_objects(const struct profile *p, const uint32_t *objects, uint32_t **ret, struct error *err)
{
        _cleanup_free_ struct object_weight *weights = calloc(p->mappings.count + 1u, sizeof *weights);
        uint32_t *ranks = calloc(p->mappings.count + 1u, sizeof *ranks);

        if (!weights || !ranks) {
                free(ranks);
                return error_no_memory(err);
        }
        for (uint32_t i = 0; i < p->mappings.count; i++)
                weights[i].object = i;
        for (uint32_t i = 0; i < p->samples.count; i++) {
                const struct profile_stack *stack = &p->stacks.items[p->samples.items[i].stack];
                uint32_t mapping = PROFILE_NONE;

                if (stack->location_count)
                        mapping = p->locations.items[p->stack_locations.items[stack->first_location]].mapping;
                if (mapping != PROFILE_NONE)
                        weights[objects[mapping]].weight += (double)p->samples.items[i].value;
        }
        qsort(weights, p->mappings.count, sizeof *weights, compare_weights);
        for (uint32_t i = 0; i < p->mappings.count; i++)
                ranks[weights[i].object] = i;
        *ret = ranks;
        return ST_OK;
}

/* Locations without a mapping belong to the file of -e. */
static enum status collect_unresolved_locations(struct resolution *f, struct error *err)
{
        _cleanup_free_ uint32_t *objects = NULL, *ranks = NULL;
        enum status st = number_objects(f->p, &objects, err);

        if (!st)
                st = rank_objects(f->p, objects, &ranks, err);

        if (st)
                return st;
        f->pending = calloc(f->p->locations.count + 1u, sizeof *f->pending);
        f->s->changed = calloc(f->p->locations.count + 1u, sizeof *f->s->changed);
        f->s->reasons = calloc(f->p->locations.count + 1u, sizeof *f->s->reasons);
        if (!f->pending || !f->s->changed || !f->s->reasons)
                return error_no_memory(err);
        for (uint32_t i = 0; i < f->p->locations.count; i++) {
                const struct profile_location *l = &f->p->locations.items[i];

                if (l->kind == ADDRESS_NONE || (!f->s->force && location_has_name(f->p, l)))
                        continue;
                f->pending[f->count++] = (struct pending_location){
                        .object = l->mapping == PROFILE_NONE ? PROFILE_NONE : objects[l->mapping],
                        .rank = l->mapping == PROFILE_NONE ? PROFILE_NONE : ranks[objects[l->mapping]],
                        .location = i,
                        .address = l->address,
                };
        }
        f->s->asked = f->count;
        return ST_OK;
}

static int compare_pending_locations(const void *x, const void *y)
{
        const struct pending_location *a = x, *b = y;

        if (a->rank != b->rank)
                return a->rank < b->rank ? -1 : 1;
        if (a->address != b->address)
                return a->address < b->address ? -1 : 1;
        return a->location < b->location ? -1 : a->location > b->location;
}

/* ---- answers ---------------------------------------------------------------------------------- */

static enum status add_answer_text(struct resolution *f, const struct answer_text *text, uint32_t *ret)
{
        return profile_add_string(f->p, text->data, text->size, ret, f->err);
}

static void store_answer(void *context, const struct answer *a)
{
        struct resolution *f = context;
        const struct pending_location *w = &f->pending[f->next++];
        uint32_t first = f->p->lines.count, number;
        size_t count = a->frame_count < LIMIT_LINES_PER_LOCATION ? a->frame_count : LIMIT_LINES_PER_LOCATION;

        assert(f->next <= f->count && w->location < f->p->locations.count);
        if (count == 0 && !symbol_state_parse(a->state, &f->s->reasons[w->location]))
                f->s->reasons[w->location] = SYMBOL_FAILED;
        if (count == 0 && f->s->verbose)
                fprintf(stderr, "cairn symbolize: 0x%" PRIx64 ": %s\n", a->address, a->state);
        for (size_t i = 0; !f->st && i < count; i++) {
                const struct answer_frame *frame = &a->frames[i];
                struct profile_line line = { .line = frame->line };

                f->st = add_answer_text(f, &frame->function, &line.function);
                if (!f->st && strcmp(frame->linkage_name.data, frame->function.data) != 0)
                        f->st = add_answer_text(f, &frame->linkage_name, &line.linkage_name);
                if (!f->st)
                        f->st = add_answer_text(f, &frame->file, &line.file);
                if (!f->st)
                        f->st = profile_add_line(f->p, &line, &number, f->err);
        }
        if (f->st || count == 0)
                return;
        f->s->reasons[w->location] = SYMBOL_RESOLVED;
        f->p->locations.items[w->location].first_line = first;
        f->p->locations.items[w->location].line_count = (uint32_t)count;
        f->s->changed[w->location] = true;
        f->s->resolved++;
}

/* ---- object by object ----------------------------------------------------------------------- */

static void set_location_reasons(struct resolution *f, size_t start, size_t end, enum symbol_state reason)
{
        for (size_t i = start; i < end; i++)
                f->s->reasons[f->pending[i].location] = reason;
}

static void report_missing_object(struct resolution *f, const struct profile_mapping *m, size_t count, const char *what,
                                  const char *next)
{
        char hex[BUILD_ID_HEX_MAX] = "";

        f->s->missing_objects++;
        if (f->s->quiet)
                return;
        if (m->build_id.size)
                build_id_hex(&m->build_id, hex);
        fprintf(stderr, "cairn symbolize: %s%s%s%s: %s: %zu address%s; %s\n", PRINTABLE(profile_text(f->p, m->file)),
                *hex ? " (build-id " : "", hex, *hex ? ")" : "", what, count, count == 1 ? "" : "es", next);
}

static void report_object_not_found(struct resolution *f, const struct profile_mapping *m, size_t count)
{
        const char *file = profile_text(f->p, m->file);

        /* "[vdso]", "//anon": not files */
        if (!m->build_id.size && (*file == '[' || *file == 0 || starts_with(file, "//")))
                return;
        if (*file == '/' && faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) && errno != ENOENT && errno != ENOTDIR) {
                char what[80];

                snprintf(what, sizeof what, "cannot be read: %s", strerror(errno));
                report_missing_object(f, m, count, what, "run as a user who may read it, or give a copy with -e");
                return;
        }
        report_missing_object(
                f, m, count, "not found",
                m->build_id.size ? "give its file with -e, its directory with --debug-dir, or a service with --server"
                                 : "give its file with -e; it has no build-id to find it by");
}

/* Translate file offsets to addresses. Untranslatable ones move after the others, unchanged. @return the number of
 * translated ones. */
static size_t translate_offsets(struct resolution *f, const struct object_facts *facts, size_t start, size_t end)
{
        size_t kept = start;

        for (size_t i = start; i < end; i++) {
                struct pending_location w = f->pending[i];
                const struct profile_location *l = &f->p->locations.items[w.location];
                const struct profile_mapping *m = l->mapping == PROFILE_NONE ? NULL : &f->p->mappings.items[l->mapping];
                struct object_mapping mapping = { 0 };

                if (m)
                        mapping = (struct object_mapping){ m->file_offset, m->size };
                if (l->kind == ADDRESS_OBJECT ||
                    object_facts_translate_offset(facts, &mapping, l->address, &w.address)) {
                        f->pending[i] = f->pending[kept];
                        f->pending[kept++] = w;
                }
        }
        assert(start <= kept && kept <= end);
        return kept - start;
}

static enum status resolve_addresses(struct resolution *f, const struct answer_source *source, bool offsets,
                                     size_t start, size_t end, struct error *err)
{
        enum status (*ask)(void *context, const uint64_t *addresses, size_t count,
                           void (*give)(void *printer, const struct answer *), void *printer, struct error *err) =
                offsets ? source->ask_offsets : source->ask;
        _cleanup_free_ uint64_t *addresses = calloc(ASK_MAX, sizeof *addresses);
        enum status st = ST_OK;

        if (!addresses)
                return error_no_memory(err);
        qsort(f->pending + start, end - start, sizeof *f->pending, compare_pending_locations);
        for (size_t at = start; !st && at < end; at += ASK_MAX) {
                size_t n = end - at < ASK_MAX ? end - at : ASK_MAX;

                for (size_t i = 0; i < n; i++)
                        addresses[i] = f->pending[at + i].address;
                f->next = at;
                st = ask(source->context, addresses, n, store_answer, f, err);
                if (!st)
                        st = f->st;
        }
        return st;
}

/* Offsets without a local program. A service with the debug file alone cannot translate them either. */
static enum status resolve_offsets(struct resolution *f, const struct answer_source *source,
                                   const struct profile_mapping *m, size_t start, size_t end, struct error *err)
{
        uint64_t before = f->s->resolved;
        enum status st = source->ask_offsets ? resolve_addresses(f, source, true, start, end, err) : ST_OK;

        if (!st && f->s->resolved == before)
                report_missing_object(f, m, end - start, "file offsets, and no program to translate them",
                                      source->ask_offsets ? "upload it, or give it with -e or --debug-dir"
                                                          : "give it with -e or --debug-dir");
        return st;
}

static enum status resolve_object(struct resolution *f, size_t start, size_t end, struct error *err)
{
        static const struct profile_mapping nothing = { 0 };
        uint32_t object = f->pending[start].object;
        const struct profile_mapping *m = object == PROFILE_NONE ? &nothing : &f->p->mappings.items[object];
        struct found_object found;
        struct error reason;
        size_t count;
        enum status st = object_finder_open(f->finder, &m->build_id, profile_text(f->p, m->file), &found, &reason);

        set_location_reasons(f, start, end,
                             st != ST_NOT_FOUND ? SYMBOL_FAILED
                             : m->build_id.size ? SYMBOL_NO_DEBUGINFO
                                                : SYMBOL_NO_BUILD_ID);
        if (st == ST_NOT_FOUND) {
                report_object_not_found(f, m, end - start);
                return ST_OK;
        }
        if (st == ST_NO_MEMORY || st == ST_USAGE || (st && object_finder_server_failed(f->finder))) {
                *err = reason;
                return st;
        }
        if (st) {
                report_missing_object(f, m, end - start, reason.text, "skipped");
                return ST_OK;
        }
        count = translate_offsets(f, &found.facts, start, end);
        st = resolve_addresses(f, &found.source, false, start, start + count, &reason);
        if (!st && count < end - start && found.facts.segment_count == 0)
                st = resolve_offsets(f, &found.source, m, start + count, end, &reason);
        if (found.source.is_read_late && !f->st && (st == ST_BAD_DATA || st == ST_UNSUPPORTED || st == ST_TOO_BIG)) {
                report_missing_object(f, m, end - start, reason.text, "skipped");
                st = ST_OK;
        } else if (st && !f->st) {
                *err = reason;
        }
        found.source.close(found.source.context);
        return st;
}

enum status profile_symbols_fill(struct profile_symbols *s, struct profile *p, struct object_finder *finder,
                                 struct error *err)
{
        struct resolution f = { .s = s, .p = p, .finder = finder, .err = err };
        enum status st = collect_unresolved_locations(&f, err);

        assert(st || f.s->asked == f.count);
        if (!st)
                qsort(f.pending, f.count, sizeof *f.pending, compare_pending_locations);
        for (size_t start = 0, end; !st && start < f.count; start = end) {
                for (end = start; end < f.count && f.pending[end].object == f.pending[start].object; end++)
                        ;
                if (s->progress)
                        s->progress(start, f.count);
                st = resolve_object(&f, start, end, err);
        }
        free(f.pending);
        return st;
}

/* ---- with the files of this machine ---- */

/* Large programs take seconds the first time. The line is cleared at the end. */
static void show_symbol_progress(size_t done, size_t all)
{
        fprintf(stderr, "\rresolving symbols: %zu%%", 100 * done / all);
}

static void clear_symbol_progress(void)
{
        fputs("\r\033[K", stderr);
}

enum status local_symbols_fill(struct local_symbols *l, struct profile *p, struct error *err)
{
        const struct object_finder_options o = { .debug_files = l->debug_files, .held = l->held };
        struct object_finder *finder = NULL;
        enum status st;

        /* Kernel frames have names; the kernel's debug file adds lines. */
        l->symbols = (struct profile_symbols){ .force = true,
                                               .quiet = true,
                                               .progress = isatty(STDERR_FILENO) ? show_symbol_progress : NULL };
        st = object_finder_create(&o, &finder, err);
        if (!st)
                st = profile_symbols_fill(&l->symbols, p, finder, err);
        if (l->symbols.progress)
                clear_symbol_progress();
        object_finder_destroy(finder);
        return st;
}

void local_symbols_deinit(struct local_symbols *l)
{
        profile_symbols_deinit(&l->symbols);
}
