/* SPDX-License-Identifier: Apache-2.0 */
/* Classifies a file: code, quality of its symbols, links to other files. */
#include <string.h>

#include "common/reader.h"
#include "common/text.h"
#include "elf-image/elf_identity.h"

static bool has_content(const struct elf_image *img, const char *name)
{
        const struct elf_section *s = elf_image_section(img, name);

        return s && elf_section_has_content(s);
}

/*
 * A split debug file may keep the contents of the PLT to name its entries; that alone does not make it an executable.
 */
static bool has_code(const struct elf_image *img)
{
        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (elf_section_is_code(s) && elf_section_has_content(s) && !starts_with(s->name, ".plt"))
                        return true;
        }
        for (size_t i = 0; i < img->segment_count && !img->section_count; i++) {
                if (img->segments[i].type == PT_LOAD && (img->segments[i].flags & PF_X) && img->segments[i].file_size)
                        return true;
        }
        return false;
}

static bool defines_functions(const struct elf_image *img, uint32_t type)
{
        struct elf_symbol_cursor c;
        struct elf_symbol sym;

        if (elf_symbols_begin_type(img, type, &c, NULL))
                return false;
        while (elf_symbols_next(&c, &sym)) {
                if (elf_symbol_is_function(&sym))
                        return true;
        }
        return false;
}

enum symbol_quality elf_image_quality(const struct elf_image *img)
{
        if (has_content(img, ".debug_info") || has_content(img, ".zdebug_info"))
                return QUALITY_DWARF;
        if (has_content(img, ".debug_line") || has_content(img, ".zdebug_line"))
                return QUALITY_LINES;
        if (has_content(img, ".gopclntab") || has_content(img, ".data.rel.ro.gopclntab"))
                return QUALITY_GO_PCLNTAB;
        if (defines_functions(img, SHT_SYMTAB))
                return QUALITY_SYMTAB;
        if (has_content(img, ".gnu_debugdata"))
                return QUALITY_MINIDEBUGINFO;
        return defines_functions(img, SHT_DYNSYM) ? QUALITY_DYNSYM : QUALITY_NONE;
}

enum elf_image_kind elf_image_kind(const struct elf_image *img)
{
        enum symbol_quality quality = elf_image_quality(img);
        unsigned kind = has_code(img) ? ELF_KIND_EXECUTABLE : 0;

        if (quality >= QUALITY_LINES || (!kind && quality > QUALITY_NONE))
                kind |= ELF_KIND_DEBUGINFO;
        return (enum elf_image_kind)kind;
}

bool elf_image_is_supplement(const struct elf_image *img)
{
        const struct elf_section *info = elf_image_section(img, ".debug_info"),
                                 *text = elf_image_section(img, ".debug_str");

        for (size_t i = 0; i < img->section_count; i++)
                if (img->sections[i].flags & SHF_EXECINSTR)
                        return false;
        return !img->segment_count &&
               ((info && elf_section_has_content(info)) || (text && elf_section_has_content(text)));
}

/* Open a reader over a small uncompressed section. */
static enum status open_linked_file(const struct elf_image *img, const char *name, struct reader *ret,
                                    struct error *err)
{
        const struct elf_section *s = elf_image_section(img, name);
        const uint8_t *bytes;
        size_t size;
        enum status st;

        if (!s || !elf_section_has_content(s))
                return error_set(err, ST_NOT_FOUND, "'%s' has no section '%s'", img->name, name);
        st = elf_section_raw(img, s, &bytes, &size, err);
        if (st)
                return st;
        reader_init(ret, bytes, size);
        ret->base = s->offset;
        ret->big_endian = img->big_endian;
        return ST_OK;
}

enum status elf_image_debuglink(const struct elf_image *img, const char **name_ret, uint32_t *crc_ret,
                                struct error *err)
{
        struct reader r;
        const char *name;
        uint32_t crc;
        enum status st = open_linked_file(img, ".gnu_debuglink", &r, err);

        if (st)
                return st;
        if (!reader_cstr(&r, &name) || !reader_skip(&r, -r.pos & 3) || !reader_u32(&r, &crc))
                return reader_error(&r, err, ".gnu_debuglink");
        *name_ret = name;
        *crc_ret = crc;
        return ST_OK;
}

/* DWARF 5, 7.3.6. */
struct debug_sup {
        uint8_t is_supplementary;
        const char *path;
        struct build_id checksum;
};

static enum status read_debug_sup(const struct elf_image *img, struct debug_sup *ret, struct error *err)
{
        struct reader r;
        uint16_t version;
        uint64_t size;
        const uint8_t *bytes;
        enum status st = open_linked_file(img, ".debug_sup", &r, err);

        if (st)
                return st;
        if (!reader_u16(&r, &version) || !reader_u8(&r, &ret->is_supplementary) || !reader_cstr(&r, &ret->path) ||
            !reader_uleb128(&r, &size) || !reader_bytes(&r, size, &bytes) ||
            !build_id_from_bytes(&ret->checksum, bytes, size))
                return reader_error(&r, err, ".debug_sup");
        if (version != 5)
                return error_set(err, ST_UNSUPPORTED, ".debug_sup of '%s' has version %u", img->name, version);
        return ST_OK;
}

static enum status debug_sup_link(const struct elf_image *img, const char **path_ret, struct build_id *id_ret,
                                  struct error *err)
{
        struct debug_sup s;
        enum status st = read_debug_sup(img, &s, err);

        if (st)
                return st;
        if (s.is_supplementary)
                return error_set(err, ST_NOT_FOUND, "'%s' is itself a supplementary file", img->name);
        *path_ret = s.path;
        *id_ret = s.checksum;
        return ST_OK;
}

bool elf_image_is_supplement_of(const struct elf_image *img, const struct build_id *id)
{
        struct debug_sup s;
        const struct build_id *own = &img->build_id;

        if (read_debug_sup(img, &s, NULL) == ST_OK) {
                if (!s.is_supplementary)
                        return false;
                own = &s.checksum;
        }
        return !id->size || !own->size || build_id_equal(id, own);
}

bool elf_image_supplement_id(const struct elf_image *img, struct build_id *ret)
{
        struct debug_sup s;

        if (read_debug_sup(img, &s, NULL) == ST_OK) {
                if (s.is_supplementary)
                        *ret = s.checksum;
                return s.is_supplementary;
        }
        if (img->build_id.size)
                *ret = img->build_id;
        return img->build_id.size > 0;
}

enum status elf_image_altlink(const struct elf_image *img, const char **path_ret, struct build_id *id_ret,
                              struct error *err)
{
        struct reader r;
        const char *path;
        const uint8_t *bytes;
        size_t left;
        enum status st = open_linked_file(img, ".gnu_debugaltlink", &r, err);

        if (st == ST_NOT_FOUND)
                return debug_sup_link(img, path_ret, id_ret, err);
        if (st)
                return st;
        if (!reader_cstr(&r, &path))
                return reader_error(&r, err, ".gnu_debugaltlink");
        left = reader_left(&r);
        if (!reader_bytes(&r, left, &bytes) || !build_id_from_bytes(id_ret, bytes, left))
                return reader_error(&r, err, ".gnu_debugaltlink");
        *path_ret = path;
        return ST_OK;
}
