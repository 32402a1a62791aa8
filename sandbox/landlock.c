/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions for kernels newer than the headers of Debian 12. */
#include "sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "sandbox/mount_namespace.h"

#define SYS_CREATE_RULESET 444
#define SYS_ADD_RULE 445
#define SYS_RESTRICT_SELF 446
#define RULE_PATH_BENEATH 1
#define ASK_VERSION 1u

#define FILE_EXECUTE (1ull << 0)
#define FILE_WRITE (1ull << 1)
#define FILE_READ (1ull << 2)
#define DIRECTORY_READ (1ull << 3)
#define FILES_OF_VERSION_1 ((1ull << 13) - 1) /* execute to make_sym */
#define REMOVE_DIRECTORY (1ull << 4)
#define REMOVE_FILE (1ull << 5)
#define MAKE_DIRECTORY (1ull << 7)
#define MAKE_REGULAR (1ull << 8)
#define REFER (1ull << 13)     /* version 2 */
#define TRUNCATE (1ull << 14)  /* version 3 */
#define IOCTL_DEV (1ull << 15) /* version 5 */
#define BIND_TCP (1ull << 0)   /* version 4, like the next */
#define CONNECT_TCP (1ull << 1)
#define ABSTRACT_SOCKETS (1ull << 0) /* version 6, like the next */
#define SIGNALS (1ull << 1)

#define USE_OF_FILES                                                                                                   \
        (FILE_WRITE | FILE_READ | DIRECTORY_READ | REMOVE_DIRECTORY | REMOVE_FILE | MAKE_DIRECTORY | MAKE_REGULAR |    \
         REFER | TRUNCATE)

struct ruleset {
        uint64_t files, tcp, scoped;
};

struct path_rule {
        uint64_t allowed;
        int32_t parent_fd;
} __attribute__((packed));

int landlock_version(void)
{
        long version = syscall(SYS_CREATE_RULESET, NULL, 0, ASK_VERSION);

        return version < 0 ? 0 : (int)version;
}

static struct ruleset rights_of_version(int version)
{
        struct ruleset r = { .files = FILES_OF_VERSION_1 };

        r.files |= (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0) | (version >= 5 ? IOCTL_DEV : 0);
        r.tcp = version >= 4 ? BIND_TCP | CONNECT_TCP : 0;
        r.scoped = version >= 6 ? ABSTRACT_SOCKETS | SIGNALS : 0;
        return r;
}

static size_t ruleset_size(int version)
{
        return version >= 6 ? sizeof(struct ruleset) : version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

/* A path that does not exist is skipped. */
static enum status allow_path(int ruleset, const char *path, uint64_t rights, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
        struct path_rule rule = { .allowed = rights, .parent_fd = fd };
        struct stat st;

        if (fd < 0 || fstat(fd, &st))
                return ST_OK;
        if (!S_ISDIR(st.st_mode))
                rule.allowed &= FILE_EXECUTE | FILE_WRITE | FILE_READ | TRUNCATE | IOCTL_DEV;
        if (syscall(SYS_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0))
                return error_os(err, errno, "cannot allow a worker to access '%s'", path);
        return ST_OK;
}

static enum status allow_reading(int ruleset, const char *const *paths, struct error *err)
{
        enum status st = ST_OK;

        for (; !st && *paths; paths++)
                st = allow_path(ruleset, *paths, FILE_READ | DIRECTORY_READ, err);
        return st;
}

static enum status allow_files(int ruleset, const struct worker_files *files, uint64_t handled, struct error *err)
{
        enum status st = allow_reading(ruleset, files->readable, err);

        return st ? st : allow_path(ruleset, files->writable, handled & USE_OF_FILES, err);
}

enum status landlock_restrict(enum worker_needs needs, const struct worker_files *files, int abi_max, struct error *err)
{
        int kernel = landlock_version(), version = kernel < abi_max ? kernel : abi_max;
        struct ruleset all = rights_of_version(version);
        _cleanup_close_ int ruleset = -1;
        enum status st = ST_OK;

        if (!version)
                return ST_OK;
        if (needs == WORKER_NEEDS_NETWORK)
                all.tcp &= BIND_TCP;
        ruleset = (int)syscall(SYS_CREATE_RULESET, &all, ruleset_size(version), 0);
        if (ruleset < 0)
                return error_os(err, errno, "cannot create a Landlock ruleset");
        if (needs == WORKER_NEEDS_NETWORK)
                st = allow_reading(ruleset, network_worker_paths, err);
        if (!st && files)
                st = allow_files(ruleset, files, all.files, err);
        if (!st && syscall(SYS_RESTRICT_SELF, ruleset, 0))
                st = error_os(err, errno, "cannot confine the worker with Landlock");
        return st;
}
