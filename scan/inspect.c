/* SPDX-License-Identifier: Apache-2.0 */
#include "scan/inspect.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "archive/members.h"
#include "common/limits.h"
#include "elf-image/section_list.h"
#include "scan/found.h"
#include "scan/inspector_protocol.h"

/* What one worker needs for all its files. */
struct inspection {
        struct buf found, sections;
        uint8_t *memory;    /* LIMIT_SCAN_MEMBER_BYTES, for members up to that size */
        int scratch;
        uint32_t odd_paths, broken;
};

/* One that has more of them than is kept is none the worse. */
static void note_sections(struct inspection *in, const struct elf_image *img, struct found_object *o)
{
        buf_clear(&in->sections);
        if (in->found.size > LIMIT_SCAN_FOUND_BYTES / 2 || section_list_write(img, &in->sections, NULL) || in->sections.failed)
                return;
        o->sections = in->sections.data;
        o->sections_bytes = (uint32_t)in->sections.size;
}

static enum status note_image(struct inspection *in, const struct elf_image *img, uint32_t ordinal, const char *path,
                              struct error *err)
{
        struct found_object o = { .build_id = img->build_id, .kinds = (uint8_t)elf_image_kind(img),
                                  .quality = elf_image_quality(img), .size_bytes = img->size, .ordinal = ordinal,
                                  .path = path };
        enum status st = elf_image_check_complete(img, err);

        if (!st && o.build_id.size && o.kinds) {
                note_sections(in, img, &o);
                found_put_object(&in->found, &o);
        }
        return st;
}

static enum status inspect_elf(struct inspection *in, int fd, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        enum status st = elf_image_from_fd(fd, "the file", &img, err);

        return st ? st : note_image(in, &img, 0, "", err);
}

/* ---- members ---- */

static enum status write_at(int fd, const void *data, size_t n, uint64_t offset, struct error *err)
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

/* One member while it is gathered: in memory as long as it fits, else all of it in the scratch file. */
struct gathered {
        uint64_t size;
        bool in_file;
};

static enum status gather(struct inspection *in, struct gathered *g, const void *data, size_t n, uint64_t offset,
                          struct error *err)
{
        enum status st = ST_OK;

        if (offset < g->size) /* no format that goes back */
                return error_set(err, ST_BAD_DATA, "a member overlaps itself");
        if (!g->in_file && (offset > LIMIT_SCAN_MEMBER_BYTES || n > LIMIT_SCAN_MEMBER_BYTES - offset)) {
                st = write_at(in->scratch, in->memory, (size_t)g->size, 0, err);
                g->in_file = true;
        }
        if (!st && g->in_file) {
                st = write_at(in->scratch, data, n, offset, err);
        } else if (!st) {
                memset(in->memory + g->size, 0, (size_t)(offset - g->size));
                memcpy(in->memory + offset, data, n);
        }
        g->size = offset + n;
        return st;
}

/* What is wrong with a single ELF file is counted; it is no failure of its archive. */
static enum status look_at(struct inspection *in, const struct gathered *g, const struct archive_member *m, const char *path,
                           struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        enum status st = g->in_file ? elf_image_from_fd(in->scratch, "member", &img, err)
                                    : elf_image_from_memory(in->memory, (size_t)g->size, "member", &img, err);

        if (!st)
                st = note_image(in, &img, m->ordinal, path, err);
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
                found_path_normalise(path);
                found_put_source(&in->found, found_path_hash(path), m->ordinal);
                return ST_OK;
        }
        while (!st) {
                st = gather(in, &g, data, n, offset, err);
                if (!st)
                        st = archive_member_read(m, &data, &n, &offset, err);
        }
        return st == ST_NOT_FOUND ? look_at(in, &g, m, path, err) : st;
}

/* What was found before a failure counts. */
static enum status inspect(struct inspection *in, int fd, int out, uint64_t *size_ret, struct error *err)
{
        const struct archive_visitor visitor = { .member = inspect_member, .context = in };
        enum status st, written;

        buf_clear(&in->found);
        in->odd_paths = in->broken = 0;
        if (ftruncate(in->scratch, 0) < 0)
                return error_os(err, errno, "cannot empty a temporary file");
        st = elf_magic_at_fd(fd) ? inspect_elf(in, fd, err) : archive_walk(fd, "the archive", &visitor, err);
        found_put_end(&in->found, in->odd_paths, in->broken);
        written = buf_status(&in->found, err, "what an archive holds");
        if (!written)
                written = write_at(out, in->found.data, in->found.size, 0, err);
        *size_ret = written ? 0 : in->found.size;
        return st ? st : written;
}

enum status inspect_worker(int socket, int out, int scratch, struct error *err)
{
        struct inspection in = { .scratch = scratch, .memory = malloc(LIMIT_SCAN_MEMBER_BYTES) };
        struct inspector_answer answer = { .is_first = true };
        enum status st = in.memory ? ST_OK : error_no_memory(err);

        buf_init(&in.found, LIMIT_SCAN_FOUND_BYTES);
        buf_init(&in.sections, LIMIT_SECTION_LIST_BYTES);
        while (!st) {
                struct error why = { 0 };
                _cleanup_close_ int fd = -1;

                st = inspector_ask(socket, &answer, &fd, err);
                if (st || fd < 0)
                        break;
                answer = (struct inspector_answer){ 0 };
                answer.status = inspect(&in, fd, out, &answer.size, &why);
                snprintf(answer.text, sizeof answer.text, "%s", answer.status ? why.text : "");
        }
        buf_deinit(&in.found);
        buf_deinit(&in.sections);
        free(in.memory);
        return st;
}

/* ---- one member ---- */

struct wanted_member {
        uint32_t ordinal;
        int out;
        bool is_done;
};

static enum status take_member(void *context, struct archive_member *m, struct error *err)
{
        struct wanted_member *w = context;
        uint64_t offset;
        const void *data;
        size_t n;
        enum status st = ST_OK;

        if (m->ordinal != w->ordinal)
                return ST_OK;
        while (!st) {
                st = archive_member_read(m, &data, &n, &offset, err);
                if (!st)
                        st = write_at(w->out, data, n, offset, err);
        }
        w->is_done = st == ST_NOT_FOUND;
        return st; /* which ends the walk */
}

enum status member_worker(const char *ordinal, int archive, int out, struct error *err)
{
        struct wanted_member w = { .ordinal = (uint32_t)strtoul(ordinal, NULL, 10), .out = out };
        const struct archive_visitor visitor = { .member = take_member, .context = &w };
        enum status st = archive_walk(archive, "archive", &visitor, err);

        if (w.is_done)
                return ST_OK;
        return st ? st : error_set(err, ST_NOT_FOUND, "the archive has no member %s", ordinal);
}
