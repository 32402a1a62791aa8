/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_ELF_IMAGE_ELF_IMAGE_H
#define CAIRN_ELF_IMAGE_ELF_IMAGE_H

/**
 * @file
 * A read-only view of one untrusted ELF file: both classes, both byte orders, complete, split or without section
 * headers.
 *
 * Opening reads the header and copies the program and section headers; everything else is read on demand. All data
 * returned was checked to lie inside the file. Sections may extend past the end of a truncated file: such an image
 * opens, but elf_image_check_complete() and the accessors of the section report it.
 *
 * Everything borrowed from an image is valid until elf_image_close(). Truncating a mapped file while it is open causes
 * SIGBUS, so copy files that another user may still write.
 *
 * Threads: any number of readers on one image.
 * Source: System V gABI, chapters 4 and 5; gABI draft, section compression.
 */
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "common/files/file.h"
#include "elf-image/quality.h"

struct elf_segment {
        uint32_t type;     /* PT_LOAD, PT_NOTE, ... */
        uint32_t flags;    /* PF_X | PF_W | PF_R */
        uint64_t offset;   /* in the file */
        uint64_t address;  /* p_vaddr: an object address */
        uint64_t physical; /* p_paddr */
        uint64_t file_size;
        uint64_t memory_size;
        uint64_t alignment;
};

/**
 * Flag (in SHF_MASKOS) that some older split files have in place of SHF_ALLOC, for sections whose content is in no
 * segment. elf_image_open() restores SHF_ALLOC.
 */
#define SHF_CAIRN_LOADED UINT64_C(0x00800000)

struct elf_section {
        const char *name; /* borrowed, "" when it has none or a broken one */
        uint32_t index;
        uint32_t type;  /* SHT_PROGBITS, SHT_NOBITS, ... */
        uint64_t flags; /* SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED, ... */
        uint64_t address;
        uint64_t offset; /* in the file */
        uint64_t size;   /* in the file, unless NOBITS; of code whose size was removed, up to the next section */
        uint32_t link, info;
        uint64_t entry_size;
        uint64_t alignment;
};

enum elf_build_id_kind {
        ELF_BUILD_ID_NONE,
        ELF_BUILD_ID_GNU, /* NT_GNU_BUILD_ID */
        ELF_BUILD_ID_GO,  /* Go note type 4, through build_id_from_go() */
};

/** The classes a file belongs to; a set of bits. */
enum elf_image_kind {
        ELF_KIND_NEITHER = 0,
        ELF_KIND_DEBUGINFO = 1,  /* DWARF; or, without code, anything that names addresses */
        ELF_KIND_EXECUTABLE = 2, /* machine code is in the file */
        ELF_KIND_BOTH = 3,
};

/** Fields are read-only for callers. */
struct elf_image {
        const uint8_t *data;
        size_t size;
        char *name; /* for messages */
        bool is_64, big_endian;
        uint16_t type;    /* ET_EXEC, ET_DYN, ET_REL, ... */
        uint16_t machine; /* EM_X86_64, ... */
        uint64_t entry;
        uint32_t header_flags; /* e_flags */
        uint32_t name_section; /* index of the section of section names, 0 none */
        struct elf_segment *segments;
        size_t segment_count;
        uint64_t segments_offset;     /* of the program headers in the file */
        bool has_odd_program_headers; /* their entry size differs from that of the class */
        struct elf_section *sections; /* [0] is the null section; NULL when there are no headers */
        size_t section_count;
        struct build_id build_id; /* size 0: none */
        enum elf_build_id_kind build_id_kind;
        bool has_placeholder_id; /* the GNU build-id in the file is a placeholder, and build_id is not that */
        struct file_map map;
};

/**
 * View bytes in memory, borrowed until elf_image_close().
 * @param name for messages; copied.
 * @param ret  untouched on failure.
 * @return ST_BAD_DATA when the data is not ELF or its headers are truncated or malformed, ST_UNSUPPORTED for an unknown
 *          class or byte order, ST_TOO_BIG past LIMIT_ELF_SECTIONS or LIMIT_ELF_SEGMENTS.
 */
