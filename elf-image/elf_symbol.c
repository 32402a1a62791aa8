/* SPDX-License-Identifier: Apache-2.0 */
/* Symbol tables. Source: gABI chapter 4, "Symbol Table". */
#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"
#include "elf-image/elf_image.h"

/* Strings that start before the last NUL are terminated: found once, which saves a search per symbol. */
static size_t find_string_end(const uint8_t *strings, size_t size)
{
        const uint8_t *nul = size ? memrchr(strings, 0, size) : NULL;

        return nul ? (size_t)(nul - strings) + 1 : 0;
}

/* The SHT_SYMTAB_SHNDX section of this table, if it has one. */
static void find_wide_indices(const struct elf_image *img, const struct elf_section *s, struct elf_symbol_cursor *c)
{
        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *x = &img->sections[i];
                size_t size;

                if (x->type != SHT_SYMTAB_SHNDX || x->link != s->index)
                        continue;
                if (elf_section_raw(img, x, &c->sections, &size, NULL) == ST_OK)
                        c->section_words = size / sizeof(uint32_t);
                return;
        }
}

enum status elf_symbols_begin(const struct elf_image *img, const struct elf_section *s, struct elf_symbol_cursor *ret,
                              struct error *err)
{
        struct elf_symbol_cursor c = { .img = img };
        const struct elf_section *strings = elf_image_section_at(img, s->link);
        size_t entry_min = img->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
        size_t size;
        enum status st;

        if (s->type != SHT_SYMTAB && s->type != SHT_DYNSYM)
                return error_at(err, ST_BAD_DATA, s->offset, "section '%.64s' of '%s' is not a symbol table", s->name,
                                img->name);
        st = elf_section_raw(img, s, &c.entries, &size, err);
        if (st)
                return st;
        c.entry_size = s->entry_size ? s->entry_size : entry_min;
        if (c.entry_size < entry_min)
                return error_at(err, ST_BAD_DATA, s->offset,
                                "section '%.64s' of '%s' has entries of %zu bytes, %zu are needed", s->name, img->name,
                                c.entry_size, entry_min);
        c.count = size / c.entry_size;
        if (c.count > LIMIT_SYMBOLS)
                return error_at(err, ST_TOO_BIG, s->offset,
                                "section '%.64s' of '%s' has %zu symbols, at most %d are read", s->name, img->name,
                                c.count, LIMIT_SYMBOLS);
        if (strings) {
                st = elf_section_raw(img, strings, &c.strings, &c.string_size, err);
                if (st)
                        return st;
                c.string_size = find_string_end(c.strings, c.string_size);
        }
        find_wide_indices(img, s, &c);
        *ret = c;
        return ST_OK;
}

/* ---- without section headers ---- */

struct dynamic_table {
        uint64_t symbols, strings, string_size, entry_size, hash, gnu_hash; /* addresses; 0: absent */
        uint64_t soname;                                                    /* offset in the strings; 0: absent */
};

static bool read_dynamic_table(const struct elf_image *img, struct dynamic_table *ret)
{
        const struct elf_segment *s = NULL;
        struct reader r;

        for (size_t i = 0; !s && i < img->segment_count; i++)
                if (img->segments[i].type == PT_DYNAMIC)
                        s = &img->segments[i];
        if (!s || s->offset > img->size || s->file_size > img->size - s->offset)
                return false;
        reader_init(&r, img->data + s->offset, s->file_size);
        r.big_endian = img->big_endian;
        for (;;) {
                uint64_t tag, value;
                uint32_t tag32, value32;
                bool ok = img->is_64 ? reader_u64(&r, &tag) && reader_u64(&r, &value)
                                     : reader_u32(&r, &tag32) && reader_u32(&r, &value32);

                if (!ok)
                        break;
                if (!img->is_64) {
                        tag = tag32;
                        value = value32;
                }
                if (tag == DT_NULL)
                        break;
                if (tag == DT_SYMTAB)
                        ret->symbols = value;
                else if (tag == DT_STRTAB)
                        ret->strings = value;
                else if (tag == DT_STRSZ)
                        ret->string_size = value;
                else if (tag == DT_SYMENT)
                        ret->entry_size = value;
                else if (tag == DT_HASH)
                        ret->hash = value;
                else if (tag == DT_GNU_HASH)
                        ret->gnu_hash = value;
                else if (tag == DT_SONAME)
                        ret->soname = value;
        }
        return ret->symbols && ret->strings;
}

