/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "common/limits.h"
#include "common/text.h"
#include "symbol-index/demangle_llvm.h"
#include "symbol-index/usual_mangling.h"

#define FLAGS (DMGL_PARAMS | DMGL_ANSI)

/*
 * libiberty's recursion limit rejects C++ names over 1,024 bytes, which real template code exceeds; the length bounds
 * the depth instead. In Rust names, back references create depth without length, so the limit is kept.
 */
#define LIBIBERTY_MANGLED_BYTES_MAX KiB(4)
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

static bool demangle_with_libiberty(const char *name, struct buf *scratch)
{
        bool done = false;

        if (starts_with(name, "_R") || starts_with(name, "_ZN"))
                done = demangle_with(rust_demangle_callback, FLAGS, name, scratch);
        if (!done && (starts_with(name, "_Z") || starts_with(name, "_GLOBAL_")))
                done = demangle_with(cplus_demangle_v3_callback, CPLUSPLUS_FLAGS, name, scratch);
        return done || (starts_with(name, "_D") && demangle_d(name, scratch));
}

/* Append the suffixes of a name as libiberty prints them: ".isra.0.cold" is " [clone .isra.0] [clone .cold]". */
static void append_clone_suffixes(struct buf *to, const char *suffixes)
{
        while (*suffixes) {
                size_t n = 1 + strcspn(suffixes + 1, ".");

                while (suffixes[n] == '.' && suffixes[n + 1] >= '0' && suffixes[n + 1] <= '9')
                        n += 1 + strspn(suffixes + n + 1, "0123456789");
                buf_printf(to, " [clone %.*s]", (int)n, suffixes);
                suffixes += n;
        }
}

/* For names that libiberty does not know, such as those of C++20, or does not print. */
static bool demangle_with_llvm(const char *name, struct buf *scratch)
{
        size_t n = strcspn(name, "."), size;
        void *to;

        buf_clear(scratch);
        to = buf_reserve(scratch, LIMIT_DEMANGLED_BYTES);
        size = to ? llvm_demangle_name(name, n, to, LIMIT_DEMANGLED_BYTES) : 0;
        if (!size)
                return false;
        buf_commit(scratch, size);
        append_clone_suffixes(scratch, name + n);
        return !scratch->failed && scratch->size <= LIMIT_DEMANGLED_BYTES;
}

/* @param n  size of the name, without the NUL. */
static bool demangle_name(const char *name, size_t n, struct buf *scratch)
{
        return (n <= LIBIBERTY_MANGLED_BYTES_MAX && demangle_with_libiberty(name, scratch)) ||
               (starts_with(name, "_Z") && demangle_with_llvm(name, scratch));
}

/* "@plt" of a stub, and the version of a symbol, such as "@@LIB_1.0", follow the mangled name. */
static bool demangle_before_suffix(const char *name, const char *suffix, struct buf *scratch)
{
        _cleanup_free_ char *mangled = strndup(name, (size_t)(suffix - name));

        return mangled && demangle_name(mangled, (size_t)(suffix - name), scratch) &&
               strlen(suffix) <= LIMIT_DEMANGLED_BYTES - scratch->size && !buf_append_str(scratch, suffix);
}

const char *symbol_demangle(const char *linkage_name, struct buf *scratch)
{
        const char *readable, *suffix;
        size_t n;

        if (linkage_name[0] != '_')
                return linkage_name;
        n = strnlen(linkage_name, LIMIT_MANGLED_BYTES + 1);
        if (n > LIMIT_MANGLED_BYTES)
                return linkage_name;
        suffix = memchr(linkage_name, '@', n);
        if (suffix ? !demangle_before_suffix(linkage_name, suffix, scratch) : !demangle_name(linkage_name, n, scratch))
                return linkage_name;
        readable = buf_cstr(scratch);
        return readable ? readable : linkage_name;
}

bool symbol_can_be_demangled(const char *name)
{
        _cleanup_buf_ struct buf scratch = { 0 };

        if (has_usual_mangling(name, strnlen(name, LIMIT_MANGLED_BYTES + 1)))
                return true;
        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        return symbol_demangle(name, &scratch) != name;
}
