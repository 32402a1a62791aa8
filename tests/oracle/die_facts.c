/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints information of DIEs about addresses, read only with libdw: evidence for the judge of tests/oracle/compare.py.
 *
 *     die_facts starts FILE              first addresses of functions, one per line
 *     die_facts scopes FILE <addresses   the functions and inlined calls that cover each address
 *
 * The second prints tab-separated records, each once and before it is referred to:
 *     U UNIT STMT_LIST COMP_DIR NAME
 *     D DIE PARENT UNIT KIND LINKAGE NAME CALL_FILE CALL_LINE ORIGIN WRONG_LINKAGE WRONG_NAME RANGES TEXT
 *                                a scope; KIND function or inlined; ORIGIN same, unit, alt or none; WRONG_* the names
 *                                at the same offset of this file if ORIGIN is alt; RANGES indexed (DW_FORM_rnglistx) or
 *                                plain; TEXT alt (one of its names is a string of the supplementary file) or here
 *     A ADDRESS DIE REACHED      the scope covers the address; REACHED is the innermost scope that is reached from the
 *                                unit through DIEs that cover the address
 * Offsets and addresses are hexadecimal; the parent is the enclosing scope, 0 for none.
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

static Dwarf *dwarf;
static uint64_t *queries;
static size_t query_count;

struct names { /* per scope */
        const char *origin, *linkage, *name, *wrong_linkage, *wrong_name;
        bool is_text_alt;
};

struct level {
        Dwarf_Die die;
        Dwarf_Off parent; /* the nearest enclosing scope that is a function or a call, 0 for none */
        bool is_scope, printed;
};

struct unit {
        Dwarf_Die die;
        Dwarf_Files *files;
        size_t file_count;
        const char *directory;
        bool only_starts;
};

static int compare_addresses(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static size_t find_first_query(uint64_t address)
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

static bool is_alt_text(Dwarf_Die *die, unsigned name)
{
        Dwarf_Attribute attr;

        if (!dwarf_attr(die, name, &attr))
                return false;
        return dwarf_whatform(&attr) == DW_FORM_GNU_strp_alt || dwarf_whatform(&attr) == DW_FORM_strp_sup;
}

static const char *get_text(Dwarf_Die *die, unsigned name)
{
        Dwarf_Attribute attr;
        const char *s = dwarf_attr(die, name, &attr) ? dwarf_formstring(&attr) : NULL;

        return s ? s : "";
}

static Dwarf_Word get_number(Dwarf_Die *die, unsigned name)
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
               has_lines ? (uintmax_t)get_number(&u->die, DW_AT_stmt_list) : UINTMAX_MAX, u->directory,
               get_text(&u->die, DW_AT_name));
}

static bool is_alt(unsigned form)
{
        return form == DW_FORM_GNU_ref_alt || form == DW_FORM_ref_sup4 || form == DW_FORM_ref_sup8;
}

static const char *text_at_origin(Dwarf_Die *die, unsigned name)
{
        Dwarf_Attribute attr;
        const char *s = dwarf_formstring(dwarf_attr_integrate(die, name, &attr));

        for (const char *c = s; c && *c; c++)
                if (*c < ' ' || *c > '~')
                        return "";
        return s ? s : "";
}

/*
 * The names that a reader finds if it looks up a reference to the supplementary file in this file, where a DIE need not
 * start at that offset.
 */
static void find_misread(Dwarf_Die *die, struct names *n)
{
        Dwarf_Die wrong;

        if (!dwarf_offdie(dwarf, dwarf_dieoffset(die), &wrong))
                return;
        n->wrong_linkage = text_at_origin(&wrong, DW_AT_linkage_name);
        n->wrong_name = text_at_origin(&wrong, DW_AT_name);
}

/* The location of the DIE's names: in its unit, in another, or in the supplementary file. */
static struct names find_names(Dwarf_Die *die)
{
        struct names n = { .origin = "none", .linkage = "", .name = "", .wrong_linkage = "", .wrong_name = "" };
        Dwarf_Die at = *die, next;

