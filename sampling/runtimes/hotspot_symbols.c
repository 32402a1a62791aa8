/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/hotspot_symbols.h"

#include <elf.h>
#include <string.h>

void hotspot_symbols_read(const struct elf_image *img, struct hotspot_symbols *ret)
{
        struct hotspot_symbols found = { 0 };
        const struct {
                const char *name;
                uint64_t *address;
        } wanted[] = {
                { "gHotSpotVMStructs", &found.structs },
                { "gHotSpotVMTypes", &found.types },
                { "gHotSpotVMStructEntryArrayStride", &found.struct_stride },
                { "gHotSpotVMTypeEntryArrayStride", &found.type_stride },
        };
        struct elf_symbol_cursor cursor;
        struct elf_symbol s;

        *ret = found;
        if (elf_symbols_begin_type(img, SHT_DYNSYM, &cursor, NULL))
                return;
        while (elf_symbols_next(&cursor, &s)) {
                if (s.section == SHN_UNDEF || s.type != STT_OBJECT || strncmp(s.name, "gHotSpotVM", 10) != 0)
                        continue;
                for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
                        if (strcmp(s.name, wanted[i].name) == 0)
                                *wanted[i].address = s.value;
        }
        if (found.structs && found.types && found.struct_stride && found.type_stride)
                *ret = found;
}
