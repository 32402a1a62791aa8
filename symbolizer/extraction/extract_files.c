/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extraction/extract_files.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/limits.h"
#include "common/text/utf8.h"
#include "symbolizer/extraction/prelink_bias.h"
#include "symbolizer/extraction/relocatable.h"

/* ---- notes ---- */

#define CUT "..."

/* Names are untrusted: replace anything that is not one line of UTF-8. */
static void sanitize_line(char *text)
{
        size_t n = strlen(text);

        for (size_t i = 0, step; i < n; i += step) {
                step = utf8_sequence_length(text + i, n - i);
                if (step == 0 || (unsigned char)text[i] < ' ' || text[i] == 0x7f) {
                        text[i] = '?';
                        step = 1;
                }
        }
}

void extract_notes_add(struct extract_notes *n, const char *fmt, ...)
{
        char added[sizeof((struct error *)0)->text];
        size_t have = strlen(n->text), room = sizeof n->text - have, size;
        va_list args;

        va_start(args, fmt);
        vsnprintf(added, sizeof added, fmt, args);
        va_end(args);
        sanitize_line(added);
        size = strlen(added) + (have ? 2 : 0);
        if (strstr(n->text, added) || room <= sizeof CUT + 2)
                return;
        snprintf(n->text + have, room, "%s%s", have ? "; " : "", added);
        if (size >= room)
                memcpy(n->text + sizeof n->text - sizeof CUT, CUT, sizeof CUT);
        sanitize_line(n->text); /* the cut may split a character */
}

void extract_notes_add_dwarf(struct extract_notes *n, const struct dwarf_summary *s)
{
        uint64_t damaged = s->damaged_units + s->left_out, all = s->unit_count + s->left_out;

        if (damaged)
                extract_notes_add(n, "%" PRIu64 " of %" PRIu64 " DWARF units could not be read completely", damaged,
                                  all);
        if (s->missing_companions > s->skeletons_with_functions)
                extract_notes_add(n,
                                  "%" PRIu64 " of %" PRIu64
                                  " DWARF units have lines only, because their .dwo or .dwp file is missing",
                                  s->missing_companions - s->skeletons_with_functions, all);
        if (s->skeletons_with_functions)
                extract_notes_add(n,
                                  "%" PRIu64 " of %" PRIu64
                                  " DWARF units have lines and inlined calls only, because their .dwo or .dwp file is "
                                  "missing",
                                  s->skeletons_with_functions, all);
        if (s->missing.code)
                extract_notes_add(n, "%s", s->missing.text);
        else if (damaged)
                extract_notes_add(n, "the first at 0x%" PRIx64 ": %s", s->damaged_at, status_name(s->damage));
}

enum status extract_notes_add_failure(struct extract_notes *n, enum status st, const struct error *reason,
                                      struct error *err)
{
        if (st == ST_OK || st == ST_NOT_FOUND)
                return ST_OK;
        if (st != ST_BAD_DATA && st != ST_TOO_BIG && st != ST_UNSUPPORTED) {
                if (err)
                        *err = *reason;
                return st;
        }
        extract_notes_add(n, "%s", reason->text);
        return ST_OK;
}

/* ---- files ---- */

void extract_files_close(struct extract_files *f)
{
        elf_image_close(&f->debuginfo);
        elf_image_close(&f->executable);
        elf_image_close(&f->altlink);
        dwarf_package_close(&f->package);
        elf_image_close(&f->dwp);
        elf_image_close(&f->mini);
        buf_deinit(&f->mini_bytes);
        buf_deinit(&f->debuginfo_placed.bytes);
        buf_deinit(&f->executable_placed.bytes);
}

/* Replace a relocatable file by a copy with addresses. */
static enum status assign_addresses(struct elf_image *img, struct placed_file *copy, struct extract_notes *notes,
                                    struct error *err)
{
        struct elf_image placed;
        struct error dropped;
        enum status st;

        if (img->type != ET_REL)
                return ST_OK;
        st = relocatable_assign_addresses(img, &copy->bytes, &placed, &copy->dwarf_bias, &dropped, err);
        if (st)
                return st;
        if (dropped.code)
                extract_notes_add(notes, "%s", dropped.text);
        elf_image_close(img);
        *img = placed;
        return elf_image_check_complete(img, err);
}

