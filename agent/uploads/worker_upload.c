/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/uploads/worker_upload.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/text/utf8.h"
#include "elf-image/elf_image.h"
#include "sandbox/privileges.h"
#include "sandbox/worker.h"
#include "symbolizer/extraction/extract.h"
#include "symbolizer/formats/portable_symbols.h"
#include "uploader/split.h"

#define FIRST_FD 3
#define SPLIT_HEADERS_MAX MiB(8) /* segments, sections and alignment */

/* ---- in the worker ---- */

static void copy_link_text(char to[static INSPECTED_LINK_MAX], const char *text)
{
        if (strlen(text) < INSPECTED_LINK_MAX)
                memcpy(to, text, strlen(text) + 1);
}

/* Sections with the names, and starts of functions, of a file that has neither a symbol table nor DWARF. */
static bool has_names_of_stripped_file(const struct elf_section *s)
{
        return s->type == SHT_DYNSYM || (s->type == SHT_STRTAB && (s->flags & SHF_ALLOC)) ||
               strcmp(s->name, ".gnu_debugdata") == 0 || strcmp(s->name, ".eh_frame_hdr") == 0;
}

static uint64_t estimate_sent_bytes(const struct elf_image *img, enum symbol_quality quality, bool has_code)
{
        bool is_stripped = upload_is_stripped(quality);
        uint64_t ret = has_code || is_stripped ? 0 : img->size;

        for (size_t i = 1; (has_code || is_stripped) && i < img->section_count; i++)
                if (is_stripped ? has_names_of_stripped_file(&img->sections[i])
                                : split_keeps_section(img, &img->sections[i]))
                        ret += img->sections[i].size;
        return ret;
}

/* Functions are found by them. */
static bool has_unwind_tables(const struct elf_image *img)
{
        const struct elf_section *s = elf_image_section(img, ".eh_frame");

        return s && elf_section_has_content(s) && (elf_image_kind(img) & ELF_KIND_EXECUTABLE);
}

static enum status inspect_elf(int in, struct inspected_file *ret)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        enum status st = elf_image_from_fd(in, "mapped file", &img, NULL);
        const char *link;
        uint32_t crc;

        if (!st)
                st = elf_image_check_complete(&img, NULL);
        if (st)
                return st;
        ret->id = img.build_id;
        ret->quality = elf_image_quality(&img);
        if (ret->quality == QUALITY_NONE && has_unwind_tables(&img))
                ret->quality = QUALITY_BOUNDARIES;
        ret->has_code = split_is_needed(&img);
        ret->sent_bytes = estimate_sent_bytes(&img, ret->quality, ret->has_code);
        if (!elf_image_altlink(&img, &link, &ret->alt_id, NULL))
                copy_link_text(ret->alt_path, link);
        if (!elf_image_debuglink(&img, &link, &crc, NULL))
                copy_link_text(ret->debuglink, link);
        return ST_OK;
}

int worker_inspect(void)
{
        struct error err;
        enum status st = worker_confine(WORKER_NEEDS_NOTHING, &err);

        if (st)
                return worker_not_started(&err);
        for (int i = 0; !st && i < WORKER_INSPECT_FILES; i++) {
                struct inspected_file found = { 0 };
                int in = FIRST_FD + 2 * i;

                if (fcntl(in, F_GETFD) < 0)
                        continue;
                st = inspect_elf(in, &found);
                if (st == ST_NO_MEMORY)
                        break;
                st = st ? ST_OK : file_write_all(in + 1, &found, sizeof found, "answer", &err);
        }
        return worker_exit_code(st);
}

int worker_split(void)
{
        struct split_range ranges[SPLIT_GO_RANGES_MAX];
        struct elf_image img;
        struct error err = { 0 };
        uint64_t size;
        enum status st;

        st = worker_confine(WORKER_NEEDS_NOTHING, &err);
        if (st)
                return worker_not_started(&err);
        st = elf_image_from_fd(FIRST_FD, "mapped file", &img, &err);
        if (!st) {
                st = split_write(&img, ranges, split_find_go_ranges(&img, ranges), FIRST_FD + 1, &size, &err);
                elf_image_close(&img);
        }
        if (st)
                fprintf(stderr, "%s\n", PRINTABLE(err.text));
        return worker_exit_code(st);
}

/* The answer of "worker symbols", beside the symbol file. */
struct extracted_symbols {
        struct build_id id;
        enum symbol_quality quality;
};

static enum status write_symbols(int in, int out, int answer, const char *file_name, struct error *err)
{
        const struct extract_inputs inputs = {
                .debuginfo_fd = -1, .executable_fd = in, .altlink_fd = -1, .name = "mapped file", .file_name = file_name
        };
        struct symbol_table t = { 0 };
        enum status st = symbol_table_extract(&inputs, &t, err);

        if (!st && !t.range_count)
                st = error_set(err, ST_BAD_DATA, "it has no symbols that could be read");
        if (!st)
                st = portable_symbols_write(&t, &(struct build_id){ 0 }, out, err);
        if (!st) {
                const struct extracted_symbols found = { t.build_id, t.quality };

                st = file_write_all(answer, &found, sizeof found, "answer", err);
        }
        symbol_table_deinit(&t);
        return st;
}

int worker_extract_symbols(const char *file_name)
{
        struct error err = { 0 };
        enum status st = worker_confine(WORKER_NEEDS_NOTHING, &err);

        if (st)
                return worker_not_started(&err);
        st = write_symbols(FIRST_FD, FIRST_FD + 1, FIRST_FD + 2, file_name, &err);
        if (st)
                fprintf(stderr, "%s\n", PRINTABLE(err.text));
        return worker_exit_code(st);
}

