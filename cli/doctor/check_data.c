/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory: free space, latency of syncs, fill level of the databases. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli/doctor/doctor_checks.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/files/data_format.h"
#include "common/files/file.h"
#include "common/files/lmdb_check.h"
#include "common/files/lmdb_env.h"
#include "common/limits.h"

#define SPACE_LEAST_BYTES GiB(1) /* free; SPACE_LEAST_PERCENT too */
#define SPACE_LEAST_PERCENT 5
#define INODES_LEAST 10000
#define SYNC_COUNT 16
#define SYNC_SLOW_US 50000 /* each batch waits for a sync before it is acknowledged */
#define SYNC_HANGING_US 1000000
#define MAP_FULL_PERCENT 95
#define MAP_HIGH_PERCENT 80

static const char fix_room[] =
        "make room: a larger disk, --retain and --retain-samples, or 'cairn debuginfo gc' (docs/operations.md, Disk)";

/* False, with a finding, when the directory is missing or not readable by this user. */
static bool has_data_directory(const struct examined *x, const char *name, struct findings *f)
{
        if (!x->data) {
                report_finding(f, FINDING_SKIPPED, name, "", "no data directory found: name it with --data");
                return false;
        }
        if (access(x->data, R_OK | X_OK) == 0)
                return true;
        if (errno == EACCES)
                report_finding(f, FINDING_SKIPPED, name, "", "'%s' is not readable as this user: run this as root",
                               x->data);
        else
                report_finding(f, FINDING_ERROR, name, "name the service's data directory with --data", "'%s': %s",
                               x->data, strerror(errno));
        return false;
}

/* ---- disk ---- */

/* Whether the path is on a network file system, by its magic number (statfs(2)). */
static bool is_remote(const char *path)
{
        static const long remote[] = { 0x6969, 0x517b, 0xff534d42l, 0xfe534d42l, 0x01021997, 0x00c36400 };
        struct statfs fs;

        for (size_t i = 0; statfs(path, &fs) == 0 && i < sizeof remote / sizeof *remote; i++)
                if ((long)fs.f_type == remote[i])
                        return true;
        return false;
}

static enum finding_state judge_space(const struct statvfs *fs)
{
        uint64_t free_bytes = (uint64_t)fs->f_bavail * fs->f_frsize, all = (uint64_t)fs->f_blocks * fs->f_frsize;

        if (free_bytes < LIMIT_DISK_LOW_BYTES)
                return FINDING_ERROR;
        return free_bytes < SPACE_LEAST_BYTES || free_bytes < all / 100 * SPACE_LEAST_PERCENT ? FINDING_WARNING
                                                                                              : FINDING_OK;
}

void check_disk_space(const struct examined *x, struct findings *f)
{
        struct statvfs fs;

        if (!has_data_directory(x, "disk space", f))
                return;
        if (statvfs(x->data, &fs)) {
                report_finding(f, FINDING_ERROR, "disk space", "check the disk and the kernel's log", "'%s': %s",
                               x->data, strerror(errno));
                return;
        }
        report_finding(f, judge_space(&fs), "disk space", fix_room, "%" PRIu64 " of %" PRIu64 " MiB are free in '%s'",
                       ((uint64_t)fs.f_bavail * fs.f_frsize) >> 20, ((uint64_t)fs.f_blocks * fs.f_frsize) >> 20,
                       x->data);
        if (fs.f_files)
                report_finding(f, fs.f_favail < INODES_LEAST ? FINDING_WARNING : FINDING_OK, "inodes", fix_room,
                               "%" PRIu64 " of %" PRIu64 " are free", (uint64_t)fs.f_favail, (uint64_t)fs.f_files);
        if (is_remote(x->data))
                report_finding(f, FINDING_ERROR, "file system", "put the data directory on a disk of this machine",
                               "'%s' is on a network file system, where databases may be damaged", x->data);
}

/* ---- syncs ---- */

/* Without a name, so that the file disappears with the process. */
static int create_unnamed_file(const char *dir)
{
        _cleanup_free_ char *path = NULL;
        int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
                return fd;
        path = path_join(dir, ".tmp-doctor-XXXXXX");
        fd = path ? mkostemp(path, O_CLOEXEC) : -1;
        if (fd >= 0)
                unlink(path);
        return fd;
}

