/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "common/limits.h"
#include "symbolizer/symbol_reason.h"

#define ASK_MAX 65536 /* addresses at once */

/* One location to resolve; objects are numbered by build-id and path. */
struct wanted_location {
        uint32_t object, location;
        uint64_t address; /* the object's own, once its segments are known */
};

struct filler {
        struct profile_symbols *s;
        struct profile *p;
        struct object_finder *finder;
        struct wanted_location *wanted;
        size_t count;
        size_t next; /* that the next answer is for */
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

static bool has_name(const struct profile *p, const struct profile_location *l)
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

/* The first mapping of each mapping's object stands for it. */
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

/* Locations without a mapping belong to the object that is given by hand. */
static enum status gather(struct filler *f, struct error *err)
{
        _cleanup_free_ uint32_t *objects = NULL;
        enum status st = number_objects(f->p, &objects, err);

        if (st)
                return st;
        f->wanted = calloc(f->p->locations.count + 1u, sizeof *f->wanted);
        f->s->changed = calloc(f->p->locations.count + 1u, sizeof *f->s->changed);
        f->s->reasons = calloc(f->p->locations.count + 1u, sizeof *f->s->reasons);
        if (!f->wanted || !f->s->changed || !f->s->reasons)
                return error_no_memory(err);
        for (uint32_t i = 0; i < f->p->locations.count; i++) {
                const struct profile_location *l = &f->p->locations.items[i];

                if (l->kind == ADDRESS_NONE || (!f->s->force && has_name(f->p, l)))
                        continue;
                f->wanted[f->count++] = (struct wanted_location){
                        .object = l->mapping == PROFILE_NONE ? PROFILE_NONE : objects[l->mapping],
                        .location = i,
                        .address = l->address,
                };
        }
        f->s->asked = f->count;
        return ST_OK;
}

static int compare_wanted(const void *x, const void *y)
{
        const struct wanted_location *a = x, *b = y;

        if (a->object != b->object)
                return a->object < b->object ? -1 : 1;
        if (a->address != b->address)
                return a->address < b->address ? -1 : 1;
        return a->location < b->location ? -1 : a->location > b->location;
}

/* ---- answers ---------------------------------------------------------------------------------- */

static enum status add_text(struct filler *f, const struct answer_text *text, uint32_t *ret)
{
        return profile_add_string(f->p, text->data, text->size, ret, f->err);
}

static void take_answer(void *context, const struct answer *a)
{
        struct filler *f = context;
        const struct wanted_location *w = &f->wanted[f->next++];
        uint32_t first = f->p->lines.count, number;
        size_t count = a->frame_count < LIMIT_LINES_PER_LOCATION ? a->frame_count : LIMIT_LINES_PER_LOCATION;

        if (count == 0 && !symbol_state_parse(a->state, &f->s->reasons[w->location]))
                f->s->reasons[w->location] = SYMBOL_FAILED;
        if (count == 0 && f->s->verbose)
                fprintf(stderr, "cairn symbolize: 0x%" PRIx64 ": %s\n", a->address, a->state);
        for (size_t i = 0; !f->st && i < count; i++) {
                const struct answer_frame *frame = &a->frames[i];
                struct profile_line line = { .line = frame->line };

                f->st = add_text(f, &frame->function, &line.function);
                if (!f->st && strcmp(frame->linkage_name.data, frame->function.data) != 0)
                        f->st = add_text(f, &frame->linkage_name, &line.linkage_name);
                if (!f->st)
                        f->st = add_text(f, &frame->file, &line.file);
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

static void set_reason(struct filler *f, size_t start, size_t end, enum symbol_state reason)
{
        for (size_t i = start; i < end; i++)
                f->s->reasons[f->wanted[i].location] = reason;
}

static void tell(struct filler *f, const struct profile_mapping *m, size_t count, const char *what, const char *next)
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

static void tell_missing(struct filler *f, const struct profile_mapping *m, size_t count)
{
        const char *file = profile_text(f->p, m->file);

        /* "[vdso]", "//anon": nobody can have them */
        if (!m->build_id.size && (*file == '[' || *file == 0 || strncmp(file, "//", 2) == 0))
                return;
        tell(f, m, count, "not found",
             m->build_id.size ? "name its file with -e, a directory that has it with --debug-dir, or a service with --server"
                              : "name its file with -e; without a build-id nothing else finds it");
}

/* Turn file offsets into addresses; those that cannot be go behind the others, as they are, and out of the count. */
static size_t translate(struct filler *f, const struct object_facts *facts, size_t start, size_t end)
{
        size_t kept = start;

        for (size_t i = start; i < end; i++) {
                struct wanted_location w = f->wanted[i];
                const struct profile_location *l = &f->p->locations.items[w.location];
                const struct profile_mapping *m = l->mapping == PROFILE_NONE ? NULL : &f->p->mappings.items[l->mapping];
                struct object_mapping mapping = { 0 };

                if (m)
                        mapping = (struct object_mapping){ m->file_offset, m->size };
                if (l->kind == ADDRESS_OBJECT || object_facts_address(facts, &mapping, l->address, &w.address)) {
                        f->wanted[i] = f->wanted[kept];
                        f->wanted[kept++] = w;
                }
        }
        return kept - start;
}

static enum status ask_object(struct filler *f, const struct answer_source *source, bool offsets, size_t start, size_t end,
                              struct error *err)
{
        enum status (*ask)(void *context, const uint64_t *addresses, size_t count,
                           void (*give)(void *printer, const struct answer *), void *printer, struct error *err) =
                offsets ? source->ask_offsets : source->ask;
        _cleanup_free_ uint64_t *addresses = calloc(ASK_MAX, sizeof *addresses);
        enum status st = ST_OK;

        if (!addresses)
                return error_no_memory(err);
        qsort(f->wanted + start, end - start, sizeof *f->wanted, compare_wanted);
        for (size_t at = start; !st && at < end; at += ASK_MAX) {
                size_t n = end - at < ASK_MAX ? end - at : ASK_MAX;

                for (size_t i = 0; i < n; i++)
                        addresses[i] = f->wanted[at + i].address;
                f->next = at;
                st = ask(source->context, addresses, n, take_answer, f, err);
                if (!st)
                        st = f->st;
        }
        return st;
}

/* Those that nothing here can translate. A service with the debug file alone cannot either. */
static enum status fill_offsets(struct filler *f, const struct answer_source *source, const struct profile_mapping *m,
                                size_t start, size_t end, struct error *err)
{
        uint64_t before = f->s->resolved;
        enum status st = source->ask_offsets ? ask_object(f, source, true, start, end, err) : ST_OK;

        if (!st && f->s->resolved == before)
                tell(f, m, end - start, "file offsets, and the program to translate them is not here",
                     source->ask_offsets ? "upload it, or name it with -e or --debug-dir"
                                         : "name it with -e or --debug-dir");
        return st;
}

static enum status fill_object(struct filler *f, size_t start, size_t end, struct error *err)
{
        static const struct profile_mapping nothing = { 0 };
        uint32_t object = f->wanted[start].object;
        const struct profile_mapping *m = object == PROFILE_NONE ? &nothing : &f->p->mappings.items[object];
        struct found_object found;
        struct error reason;
        size_t count;
        enum status st = object_finder_open(f->finder, &m->build_id, profile_text(f->p, m->file), &found, &reason);

        set_reason(f, start, end,
                   st != ST_NOT_FOUND ? SYMBOL_FAILED : m->build_id.size ? SYMBOL_NO_DEBUGINFO : SYMBOL_NO_BUILD_ID);
        if (st == ST_NOT_FOUND) {
                tell_missing(f, m, end - start);
                return ST_OK;
        }
        if (st == ST_NO_MEMORY || st == ST_USAGE || (st && object_finder_server_failed(f->finder))) {
                *err = reason;
                return st;
        }
        if (st) {
                tell(f, m, end - start, reason.text, "going on without it");
                return ST_OK;
        }
        count = translate(f, &found.facts, start, end);
        st = ask_object(f, &found.source, false, start, start + count, &reason);
        if (!st && count < end - start && found.facts.segment_count == 0)
                st = fill_offsets(f, &found.source, m, start + count, end, &reason);
        if (found.source.is_read_late && !f->st && (st == ST_BAD_DATA || st == ST_UNSUPPORTED || st == ST_TOO_BIG)) {
                tell(f, m, end - start, reason.text, "going on without it");
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
        struct filler f = { .s = s, .p = p, .finder = finder, .err = err };
        enum status st = gather(&f, err);

        if (!st)
                qsort(f.wanted, f.count, sizeof *f.wanted, compare_wanted);
        for (size_t start = 0, end; !st && start < f.count; start = end) {
                for (end = start; end < f.count && f.wanted[end].object == f.wanted[start].object; end++)
                        ;
                if (s->progress)
                        s->progress(start, f.count);
                st = fill_object(&f, start, end, err);
        }
        free(f.wanted);
        return st;
}
