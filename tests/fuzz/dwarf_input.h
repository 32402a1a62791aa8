/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_FUZZ_DWARF_INPUT_H
#define CAIRN_TESTS_FUZZ_DWARF_INPUT_H

/*
 * Arbitrary bytes as the debug sections of a file and of its dwz file: a byte of flags (1: big-endian), then the length
 * (16 bits) and bytes of each section, with .debug_types of both files last. The rest is an ELF file with the split
 * units of skeleton units: a package, or a .dwo file of any name. tests/corpus/dwarf/make.py generates such input.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dwarf/code.h"
#include "dwarf/package.h"

struct dwarf_input {
        struct dwarf_object object;
        struct elf_image package_image;
        struct dwarf_package package;
        const uint8_t *split; /* borrowed: the ELF file */
        size_t split_size;
        bool has_package;
};

/* Each section is copied into an allocation of its own, so that AddressSanitizer detects reads past its end. */
static inline void dwarf_input_own(struct dwarf_sections *s, int i, const uint8_t *bytes, size_t size)
{
        struct elf_section_data d = { .size = size };

        if (!size)
                return;
        d.owned = malloc(size);
        memcpy(d.owned, bytes, size);
        d.bytes = d.owned;
        dwarf_sections_set(s, (enum dwarf_section_id)i, &d);
}

static inline void dwarf_input_sections(struct dwarf_sections *s, int first, int behind, const uint8_t **data,
                                        size_t *size)
{
        for (int i = first; i < behind && *size >= 2; i++) {
                size_t n = (size_t)((*data)[0] | (*data)[1] << 8);

                *data += 2;
                *size -= 2;
                n = n < *size ? n : *size;
                dwarf_input_own(s, i, *data, n);
                *data += n;
                *size -= n;
        }
}

static inline enum status dwarf_input_dwo(void *context, uint64_t id, const char *directory, const char *name,
                                          unsigned attempt, int *fd_ret)
{
        const struct dwarf_input *in = context;
        volatile size_t length = strlen(name) + (directory ? strlen(directory) : 0);
        int fd;

        (void)id;
        (void)length;
        if (attempt)
                return ST_NOT_FOUND;
        fd = memfd_create("dwo", MFD_CLOEXEC);
        if (write(fd, in->split, in->split_size) != (ssize_t)in->split_size)
                abort();
        *fd_ret = fd;
        return ST_OK;
}

static inline void dwarf_input_split(struct dwarf_input *in, const uint8_t *data, size_t size)
{
        struct dwarf_package *p = &in->package;

        if (!size)
                return;
        in->split = data;
        in->split_size = size;
        in->object.companions.dwo = (struct dwarf_dwo_source){ dwarf_input_dwo, in };
        if (elf_image_from_memory(data, size, "fuzz", &in->package_image, NULL))
                return;
        in->has_package = dwarf_package_open(&in->package_image, p, NULL) == ST_OK;
        if (!in->has_package) {
                elf_image_close(&in->package_image);
                return;
        }
        for (int i = 0; i < DWARF_SECTION_COUNT; i++)
                if (!p->sections.data[i].owned)
                        dwarf_input_own(&p->sections, i, p->sections.data[i].bytes, p->sections.data[i].size);
        in->object.companions.package = p;
}

/** @param ret to be closed with dwarf_input_close(); must not be copied. @return false if there is no DWARF. */
static inline bool dwarf_input_open(const uint8_t *data, size_t size, struct dwarf_input *ret)
{
        struct dwarf_sections main_sections, alt_sections;
        uint8_t flags = size ? *data++ : 0;

        size -= size > 0;
        dwarf_sections_init(&main_sections, flags & 1);
        dwarf_sections_init(&alt_sections, flags & 1);
        dwarf_input_sections(&main_sections, 0, DWARF_TYPES, &data, &size);
        dwarf_input_sections(&alt_sections, 0, DWARF_TYPES, &data, &size);
        dwarf_input_sections(&main_sections, DWARF_TYPES, DWARF_SECTION_COUNT, &data, &size);
        dwarf_input_sections(&alt_sections, DWARF_TYPES, DWARF_SECTION_COUNT, &data, &size);
        *ret = (struct dwarf_input){ .split = NULL };
        if (dwarf_object_from_sections(&main_sections, &alt_sections, &ret->object, NULL))
                return false;
        dwarf_input_split(ret, data, size);
        return true;
}

static inline void dwarf_input_close(struct dwarf_input *in)
{
        dwarf_object_close(&in->object);
        if (!in->has_package)
                return;
        dwarf_package_close(&in->package);
        elf_image_close(&in->package_image);
}

#endif
