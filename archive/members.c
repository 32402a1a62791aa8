/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk is a stack of libarchive readers. A nested archive is opened on the current member of its parent:
 * read_inner_block() is its read callback and reads from the parent. So nothing is written to disk, and one pass over
 * the file visits the members of all levels. walk_archive_members() is the loop over the members of one level;
 * visit_archive_member() decides whether a member is skipped, opened as an archive, or passed to the visitor.
 *
 * Compressed files that are no archives are members of libarchive's raw format, which is only enabled for the file
 * itself and for names that archive_name_is_compressed_elf() accepts, since that format matches any content.
 *
 * Decompression bombs: every block that is read, by the visitor, for a nested archive or to skip the rest of a member,
 * passes count_bytes(), which compares the sum with the compressed bytes of the outermost file read so far. Holes of
 * sparse members are counted too.
 *
 * Order: blocks and limits, readers, raw streams, members, the walk; then tests of names, magics and paths for
 * callers.
 */
#include "archive/members.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/text.h"

#define BLOCK_BYTES KiB(256)

struct archive_walk {
        const struct archive_visitor *visitor;
        const char *name; /* of the outermost archive, for messages */
        struct archive *outermost, *current;
        uint64_t unpacked_bytes; /* of all members so far, with the holes between blocks that were read */
        uint64_t nested_bytes;   /* of all nested archives so far, as streams */
        uint64_t end, hole;      /* of the current member: end of its last block, and size of the hole before it */
        uint32_t ordinal;
};

/* A nested archive, read as a stream from its parent. */
struct inner {
        struct archive_walk *walk;
        struct archive *outer;
        void *block;
};

static bool has_name_suffix(const char *name, const char *suffix)
{
        size_t n = strlen(name), s = strlen(suffix);

        return n > s && strcasecmp(name + n - s, suffix) == 0;
}

static enum status archive_failed(const struct archive_walk *w, struct archive *a, struct error *err)
{
        const char *why = archive_error_string(a);

        return error_set(err, ST_BAD_DATA, "'%s' cannot be unpacked: %s", w->name, why ? why : "it is damaged");
}

static enum status check_stopped(const struct archive_walk *w, struct error *err)
{
        if (w->visitor->stopped && w->visitor->stopped(w->visitor->context))
                return error_set(err, ST_BUSY, "stopped while reading '%s'", w->name);
        return ST_OK;
}

/* Decompression-bomb check: the output is bounded by a multiple of the compressed bytes consumed so far. */
static enum status count_bytes(struct archive_walk *w, uint64_t *sum, uint64_t n, struct error *err)
{
        la_int64_t packed = archive_filter_bytes(w->outermost, -1);
        uint64_t allowed = LIMIT_ARCHIVE_FREE_BYTES + (packed > 0 ? (uint64_t)packed * LIMIT_ARCHIVE_RATIO : 0);

        if (n > allowed || *sum > allowed - n)
                return error_set(err, ST_TOO_BIG, "'%s' unpacks to more than %d times its size", w->name,
                                 LIMIT_ARCHIVE_RATIO);
        *sum += n;
        return check_stopped(w, err);
}

static enum status read_member_block(struct archive_walk *w, const void **data_ret, size_t *n_ret, uint64_t *offset_ret,
                                     struct error *err)
{
        la_int64_t offset;
        const void *data;
        size_t n;
        int rc = archive_read_data_block(w->current, &data, &n, &offset);
        enum status st;

        if (rc == ARCHIVE_EOF)
                return ST_NOT_FOUND;
        if (rc < ARCHIVE_WARN || offset < 0)
                return archive_failed(w, w->current, err);
        st = count_bytes(w, &w->unpacked_bytes, n, err);
        if (st)
                return st;
        *data_ret = data;
        *n_ret = n;
        *offset_ret = (uint64_t)offset;
        return ST_OK;
}

/*
 * A sparse member of a few bytes may announce any size, and its holes are zeros to whoever reads it. A hole is counted
 * when the block after the next one is read: a visitor that looks at the first block only can pass over disk images.
 */
enum status archive_member_read(struct archive_member *m, const void **data_ret, size_t *n_ret, uint64_t *offset_ret,
                                struct error *err)
{
        struct archive_walk *w = m->walk;
        enum status st = count_bytes(w, &w->unpacked_bytes, w->hole, err);

        w->hole = 0;
        if (!st)
                st = read_member_block(w, data_ret, n_ret, offset_ret, err);
        if (st)
                return st;
        if (*offset_ret > w->end)
                w->hole = *offset_ret - w->end;
        w->end = *offset_ret + *n_ret;
        return ST_OK;
}

