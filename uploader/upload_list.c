/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upload_list_add() classifies one file and appends all candidates that follow from it: an entry for each kind
 * (debuginfo, source, executable), the debug file installed for it, and the companions of the file with the DWARF. The
 * same object may so be found several times, by way of different files; upload_list_settle() keeps the best entry of
 * each build-id and kind, and restores the order.
 *
 * A companion is searched at a few places and accepted only if it identifies itself: a dwz file by its build-id, a
 * package or .dwo file by the ids of its units. What is not found is a note to the user, not a failure.
 *
 * Order: companions (dwz, split DWARF), appending entries, the cases of one file, upload_list_add(), settling.
 */
#include "uploader/upload_list.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/memory/array.h"
#include "dwarf/split_units.h"
#include "elf-image/elf_identity.h"
#include "uploader/split.h"
#include "uploader/symbols.h"

/* ---- companions ---- */

static bool is_split_dwarf_half(const struct elf_image *img)
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
static char *resolve_altlink(const char *holder, const char *link)
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

/* Format a candidate path. 0: the link, 1: by build-id, 2: Debian's location. */
static char *format_supplement_path(unsigned place, const struct elf_image *img, const char *link,
                                    const struct build_id *id)
{
        const char *in_dwz = strstr(link, "/.dwz/");
        char hex[BUILD_ID_HEX_MAX], *ret = NULL;

        build_id_hex(id, hex);
        if (place == 0)
                return resolve_altlink(img->name, link);
        if (place == 1)
                return asprintf(&ret, SYSTEM_DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2) < 0 ? NULL : ret;
        return asprintf(&ret, SYSTEM_DEBUG_DIR "/.dwz/%s", in_dwz ? in_dwz + 6 : path_base(link)) < 0 ? NULL : ret;
}

static enum status add_supplement(struct upload_list *list, const struct elf_image *img, upload_note *note,
                                  void *context, struct error *err)
{
        struct build_id id;
        const char *link;

        if (elf_image_altlink(img, &link, &id, NULL) || !id.size)
                return ST_OK;
        for (unsigned place = 0; place < 3; place++) {
                _cleanup_elf_image_ struct elf_image alt = { 0 };
                _cleanup_free_ char *path = format_supplement_path(place, img, link, &id);

                if (path && open_supplement(path, &id, &alt))
                        return upload_list_append(list, &alt, path, UPLOAD_SUPPLEMENTARY, &id, err);
        }
        note(context, img->name, "its supplementary file (dwz) was not found; upload it too, or names will be missing");
        return ST_OK;
}

/* ---- split DWARF ---- */

struct dwo_search {
        struct upload_list *list;
        const struct elf_image *img;
        char directory[PATH_MAX]; /* directory of the file, with a slash */
        uint64_t units, missing;
        struct error *err;
};

/* Add FILE.dwp, and for FILE.debug also the package of FILE. A package of another build has none of the units. */
static enum status add_dwp_package(struct upload_list *list, const struct elf_image *img, bool *found_ret,
                                   struct error *err)
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

static bool open_dwo_file(const char *path, uint64_t id, struct elf_image *ret)
{
        uint64_t found;

        if (elf_image_open(path, ret, NULL))
                return false;
        if (dwarf_split_file_id(ret, &found, NULL) == ST_OK && found == id)
                return true;
        elf_image_close(ret);
        return false;
}

/* Format a candidate path. 0: where it was compiled, 1: its relative path from the file's directory, 2: beside the
 * file. False: not applicable. */
static bool format_dwo_path(unsigned place, const struct dwo_search *h, const struct dwarf_split_unit *u,
                            char out[static PATH_MAX])
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

static enum status add_dwo_file(void *context, const struct dwarf_split_unit *u)
{
        struct dwo_search *h = context;
        uint64_t big = htobe64(u->id);
        struct build_id id;

        (void)!build_id_from_bytes(&id, &big, sizeof big);
        h->units++;
        for (unsigned place = 0; place < 3; place++) {
                _cleanup_elf_image_ struct elf_image half = { 0 };
                char path[PATH_MAX];

                if (format_dwo_path(place, h, u, path) && open_dwo_file(path, u->id, &half))
                        return upload_list_append(h->list, &half, path, UPLOAD_DWO, &id, h->err);
        }
        h->missing++;
        return ST_OK;
}

static enum status add_split_dwarf(struct upload_list *list, const struct elf_image *img, upload_note *note,
                                   void *context, struct error *err)
{
        struct dwo_search h = { .list = list, .img = img, .err = err };
        _cleanup_free_ char *real = realpath(img->name, NULL);
        char *slash = real ? strrchr(real, '/') : NULL, text[160];
        bool found;
        enum status st = add_dwp_package(list, img, &found, err);

        if (st || found || !slash || slash - real + 2 > PATH_MAX)
                return st;
        snprintf(h.directory, sizeof h.directory, "%.*s", (int)(slash - real + 1), real);
        st = dwarf_split_units(img, add_dwo_file, &h, err);
        if (!st && h.missing) {
                snprintf(text, sizeof text,
                         "%llu of its %llu .dwo files were not found, nor a package (.dwp); names will be missing",
                         (unsigned long long)h.missing, (unsigned long long)h.units);
                note(context, img->name, text);
        }
        return st;
}

