/* SPDX-License-Identifier: Apache-2.0 */
#include "package-trees/package_inspect.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "archive/members.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "dwarf/source_names.h"
#include "elf-image/section_list.h"
#include "package-trees/inspector.h"
#include "package-trees/package_contents.h"
#include "sandbox/fd_pass.h"

/* Report the last file and receive the next. @param fd_ret -1: no more files. */
static enum status request_next_file(int socket, const struct inspector_answer *answer, int *fd_ret, struct error *err)
{
        enum status st = file_write_all(socket, answer, sizeof *answer, "socket", err);

        return st ? st : fd_receive(socket, fd_ret, err);
}

/* State of one worker, for all its files. */
struct inspection {
        struct buf contents, sections;
        uint8_t *memory; /* LIMIT_SCAN_MEMBER_BYTES, for members up to that size */
        int scratch;
        uint32_t odd_paths, broken;
};

/* An object whose list is too long is indexed without it. */
static void list_object_sections(struct inspection *in, const struct elf_image *img, struct package_object *o)
{
        buf_clear(&in->sections);
        if (in->contents.size > LIMIT_SCAN_FOUND_BYTES / 2 || section_list_write(img, &in->sections, NULL) ||
            in->sections.failed)
                return;
        o->sections = in->sections.data;
        o->sections_bytes = (uint32_t)in->sections.size;
}

static enum status add_elf_object(struct inspection *in, const struct elf_image *img, uint32_t ordinal,
                                  const char *path, struct error *err)
{
        struct package_object o = { .build_id = img->build_id,
                                    .kinds = (uint8_t)elf_image_kind(img),
                                    .quality = elf_image_quality(img),
                                    .size_bytes = img->size,
                                    .ordinal = ordinal,
                                    .path = path };
        enum status st = elf_image_check_complete(img, err);

        if (!st && o.build_id.size && o.kinds) {
                list_object_sections(in, img, &o);
                package_contents_put_object(&in->contents, &o);
        }
        return st;
}

static enum status inspect_elf_file(struct inspection *in, int fd, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        enum status st = elf_image_from_fd(fd, "the file", &img, err);

        return st ? st : add_elf_object(in, &img, 0, "", err);
}

/* ---- archive members ---- */

static enum status write_member_at(int fd, const void *data, size_t n, uint64_t offset, struct error *err)
{
        if (n > LIMIT_OBJECT_BYTES || offset > LIMIT_OBJECT_BYTES - n)
                return error_set(err, ST_TOO_BIG, "a member is larger than %zu bytes", (size_t)LIMIT_OBJECT_BYTES);
        for (size_t done = 0; done < n;) {
                ssize_t got = pwrite(fd, (const char *)data + done, n - done, (off_t)(offset + done));

                if (got < 0 && errno != EINTR)
                        return error_os(err, errno, "cannot write a member");
                done += got > 0 ? (size_t)got : 0;
        }
        return ST_OK;
}

/* One buffered member: in memory while it fits, else completely in the scratch file. */
struct gathered {
        uint64_t size;
        bool in_file;
};

static enum status buffer_member(struct inspection *in, struct gathered *g, const void *data, size_t n, uint64_t offset,
                                 struct error *err)
{
        enum status st = ST_OK;

        if (offset < g->size) /* formats that seek backwards are rejected */
                return error_set(err, ST_BAD_DATA, "a member overlaps itself");
        if (!g->in_file && (offset > LIMIT_SCAN_MEMBER_BYTES || n > LIMIT_SCAN_MEMBER_BYTES - offset)) {
                st = write_member_at(in->scratch, in->memory, (size_t)g->size, 0, err);
                g->in_file = true;
        }
        if (!st && g->in_file) {
                st = write_member_at(in->scratch, data, n, offset, err);
        } else if (!st) {
                memset(in->memory + g->size, 0, (size_t)(offset - g->size));
                memcpy(in->memory + offset, data, n);
        }
        g->size = offset + n;
        return st;
}

/* A damaged ELF file is counted; its archive does not fail. */
static enum status inspect_buffered_member(struct inspection *in, const struct gathered *g,
                                           const struct archive_member *m, const char *path, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        enum status st = g->in_file ? elf_image_from_fd(in->scratch, "member", &img, err)
                                    : elf_image_from_memory(in->memory, (size_t)g->size, "member", &img, err);

        if (!st)
                st = add_elf_object(in, &img, m->ordinal, path, err);
        if (g->in_file && ftruncate(in->scratch, 0) < 0)
                return error_os(err, errno, "cannot empty a temporary file");
        if (st == ST_BAD_DATA || st == ST_TOO_BIG || st == ST_UNSUPPORTED) {
                in->broken++;
                st = ST_OK;
        }
        return st;
}

static enum status inspect_member(void *context, struct archive_member *m, struct error *err)
{
        struct inspection *in = context;
        struct gathered g = { 0 };
        char path[LIMIT_PATH_BYTES];
        uint64_t offset;
        const void *data;
        size_t n;
        enum status st;

