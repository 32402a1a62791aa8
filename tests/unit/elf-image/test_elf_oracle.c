/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares elf-image/ with libelf and libdw: section and program headers, notes, build-ids, links to other files,
 * symbols and decompressed sections of whole files.
 *
 *     test_elf_oracle [FILE...]     default: this program, libraries that it uses, and a copy of it with sections
 *                                   compressed by libelf
 *
 * Files that neither reader accepts are skipped. Prints every difference, and the time of both readers.
 */
#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"

enum facet { HEADERS, NOTES, BUILD_IDS, LINKS, SYMBOLS, UNPACKING, FACETS };

static const char *const facet_names[] = { "section and program headers", "notes",   "build-ids",
                                           "links to other files",        "symbols", "decompressed sections" };

struct sums {
        uint64_t files, passed_over, compared[FACETS], differ[FACETS];
        int64_t open_ns[2], link_ns[2], unpack_ns[2]; /* ours, theirs */
        uint64_t unpacked_bytes, zstd_sections;       /* zstd_sections: not supported by libelf before 0.189 */
};

/* One file, opened by both readers. */
struct both {
        const char *path;
        struct elf_image img;
        Elf *elf;
        Dwarf *dwarf;
        struct sums *sums;
};

PRINTF(3, 4) static void report_difference(struct both *b, enum facet facet, const char *fmt, ...)
{
        va_list args;

        if (b->sums->differ[facet]++ >= 10)
                return;
        printf("# %s: %s: ", b->path, facet_names[facet]);
        va_start(args, fmt);
        vprintf(fmt, args);
        va_end(args);
        printf("\n");
}

/* ---- headers ---- */

static bool is_same_section(const struct elf_section *s, const GElf_Shdr *h, const char *name)
{
        return s->type == h->sh_type && s->flags == h->sh_flags && s->address == h->sh_addr &&
               s->offset == h->sh_offset && s->size == h->sh_size && s->link == h->sh_link && s->info == h->sh_info &&
               s->entry_size == h->sh_entsize && s->alignment == h->sh_addralign &&
               strcmp(s->name, name ? name : "") == 0;
}

static void compare_headers(struct both *b)
{
        size_t sections = 0, segments = 0, names = 0;

        elf_getshdrnum(b->elf, &sections);
        elf_getphdrnum(b->elf, &segments);
        elf_getshdrstrndx(b->elf, &names);
        b->sums->compared[HEADERS] += sections + segments;
        if (sections != b->img.section_count || segments != b->img.segment_count || names != b->img.name_section)
                report_difference(b, HEADERS, "%zu sections and %zu segments, libelf %zu and %zu", b->img.section_count,
                                  b->img.segment_count, sections, segments);
        for (size_t i = 0; i < sections && i < b->img.section_count; i++) {
                Elf_Scn *scn = elf_getscn(b->elf, i);
                GElf_Shdr h;

                if (!gelf_getshdr(scn, &h) ||
                    !is_same_section(&b->img.sections[i], &h, elf_strptr(b->elf, names, h.sh_name)))
                        report_difference(b, HEADERS, "section %zu", i);
        }
        for (size_t i = 0; i < segments && i < b->img.segment_count; i++) {
                const struct elf_segment *s = &b->img.segments[i];
                GElf_Phdr h;

                if (!gelf_getphdr(b->elf, (int)i, &h) || s->type != h.p_type || s->flags != h.p_flags ||
                    s->offset != h.p_offset || s->address != h.p_vaddr || s->physical != h.p_paddr ||
                    s->file_size != h.p_filesz || s->memory_size != h.p_memsz || s->alignment != h.p_align)
                        report_difference(b, HEADERS, "segment %zu", i);
        }
}

/* ---- notes and links ---- */

static void compare_note_section(struct both *b, const struct elf_section *s, Elf_Data *data)
{
        struct elf_note_cursor c;
        struct elf_note note;
        const uint8_t *bytes;
        size_t size, at = 0, count = 0;

        if (elf_section_raw(&b->img, s, &bytes, &size, NULL) || !size)
                return;
        elf_notes_begin(&c, bytes, size, s->alignment, b->img.big_endian);
        for (;; count++) {
                size_t name_at = 0, desc_at = 0;
                GElf_Nhdr h = { 0 };
                bool ours = elf_notes_next(&c, &note),
                     theirs = (at = gelf_getnote(data, at, &h, &name_at, &desc_at)) > 0;

                if (!ours && !theirs)
                        break;
                if (ours != theirs || note.type != h.n_type || note.name_size != h.n_namesz ||
                    note.desc_size != h.n_descsz || note.desc != bytes + desc_at ||
                    memcmp(note.name, bytes + name_at, note.name_size) != 0) {
                        report_difference(b, NOTES, "note %zu of %s", count, s->name);
                        break;
                }
        }
        b->sums->compared[NOTES] += count;
}

