/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/companions.h"

#include <endian.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "dwarf/split_units.h"
#include "elf-image/elf_identity.h"

bool companion_is_half(const struct elf_image *img)
{
        return elf_image_section(img, ".debug_cu_index") || elf_image_section(img, ".debug_info.dwo");
}

/* ---- dwz ---- */

static bool open_supplement(const char *path, const struct build_id *id, struct elf_image *ret)
{
        if (elf_image_open(path, ret, NULL))
                return false;
        if (elf_image_is_supplement(ret) && elf_image_is_supplement_of(ret, id))
                return true;
        elf_image_close(ret);
        return false;
}

/* A relative link starts at the directory of the real file that holds it (libdw and gdb do the same). */
static char *resolve_link(const char *holder, const char *link)
{
        _cleanup_free_ char *real = link[0] == '/' ? NULL : realpath(holder, NULL);
        char *slash = real ? strrchr(real, '/') : NULL;

        if (link[0] == '/')
                return strdup(link);
        if (!slash)
                return NULL;
        *slash = 0;
        return path_join(real, link);
}

/* Where else it may be: 0 the place in the link, 1 by its id, 2 where Debian's packages put it. */
static char *supplement_path(unsigned place, const struct elf_image *img, const char *link, const struct build_id *id)
{
        const char *in_dwz = strstr(link, "/.dwz/");
        char hex[BUILD_ID_HEX_MAX], *ret = NULL;

        build_id_hex(id, hex);
        if (place == 0)
                return resolve_link(img->name, link);
        if (place == 1)
                return asprintf(&ret, SYSTEM_DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2) < 0 ? NULL : ret;
        return asprintf(&ret, SYSTEM_DEBUG_DIR "/.dwz/%s", in_dwz ? in_dwz + 6 : path_base(link)) < 0 ? NULL : ret;
}

static enum status add_supplement(struct upload_list *list, const struct elf_image *img, upload_note *note, void *context,
                                  struct error *err)
{
        struct build_id id;
        const char *link;

        if (elf_image_altlink(img, &link, &id, NULL) || !id.size)
                return ST_OK;
        for (unsigned place = 0; place < 3; place++) {
                _cleanup_elf_image_ struct elf_image alt = { 0 };
                _cleanup_free_ char *path = supplement_path(place, img, link, &id);

                if (path && open_supplement(path, &id, &alt))
                        return upload_list_append(list, &alt, path, UPLOAD_SUPPLEMENTARY, &id, err);
        }
        note(context, img->name, "its supplementary file (dwz) is not here; upload it too, or names will be missing");
        return ST_OK;
}

/* ---- split DWARF ---- */

struct halves {
        struct upload_list *list;
        const struct elf_image *img;
        char directory[PATH_MAX]; /* of the file, with a slash */
        uint64_t units, missing;
        struct error *err;
};

/* FILE.dwp, and of FILE.debug also FILE's. A package of another build has none of the units. */
static enum status add_package(struct upload_list *list, const struct elf_image *img, bool *found_ret, struct error *err)
{
        size_t n = strlen(img->name);
        bool is_debug = n > 6 && strcmp(img->name + n - 6, ".debug") == 0;

        *found_ret = false;
        for (unsigned place = 0; place < (is_debug ? 2u : 1u); place++) {
                _cleanup_elf_image_ struct elf_image package = { 0 };
                _cleanup_free_ char *path = NULL;
                uint64_t units, asked = 0;

                if (asprintf(&path, "%.*s.dwp", (int)(place ? n - 6 : n), img->name) < 0) {
                        path = NULL;
                        return error_no_memory(err);
                }
                if (elf_image_open(path, &package, NULL) ||
                    dwarf_split_package_units(&package, img, &units, &asked, NULL) || !asked)
                        continue;
                *found_ret = true;
                return upload_list_append(list, &package, path, UPLOAD_DWP, &img->build_id, err);
        }
        return ST_OK;
}

static bool open_half(const char *path, uint64_t id, struct elf_image *ret)
{
        uint64_t found;

        if (elf_image_open(path, ret, NULL))
                return false;
        if (dwarf_split_file_id(ret, &found, NULL) == ST_OK && found == id)
                return true;
        elf_image_close(ret);
        return false;
}

/* Where it was compiled, beside the file by its whole name, beside the file; false: no such place. */
static bool half_path(unsigned place, const struct halves *h, const struct dwarf_split_unit *u, char out[static PATH_MAX])
{
        const char *directory = u->directory ? u->directory : "";
        bool is_absolute = u->name[0] == '/';
        int n;

        if (place == 0)
                n = snprintf(out, PATH_MAX, "%s%s%s", is_absolute ? "" : directory, is_absolute ? "" : "/", u->name);
        else
                n = snprintf(out, PATH_MAX, "%s%s", h->directory, place == 1 ? u->name : path_base(u->name));
        return n > 0 && n < PATH_MAX && (place || out[0] == '/') && !(place == 1 && is_absolute);
}

static enum status add_half(void *context, const struct dwarf_split_unit *u)
{
        struct halves *h = context;
        uint64_t big = htobe64(u->id);
        struct build_id id;

        (void)!build_id_from_bytes(&id, &big, sizeof big);
        h->units++;
        for (unsigned place = 0; place < 3; place++) {
                _cleanup_elf_image_ struct elf_image half = { 0 };
                char path[PATH_MAX];

                if (half_path(place, h, u, path) && open_half(path, u->id, &half))
                        return upload_list_append(h->list, &half, path, UPLOAD_DWO, &id, h->err);
        }
        h->missing++;
        return ST_OK;
}

static enum status add_halves(struct upload_list *list, const struct elf_image *img, upload_note *note, void *context,
                              struct error *err)
{
        struct halves h = { .list = list, .img = img, .err = err };
        _cleanup_free_ char *real = realpath(img->name, NULL);
        char *slash = real ? strrchr(real, '/') : NULL, text[160];
        bool found;
        enum status st = add_package(list, img, &found, err);

        if (st || found || !slash || slash - real + 2 > PATH_MAX)
                return st;
        snprintf(h.directory, sizeof h.directory, "%.*s", (int)(slash - real + 1), real);
        st = dwarf_split_units(img, add_half, &h, err);
        if (!st && h.missing) {
                snprintf(text, sizeof text, "%llu of its %llu .dwo files are not here, nor is a package (.dwp); names will be missing",
                         (unsigned long long)h.missing, (unsigned long long)h.units);
                note(context, img->name, text);
        }
        return st;
}

enum status companions_add(struct upload_list *list, const struct elf_image *img, upload_note *note, void *context,
                           struct error *err)
{
        enum status st = add_supplement(list, img, note, context, err);

        return st || !img->build_id.size ? st : add_halves(list, img, note, context, err);
}
