/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/verify_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "dwarf/split_units.h"
#include "elf-image/elf_identity.h"
#include "elf-image/section_list.h"
#include "sandbox/worker.h"
#include "source-bundle/bundle.h"
#include "symbolizer/formats/portable_symbols.h"

/* ---- in the worker ---- */

struct companion_search {
        struct verify_result *result;
        size_t capacity; /* of result->companions */
};

static enum status add_found_companion(struct companion_search *s, enum object_kind kind, const struct build_id *id,
                                       struct error *err)
{
        struct verify_result *v = s->result;

        if (!array_reserve(&v->companions, &s->capacity, v->companion_count))
                return error_no_memory(err);
        v->companions[v->companion_count++] = (struct object_name){ *id, kind };
        return ST_OK;
}

static enum status add_dwo_companion(void *context, const struct dwarf_split_unit *unit)
{
        struct companion_search *s = context;
        struct build_id id;

        if (s->result->companion_count >= LIMIT_COMPANIONS)
                return ST_OK;
        object_make_dwo_id(&id, unit->id);
        return add_found_companion(s, OBJECT_DWO, &id, NULL);
}

/* Unreadable units are ignored; they do not make the file invalid. */
static enum status find_companions(const struct elf_image *img, struct verify_result *v, struct error *err)
{
        struct companion_search s = { .result = v };
        struct build_id id;
        const char *path;

        (void)!dwarf_split_units(img, add_dwo_companion, &s, err);
        return elf_image_altlink(img, &path, &id, NULL) == ST_OK && id.size
                       ? add_found_companion(&s, OBJECT_SUPPLEMENTARY, &id, err)
                       : ST_OK;
}

/* A list that is too long, or does not fit in memory, is omitted. */
static void list_file_sections(const struct elf_image *img, struct verify_result *v)
{
        struct buf list;

        buf_init(&list, LIMIT_SECTION_LIST_BYTES);
        if (section_list_write(img, &list, NULL) || buf_status(&list, NULL, "sections")) {
                buf_deinit(&list);
                return;
        }
        v->sections = list.data;
        v->sections_bytes = (uint32_t)list.size;
}

static enum status verify_package(const struct elf_image *img, int other, struct verify_result *v, struct error *err)
{
        _cleanup_elf_image_ struct elf_image owner = { 0 };
        bool has_owner = elf_image_from_fd(other, "the stored file", &owner, NULL) == ST_OK;
        uint64_t units, asked;
        enum status st = dwarf_split_package_units(img, has_owner ? &owner : NULL, &units, &asked, err);

        v->form = VERIFIED_DWP;
        v->quality = QUALITY_DWARF;
        v->package_units = st ? 0 : (uint32_t)units;
        v->asked_units = st ? 0 : (uint32_t)(asked < UINT32_MAX ? asked : UINT32_MAX);
        return st || units ? st : error_set(err, ST_BAD_DATA, "the package has no units");
}

static enum status verify_dwo(const struct elf_image *img, struct verify_result *v, struct error *err)
{
        uint64_t id;
        enum status st = dwarf_split_file_id(img, &id, err);

        v->form = VERIFIED_DWO;
        v->quality = QUALITY_DWARF;
        if (!st)
                object_make_dwo_id(&v->build_id, id);
        return st;
}

static enum status verify_elf(int in, int other, struct verify_result *v, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        enum status st = elf_image_from_fd(in, "upload", &img, err);

        if (!st)
                st = elf_image_check_complete(&img, err);
        if (st)
                return st;
        list_file_sections(&img, v);
        if (elf_image_section(&img, ".debug_cu_index"))
                return verify_package(&img, other, v, err);
        if (elf_image_section(&img, ".debug_info.dwo"))
                return verify_dwo(&img, v, err);
        v->build_id = img.build_id;
        v->quality = elf_image_quality(&img);
        if (elf_image_is_supplement(&img)) {
                v->form = VERIFIED_SUPPLEMENTARY;
                (void)!elf_image_supplement_id(&img, &v->build_id);
                return ST_OK;
        }
        v->has_code = (elf_image_kind(&img) & ELF_KIND_EXECUTABLE) != 0;
        if (img.build_id_kind == ELF_BUILD_ID_GNU)
                (void)!elf_image_go_build_id(&img, &v->go_id);
        return find_companions(&img, v, err);
}

static ssize_t read_source_bundle(void *context, void *to, size_t n, uint64_t offset, struct error *err)
{
        ssize_t got = pread(*(const int *)context, to, n, (off_t)offset);

        if (got < 0)
                error_os(err, errno, "cannot read the source bundle");
        return got;
}

static enum status verify_source_bundle(int in, struct verify_result *v, struct error *err)
{
        struct source_bundle bundle;
        struct stat info;
        enum status st = fstat(in, &info) < 0
                                 ? error_os(err, errno, "cannot stat the source bundle")
                                 : source_bundle_open(read_source_bundle, &in, (uint64_t)info.st_size, &bundle, err);

        if (st)
                return st;
        v->form = VERIFIED_SOURCE;
        v->build_id = bundle.build_id;
        source_bundle_close(&bundle);
        return ST_OK;
}

static enum status verify_symbol_file(int in, struct verify_result *v, struct error *err)
{
        struct symbol_table table;
        enum status st = portable_symbols_read(in, "symbol file", &table, &v->go_id, err);

        if (st)
                return st == ST_UNSUPPORTED || st == ST_TOO_BIG ? error_prefix(err, ST_BAD_DATA, "unsupported") : st;
        v->form = VERIFIED_SYMBOLS;
        v->build_id = table.build_id;
        v->quality = table.range_count ? table.quality : QUALITY_NONE;
        symbol_table_deinit(&table);
        return ST_OK;
}

static enum status verify_file(int in, int other, struct verify_result *v, struct error *err)
{
        char head[16];
        ssize_t n = pread(in, head, sizeof head, 0);

        if (n > 0 && source_bundle_magic(head, (size_t)n))
                return verify_source_bundle(in, v, err);
        if (n > 0 && portable_symbols_has_magic(head, (size_t)n))
                return verify_symbol_file(in, v, err);
        return verify_elf(in, other, v, err);
}

enum status verify_worker_run(int in, int out, int other, struct error *err)
{
        _cleanup_verify_result_ struct verify_result v = { 0 };
        _cleanup_buf_ struct buf answer;
        enum status st = verify_file(in, other, &v, err);

        buf_init(&answer, VERIFY_ANSWER_MAX);
        if (st)
                return st;
        verify_result_encode(&answer, &v);
        st = buf_status(&answer, err, "answer");
        return st ? st : file_write_all(out, answer.data, answer.size, "answer", err);
}

/* ---- in the service ---- */

enum status verify_file_in_worker(int fd, int other, struct verify_result *ret, struct error *err)
{
        static const char *const args[] = { "verify", NULL };
        _cleanup_close_ int out = memfd_create("verify-answer", MFD_CLOEXEC);
        struct file_map answer;
        enum status st;

        if (out < 0)
                return error_os(err, errno, "cannot create a memory file");
        st = worker_run(&(struct worker_job){ .args = args, .fds = (const int[]){ fd, out, other }, .fd_count = 3 },
                        err);
        if (!st)
                st = file_map_fd(out, VERIFY_ANSWER_MAX, "the verifier's result", &answer, err);
        if (st)
                return st;
        st = verify_result_decode(answer.data, answer.size, ret, err);
        file_map_close(&answer);
        return st;
}