        for (int i = 0; i < ORIGINS_MAX; i++) {
                Dwarf_Attribute attr;

                if (!*n.linkage)
                        n.linkage = get_text(&at, DW_AT_linkage_name);
                if (!*n.linkage)
                        n.linkage = get_text(&at, DW_AT_MIPS_linkage_name);
                if (!*n.name)
                        n.name = get_text(&at, DW_AT_name);
                n.is_text_alt = n.is_text_alt || is_alt_text(&at, DW_AT_linkage_name) || is_alt_text(&at, DW_AT_name);
                if (!dwarf_attr(&at, DW_AT_abstract_origin, &attr) && !dwarf_attr(&at, DW_AT_specification, &attr))
                        break;
                if (!dwarf_formref_die(&attr, &next))
                        break;
                if (is_alt(dwarf_whatform(&attr))) {
                        n.origin = "alt";
                        find_misread(&next, &n);
                } else if (i == 0) {
                        n.origin = next.cu == at.cu ? "same" : "unit";
                }
                at = next;
        }
        return n;
}

static void print_scope(struct unit *u, struct level *levels, int top)
{
        struct level *l = &levels[top];
        struct names n = find_names(&l->die);
        Dwarf_Word file = get_number(&l->die, DW_AT_call_file);
        const char *path = NULL, *kind = "function";
        Dwarf_Attribute ranges;
        bool is_indexed;

        if (dwarf_tag(&l->die) == DW_TAG_inlined_subroutine)
                kind = "inlined";
        if (file < u->file_count && dwarf_hasattr(&l->die, DW_AT_call_file))
                path = dwarf_filesrc(u->files, file, NULL, NULL);
        l->printed = true;
        is_indexed = dwarf_attr(&l->die, DW_AT_ranges, &ranges) && dwarf_whatform(&ranges) == DW_FORM_rnglistx;
        printf("D\t%jx\t%jx\t%jx\t%s\t%s\t%s\t%s\t%ju\t%s\t%s\t%s\t%s\t%s\n", (uintmax_t)dwarf_dieoffset(&l->die),
               (uintmax_t)l->parent, (uintmax_t)dwarf_dieoffset(&u->die), kind, n.linkage, n.name, path ? path : "",
               (uintmax_t)get_number(&l->die, DW_AT_call_line), n.origin, n.wrong_linkage, n.wrong_name,
               is_indexed ? "indexed" : "plain", n.is_text_alt ? "alt" : "here");
}

static Dwarf_Off find_reached_scope(struct level *levels, int top, uint64_t address)
{
        Dwarf_Off last = 0;

        for (int i = 0; i <= top && dwarf_haspc(&levels[i].die, address) > 0; i++)
                if (levels[i].is_scope)
                        last = dwarf_dieoffset(&levels[i].die);
        return last;
}

/* Print the addresses that the innermost level covers. */
static void print_covered(struct unit *u, struct level *levels, int top)
{
        Dwarf_Die *die = &levels[top].die;
        Dwarf_Addr base, start, end;
        ptrdiff_t at = 0;

        while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
                if (u->only_starts && start < end && dwarf_tag(die) == DW_TAG_subprogram)
                        printf("%jx\n", (uintmax_t)start);
                for (size_t q = find_first_query(start); q < query_count && queries[q] < end; q++) {
                        for (int i = 0; i <= top; i++)
                                if (levels[i].is_scope && !levels[i].printed)
                                        print_scope(u, levels, i);
                        printf("A\t%jx\t%jx\t%jx\n", (uintmax_t)queries[q], (uintmax_t)dwarf_dieoffset(die),
                               (uintmax_t)find_reached_scope(levels, top, queries[q]));
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

/* A function has no parent: it ends every chain, wherever its DIE is. */
static void enter_die(struct unit *u, struct level *levels, int top)
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
                print_covered(u, levels, top);
}

static void walk_unit(struct unit *u)
{
        static struct level levels[DEPTH_MAX];
        int top = 0;

        if (dwarf_child(&u->die, &levels[0].die) != 0)
                return;
        for (;;) {
                Dwarf_Die next;

                enter_die(u, levels, top);
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
        qsort(queries, query_count, sizeof *queries, compare_addresses);
}

int main(int argc, char **argv)
{
        bool only_starts = argc == 3 && !strcmp(argv[1], "starts");
        Dwarf_CU *cu = NULL;
        struct unit u = { .only_starts = only_starts };
        Dwarf_Die split;
        uint8_t type;
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
                u.directory = get_text(&u.die, DW_AT_comp_dir);
                if (dwarf_getsrcfiles(&u.die, &u.files, &u.file_count))
                        u.file_count = 0;
                if (!only_starts)
                        print_unit(&u);
                if (type == DW_UT_skeleton && dwarf_tag(&split) == DW_TAG_compile_unit)
                        u.die = split;
                walk_unit(&u);
        }
        dwarf_end(dwarf);
        close(fd);
        return r < 0;
}
