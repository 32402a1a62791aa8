/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Problem: frames are equal when function, file and kind are. Between builds a compiler renames a function (f.cold,
 * f.isra.0, f.llvm.123, a Rust hash, the number of a lambda), its file moves (/build/shop-1.4/src), or it is inlined in
 * one build only. Its cost then disappears in one row and appears in another one.
 *
 * Model: names (pairs of function and file) that have samples on one side only look for their counterpart. A name with
 * samples on both sides is matched already. The normal forms of names are those of symbol-index/comparison_name.h:
 * numbered, and without numbers. Names are united in this order:
 *
 *   1. Equal numbered form and file.
 *   2. Equal file and form without numbers, once with parameters and once without: debuginfo has no linkage name for
 *      some inlined functions. Not if the file has overloads of the name.
 *   3. Equal form without numbers and file. Since the number of a lambda may be that of another one in the next build,
 *      numbers decide only if both sides have the same ones; else all lambdas of the function are one row.
 *   4. Equal form without numbers, and equal last three, two or one components of the path: a moved directory. As 3,
 *      and each side has them in one file.
 *      Then also once with parameters and once without, as 2.
 *   5. Equal form without numbers, and programs or libraries of equal names up to their version: a renamed file, or one
 *      that is known on one side only, as without line tables. Each side has one.
 *
 * 4 and 5 do not unite a name that is matched already, nor if a side has several candidates: it is not known which
 * belong together then, and they stay apart.
 *
 * Invariants: names are replaced only if one of their group has samples on one side only, and together they have both;
 * so two selections of one build with samples of the same functions have the rows that `top` has. Totals do not change.
 * A replacement is its own replacement.
 *
 * Rejected: numbers of lambdas in any case (wrong after one was inserted), start lines (shifted by each edit above),
 * similar names (a renamed function is a guess, which belongs to a proposal and not to a sum).
 *
 * In the file: frames with samples; normal forms; groups; the rules; replacements; locations.
 */
#include "query/engine/function_matching.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/huge_pages.h"
#include "common/text.h"
#include "symbol-index/comparison_name.h"

#define UNCOUNTED_COMPARED_NAMES 1024 /* up to this many, memory is not charged to the budget */

enum { SIDE_BEFORE = 1, SIDE_AFTER = 2, SIDE_BOTH = 3 };

/* A function and file. */
struct compared_name {
        const char *numbered, *plain; /* normal forms; borrowed from the table or the arena. plain: without numbers */
        const char *file, *object;    /* object: the file name of the path of its program or library */
        uint32_t group;               /* index of the name that represents its group */
        uint8_t sides;                /* bits, with samples; of a representative: those of its group */
        uint8_t kinds[2];             /* by side: bits, 1 << enum frame_kind; of a representative: of its group */
        bool is_comparable;
};

struct function_matching {
        struct frame_table *frames;
        struct arena arena;          /* of normal forms */
        struct compared_name *names; /* by name index; owned */
        uint32_t name_count;
        uint32_t frame_count;     /* before replacements were added */
        uint8_t *own_sides;       /* by name: its sides before names were united; owned */
        uint32_t *order;          /* names, sorted by the current rule; owned */
        unsigned path_components; /* compared by rule 4 */
        struct memory_reservation memory;
};

static void function_matching_deinit(struct function_matching *m)
{
        arena_deinit(&m->arena);
        free(m->names);
        free(m->own_sides);
        free(m->order);
        memory_release(&m->memory);
}

/* ---- frames with samples ---- */

void frame_marks_deinit(struct frame_marks *m)
{
        free(m->sides);
        *m = (struct frame_marks){ 0 };
}

static enum status grow_frame_marks(struct frame_marks *m, size_t count, struct error *err)
{
        uint8_t *sides;

        if (count <= m->count)
                return ST_OK;
        sides = realloc(m->sides, count);
        if (!sides)
                return error_no_memory(err);
        memset(sides + m->count, 0, count - m->count);
        m->sides = sides;
        m->count = count;
        return ST_OK;
}

static enum status mark_location_frames(const struct frame_table *frames, const struct location_frames *l,
                                        uint32_t location, uint8_t side, struct frame_marks *marks, struct error *err)
{
        enum status st = work_meter_add(frames->meter, l->end[location] - l->first[location], err);

        for (uint32_t k = l->first[location]; !st && k < l->end[location]; k++)
                marks->sides[l->frames[k]] |= side;
        return st;
}

