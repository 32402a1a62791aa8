/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel_module.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "agent/text_line.h"
#include "common/file.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"

#define NOTES_MAX KiB(64)

bool kernel_notes_build_id(const char *path, struct build_id *ret)
{
        _cleanup_buf_ struct buf notes = { 0 };
        struct elf_note_cursor cursor;
        enum elf_build_id_kind kind;

        buf_init(&notes, NOTES_MAX);
        if (file_read(path, &notes, NULL))
                return false;
        elf_notes_begin(&cursor, notes.data, notes.size, 4, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
        return elf_notes_build_id(&cursor, ret, &kind);
}

/* "0xffffffffc0a1d000"; zeros where the kernel hides it. */
static bool read_address(const char *path, uint64_t *ret)
{
        _cleanup_buf_ struct buf text = { 0 };
        struct text_line line;

        buf_init(&text, KiB(4));
        if (file_read(path, &text, NULL) || text.size <= 2)
                return false;
        line = (struct text_line){ (const char *)text.data + 2, (const char *)text.data + text.size };
        return text_number(&line, 16, ret) && *ret;
}

/* .text ends where the next section begins: sizes are not shown. */
static void read_sections(const char *dir, struct kernel_module *m)
{
        char path[512];
        DIR *sections;
        struct dirent *entry;

        snprintf(path, sizeof path, "%s/sections/.text", dir);
        if (!read_address(path, &m->text_addr)) {
                m->text_addr = 0;
                return;
        }
        m->text_end = UINT64_MAX;
        snprintf(path, sizeof path, "%s/sections", dir);
        sections = opendir(path);
        while (sections && (entry = readdir(sections))) {
                uint64_t addr;

                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                snprintf(path, sizeof path, "%s/sections/%s", dir, entry->d_name);
                if (read_address(path, &addr) && addr > m->text_addr && addr < m->text_end)
                        m->text_end = addr;
        }
        if (sections)
                closedir(sections);
}

void kernel_module_read(const char *dir, struct kernel_module *ret)
{
        char path[512];

        *ret = (struct kernel_module){ .tried = true };
        read_sections(dir, ret);
        snprintf(path, sizeof path, "%s/notes/.note.gnu.build-id", dir);
        (void)kernel_notes_build_id(path, &ret->build_id);
}

bool kernel_module_address(const struct kernel_module *m, uint64_t addr, uint64_t *ret)
{
        if (!m->text_addr || !m->build_id.size || addr < m->text_addr || addr >= m->text_end)
                return false;
        *ret = addr - m->text_addr;
        return true;
}
