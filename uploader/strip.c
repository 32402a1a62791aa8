/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stripped file has three parts: everything up to the end of the loaded content, copied byte for byte; the kept
 * sections that are not loaded, moved together; .gnu_debuglink, .shstrtab and the section headers, written new.
 * Sections get new numbers, and sh_link and sh_info are translated.
 *
 * strip_file() writes it to a temporary file with the metadata of the original, and renames it over the original if
 * that was not replaced meanwhile. The checksum in .gnu_debuglink is computed by splitting the program again: the
 * split file that was uploaded is not kept, but is reproducible.
 *
 * Order: layout, headers, contents, strip_write(), replacing a file.
 */
#include "uploader/strip.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <libdeflate.h>

#include "common/memory/buf.h"
#include "common/limits.h"
#include "common/text.h"
#include "uploader/elf_headers.h"
#include "uploader/split.h"

struct strip_layout {
        const struct elf_image *img;
        uint32_t *numbers; /* section numbers in the new file; 0: left out */
        uint64_t *offsets;
        uint32_t count;      /* sections of the new file, including the null section */
        uint64_t loaded_end; /* end of the content that stays at its offset */
        uint64_t at;         /* end of the layout so far */
};

/* Whether a section is not loaded and only used for debugging. */
static bool is_debug_only_section(const struct elf_image *img, const struct elf_section *s)
{
        static const char *const prefixes[] = { ".debug_",           ".zdebug_",       ".gdb_index", ".gnu_debuglink",
                                                ".gnu_debugaltlink", ".gnu.debuglto_", ".stab",      ".line" };
        const struct elf_section *symbols = elf_image_section_of_type(img, SHT_SYMTAB);

        if (s->flags & SHF_ALLOC)
                return false;
        if (s->type == SHT_SYMTAB || s->type == SHT_SYMTAB_SHNDX || s->type == SHT_REL || s->type == SHT_RELA ||
            s->type == SHT_GROUP || (symbols && s->index == symbols->link) || s->index == img->name_section)
                return true;
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
                if (starts_with(s->name, prefixes[i]))
                        return true;
        return false;
}

/* Whether there is anything to remove. */
static bool strip_is_useful(const struct elf_image *img)
{
        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (s->type == SHT_SYMTAB || (is_debug_only_section(img, s) && starts_with(s->name, ".debug_")) ||
                    starts_with(s->name, ".zdebug_"))
                        return true;
        }
        return false;
}

static uint64_t max_offset(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

static enum status lay_out_stripped(struct strip_layout *x, struct error *err)
{
        const struct elf_image *img = x->img;
        size_t header = img->is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
        size_t program_header = img->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
        uint64_t end = max_offset(header, img->segments_offset + img->segment_count * program_header);

        for (size_t i = 0; i < img->segment_count; i++)
                end = max_offset(end, img->segments[i].offset + img->segments[i].file_size);
        for (size_t i = 1; i < img->section_count; i++)
                if ((img->sections[i].flags & SHF_ALLOC) && elf_section_has_content(&img->sections[i]))
                        end = max_offset(end, img->sections[i].offset + img->sections[i].size);
        if (end > img->size)
                return error_set(err, ST_BAD_DATA, "cannot strip '%s': it is truncated", img->name);
        x->loaded_end = x->at = end;
        x->count = 1;
        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (is_debug_only_section(img, s))
                        continue;
                x->numbers[i] = x->count++;
                x->offsets[i] = s->offset;
                if ((s->flags & SHF_ALLOC) || !elf_section_has_content(s))
                        continue;
                x->offsets[i] = x->at = align_file_offset(x->at, s->alignment);
                x->at += s->size;
        }
        return ST_OK;
}

static uint32_t renumber_section(const struct strip_layout *x, uint32_t number)
{
        assert(x->count <= x->img->section_count);
        return number < x->img->section_count ? x->numbers[number] : 0;
}

/* Whether sh_info is a section number. */
static bool is_info_section_number(const struct elf_section *s)
{
        return s->type == SHT_REL || s->type == SHT_RELA || (s->flags & SHF_INFO_LINK);
}

static uint32_t add_section_name(struct buf *names, const char *name)
{
        uint32_t at = (uint32_t)names->size;

        if (!*name)
                return 0;
        buf_append(names, name, strlen(name) + 1);
        return at;
}

static GElf_Shdr make_stripped_section(const struct strip_layout *x, const struct elf_section *s, struct buf *names)
{
        return (GElf_Shdr){ .sh_name = add_section_name(names, s->name),
                            .sh_type = s->type,
                            .sh_flags = s->flags,
                            .sh_addr = s->address,
                            .sh_offset = x->offsets[s->index],
                            .sh_size = s->size,
                            .sh_link = renumber_section(x, s->link),
                            .sh_info = is_info_section_number(s) ? renumber_section(x, s->info) : s->info,
                            .sh_addralign = s->alignment,
                            .sh_entsize = s->entry_size };
}

