/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_SPLIT_COMPANION_H
#define CAIRN_DWARF_SPLIT_COMPANION_H

/**
 * @file
 * Split DWARF. The linked file contains skeleton units; the rest of each unit is in a .dwo file or in a package of many
 * units (.dwp). A companion is the opened split unit of one skeleton.
 *
 * Offsets relative to a section refer, in a companion, to its contribution to that section of the package. Addresses,
 * and before version 5 range lists, are in the linked file (dwarf/context.h).
 * Source: DWARF 5, 7.3.2 and 7.3.5; GCC wiki, DebugFission and DebugFissionDWP.
 */
#include "dwarf/dwarf_file.h"

struct dwarf_package;

/** Callback that opens .dwo files. All zero: none are available. */
struct dwarf_dwo_source {
        /**
         * Open a candidate for the .dwo file of this name. NULL: none are available.
         * @param id        of the split unit, from the skeleton.
         * @param directory of the compilation; NULL unknown.
         * @param attempt   0, 1, ...: the number of the candidate. The caller checks whether it is the right one.
         * @param fd_ret    owned by the caller.
         * @return ST_NOT_FOUND: no further candidates. Threads: any.
         */
        enum status (*open)(void *context, uint64_t id, const char *directory, const char *name, unsigned attempt,
                            int *fd_ret);
        void *context;
};

/** Sources of split units. All zero: none. */
struct dwarf_companions {
        const struct dwarf_package *package; /* tried first; NULL none */
        struct dwarf_dwo_source dwo;
};

struct dwarf_companion {
        struct elf_image image; /* not open for a part of a package */
        struct dwarf_file file;
};

/** @param ret owned; fd stays the caller's. ST_NOT_FOUND without .debug_info.dwo, ST_BAD_DATA, ST_NO_MEMORY. */
enum status dwarf_companion_from_fd(int fd, struct dwarf_companion **ret) MUST_CHECK;
/** @param ret owned, borrows the package. ST_NOT_FOUND when the package does not contain this id. */
enum status dwarf_companion_from_package(const struct dwarf_package *p, uint64_t id,
                                         struct dwarf_companion **ret) MUST_CHECK;
/** As above, of the type unit with a signature. */
enum status dwarf_companion_of_type(const struct dwarf_package *p, uint64_t signature,
                                    struct dwarf_companion **ret) MUST_CHECK;
/** NULL is fine. */
void dwarf_companion_close(struct dwarf_companion *c);

#endif
