/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_NAME_CLASS_H
#define CAIRN_PROFILE_FORMATS_NAME_CLASS_H

/**
 * @file
 * Names of frames that are no functions of a program: in brackets for code without a name, and those of code that a
 * linker, a C library or the kernel generated. `cairn why NAME` explains them; docs/reasons.md has the same list.
 *
 * Threads: any number.
 */

struct name_class {
        const char *name; /* whole, or with "*" for any text at the beginning or the end */
        const char *meaning;
        const char *next_step; /* "": there is nothing to do */
};

/** The class of a name; NULL for that of a function. Static. */
const struct name_class *name_class_find(const char *name);

#endif
