/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_image_read() has the sequence: the ELF header, counts that do not fit it (in section header 0), program headers,
 * section headers with their names, repair of emptied sections, the build-id. The two classes differ in the width of
 * words (read_elf_word()), the size of an entry and the place of p_flags; the structs of elf_image.h are the same for
 * both.
 *
 * A table of headers is checked to lie in the file once (open_table_reader()); its entries are then read through
 * readers of the entry size that the file names, which may be larger than that of the class. The content of sections
 * is not checked here, except that of the names: accessors of a section do so, and elf_image_check_complete() for all.
 *
 * Repair: some extractors of debuginfo leave sections of code with size 0, or replace SHF_ALLOC by a flag of their
 * own. Both are undone on opening, so that readers need no knowledge of them.
 *
 * Order: headers, repair, build-id, opening and closing, the check for completeness, addresses and file offsets.
 */
#include "elf-image/elf_image.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"
#include "common/search.h"
#include "common/text.h"

struct header {
        uint64_t phoff, shoff;
        uint16_t phentsize, phnum, shentsize, shnum, shstrndx;
};

/* An address, offset or size: 4 bytes in class 32, 8 in class 64. */
static bool read_elf_word(struct reader *r, bool is_64, uint64_t *ret)
{
        uint32_t v;

        if (is_64)
                return reader_u64(r, ret);
        if (!reader_u32(r, &v))
                return false;
        *ret = v;
        return true;
}

/* What a file is that users take for an ELF file, with what to do; "" for any other. */
static const char *describe_other_format(const uint8_t *data, size_t size)
{
        static const struct {
                const char *magic;
                size_t n;
                const char *text;
        } known[] = {
                { "!<arch>\n", 8, " but an archive (ar): extract its members" },
                { "!<thin>\n", 8, " but a thin archive (ar): name its members" },
                { "BC\xc0\xde", 4, " but LLVM bitcode: link it first" },
                { "MZ", 2, " but a Windows program (PE)" },
                { "\xcf\xfa\xed\xfe", 4, " but a Mach-O file" },
                { "\xca\xfe\xba\xbe", 4, " but a Java class or a Mach-O file" },
                { "\0asm", 4, " but WebAssembly" },
                { "\xed\xab\xee\xdb", 4, " but an RPM package: extract its files" },
                { "PK\3\4", 4, " but a zip archive: extract its files" },
                { "\x1f\x8b", 2, " but compressed (gzip)" },
                { "\xfd\x37zXZ", 5, " but compressed (xz)" },
                { "\x28\xb5\x2f\xfd", 4, " but compressed (zstd)" },
                { "BZh", 3, " but compressed (bzip2)" },
                { "CAIRNSRC", 8, " but a source bundle" },
                { "#!", 2, " but a script" },
        };

        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
                if (size >= known[i].n && memcmp(data, known[i].magic, known[i].n) == 0)
                        return known[i].text;
        return size ? "" : ": it is empty";
}

static enum status read_elf_header(struct elf_image *img, struct header *h, struct error *err)
{
        const uint8_t *ident;
        uint16_t ehsize;
        uint32_t version;
        struct reader r;

        reader_init(&r, img->data, img->size);
        if (img->size < SELFMAG || memcmp(img->data, ELFMAG, SELFMAG) != 0)
                return error_set(err, ST_BAD_DATA, "cannot read '%s': not an ELF file%s", img->name,
                                 describe_other_format(img->data, img->size));
        if (!reader_bytes(&r, EI_NIDENT, &ident))
                goto cut_off;
        if (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64)
                return error_at(err, ST_UNSUPPORTED, EI_CLASS, "cannot read '%s': unknown ELF class %u", img->name,
                                ident[EI_CLASS]);
        if (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB)
                return error_at(err, ST_UNSUPPORTED, EI_DATA, "cannot read '%s': unknown ELF byte order %u", img->name,
                                ident[EI_DATA]);
        img->is_64 = ident[EI_CLASS] == ELFCLASS64;
        img->big_endian = r.big_endian = ident[EI_DATA] == ELFDATA2MSB;
        if (reader_u16(&r, &img->type) && reader_u16(&r, &img->machine) && reader_u32(&r, &version) &&
            read_elf_word(&r, img->is_64, &img->entry) && read_elf_word(&r, img->is_64, &h->phoff) &&
            read_elf_word(&r, img->is_64, &h->shoff) && reader_u32(&r, &img->header_flags) && reader_u16(&r, &ehsize) &&
            reader_u16(&r, &h->phentsize) && reader_u16(&r, &h->phnum) && reader_u16(&r, &h->shentsize) &&
            reader_u16(&r, &h->shnum) && reader_u16(&r, &h->shstrndx))
                return ST_OK;
cut_off:
        return error_at(err, ST_BAD_DATA, img->size,
                        "cannot read '%s': cut off: the ELF header ends past the file's 0x%zx bytes", img->name,
                        img->size);
}

