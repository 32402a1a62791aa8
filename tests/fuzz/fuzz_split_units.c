/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ELF files, preceded by two bytes with the length of the first: a linked file with skeleton units, and a possible
 * .dwo file or package for them.
 */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "dwarf/split_units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define UNITS_MAX 100000 /* more than an input of this size can contain */

struct seen {
        uint64_t count;
        size_t bytes;
};

static enum status see_unit(void *context, const struct dwarf_split_unit *unit)
{
        struct seen *s = context;

        s->bytes += (unit->name ? strlen(unit->name) : 0) + (unit->directory ? strlen(unit->directory) : 0);
        if (++s->count > UNITS_MAX)
                abort();
        return ST_OK;
}

static enum status stop_walk(void *context, const struct dwarf_split_unit *unit)
{
        (void)context;
        (void)unit;
        return ST_BUSY;
}

/* In an allocation of its own, so that AddressSanitizer detects reads past its end. */
static bool open_image(const uint8_t *data, size_t size, uint8_t **copy_ret, struct elf_image *ret)
{
        *copy_ret = malloc(size ? size : 1);
        if (size)
                memcpy(*copy_ret, data, size);
        return elf_image_from_memory(*copy_ret, size, "fuzz", ret, NULL) == ST_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ uint8_t *linked_bytes = NULL, *other_bytes = NULL;
        _cleanup_elf_image_ struct elf_image linked = { 0 }, other = { 0 };
        uint64_t id, units = 0, asked = 0;
        struct seen seen = { 0 };
        bool has_linked;
        size_t n;

        if (size < 2)
                return 0;
        n = (size_t)(data[0] | data[1] << 8);
        n = n < size - 2 ? n : size - 2;
        has_linked = open_image(data + 2, n, &linked_bytes, &linked);
        if (has_linked) {
                (void)!dwarf_split_units(&linked, see_unit, &seen, NULL);
                if (dwarf_split_units(&linked, stop_walk, NULL, NULL) == ST_OK && seen.count)
                        abort();
        }
        if (!open_image(data + 2 + n, size - 2 - n, &other_bytes, &other))
                return 0;
        (void)!dwarf_split_file_id(&other, &id, NULL);
        (void)!dwarf_split_package_units(&other, NULL, &units, &asked, NULL);
        if (asked)
                abort();
        if (has_linked && !dwarf_split_package_units(&other, &linked, &units, &asked, NULL) && asked > seen.count)
                abort();
        return 0;
}