enum status elf_image_from_memory(const void *data, size_t size, const char *name, struct elf_image *ret,
                                  struct error *err) MUST_CHECK;

/** Map and view a regular file of up to LIMIT_OBJECT_BYTES; fd stays the caller's and may be closed at once. */
enum status elf_image_from_fd(int fd, const char *name, struct elf_image *ret, struct error *err) MUST_CHECK;
enum status elf_image_open(const char *path, struct elf_image *ret, struct error *err) MUST_CHECK;

/** A zeroed image is allowed. */
void elf_image_close(struct elf_image *img);
#define _cleanup_elf_image_ _cleanup_(elf_image_close)

/** Whether the file starts with the ELF magic. Reads four bytes at offset 0, keeps the file position. */
bool elf_magic_at_fd(int fd);

/** ST_BAD_DATA "cut off: ..." when a section, or without section headers a segment, ends past the file. */
enum status elf_image_check_complete(const struct elf_image *img, struct error *err) MUST_CHECK;

enum elf_image_kind elf_image_kind(const struct elf_image *img);

/**
 * Whether the file is a supplementary file of dwz: DWARF shared by several files, without segments or sections of code.
 */
bool elf_image_is_supplement(const struct elf_image *img);

/**
 * Whether the file matches the id of a supplementary file from elf_image_altlink(), by its checksum (.debug_sup) or
 * build-id. True if either side has no id.
 */
bool elf_image_is_supplement_of(const struct elf_image *img, const struct build_id *id);

/** The best quality of symbols in this file itself. */
enum symbol_quality elf_image_quality(const struct elf_image *img);

/* ---- addresses ---- */

/** n bytes at an object address, borrowed, from one segment; false when they are not all in the file. */
bool elf_image_bytes_at(const struct elf_image *img, uint64_t address, uint64_t n, const uint8_t **ret);

/* ---- sections ---- */

/** The first section of that name, or NULL. */
const struct elf_section *elf_image_section(const struct elf_image *img, const char *name);

/** The section of that index, or NULL. */
const struct elf_section *elf_image_section_at(const struct elf_image *img, uint64_t index);

/** The first section of that type, or NULL. */
const struct elf_section *elf_image_section_of_type(const struct elf_image *img, uint32_t type);

/** Whether the section has bytes in this file (not NOBITS, not empty). */
bool elf_section_has_content(const struct elf_section *s);

/** Whether the section is loaded as code, even when its content was stripped. */
bool elf_section_is_code(const struct elf_section *s);

/** SHF_COMPRESSED, or the older .zdebug_ spelling. */
bool elf_section_is_compressed(const struct elf_section *s);

/** The bytes as they are in the file, borrowed; none for NOBITS. ST_BAD_DATA when cut off. */
enum status elf_section_raw(const struct elf_image *img, const struct elf_section *s, const uint8_t **ret,
                            size_t *size_ret, struct error *err) MUST_CHECK;

struct elf_section_data {
        const uint8_t *bytes; /* not NULL, even when empty */
        size_t size;
        void *owned; /* not NULL when the bytes were decompressed */
};

/**
 * The content of a section, decompressed if necessary (zlib, zstd).
 * @param max a larger decompressed size is ST_TOO_BIG, checked before decompressing; usually
 *          LIMIT_SECTION_UNPACKED_BYTES. A size past LIMIT_SECTION_UNPACKED_RATIO is ST_BAD_DATA: a decompression bomb.
 * @param ret free with elf_section_data_free(), before the image is closed.
 */
enum status elf_section_data(const struct elf_image *img, const struct elf_section *s, size_t max,
                             struct elf_section_data *ret, struct error *err) MUST_CHECK;
void elf_section_data_free(struct elf_section_data *d);
#define _cleanup_elf_section_data_ _cleanup_(elf_section_data_free)

/* ---- notes ---- */

struct elf_note {
        uint32_t type;
        const char *name; /* borrowed, name_size bytes with the NUL; "" when empty */
        size_t name_size;
        const uint8_t *desc; /* borrowed */
        size_t desc_size;
};

