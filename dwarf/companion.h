/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_COMPANION_H
#define CAIRN_DWARF_COMPANION_H

/**
 * @file
 * Split DWARF: the linked file has skeletons of units, and the rest of each is
 * in a .dwo file of its own or in a package of many (.dwp). A companion is the
 * other half of one skeleton, open.
 *
 * What is relative to a section in a companion is relative to its own part of
 * the package; addresses, and before version 5 range lists, are in the linked
 * file (dwarf/context.h).
 * Source: DWARF 5, 7.3.2 and 7.3.5; GCC wiki, DebugFission and DebugFissionDWP.
 */
#include "dwarf/file.h"

struct dwarf_package;

/** Who opens .dwo files. All zero: nobody. */
struct dwarf_dwo_source {
        /**
         * Open a file that may be the .dwo file of this name; NULL: nobody can.
         * @param id        of the unit that the skeleton wants.
         * @param directory where the unit was compiled; NULL unknown.
         * @param attempt 0, 1, ... until one is the right one, which the caller finds out.
         * @param fd_ret  owned by the caller.
         * @return ST_NOT_FOUND: there are no more. Threads: any.
         */
        enum status (*open)(void *context, uint64_t id, const char *directory, const char *name, unsigned attempt, int *fd_ret);
        void *context;
};

/** Who has the other halves. All zero: nobody. */
struct dwarf_companions {
        const struct dwarf_package *package; /* asked first; NULL none */
        struct dwarf_dwo_source dwo;
};

struct dwarf_companion {
        struct elf_image image; /* not open for a part of a package */
        struct dwarf_file file;
};

/** @param ret owned; fd stays the caller's. ST_NOT_FOUND without .debug_info.dwo, ST_BAD_DATA, ST_NO_MEMORY. */
enum status dwarf_companion_from_fd(int fd, struct dwarf_companion **ret) MUST_CHECK;
/** @param ret owned, borrows the package. ST_NOT_FOUND when it has none of this id. */
enum status dwarf_companion_from_package(const struct dwarf_package *p, uint64_t id, struct dwarf_companion **ret) MUST_CHECK;
/** As above, of the type unit with a signature. */
enum status dwarf_companion_of_type(const struct dwarf_package *p, uint64_t signature, struct dwarf_companion **ret) MUST_CHECK;
/** NULL is fine. */
void dwarf_companion_close(struct dwarf_companion *c);

#endif
