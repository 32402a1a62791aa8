/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/workers/object_facts.h"

#include <string.h>
#include <sys/mman.h>

#include "common/files/file.h"
#include "elf-image/elf_image.h"
#include "sandbox/worker.h"

#define FACTS_CPU_S 60
#define PAGE UINT64_C(4096)

/* ---- in the worker ---- */

static void read_facts(int fd, struct object_facts *ret)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };

        if (elf_image_from_fd(fd, "object", &img, NULL))
                return;
        ret->is_elf = true;
        ret->has_code = elf_image_kind(&img) & ELF_KIND_EXECUTABLE;
        ret->build_id = img.build_id;
        ret->quality = elf_image_quality(&img);
        for (size_t i = 0; i < img.segment_count && ret->segment_count < OBJECT_FACTS_SEGMENTS; i++) {
                const struct elf_segment *s = &img.segments[i];

                if (s->type == PT_LOAD)
                        ret->segments[ret->segment_count++] =
                                (struct object_segment){ s->offset, s->file_size, s->address, s->memory_size,
                                                         (s->flags & PF_X) != 0 };
        }
}

/* Both sides are the same program: the answer is the structure in native representation. */
enum status object_facts_run_worker(int out, int first, struct error *err)
{
        enum status st = ST_OK;

        for (int fd = first; !st && fd < first + OBJECT_FACTS_FILES; fd++) {
                struct object_facts facts;

                memset(&facts, 0, sizeof facts);
                read_facts(fd, &facts);
                st = file_write_all(out, &facts, sizeof facts, "answer", err);
        }
        return st;
}

/* ---- in the program ---- */

static bool is_valid_facts(const struct object_facts *f)
{
        return f->quality <= QUALITY_DWARF && f->build_id.size <= BUILD_ID_MAX &&
               f->segment_count <= OBJECT_FACTS_SEGMENTS;
}

static enum status ask_facts_worker(const int *fds, size_t count, struct object_facts *ret, struct error *err)
{
        static const char *const args[] = { "objects", NULL };
        _cleanup_close_ int out = memfd_create("object-facts", MFD_CLOEXEC);
        int all[1 + OBJECT_FACTS_FILES];
        const struct worker_job job = { .args = args, .fds = all, .fd_count = count + 1, .cpu_s = FACTS_CPU_S };
        enum status st;

        if (out < 0)
                return error_os(err, errno, "cannot create a memory file");
        all[0] = out;
        memcpy(all + 1, fds, count * sizeof *fds);
        st = worker_run(&job, err);
        if (st)
                return st;
        for (size_t i = 0; i < count; i++) {
                struct object_facts facts;

                if (pread(out, &facts, sizeof facts, (off_t)(i * sizeof facts)) != sizeof facts ||
                    !is_valid_facts(&facts))
                        return error_set(err, ST_BAD_DATA, "the worker's answer is damaged");
                ret[i] = facts;
        }
        return ST_OK;
}

enum status object_facts_read(const int *fds, size_t count, struct object_facts *ret, struct error *err)
{
        enum status st = ask_facts_worker(fds, count, ret, err);

        if (st == ST_OK || st == ST_OS)
                return st;
        for (size_t i = 0; i < count; i++) { /* one file crashed the worker: read each alone */
                st = ask_facts_worker(&fds[i], 1, &ret[i], err);
                if (st == ST_OS)
                        return st;
                if (st)
                        ret[i].is_elf = false;
        }
        return ST_OK;
}

static bool translate_by_mapping(const struct object_facts *f, const struct object_mapping *m, uint64_t offset,
                                 uint64_t *ret)
{
        const struct object_segment *code = NULL;
        uint64_t lead, size;

        for (uint32_t i = 0; i < f->segment_count; i++) {
                if (!f->segments[i].executable)
                        continue;
                if (code)
                        return false;
                code = &f->segments[i];
        }
        if (!code || !m->size || offset < m->offset || offset - m->offset >= m->size)
                return false;
        lead = code->address % PAGE;
        if (__builtin_add_overflow(code->memory_size, lead + PAGE - 1, &size) || size / PAGE * PAGE != m->size)
                return false;
        return !__builtin_add_overflow(code->address - lead, offset - m->offset, ret);
}

static bool is_code_address(const struct object_facts *f, uint64_t address)
{
        for (uint32_t i = 0; i < f->segment_count; i++)
                if (f->segments[i].executable && address >= f->segments[i].address &&
                    address - f->segments[i].address < f->segments[i].memory_size)
                        return true;
        return false;
}

bool object_facts_translate_offset(const struct object_facts *f, const struct object_mapping *m, uint64_t offset,
                                   uint64_t *ret)
{
        if (!f->has_code)
                return translate_by_mapping(f, m, offset, ret);
        for (uint32_t i = 0; i < f->segment_count; i++) {
                const struct object_segment *s = &f->segments[i];

                if (offset >= s->file_offset && offset - s->file_offset < s->file_size)
                        return !__builtin_add_overflow(s->address, offset - s->file_offset, ret);
        }
        if (!is_code_address(f, offset))
                return false;
        *ret = offset;
        return true;
}