/* @param placed NULL: relocatable files are unsupported here. */
static enum status open_input_file(int fd, const char *name, const char *what, struct elf_image *ret,
                                   struct placed_file *placed, struct extract_notes *notes, struct error *err)
{
        char full[LIMIT_PATH_BYTES];
        struct elf_image img;
        enum status st;

        assert(ret);
        if (fd < 0)
                return ST_OK;
        snprintf(full, sizeof full, "%s%s", name, what);
        st = elf_image_from_fd(fd, full, &img, err);
        if (st)
                return st;
        st = elf_image_check_complete(&img, err);
        if (!st && placed)
                st = assign_addresses(&img, placed, notes, err);
        if (st)
                elf_image_close(&img);
        else
                *ret = img;
        return st;
}

/* The package was found by name and may belong to another file; units that it lacks are missing. */
static enum status open_dwo_package(int fd, const char *name, struct extract_files *f, struct error *err)
{
        struct error reason;
        enum status st =
                fd > 0 ? open_input_file(fd, name, " (package)", &f->dwp, NULL, &f->notes, &reason) : ST_NOT_FOUND;

        if (!st)
                st = dwarf_package_open(&f->dwp, &f->package, &reason);
        return extract_notes_add_failure(&f->notes, st, &reason, err);
}

enum status extract_files_open(const struct extract_inputs *in, struct extract_files *f, struct error *err)
{
        struct error reasons[3];
        enum status st[] = {
                open_input_file(in->debuginfo_fd, in->name, "", &f->debuginfo, &f->debuginfo_placed, &f->notes,
                                &reasons[0]),
                open_input_file(in->executable_fd, in->name, " (executable)", &f->executable, &f->executable_placed,
                                &f->notes, &reasons[1]),
                open_input_file(in->altlink_fd, in->name, " (dwz supplementary file)", &f->altlink, NULL, &f->notes,
                                &reasons[2]),
        };

        for (size_t i = 0; i < 3; i++)
                if (extract_notes_add_failure(&f->notes, st[i], &reasons[i], err))
                        return st[i];
        f->dwo = in->dwo;
        if (open_dwo_package(in->dwp_fd, in->name, f, err))
                return ST_NO_MEMORY;
        if (!extract_file_is_open(&f->debuginfo) && !extract_file_is_open(&f->executable)) {
                size_t failed = st[0] ? 0 : 1;

                if (!st[failed])
                        return error_set(err, ST_USAGE, "no file to extract symbols from");
                if (err)
                        *err = reasons[failed];
                return st[failed];
        }
        if (f->debuginfo.build_id.size && f->executable.build_id.size &&
            !build_id_equal(&f->debuginfo.build_id, &f->executable.build_id))
                return error_set(err, ST_BAD_DATA, "'%s': debuginfo and executable have different build-ids", in->name);
        return ST_OK;
}

const struct elf_image *extract_files_running(const struct extract_files *f)
{
        return extract_file_is_open(&f->executable) ? &f->executable : &f->debuginfo;
}

uint64_t extract_files_prelink_bias(const struct extract_files *f, const struct elf_image *img)
{
        const struct elf_image *runs = extract_files_running(f);

        return img == runs || !extract_file_is_open(img) ? 0 : find_prelink_bias(runs, img);
}

uint64_t extract_files_dwarf_bias(const struct extract_files *f, const struct elf_image *img)
{
        const struct placed_file *placed = img == &f->debuginfo ? &f->debuginfo_placed : &f->executable_placed;

        return extract_files_prelink_bias(f, img) - placed->dwarf_bias;
}

const struct elf_image *extract_files_best(const struct extract_files *f)
{
        if (!extract_file_is_open(&f->debuginfo))
                return &f->executable;
        if (!extract_file_is_open(&f->executable))
                return &f->debuginfo;
        return elf_image_quality(&f->executable) > elf_image_quality(&f->debuginfo) ? &f->executable : &f->debuginfo;
}

/* The caller's dwz file is a guess; it is used only if the DWARF refers to it. */
const struct elf_image *extract_files_altlink(const struct extract_files *f, const struct elf_image *img)
{
        const char *path;
        struct build_id id;

        if (!extract_file_is_open(&f->altlink) || elf_image_altlink(img, &path, &id, NULL))
                return NULL;
        return elf_image_is_supplement_of(&f->altlink, &id) ? &f->altlink : NULL;
}

struct dwarf_companions extract_files_companions(const struct extract_files *f)
{
        return (struct dwarf_companions){ .package = f->package.index.rows ? &f->package : NULL, .dwo = f->dwo };
}