struct elf_note_cursor {
        const uint8_t *data;
        size_t size, pos, alignment;
        bool big_endian;
        bool has_placeholder; /* elf_notes_build_id() saw a GNU build-id that is none: build_id_is_placeholder() */
};

/** Walk notes in bytes (a section, a segment, /sys/kernel/notes); alignment is 4 unless it is 8. */
void elf_notes_begin(struct elf_note_cursor *c, const void *data, size_t size, uint64_t alignment, bool big_endian);
/** False at the end and at the first broken note. */
bool elf_notes_next(struct elf_note_cursor *c, struct elf_note *ret);

/** Find the build-id among notes, preferring the GNU one. False when there is none, or only a placeholder. */
bool elf_notes_build_id(struct elf_note_cursor *c, struct build_id *ret, enum elf_build_id_kind *kind_ret);

/* ---- symbols ---- */

/** Added to the reserved numbers SHN_LORESERVE to SHN_HIRESERVE of a symbol's section: no section has such a number. */
#define ELF_SECTION_RESERVED UINT32_C(0xffff0000)
#define ELF_SECTION_ABS (ELF_SECTION_RESERVED | SHN_ABS)

struct elf_symbol {
        const char *name; /* borrowed, "" when it has none or a broken one */
        uint64_t value;   /* as in the file: bit 0 marks Thumb code on EM_ARM */
        uint64_t size;
        uint32_t section;   /* SHN_XINDEX resolved if possible; SHN_UNDEF for undefined; ELF_SECTION_ABS, ... */
        uint8_t type;       /* STT_FUNC, ... */
        uint8_t binding;    /* STB_GLOBAL, ... */
        uint8_t visibility; /* STV_DEFAULT, ... */
};

struct elf_symbol_cursor {
        const struct elf_image *img;
        const uint8_t *entries, *strings, *sections; /* sections: SHT_SYMTAB_SHNDX words or NULL */
        size_t count, index, entry_size, string_size, section_words;
};

/**
 * Walk a SHT_SYMTAB or SHT_DYNSYM section.
 * @return ST_BAD_DATA for another kind of section or one that is cut off, ST_TOO_BIG past LIMIT_SYMBOLS.
 */
enum status elf_symbols_begin(const struct elf_image *img, const struct elf_section *s, struct elf_symbol_cursor *ret,
                              struct error *err) MUST_CHECK;
bool elf_symbols_next(struct elf_symbol_cursor *c, struct elf_symbol *ret);

/**
 * Walk the first section of that type, or of a file without section headers the dynamic symbols.
 * @param type SHT_SYMTAB or SHT_DYNSYM.
 * @return ST_NOT_FOUND when there is no such table with content; else as the two functions above.
 */
enum status elf_symbols_begin_type(const struct elf_image *img, uint32_t type, struct elf_symbol_cursor *ret,
                                   struct error *err) MUST_CHECK;

/** Whether the symbol is a function or indirect function (IFUNC) defined in this file. */
bool elf_symbol_is_function(const struct elf_symbol *sym);

/**
 * Bytes of a symbol's name without its version: 14 of "pthread_create@@GLIBC_2.34". Names of Zig and Crystal contain
 * '@' too, as in "lazy@typeInfo(T)" and "*IO::Memory@Reference#same?:Bool": a version has only letters, digits and
 * "_.+-".
 */
size_t elf_symbol_name_size(const char *name);

/** The name that a shared library gives itself (DT_SONAME), borrowed; NULL without one. */
const char *elf_image_soname(const struct elf_image *img);

/* ---- links to other files ---- */

/** .gnu_debuglink: the debug file's name and its CRC-32. ST_NOT_FOUND without one. */
enum status elf_image_debuglink(const struct elf_image *img, const char **name_ret, uint32_t *crc_ret,
                                struct error *err) MUST_CHECK;

/** The dwz supplementary file (.gnu_debugaltlink, or .debug_sup of DWARF 5). ST_NOT_FOUND without one. */
enum status elf_image_altlink(const struct elf_image *img, const char **path_ret, struct build_id *id_ret,
                              struct error *err) MUST_CHECK;

#endif
