/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/unpack.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/members.h"
#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"

#define BLOCK_BYTES KiB(256)
#define DEPTH_MAX 4 /* a package in a tar in a zip, with its own tar inside */

struct unpack_job {
        struct unpacked *u;
        const char *name; /* path of the outermost archive, for messages */
        char *folder;     /* folder of its files */
        enum status (*file)(void *context, const char *path, struct error *err);
        void *context;
};

static enum status make_unpack_root(struct unpacked *u, struct error *err)
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
        return u->root ? ST_OK : error_os(err, saved, "cannot create a temporary folder in $TMPDIR, /var/tmp or /tmp");
}

/* Create a folder with the archive's name, and a number if it exists. */
static enum status make_archive_folder(struct unpacked *u, const char *path, char **ret, struct error *err)
{
        enum status st = make_unpack_root(u, err);

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
                        return error_os(err, errno, "cannot create '%s'", folder);
        }
        return error_set(err, ST_TOO_BIG, "too many archives of one name");
}

/* A path that would leave the folder is replaced by a single name. */
static char *format_member_path(const struct unpack_job *p, const char *name)
{
        char *ret;

        if (!archive_path_is_odd(name))
                return asprintf(&ret, "%s/%s", p->folder, name) < 0 ? NULL : ret;
        return asprintf(&ret, "%s/member-%llu", p->folder, (unsigned long long)p->u->files) < 0 ? NULL : ret;
}

static bool is_unpack_stopped(void *context)
{
        const struct unpack_job *p = context;

        return p->u->stop && atomic_load(p->u->stop);
}

static enum status write_member_block(struct unpack_job *p, int fd, const char *path, const void *data, size_t n,
                                      uint64_t offset, struct error *err)
{
        if (n > LIMIT_OBJECT_BYTES || offset > LIMIT_OBJECT_BYTES - n)
                return error_set(err, ST_TOO_BIG, "'%s': %s is larger than %zu bytes", p->name, path_base(path),
                                 (size_t)LIMIT_OBJECT_BYTES);
        if (n > LIMIT_UNPACKED_BYTES - p->u->bytes)
                return error_set(err, ST_TOO_BIG,
                                 "'%s': the ELF files of all archives are larger than %zu bytes; "
                                 "upload them in several runs",
                                 p->name, (size_t)LIMIT_UNPACKED_BYTES);
        p->u->bytes += n;
        for (size_t done = 0; done < n;) {
                ssize_t got = pwrite(fd, (const char *)data + done, n - done, (off_t)(offset + done));

                if (got < 0 && errno != EINTR)
                        return error_os(err, errno, "cannot write '%s'; set TMPDIR to another folder", path);
                done += got > 0 ? (size_t)got : 0;
        }
        return ST_OK;
}

static enum status create_member_file(const char *path, int *ret, struct error *err)
{
        _cleanup_free_ char *parent = strndup(path, (size_t)(path_base(path) - path - 1));
        enum status st = parent ? file_make_dirs(parent, err) : error_no_memory(err);

        if (st)
                return st;
        *ret = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        return *ret < 0 ? error_os(err, errno, "cannot create '%s'", path) : ST_OK;
}

/* Write a member whose first block was read already. */
static enum status write_unpacked_member(struct unpack_job *p, struct archive_member *m, const char *path,
                                         const void *data, size_t n, struct error *err)
{
        _cleanup_close_ int fd = -1;
        uint64_t offset = 0;
        enum status st = create_member_file(path, &fd, err);

        while (!st) {
                st = write_member_block(p, fd, path, data, n, offset, err);
                if (!st)
                        st = archive_member_read(m, &data, &n, &offset, err);
        }
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status unpack_elf_member(void *context, struct archive_member *m, struct error *err)
{
        struct unpack_job *p = context;
        _cleanup_free_ char *path = NULL;
        uint64_t offset;
        const void *data;
        size_t n;
        enum status st = archive_member_read(m, &data, &n, &offset, err);

        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        if (n < SELFMAG || offset != 0 || memcmp(data, ELFMAG, SELFMAG) != 0)
                return ST_OK;
        path = format_member_path(p, m->path);
        if (!path)
                return error_no_memory(err);
        p->u->files++;
        st = write_unpacked_member(p, m, path, data, n, err);
        return st ? st : p->file(p->context, path, err);
}

enum status unpack_archive(struct unpacked *u, const char *path,
                           enum status (*file)(void *context, const char *path, struct error *err), void *context,
                           struct error *err)
{
        struct unpack_job p = { .u = u, .name = path, .file = file, .context = context };
        const struct archive_visitor visitor = {
                .member = unpack_elf_member, .stopped = is_unpack_stopped, .context = &p, .nested_max = DEPTH_MAX
        };
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        enum status st =
                fd < 0 ? error_os(err, errno, "cannot open '%s'", path) : make_archive_folder(u, path, &p.folder, err);

        if (!st) {
                u->archives++;
                st = archive_walk(fd, path, &visitor, err);
        }
        free(p.folder);
        return st;
}

enum status unpack_stdin(struct unpacked *u, char **path_ret, struct error *err)
{
        _cleanup_free_ char *path = NULL, *bytes = malloc(BLOCK_BYTES);
        _cleanup_close_ int fd = -1;
        enum status st = bytes ? make_unpack_root(u, err) : error_no_memory(err);

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
                        return error_set(err, ST_TOO_BIG, "standard input is larger than %zu bytes",
                                         (size_t)LIMIT_UNPACKED_BYTES);
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
