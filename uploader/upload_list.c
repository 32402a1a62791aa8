/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/upload_list.h"

#include <string.h>

#include "elf-image/elf_image.h"
#include "uploader/split.h"

#define SYSTEM_DEBUG_DIR "/usr/lib/debug"

const char *upload_kind_name(enum upload_kind kind)
{
        static const char *const names[] = { "debuginfo", "executable", "source" };

        return names[kind];
}

void upload_list_deinit(struct upload_list *list)
{
        for (size_t i = 0; i < list->count; i++)
                free(list->items[i].path);
        free(list->items);
        *list = (struct upload_list){ 0 };
}

static const char *shown(const struct upload_list *list, const char *path)
{
        size_t n = list->hidden ? strlen(list->hidden) : 0;

        return n && strncmp(path, list->hidden, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static enum status append(struct upload_list *list, const struct elf_image *img, const char *path,
                          enum upload_kind kind, struct error *err)
{
        struct upload_item *item;

        if (list->count == list->capacity) {
                size_t capacity = list->capacity ? 2 * list->capacity : 64;
                struct upload_item *grown = reallocarray(list->items, capacity, sizeof *grown);

                if (!grown)
                        return error_no_memory(err);
                list->items = grown;
                list->capacity = capacity;
        }
        item = &list->items[list->count];
        *item = (struct upload_item){
                .path = strdup(path),
                .build_id = img->build_id,
                .kind = kind,
                .quality = kind == UPLOAD_SOURCE ? QUALITY_NONE : elf_image_quality(img),
                .split = kind == UPLOAD_DEBUGINFO && split_is_needed(img),
                .size_bytes = img->size,
                .order = list->count,
        };
        if (!item->path)
                return error_no_memory(err);
        item->shown = shown(list, item->path);
        list->count++;
        return ST_OK;
}

/* Open path as the file of that build-id. */
static bool open_as(const char *path, const struct build_id *id, struct elf_image *ret)
{
        if (elf_image_open(path, ret, NULL))
                return false;
        if (build_id_equal(&ret->build_id, id))
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

static char *path_by_build_id(const struct build_id *id)
{
        char hex[BUILD_ID_HEX_MAX];
        char *ret;

        build_id_hex(id, hex);
        return asprintf(&ret, SYSTEM_DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2) < 0 ? NULL : ret;
}

static enum status add_supplementary(struct upload_list *list, const struct elf_image *img, upload_note *note,
                                     void *context, struct error *err)
{
        _cleanup_elf_image_ struct elf_image alt = { 0 };
        _cleanup_free_ char *path = NULL, *other = NULL;
        struct build_id id;
        const char *link;

        if (elf_image_altlink(img, &link, &id, NULL))
                return ST_OK;
        path = resolve_link(img->name, link);
        if (path && open_as(path, &id, &alt))
                return append(list, &alt, path, UPLOAD_DEBUGINFO, err);
        other = path_by_build_id(&id);
        if (other && open_as(other, &id, &alt))
                return append(list, &alt, other, UPLOAD_DEBUGINFO, err);
        note(context, img->name,
             "its supplementary file (dwz) is not here; upload it too, or names will be missing");
        return ST_OK;
}

/* A stripped file's debug file, where debug packages put it. */
static enum status add_installed_debug_file(struct upload_list *list, const struct elf_image *img,
                                            upload_note *note, void *context, struct error *err)
{
        _cleanup_elf_image_ struct elf_image debug = { 0 };
        _cleanup_free_ char *path = path_by_build_id(&img->build_id);
        enum status st;

        if (!path || !open_as(path, &img->build_id, &debug) || elf_image_quality(&debug) < QUALITY_LINES)
                return ST_OK;
        st = append(list, &debug, path, UPLOAD_DEBUGINFO, err);
        if (!st && list->sources)
                st = append(list, &debug, path, UPLOAD_SOURCE, err);
        return st ? st : add_supplementary(list, &debug, note, context, err);
}

enum status upload_list_add(struct upload_list *list, const char *path, upload_note *note, void *context,
                            struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        enum elf_image_kind kind;
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
        if (!img.build_id.size) {
                list->skips.no_build_id++;
                return ST_OK;
        }
        kind = elf_image_kind(&img);
        if (elf_image_quality(&img) > QUALITY_NONE)
                st = append(list, &img, path, UPLOAD_DEBUGINFO, err);
        if (!st && list->sources && elf_image_quality(&img) >= QUALITY_LINES)
                st = append(list, &img, path, UPLOAD_SOURCE, err);
        if (!st && list->executables && (kind & ELF_KIND_EXECUTABLE))
                st = append(list, &img, path, UPLOAD_EXECUTABLE, err);
        /* Stripped files may still carry the link to a supplementary file; only DWARF needs it. */
        if (!st && elf_image_quality(&img) < QUALITY_LINES)
                st = add_installed_debug_file(list, &img, note, context, err);
        else if (!st)
                st = add_supplementary(list, &img, note, context, err);
        if (!st && list->count == before)
                list->skips.no_symbols++;
        return st;
}

static int by_identity(const void *pa, const void *pb)
{
        const struct upload_item *a = pa, *b = pb;
        int c = build_id_compare(&a->build_id, &b->build_id);

        if (!c)
                c = (int)a->kind - (int)b->kind;
        if (!c)
                c = (int)b->quality - (int)a->quality;
        return c ? c : (a->order > b->order) - (a->order < b->order);
}

static int by_order(const void *pa, const void *pb)
{
        const struct upload_item *a = pa, *b = pb;

        return (a->order > b->order) - (a->order < b->order);
}

void upload_list_settle(struct upload_list *list)
{
        size_t kept = 0;

        if (!list->count)
                return;
        qsort(list->items, list->count, sizeof *list->items, by_identity);
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
        qsort(list->items, list->count, sizeof *list->items, by_order);
}
