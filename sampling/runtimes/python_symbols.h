/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_PYTHON_SYMBOLS_H
#define CAIRN_SAMPLING_RUNTIMES_PYTHON_SYMBOLS_H

/**
 * @file
 * Addresses of the symbols by which an ELF file is known to contain a CPython interpreter. Every build exports them,
 * and strip keeps them; names of files tell nothing of programs that embed the interpreter.
 */
#include <stdint.h>

#include "elf-image/elf_image.h"

struct python_symbols {
        uint64_t runtime;              /* _PyRuntime; 0: the file has no interpreter */
        uint64_t version;              /* Py_Version, a word with PY_VERSION_HEX; 0: older than 3.11 */
        uint64_t code_type, text_type; /* PyCode_Type, PyUnicode_Type */
        uint64_t eval, eval_bytes;     /* _PyEval_EvalFrameDefault, the loop's function, and its size */
};

/** The link-time addresses, zero where the file defines no such symbol. */
void python_symbols_read(const struct elf_image *img, struct python_symbols *ret);

#endif
