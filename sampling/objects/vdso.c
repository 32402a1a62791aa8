/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/objects/vdso.h"

#include <string.h>
#include <sys/auxv.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "sampling/objects/proc_maps.h"

bool vdso_get_image(const void **ret, size_t *size_ret)
{
        const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
        _cleanup_buf_ struct buf text = { 0 };
        _cleanup_proc_maps_ struct proc_maps own = { 0 };
        const struct proc_mapping *m;

        buf_init(&text, LIMIT_AGENT_MAPS_BYTES);
        if (!image || file_read("/proc/self/maps", &text, NULL) ||
            proc_maps_parse((const char *)text.data, text.size, &own, NULL))
                return false;
        m = proc_maps_find(&own, (uintptr_t)image);
        if (!m || m->start != (uintptr_t)image)
                return false;
        *ret = image;
        *size_ret = m->end - m->start;
        return true;
}

/* Shortest name first: of several names for one address, the last one added is used. */
static void add_exported_names(struct code_names *names, const struct elf_image *elf, const struct elf_section *section,
                               size_t length)
{
        struct elf_symbol_cursor cursor;
        struct elf_symbol sym;

        if (elf_symbols_begin(elf, section, &cursor, NULL))
                return;
        while (elf_symbols_next(&cursor, &sym)) {
                uint32_t name;

                if (strlen(sym.name) != length || !elf_symbol_is_function(&sym) || !sym.size)
                        continue;
                if (code_names_add_text(names, sym.name, length, &name, NULL) ||
                    code_names_add(names, sym.value, sym.value + sym.size, name, 0, NULL))
                        return;
        }
}

void vdso_add_names(struct code_names *names)
{
        const void *image;
        size_t size;
        struct elf_image elf;
        const struct elf_section *section;

        if (!vdso_get_image(&image, &size) || elf_image_from_memory(image, size, "[vdso]", &elf, NULL))
                return;
        section = elf_image_section(&elf, ".dynsym");
        for (size_t length = 1; section && length < 64; length++)
                add_exported_names(names, &elf, section, length);
        elf_image_close(&elf);
}

const char *vsyscall_find_name(uint64_t offset)
{
        static const char *const names[] = { "gettimeofday", "time", "getcpu" };

        return offset >> 10 < sizeof names / sizeof *names ? names[offset >> 10] : NULL;
}