static bool read_word_at(const struct elf_image *img, uint64_t address, uint32_t *ret)
{
        const uint8_t *bytes;
        struct reader r;

        if (!elf_image_bytes_at(img, address, sizeof *ret, &bytes))
                return false;
        reader_init(&r, bytes, sizeof *ret);
        r.big_endian = img->big_endian;
        return reader_u32(&r, ret);
}

/* The symbols end with the chain of the last one that any bucket starts with. */
static uint64_t count_gnu_hash_symbols(const struct elf_image *img, uint64_t at)
{
        uint32_t buckets, first, bloom, last = 0, word = 0;
        uint64_t chains;

        if (!read_word_at(img, at, &buckets) || !read_word_at(img, at + 4, &first) ||
            !read_word_at(img, at + 8, &bloom) || buckets > LIMIT_SYMBOLS)
                return 0;
        at += 16 + (uint64_t)bloom * (img->is_64 ? 8 : 4);
        chains = at + (uint64_t)buckets * sizeof word;
        for (uint32_t i = 0; i < buckets && read_word_at(img, at + (uint64_t)i * sizeof word, &word); i++)
                last = word > last ? word : last;
        if (last < first)
                return first;
        while (last < LIMIT_SYMBOLS && read_word_at(img, chains + (uint64_t)(last - first) * sizeof word, &word)) {
                last++;
                if (word & 1)
                        break;
        }
        return last;
}

/* The hash tables tell the number; without one the string table usually follows. */
static uint64_t count_dynamic_symbols(const struct elf_image *img, const struct dynamic_table *t)
{
        uint64_t count = t->gnu_hash ? count_gnu_hash_symbols(img, t->gnu_hash) : 0;
        uint32_t chains;

        if (!count && t->hash && read_word_at(img, t->hash + 4, &chains))
                count = chains;
        if (!count && t->strings > t->symbols)
                count = (t->strings - t->symbols) / t->entry_size;
        return count;
}

/* The dynamic symbols that PT_DYNAMIC refers to, for files without section headers. */
static enum status begin_dynamic_symbols(const struct elf_image *img, struct elf_symbol_cursor *ret, struct error *err)
{
        size_t entry_min = img->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
        struct elf_symbol_cursor c = { .img = img };
        struct dynamic_table t = { .entry_size = entry_min };
        uint64_t count;

        if (!read_dynamic_table(img, &t) || t.entry_size < entry_min || t.entry_size > UINT16_MAX)
                return error_set(err, ST_NOT_FOUND, "'%s' has no dynamic symbols", img->name);
        count = count_dynamic_symbols(img, &t);
        if (count > LIMIT_SYMBOLS)
                return error_set(err, ST_TOO_BIG, "'%s' has %" PRIu64 " dynamic symbols, at most %d are read",
                                 img->name, count, LIMIT_SYMBOLS);
        if (!count || !elf_image_bytes_at(img, t.symbols, count * t.entry_size, &c.entries) ||
            !elf_image_bytes_at(img, t.strings, t.string_size, &c.strings))
                return error_set(err, ST_NOT_FOUND, "the dynamic symbols of '%s' are not in the file", img->name);
        c.count = count;
        c.entry_size = t.entry_size;
        c.string_size = find_string_end(c.strings, t.string_size);
        *ret = c;
        return ST_OK;
}

const char *elf_image_soname(const struct elf_image *img)
{
        struct dynamic_table t = { 0 };
        const uint8_t *strings;
        const char *name;

        if (!read_dynamic_table(img, &t) || !t.soname || t.soname >= t.string_size ||
            !elf_image_bytes_at(img, t.strings, t.string_size, &strings))
                return NULL;
        name = (const char *)strings + t.soname;
        return *name && memchr(name, 0, t.string_size - t.soname) ? name : NULL;
}

enum status elf_symbols_begin_type(const struct elf_image *img, uint32_t type, struct elf_symbol_cursor *ret,
                                   struct error *err)
{
        const struct elf_section *s = elf_image_section_of_type(img, type);