/* ---- in the agent ---- */

bool upload_is_stripped(enum symbol_quality quality)
{
        return quality == QUALITY_BOUNDARIES || quality == QUALITY_DYNSYM || quality == QUALITY_MINIDEBUGINFO;
}

void upload_lower_priority(void)
{
        setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
        (void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

enum status upload_workers_prepare(struct error *err)
{
        upload_lower_priority();
        return privileges_drop_all(err);
}

static bool is_valid_link_text(const char text[static INSPECTED_LINK_MAX])
{
        return memchr(text, 0, INSPECTED_LINK_MAX) != NULL;
}

/* The worker parsed an untrusted file, so its result is untrusted too. */
static bool read_inspection(int fd, struct inspected_file *ret)
{
        struct inspected_file a;

        if (pread(fd, &a, sizeof a, 0) != sizeof a)
                return false;
        if (a.id.size > BUILD_ID_MAX || a.alt_id.size > BUILD_ID_MAX || (int)a.quality < QUALITY_NONE ||
            a.quality > QUALITY_DWARF || !is_valid_link_text(a.alt_path) || !is_valid_link_text(a.debuglink) ||
            strchr(a.debuglink, '/'))
                return false;
        a.end = INSPECT_DONE;
        *ret = a;
        return true;
}

/* @param args  the job and its arguments, ends with NULL */
static enum status run_upload_worker(const struct upload_workers *w, const char *const *args, const int *fds,
                                     size_t count, uint64_t file_bytes, struct error *err)
{
        const struct worker_job job = { .args = args,
                                        .fds = fds,
                                        .fd_count = count,
                                        .file_bytes = file_bytes,
                                        .memory_bytes = LIMIT_AGENT_UNWIND_WORKER_BYTES,
                                        .cpu_s = LIMIT_AGENT_UPLOAD_WORKER_CPU_S,
                                        .wall_s = 10 * LIMIT_AGENT_UPLOAD_WORKER_CPU_S, /* it has the lowest priority */
                                        .cancel = w->stop };
        enum status st = fork_server_run(w->fork_server, &job, err);

        if (w->health)
                (void)worker_health_note(w->health, st, err);
        return st;
}

static enum status inspect_file_group(const struct upload_workers *w, const int *files, size_t count,
                                      struct inspected_file *ret, struct error *err)
{
        int fds[2 * WORKER_INSPECT_FILES];
        enum inspect_end end;
        enum status st;

        for (size_t i = 0; i < count; i++) {
                fds[2 * i + 1] = files[i] < 0 ? -1 : memfd_create("inspected", MFD_CLOEXEC);
                fds[2 * i] = fds[2 * i + 1] < 0 ? -1 : files[i];
        }
        st = run_upload_worker(w, (const char *const[]){ "inspect", NULL }, fds, 2 * count, sizeof *ret, err);
        end = st && err->reason == WORKER_NOT_STARTED              ? INSPECT_NO_WORKER
              : st == ST_OS || st == ST_NO_MEMORY || st == ST_BUSY ? INSPECT_SKIPPED
                                                                   : INSPECT_DONE;
        for (size_t i = 0; i < count; i++) {
                int answer = fds[2 * i + 1];

                if (answer < 0 || !read_inspection(answer, &ret[i]))
                        ret[i] = (struct inspected_file){ .end = files[i] < 0                        ? INSPECT_DONE
                                                                 : answer < 0 && end == INSPECT_DONE ? INSPECT_SKIPPED
                                                                                                     : end };
                if (answer >= 0)
                        close(answer);
        }
        return st;
}

enum status upload_inspect_files(const struct upload_workers *w, const int *fds, size_t count,
                                 struct inspected_file *ret, struct error *err)
{
        enum status st = inspect_file_group(w, fds, count, ret, err);

        /* Retry the files one by one, so that a crash affects only one; the fork_server may also have exited. */
        if (st == ST_BUSY || (st && count > 1 && err->reason != WORKER_NOT_STARTED))
                for (size_t i = 0; i < count && !atomic_load(w->stop); i++)
                        st = inspect_file_group(w, &fds[i], 1, &ret[i], err);
        return st;
}

enum status upload_split_file(const struct upload_workers *w, int in, int out, uint64_t max_bytes, struct error *err)
{
        const int fds[] = { in, out };

        return run_upload_worker(w, (const char *const[]){ "split", NULL }, fds, 2, max_bytes + SPLIT_HEADERS_MAX, err);
}

enum status upload_extract_symbols(const struct upload_workers *w, int in, int out, struct upload_item *item,
                                   uint64_t max_bytes, struct error *err)
{
        _cleanup_close_ int answer = memfd_create("extracted", MFD_CLOEXEC);
        const char *const args[] = { "symbols", path_base(item->path), NULL };
        const int fds[] = { in, out, answer };
        struct extracted_symbols found;
        enum status st = answer < 0 ? error_os(err, errno, "cannot create a memory file")
                                    : run_upload_worker(w, args, fds, 3, max_bytes, err);

        if (st)
                return st;
        if (pread(answer, &found, sizeof found, 0) != sizeof found || found.id.size > BUILD_ID_MAX ||
            !upload_is_stripped(found.quality))
                return error_set(err, ST_BAD_DATA, "the worker reported no symbols");
        if (!build_id_equal(&found.id, &item->build_id))
                return error_set(err, ST_BAD_DATA, "it was replaced while it was offered");
        item->quality = found.quality;
        return ST_OK;
}
