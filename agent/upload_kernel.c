/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/upload_kernel.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/beneath.h"
#include "agent/text_line.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"

#define KERNEL_NAME "vmlinux" /* as agent/kernel.c gives it */
#define MODULE_NAME_MAX 64

/* Before and after the release or the module's path: Debian, then Fedora and its like, then whoever built it here. */
static const char *const kernel_places[][2] = { { DEBUG_DIR "/boot/vmlinux-", "" },
                                                { DEBUG_DIR "/lib/modules/", "/vmlinux" },
                                                { "/lib/modules/", "/build/vmlinux" } };
static const char *const module_places[][2] = { { DEBUG_DIR "/lib/modules/", "" },
                                                { DEBUG_DIR "/lib/modules/", ".debug" },
                                                { "/lib/modules/", "" } };
#define PLACES (sizeof kernel_places / sizeof *kernel_places)
_Static_assert(PLACES == sizeof module_places / sizeof *module_places, "both are tried alike");

/* "kernel/fs/xfs/xfs.ko.xz" is xfs; files may have dashes where names have underscores. */
static bool is_module(const char *path, size_t n, const char *name, size_t *plain_size_ret)
{
        const char *dot = memmem(path, n, ".ko", 3), *slash = dot ? memrchr(path, '/', (size_t)(dot - path)) : NULL;
        size_t size = slash ? (size_t)(dot - slash) - 1 : 0;

        if (!slash || size != strlen(name))
                return false;
        for (size_t i = 0; i < size; i++)
                if ((slash[1 + i] == '-' ? '_' : slash[1 + i]) != name[i])
                        return false;
        *plain_size_ret = (size_t)(dot - path) + 3;
        return true;
}

/* A module's path below /lib/modules/RELEASE, not packed. Source: modules.dep(5). */
static bool module_path(const struct upload_offer *o, const char *release, char *ret, size_t size)
{
        _cleanup_buf_ struct buf text = { 0 };
        _cleanup_close_ int fd = -1;
        struct text_line left, line;
        char path[LIMIT_PATH_BYTES];

        snprintf(path, sizeof path, "/lib/modules/%s/modules.dep", release);
        fd = open_regular_beneath(o->root_fd, path, 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        buf_init(&text, LIMIT_AGENT_MODULES_BYTES);
        if (fd < 0 || file_read(path, &text, NULL) || !text.size)
                return false;
        left = (struct text_line){ (const char *)text.data, (const char *)text.data + text.size };
        while (text_next_line(&left, &line)) {
                const char *colon = memchr(line.at, ':', text_size(&line));
                size_t n = colon ? (size_t)(colon - line.at) : 0, plain;

                if (!n || !is_module(line.at, n, o->path, &plain))
                        continue;
                return snprintf(ret, size, "%s/%.*s", release, (int)plain, line.at) < (int)size;
        }
        return false;
}

bool upload_kernel_path(const struct upload_offer *o, unsigned number, char *ret, size_t size)
{
        bool is_kernel = strcmp(o->path, KERNEL_NAME) == 0;
        const char *const *place = is_kernel ? kernel_places[number % PLACES] : module_places[number % PLACES];
        char middle[LIMIT_PATH_BYTES];
        struct utsname kernel;
        int n;

        if (number >= PLACES || strpbrk(o->path, "/[") || strlen(o->path) > MODULE_NAME_MAX || uname(&kernel) < 0)
                return false;
        if (is_kernel)
                snprintf(middle, sizeof middle, "%s", kernel.release);
        else if (!module_path(o, kernel.release, middle, sizeof middle))
                return false;
        n = snprintf(ret, size, "%s%s%s", place[0], middle, place[1]);
        return n > 0 && (size_t)n < size;
}