        if (!img->section_count && type == SHT_DYNSYM)
                return begin_dynamic_symbols(img, ret, err);
        if (!s || !elf_section_has_content(s))
                return error_set(err, ST_NOT_FOUND, "'%s' has no such symbols", img->name);
        return elf_symbols_begin(img, s, ret, err);
}

/* ---- one symbol ---- */

static const char *elf_symbol_name(const struct elf_symbol_cursor *c, uint32_t offset)
{
        return offset < c->string_size ? (const char *)c->strings + offset : "";
}

/* In a file of many sections 0xff00 and more are also the numbers of sections, which the 16-bit field cannot give. */
static uint32_t widen_section_number(uint16_t number)
{
        return number < SHN_LORESERVE ? number : number | ELF_SECTION_RESERVED;
}

/* Linkers write no such table for dynamic symbols: these are defined, in a section that is not known. */
static uint32_t symbol_wide_index(const struct elf_symbol_cursor *c, size_t index)
{
        struct reader r;
        uint32_t v;

        if (index >= c->section_words)
                return ELF_SECTION_RESERVED | SHN_XINDEX;
        reader_init(&r, c->sections + index * sizeof v, sizeof v);
        r.big_endian = c->img->big_endian;
        return reader_u32(&r, &v) ? v : ELF_SECTION_RESERVED | SHN_XINDEX;
}

/* ---- fields in the byte order of the file ---- */

static uint16_t to_host16(const struct elf_image *img, uint16_t v)
{
        return img->big_endian ? be16toh(v) : le16toh(v);
}

static uint32_t to_host32(const struct elf_image *img, uint32_t v)
{
        return img->big_endian ? be32toh(v) : le32toh(v);
}

static uint64_t to_host64(const struct elf_image *img, uint64_t v)
{
        return img->big_endian ? be64toh(v) : le64toh(v);
}

/* The entry at the cursor, as that of a 64-bit file. */
static Elf64_Sym load_symbol_entry(const struct elf_symbol_cursor *c)
{
        const uint8_t *at = c->entries + c->index * c->entry_size;
        Elf64_Sym wide;
        Elf32_Sym narrow;

        if (c->img->is_64) {
                memcpy(&wide, at, sizeof wide);
                wide.st_name = to_host32(c->img, wide.st_name);
                wide.st_shndx = to_host16(c->img, wide.st_shndx);
                wide.st_value = to_host64(c->img, wide.st_value);
                wide.st_size = to_host64(c->img, wide.st_size);
                return wide;
        }
        memcpy(&narrow, at, sizeof narrow);
        return (Elf64_Sym){ .st_name = to_host32(c->img, narrow.st_name),
                            .st_info = narrow.st_info,
                            .st_other = narrow.st_other,
                            .st_shndx = to_host16(c->img, narrow.st_shndx),
                            .st_value = to_host32(c->img, narrow.st_value),
                            .st_size = to_host32(c->img, narrow.st_size) };
}

/* Every entry has room for all fields: elf_symbols_begin(). */
bool elf_symbols_next(struct elf_symbol_cursor *c, struct elf_symbol *ret)
{
        Elf64_Sym entry;

        assert(c->index <= c->count);
        if (c->index >= c->count)
                return false;
        entry = load_symbol_entry(c);
        *ret = (struct elf_symbol){
                .name = elf_symbol_name(c, entry.st_name),
                .value = entry.st_value,
                .size = entry.st_size,
                .section = entry.st_shndx == SHN_XINDEX ? symbol_wide_index(c, c->index)
                                                        : widen_section_number(entry.st_shndx),
                .type = ELF64_ST_TYPE(entry.st_info),
                .binding = ELF64_ST_BIND(entry.st_info),
                .visibility = ELF64_ST_VISIBILITY(entry.st_other),
        };
        c->index++;
        return true;
}

bool elf_symbol_is_function(const struct elf_symbol *sym)
{
        return (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC) && sym->section != SHN_UNDEF;
}

size_t elf_symbol_name_size(const char *name)
{
        static const char version_bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-";
        size_t n = strcspn(name, "@");
        const char *version = name + n + strspn(name + n, "@");

        return !version[0] || version[strspn(version, version_bytes)] ? n + strlen(name + n) : n;
}