        if (archive_path_is_odd(m->path)) {
                in->odd_paths++;
                return ST_OK;
        }
        snprintf(path, sizeof path, "/%s", m->path);
        st = archive_member_read(m, &data, &n, &offset, err);
        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        if (n < SELFMAG || offset != 0 || memcmp(data, ELFMAG, SELFMAG) != 0) {
                path_normalize(path);
                package_contents_put_source(&in->contents, package_path_hash(path), m->ordinal);
                return ST_OK;
        }
        while (!st) {
                st = buffer_member(in, &g, data, n, offset, err);
                if (!st)
                        st = archive_member_read(m, &data, &n, &offset, err);
        }
        return st == ST_NOT_FOUND ? inspect_buffered_member(in, &g, m, path, err) : st;
}

/* Objects found before a failure are also returned. */
static enum status inspect_file(struct inspection *in, int fd, int out, uint64_t *size_ret, struct error *err)
{
        const struct archive_visitor visitor = { .member = inspect_member, .context = in };
        enum status st, written;

        buf_clear(&in->contents);
        in->odd_paths = in->broken = 0;
        if (ftruncate(in->scratch, 0) < 0)
                return error_os(err, errno, "cannot empty a temporary file");
        st = elf_magic_at_fd(fd) ? inspect_elf_file(in, fd, err) : archive_walk(fd, "the archive", &visitor, err);
        package_contents_put_end(&in->contents, in->odd_paths, in->broken);
        written = buf_status(&in->contents, err, "the contents of an archive");
        if (!written)
                written = write_member_at(out, in->contents.data, in->contents.size, 0, err);
        *size_ret = written ? 0 : in->contents.size;
        return st ? st : written;
}

enum status inspect_worker_run(int socket, int out, int scratch, struct error *err)
{
        struct inspection in = { .scratch = scratch, .memory = malloc(LIMIT_SCAN_MEMBER_BYTES) };
        struct inspector_answer answer = { .is_first = true };
        enum status st = in.memory ? ST_OK : error_no_memory(err);

        buf_init(&in.contents, LIMIT_SCAN_FOUND_BYTES);
        buf_init(&in.sections, LIMIT_SECTION_LIST_BYTES);
        while (!st) {
                struct error why = { 0 };
                _cleanup_close_ int fd = -1;

                st = request_next_file(socket, &answer, &fd, err);
                if (st || fd < 0)
                        break;
                answer = (struct inspector_answer){ 0 };
                answer.status = inspect_file(&in, fd, out, &answer.size, &why);
                snprintf(answer.text, sizeof answer.text, "%s", answer.status ? why.text : "");
        }
        buf_deinit(&in.contents);
        buf_deinit(&in.sections);
        free(in.memory);
        return st;
}

/* ---- one member ---- */

struct member_request {
        uint32_t ordinal;
        bool is_content; /* only the content of a compressed file is accepted */
        int out;
        bool is_done;
};

static enum status extract_member(void *context, struct archive_member *m, struct error *err)
{
        struct member_request *w = context;
        uint64_t offset;
        const void *data;
        size_t n;
        enum status st = ST_OK;

        if (m->ordinal != w->ordinal)
                return ST_OK;
        if (w->is_content && !m->is_content)
                return error_set(err, ST_BAD_DATA, "it is an archive, not a compressed file");
        while (!st) {
                st = archive_member_read(m, &data, &n, &offset, err);
                if (!st)
                        st = write_member_at(w->out, data, n, offset, err);
        }
        w->is_done = st == ST_NOT_FOUND;
        return st; /* ends the walk */
}

enum status member_worker_run(const char *ordinal, int archive, int out, struct error *err)
{
        struct member_request w = { .ordinal = (uint32_t)strtoul(ordinal, NULL, 10),
                                    .is_content = strcmp(ordinal, MEMBER_IS_CONTENT) == 0,
                                    .out = out };
        const struct archive_visitor visitor = { .member = extract_member, .context = &w };
        enum status st = archive_walk(archive, "archive", &visitor, err);

        if (w.is_done)
                return ST_OK;
        return st ? st : error_set(err, ST_NOT_FOUND, "the archive has no member %s", ordinal);
}

/* ---- source names ---- */

struct name_hashes {
        uint64_t *items; /* owned */
        size_t count, capacity;
};

static bool add_name_hash(void *context, const struct dwarf_source *source)
{
        struct name_hashes *h = context;
        _cleanup_free_ char *normal = NULL;

        if (*source->path != '/') /* it names no file of a tree or package */
                return true;
        normal = strdup(source->path);
        if (!normal || !array_reserve(&h->items, &h->capacity, h->count))
                return false;
        path_normalize(normal);
        h->items[h->count++] = package_path_hash(normal);
        return true;
}

static int compare_hashes(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

enum status source_names_worker_run(int debuginfo, int out, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct name_hashes h = { 0 };
        size_t kept = 0;
        enum status st = elf_image_from_fd(debuginfo, "debuginfo", &img, err);

        if (!st)
                st = dwarf_source_names(&img, false, 0, add_name_hash, &h, err);
        if (h.count)
                qsort(h.items, h.count, sizeof *h.items, compare_hashes);
        for (size_t i = 0; i < h.count; i++)
                if (!kept || h.items[i] != h.items[kept - 1])
                        h.items[kept++] = h.items[i];
        if (!st)
                st = file_write_all(out, h.items, kept * sizeof *h.items, "names", err);
        free(h.items);
        return st;
}
