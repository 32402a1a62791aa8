/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_CLEANUP_H
#define CAIRN_COMMON_CLEANUP_H

/*
 * Scope guards: the resource is released when the variable leaves its scope. steal_ptr() and steal_fd() transfer
 * ownership to another variable or to the caller.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
        free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
        if (*fd >= 0) {
                int saved = errno;

                close(*fd);
                errno = saved;
        }
}

static inline void cleanup_closedir(DIR **d)
{
        if (*d)
                closedir(*d);
}

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)
#define _cleanup_closedir_ _cleanup_(cleanup_closedir)

#define steal_ptr(p)                                                                                                   \
        ({                                                                                                             \
                __auto_type steal_p_ = &(p);                                                                           \
                __auto_type steal_v_ = *steal_p_;                                                                      \
                *steal_p_ = NULL;                                                                                      \
                steal_v_;                                                                                              \
        })

static inline int steal_fd(int *fd)
{
        int v = *fd;

        *fd = -1;
        return v;
}

#endif
