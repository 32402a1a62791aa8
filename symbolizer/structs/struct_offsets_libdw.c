/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's side of struct_offsets.h. libdw gets the files in memory. A file of DWARF has each structure many times,
 * once for each unit that includes its header: the units are searched until every field has an answer.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "symbolizer/structs/struct_offsets.h"

#define DEPTH_MAX 32 /* of typedefs, and of nested structures */

struct dwarf_input {
        void *bytes;
        size_t size;
        Elf *elf;
        Dwarf *dwarf;
};

static void close_dwarf_input(struct dwarf_input *f)
{
        dwarf_end(f->dwarf);
        elf_end(f->elf);
        if (f->bytes)
                munmap(f->bytes, f->size);
}

/* A private mapping: libelf overwrites the headers of compressed sections. */
static enum status open_dwarf_input(int fd, struct dwarf_input *ret, struct error *err)
{
        struct stat s;

        if (fstat(fd, &s) < 0)
                return error_os(err, errno, "cannot read the debug file");
        if (s.st_size <= 0 || (uint64_t)s.st_size > LIMIT_OBJECT_BYTES)
                return error_set(err, ST_TOO_BIG, "the debug file is empty or larger than an object may be");
        ret->size = (size_t)s.st_size;
        ret->bytes = mmap(NULL, ret->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (ret->bytes == MAP_FAILED) {
                ret->bytes = NULL;
                return error_os(err, errno, "cannot map the debug file");
        }
        ret->elf = elf_memory(ret->bytes, ret->size);
        ret->dwarf = ret->elf ? dwarf_begin_elf(ret->elf, DWARF_C_READ, NULL) : NULL;
        return ret->dwarf ? ST_OK : error_set(err, ST_BAD_DATA, "the file has no DWARF");
}

/* ---- one structure ---- */

static bool is_structure(Dwarf_Die *die)
{
        int tag = dwarf_tag(die);

        return tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_class_type;
}

/* The structure that a member or typedef has as its type. */
static bool get_structure_type(Dwarf_Die *die, Dwarf_Die *ret)
{
        Dwarf_Die type = *die;

        for (int i = 0; i < DEPTH_MAX; i++) {
                Dwarf_Attribute a;
                Dwarf_Die next;

                if (!dwarf_attr_integrate(&type, DW_AT_type, &a) || !dwarf_formref_die(&a, &next))
                        return false;
                type = next;
                if (is_structure(&type)) {
                        *ret = type;
                        return true;
                }
                switch (dwarf_tag(&type)) {
                case DW_TAG_typedef:
                case DW_TAG_const_type:
                case DW_TAG_volatile_type:
                        break;
                default:
                        return false;
                }
        }
        return false;
}

static uint64_t get_type_size(Dwarf_Die *member)
{
        Dwarf_Attribute a;
        Dwarf_Die type;
        Dwarf_Word size;

        return dwarf_formref_die(dwarf_attr_integrate(member, DW_AT_type, &a), &type) &&
                               dwarf_aggregate_size(&type, &size) == 0
                       ? size
                       : 0;
}

static bool get_member_offset(Dwarf_Die *member, bool in_union, uint64_t *ret)
{
        Dwarf_Attribute a;
        Dwarf_Word v = 0;

        if (dwarf_hasattr(member, DW_AT_bit_size) || dwarf_hasattr(member, DW_AT_data_bit_offset))
                return false;
        if (dwarf_attr(member, DW_AT_data_member_location, &a) ? dwarf_formudata(&a, &v) != 0 : !in_union)
                return false;
        *ret = v;
        return true;
}

static bool is_named(Dwarf_Die *die, const char *name, size_t n)
{
        const char *text = dwarf_diename(die);

        return text && strlen(text) == n && memcmp(text, name, n) == 0;
}

static void find_field(Dwarf_Die *structure, const char *path, uint64_t base, int depth, struct struct_offset *ret);

/* A member, which is the field, or around it. */
static void find_field_in_member(Dwarf_Die *member, bool in_union, const char *path, uint64_t base, int depth,
                                 struct struct_offset *ret)
{
        const size_t n = strcspn(path, ".");
        const bool is_unnamed = !dwarf_diename(member);
        Dwarf_Die type;
        uint64_t offset;

