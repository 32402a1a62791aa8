/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"

#define BLOCK_BYTES KiB(256)
#define DEPTH_MAX 4 /* a package in a tar in a zip, with its own tar inside */

struct unpacking {
        struct unpacked *u;
        const char *name;  /* of the outermost archive, for messages */
        char *folder;      /* its files go below */
        enum status (*file)(void *context, const char *path, struct error *err);
        void *context;
        struct error *err;
};

/* An archive inside of another one, read while that one is. */
struct inner {
        struct archive *outer;
        void *block;
};

static bool has_suffix(const char *name, const char *suffix)
{
        size_t n = strlen(name), s = strlen(suffix);

        return n > s && strcasecmp(name + n - s, suffix) == 0;
}

bool unpack_is_package(const char *path)
{
        return has_suffix(path, ".deb") || has_suffix(path, ".ddeb") || has_suffix(path, ".udeb") || has_suffix(path, ".rpm");
}

static bool is_archive_name(const char *name)
{
        static const char *const suffixes[] = { ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst", ".tar.bz2",
                                                ".tar.lzma", ".zip", ".cpio" };

        for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
                if (has_suffix(name, suffixes[i]))
                        return true;
        return unpack_is_package(name);
}

bool unpack_is_archive(int fd)
{
        static const struct {
                size_t offset;
                const char *bytes;
                size_t n;
        } magics[] = {
                { 0, "!<arch>\n", 8 },      { 0, "\xed\xab\xee\xdb", 4 }, { 0, "PK\3\4", 4 },      { 257, "ustar", 5 },
                { 0, "0707", 4 },           { 0, "\x1f\x8b", 2 },         { 0, "BZh", 3 },         { 0, "\xfd" "7zXZ", 5 },
                { 0, "\x28\xb5\x2f\xfd", 4 }, { 0, "\x5d\0\0", 3 },
        };
        char head[512];
        ssize_t n = pread(fd, head, sizeof head, 0);

        for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
                if (n >= (ssize_t)(magics[i].offset + magics[i].n) &&
                    memcmp(head + magics[i].offset, magics[i].bytes, magics[i].n) == 0)
                        return true;
        return false;
}

static enum status make_root(struct unpacked *u, struct error *err)
{
        const char *dirs[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };
        int saved = ENOENT;

        for (size_t i = 0; !u->root && i < sizeof dirs / sizeof *dirs; i++) {
                _cleanup_free_ char *root = NULL;

                if (!dirs[i] || !*dirs[i])
                        continue;
                root = path_join(dirs[i], "cairn-upload-XXXXXX");
                if (!root)
                        return error_no_memory(err);
                if (mkdtemp(root))
                        u->root = steal_ptr(root);
                else
                        saved = errno;
        }
        return u->root ? ST_OK : error_os(err, saved, "cannot make a temporary folder in $TMPDIR, /var/tmp or /tmp");
}

/* A folder of the archive's name, numbered when there is one already. */
static enum status make_folder(struct unpacked *u, const char *path, char **ret, struct error *err)
{
        enum status st = make_root(u, err);

        if (st)
                return st;
        for (unsigned i = 0; i < 1000000; i++) {
                _cleanup_free_ char *folder = NULL;

                if ((i ? asprintf(&folder, "%s/%s-%u", u->root, path_base(path), i + 1)
                       : asprintf(&folder, "%s/%s", u->root, path_base(path))) < 0) {
                        folder = NULL;
                        return error_no_memory(err);
                }
                if (mkdir(folder, 0700) == 0) {
                        *ret = steal_ptr(folder);
                        return ST_OK;
                }
                if (errno != EEXIST)
                        return error_os(err, errno, "cannot make '%s'", folder);
        }
        return error_set(err, ST_TOO_BIG, "too many archives of one name");
}