static void compare_notes(struct both *b)
{
        for (size_t i = 1; i < b->img.section_count; i++) {
                Elf_Data *data;

                if (b->img.sections[i].type != SHT_NOTE)
                        continue;
                data = elf_getdata(elf_getscn(b->elf, i), NULL);
                if (data)
                        compare_note_section(b, &b->img.sections[i], data);
        }
}

static void compare_build_id(struct both *b)
{
        const void *id = NULL;
        ssize_t n = dwelf_elf_gnu_build_id(b->elf, &id);
        size_t ours = b->img.build_id_kind == ELF_BUILD_ID_GNU ? b->img.build_id.size : 0;

        b->sums->compared[BUILD_IDS] += n > 0;
        if (ours != (n > 0 ? (size_t)n : 0) || (ours && memcmp(id, b->img.build_id.bytes, ours) != 0))
                report_difference(b, BUILD_IDS, "%zu bytes, libdw %zd", ours, n);
}

static void compare_debuglink(struct both *b)
{
        const char *ours = NULL;
        GElf_Word their_crc = 0;
        uint32_t crc = 0;
        const char *theirs = dwelf_elf_gnu_debuglink(b->elf, &their_crc);
        bool has = elf_image_debuglink(&b->img, &ours, &crc, NULL) == ST_OK;

        b->sums->compared[LINKS] += theirs != NULL;
        if (has != (theirs != NULL) || (has && (crc != their_crc || strcmp(ours, theirs) != 0)))
                report_difference(b, LINKS, ".gnu_debuglink: %s, libdw %s", has ? ours : "none",
                                  theirs ? theirs : "none");
}

static void compare_altlink(struct both *b)
{
        const char *ours = NULL, *theirs = NULL;
        struct build_id id = { 0 };
        const void *their_id = NULL;
        int64_t start = monotonic_ns(), middle;
        bool has = elf_image_altlink(&b->img, &ours, &id, NULL) == ST_OK;
        ssize_t n;

        middle = monotonic_ns();
        b->dwarf = dwarf_begin_elf(b->elf, DWARF_C_READ, NULL);
        n = b->dwarf ? dwelf_dwarf_gnu_debugaltlink(b->dwarf, &theirs, &their_id) : 0;
        b->sums->link_ns[0] += middle - start;
        b->sums->link_ns[1] += monotonic_ns() - middle;
        if (!b->dwarf) /* no DWARF */
                return;
        b->sums->compared[LINKS] += n > 0;
        if (has != (n > 0) ||
            (has && (strcmp(ours, theirs) != 0 || id.size != (size_t)n || memcmp(id.bytes, their_id, id.size) != 0)))
                report_difference(b, LINKS, ".gnu_debugaltlink: %s, libdw %s", has ? ours : "none",
                                  n > 0 ? theirs : "none");
}

/* ---- symbols ---- */

static Elf_Data *find_wide_index_data(struct both *b, const struct elf_section *table)
{
        for (size_t i = 1; i < b->img.section_count; i++)
                if (b->img.sections[i].type == SHT_SYMTAB_SHNDX && b->img.sections[i].link == table->index)
                        return elf_getdata(elf_getscn(b->elf, i), NULL);
        return NULL;
}

static uint32_t widen_their_section(uint16_t number, uint32_t index)
{
        if (number == SHN_XINDEX)
                return index;
        return number < SHN_LORESERVE ? number : ELF_SECTION_RESERVED | number;
}

