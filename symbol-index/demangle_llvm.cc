// SPDX-License-Identifier: Apache-2.0
// Compiled with -finstrument-functions: the compiler inserts a call of __cyg_profile_func_enter() in each function of
// LLVM's header.
#include "symbol-index/demangle_llvm.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include <llvm/Demangle/DemangleConfig.h>

#define UNCOUNTED __attribute__((no_instrument_function))

namespace {

// Names of real programs take at most 33 calls for each of their bytes and of the bytes of the readable name.
constexpr uint64_t CALLS_PER_BYTE = 300, CALLS_LEAST = 100000;
constexpr size_t MEMORY_PER_BYTE = 512, MEMORY_LEAST = 64 << 10;
constexpr size_t STACK_BYTES = 1 << 20;

struct Bounds {
        jmp_buf end;
        uint64_t calls_left;
        uintptr_t stack_end;
        char *memory;
        size_t used, size;
};

thread_local Bounds *bounds;

[[noreturn]] UNCOUNTED void give_up()
{
        longjmp(bounds->end, 1);
}

constexpr size_t ALIGNMENT = 16; // of blocks; one unit before each holds its size

UNCOUNTED void *bounded_malloc(size_t n)
{
        Bounds *b = bounds;
        size_t bytes = (n + 2 * ALIGNMENT - 1) & ~(ALIGNMENT - 1);
        char *block = b->memory + b->used;

        if (n > b->size || bytes > b->size - b->used)
                give_up();
        b->used += bytes;
        memcpy(block, &n, sizeof n);
        return block + ALIGNMENT;
}

UNCOUNTED void *bounded_realloc(void *old, size_t n)
{
        void *block = bounded_malloc(n);
        size_t old_n = 0;

        if (old) {
                memcpy(&old_n, static_cast<char *>(old) - ALIGNMENT, sizeof old_n);
                memcpy(block, old, old_n < n ? old_n : n);
        }
        return block;
}

UNCOUNTED void bounded_free(void *) {}

} // namespace

// What the vtables of the header's nodes refer to and nothing calls. With these the programs need no C++ library.
UNCOUNTED void operator delete(void *) noexcept
{
        give_up();
}

UNCOUNTED void operator delete(void *, std::size_t) noexcept
{
        give_up();
}

extern "C" UNCOUNTED void __cxa_pure_virtual();
extern "C" void __cxa_pure_virtual()
{
        give_up();
}

// The header calls these as members of std.
namespace std {
using ::bounded_free;
using ::bounded_malloc;
using ::bounded_realloc;
using ::give_up;
} // namespace std

#undef assert
#define assert(condition) ((condition) ? static_cast<void>(0) : give_up())
#define malloc bounded_malloc
#define realloc bounded_realloc
#define free bounded_free
#define abort give_up
#include <llvm/Demangle/ItaniumDemangle.h>
#undef malloc
#undef realloc
#undef free
#undef abort

extern "C" {
UNCOUNTED void __cyg_profile_func_enter(void *function, void *caller);
UNCOUNTED void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *, void *)
{
        if (bounds->calls_left-- == 0 || reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < bounds->stack_end)
                give_up();
}

void __cyg_profile_func_exit(void *, void *) {}
}

// Declared in the header: skip "_N", "__NUMBER_" or, at the end of the name, a number.
// Source: Itanium C++ ABI, 5.1.7.
const char *llvm::itanium_demangle::parse_discriminator(const char *first, const char *last)
{
        const bool is_long = last - first > 1 && first[0] == '_' && first[1] == '_';
        const char *digits = first + (is_long ? 2 : first != last && first[0] == '_' ? 1 : 0), *end = digits;

        while (end != last && *end >= '0' && *end <= '9')
                end++;
        if (is_long)
                return end != digits && end != last && *end == '_' ? end + 1 : first;
        if (digits != first)
                return end != digits ? digits + 1 : first;
        return end == last ? last : first;
}

namespace {

using namespace llvm::itanium_demangle;

struct Allocator {
        void reset() {}
        template <typename T, typename... Args> T *makeNode(Args &&...args)
        {
                return new (bounded_malloc(sizeof(T))) T(std::forward<Args>(args)...);
        }
        void *allocateNodeArray(size_t n)
        {
                return bounded_malloc(n * sizeof(Node *));
        }
};

// The parser and the output own nothing outside of the bounded memory.
UNCOUNTED size_t demangle_within_bounds(const char *name, size_t n, char *ret, size_t max)
{
        auto *parser = new (bounded_malloc(sizeof(ManglingParser<Allocator>))) ManglingParser<Allocator>(name, name + n);
        Node *tree = parser->parse();
        OutputBuffer out;
        size_t size;

        if (!tree)
                return 0;
        tree->print(out);
        size = out.getCurrentPosition();
        if (size > max)
                return 0;
        memcpy(ret, out.getBuffer(), size);
        return size;
}

} // namespace

UNCOUNTED size_t llvm_demangle_name(const char *name, size_t n, char *ret, size_t max)
{
        size_t memory_bytes = MEMORY_LEAST + MEMORY_PER_BYTE * n, size = 0;
        char *memory = static_cast<char *>(malloc(memory_bytes));
        Bounds b;

        if (!memory)
                return 0;
        b.calls_left = CALLS_LEAST + CALLS_PER_BYTE * n;
        b.stack_end = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - STACK_BYTES;
        b.memory = memory;
        b.used = 0;
        b.size = memory_bytes;
        bounds = &b;
        if (setjmp(b.end) == 0)
                size = demangle_within_bounds(name, n, ret, max);
        else
                size = 0;
        bounds = nullptr;
        free(memory);
        return size;
}