enum status function_matching_mark(const struct frame_table *frames, const struct merged_profile *p, unsigned side,
                                   struct frame_marks *marks, struct error *err)
{
        _cleanup_free_ uint8_t *is_marked = NULL; /* by location */
        enum status st = grow_frame_marks(marks, frames->count, err);

        if (st || !p->count)
                return st;
        is_marked = calloc_huge(p->stacks->location_count + 1, 1);
        if (!is_marked)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < p->count; i++) {
                const size_t *first = &p->stacks->first[p->entries[i].stack];

                st = work_meter_add(frames->meter, (first[1] - first[0]) / 4 + 1, err);
                for (size_t j = first[0]; !st && j < first[1]; j++) {
                        uint32_t location = p->stacks->indexes[j];

                        if (is_marked[location])
                                continue;
                        is_marked[location] = 1;
                        st = mark_location_frames(frames, &p->locations, location, (uint8_t)(1u << side), marks, err);
                }
        }
        return st;
}

static void set_name_sides(struct function_matching *m, const struct frame_marks *marks)
{
        for (uint32_t i = 0; i < m->frame_count && i < marks->count; i++) {
                const struct query_frame *f = &m->frames->items[i];
                struct compared_name *n = &m->names[f->name];

                n->sides |= marks->sides[i];
                for (unsigned side = 0; side < 2; side++)
                        if (marks->sides[i] & 1u << side)
                                n->kinds[side] |= (uint8_t)(1u << f->kind);
        }
}

/* ---- normal forms ---- */

/* The normal form of a name: `equal` if it is that text, else a copy. */
static enum status copy_normal_form(struct function_matching *m, const struct query_frame *f, const char *equal,
                                    enum comparison_form form, struct buf *scratch, const char **ret, struct error *err)
{
        const char *text = symbol_comparison_name(f->function, f->file, form, scratch);

        if (text == f->function || strcmp(text, equal) == 0) {
                *ret = text == f->function ? text : equal;
                return ST_OK;
        }
        *ret = arena_strndup(&m->arena, text, strlen(text));
        return *ret ? ST_OK : arena_error(&m->arena, err, "the functions");
}

/* Addresses without a name and functions of stripped files ("fn@0x37a0 [xz]") have no name to compare. */
static bool is_frame_comparable(const struct query_frame *f)
{
        return f->kind != FRAME_UNRESOLVED && f->kind != FRAME_LABEL && !starts_with(f->function, "fn@0x");
}

static enum status set_normal_forms(struct function_matching *m, struct error *err)
{
        _cleanup_buf_ struct buf scratch;
        enum status st = ST_OK;

        buf_init(&scratch, LIMIT_NAME_BYTES + 1);
        for (uint32_t i = 0; !st && i < m->name_count; i++) {
                const struct query_frame *f = &m->frames->items[m->frames->name_frames[i]];
                struct compared_name *n = &m->names[i];

                n->group = i;
                n->file = f->file;
                n->object = path_base(f->mapping);
                n->is_comparable = n->sides && is_frame_comparable(f);
                if (!n->is_comparable)
                        continue;
                st = work_meter_add(m->frames->meter, 64, err);
                if (!st)
                        st = copy_normal_form(m, f, f->function, COMPARISON_NUMBERED, &scratch, &n->numbered, err);
                if (!st)
                        st = copy_normal_form(m, f, n->numbered, COMPARISON_WITHOUT_NUMBERS, &scratch, &n->plain, err);
        }
        return st;
}

/* ---- groups ---- */

static struct compared_name *find_group(struct function_matching *m, uint32_t name)
{
        while (m->names[name].group != name) {
                m->names[name].group = m->names[m->names[name].group].group; /* path halving */
                name = m->names[name].group;
        }
        return &m->names[name];
}

static void unite_groups(struct function_matching *m, uint32_t a, uint32_t b)
{
        struct compared_name *x = find_group(m, a), *y = find_group(m, b);

        if (x == y)
                return;
        y->group = x->group;
        x->sides |= y->sides;
        x->kinds[0] |= y->kinds[0];
        x->kinds[1] |= y->kinds[1];
}

/* ---- the rules ---- */

/* The last n components of a path. */
static const char *get_path_end(const char *path, unsigned n)
{
        const char *at = path + strlen(path);

        while (at > path) {
                if (at[-1] == '/' && n-- == 1)
                        break;
                at--;
        }
        return at;
}