/* @param may_be_stream also read a file that is only compressed */
static struct archive *open_reader(bool may_be_stream)
{
        struct archive *a = archive_read_new();

        if (!a)
                return NULL;
        archive_read_support_filter_gzip(a);
        archive_read_support_filter_bzip2(a);
        archive_read_support_filter_xz(a);
        archive_read_support_filter_lzma(a);
        archive_read_support_filter_zstd(a);
        archive_read_support_filter_rpm(a);
        archive_read_support_format_ar(a);
        archive_read_support_format_tar(a);
        archive_read_support_format_cpio(a);
        archive_read_support_format_zip(a);
        if (may_be_stream)
                archive_read_support_format_raw(a);
        return a;
}

static la_ssize_t read_inner_block(struct archive *a, void *context, const void **data)
{
        struct inner *in = context;
        la_ssize_t n = archive_read_data(in->outer, in->block, BLOCK_BYTES);
        struct error err;

        *data = in->block;
        if (n < 0)
                archive_set_error(a, EIO, "%s", archive_error_string(in->outer));
        else if (count_bytes(in->walk, &in->walk->nested_bytes, (uint64_t)n, &err))
                archive_set_error(a, EFBIG, "%s", err.text);
        else
                return n;
        return ARCHIVE_FATAL;
}

static void start_member(struct archive_walk *w, struct archive *a)
{
        w->current = a;
        w->end = w->hole = 0;
}

/* ---- compressed files that are no archives ---- */

