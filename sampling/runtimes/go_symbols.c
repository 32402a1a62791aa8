/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/go_symbols.h"

#include <string.h>

#include "common/limits.h"
#include "dwarf/struct_members.h"

#define BUILD_HEAD_BYTES 32 /* of .go.buildinfo, before the version */
#define BUILD_FLAGS 15
#define BUILD_HAS_TEXTS 2 /* texts, since 1.18; before, pointers to them */

#define FIRST_LIST_VERSION 24
#define OFFSET_MAX 4096

/* Verified with the DWARF of programs that each of these versions made; the same for all architectures of 64 bits. */
static const struct go_offsets {
        uint8_t version;
        uint16_t m, curg, labels;
} OFFSETS[] = {
        { 19, 48, 192, 360 }, { 20, 48, 192, 360 }, { 21, 48, 192, 344 }, { 22, 48, 192, 344 }, { 23, 48, 192, 352 },
        { 24, 48, 192, 352 }, { 25, 48, 184, 344 }, { 26, 48, 184, 352 }, { 27, 48, 184, 352 },
};

/* The minor version of a text such as "go1.26.8", "devel go1.27-0123456789" or "go1.22rc1"; 0: unknown. */
static uint64_t parse_go_version(const char *text, size_t n)
{
        static const char prefix[] = "go1.";
        const char *at = memmem(text, n, prefix, strlen(prefix));
        uint64_t version = 0;

        if (!at)
                return 0;
        for (at += strlen(prefix); at < text + n && *at >= '0' && *at <= '9' && version < 100; at++)
                version = version * 10 + (uint64_t)(*at - '0');
        return version;
}

/* False: the file has no Go. */
static bool read_go_version(const struct elf_image *img, uint64_t *ret)
{
        static const char magic[] = "\xff Go buildinf:";
        const struct elf_section *section = elf_image_section(img, ".go.buildinfo");
        const uint8_t *bytes;
        size_t size, n;

        *ret = 0;
        if (!section || elf_section_raw(img, section, &bytes, &size, NULL) || size <= BUILD_HEAD_BYTES ||
            memcmp(bytes, magic, strlen(magic)) != 0)
                return false;
        n = bytes[BUILD_HEAD_BYTES]; /* a varint: longer texts are no version */
        if ((bytes[BUILD_FLAGS] & BUILD_HAS_TEXTS) && n < 0x80 && n < size - BUILD_HEAD_BYTES)
                *ret = parse_go_version((const char *)bytes + BUILD_HEAD_BYTES + 1, n);
        return true;
}

static bool read_debug_offsets(const struct elf_image *img, struct go_symbols *s)
{
        struct dwarf_member members[] = {
                { .structure = "runtime.g", .name = "m" },
                { .structure = "runtime.m", .name = "curg" },
                { .structure = "runtime.g", .name = "labels" },
        };
        const struct elf_section *info = elf_image_section(img, ".debug_info");
        struct dwarf_object object;
        enum status st;

        if (!info || info->size > LIMIT_AGENT_GO_DEBUGINFO || dwarf_object_open(img, NULL, &object, NULL))
                return false;
        st = dwarf_struct_members_find(&object, "runtime", members, sizeof members / sizeof *members);
        dwarf_object_close(&object);
        if (st)
                return false;
        for (size_t i = 0; i < sizeof members / sizeof *members; i++)
                if (!members[i].is_found || members[i].offset >= OFFSET_MAX)
                        return false;
        s->m = members[0].offset;
        s->curg = members[1].offset;
        s->labels = members[2].offset;
        return true;
}

static bool find_known_offsets(struct go_symbols *s)
{
        for (size_t i = 0; i < sizeof OFFSETS / sizeof *OFFSETS; i++) {
                if (OFFSETS[i].version != s->version)
                        continue;
                s->m = OFFSETS[i].m;
                s->curg = OFFSETS[i].curg;
                s->labels = OFFSETS[i].labels;
                return true;
        }
        return false;
}

void go_symbols_read(const struct elf_image *img, struct go_symbols *ret)
{
        *ret = (struct go_symbols){ 0 };
        if (!img->is_64 || img->machine != EM_X86_64 || !read_go_version(img, &ret->version))
                return;
        ret->has_map = ret->version < FIRST_LIST_VERSION;
        context_symbols_read_go(img, &ret->g);
        if (!ret->version || !(read_debug_offsets(img, ret) || find_known_offsets(ret)))
                ret->state = GO_LABELS_UNKNOWN_VERSION;
        else
                ret->state = ret->g.is_defined ? GO_LABELS_FOUND : GO_LABELS_NO_VARIABLE;
}
