/* SPDX-License-Identifier: Apache-2.0 */
/* Notes and the build-id among them. Source: gABI chapter 5, "Note Section". */
#include <assert.h>
#include <string.h>

#include "common/reader.h"
#include "elf-image/elf_image.h"

#define NOTE_GO_BUILD_ID 4

void elf_notes_begin(struct elf_note_cursor *c, const void *data, size_t size, uint64_t alignment, bool big_endian)
{
        *c = (struct elf_note_cursor){
                .data = data, .size = size, .alignment = alignment == 8 ? 8 : 4, .big_endian = big_endian
        };
}

/* The gap to the next multiple; the last note's gap may be missing. */
static bool skip_padding(struct reader *r, size_t alignment)
{
        size_t gap = -r->pos & (alignment - 1);

        return reader_skip(r, gap < reader_left(r) ? gap : reader_left(r));
}

bool elf_notes_next(struct elf_note_cursor *c, struct elf_note *ret)
{
        uint32_t name_size, desc_size, type;
        const uint8_t *name, *desc;
        struct reader r;

        assert(c->pos <= c->size);
        reader_init(&r, c->data, c->size);
        r.big_endian = c->big_endian;
        if (!reader_seek(&r, c->pos) || !reader_u32(&r, &name_size) || !reader_u32(&r, &desc_size) ||
            !reader_u32(&r, &type) || !reader_bytes(&r, name_size, &name) || !skip_padding(&r, c->alignment) ||
            !reader_bytes(&r, desc_size, &desc) || !skip_padding(&r, c->alignment))
                return false;
        if (name_size && name[name_size - 1] != 0)
                return false;
        c->pos = r.pos;
        *ret = (struct elf_note){ .type = type,
                                  .name = name_size ? (const char *)name : "",
                                  .name_size = name_size,
                                  .desc = desc,
                                  .desc_size = desc_size };
        return true;
}

bool elf_notes_build_id(struct elf_note_cursor *c, struct build_id *ret, enum elf_build_id_kind *kind_ret)
{
        struct elf_note note;
        bool found = false;

        while (elf_notes_next(c, &note)) {
                struct build_id id;

                if (note.type == NT_GNU_BUILD_ID && note.name_size == 4 && memcmp(note.name, "GNU", 4) == 0 &&
                    build_id_from_bytes(&id, note.desc, note.desc_size)) {
                        if (build_id_is_placeholder(&id)) {
                                c->has_placeholder = true;
                                continue;
                        }
                        *ret = id;
                        *kind_ret = ELF_BUILD_ID_GNU;
                        return true;
                }
                if (!found && note.type == NOTE_GO_BUILD_ID && note.name_size == 4 &&
                    memcmp(note.name, "Go\0", 4) == 0 &&
                    build_id_from_go(ret, (const char *)note.desc, note.desc_size)) {
                        *kind_ret = ELF_BUILD_ID_GO;
                        found = true;
                }
        }
        return found;
}
