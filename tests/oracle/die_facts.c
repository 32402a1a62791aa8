/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the DIEs of a file say about addresses, through libdw and nothing of ours: the judge's half of
 * tests/oracle/compare.py.
 *
 *     die_facts starts FILE              first addresses of functions, one per line
 *     die_facts scopes FILE <addresses   the functions and inlined calls that cover each address
 *
 * The second prints, separated by tabs, each once and before it is referred to:
 *     U UNIT STMT_LIST COMP_DIR NAME
 *     D DIE PARENT UNIT KIND LINKAGE NAME CALL_FILE CALL_LINE ORIGIN   of a scope; KIND function, nested (a function
 *                                  inside of another's DIE) or inlined; ORIGIN same, unit, alt or none
 *     A ADDRESS DIE                                                    the scope covers the address
 * Offsets and addresses are hexadecimal; the parent is the scope around, 0 for none.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 256
#define ORIGINS_MAX 16

static uint64_t *queries;
static size_t query_count;

struct level {
        Dwarf_Die die;
        Dwarf_Off parent; /* the nearest scope above that is a function or a call, 0 without one */
        bool is_scope, printed;
};

struct unit {
        Dwarf_Die die;
        Dwarf_Files *files;
        size_t file_count;
        const char *directory;
        bool only_starts;
};

static int by_value(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static size_t first_query_from(uint64_t address)
{
        size_t low = 0, high = query_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (queries[middle] < address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static const char *text(Dwarf_Die *die, unsigned name)
{
        Dwarf_Attribute attr;
        const char *s = dwarf_attr(die, name, &attr) ? dwarf_formstring(&attr) : NULL;

        return s ? s : "";
}

static Dwarf_Word number(Dwarf_Die *die, unsigned name)
{
        Dwarf_Attribute attr;
        Dwarf_Word value;

        return dwarf_attr(die, name, &attr) && dwarf_formudata(&attr, &value) == 0 ? value : 0;
}

static void print_unit(struct unit *u)
{
        Dwarf_Attribute attr;
        bool has_lines = dwarf_attr(&u->die, DW_AT_stmt_list, &attr) != NULL;

        printf("U\t%jx\t%jx\t%s\t%s\n", (uintmax_t)dwarf_dieoffset(&u->die),
               has_lines ? (uintmax_t)number(&u->die, DW_AT_stmt_list) : UINTMAX_MAX, u->directory,
               text(&u->die, DW_AT_name));
}

/* Where the DIE's names are: in its unit, in another, or in the supplementary file. */
static const char *find_names(Dwarf_Die *die, const char **linkage_ret, const char **name_ret)
{
        const char *where = "none";
        Dwarf_Die at = *die, next;

        *linkage_ret = *name_ret = "";
        for (int i = 0; i < ORIGINS_MAX; i++) {
                Dwarf_Attribute attr;

                if (!**linkage_ret)
                        *linkage_ret = text(&at, DW_AT_linkage_name);
                if (!**linkage_ret)
                        *linkage_ret = text(&at, DW_AT_MIPS_linkage_name);
                if (!**name_ret)
                        *name_ret = text(&at, DW_AT_name);
                if (!dwarf_attr(&at, DW_AT_abstract_origin, &attr) && !dwarf_attr(&at, DW_AT_specification, &attr))
                        break;
                if (!dwarf_formref_die(&attr, &next))
                        break;
                if (i == 0) {
                        unsigned form = dwarf_whatform(&attr);

                        where = form == DW_FORM_GNU_ref_alt || form == DW_FORM_ref_sup4 || form == DW_FORM_ref_sup8 ?
                                "alt" : next.cu == at.cu ? "same" : "unit";
                }
                at = next;
        }
        return where;
}

static void print_scope(struct unit *u, struct level *levels, int top)
{
        struct level *l = &levels[top];
        const char *linkage, *name, *origin = find_names(&l->die, &linkage, &name);
        Dwarf_Word file = number(&l->die, DW_AT_call_file);
        const char *path = NULL, *kind = "function";

        if (dwarf_tag(&l->die) == DW_TAG_inlined_subroutine)
                kind = "inlined";
        for (int i = 0; i < top && kind[0] == 'f'; i++)
                if (levels[i].is_scope)
                        kind = "nested";
        if (file < u->file_count && dwarf_hasattr(&l->die, DW_AT_call_file))
                path = dwarf_filesrc(u->files, file, NULL, NULL);
        l->printed = true;
        printf("D\t%jx\t%jx\t%jx\t%s\t%s\t%s\t%s\t%ju\t%s\n", (uintmax_t)dwarf_dieoffset(&l->die), (uintmax_t)l->parent,
               (uintmax_t)dwarf_dieoffset(&u->die),
               kind, linkage, name, path ? path : "",
               (uintmax_t)number(&l->die, DW_AT_call_line), origin);
}

/* Print which addresses the innermost of the levels covers. */
static void cover(struct unit *u, struct level *levels, int top)
{
        Dwarf_Die *die = &levels[top].die;
        Dwarf_Addr base, start, end;
        ptrdiff_t at = 0;

        while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
                if (u->only_starts && start < end && dwarf_tag(die) == DW_TAG_subprogram)
                        printf("%jx\n", (uintmax_t)start);
                for (size_t q = first_query_from(start); q < query_count && queries[q] < end; q++) {
                        for (int i = 0; i <= top; i++)
                                if (levels[i].is_scope && !levels[i].printed)
                                        print_scope(u, levels, i);
                        printf("A\t%jx\t%jx\n", (uintmax_t)queries[q], (uintmax_t)dwarf_dieoffset(die));
                }
        }
}

static bool may_hold_code(Dwarf_Die *die)
{
        switch (dwarf_tag(die)) {
        case DW_TAG_subprogram:
        case DW_TAG_inlined_subroutine:
        case DW_TAG_lexical_block:
        case DW_TAG_namespace:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_interface_type:
        case DW_TAG_module:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
        case DW_TAG_with_stmt:
                return true;
        default:
                return false;
        }
}

/* A function's parent is none: it is the end of every chain, wherever it stands. */
static void enter(struct unit *u, struct level *levels, int top)
{
        struct level *l = &levels[top];
        unsigned tag = dwarf_tag(&l->die);

        l->is_scope = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
        l->printed = false;
        l->parent = 0;
        for (int i = top - 1; i >= 0 && tag == DW_TAG_inlined_subroutine && !l->parent; i--)
                if (levels[i].is_scope)
                        l->parent = dwarf_dieoffset(&levels[i].die);
        if (l->is_scope)
                cover(u, levels, top);
}

static void walk(struct unit *u)
{
        static struct level levels[DEPTH_MAX];
        int top = 0;

        if (dwarf_child(&u->die, &levels[0].die) != 0)
                return;
        for (;;) {
                Dwarf_Die next;

                enter(u, levels, top);
                if (may_hold_code(&levels[top].die) && top + 1 < DEPTH_MAX &&
                    dwarf_child(&levels[top].die, &next) == 0) {
                        levels[++top].die = next;
                        continue;
                }
                while (dwarf_siblingof(&levels[top].die, &next) != 0)
                        if (top-- == 0)
                                return;
                levels[top].die = next;
        }
}

static void read_queries(void)
{
        size_t capacity = 0;
        char line[64];

        while (fgets(line, sizeof line, stdin)) {
                if (query_count == capacity) {
                        capacity = capacity ? 2 * capacity : 4096;
                        queries = reallocarray(queries, capacity, sizeof *queries);
                        if (!queries)
                                abort();
                }
                queries[query_count++] = strtoull(line, NULL, 16);
        }
        qsort(queries, query_count, sizeof *queries, by_value);
}

int main(int argc, char **argv)
{
        bool only_starts = argc == 3 && !strcmp(argv[1], "starts");
        Dwarf_CU *cu = NULL;
        struct unit u = { .only_starts = only_starts };
        Dwarf_Die split;
        uint8_t type;
        Dwarf *dwarf;
        int fd, r;

        if (argc != 3 || (!only_starts && strcmp(argv[1], "scopes") != 0)) {
                fprintf(stderr, "usage: die_facts starts|scopes FILE\n");
                return 64;
        }
        fd = open(argv[2], O_RDONLY | O_CLOEXEC);
        dwarf = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
        if (!dwarf) {
                fprintf(stderr, "die_facts: cannot read '%s': %s\n", argv[2], dwarf_errmsg(-1));
                return 1;
        }
        if (!only_starts)
                read_queries();
        while ((r = dwarf_get_units(dwarf, cu, &cu, NULL, &type, &u.die, &split)) == 0) {
                if (type == DW_UT_type || dwarf_tag(&u.die) == DW_TAG_partial_unit)
                        continue;
                u.directory = text(&u.die, DW_AT_comp_dir);
                if (dwarf_getsrcfiles(&u.die, &u.files, &u.file_count))
                        u.file_count = 0;
                if (!only_starts)
                        print_unit(&u);
                if (type == DW_UT_skeleton && dwarf_tag(&split) == DW_TAG_compile_unit)
                        u.die = split;
                walk(&u);
        }
        dwarf_end(dwarf);
        close(fd);
        return r < 0;
}