/* Fill in the kept sections, then .gnu_debuglink and .shstrtab. */
static void fill_stripped_sections(const struct strip_layout *x, GElf_Shdr *sections, struct buf *names,
                                   uint64_t link_at, uint64_t link_size)
{
        const struct elf_image *img = x->img;

        for (size_t i = 1; i < img->section_count; i++)
                if (x->numbers[i])
                        sections[x->numbers[i]] = make_stripped_section(x, &img->sections[i], names);
        sections[x->count] = (GElf_Shdr){ .sh_name = add_section_name(names, ".gnu_debuglink"),
                                          .sh_type = SHT_PROGBITS,
                                          .sh_offset = link_at,
                                          .sh_size = link_size,
                                          .sh_addralign = 4 };
        sections[x->count + 1] = (GElf_Shdr){ .sh_name = add_section_name(names, ".shstrtab"),
                                              .sh_type = SHT_STRTAB,
                                              .sh_offset = link_at + link_size,
                                              .sh_addralign = 1 };
        sections[x->count + 1].sh_size = names->size;
}

static void fill_program_headers(const struct elf_image *img, GElf_Phdr *programs)
{
        for (size_t i = 0; i < img->segment_count; i++)
                programs[i] = make_program_header(&img->segments[i]);
}

static enum status write_stripped_at(int fd, const void *data, size_t n, uint64_t offset, struct error *err)
{
        const char *bytes = data;

        while (n) {
                ssize_t done = pwrite(fd, bytes, n, (off_t)offset);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0)
                        return error_os(err, errno, "cannot write the stripped file");
                bytes += done;
                offset += (uint64_t)done;
                n -= (size_t)done;
        }
        return ST_OK;
}

/* Write everything but the ELF header, which libelf has written. */
static enum status write_stripped_contents(const struct strip_layout *x, int fd, struct error *err)
{
        const struct elf_image *img = x->img;
        size_t header = img->is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
        enum status st = write_stripped_at(fd, img->data + header, x->loaded_end - header, header, err);

        for (size_t i = 1; !st && i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (x->numbers[i] && !(s->flags & SHF_ALLOC) && elf_section_has_content(s))
                        st = write_stripped_at(fd, img->data + s->offset, s->size, x->offsets[i], err);
        }
        return st;
}

static void append_debuglink(const struct elf_image *img, const char *name, uint32_t crc, struct buf *link)
{
        const uint32_t value = img->big_endian ? htobe32(crc) : htole32(crc);

        buf_append(link, name, strlen(name) + 1);
        while (link->size % 4)
                buf_append_u8(link, 0);
        buf_append(link, &value, sizeof value);
}

static enum status write_stripped(const struct strip_layout *x, const char *debug_name, uint32_t debug_crc, int fd,
                                  struct error *err)
{
        const struct elf_image *img = x->img;
        _cleanup_buf_ struct buf link, names;
        _cleanup_free_ GElf_Phdr *programs = calloc(img->segment_count + 1, sizeof *programs);
        _cleanup_free_ GElf_Shdr *sections = calloc(x->count + 2, sizeof *sections);
        uint64_t link_at = align_file_offset(x->at, 4), names_at;
        struct elf_headers h = { .program_offset = img->segments_offset,
                                 .programs = programs,
                                 .program_count = img->segment_count,
                                 .sections = sections,
                                 .section_count = x->count + 2,
                                 .name_section = x->count + 1 };
        enum status st;

        buf_init(&link, KiB(8));
        buf_init(&names, MiB(16));
        if (!programs || !sections)
                return error_no_memory(err);
        fill_program_headers(img, programs);
        append_debuglink(img, debug_name, debug_crc, &link);
        buf_append_u8(&names, 0);
        fill_stripped_sections(x, sections, &names, link_at, link.size);
        if (link.failed || names.failed)
                return error_no_memory(err);
        names_at = link_at + link.size;
        h.section_offset = align_file_offset(names_at + names.size, 8);
        st = elf_headers_write(img, &h, fd, err);
        if (!st)
                st = write_stripped_contents(x, fd, err);
        if (!st)
                st = write_stripped_at(fd, link.data, link.size, link_at, err);
        return st ? st : write_stripped_at(fd, names.data, names.size, names_at, err);
}

enum status strip_write(const struct elf_image *img, const char *debug_name, uint32_t debug_crc, int fd,
                        struct error *err)
{
        struct strip_layout x = { .img = img };
        enum status st;

        if ((img->type != ET_EXEC && img->type != ET_DYN) || img->section_count < 2 ||
            img->section_count >= SHN_LORESERVE - 2 || img->has_odd_program_headers)
                return error_set(err, ST_UNSUPPORTED, "cannot strip '%s': it is not a program with section headers",
                                 img->name);
        st = elf_image_check_complete(img, err);
        if (st)
                return st;
        x.numbers = calloc(img->section_count, sizeof *x.numbers);
        x.offsets = calloc(img->section_count, sizeof *x.offsets);
        st = x.numbers && x.offsets ? lay_out_stripped(&x, err) : error_no_memory(err);
        if (!st)
                st = write_stripped(&x, debug_name, debug_crc, fd, err);
        free(x.numbers);
        free(x.offsets);
        return st;
}

