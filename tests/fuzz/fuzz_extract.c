/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as an ELF file with DWARF: extraction must not crash, and the resulting table must keep its
 * invariants.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "symbolizer/extraction/extract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
        const struct extract_inputs in = { .debuginfo_fd = fd, .executable_fd = -1, .altlink_fd = -1, .name = "fuzz" };
        struct symbol_table t;
        struct error err;

        if (size && write(fd, data, size) != (ssize_t)size)
                abort();
        if (symbol_table_extract(&in, &t, &err))
                return 0;
        if (symbol_table_check(&t, &err)) {
                fprintf(stderr, "%s\n", err.text);
                abort();
        }
        symbol_table_deinit(&t);
        return 0;
}
