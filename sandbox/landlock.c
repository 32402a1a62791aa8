/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The headers of Debian 12 are older than the kernels that it may run on, so
 * the numbers are here.
 */
#include "sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "sandbox/private_files.h"

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
#define REFER (1ull << 13)                    /* version 2 */
#define TRUNCATE (1ull << 14)                 /* version 3 */
#define IOCTL_DEV (1ull << 15)                /* version 5 */
#define BIND_TCP (1ull << 0)                  /* version 4, as is the next */
#define CONNECT_TCP (1ull << 1)
#define ABSTRACT_SOCKETS (1ull << 0)          /* version 6, as is the next */
#define SIGNALS (1ull << 1)

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

static struct ruleset all_of_version(int version)
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

/* A path that is not there needs no rule. */
static enum status allow(int ruleset, const char *path, uint64_t rights, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
        struct path_rule rule = { .allowed = rights, .parent_fd = fd };
        struct stat st;

        if (fd < 0 || fstat(fd, &st))
                return ST_OK;
        if (!S_ISDIR(st.st_mode))
                rule.allowed &= FILE_EXECUTE | FILE_WRITE | FILE_READ | TRUNCATE | IOCTL_DEV;
        if (syscall(SYS_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0))
                return error_os(err, errno, "cannot allow a worker '%s'", path);
        return ST_OK;
}

static enum status allow_network_files(int ruleset, struct error *err)
{
        enum status st = ST_OK;

        for (const char *const *path = network_worker_paths; !st && *path; path++)
                st = allow(ruleset, *path, FILE_READ | DIRECTORY_READ, err);
        return st;
}

enum status landlock_restrict(enum worker_needs needs, int abi_max, struct error *err)
{
        int kernel = landlock_version(), version = kernel < abi_max ? kernel : abi_max;
        struct ruleset all = all_of_version(version);
        _cleanup_close_ int ruleset = -1;
        enum status st = ST_OK;

        if (!version)
                return ST_OK;
        if (needs == WORKER_NEEDS_NETWORK)
                all.tcp &= BIND_TCP;
        ruleset = (int)syscall(SYS_CREATE_RULESET, &all, ruleset_size(version), 0);
        if (ruleset < 0)
                return error_os(err, errno, "cannot make a Landlock ruleset");
        if (needs == WORKER_NEEDS_NETWORK)
                st = allow_network_files(ruleset, err);
        if (!st && syscall(SYS_RESTRICT_SELF, ruleset, 0))
                st = error_os(err, errno, "cannot confine the worker with Landlock");
        return st;
}