static void compare_symbol_table(struct both *b, const struct elf_section *s)
{
        Elf_Data *data = elf_getdata(elf_getscn(b->elf, s->index), NULL), *wide = find_wide_index_data(b, s);
        struct elf_symbol_cursor c;
        struct elf_symbol sym;
        int i = 0;

        if (s->type == SHT_NOBITS || !data || elf_symbols_begin(&b->img, s, &c, NULL))
                return;
        for (; elf_symbols_next(&c, &sym); i++) {
                GElf_Sym theirs;
                Elf32_Word index = 0;
                const char *name;

                if (!gelf_getsymshndx(data, wide, i, &theirs, &index)) {
                        report_difference(b, SYMBOLS, "symbol %d of %s is missing in libelf", i, s->name);
                        return;
                }
                name = elf_strptr(b->elf, s->link, theirs.st_name);
                if (sym.value != theirs.st_value || sym.size != theirs.st_size ||
                    sym.type != GELF_ST_TYPE(theirs.st_info) || sym.binding != GELF_ST_BIND(theirs.st_info) ||
                    sym.section != widen_their_section(theirs.st_shndx, index) ||
                    strcmp(sym.name, name ? name : "") != 0)
                        report_difference(b, SYMBOLS, "symbol %d of %s", i, s->name);
        }
        b->sums->compared[SYMBOLS] += (uint64_t)i;
        if (i != (int)(data->d_size / gelf_fsize(b->elf, ELF_T_SYM, 1, EV_CURRENT)))
                report_difference(b, SYMBOLS, "%s has %d symbols", s->name, i);
}

static void compare_symbols(struct both *b)
{
        for (size_t i = 1; i < b->img.section_count; i++)
                if (b->img.sections[i].type == SHT_SYMTAB || b->img.sections[i].type == SHT_DYNSYM)
                        compare_symbol_table(b, &b->img.sections[i]);
}

/* ---- decompression ---- */

static bool is_zstd_section(Elf_Scn *scn)
{
        GElf_Chdr h;

        return gelf_getchdr(scn, &h) && h.ch_type == 2; /* ELFCOMPRESS_ZSTD */
}

static void compare_unpacked_section(struct both *b, const struct elf_section *s, Elf_Scn *scn)
{
        _cleanup_elf_section_data_ struct elf_section_data ours = { 0 };
        bool is_zstd = is_zstd_section(scn);
        int64_t start = monotonic_ns(), middle;
        enum status st = elf_section_data(&b->img, s, LIMIT_SECTION_UNPACKED_BYTES, &ours, NULL);
        Elf_Data *theirs = NULL;

        middle = monotonic_ns();
        if (((s->flags & SHF_COMPRESSED) ? elf_compress(scn, 0, 0) : elf_compress_gnu(scn, 0, 0)) >= 0)
                theirs = elf_getdata(scn, NULL);
        if (!theirs && is_zstd) {
                b->sums->zstd_sections += st == ST_OK;
                return;
        }
        b->sums->unpack_ns[0] += middle - start;
        b->sums->unpack_ns[1] += monotonic_ns() - middle;
        b->sums->unpacked_bytes += ours.size;
        b->sums->compared[UNPACKING]++;
        if ((st == ST_OK) != (theirs != NULL) ||
            (theirs && (ours.size != theirs->d_size || memcmp(ours.bytes, theirs->d_buf, ours.size) != 0)))
                report_difference(b, UNPACKING, "%s: status %d and %zu bytes, libelf %zu", s->name, st, ours.size,
                                  theirs ? theirs->d_size : 0);
}

static void compare_unpacked(struct both *b)
{
        for (size_t i = 1; i < b->img.section_count; i++) {
                const struct elf_section *s = &b->img.sections[i];

                if (elf_section_has_content(s) && elf_section_is_compressed(s))
                        compare_unpacked_section(b, s, elf_getscn(b->elf, i));
        }
}

/* ---- files ---- */

static void close_both(struct both *b)
{
        dwarf_end(b->dwarf);
        elf_end(b->elf);
        elf_image_close(&b->img);
}

/* Up to the build-id, which is all that is read of thousands of files. The first time brings the file into memory. */
static bool open_both(struct both *b, int fd)
{
        struct error err = { 0 };
        int64_t start, middle;
        const void *id;
        enum status st = elf_image_from_fd(fd, b->path, &b->img, &err);
        bool theirs;

        elf_image_close(&b->img);
        start = monotonic_ns();
        st = elf_image_from_fd(fd, b->path, &b->img, &err);
        middle = monotonic_ns();
        b->elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
        theirs = b->elf && elf_kind(b->elf) == ELF_K_ELF;
        if (theirs)
                dwelf_elf_gnu_build_id(b->elf, &id);
        b->sums->open_ns[0] += middle - start;
        b->sums->open_ns[1] += monotonic_ns() - middle;
        if (st && theirs)
                report_difference(b, HEADERS, "%s", err.text);
        return st == ST_OK && theirs;
}

