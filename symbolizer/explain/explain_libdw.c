/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Second opinion: the frames of libdw, through its public interface only. libdw
 * gets the files in memory; opening others, as for split DWARF, is refused by
 * the worker's seccomp filter, and the skeleton unit is used alone.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <libelf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/json/json_out.h"
#include "common/limits.h"
#include "symbolizer/explain/explain_libdw.h"

#define DEPTH_MAX 64

struct opened {
        void *bytes;
        size_t size;
        Elf *elf;
        Dwarf *dwarf;
};

struct opinion {
        struct opened own, alt;
};

static void opinion_deinit(struct opinion *o)
{
        struct opened *all[] = { &o->own, &o->alt };

        for (size_t i = 0; i < 2; i++) {
                dwarf_end(all[i]->dwarf);
                elf_end(all[i]->elf);
                if (all[i]->bytes)
                        munmap(all[i]->bytes, all[i]->size);
        }
}

/* A private mapping: libelf overwrites the headers of compressed sections. */
static enum status open_libdw_file(int fd, const char *name, struct opened *ret, struct error *err)
{
        struct stat s;

        if (fstat(fd, &s) < 0)
                return error_os(err, errno, "cannot read '%s'", name);
        if (s.st_size <= 0 || (uint64_t)s.st_size > LIMIT_OBJECT_BYTES)
                return error_set(err, ST_TOO_BIG, "'%s' is empty or larger than an object may be", name);
        ret->size = (size_t)s.st_size;
        ret->bytes = mmap(NULL, ret->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (ret->bytes == MAP_FAILED) {
                ret->bytes = NULL;
                return error_os(err, errno, "cannot map '%s'", name);
        }
        ret->elf = elf_memory(ret->bytes, ret->size);
        ret->dwarf = ret->elf ? dwarf_begin_elf(ret->elf, DWARF_C_READ, NULL) : NULL;
        if (!ret->dwarf)
                return error_set(err, ST_BAD_DATA, "libdw cannot read '%s': %s", name, dwarf_errmsg(-1));
        return ST_OK;
}

static enum status opinion_open(int fd, int altlink_fd, const char *name, struct opinion *o, struct error *err)
{
        enum status st;