/* Compare names of programs and libraries up to the first digit or dot: "libshop.so.1.2" and "libshop.so.2". */
static int compare_object_names(const char *a, const char *b)
{
        size_t n = strcspn(a, "0123456789."), k = strcspn(b, "0123456789.");

        if (n != k)
                return n < k ? -1 : 1;
        return n ? memcmp(a, b, n) : strcmp(a, b);
}

static int compare_numbered_names(const struct function_matching *m, const struct compared_name *a,
                                  const struct compared_name *b)
{
        int c = strcmp(a->numbered, b->numbered);

        (void)m;
        return c ? c : strcmp(a->file, b->file);
}

static int compare_numbered_forms(const void *x, const void *y, void *context)
{
        const struct function_matching *m = context;
        const uint32_t *a = x, *b = y;
        int c = strcmp(m->names[*a].numbered, m->names[*b].numbered);

        return c ? c : *a < *b ? -1 : *a > *b;
}

static int compare_plain_names(const struct function_matching *m, const struct compared_name *a,
                               const struct compared_name *b)
{
        int c = strcmp(a->plain, b->plain);

        (void)m;
        return c ? c : strcmp(a->file, b->file);
}

/* The size of a name without its parameters and what follows them, such as " const"; its whole size if it has none. */
static size_t get_base_size(const char *name)
{
        const char *close = strrchr(name, ')'), *at = close;
        size_t depth = 0;

        if (!close || strchr(close, ':'))
                return strlen(name);
        for (; at > name; at--) {
                depth += *at == ')';
                if (*at == '(' && --depth == 0)
                        break;
        }
        if (at == name || (at - name >= 8 && memcmp(at - 8, "operator", 8) == 0 && at + 1 == close))
                return strlen(name);
        return (size_t)(at - name);
}

static int compare_base_names(const struct function_matching *m, const struct compared_name *a,
                              const struct compared_name *b)
{
        size_t n = get_base_size(a->plain), k = get_base_size(b->plain);
        int c = memcmp(a->plain, b->plain, n < k ? n : k);

        (void)m;
        if (c || n != k)
                return c ? c : n < k ? -1 : 1;
        return strcmp(a->file, b->file);
}

static int compare_path_ends(const struct function_matching *m, const struct compared_name *a,
                             const struct compared_name *b)
{
        int c = strcmp(a->plain, b->plain);

        return c ? c : strcmp(get_path_end(a->file, m->path_components), get_path_end(b->file, m->path_components));
}

static int compare_base_path_ends(const struct function_matching *m, const struct compared_name *a,
                                  const struct compared_name *b)
{
        size_t n = get_base_size(a->plain), k = get_base_size(b->plain);
        int c = memcmp(a->plain, b->plain, n < k ? n : k);

        if (c || n != k)
                return c ? c : n < k ? -1 : 1;
        return strcmp(get_path_end(a->file, m->path_components), get_path_end(b->file, m->path_components));
}

static int compare_plain_objects(const struct function_matching *m, const struct compared_name *a,
                                 const struct compared_name *b)
{
        int c = strcmp(a->plain, b->plain);

        (void)m;
        return c ? c : compare_object_names(a->object, b->object);
}

/* One rule: names that compare as equal are a run, in which `unite` chooses. */
struct matching_rule {
        struct function_matching *m;
        int (*compare)(const struct function_matching *m, const struct compared_name *a, const struct compared_name *b);
        void (*unite)(struct function_matching *m, uint32_t *names, size_t count); /* may change their order */
};

static int compare_by_rule(const void *x, const void *y, void *context)
{
        const struct matching_rule *rule = context;
        const uint32_t *a = x, *b = y;
        int c = rule->compare(rule->m, &rule->m->names[*a], &rule->m->names[*b]);

        return c ? c : *a < *b ? -1 : *a > *b;
}

/* Unite all, unless all are matched. */
static void unite_equal_names(struct function_matching *m, uint32_t *names, size_t count)
{
        uint8_t common = SIDE_BOTH;

        for (size_t i = 0; i < count; i++)
                common &= find_group(m, names[i])->sides;
        for (size_t i = 1; common != SIDE_BOTH && i < count; i++)
                unite_groups(m, names[0], names[i]);
}

/* The same for names with different numbers; those of one side stay apart. */
static void unite_numbers(struct function_matching *m, uint32_t *names, size_t count)
{
        uint8_t all = 0;

        for (size_t i = 0; i < count; i++)
                all |= find_group(m, names[i])->sides;
        if (all == SIDE_BOTH)
                unite_equal_names(m, names, count);
}