static bool is_raw_stream(struct archive *a)
{
        return (archive_format(a) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_RAW;
}

static bool is_compressed_archive(struct archive *a)
{
        return archive_filter_code(a, 0) != ARCHIVE_FILTER_NONE;
}

static enum status visit_raw_stream(struct archive_walk *w, struct archive *a, const char *name, struct error *err)
{
        struct archive_member m = { .path = name, .walk = w, .is_content = true, .ordinal = w->ordinal++ };

        start_member(w, a);
        return w->visitor->member(w->visitor->context, &m, err);
}

/* ---- members ---- */

static enum status walk_archive_members(struct archive_walk *w, struct archive *a, const char *name, unsigned depth,
                                        struct error *err);

/* @param name of the nested archive; its content has no name if it is only compressed */
static enum status walk_nested_archive(struct archive_walk *w, struct archive *outer, const char *name, unsigned depth,
                                       struct error *err)
{
        struct inner in = { .walk = w, .outer = outer, .block = malloc(BLOCK_BYTES) };
        struct archive *a = in.block ? open_reader(archive_name_is_compressed_elf(name)) : NULL;
        enum status st;

        if (!a)
                st = error_no_memory(err);
        else if (archive_read_open(a, &in, NULL, read_inner_block, NULL) != ARCHIVE_OK)
                st = archive_failed(w, a, err);
        else
                st = walk_archive_members(w, a, name, depth, err);
        archive_read_free(a);
        free(in.block);
        return st;
}

/* Skipped bytes are decompressed as well, except in zip files. */
static enum status skip_member_rest(struct archive_walk *w, struct error *err)
{
        enum status st = ST_OK;
        uint64_t offset;
        const void *data;
        size_t n;

        if ((archive_format(w->current) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP)
                return ST_OK;
        while (!st)
                st = read_member_block(w, &data, &n, &offset, err);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status visit_archive_member(struct archive_walk *w, struct archive *a, struct archive_entry *e,
                                        unsigned depth, struct error *err)
{
        const char *name = archive_entry_pathname(e);
        bool in_ar = (archive_format(a) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_AR;
        struct archive_member m = { .walk = w };
        enum status st;

        if (!name)
                name = archive_entry_pathname_utf8(e);
        if (!name || archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e))
                return ST_OK;
        if (in_ar && starts_with(name, "control.tar")) /* metadata of a Debian package */
                return ST_OK;
        if (in_ar && starts_with(name, "data.tar") ? depth <= w->visitor->nested_max
                                                   : depth < w->visitor->nested_max && archive_name(name))
                return walk_nested_archive(w, a, name, depth + 1, err);
        name += strspn(name, "/");
        while (name[0] == '.' && name[1] == '/')
                name += 1 + strspn(name + 1, "/");
        if (archive_name_is_compressed_elf(name))
                return walk_nested_archive(w, a, name, depth + 1, err);
        m.path = name;
        m.ordinal = w->ordinal++;
        start_member(w, a);
        st = w->visitor->member(w->visitor->context, &m, err);
        return st ? st : skip_member_rest(w, err);
}

static enum status walk_archive_members(struct archive_walk *w, struct archive *a, const char *name, unsigned depth,
                                        struct error *err)
{
        for (;;) {
                struct archive_entry *e;
                int rc = archive_read_next_header(a, &e);
                enum status st;

                if (rc == ARCHIVE_EOF)
                        return ST_OK;
                if (rc < ARCHIVE_WARN)
                        return archive_failed(w, a, err);
                st = check_stopped(w, err);
                if (!st && w->ordinal >= LIMIT_ARCHIVE_MEMBERS)
                        st = error_set(err, ST_TOO_BIG, "'%s' has more than %d files", w->name, LIMIT_ARCHIVE_MEMBERS);
                if (!st && is_raw_stream(a) && depth == 0 && !is_compressed_archive(a))
                        return error_set(err, ST_BAD_DATA, "'%s' is neither an archive nor compressed", w->name);
                if (!st && is_raw_stream(a)) /* the only member; its rest is not decompressed */
                        return visit_raw_stream(w, a, name, err);
                if (!st)
                        st = visit_archive_member(w, a, e, depth, err);
                if (st)
                        return st;
        }
}

/* libarchive takes an incomplete header of a member of an ar archive for the end. */
static enum status check_ar_end(const struct archive_walk *w, int fd, struct error *err)
{
        int64_t end = archive_filter_bytes(w->outermost, 0);
        struct stat info;

        if ((archive_format(w->outermost) & ARCHIVE_FORMAT_BASE_MASK) != ARCHIVE_FORMAT_AR || fstat(fd, &info) ||
            !S_ISREG(info.st_mode) || end >= info.st_size)
                return ST_OK;
        return error_set(err, ST_BAD_DATA, "'%s' ends within the header of a member, at offset %" PRId64, w->name, end);
}

enum status archive_walk(int fd, const char *name, const struct archive_visitor *visitor, struct error *err)
{
        struct archive_walk w = { .visitor = visitor, .name = name, .outermost = open_reader(true) };
        enum status st;

        assert(fd >= 0 && visitor->member);
        if (!w.outermost)
                return error_no_memory(err);
        if (lseek(fd, 0, SEEK_SET) < 0)
                st = error_os(err, errno, "cannot read '%s'", name);
        else if (archive_read_open_fd(w.outermost, fd, BLOCK_BYTES) != ARCHIVE_OK)
                st = archive_failed(&w, w.outermost, err);
        else
                st = walk_archive_members(&w, w.outermost, path_base(name), 0, err);
        if (!st)
                st = check_ar_end(&w, fd, err);
        archive_read_free(w.outermost);
        return st;
}

bool archive_name_is_package(const char *path)
{
        return has_name_suffix(path, ".deb") || has_name_suffix(path, ".ddeb") || has_name_suffix(path, ".udeb") ||
               has_name_suffix(path, ".rpm");
}

bool archive_name(const char *path)
{
        static const char *const suffixes[] = { ".tar",     ".tar.gz",  ".tgz",      ".tar.xz", ".txz",
                                                ".tar.zst", ".tar.bz2", ".tar.lzma", ".zip",    ".cpio" };

        for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
                if (has_name_suffix(path, suffixes[i]))
                        return true;
        return archive_name_is_package(path);
}

bool archive_name_is_compressed_elf(const char *path)
{
        static const char *const suffixes[] = { ".ko.gz",     ".ko.xz", ".ko.zst", ".debug.gz", ".debug.xz",
                                                ".debug.zst", ".so.gz", ".so.xz",  ".so.zst" };

        for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
                if (has_name_suffix(path, suffixes[i]))
                        return true;
        return false;
}

static enum status check_content_magic(void *context, struct archive_member *m, struct error *err)
{
        uint64_t offset;
        const void *data;
        size_t n;
        enum status st = m->is_content ? archive_member_read(m, &data, &n, &offset, err) : ST_NOT_FOUND;

        *(bool *)context = !st && offset == 0 && n >= SELFMAG && memcmp(data, ELFMAG, SELFMAG) == 0;
        return ST_NOT_FOUND; /* ends the walk */
}

bool archive_is_compressed_elf(int fd)
{
        bool is_elf = false;
        const struct archive_visitor visitor = { .member = check_content_magic, .context = &is_elf };

        (void)!archive_walk(fd, "file", &visitor, NULL);
        return is_elf;
}

bool archive_path_is_odd(const char *path)
{
        if (!*path || strlen(path) >= LIMIT_PATH_BYTES / 2)
                return true;
        for (const char *part = path; *part; part += strcspn(part, "/"), part += strspn(part, "/")) {
                size_t n = strcspn(part, "/");

                if (n > NAME_MAX || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
                        return true;
        }
        return false;
}