struct header_table {
        const char *what; /* "section" or "program" */
        uint64_t offset, count, entry_size;
        uint64_t entry_min; /* bytes of an entry in this class */
};

/* Check that the table lies in the file, and open a reader over it. */
static enum status open_table_reader(const struct elf_image *img, const struct header_table *t, struct reader *ret,
                                     struct error *err)
{
        uint64_t bytes, end;
        struct reader r;

        if (t->entry_size < t->entry_min)
                return error_at(err, ST_BAD_DATA, t->offset,
                                "cannot read '%s': a %s header is %" PRIu64 " bytes, %" PRIu64 " are needed", img->name,
                                t->what, t->entry_size, t->entry_min);
        if (__builtin_mul_overflow(t->count, t->entry_size, &bytes) || __builtin_add_overflow(t->offset, bytes, &end))
                return error_at(err, ST_BAD_DATA, t->offset,
                                "cannot read '%s': %s headers at 0x%" PRIx64 " wrap around", img->name, t->what,
                                t->offset);
        if (end > img->size)
                return error_at(err, ST_BAD_DATA, img->size,
                                "cannot read '%s': cut off: %s headers end at 0x%" PRIx64
                                " past the file's 0x%zx bytes",
                                img->name, t->what, end, img->size);
        reader_init(&r, img->data, img->size);
        r.big_endian = img->big_endian;
        if (!reader_seek(&r, t->offset) || !reader_sub(&r, bytes, ret))
                return reader_error(&r, err, t->what);
        return ST_OK;
}

static enum status open_section_headers(const struct elf_image *img, const struct header *h, uint64_t count,
                                        struct reader *ret, struct error *err)
{
        const struct header_table t = { .what = "section",
                                        .offset = h->shoff,
                                        .count = count,
                                        .entry_size = h->shentsize,
                                        .entry_min = img->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr) };

        return open_table_reader(img, &t, ret, err);
}

static bool read_section_header(struct reader *r, bool is_64, uint32_t *name_ret, struct elf_section *ret)
{
        struct elf_section s = { .name = "" };

        if (!reader_u32(r, name_ret) || !reader_u32(r, &s.type) || !read_elf_word(r, is_64, &s.flags) ||
            !read_elf_word(r, is_64, &s.address) || !read_elf_word(r, is_64, &s.offset) ||
            !read_elf_word(r, is_64, &s.size) || !reader_u32(r, &s.link) || !reader_u32(r, &s.info) ||
            !read_elf_word(r, is_64, &s.alignment) || !read_elf_word(r, is_64, &s.entry_size))
                return false;
        if (s.flags & SHF_CAIRN_LOADED)
                s.flags = (s.flags & ~SHF_CAIRN_LOADED) | SHF_ALLOC;
        *ret = s;
        return true;
}

/* Counts that do not fit the header are in section 0: sh_size, sh_link and sh_info. */
static enum status read_extended_counts(const struct elf_image *img, const struct header *h, uint64_t *shnum,
                                        uint32_t *shstrndx, uint64_t *phnum, struct error *err)
{
        struct reader r;
        struct elf_section zero;
        uint32_t name;
        enum status st;

        *shnum = h->shnum;
        *shstrndx = h->shstrndx;
        *phnum = h->phnum;
        if (!h->shoff) {
                *shnum = 0;
                return ST_OK;
        }
        if (h->shnum && h->shstrndx != SHN_XINDEX && h->phnum != PN_XNUM)
                return ST_OK;
        st = open_section_headers(img, h, 1, &r, err);
        if (st)
                return st;
        if (!read_section_header(&r, img->is_64, &name, &zero))
                return reader_error(&r, err, "section header 0");
        if (!h->shnum)
                *shnum = zero.size;
        if (h->shstrndx == SHN_XINDEX)
                *shstrndx = zero.link;
        if (h->phnum == PN_XNUM)
                *phnum = zero.info;
        return ST_OK;
}

