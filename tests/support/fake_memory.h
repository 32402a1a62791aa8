/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_FAKE_MEMORY_H
#define CAIRN_TESTS_SUPPORT_FAKE_MEMORY_H

/** @file Memory of an invented process: bytes at FAKE_MEMORY_START, nothing elsewhere. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FAKE_MEMORY_START 0x10000u

struct fake_memory {
        const uint8_t *bytes;
        size_t size;
        uint64_t reads;
};

static inline bool fake_memory_read(void *ctx, uint64_t addr, void *to, size_t n)
{
        struct fake_memory *m = ctx;

        m->reads++;
        if (addr < FAKE_MEMORY_START || addr - FAKE_MEMORY_START > m->size || n > m->size - (addr - FAKE_MEMORY_START))
                return false;
        memcpy(to, m->bytes + (addr - FAKE_MEMORY_START), n);
        return true;
}

#endif