/* "usr/bin/x" of what an archive calls it; a path that leaves its folder, or is odd, becomes one name. */
static char *member_path(const struct unpacking *p, const char *name)
{
        char *ret;
        bool odd = false;

        while (*name == '/' || (name[0] == '.' && name[1] == '/'))
                name++;
        for (const char *part = name; *part; part += strcspn(part, "/"), part += strspn(part, "/")) {
                size_t n = strcspn(part, "/");

                odd |= n > NAME_MAX || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.');
        }
        if (!odd && *name && strlen(name) < LIMIT_PATH_BYTES / 2)
                return asprintf(&ret, "%s/%s", p->folder, name) < 0 ? NULL : ret;
        return asprintf(&ret, "%s/member-%llu", p->folder, (unsigned long long)p->u->files) < 0 ? NULL : ret;
}

static enum status archive_failed(struct unpacking *p, struct archive *a)
{
        const char *why = archive_error_string(a);

        return error_set(p->err, ST_BAD_DATA, "'%s' cannot be unpacked: %s", p->name, why ? why : "it is damaged");
}

static bool is_stopped(const struct unpacking *p)
{
        return p->u->stop && atomic_load(p->u->stop);
}

static enum status write_block(struct unpacking *p, int fd, const char *path, const void *data, size_t n, la_int64_t offset)
{
        if (offset < 0 || (uint64_t)offset + n > LIMIT_OBJECT_BYTES)
                return error_set(p->err, ST_TOO_BIG, "'%s': %s is larger than %zu bytes", p->name, path_base(path),
                                 (size_t)LIMIT_OBJECT_BYTES);
        if (n > LIMIT_UNPACKED_BYTES - p->u->bytes)
                return error_set(p->err, ST_TOO_BIG, "'%s': the ELF files of all archives are larger than %zu bytes; "
                                 "upload them in several runs", p->name, (size_t)LIMIT_UNPACKED_BYTES);
        p->u->bytes += n;
        for (size_t done = 0; done < n;) {
                ssize_t got = pwrite(fd, (const char *)data + done, n - done, offset + (la_int64_t)done);

                if (got < 0 && errno != EINTR)
                        return error_os(p->err, errno, "cannot write '%s'; TMPDIR names another place", path);
                done += got > 0 ? (size_t)got : 0;
        }
        return ST_OK;
}

static enum status create(struct unpacking *p, const char *path, int *ret)
{
        _cleanup_free_ char *parent = strndup(path, (size_t)(path_base(path) - path - 1));
        enum status st = parent ? file_make_dirs(parent, p->err) : error_no_memory(p->err);

        if (st)
                return st;
        *ret = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        return *ret < 0 ? error_os(p->err, errno, "cannot create '%s'", path) : ST_OK;
}

/* The rest of a member of which the first block is here already. */
static enum status write_member(struct unpacking *p, struct archive *a, const char *path, const void *data, size_t n,
                                la_int64_t offset)
{
        _cleanup_close_ int fd = -1;
        enum status st = create(p, path, &fd);
        int rc = ARCHIVE_OK;

        while (!st && rc == ARCHIVE_OK) {
                st = is_stopped(p) ? error_set(p->err, ST_BUSY, "stopped while '%s' was unpacked; nothing was sent", p->name)
                                   : write_block(p, fd, path, data, n, offset);
                if (!st)
                        rc = archive_read_data_block(a, &data, &n, &offset);
        }
        return st || rc == ARCHIVE_EOF ? st : archive_failed(p, a);
}

static enum status read_all(struct unpacking *p, struct archive *a, unsigned depth);

static la_ssize_t read_inner(struct archive *a, void *context, const void **data)
{
        struct inner *in = context;
        la_ssize_t n = archive_read_data(in->outer, in->block, BLOCK_BYTES);

        *data = in->block;
        if (n < 0)
                archive_set_error(a, EIO, "%s", archive_error_string(in->outer));
        return n;
}

static struct archive *reader(void)
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
        return a;
}

static enum status read_nested(struct unpacking *p, struct archive *outer, unsigned depth)
{
        struct inner in = { .outer = outer, .block = malloc(BLOCK_BYTES) };
        struct archive *a = in.block ? reader() : NULL;
        enum status st;