static enum status read_section_headers(struct elf_image *img, const struct header *h, uint64_t count,
                                        uint32_t shstrndx, struct error *err)
{
        _cleanup_free_ uint32_t *names = NULL;
        const uint8_t *strings = NULL;
        size_t string_size = 0;
        struct reader r;
        enum status st;

        if (!count)
                return ST_OK;
        if (count > LIMIT_ELF_SECTIONS)
                return error_at(err, ST_TOO_BIG, h->shoff,
                                "cannot read '%s': %" PRIu64 " sections, at most %d are read", img->name, count,
                                LIMIT_ELF_SECTIONS);
        st = open_section_headers(img, h, count, &r, err);
        if (st)
                return st;
        img->sections = calloc(count, sizeof *img->sections);
        names = calloc(count, sizeof *names);
        if (!img->sections || !names)
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++) {
                struct reader entry;

                if (!reader_sub(&r, h->shentsize, &entry) ||
                    !read_section_header(&entry, img->is_64, &names[i], &img->sections[i]))
                        return reader_error(&r, err, "section header");
                img->sections[i].index = (uint32_t)i;
        }
        img->section_count = count;
        if (shstrndx < count && shstrndx != SHN_UNDEF && img->sections[shstrndx].type != SHT_NOBITS) {
                st = elf_section_raw(img, &img->sections[shstrndx], &strings, &string_size, err);
                if (st)
                        return st;
                img->name_section = shstrndx;
        }
        /* Names that start before the last NUL are terminated. */
        while (string_size && strings[string_size - 1])
                string_size--;
        for (size_t i = 0; i < count; i++)
                img->sections[i].name = names[i] < string_size ? (const char *)strings + names[i] : "";
        return ST_OK;
}

static enum status read_program_headers(struct elf_image *img, const struct header *h, uint64_t count,
                                        struct error *err)
{
        const struct header_table t = { .what = "program",
                                        .offset = h->phoff,
                                        .count = count,
                                        .entry_size = h->phentsize,
                                        .entry_min = img->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr) };
        struct reader r;
        enum status st;

        if (!count || !h->phoff)
                return ST_OK;
        if (count > LIMIT_ELF_SEGMENTS)
                return error_at(err, ST_TOO_BIG, h->phoff,
                                "cannot read '%s': %" PRIu64 " segments, at most %d are read", img->name, count,
                                LIMIT_ELF_SEGMENTS);
        st = open_table_reader(img, &t, &r, err);
        if (st)
                return st;
        img->segments = calloc(count, sizeof *img->segments);
        if (!img->segments)
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++) {
                struct elf_segment *s = &img->segments[i];
                struct reader e;
                bool ok;

                if (!reader_sub(&r, h->phentsize, &e))
                        return reader_error(&r, err, "program header");
                ok = reader_u32(&e, &s->type) && (!img->is_64 || reader_u32(&e, &s->flags)) &&
                     read_elf_word(&e, img->is_64, &s->offset) && read_elf_word(&e, img->is_64, &s->address) &&
                     read_elf_word(&e, img->is_64, &s->physical) && read_elf_word(&e, img->is_64, &s->file_size) &&
                     read_elf_word(&e, img->is_64, &s->memory_size) && (img->is_64 || reader_u32(&e, &s->flags)) &&
                     read_elf_word(&e, img->is_64, &s->alignment);
                if (!ok)
                        return reader_error(&e, err, "program header");
        }
        img->segment_count = count;
        img->segments_offset = h->phoff;
        img->has_odd_program_headers = h->phentsize != (img->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr));
        return ST_OK;
}

/* ---- emptied sections ---- */

static int compare_section_starts(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

/* The PLT may be kept, to name its entries. */
static bool has_emptied_code(const struct elf_image *img)
{
        bool found = false;

        for (size_t i = 0; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (!elf_section_is_code(s) || starts_with(s->name, ".plt"))
                        continue;
                if (s->size || s->type != SHT_NOBITS)
                        return false;
                found = true;
        }
        return found;
}

/*
 * Some extractors of debuginfo set the size of all removed sections to 0. A section of code then gets the addresses up
 * to the next loaded section; the last one those up to the end of the address space.
 */
static enum status restore_emptied_sections(struct elf_image *img, struct error *err)
{
        _cleanup_free_ uint64_t *starts = NULL;
        size_t count = 0;

        if (!has_emptied_code(img))
                return ST_OK;
        starts = calloc(img->section_count, sizeof *starts);
        if (!starts)
                return error_no_memory(err);
        for (size_t i = 0; i < img->section_count; i++)
                if (img->sections[i].flags & SHF_ALLOC)
                        starts[count++] = img->sections[i].address;
        qsort(starts, count, sizeof *starts, compare_section_starts);
        for (size_t i = 0; i < img->section_count; i++) {
                struct elf_section *s = &img->sections[i];
                size_t next = find_lower_bound(k, 0, count, starts[k] <= s->address);

                if (elf_section_is_code(s) && !s->size)
                        s->size = (next < count ? starts[next] : UINT64_MAX) - s->address;
        }
        return ST_OK;
}

static void find_build_id(struct elf_image *img)
{
        struct elf_note_cursor c;
        struct build_id id;
        enum elf_build_id_kind kind;

        for (size_t i = 0; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];
                const uint8_t *bytes;
                size_t size;

                if (s->type != SHT_NOTE || elf_section_is_compressed(s) || elf_section_raw(img, s, &bytes, &size, NULL))
                        continue;
                elf_notes_begin(&c, bytes, size, s->alignment, img->big_endian);
                if (elf_notes_build_id(&c, &id, &kind) && kind != img->build_id_kind &&
                    img->build_id_kind != ELF_BUILD_ID_GNU) {
                        img->build_id = id;
                        img->build_id_kind = kind;
                }
                img->has_placeholder_id |= c.has_placeholder;
        }
        for (size_t i = 0; i < img->segment_count && !img->build_id_kind; i++) {
                const struct elf_segment *s = &img->segments[i];

                if (s->type != PT_NOTE || s->offset > img->size || s->file_size > img->size - s->offset)
                        continue;
                elf_notes_begin(&c, img->data + s->offset, s->file_size, 4, img->big_endian);
                if (elf_notes_build_id(&c, &id, &kind)) {
                        img->build_id = id;
                        img->build_id_kind = kind;
                }
                img->has_placeholder_id |= c.has_placeholder;
        }
}