/* Whether no name is matched, and each side has names in exactly one file. */
static bool has_one_file_per_side(struct function_matching *m, const uint32_t *names, size_t count)
{
        const char *files[SIDE_BOTH] = { NULL };

        for (size_t i = 0; i < count; i++) {
                const struct compared_name *n = &m->names[names[i]];
                uint8_t sides = find_group(m, names[i])->sides;

                if (sides == SIDE_BOTH || (files[sides] && strcmp(files[sides], n->file) != 0))
                        return false;
                files[sides] = n->file;
        }
        return files[SIDE_BEFORE] && files[SIDE_AFTER];
}

/* Unite by the numbered form if both sides have the same ones, else all; only if each side has them in one file. */
static void unite_moved_names(struct function_matching *m, uint32_t *names, size_t count)
{
        bool is_same = true;

        if (!has_one_file_per_side(m, names, count))
                return;
        qsort_r(names, count, sizeof *names, compare_numbered_forms, m);
        for (size_t i = 0, end; i < count; i = end) {
                uint8_t sides = 0;

                for (end = i; end < count && strcmp(m->names[names[i]].numbered, m->names[names[end]].numbered) == 0;
                     end++)
                        sides |= find_group(m, names[end])->sides;
                is_same = is_same && sides == SIDE_BOTH;
        }
        for (size_t i = 1; i < count; i++)
                if (!is_same || strcmp(m->names[names[i]].numbered, m->names[names[i - 1]].numbered) == 0)
                        unite_groups(m, names[i - 1], names[i]);
}

/* Unite all, if some have no parameters and the others have the same ones. */
static void unite_moved_parameters(struct function_matching *m, uint32_t *names, size_t count)
{
        const char *full = NULL;
        bool has_bare = false;

        if (!has_one_file_per_side(m, names, count))
                return;
        for (size_t i = 0; i < count; i++) {
                const char *plain = m->names[names[i]].plain;
                bool is_bare = !plain[get_base_size(plain)];

                if (!is_bare && full && strcmp(full, plain) != 0)
                        return;
                full = is_bare ? full : plain;
                has_bare = has_bare || is_bare;
        }
        for (size_t i = 1; has_bare && full && i < count; i++)
                unite_groups(m, names[0], names[i]);
}

/* Unite the name without parameters and the one with, if no other has parameters. */
static void unite_parameters(struct function_matching *m, uint32_t *names, size_t count)
{
        const struct compared_name *bare = NULL, *full = NULL;

        for (size_t i = 0; i < count; i++) {
                const struct compared_name *g = find_group(m, names[i]), **found;

                found = m->names[names[i]].plain[get_base_size(m->names[names[i]].plain)] ? &full : &bare;
                if (*found && *found != g)
                        return;
                *found = g;
        }
        if (bare && full && (bare->sides & full->sides) != SIDE_BOTH)
                unite_groups(m, full->group, bare->group);
}

/* Unite a group before and one after, if they are the only ones. */
static void unite_single_pair(struct function_matching *m, uint32_t *names, size_t count)
{
        uint32_t found[SIDE_BOTH] = { 0 }; /* by side bits: a representative */
        bool has[SIDE_BOTH] = { false };

        for (size_t i = 0; i < count; i++) {
                const struct compared_name *g = find_group(m, names[i]);

                if (g->sides == SIDE_BOTH || (has[g->sides] && found[g->sides] != g->group))
                        return;
                has[g->sides] = true;
                found[g->sides] = g->group;
        }
        if (has[SIDE_BEFORE] && has[SIDE_AFTER])
                unite_groups(m, found[SIDE_AFTER], found[SIDE_BEFORE]);
}

/* @param needs_file  leave out names without a file. */
static enum status apply_rule(const struct matching_rule *rule, bool needs_file, struct error *err)
{
        struct function_matching *m = rule->m;
        size_t count = 0, first = 0;
        enum status st;

        for (uint32_t i = 0; i < m->name_count; i++)
                if (m->names[i].is_comparable && (!needs_file || *m->names[i].file))
                        m->order[count++] = i;
        st = work_meter_sort(m->frames->meter, m->order, count, sizeof *m->order, compare_by_rule, (void *)rule, err);
        for (size_t i = 1; !st && i <= count; i++) {
                if (i < count && rule->compare(m, &m->names[m->order[first]], &m->names[m->order[i]]) == 0)
                        continue;
                if (i - first > 1)
                        rule->unite(m, m->order + first, i - first);
                first = i;
        }
        return st;
}