        if (!is_unnamed && !is_named(member, path, n))
                return;
        if (!get_member_offset(member, in_union, &offset)) {
                if (!is_unnamed)
                        ret->state = STRUCT_OFFSET_BIT_FIELD;
                return;
        }
        if (!is_unnamed && !path[n])
                *ret = (struct struct_offset){ base + offset, get_type_size(member), STRUCT_OFFSET_FOUND };
        else if (get_structure_type(member, &type))
                find_field(&type, is_unnamed ? path : path + n + 1, base + offset, depth + 1, ret);
}

/* Set *ret when the field is found; else its state stays. */
static void find_field(Dwarf_Die *structure, const char *path, uint64_t base, int depth, struct struct_offset *ret)
{
        bool in_union = dwarf_tag(structure) == DW_TAG_union_type;
        Dwarf_Die member;

        if (depth > DEPTH_MAX || dwarf_child(structure, &member) != 0)
                return;
        do {
                if (dwarf_tag(&member) == DW_TAG_member)
                        find_field_in_member(&member, in_union, path, base, depth, ret);
        } while (ret->state == STRUCT_OFFSET_NO_FIELD && dwarf_siblingof(&member, &member) == 0);
}

/* ---- all structures ---- */

struct field_question {
        const char *text; /* "STRUCT.FIELD" */
        size_t structure; /* bytes of the first part */
        struct struct_offset answer;
};

struct field_questions {
        struct field_question items[STRUCT_FIELDS_MAX];
        size_t count, open; /* open: without a structure */
};

static void answer_field(struct field_question *q, Dwarf_Die *structure)
{
        if (!q->text[q->structure]) {
                Dwarf_Word size = 0;

                (void)!dwarf_aggregate_size(structure, &size);
                q->answer = (struct struct_offset){ 0, size, STRUCT_OFFSET_FOUND };
                return;
        }
        q->answer.state = STRUCT_OFFSET_NO_FIELD;
        find_field(structure, q->text + q->structure + 1, 0, 0, &q->answer);
}

static void examine_type(struct field_questions *all, Dwarf_Die *die)
{
        Dwarf_Die structure = *die;
        bool is_typedef = dwarf_tag(die) == DW_TAG_typedef;

        if (!is_typedef && !is_structure(die))
                return;
        for (size_t i = 0; i < all->count; i++) {
                struct field_question *q = &all->items[i];

                if (q->answer.state != STRUCT_OFFSET_NO_STRUCT || !is_named(die, q->text, q->structure) ||
                    (is_typedef && !get_structure_type(die, &structure)) ||
                    dwarf_hasattr(&structure, DW_AT_declaration))
                        continue;
                answer_field(q, &structure);
                all->open--;
        }
}

static void search_units(struct field_questions *all, Dwarf *dwarf)
{
        Dwarf_CU *cu = NULL;
        Dwarf_Die unit, die;

        while (all->open && dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0) {
                if (dwarf_child(&unit, &die) != 0)
                        continue;
                do
                        examine_type(all, &die);
                while (all->open && dwarf_siblingof(&die, &die) == 0);
        }
}

static void read_question(char *text, struct field_questions *ret)
{
        char *rest = text;

        *ret = (struct field_questions){ 0 };
        for (const char *field; ret->count < STRUCT_FIELDS_MAX && (field = strtok_r(rest, "\n", &rest));)
                ret->items[ret->count++] =
                        (struct field_question){ field, strcspn(field, "."), { 0, 0, STRUCT_OFFSET_NO_STRUCT } };
        ret->open = ret->count;
}

enum status struct_offsets_run_worker(int fd, int altlink_fd, int question, int out, struct error *err)
{
        struct dwarf_input own = { 0 }, alt = { 0 };
        char text[STRUCT_FIELDS_MAX * STRUCT_FIELD_BYTES_MAX + 1] = "";
        ssize_t n = pread(question, text, sizeof text - 1, 0);
        struct struct_offset answers[STRUCT_FIELDS_MAX];
        struct field_questions all;
        enum status st;

        if (n < 0)
                return error_os(err, errno, "cannot read the fields");
        read_question(text, &all);
        elf_version(EV_CURRENT);
        st = open_dwarf_input(fd, &own, err);
        if (!st && altlink_fd >= 0 && open_dwarf_input(altlink_fd, &alt, NULL) == ST_OK)
                dwarf_setalt(own.dwarf, alt.dwarf);
        if (!st)
                search_units(&all, own.dwarf);
        if (!st && alt.dwarf)
                search_units(&all, alt.dwarf);
        for (size_t i = 0; i < all.count; i++)
                answers[i] = all.items[i].answer;
        if (!st)
                st = file_write_all(out, answers, all.count * sizeof *answers, "offsets", err);
        close_dwarf_input(&own);
        close_dwarf_input(&alt);
        return st;
}