static enum status elf_image_read(struct elf_image *img, struct error *err)
{
        struct header h;
        uint64_t section_count, segment_count;
        uint32_t shstrndx;
        enum status st = read_elf_header(img, &h, err);

        if (!st)
                st = read_extended_counts(img, &h, &section_count, &shstrndx, &segment_count, err);
        if (!st)
                st = read_program_headers(img, &h, segment_count, err);
        if (!st)
                st = read_section_headers(img, &h, section_count, shstrndx, err);
        if (!st)
                st = restore_emptied_sections(img, err);
        if (!st)
                find_build_id(img);
        return st;
}

enum status elf_image_from_memory(const void *data, size_t size, const char *name, struct elf_image *ret,
                                  struct error *err)
{
        struct elf_image img = { .data = data, .size = size, .name = strdup(name) };
        enum status st = img.name ? elf_image_read(&img, err) : error_no_memory(err);

        assert(data || !size);
        if (st)
                elf_image_close(&img);
        else
                *ret = img;
        return st;
}

enum status elf_image_from_fd(int fd, const char *name, struct elf_image *ret, struct error *err)
{
        struct file_map map;
        struct elf_image img;
        enum status st = file_map_fd(fd, LIMIT_OBJECT_BYTES, name, &map, err);

        assert(fd >= 0);
        if (st)
                return st;
        st = elf_image_from_memory(map.data, map.size, name, &img, err);
        if (st) {
                file_map_close(&map);
                return st;
        }
        img.map = map;
        *ret = img;
        return ST_OK;
}

enum status elf_image_open(const char *path, struct elf_image *ret, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        if (fd < 0)
                return errno == ENOENT ? error_set(err, ST_NOT_FOUND, "cannot open '%s': no such file", path)
                                       : error_os(err, errno, "cannot open '%s'", path);
        return elf_image_from_fd(fd, path, ret, err);
}

void elf_image_close(struct elf_image *img)
{
        free(img->segments);
        free(img->sections);
        free(img->name);
        file_map_close(&img->map);
        *img = (struct elf_image){ 0 };
}

bool elf_magic_at_fd(int fd)
{
        char magic[SELFMAG];

        return pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

enum status elf_image_check_complete(const struct elf_image *img, struct error *err)
{
        for (size_t i = 0; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];
                const uint8_t *bytes;
                size_t size;
                enum status st = s->type == SHT_NULL ? ST_OK : elf_section_raw(img, s, &bytes, &size, err);

                if (st)
                        return st;
        }
        for (size_t i = 0; i < img->segment_count && !img->section_count; i++) {
                const struct elf_segment *s = &img->segments[i];

                if (s->type == PT_LOAD && (s->offset > img->size || s->file_size > img->size - s->offset))
                        return error_at(err, ST_BAD_DATA, img->size,
                                        "cannot read '%s': cut off: segment %zu (0x%" PRIx64 " bytes at 0x%" PRIx64
                                        ") ends past the file's 0x%zx bytes",
                                        img->name, i, s->file_size, s->offset, img->size);
        }
        return ST_OK;
}

bool elf_image_bytes_at(const struct elf_image *img, uint64_t address, uint64_t n, const uint8_t **ret)
{
        for (size_t i = 0; i < img->segment_count; i++) {
                const struct elf_segment *s = &img->segments[i];
                uint64_t skip = address - s->address;

                if (s->type != PT_LOAD || address < s->address || skip > s->file_size || n > s->file_size - skip)
                        continue;
                if (s->offset > img->size || skip > img->size - s->offset || n > img->size - s->offset - skip)
                        continue;
                *ret = img->data + s->offset + skip;
                return true;
        }
        return false;
}
