/* SPDX-License-Identifier: Apache-2.0 */
/* Opens bytes as an ELF file and calls every accessor of elf-image, and the reader of what Go adds. */
#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "sampling/runtimes/go_symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sink;

static void walk_symbols(const struct elf_image *img, const struct elf_section *s)
{
        struct elf_symbol_cursor c;
        struct elf_symbol sym;

        if (elf_symbols_begin(img, s, &c, NULL))
                return;
        while (elf_symbols_next(&c, &sym))
                sink += (unsigned)sym.name[0] + elf_symbol_is_function(&sym);
}

static void walk_section(const struct elf_image *img, const struct elf_section *s)
{
        _cleanup_elf_section_data_ struct elf_section_data d = { 0 };
        struct elf_note_cursor c;
        struct elf_note note;

        walk_symbols(img, s);
        sink += elf_image_section(img, s->name) != NULL;
        if (elf_section_data(img, s, MiB(1), &d, NULL))
                return;
        for (size_t i = 0; i < d.size; i += 97)
                sink += d.bytes[i];
        elf_notes_begin(&c, d.bytes, d.size, s->alignment, img->big_endian);
        while (elf_notes_next(&c, &note))
                sink += (unsigned)note.name[0] + (note.desc_size ? note.desc[note.desc_size - 1] : 0);
}

static void walk_addresses(const struct elf_image *img)
{
        for (size_t i = 0; i < img->segment_count; i++) {
                const struct elf_segment *s = &img->segments[i];
                const uint8_t *bytes;

                if (elf_image_bytes_at(img, s->address, s->file_size, &bytes) && s->file_size)
                        sink += bytes[s->file_size - 1];
        }
}

static void read_go(const struct elf_image *img)
{
        struct go_symbols go;

        go_symbols_read(img, &go);
        sink += (unsigned)go.state + (unsigned)go.version;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct build_id id;
        const char *text;
        uint32_t crc;
        struct error err;

        if (elf_image_from_memory(data, size, "fuzz", &img, &err))
                return 0;
        sink += (unsigned)elf_image_kind(&img) + (unsigned)elf_image_quality(&img);
        sink += elf_image_check_complete(&img, &err) == ST_OK;
        read_go(&img);
        for (size_t i = 0; i < img.section_count && i < 200; i++)
                walk_section(&img, &img.sections[i]);
        walk_addresses(&img);
        if (elf_image_debuglink(&img, &text, &crc, &err) == ST_OK)
                sink += (unsigned)text[0] + crc;
        if (elf_image_altlink(&img, &text, &id, &err) == ST_OK)
                sink += (unsigned)text[0] + id.size;
        return 0;
}
