/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/drop-in/mapped_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/memory/buf.h"

#define PAGE_BYTES 4096

void mapped_files_deinit(struct mapped_files *m)
{
        for (size_t i = 0; i < m->count; i++)
                free(m->items[i].path);
        free(m->items);
        *m = (struct mapped_files){ .items = NULL };
}

/* @param path  copied */
static enum status add_mapped_file(struct mapped_files *m, const struct mapped_file *file, const char *path,
                                   struct error *err)
{
        struct mapped_file added = *file;

        if (m->count >= LIMIT_MAPPED_FILES)
                return error_set(err, ST_TOO_BIG, "over %d mappings", LIMIT_MAPPED_FILES);
        if (!array_reserve(&m->items, &m->capacity, m->count))
                return error_no_memory(err);
        added.path = strdup(path);
        if (!added.path)
                return error_no_memory(err);
        m->items[m->count++] = added;
        return ST_OK;
}

/* ---- maps ---- */

enum status mapped_files_read_maps(const char *path, struct mapped_files *ret, struct error *err)
{
        _cleanup_buf_ struct buf text = { 0 };
        char *save = NULL, *line;
        enum status st;

        *ret = (struct mapped_files){ .items = NULL };
        buf_init(&text, LIMIT_AGENT_MAPS_BYTES);
        st = file_read(path, &text, err);
        if (!st && !buf_cstr(&text))
                st = buf_status(&text, err, path);
        line = st ? NULL : strtok_r((char *)text.data, "\n", &save);
        for (; !st && line; line = strtok_r(NULL, "\n", &save)) {
                struct mapped_file file = { 0 };
                int at = 0;

                if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64 " %*s %*u %n", &file.start, &file.end,
                           &file.offset, &at) < 3 ||
                    !at)
                        return error_set(err, ST_BAD_DATA, "'%s' has not the format of /proc/PID/maps", path);
                if (line[at] == '/')
                        st = add_mapped_file(ret, &file, line + at, err);
        }
        return st;
}

/* ---- cores ---- */

static uint64_t read_core_word(const struct elf_image *core, const uint8_t *at)
{
        if (core->is_64)
                return core->big_endian ? load_be64(at) : load_le64(at);
        return core->big_endian ? load_be32(at) : load_le32(at);
}

/* A count, the size of a page, for each file start, end and offset in pages, and then the names. */
static enum status read_file_note(const struct elf_image *core, const struct elf_note *note, struct mapped_files *ret,
                                  struct error *err)
{
        const size_t word = core->is_64 ? 8 : 4;
        const uint8_t *at = note->desc, *end = note->desc + note->desc_size, *name;
        enum status st = ST_OK;
        uint64_t count, page;

        if (note->desc_size < 2 * word)
                return error_set(err, ST_BAD_DATA, "the list of files of the core ends early");
        count = read_core_word(core, at);
        page = read_core_word(core, at + word);
        at += 2 * word;
        if (count > (size_t)(end - at) / (3 * word))
                return error_set(err, ST_BAD_DATA, "the list of files of the core ends early");
        name = at + count * 3 * word;
        for (uint64_t i = 0; !st && i < count; i++, at += 3 * word) {
                const struct mapped_file file = { .start = read_core_word(core, at),
                                                  .end = read_core_word(core, at + word),
                                                  .offset = read_core_word(core, at + 2 * word) * page };
                const uint8_t *nul = memchr(name, 0, (size_t)(end - name));

                if (!nul)
                        return error_set(err, ST_BAD_DATA, "the list of files of the core ends early");
                st = add_mapped_file(ret, &file, (const char *)name, err);
                name = nul + 1;
        }
        return st;
}

enum status mapped_files_read_core(const char *path, struct mapped_files *ret, struct error *err)
{
        _cleanup_elf_image_ struct elf_image core = { 0 };
        struct elf_note_cursor c;
        struct elf_note note;
        enum status st = elf_image_open(path, &core, err);

        *ret = (struct mapped_files){ .items = NULL };
        if (st)
                return st;
        for (size_t i = 0; i < core.segment_count; i++) {
                const struct elf_segment *s = &core.segments[i];

                if (s->type != PT_NOTE || s->offset > core.map.size || s->file_size > core.map.size - s->offset)
                        continue;
                elf_notes_begin(&c, (const uint8_t *)core.map.data + s->offset, s->file_size, 4, core.big_endian);
                while (elf_notes_next(&c, &note))
                        if (note.type == NT_FILE && strcmp(note.name, "CORE") == 0)
                                return read_file_note(&core, &note, ret, err);
        }
        return error_set(err, ST_NOT_FOUND, "'%s' is no core that lists mapped files", path);
}

/* ---- lookups ---- */

const struct mapped_file *mapped_files_at(const struct mapped_files *m, uint64_t address)
{
        for (size_t i = 0; i < m->count; i++)
                if (address >= m->items[i].start && address < m->items[i].end)
                        return &m->items[i];
        return NULL;
}

/* A page may have the end of one segment and the start of another: that which starts there is mapped. */
bool mapped_file_bias(const struct mapped_file *m, const struct elf_image *img, uint64_t *ret)
{
        const struct elf_segment *found = NULL;

        for (size_t i = 0; i < img->segment_count; i++) {
                const struct elf_segment *s = &img->segments[i];
                uint64_t first = s->offset & ~(uint64_t)(PAGE_BYTES - 1);

                if (s->type == PT_LOAD && m->offset >= first && m->offset - first <= s->file_size)
                        found = s;
        }
        if (found)
                *ret = m->start - m->offset - (found->address - found->offset);
        return found != NULL;
}