        elf_version(EV_CURRENT);
        st = open_libdw_file(fd, name, &o->own, err);
        if (!st && altlink_fd >= 0 && open_libdw_file(altlink_fd, name, &o->alt, NULL) == ST_OK)
                dwarf_setalt(o->own.dwarf, o->alt.dwarf);
        return st;
}

/* By .debug_aranges, which may be missing or incomplete; else by the units' own ranges. */
static bool find_libdw_unit(Dwarf *dwarf, Dwarf_Addr address, Dwarf_Die *ret)
{
        Dwarf_CU *cu = NULL;

        if (dwarf_addrdie(dwarf, address, ret))
                return true;
        while (dwarf_get_units(dwarf, cu, &cu, NULL, NULL, ret, NULL) == 0)
                if (dwarf_haspc(ret, address) == 1)
                        return true;
        return false;
}

static const char *get_text_attribute(Dwarf_Die *die, unsigned name)
{
        Dwarf_Attribute a;
        const char *text = dwarf_formstring(dwarf_attr_integrate(die, name, &a));

        return text && text[0] ? text : NULL;
}

static const char *get_die_name(Dwarf_Die *die)
{
        const char *name = get_text_attribute(die, DW_AT_linkage_name);

        if (!name)
                name = get_text_attribute(die, DW_AT_MIPS_linkage_name);
        if (!name)
                name = get_text_attribute(die, DW_AT_name);
        return name ? name : "";
}

static uint64_t get_number_attribute(Dwarf_Die *die, unsigned name)
{
        Dwarf_Attribute a;
        Dwarf_Word v;

        return dwarf_formudata(dwarf_attr(die, name, &a), &v) == 0 ? v : 0;
}

static const char *get_call_file(Dwarf_Die *cu, Dwarf_Die *die)
{
        Dwarf_Files *files;
        size_t count;
        uint64_t number = get_number_attribute(die, DW_AT_call_file);
        const char *name;

        if (dwarf_getsrcfiles(cu, &files, &count) != 0 || number >= count)
                return "";
        name = dwarf_filesrc(files, number, NULL, NULL);
        return name ? name : "";
}

static void put_libdw_frame(struct json_out *j, Dwarf_Die *die, const char *file, uint64_t line)
{
        char text[24] = "";

        json_out_object(j, NULL);
        json_out_str(j, "function", die ? get_die_name(die) : "");
        json_out_str(j, "file", file);
        json_out_uint(j, "line", line);
        if (die)
                snprintf(text, sizeof text, "0x%jx", (uintmax_t)dwarf_dieoffset(die));
        json_out_str(j, "die", text);
        json_out_bool(j, "inlined", die && dwarf_tag(die) == DW_TAG_inlined_subroutine);
        json_out_object_end(j);
}

/* ---- scopes ---- */

struct path {
        Dwarf_Die dies[LIMIT_INLINE_DEPTH];
        int count;
};

static bool is_frame_tag(int tag)
{
        return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_entry_point;
}

static bool may_hold_code(int tag)
{
        switch (tag) {
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
                return true;
        default:
                return is_frame_tag(tag);
        }
}

/*
 * The frames around an address, outermost first; of several siblings that cover it, the last. dwarf_getscopes() is not
 * used: it fails where an abstract origin is in another unit, as after link-time optimization.
 */
static void find_libdw_scopes(Dwarf_Die *parent, Dwarf_Addr address, int depth, struct path *ret)
{
        struct path best = { .count = -1 };
        Dwarf_Die child;

        if (depth == DEPTH_MAX || dwarf_child(parent, &child) != 0)
                return;
        do {
                int tag = dwarf_tag(&child), covers = may_hold_code(tag) ? dwarf_haspc(&child, address) : 0;
                int before = ret->count;

                if (!may_hold_code(tag) || (covers <= 0 && tag == DW_TAG_inlined_subroutine))
                        continue;
                if (covers > 0 && is_frame_tag(tag) && ret->count < LIMIT_INLINE_DEPTH)
                        ret->dies[ret->count++] = child;
                find_libdw_scopes(&child, address, depth + 1, ret);
                if (ret->count > before)
                        best = *ret;
                ret->count = before;
        } while (dwarf_siblingof(&child, &child) == 0);
        if (best.count >= 0)
                *ret = best;
}

static void put_libdw_frames(struct json_out *j, Dwarf_Die *cu, Dwarf_Addr address, struct path *scopes)
{
        Dwarf_Line *row = dwarf_getsrc_die(cu, address);
        const char *file = row ? dwarf_linesrc(row, NULL, NULL) : NULL;
        int line = 0;

        if (row)
                dwarf_lineno(row, &line);
        scopes->count = 0;
        find_libdw_scopes(cu, address, 0, scopes);
        for (int i = scopes->count - 1; i >= 0; i--) {
                put_libdw_frame(j, &scopes->dies[i], file ? file : "", (uint64_t)line);
                if (dwarf_tag(&scopes->dies[i]) != DW_TAG_inlined_subroutine)
                        return;
                file = get_call_file(cu, &scopes->dies[i]);
                line = (int)get_number_attribute(&scopes->dies[i], DW_AT_call_line);
        }
        if (row && scopes->count == 0)
                put_libdw_frame(j, NULL, file ? file : "", (uint64_t)line);
}

static void put_libdw_address(struct json_out *j, Dwarf *dwarf, Dwarf_Addr address)
{
        struct path scopes;
        Dwarf_Die cu;
        char text[24];

        json_out_object(j, NULL);
        snprintf(text, sizeof text, "0x%jx", (uintmax_t)address);
        json_out_str(j, "address", text);
        json_out_array(j, "frames");
        if (find_libdw_unit(dwarf, address, &cu)) {
                put_libdw_frames(j, &cu, address, &scopes);
                json_out_array_end(j);
                snprintf(text, sizeof text, "0x%jx", (uintmax_t)dwarf_dieoffset(&cu));
                json_out_str(j, "unit_die", text);
        } else {
                json_out_array_end(j);
        }
        json_out_object_end(j);
}

enum status explain_write_second_opinion(int fd, int altlink_fd, const char *name, const uint64_t *addresses,
                                         size_t count, struct buf *to, struct error *err)
{
        struct opinion o = { 0 };
        struct json_out j;
        enum status st = opinion_open(fd, altlink_fd, name, &o, err);

        json_out_init(&j, to);
        json_out_object(&j, NULL);
        json_out_str(&j, "by", "libdw");
        json_out_array(&j, "results");
        for (size_t i = 0; !st && i < count; i++)
                put_libdw_address(&j, o.own.dwarf, addresses[i]);
        json_out_array_end(&j);
        json_out_object_end(&j);
        opinion_deinit(&o);
        return st ? st : buf_status(to, err, "the second opinion");
}