static enum status add_companions(struct upload_list *list, const struct elf_image *img, upload_note *note,
                                  void *context, struct error *err)
{
        enum status st = add_supplement(list, img, note, context, err);

        return st || !img->build_id.size ? st : add_split_dwarf(list, img, note, context, err);
}

/* ---- the list ---- */

static const char *get_shown_path(const struct upload_list *list, const char *path)
{
        size_t n = list->hidden ? strlen(list->hidden) : 0;

        return n && strncmp(path, list->hidden, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static enum symbol_quality get_upload_quality(const struct elf_image *img, enum upload_kind kind)
{
        if (kind == UPLOAD_SOURCE)
                return QUALITY_NONE;
        return kind == UPLOAD_DWP || kind == UPLOAD_DWO ? QUALITY_DWARF : elf_image_quality(img);
}

enum status upload_list_append(struct upload_list *list, const struct elf_image *img, const char *path,
                               enum upload_kind kind, const struct build_id *id, struct error *err)
{
        struct upload_item *item;

        if (!array_reserve(&list->items, &list->capacity, list->count))
                return error_no_memory(err);
        item = &list->items[list->count];
        *item = (struct upload_item){
                .path = strdup(path),
                .build_id = *id,
                .kind = kind,
                .quality = get_upload_quality(img, kind),
                .split = kind == UPLOAD_DEBUGINFO && split_is_needed(img),
                .size_bytes = img->size,
                .order = list->count,
        };
        if (!item->path)
                return error_no_memory(err);
        assert(id->size > 0);
        item->shown = get_shown_path(list, item->path);
        list->count++;
        return ST_OK;
}

static enum status append_by_build_id(struct upload_list *list, const struct elf_image *img, const char *path,
                                      enum upload_kind kind, struct error *err)
{
        return upload_list_append(list, img, path, kind, &img->build_id, err);
}

/* Open the file if it has that build-id. */
static bool open_if_build_id(const char *path, const struct build_id *id, struct elf_image *ret)
{
        if (elf_image_open(path, ret, NULL))
                return false;
        if (build_id_equal(&ret->build_id, id))
                return true;
        elf_image_close(ret);
        return false;
}

static char *format_debug_path(const struct build_id *id)
{
        char hex[BUILD_ID_HEX_MAX];
        char *ret;

        build_id_hex(id, hex);
        return asprintf(&ret, SYSTEM_DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2) < 0 ? NULL : ret;
}

enum status hash_executable_file(const char *path, uint64_t size, struct build_id *ret, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

        return fd < 0 ? error_os(err, errno, "cannot open '%s'", path) : elf_htlhash(fd, size, ret, err);
}

/* Some profilers identify an executable by its htlhash: add it as an alias of the debuginfo and symbols. */
static enum status set_htlhash_alias(struct upload_list *list, size_t from, const struct elf_image *img,
                                     const char *path, struct error *err)
{
        struct build_id htlhash;
        enum status st;

        if (!(elf_image_kind(img) & ELF_KIND_EXECUTABLE) || from == list->count)
                return ST_OK;
        st = hash_executable_file(path, img->size, &htlhash, err);
        for (size_t i = from; !st && i < list->count; i++)
                if (list->items[i].kind == UPLOAD_DEBUGINFO || list->items[i].kind == UPLOAD_SYMBOLS)
                        list->items[i].htlhash = htlhash;
        return st;
}

/* Add a stripped file's debug file from the location of debug packages. */
static enum status add_installed_debug_file(struct upload_list *list, const struct elf_image *img, upload_note *note,
                                            void *context, struct error *err)
{
        _cleanup_elf_image_ struct elf_image debug = { 0 };
        _cleanup_free_ char *path = format_debug_path(&img->build_id);
        enum status st;

        if (!path || !open_if_build_id(path, &img->build_id, &debug) || elf_image_quality(&debug) < QUALITY_LINES)
                return ST_OK;
        st = append_by_build_id(list, &debug, path, UPLOAD_DEBUGINFO, err);
        if (!st && list->sources)
                st = append_by_build_id(list, &debug, path, UPLOAD_SOURCE, err);
        return st ? st : add_companions(list, &debug, note, context, err);
}

/*
 * Add a file without a build-id. It is identified by its htlhash, which only the whole file has: send it unsplit if
 * whole executables are sent. Relocatable files (.o) are skipped.
 */
static enum status add_without_build_id(struct upload_list *list, const struct elf_image *img, const char *path,
                                        struct error *err)
{
        bool runs = (img->type == ET_EXEC || img->type == ET_DYN) && (elf_image_kind(img) & ELF_KIND_EXECUTABLE);
        struct build_id id;
        enum status st;

        if (!runs || elf_image_quality(img) == QUALITY_NONE || !list->executables) {
                list->skips.no_build_id++;
                return ST_OK;
        }
        st = hash_executable_file(path, img->size, &id, err);
        if (!st)
                st = upload_list_append(list, img, path, UPLOAD_DEBUGINFO, &id, err);
        if (!st)
                list->items[list->count - 1].split = false;
        return st;
}

/* Files extracted from an archive are not stripped. */
static enum status add_strip_candidate(struct upload_list *list, const struct elf_image *img, const char *path,
                                       struct error *err)
{
        struct strip_candidate *candidate;

        if (!list->strip || !split_is_needed(img) || get_shown_path(list, path) != path)
                return ST_OK;
        if (!array_reserve(&list->programs, &list->program_capacity, list->program_count))
                return error_no_memory(err);
        candidate = &list->programs[list->program_count];
        *candidate = (struct strip_candidate){ .build_id = img->build_id, .path = strdup(path) };
        list->program_count += candidate->path != NULL;
        return candidate->path ? ST_OK : error_no_memory(err);
}

/* Supplementary files are read when symbols of the files that reference them are extracted. */
static enum status add_symbols_only(struct upload_list *list, const struct elf_image *img, const char *path,
                                    struct error *err)
{
        size_t before = list->count;
        enum status st;

        if (elf_image_is_supplement(img)) {
                list->skips.half++;
                return ST_OK;
        }
        st = symbols_add(list, img, path, err);
        return st || !img->build_id.size ? st : set_htlhash_alias(list, before, img, path, err);
}

enum status upload_list_add(struct upload_list *list, const char *path, upload_note *note, void *context,
                            struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        enum elf_image_kind kind;
        struct build_id id;
        size_t before = list->count;
        enum status st = elf_image_open(path, &img, err);

        if (!st)
                st = elf_image_check_complete(&img, err);
        if (st)
                return st;
        if (img.type == ET_CORE) {
                list->skips.core_dump++;
                return ST_OK;
        }
        if (is_split_dwarf_half(&img)) {
                list->skips.half++;
                return ST_OK;
        }
        if (img.has_placeholder_id && !img.build_id.size)
                note(context, path, BUILD_ID_PLACEHOLDER_TEXT);
        if (list->symbols_only)
                return add_symbols_only(list, &img, path, err);
        if (elf_image_is_supplement(&img) && elf_image_supplement_id(&img, &id))
                return upload_list_append(list, &img, path, UPLOAD_SUPPLEMENTARY, &id, err);
        if (!img.build_id.size)
                return add_without_build_id(list, &img, path, err);
        kind = elf_image_kind(&img);
        if (elf_image_quality(&img) > QUALITY_NONE)
                st = append_by_build_id(list, &img, path, UPLOAD_DEBUGINFO, err);
        if (!st)
                st = add_strip_candidate(list, &img, path, err);
        if (!st && list->sources && elf_image_quality(&img) >= QUALITY_LINES)
                st = append_by_build_id(list, &img, path, UPLOAD_SOURCE, err);
        if (!st && list->executables && (kind & ELF_KIND_EXECUTABLE))
                st = append_by_build_id(list, &img, path, UPLOAD_EXECUTABLE, err);
        /* A stripped file may still link to a supplementary file, which only DWARF needs. */
        if (!st && elf_image_quality(&img) < QUALITY_LINES)
                st = add_installed_debug_file(list, &img, note, context, err);
        else if (!st)
                st = add_companions(list, &img, note, context, err);
        if (!st)
                st = set_htlhash_alias(list, before, &img, path, err);
        if (!st && list->count == before)
                list->skips.no_symbols++;
        return st;
}

static int compare_item_identity(const void *pa, const void *pb)
{
        const struct upload_item *a = pa, *b = pb;
        int c = build_id_compare(&a->build_id, &b->build_id);

        if (!c)
                c = (int)a->kind - (int)b->kind;
        if (!c)
                c = (int)b->quality - (int)a->quality;
        return c ? c : (a->order > b->order) - (a->order < b->order);
}

static int compare_item_order(const void *pa, const void *pb)
{
        const struct upload_item *a = pa, *b = pb;

        return (a->order > b->order) - (a->order < b->order);
}

void upload_list_settle(struct upload_list *list)
{
        size_t kept = 0;

        if (!list->count)
                return;
        qsort(list->items, list->count, sizeof *list->items, compare_item_identity);
        for (size_t i = 0; i < list->count; i++) {
                struct upload_item *item = &list->items[i];

                if (kept && item->kind == list->items[kept - 1].kind &&
                    build_id_equal(&item->build_id, &list->items[kept - 1].build_id)) {
                        free(item->path);
                        list->skips.duplicate++;
                } else {
                        list->items[kept++] = *item;
                }
        }
        list->count = kept;
        qsort(list->items, list->count, sizeof *list->items, compare_item_order);
}
