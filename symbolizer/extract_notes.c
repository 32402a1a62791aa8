/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extract_notes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

#define CUT "..."

/* Names come from files: the text stays one line of UTF-8 whatever they hold. */
static void make_plain(char *text)
{
        size_t n = strlen(text);

        for (size_t i = 0, step; i < n; i += step) {
                step = utf8_sequence(text + i, n - i);
                if (step == 0 || (unsigned char)text[i] < ' ' || text[i] == 0x7f) {
                        text[i] = '?';
                        step = 1;
                }
        }
}

void extract_note(struct extract_notes *n, const char *fmt, ...)
{
        char added[sizeof ((struct error *)0)->text];
        size_t have = strlen(n->text), room = sizeof n->text - have, size;
        va_list args;

        va_start(args, fmt);
        vsnprintf(added, sizeof added, fmt, args);
        va_end(args);
        make_plain(added);
        size = strlen(added) + (have ? 2 : 0);
        if (strstr(n->text, added) || room <= sizeof CUT + 2)
                return;
        snprintf(n->text + have, room, "%s%s", have ? "; " : "", added);
        if (size >= room)
                memcpy(n->text + sizeof n->text - sizeof CUT, CUT, sizeof CUT);
        make_plain(n->text); /* the cut may be inside of a character */
}

void extract_note_dwarf(struct extract_notes *n, const struct dwarf_summary *s)
{
        uint64_t damaged = s->damaged_units + s->left_out, all = s->unit_count + s->left_out;

        if (damaged)
                extract_note(n, "%" PRIu64 " of %" PRIu64 " DWARF units could not be read whole", damaged, all);
        if (s->missing_companions)
                extract_note(n, "%" PRIu64 " of %" PRIu64 " DWARF units have lines only, for want of their .dwo or .dwp file",
                             s->missing_companions, all);
        if (s->missing.code)
                extract_note(n, "%s", s->missing.text);
        else if (damaged)
                extract_note(n, "the first at 0x%" PRIx64 ": %s", s->damaged_at, status_name(s->damage));
}

enum status extract_note_failure(struct extract_notes *n, enum status st, const struct error *reason,
                                 struct error *err)
{
        if (st == ST_OK || st == ST_NOT_FOUND)
                return ST_OK;
        if (st != ST_BAD_DATA && st != ST_TOO_BIG && st != ST_UNSUPPORTED) {
                if (err)
                        *err = *reason;
                return st;
        }
        extract_note(n, "%s", reason->text);
        return ST_OK;
}