/* ---- replacing a file ---- */

#define XATTR_NAMES_MAX KiB(64)
#define XATTR_VALUE_MAX KiB(64)

/* CRC-32 of the split file, which is reproducible and thus equal to the uploaded one. */
static enum status compute_debug_crc(const struct elf_image *img, uint32_t *ret, struct error *err)
{
        struct split_range ranges[SPLIT_GO_RANGES_MAX];
        _cleanup_file_map_ struct file_map map = { 0 };
        _cleanup_close_ int fd = -1;
        uint64_t size;
        enum status st = split_create_temporary(&fd, err);

        if (!st)
                st = split_write(img, ranges, split_find_go_ranges(img, ranges), fd, &size, err);
        if (!st)
                st = file_map_fd(fd, LIMIT_OBJECT_BYTES, "split", &map, err);
        if (!st)
                *ret = (uint32_t)libdeflate_crc32(0, map.data, map.size);
        return st;
}

static enum status copy_extended_attributes(int from, int to, const char *path, struct error *err)
{
        _cleanup_free_ char *names = malloc(XATTR_NAMES_MAX), *value = malloc(XATTR_VALUE_MAX);
        ssize_t n = names && value ? flistxattr(from, names, XATTR_NAMES_MAX) : -1;

        if (!names || !value)
                return error_no_memory(err);
        if (n < 0)
                return errno == ENOTSUP ? ST_OK : error_os(err, errno, "cannot read the attributes of '%s'", path);
        for (const char *name = names; name < names + n; name += strlen(name) + 1) {
                ssize_t size = fgetxattr(from, name, value, XATTR_VALUE_MAX);

                if (size < 0 ||
                    (fsetxattr(to, name, value, (size_t)size, 0) < 0 && strcmp(name, "security.selinux") != 0))
                        return error_os(err, errno, "cannot keep the attribute '%s' of '%s'", name, path);
        }
        return ST_OK;
}

/* Set the owner first: chown() clears set-user-id bits and capabilities. */
static enum status copy_file_metadata(int from, int to, const char *path, struct error *err)
{
        struct stat is;

        if (fstat(from, &is) < 0)
                return error_os(err, errno, "cannot stat '%s'", path);
        if ((is.st_uid != geteuid() || is.st_gid != getegid()) && fchown(to, is.st_uid, is.st_gid) < 0)
                return error_os(err, errno, "cannot keep the owner of '%s'", path);
        if (fchmod(to, is.st_mode & 07777) < 0)
                return error_os(err, errno, "cannot keep the permissions of '%s'", path);
        return copy_extended_attributes(from, to, path, err);
}

static enum status write_stripped_file(const struct elf_image *img, int from, const char *path, int to,
                                       struct error *err)
{
        char name[NAME_MAX + 8];
        uint32_t crc = 0;
        enum status st = compute_debug_crc(img, &crc, err);

        snprintf(name, sizeof name, "%.*s.debug", NAME_MAX, path_base(path));
        if (!st)
                st = strip_write(img, name, crc, to, err);
        return st ? st : copy_file_metadata(from, to, path, err);
}

static enum status set_replaced_error(const char *link, struct error *err)
{
        return error_set(err, ST_NOT_FOUND, "'%s' was replaced while it was uploaded; not stripped", link);
}

/* Whether the program was not rebuilt meanwhile. */
static bool is_program_unchanged(const char *path, const struct stat *was)
{
        struct stat is;

        return stat(path, &is) == 0 && is.st_dev == was->st_dev && is.st_ino == was->st_ino &&
               is.st_size == was->st_size && is.st_mtim.tv_sec == was->st_mtim.tv_sec &&
               is.st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

enum status strip_file(const char *link, const struct build_id *id, bool *done_ret, struct error *err)
{
        _cleanup_free_ char *path = realpath(link, NULL), *tmp = NULL;
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_close_ int from = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        struct stat opened;
        int to = -1;
        enum status st;

        if (from < 0 || fstat(from, &opened) < 0)
                return error_os(err, errno, "cannot open '%s'", link);
        st = elf_image_from_fd(from, path, &img, err);
        if (st)
                return st;
        if (!build_id_equal(&img.build_id, id))
                return set_replaced_error(link, err);
        *done_ret = strip_is_useful(&img);
        if (!*done_ret)
                return ST_OK;
        st = file_create_temporary(path, &tmp, &to, err);
        if (st)
                return st;
        st = write_stripped_file(&img, from, path, to, err);
        if (!st && fdatasync(to) < 0) /* slow, so before the last check */
                st = error_os(err, errno, "cannot sync '%s'", tmp);
        if (!st && !is_program_unchanged(path, &opened))
                st = set_replaced_error(link, err);
        if (!st)
                return file_publish(to, tmp, path, err);
        close(to);
        unlink(tmp);
        return st;
}