static int compare_times(const void *a, const void *b)
{
        const int64_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* @param us_ret  SYNC_COUNT times, ascending. */
static enum status time_syncs(int fd, int64_t us_ret[static SYNC_COUNT], struct error *err)
{
        char block[4096] = "cairn doctor";

        for (int i = 0; i < SYNC_COUNT; i++) {
                int64_t began;

                if (pwrite(fd, block, sizeof block, (off_t)i * (off_t)sizeof block) != (ssize_t)sizeof block)
                        return error_os(err, errno ? errno : EIO, "cannot write");
                began = monotonic_ns();
                if (fdatasync(fd))
                        return error_os(err, errno, "cannot sync");
                us_ret[i] = (monotonic_ns() - began) / 1000;
        }
        qsort(us_ret, SYNC_COUNT, sizeof *us_ret, compare_times);
        return ST_OK;
}

void check_sync_latency(const struct examined *x, struct findings *f)
{
        static const char fix_slow[] =
                "each batch waits for a sync: use a local SSD, or find out what else writes to this disk (iostat -x 1)";
        _cleanup_close_ int fd = -1;
        int64_t us[SYNC_COUNT], median;
        struct error err;

        if (!has_data_directory(x, "sync latency", f))
                return;
        fd = create_unnamed_file(x->data);
        if (fd < 0 && (errno == EACCES || (errno == EROFS && x->settings && x->settings->server.read_only))) {
                report_finding(f, FINDING_SKIPPED, "sync latency", "", "'%s': %s", x->data, strerror(errno));
                return;
        }
        if (fd < 0) {
                report_finding(f, FINDING_ERROR, "sync latency", fix_room, "cannot write to '%s': %s", x->data,
                               strerror(errno));
                return;
        }
        if (time_syncs(fd, us, &err)) {
                report_finding(f, FINDING_ERROR, "sync latency", "check the disk and the kernel's log", "'%s': %s",
                               x->data, err.text);
                return;
        }
        median = us[SYNC_COUNT / 2];
        report_finding(f,
                       median >= SYNC_HANGING_US ? FINDING_ERROR
                       : median >= SYNC_SLOW_US  ? FINDING_WARNING
                                                 : FINDING_OK,
                       "sync latency", fix_slow,
                       "fdatasync() takes %" PRId64 ".%03" PRId64 " ms, the slowest of %d %" PRId64 ".%03" PRId64 " ms",
                       median / 1000, median % 1000, SYNC_COUNT, us[SYNC_COUNT - 1] / 1000, us[SYNC_COUNT - 1] % 1000);
}

/* ---- databases ---- */

static void check_database_map(const char *data, const char *folder, const char *variable, struct findings *f)
{
        _cleanup_free_ char *dir = path_join(data, folder), *file = dir ? path_join(dir, "data.mdb") : NULL;
        struct lmdb_usage usage;
        struct error err;
        char name[40], fix[200];
        enum status st;
        unsigned percent;

        if (!file)
                return;
        snprintf(name, sizeof name, "map of %s", folder);
        if (access(file, F_OK) < 0 && errno == ENOENT) {
                report_finding(f, FINDING_OK, name, "", "no database yet");
                return;
        }
        st = lmdb_check_snapshot(dir, &err);
        if (!st)
                st = lmdb_measure_env(dir, &usage, &err);
        if (st) {
                report_finding(f, err.os_errno == EACCES ? FINDING_SKIPPED : FINDING_ERROR, name,
                               "see \"Damaged databases\" in docs/operations.md: the index and the list of scanned "
                               "files are rebuilt at the next start, the records of objects are restored from a backup",
                               "%s", err.text);
                return;
        }
        usage.map_bytes =
                lmdb_map_bytes(variable, (size_t)usage.map_bytes); /* the file records its largest size so far */
        percent = usage.map_bytes ? (unsigned)(usage.used_bytes * 100 / usage.map_bytes) : 0;
        snprintf(fix, sizeof fix, "set %s to more than %" PRIu64 " in the service's environment, and restart it",
                 variable, usage.map_bytes >> 20);
        report_finding(f,
                       percent >= MAP_FULL_PERCENT   ? FINDING_ERROR
                       : percent >= MAP_HIGH_PERCENT ? FINDING_WARNING
                                                     : FINDING_OK,
                       name, fix, "%" PRIu64 " of %" PRIu64 " MiB were used at most (%u percent)",
                       usage.used_bytes >> 20, usage.map_bytes >> 20, percent);
}

void check_database_maps(const struct examined *x, struct findings *f)
{
        struct error err;

        if (!has_data_directory(x, "databases", f))
                return;
        if (data_format_check(x->data, &err)) {
                report_finding(f, FINDING_ERROR, "databases", "see \"Upgrade and downgrade\" in docs/operations.md",
                               "%s", err.text);
                return;
        }
        check_database_map(x->data, "index", LMDB_MAP_INDEX, f);
        check_database_map(x->data, "debuginfo/meta", LMDB_MAP_DEBUGINFO, f);
        check_database_map(x->data, "scan/index", LMDB_MAP_SCAN, f);
}
