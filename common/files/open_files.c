/* SPDX-License-Identifier: Apache-2.0 */
#include "common/files/open_files.h"

#include <errno.h>
#include <sys/resource.h>

uint64_t raise_open_files_limit(uint64_t wanted)
{
        struct rlimit files, more;

        if (getrlimit(RLIMIT_NOFILE, &files) < 0)
                return 0;
        more = files;
        more.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
        if (more.rlim_cur <= files.rlim_cur || setrlimit(RLIMIT_NOFILE, &more) < 0)
                return files.rlim_cur;
        return more.rlim_cur;
}

bool open_files_is_shortage(int os_errno)
{
        return os_errno == EMFILE || os_errno == ENFILE || os_errno == EAGAIN;
}
