/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/kernel.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "sampling/objects/text_line.h"

#define NOTES_MAX KiB(64)

bool kernel_read_notes_build_id(const char *path, struct build_id *ret)
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

/* The file has "0xffffffffc0a1d000", or zeros when the kernel hides addresses. */
static bool read_section_address(const char *path, uint64_t *ret)
{
        _cleanup_buf_ struct buf text = { 0 };
        struct text_line line;

        buf_init(&text, KiB(4));
        if (file_read(path, &text, NULL) || text.size <= 2)
                return false;
        line = (struct text_line){ (const char *)text.data + 2, (const char *)text.data + text.size };
        return text_number(&line, 16, ret) && *ret;
}

/* .text ends at the next section: /sys does not show sizes. */
static void read_text_range(const char *dir, struct kernel_module *m)
{
        char path[512];
        DIR *sections;
        struct dirent *entry;

        snprintf(path, sizeof path, "%s/sections/.text", dir);
        if (!read_section_address(path, &m->text_addr)) {
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
                if (read_section_address(path, &addr) && addr > m->text_addr && addr < m->text_end)
                        m->text_end = addr;
        }
        if (sections)
                closedir(sections);
}

void kernel_module_read(const char *dir, struct kernel_module *ret)
{
        char path[512];

        *ret = (struct kernel_module){ .tried = true };
        read_text_range(dir, ret);
        snprintf(path, sizeof path, "%s/notes/.note.gnu.build-id", dir);
        (void)kernel_read_notes_build_id(path, &ret->build_id);
}

bool kernel_module_find_address(const struct kernel_module *m, uint64_t addr, uint64_t *ret)
{
        if (!m->text_addr || !m->build_id.size || addr < m->text_addr || addr >= m->text_end)
                return false;
        *ret = addr - m->text_addr;
        return true;
}

#define REREAD_MIN_NS ((int64_t)1000000000)
#define REREAD_MAX_NS (60 * REREAD_MIN_NS)

#if defined(__x86_64__)
/* __START_KERNEL_map + CONFIG_PHYSICAL_START, which has the same value in practically every build. */
#define USUAL_TEXT 0xffffffff81000000u
#else
#define USUAL_TEXT 0u /* aarch64 relocates by page tables too: no default address */
#endif

/* ---- relocation offset ---- */

bool kernel_parse_shift(const char *text, size_t n, uint64_t *ret)
{
        static const char key[] = "KERNELOFFSET=";
        struct text_line left = { text, text + n }, line;

        while (n && text_next_line(&left, &line)) {
                if (text_size(&line) < sizeof key - 1 || memcmp(line.at, key, sizeof key - 1) != 0)
                        continue;
                line.at += sizeof key - 1;
                return text_number(&line, 16, ret);
        }
        return false;
}

