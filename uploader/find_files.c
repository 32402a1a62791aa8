/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/find_files.h"

#include <fcntl.h>
#include <fts.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "archive/file_magic.h"
#include "archive/members.h"
#include "elf-image/elf_image.h"

static bool is_pseudo_filesystem(const char *path)
{
        struct statfs fs;

        if (statfs(path, &fs) < 0)
                return false;
        switch ((unsigned long)fs.f_type) {
        case PROC_SUPER_MAGIC:
        case SYSFS_MAGIC:
        case CGROUP_SUPER_MAGIC:
        case CGROUP2_SUPER_MAGIC:
        case DEBUGFS_MAGIC:
        case TRACEFS_MAGIC:
        case SECURITYFS_MAGIC:
        case DEVPTS_SUPER_MAGIC:
        case BPF_FS_MAGIC:
                return true;
        default:
                return false;
        }
}

static enum status classify_file(const char *path, bool named, const struct find_files_callbacks *cb, void *context,
                                 struct error *err)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat info;
        struct error why;

        if (fd < 0 || fstat(fd, &info) < 0) {
                error_os(&why, errno, "cannot open '%s'", path);
                cb->problem(context, path, &why);
                return ST_OK;
        }
        if (S_ISREG(info.st_mode) && elf_magic_at_fd(fd))
                return cb->file(context, path, err);
        if (S_ISREG(info.st_mode) && (named || archive_name_is_package(path)) && archive_magic_at_fd(fd))
                return cb->archive(context, path, err);
        if (S_ISREG(info.st_mode) && compressed_magic_at_fd(fd) && archive_is_compressed_elf(fd))
                return cb->archive(context, path, err);
        if (named) {
                error_set(&why, ST_BAD_DATA, "'%s' is neither an ELF file nor an archive", path);
                cb->problem(context, path, &why);
        }
        return ST_OK;
}

static enum status handle_fts_entry(FTS *fts, FTSENT *e, const struct find_files_callbacks *cb, void *context,
                                    struct error *err)
{
        struct stat info;
        struct error why;

        switch (e->fts_info) {
        case FTS_D:
                if ((e->fts_level == 0 || e->fts_statp->st_dev != e->fts_parent->fts_statp->st_dev) &&
                    is_pseudo_filesystem(e->fts_accpath))
                        fts_set(fts, e, FTS_SKIP);
                return ST_OK;
        case FTS_F:
                return classify_file(e->fts_path, e->fts_level == 0, cb, context, err);
        case FTS_SL:
                if (stat(e->fts_accpath, &info) == 0 && S_ISREG(info.st_mode))
                        return classify_file(e->fts_path, false, cb, context, err);
                return ST_OK;
        case FTS_DEFAULT:
                return e->fts_level == 0 ? classify_file(e->fts_path, true, cb, context, err) : ST_OK;
        case FTS_DNR:
        case FTS_ERR:
        case FTS_NS:
        case FTS_SLNONE:
                if (e->fts_info != FTS_SLNONE || e->fts_level == 0) {
                        error_os(&why, e->fts_errno ? e->fts_errno : ENOENT, "cannot read '%s'", e->fts_path);
                        cb->problem(context, e->fts_path, &why);
                }
                return ST_OK;
        default:
                return ST_OK;
        }
}

enum status find_files(const char *path, const struct find_files_callbacks *callbacks, void *context, struct error *err)
{
        char *const paths[] = { (char *)path, NULL };
        FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
        FTSENT *e;
        enum status st = ST_OK;

        if (!fts)
                return error_os(err, errno, "cannot walk '%s'", path);
        while (!st && (e = fts_read(fts)))
                st = handle_fts_entry(fts, e, callbacks, context, err);
        fts_close(fts);
        return st;
}
