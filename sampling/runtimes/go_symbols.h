/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_GO_SYMBOLS_H
#define CAIRN_SAMPLING_RUNTIMES_GO_SYMBOLS_H

/**
 * @file
 * How the labels of goroutines (pprof.Do) are found in the threads of a Go program: the variable with the current g,
 * and the offsets of the fields on the way from it to the labels. The offsets are from the DWARF of the file, or
 * from a table of versions if it has none.
 *
 * Source: Go, src/runtime/runtime2.go, src/runtime/pprof/label.go, src/debug/buildinfo/buildinfo.go.
 */
#include "sampling/runtimes/context_symbols.h"

enum go_labels_state {
        GO_LABELS_NONE, /* the file has no Go */
        GO_LABELS_FOUND,
        GO_LABELS_UNKNOWN_VERSION,
        GO_LABELS_NO_VARIABLE,
};

struct go_symbols {
        uint64_t state;           /* enum go_labels_state */
        uint64_t version;         /* the minor one: 26 of Go 1.26; 0: unknown */
        struct context_symbols g; /* the variable */
        uint64_t m, curg, labels; /* offsets of g.m, m.curg, g.labels */
        uint64_t has_map;         /* labels are a map: before 1.24 */
};

/** Zero if the file has no Go. */
void go_symbols_read(const struct elf_image *img, struct go_symbols *ret);

#endif
