/* SPDX-License-Identifier: Apache-2.0 */
#include "common/lmdb_map.h"

#include <errno.h>
#include <stdlib.h>

#include "common/limits.h"

size_t lmdb_map_bytes(const char *variable, size_t normal_bytes)
{
        const char *text = getenv(variable);
        char *end;
        unsigned long long mib;

        if (!text || *text < '0' || *text > '9')
                return normal_bytes;
        errno = 0;
        mib = strtoull(text, &end, 10);
        return errno || *end || !mib || mib > SIZE_MAX / MiB(1) ? normal_bytes : (size_t)mib * MiB(1);
}

enum status lmdb_map_full(struct error *err, size_t map_bytes, const char *variable, const char *what)
{
        return error_no_room(err, "%s: its map of %zu MiB is full; set %s to more, see that 'ulimit -v' allows it, and restart",
                             what, map_bytes >> 20, variable);
}
