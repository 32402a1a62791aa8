/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/elf_headers.h"

#include <string.h>

static bool write_elf_header(Elf *elf, const struct elf_image *img, const struct elf_headers *h)
{
        GElf_Ehdr e;

        if (!gelf_newehdr(elf, img->is_64 ? ELFCLASS64 : ELFCLASS32) || !gelf_getehdr(elf, &e))
                return false;
        memcpy(e.e_ident, img->data, EI_NIDENT);
        e.e_type = img->type;
        e.e_machine = img->machine;
        e.e_version = EV_CURRENT;
        e.e_entry = img->entry;
        e.e_flags = img->header_flags;
        e.e_phoff = h->program_count ? h->program_offset : 0;
        e.e_shoff = h->section_offset;
        e.e_shstrndx = h->name_section < SHN_LORESERVE ? (uint16_t)h->name_section : SHN_XINDEX;
        return gelf_update_ehdr(elf, &e);
}

static bool write_program_headers(Elf *elf, const struct elf_headers *h)
{
        if (h->program_count && !gelf_newphdr(elf, h->program_count))
                return false;
        for (size_t i = 0; i < h->program_count; i++) {
                GElf_Phdr p = h->programs[i];

                if (!gelf_update_phdr(elf, (int)i, &p))
                        return false;
        }
        return true;
}

static bool write_section_headers(Elf *elf, const struct elf_headers *h)
{
        for (size_t i = 1; i < h->section_count; i++) {
                GElf_Shdr s = h->sections[i];
                Elf_Scn *scn = elf_newscn(elf);

                if (!scn || !gelf_update_shdr(scn, &s))
                        return false;
        }
        if (h->name_section >= SHN_LORESERVE) {
                Elf_Scn *zero = elf_getscn(elf, 0);
                GElf_Shdr s;

                if (!gelf_getshdr(zero, &s))
                        return false;
                s.sh_link = (uint32_t)h->name_section;
                return gelf_update_shdr(zero, &s);
        }
        return true;
}

enum status elf_headers_write(const struct elf_image *img, const struct elf_headers *h, int fd, struct error *err)
{
        enum status st = ST_OK;
        Elf *elf;

        elf_version(EV_CURRENT);
        elf = elf_begin(fd, ELF_C_WRITE, NULL);
        if (elf)
                elf_flagelf(elf, ELF_C_SET, ELF_F_LAYOUT);
        if (!elf || !write_elf_header(elf, img, h) || !write_program_headers(elf, h) ||
            !write_section_headers(elf, h) || elf_update(elf, ELF_C_WRITE) < 0)
                st = error_set(err, ST_BAD_DATA, "cannot write the headers of a file made from '%s': libelf: %s",
                               img->name, elf_errmsg(-1));
        elf_end(elf);
        return st;
}