static void compare_file(const char *path, int fd, struct sums *sums)
{
        struct both b = { .path = path, .sums = sums };

        if (fd < 0 || !open_both(&b, fd)) {
                sums->passed_over++;
                close_both(&b);
                return;
        }
        sums->files++;
        compare_headers(&b);
        compare_notes(&b);
        compare_build_id(&b);
        compare_debuglink(&b);
        compare_symbols(&b);
        compare_unpacked(&b);
        compare_altlink(&b);
        close_both(&b);
}

/* ---- a copy with compressed sections ---- */

static bool is_worth_compressing(const GElf_Shdr *h)
{
        return h->sh_type == SHT_PROGBITS && h->sh_size && !(h->sh_flags & (SHF_ALLOC | SHF_COMPRESSED));
}

/* Copy of this program, written by libelf. @return a descriptor, -1 on failure */
static int make_compressed_copy(void)
{
        _cleanup_file_map_ struct file_map self = { 0 };
        int fd = memfd_create("compressed", MFD_CLOEXEC);
        Elf_Scn *scn = NULL;
        bool ok = fd >= 0 && file_map_open("/proc/self/exe", LIMIT_OBJECT_BYTES, &self, NULL) == ST_OK &&
                  file_write_all(fd, self.data, self.size, "copy", NULL) == ST_OK;
        Elf *elf = ok ? elf_begin(fd, ELF_C_RDWR, NULL) : NULL;

        while (ok && (scn = elf_nextscn(elf, scn))) {
                GElf_Shdr h;

                ok = gelf_getshdr(scn, &h) &&
                     (!is_worth_compressing(&h) || elf_compress(scn, ELFCOMPRESS_ZLIB, ELF_CHF_FORCE) >= 0);
        }
        ok = ok && elf_update(elf, ELF_C_WRITE) > 0;
        elf_end(elf);
        return ok ? fd : -1;
}

static const char *file_of(void *function)
{
        Dl_info info;

        return dladdr(function, &info) ? info.dli_fname : "/proc/self/exe";
}

static void compare_path(const char *path, struct sums *sums)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        compare_file(path, fd, sums);
}

static void compare_own_files(struct sums *sums)
{
        _cleanup_close_ int compressed = make_compressed_copy();

        compare_path("/proc/self/exe", sums);
        compare_path(file_of((void *)fopen), sums);
        compare_path(file_of((void *)dwarf_begin_elf), sums);
        compare_file("compressed copy", compressed, sums);
        sums->passed_over += !sums->compared[UNPACKING]; /* the copy could not be made */
}

static double per_file(const struct sums *sums, int64_t ns)
{
        return sums->files ? (double)ns / 1e3 / (double)sums->files : 0;
}

int main(int argc, char **argv)
{
        struct sums sums = { 0 };
        bool ok;

        elf_version(EV_CURRENT);
        if (argc == 1)
                compare_own_files(&sums);
        for (int i = 1; i < argc; i++)
                compare_path(argv[i], &sums);
        for (size_t i = 0; i < FACETS; i++)
                printf("%s %zu - %s: %" PRIu64 " compared, %" PRIu64 " differ\n", sums.differ[i] ? "not ok" : "ok",
                       i + 1, facet_names[i], sums.compared[i], sums.differ[i]);
        ok = sums.files && (argc > 1 || !sums.passed_over);
        printf("%s %d - %" PRIu64 " files, %" PRIu64 " passed over\n", ok ? "ok" : "not ok", FACETS + 1, sums.files,
               sums.passed_over);
        printf("# opening, to the build-id: %.1f us a file, libelf %.1f us; links: %.1f us, libdw %.1f us\n",
               per_file(&sums, sums.open_ns[0]), per_file(&sums, sums.open_ns[1]), per_file(&sums, sums.link_ns[0]),
               per_file(&sums, sums.link_ns[1]));
        printf("# decompression: %.0f MB/s, libelf %.0f MB/s; %" PRIu64
               " sections of zstd are read by elf-image/ only\n",
               (double)sums.unpacked_bytes * 1e3 / (double)(sums.unpack_ns[0] + 1),
               (double)sums.unpacked_bytes * 1e3 / (double)(sums.unpack_ns[1] + 1), sums.zstd_sections);
        printf("1..%d\n", FACETS + 1);
        for (size_t i = 0; i < FACETS; i++)
                ok &= !sums.differ[i];
        return !ok;
}
