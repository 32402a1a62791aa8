/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/text_line.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"

#define REFRESH_NS (60 * (int64_t)1000000000)
#define NOTES_MAX KiB(64)

#if defined(__x86_64__)
/* __START_KERNEL_map + CONFIG_PHYSICAL_START, which has the same value wherever it was not changed by hand. */
#define USUAL_TEXT 0xffffffff81000000u
#else
#define USUAL_TEXT 0u /* aarch64 shifts by the page table too: no usual place */
#endif

/* ---- the shift --------------------------------------------------------------------- */

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

static bool shift_in_notes(const void *notes, size_t size, uint64_t *ret)
{
        struct elf_note_cursor cursor;
        struct elf_note note;

        elf_notes_begin(&cursor, notes, size, 4, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
        while (elf_notes_next(&cursor, &note))
                if (strcmp(note.name, "VMCOREINFO") == 0)
                        return kernel_parse_shift((const char *)note.desc, note.desc_size, ret);
        return false;
}

static bool shift_from_kcore(uint64_t *ret)
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
                    shift_in_notes(notes, p.p_filesz, ret))
                        return true;
        }
        return false;
}

static void find_shift(struct kernel *k)
{
        k->has_shift = shift_from_kcore(&k->shift) ||
                       (USUAL_TEXT && k->has_symbols && k->symbols.text_addr == USUAL_TEXT);
}

/* ---- symbols and modules -------------------------------------------------------------- */

static enum status read_symbols(struct kernel *k, struct error *err)
{
        _cleanup_buf_ struct buf text = { 0 };
        struct kallsyms symbols;
        struct kernel_module *modules;
        enum status st;

        k->read_at_ns = monotonic_ns();
        k->missed = false;
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
        *k = (struct kernel){ 0 };
        (void)kernel_notes_build_id("/sys/kernel/notes", &k->build_id);
        if (read_symbols(k, err))
                return;
        find_shift(k);
        if (!k->has_shift)
                error_set(err, ST_OK, "the kernel does not say how far it is shifted (no /proc/kcore): "
                                      "its frames are sent with their names only");
}

void kernel_deinit(struct kernel *k)
{
        if (k->has_symbols)
                kallsyms_deinit(&k->symbols);
        free(k->modules);
        *k = (struct kernel){ 0 };
}

void kernel_refresh(struct kernel *k)
{
        if (k->has_symbols && k->missed && monotonic_ns() - k->read_at_ns > REFRESH_NS && read_symbols(k, NULL))
                return; /* the old ones stay */
}

static const struct kernel_module *module_of(struct kernel *k, const char *name, size_t index)
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

struct kernel_place kernel_locate(struct kernel *k, uint64_t addr)
{
        struct kernel_place ret = { 0 };
        struct kernel_symbol symbol = { .module = "" };
        bool known = k->has_symbols && kallsyms_find(&k->symbols, addr, &symbol) == ST_OK;

        /* BPF programs come and go without a gap between them, so the one that was there may be another now. */
        k->missed |= !known || strcmp(symbol.module, "bpf") == 0;
        if (known)
                ret.name = symbol.name;
        if (known && symbol.module[0]) {
                const struct kernel_module *m = module_of(k, symbol.module, symbol.module_index);

                if (kernel_module_address(m, addr, &ret.address)) {
                        ret.module = symbol.module;
                        ret.build_id = &m->build_id;
                }
        } else if (known && k->has_shift) {
                ret.module = "vmlinux";
                ret.build_id = &k->build_id;
                ret.address = addr - k->shift;
        }
        return ret;
}
