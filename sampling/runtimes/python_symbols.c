/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/python_symbols.h"

#include <elf.h>
#include <string.h>

void python_symbols_read(const struct elf_image *img, struct python_symbols *ret)
{
        struct python_symbols found = { 0 };
        const struct {
                const char *name;
                uint64_t *address;
        } wanted[] = {
                { "_PyRuntime", &found.runtime },
                { "Py_Version", &found.version },
                { "PyCode_Type", &found.code_type },
                { "PyUnicode_Type", &found.text_type },
        };
        struct elf_symbol_cursor cursor;
        struct elf_symbol s;

        *ret = found;
        if (elf_symbols_begin_type(img, SHT_DYNSYM, &cursor, NULL))
                return;
        while (elf_symbols_next(&cursor, &s)) {
                if (s.section != SHN_UNDEF && s.type == STT_FUNC && strcmp(s.name, "_PyEval_EvalFrameDefault") == 0) {
                        found.eval = s.value;
                        found.eval_bytes = s.size;
                }
                for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
                        if (s.section != SHN_UNDEF && s.type == STT_OBJECT && strcmp(s.name, wanted[i].name) == 0)
                                *wanted[i].address = s.value;
        }
        *ret = found;
}
