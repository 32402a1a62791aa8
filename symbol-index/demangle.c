/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "common/limits.h"
#include "common/text.h"

#define FLAGS (DMGL_PARAMS | DMGL_ANSI)

/*
 * libiberty's recursion limit rejects C++ names over 1,024 bytes, which real template code exceeds; LIMIT_MANGLED_BYTES
 * bounds the depth instead. In Rust names, back references create depth without length, so the limit is kept.
 */
#define CPLUSPLUS_FLAGS (FLAGS | DMGL_NO_RECURSE_LIMIT)

/*
 * A back reference of a D name may repeat a part with two back references, so the readable name can double with every
 * second one.
 */
#define D_BACK_REFERENCES_MAX 24

/*
 * libiberty's callbacks cannot stop the demangler; beyond the limit it is left by longjmp, which is safe since its
 * callback interface allocates only on the stack.
 */
struct sink {
        struct buf *buf;
        jmp_buf enough;
};

static void append_demangled(const char *text, size_t n, void *opaque)
{
        struct sink *sink = opaque;

        if (n > LIMIT_DEMANGLED_BYTES - sink->buf->size || buf_append(sink->buf, text, n))
                longjmp(sink->enough, 1);
}

static bool demangle_with(int (*demangler)(const char *, int, demangle_callbackref, void *), int flags,
                          const char *name, struct buf *scratch)
{
        struct sink sink = { .buf = scratch };

        buf_clear(scratch);
        if (setjmp(sink.enough))
                return false;
        return demangler(name, flags, append_demangled, &sink) && scratch->size > 0;
}

static bool demangle_d(const char *name, struct buf *scratch)
{
        _cleanup_free_ char *readable = NULL;
        unsigned back_references = 0;

        for (const char *p = name; *p; p++)
                back_references += *p == 'Q';
        if (back_references > D_BACK_REFERENCES_MAX)
                return false;
        readable = dlang_demangle(name, FLAGS);
        buf_clear(scratch);
        return readable && strlen(readable) <= LIMIT_DEMANGLED_BYTES && !buf_append_str(scratch, readable);
}

const char *symbol_demangle(const char *linkage_name, struct buf *scratch)
{
        const char *readable;
        bool done = false;

        if (linkage_name[0] != '_' || strnlen(linkage_name, LIMIT_MANGLED_BYTES + 1) > LIMIT_MANGLED_BYTES)
                return linkage_name;
        if (starts_with(linkage_name, "_R") || starts_with(linkage_name, "_ZN"))
                done = demangle_with(rust_demangle_callback, FLAGS, linkage_name, scratch);
        if (!done && (starts_with(linkage_name, "_Z") || starts_with(linkage_name, "_GLOBAL_")))
                done = demangle_with(cplus_demangle_v3_callback, CPLUSPLUS_FLAGS, linkage_name, scratch);
        if (!done && starts_with(linkage_name, "_D"))
                done = demangle_d(linkage_name, scratch);
        if (!done)
                return linkage_name;
        readable = buf_cstr(scratch);
        return readable ? readable : linkage_name;
}