static bool has_name_of_one_side(struct function_matching *m)
{
        uint8_t sides = 0;

        for (uint32_t i = 0; i < m->name_count; i++)
                if (m->names[i].is_comparable && find_group(m, i)->sides != SIDE_BOTH)
                        sides |= find_group(m, i)->sides;
        return sides == SIDE_BOTH;
}

#define PATH_COMPONENTS_MAX 3

static enum status unite_names(struct function_matching *m, struct error *err)
{
        const struct matching_rule numbered = { m, compare_numbered_names, unite_equal_names },
                                   parameters = { m, compare_base_names, unite_parameters },
                                   plain = { m, compare_plain_names, unite_numbers },
                                   moved = { m, compare_path_ends, unite_moved_names },
                                   moved_parameters = { m, compare_base_path_ends, unite_moved_parameters },
                                   renamed = { m, compare_plain_objects, unite_single_pair };
        enum status st = apply_rule(&numbered, false, err);

        if (!st)
                st = apply_rule(&parameters, true, err);
        if (!st)
                st = apply_rule(&plain, false, err);
        for (m->path_components = PATH_COMPONENTS_MAX; !st && m->path_components && has_name_of_one_side(m);
             m->path_components--) {
                st = apply_rule(&moved, true, err);
                if (!st)
                        st = apply_rule(&moved_parameters, true, err);
        }
        return st || !has_name_of_one_side(m) ? st : apply_rule(&renamed, false, err);
}

/* ---- replacements ---- */

/* Whether `a` names its group better: as the normal form has it, then as the side after has it. */
static bool names_group_better(const struct function_matching *m, uint32_t a, uint32_t b)
{
        const struct compared_name *x = &m->names[a], *y = &m->names[b];
        bool is_x_plain = x->numbered == m->frames->items[m->frames->name_frames[a]].function,
             is_y_plain = y->numbered == m->frames->items[m->frames->name_frames[b]].function;

        if (is_x_plain != is_y_plain)
                return is_x_plain;
        if (!*x->file != !*y->file)
                return *x->file;
        return a < b;
}

/* What is shown of a group. */
struct group_frame {
        uint32_t best[2];     /* by side: the name that is shown, plus one; 0: none */
        const char *numbered; /* NULL: the names of the group differ in numbers */
        uint32_t count;       /* of names */
};

static void add_group_name(const struct function_matching *m, struct group_frame *g, uint32_t name, uint8_t sides)
{
        const struct compared_name *n = &m->names[name];

        for (unsigned side = 0; side < 2; side++)
                if (sides & 1u << side && (!g->best[side] || names_group_better(m, name, g->best[side] - 1)))
                        g->best[side] = name + 1;
        g->numbered = !g->count || (g->numbered && strcmp(g->numbered, n->numbered) == 0) ? n->numbered : NULL;
        g->count++;
}

/* Make the frame that replaces those of a group: of the side after, with the names' normal form if they differ. */
static struct query_frame make_group_frame(const struct function_matching *m, const struct group_frame *g)
{
        uint32_t name = (g->best[1] ? g->best[1] : g->best[0]) - 1;
        struct query_frame f = m->frames->items[m->frames->name_frames[name]];
        const char *shown = g->numbered ? g->numbered : m->names[name].plain;

        if (!*f.file && g->best[0])
                f.file = m->names[g->best[0] - 1].file;
        if (g->count > 1 && strcmp(f.function, shown) != 0) {
                f.function = shown;
                f.linkage_name = "";
        }
        return f;
}

/* The kind of a replacement: that of the frame, unless the function is inlined on one side only. */
static enum frame_kind choose_group_kind(const struct compared_name *group, enum frame_kind kind)
{
        uint8_t after = group->kinds[1];

        if (group->kinds[0] == after || kind == FRAME_KERNEL)
                return kind;
        return after & 1u << FRAME_NATIVE || !(after & 1u << FRAME_INLINED) ? FRAME_NATIVE : FRAME_INLINED;
}

