/* SPDX-License-Identifier: Apache-2.0 */
#include "elf-image/quality.h"

#include <string.h>

static const char *const names[] = {
        [QUALITY_NONE] = "none",     [QUALITY_BOUNDARIES] = "boundaries",
        [QUALITY_DYNSYM] = "dynsym", [QUALITY_MINIDEBUGINFO] = "minidebuginfo",
        [QUALITY_SYMTAB] = "symtab", [QUALITY_GO_PCLNTAB] = "go_pclntab",
        [QUALITY_LINES] = "lines",   [QUALITY_DWARF] = "dwarf",
};
#define NAME_COUNT (sizeof names / sizeof *names)

const char *symbol_quality_name(enum symbol_quality q)
{
        return (unsigned)q < NAME_COUNT ? names[q] : "none";
}

bool symbol_quality_parse(const char *name, enum symbol_quality *ret)
{
        for (unsigned i = 0; i < NAME_COUNT; i++) {
                if (strcmp(name, names[i]) == 0) {
                        *ret = (enum symbol_quality)i;
                        return true;
                }
        }
        return false;
}

bool symbol_quality_is_better(enum symbol_quality a, bool a_is_partial, enum symbol_quality b, bool b_is_partial)
{
        return a != b ? a > b : !a_is_partial && b_is_partial;
}
