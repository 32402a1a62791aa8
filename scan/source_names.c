/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/array.h"
#include "common/file.h"
#include "common/limits.h"
#include "dwarf/source_names.h"
#include "scan/found.h"
#include "scan/inspect.h"

struct hashes {
        uint64_t *items; /* owned */
        size_t count, capacity;
};

static bool add(void *context, const char *path)
{
        struct hashes *h = context;
        _cleanup_free_ char *normal = strdup(path);

        if (!normal || !array_reserve(&h->items, &h->capacity, h->count))
                return false;
        found_path_normalise(normal);
        h->items[h->count++] = found_path_hash(normal);
        return true;
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

enum status source_names_worker(int debuginfo, int out, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct hashes h = { 0 };
        size_t kept = 0;
        enum status st = elf_image_from_fd(debuginfo, "debuginfo", &img, err);

        if (!st)
                st = dwarf_source_names(&img, add, &h, err);
        if (h.count)
                qsort(h.items, h.count, sizeof *h.items, compare);
        for (size_t i = 0; i < h.count; i++)
                if (!kept || h.items[i] != h.items[kept - 1])
                        h.items[kept++] = h.items[i];
        if (!st)
                st = file_write_all(out, h.items, kept * sizeof *h.items, "names", err);
        free(h.items);
        return st;
}