static enum status replace_frame(struct function_matching *m, const struct group_frame *groups, uint32_t frame,
                                 uint32_t *replaced_by, struct error *err)
{
        const uint32_t name = m->frames->items[frame].name;
        const struct compared_name *group = find_group(m, name);
        const struct group_frame *g = &groups[group->group];
        struct query_frame f;
        struct number_key key;

        replaced_by[frame] = frame;
        if (!m->names[name].is_comparable || group->sides != SIDE_BOTH ||
            (g->count == 1 && group->kinds[0] == group->kinds[1]))
                return ST_OK;
        f = make_group_frame(m, g);
        f.kind = choose_group_kind(group, m->frames->items[frame].kind);
        key = make_frame_key(f.function, f.file);
        return frame_table_find_or_add(m->frames, &f, &key, &replaced_by[frame], err);
}

static enum status replace_frames(struct function_matching *m, struct error *err)
{
        _cleanup_free_ struct group_frame *groups = calloc_huge(m->name_count + (size_t)1, sizeof *groups);
        uint32_t *replaced_by = calloc_huge(m->frame_count + (size_t)1, sizeof *replaced_by);
        enum status st = groups && replaced_by ? ST_OK : error_no_memory(err);

        for (uint32_t i = 0; !st && i < m->name_count; i++)
                if (m->names[i].is_comparable)
                        add_group_name(m, &groups[find_group(m, i)->group], i, m->own_sides[i]);
        for (uint32_t i = 0; !st && i < m->frame_count; i++)
                st = replace_frame(m, groups, i, replaced_by, err);
        if (!st)
                st = frame_table_set_short_names(m->frames, m->frame_count, err);
        if (st) {
                free(replaced_by);
                return st;
        }
        m->frames->replaced_by = replaced_by;
        m->frames->replaced_count = m->frame_count;
        return ST_OK;
}

/* ---- locations ---- */

static enum status rewrite_side(const struct frame_table *frames, struct merged_profile *p, struct error *err)
{
        struct location_frames *l = &p->locations;
        enum status st = ST_OK;

        for (size_t i = 0; !st && p->count && i < p->stacks->location_count; i++) {
                st = work_meter_add(frames->meter, l->end[i] - l->first[i], err);
                for (uint32_t k = l->first[i]; !st && k < l->end[i]; k++) /* locations may share frames */
                        l->frames[k] = frame_table_get_replacement(frames, l->frames[k]);
        }
        return st;
}

/* ---- both sides ---- */

static enum status function_matching_init(struct function_matching *m, struct frame_table *frames, struct error *err)
{
        const size_t names = frames->name_count;
        enum status st = ST_OK;

        *m = (struct function_matching){ .frames = frames,
                                         .name_count = frames->name_count,
                                         .frame_count = frames->count,
                                         .memory.use = MEMORY_QUERIES };
        arena_init_budget(&m->arena, LIMIT_PROFILE_MEMORY_BYTES, MEMORY_QUERIES);
        if (names > UNCOUNTED_COMPARED_NAMES)
                st = memory_reserve(&m->memory,
                                    names * (sizeof *m->names + sizeof(struct group_frame) + sizeof *m->order + 1) +
                                            frames->count * sizeof *frames->replaced_by,
                                    err);
        if (st)
                return st;
        m->names = calloc_huge(names + 1, sizeof *m->names);
        m->order = calloc_huge(names + 1, sizeof *m->order);
        m->own_sides = calloc_huge(names + 1, 1);
        return m->names && m->order && m->own_sides ? ST_OK : error_no_memory(err);
}

enum status function_matching_match(struct frame_table *frames, const struct frame_marks *marks, struct error *err)
{
        _cleanup_(function_matching_deinit) struct function_matching m;
        enum status st = function_matching_init(&m, frames, err);

        assert(!frames->replaced_by);
        if (st)
                return st;
        set_name_sides(&m, marks);
        st = set_normal_forms(&m, err);
        for (uint32_t i = 0; i < m.name_count; i++)
                m.own_sides[i] = m.names[i].sides;
        if (!st)
                st = unite_names(&m, err);
        return st ? st : replace_frames(&m, err);
}

enum status function_matching_apply(struct frame_table *frames, struct merged_profile sides[2], struct error *err)
{
        _cleanup_frame_marks_ struct frame_marks marks = { 0 };
        enum status st = ST_OK;

        for (unsigned side = 0; !st && side < 2; side++)
                st = function_matching_mark(frames, &sides[side], side, &marks, err);
        if (!st)
                st = function_matching_match(frames, &marks, err);
        for (unsigned side = 0; !st && side < 2; side++)
                st = rewrite_side(frames, &sides[side], err);
        return st;
}