        if (!a)
                st = error_no_memory(p->err);
        else if (archive_read_open(a, &in, NULL, read_inner, NULL) != ARCHIVE_OK)
                st = archive_failed(p, a);
        else
                st = read_all(p, a, depth + 1);
        archive_read_free(a);
        free(in.block);
        return st;
}

static enum status read_member(struct unpacking *p, struct archive *a, struct archive_entry *e, unsigned depth)
{
        const char *name = archive_entry_pathname(e);
        _cleanup_free_ char *path = NULL;
        const void *data;
        size_t n;
        la_int64_t offset;
        enum status st;
        int rc;

        if (!name || archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e))
                return ST_OK;
        if (depth < DEPTH_MAX && (is_archive_name(name) || strncmp(name, "data.tar", 8) == 0))
                return read_nested(p, a, depth);
        rc = archive_read_data_block(a, &data, &n, &offset);
        if (rc != ARCHIVE_OK)
                return rc == ARCHIVE_EOF ? ST_OK : archive_failed(p, a);
        if (n < SELFMAG || offset != 0 || memcmp(data, ELFMAG, SELFMAG) != 0)
                return ST_OK;
        path = member_path(p, name);
        if (!path)
                return error_no_memory(p->err);
        p->u->files++;
        st = write_member(p, a, path, data, n, offset);
        return st ? st : p->file(p->context, path, p->err);
}

static enum status read_all(struct unpacking *p, struct archive *a, unsigned depth)
{
        for (;;) {
                struct archive_entry *e;
                int rc = archive_read_next_header(a, &e);
                enum status st;

                if (rc == ARCHIVE_EOF)
                        return ST_OK;
                if (rc < ARCHIVE_WARN)
                        return archive_failed(p, a);
                if (is_stopped(p))
                        return error_set(p->err, ST_BUSY, "stopped while '%s' was unpacked; nothing was sent", p->name);
                st = read_member(p, a, e, depth);
                if (st)
                        return st;
        }
}

enum status unpack_archive(struct unpacked *u, const char *path,
                           enum status (*file)(void *context, const char *path, struct error *err), void *context,
                           struct error *err)
{
        struct unpacking p = { .u = u, .name = path, .file = file, .context = context, .err = err };
        struct archive *a = NULL;
        enum status st = make_folder(u, path, &p.folder, err);

        if (!st) {
                u->archives++;
                a = reader();
                if (!a)
                        st = error_no_memory(err);
                else if (archive_read_open_filename(a, path, BLOCK_BYTES) != ARCHIVE_OK)
                        st = archive_failed(&p, a);
                else
                        st = read_all(&p, a, 0);
        }
        archive_read_free(a);
        free(p.folder);
        return st;
}

enum status unpack_stdin(struct unpacked *u, char **path_ret, struct error *err)
{
        _cleanup_free_ char *path = NULL, *bytes = malloc(BLOCK_BYTES);
        _cleanup_close_ int fd = -1;
        enum status st = bytes ? make_root(u, err) : error_no_memory(err);

        if (st)
                return st;
        path = path_join(u->root, "stdin");
        fd = path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
        if (fd < 0)
                return path ? error_os(err, errno, "cannot create '%s'", path) : error_no_memory(err);
        for (;;) {
                ssize_t n = read(STDIN_FILENO, bytes, BLOCK_BYTES);

                if (n < 0 && errno == EINTR && !(u->stop && atomic_load(u->stop)))
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read standard input");
                if (n == 0)
                        break;
                if ((size_t)n > LIMIT_UNPACKED_BYTES - u->bytes)
                        return error_set(err, ST_TOO_BIG, "standard input is larger than %zu bytes", (size_t)LIMIT_UNPACKED_BYTES);
                u->bytes += (size_t)n;
                st = file_write_all(fd, bytes, (size_t)n, path, err);
                if (st)
                        return st;
        }
        *path_ret = steal_ptr(path);
        return ST_OK;
}

void unpacked_deinit(struct unpacked *u)
{
        if (u->root)
                (void)!file_remove_tree(u->root, NULL);
        free(u->root);
        *u = (struct unpacked){ 0 };
}
