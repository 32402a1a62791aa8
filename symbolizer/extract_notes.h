/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACT_NOTES_H
#define CAIRN_SYMBOLIZER_EXTRACT_NOTES_H

/**
 * @file
 * What of an object could not be read, while the rest could: the text that
 * makes its symbol table "partial".
 */
#include "symbolizer/dwarf_extract.h"

struct extract_notes {
        char text[SYMBOL_PARTIAL_BYTES]; /* "" nothing is missing */
};

/** Add a reason behind those there are; one that is there already is not repeated, what is too long is cut. */
void extract_note(struct extract_notes *n, const char *fmt, ...) PRINTF(2, 3);

/** Of what DWARF there is, what could not be read. */
void extract_note_dwarf(struct extract_notes *n, const struct dwarf_summary *s);

/**
 * Can the object be used without what failed with st? Then its reason is noted.
 * No: without memory or with an error of the system, trying again may give more.
 * @return ST_OK when it is noted (or st is), else st.
 */
enum status extract_note_failure(struct extract_notes *n, enum status st, const struct error *reason,
                                 struct error *err) MUST_CHECK;

#endif
