/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extract_files.h"

#include <stdio.h>

#include "common/limits.h"
#include "symbolizer/extract_displace.h"
#include "symbolizer/source_relocatable.h"

void extract_files_close(struct extract_files *f)
{
        elf_image_close(&f->debuginfo);
        elf_image_close(&f->executable);
        elf_image_close(&f->altlink);
        dwarf_package_close(&f->package);
        elf_image_close(&f->dwp);
        elf_image_close(&f->mini);
        buf_deinit(&f->mini_bytes);
        buf_deinit(&f->debuginfo_placed);
        buf_deinit(&f->executable_placed);
}

/* A relocatable file is replaced by its copy with addresses. */
static enum status place(struct elf_image *img, struct buf *bytes, struct error *err)
{
        struct elf_image placed;
        enum status st;

        if (img->type != ET_REL)
                return ST_OK;
        st = relocatable_place(img, bytes, &placed, err);
        if (st)
                return st;
        elf_image_close(img);
        *img = placed;
        return elf_image_check_complete(img, err);
}

/* @param placed NULL: of no use when it is relocatable. */
static enum status open_one(int fd, const char *name, const char *what, struct elf_image *ret, struct buf *placed,
                            struct error *err)
{
        char full[LIMIT_PATH_BYTES];
        struct elf_image img;
        enum status st;

        if (fd < 0)
                return ST_OK;
        snprintf(full, sizeof full, "%s%s", name, what);
        st = elf_image_from_fd(fd, full, &img, err);
        if (st)
                return st;
        st = elf_image_check_complete(&img, err);
        if (!st && placed)
                st = place(&img, placed, err);
        if (st)
                elf_image_close(&img);
        else
                *ret = img;
        return st;
}

/* Somebody guessed that it belongs to the rest; what it lacks is missing, whatever it is. */
static enum status open_package(int fd, const char *name, struct extract_files *f, struct error *err)
{
        struct error reason;
        enum status st = fd > 0 ? open_one(fd, name, " (package)", &f->dwp, NULL, &reason) : ST_NOT_FOUND;

        if (!st)
                st = dwarf_package_open(&f->dwp, &f->package, &reason);
        return extract_note_failure(&f->notes, st, &reason, err);
}

enum status extract_files_open(const struct extract_inputs *in, struct extract_files *f, struct error *err)
{
        struct error reasons[3];
        enum status st[] = {
                open_one(in->debuginfo_fd, in->name, "", &f->debuginfo, &f->debuginfo_placed, &reasons[0]),
                open_one(in->executable_fd, in->name, " (executable)", &f->executable, &f->executable_placed, &reasons[1]),
                open_one(in->altlink_fd, in->name, " (dwz supplementary file)", &f->altlink, NULL, &reasons[2]),
        };

        for (size_t i = 0; i < 3; i++)
                if (extract_note_failure(&f->notes, st[i], &reasons[i], err))
                        return st[i];
        f->dwo = in->dwo;
        if (open_package(in->dwp_fd, in->name, f, err))
                return ST_NO_MEMORY;
        if (!extract_file_is_open(&f->debuginfo) && !extract_file_is_open(&f->executable)) {
                size_t failed = st[0] ? 0 : 1;

                if (!st[failed])
                        return error_set(err, ST_USAGE, "no file to take symbols from");
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

uint64_t extract_files_displacement(const struct extract_files *f, const struct elf_image *img)
{
        const struct elf_image *runs = extract_files_running(f);

        return img == runs || !extract_file_is_open(img) ? 0 : extract_displacement(runs, img);
}

const struct elf_image *extract_files_best(const struct extract_files *f)
{
        if (!extract_file_is_open(&f->debuginfo))
                return &f->executable;
        if (!extract_file_is_open(&f->executable))
                return &f->debuginfo;
        return elf_image_quality(&f->executable) > elf_image_quality(&f->debuginfo) ? &f->executable : &f->debuginfo;
}

/* The dwz file is a guess of the caller's; only the one that the DWARF names may serve. */
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