static bool find_shift_in_notes(const void *notes, size_t size, uint64_t *ret)
{
        struct elf_note_cursor cursor;
        struct elf_note note;

        elf_notes_begin(&cursor, notes, size, 4, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
        while (elf_notes_next(&cursor, &note))
                if (strcmp(note.name, "VMCOREINFO") == 0)
                        return kernel_parse_shift((const char *)note.desc, note.desc_size, ret);
        return false;
}

static bool read_shift_from_kcore(uint64_t *ret)
{
        _cleanup_close_ int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
        Elf64_Ehdr h;

        if (fd < 0 || pread(fd, &h, sizeof h, 0) != sizeof h || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
            h.e_phentsize != sizeof(Elf64_Phdr))
                return false;
        for (unsigned i = 0; i < h.e_phnum && i < LIMIT_ELF_SEGMENTS; i++) {
                _cleanup_free_ void *notes = NULL;
                Elf64_Phdr p;

                if (pread(fd, &p, sizeof p, (off_t)(h.e_phoff + i * sizeof p)) != sizeof p)
                        return false;
                if (p.p_type != PT_NOTE || p.p_filesz > NOTES_MAX)
                        continue;
                notes = malloc(p.p_filesz);
                if (notes && pread(fd, notes, p.p_filesz, (off_t)p.p_offset) == (ssize_t)p.p_filesz &&
                    find_shift_in_notes(notes, p.p_filesz, ret))
                        return true;
        }
        return false;
}

static void find_kernel_shift(struct kernel *k)
{
        k->has_shift = read_shift_from_kcore(&k->shift) ||
                       (USUAL_TEXT && k->has_symbols && k->symbols.text_addr == USUAL_TEXT);
}

/* ---- symbols and modules -------------------------------------------------------------- */

static enum status read_kernel_symbols(struct kernel *k, struct error *err)
{
        _cleanup_buf_ struct buf text = { 0 };
        struct kallsyms symbols;
        struct kernel_module *modules;
        enum status st;

        k->read_at_ns = monotonic_ns();
        k->reread_ns = 2 * k->reread_ns < REREAD_MAX_NS ? 2 * k->reread_ns : REREAD_MAX_NS;
        buf_init(&text, LIMIT_AGENT_KALLSYMS_BYTES);
        st = file_read("/proc/kallsyms", &text, err);
        if (!st)
                st = kallsyms_parse((const char *)text.data, text.size, &symbols, err);
        if (st)
                return st;
        modules = calloc(symbols.module_count, sizeof *modules);
        if (!modules) {
                kallsyms_deinit(&symbols);
                return error_no_memory(err);
        }
        if (k->has_symbols)
                kallsyms_deinit(&k->symbols);
        free(k->modules);
        k->symbols = symbols;
        k->modules = modules;
        k->has_symbols = true;
        return ST_OK;
}

void kernel_init(struct kernel *k, struct error *err)
{
        *k = (struct kernel){ .reread_ns = REREAD_MIN_NS / 2 };
        (void)kernel_read_notes_build_id("/sys/kernel/notes", &k->build_id);
        if (read_kernel_symbols(k, err))
                return;
        find_kernel_shift(k);
        if (!k->has_shift)
                error_set(err, ST_OK,
                          "the relocation offset of the kernel is unknown (no /proc/kcore): "
                          "its frames are sent with their names only");
}

void kernel_deinit(struct kernel *k)
{
        if (k->has_symbols)
                kallsyms_deinit(&k->symbols);
        free(k->modules);
        bpf_code_close(&k->bpf);
        *k = (struct kernel){ 0 };
}

enum status kernel_use_bpf(struct kernel *k, struct error *err)
{
        return bpf_code_open(&k->bpf, err);
}

void kernel_begin_drain(struct kernel *k)
{
        bpf_code_forget(&k->bpf);
}

static const struct kernel_module *get_kernel_module(struct kernel *k, const char *name, size_t index)
{
        struct kernel_module *m = &k->modules[index];
        char dir[160];

        if (m->tried)
                return m;
        m->tried = true;
        if (strchr(name, '/') || strlen(name) > 64)
                return m;
        snprintf(dir, sizeof dir, "/sys/module/%s", name);
        kernel_module_read(dir, m);
        return m;
}

/* True when the symbols are new ones; on failure the old ones stay. */
static bool reread_symbols(struct kernel *k)
{
        return k->has_symbols && monotonic_ns() - k->read_at_ns >= k->reread_ns && !read_kernel_symbols(k, NULL);
}

/* The kernel's image stays where it is; everything else may be unloaded. */
static const char *get_placeholder(const struct kernel *k, uint64_t addr)
{
        bool in_image = addr >= k->symbols.text_addr && addr < k->symbols.text_end;

        return k->has_symbols && k->symbols.text_end && !in_image ? KERNEL_UNLOADED_NAME : KERNEL_UNKNOWN_NAME;
}

static struct kernel_location locate_symbol(struct kernel *k, const struct kernel_symbol *symbol, uint64_t addr)
{
        struct kernel_location ret = { .name = symbol->name };

        if (symbol->module[0]) {
                const struct kernel_module *m = get_kernel_module(k, symbol->module, symbol->module_index);

                if (kernel_module_find_address(m, addr, &ret.address)) {
                        ret.module = symbol->module;
                        ret.build_id = &m->build_id;
                }
        } else if (k->has_shift) {
                ret.module = "vmlinux";
                ret.build_id = &k->build_id;
                ret.address = addr - k->shift;
        }
        return ret;
}

struct kernel_location kernel_locate(struct kernel *k, uint64_t addr)
{
        struct kernel_symbol symbol = { .module = "" };
        bool known = k->has_symbols && kallsyms_find(&k->symbols, addr, &symbol) == ST_OK;

        /* BPF programs are replaced without a gap, so the symbol at this address may be outdated. */
        if (!known || strcmp(symbol.module, "bpf") == 0) {
                const struct bpf_code_place *place = bpf_code_find(&k->bpf, addr);

                if (place)
                        return (struct kernel_location){ .name = place->name,
                                                         .file = place->file[0] ? place->file : NULL,
                                                         .line = place->line };
        }
        if ((!known || (!k->bpf.bpf && strcmp(symbol.module, "bpf") == 0)) && reread_symbols(k))
                known = kallsyms_find(&k->symbols, addr, &symbol) == ST_OK;
        return known ? locate_symbol(k, &symbol, addr) : (struct kernel_location){ .name = get_placeholder(k, addr) };
}
