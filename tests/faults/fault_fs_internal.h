/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_FAULTS_FAULT_FS_INTERNAL_H
#define CAIRN_TESTS_FAULTS_FAULT_FS_INTERNAL_H

/* Queries of the interposed calls (fault_calls.c): is the path watched, and which fault applies? */
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/faults/fault_log.h"

#define FDS_MAX 1024
#define PATH_ROOM (PATH_MAX + 256)

/* FULL and later modes may depend on the existence of a file (fault_fs.flag). */
enum mode { OFF, COUNT, KILL, FAIL, FULL, READ_ONLY, BAD_SYNC, HANG };

struct fault_fs {
        pthread_mutex_t lock;
        enum mode mode;
        char dir[PATH_MAX];
        size_t dir_size;
        unsigned step, at;
        int os_errno;
        bool cut_short;   /* the write after a short write fails */
        int log_fd;       /* -1: none */
        const char *flag; /* path of the flag file; NULL: the mode is set by a function */
        char where[PATH_ROOM + 32];
        bool dsync[FDS_MAX]; /* opened with O_DSYNC, which is not passed to the kernel */
};
extern struct fault_fs fault;

/** The path of a name below an open directory; "" if unknown. name may be NULL: the directory or file itself. */
void fault_path(int dir_fd, const char *name, char ret[static PATH_ROOM]);
bool fault_is_watched(const char *path);
bool fault_is_on(void);
/** Is the file system read-only now? */
bool fault_is_read_only(void);
/** Is the file system full for this path? */
bool fault_has_no_room(const char *path);
/** Blocks while the file system hangs. */
void fault_wait(void);

enum need { NEEDS_ROOM, NEEDS_NONE };

/** Locked. Counts a step; does not return if the process is killed. False: the call fails with errno. */
bool fault_step(const char *what, const char *path, enum need need);
void fault_where(const char *what, const char *path);

struct fault_change {
        enum fault_op op;
        bool synced;
        uint64_t inode, offset;
        const char *path, *other; /* may be NULL */
        const void *bytes;
        size_t byte_count;
};
/** Locked, called after a modification: appends it to the log, if one is set. */
void fault_note(const struct fault_change *c);

#endif
