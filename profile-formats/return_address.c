/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/return_address.h"

#include <string.h>

#include "common/text.h"

#define KERNEL_START (UINT64_C(1) << 63)
#define LINKED_LIMIT                                                                                                   \
        (UINT64_C(1) << 40) /* link addresses are below 1 TiB, load addresses of PIE and shared objects above */

uint64_t adjust_caller_address(enum address_source source, uint64_t address, uint32_t depth, bool interrupted)
{
        if (source != ADDRESS_SOURCE_RAW_CHAIN || depth == 0 || interrupted || address == 0)
                return address;
        return address - 1;
}

static bool is_kernel_name(const char *file)
{
        return starts_with(file, KERNEL_FILE) || starts_with(file, "[guest.kernel.kallsyms") ||
               strcmp(file, "vmlinux") == 0 || strcmp(file, "[kernel]") == 0;
}

enum profile_address_kind normalize_sender_address(enum address_source source, const struct address_mapping *m,
                                                   uint64_t address, uint64_t *ret, bool *is_kernel_ret)
{
        bool inside = address >= m->memory_start && address < m->memory_limit;

        *is_kernel_ret = address >= KERNEL_START || is_kernel_name(m->file);
        *ret = address;
        if (*is_kernel_ret || !inside)
                return ADDRESS_OBJECT;
        if (source == ADDRESS_SOURCE_OTLP && m->memory_start < LINKED_LIMIT)
                return ADDRESS_OBJECT;
        if (source == ADDRESS_SOURCE_PPROF && m->memory_start == 0)
                return ADDRESS_OBJECT;
        if (__builtin_add_overflow(address - m->memory_start, m->file_offset, ret)) {
                *ret = address;
                return ADDRESS_OBJECT;
        }
        return ADDRESS_FILE_OFFSET;
}
