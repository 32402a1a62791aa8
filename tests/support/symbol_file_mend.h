/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_SYMBOL_FILE_MEND_H
#define CAIRN_TESTS_SUPPORT_SYMBOL_FILE_MEND_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/hash.h"
#include "symbolizer/symbol_file_internal.h"

/** A memfd with these bytes. */
static inline int symbol_file_of(const void *data, size_t size)
{
        int fd = memfd_create("symbol-file", MFD_CLOEXEC);

        if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
                abort();
        return fd;
}

/** Right checksums and the right size in the header: files of the corpus hold zeros there. */
static inline void symbol_file_mend(uint8_t *file, size_t size)
{
        uint64_t bytes, hash;

        if (size < SYMBOL_FILE_HEADER_BYTES)
                return;
        bytes = size - SYMBOL_FILE_HEADER_BYTES;
        hash = hash64(file + SYMBOL_FILE_HEADER_BYTES, bytes);
        memcpy(file + 176, &bytes, 8);
        memcpy(file + 184, &hash, 8);
        hash = hash64(file, SYMBOL_FILE_HEADER_HASHED);
        memcpy(file + SYMBOL_FILE_HEADER_HASHED, &hash, 8);
}

#endif
