/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_RUNTIME_SYMBOLS_H
#define CAIRN_SAMPLING_RUNTIMES_RUNTIME_SYMBOLS_H

/** @file What the symbols of an ELF file tell about the runtimes in it, about contexts of threads, and about labels of
 * Go. */
#include "sampling/runtimes/context_symbols.h"
#include "sampling/runtimes/go_symbols.h"
#include "sampling/runtimes/hotspot_symbols.h"
#include "sampling/runtimes/python_symbols.h"
#include "sampling/runtimes/v8_symbols.h"

struct runtime_symbols {
        struct python_symbols python; /* link-time addresses */
        struct v8_symbols v8;
        uint64_t has_v8;
        struct hotspot_symbols hotspot;
        struct context_symbols context;
        struct go_symbols go;
};

static inline void runtime_symbols_read(const struct elf_image *img, struct runtime_symbols *ret)
{
        python_symbols_read(img, &ret->python);
        ret->has_v8 = v8_symbols_read(img, &ret->v8);
        hotspot_symbols_read(img, &ret->hotspot);
        context_symbols_read(img, &ret->context);
        go_symbols_read(img, &ret->go);
}

#endif
