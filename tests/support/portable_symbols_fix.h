/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_PORTABLE_SYMBOLS_FIX_H
#define CAIRN_TESTS_SUPPORT_PORTABLE_SYMBOLS_FIX_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/hash.h"
#include "symbolizer/formats/portable_symbols_internal.h"

/** A memfd with these bytes. */
static inline int portable_symbols_make_file(const void *data, size_t size)
{
        int fd = memfd_create("symbol-file", MFD_CLOEXEC);

        if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
                abort();
        return fd;
}

/** Fix the checksums and the size in the header: files of the corpus have zeros there. */
static inline void portable_symbols_fix_checksums(uint8_t *file, size_t size)
{
        uint64_t bytes, hash;

        if (size < PORTABLE_SYMBOLS_HEADER_BYTES)
                return;
        bytes = size - PORTABLE_SYMBOLS_HEADER_BYTES;
        hash = hash_bytes64(file + PORTABLE_SYMBOLS_HEADER_BYTES, bytes);
        memcpy(file + 176, &bytes, 8);
        memcpy(file + 184, &hash, 8);
        hash = hash_bytes64(file, PORTABLE_SYMBOLS_HASHED_BYTES);
        memcpy(file + PORTABLE_SYMBOLS_HASHED_BYTES, &hash, 8);
}

#endif
