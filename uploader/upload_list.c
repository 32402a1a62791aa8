/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/upload_list.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/array.h"
#include "elf-image/elf_identity.h"
#include "uploader/companions.h"
#include "uploader/split.h"
#include "uploader/symbols.h"

static const char *shown(const struct upload_list *list, const char *path)
{
        size_t n = list->hidden ? strlen(list->hidden) : 0;

        return n && strncmp(path, list->hidden, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static enum symbol_quality quality_of(const struct elf_image *img, enum upload_kind kind)
{
        if (kind == UPLOAD_SOURCE)
                return QUALITY_NONE;
        return kind == UPLOAD_DWP || kind == UPLOAD_DWO ? QUALITY_DWARF : elf_image_quality(img);
}

enum status upload_list_append(struct upload_list *list, const struct elf_image *img, const char *path, enum upload_kind kind,
                               const struct build_id *id, struct error *err)
{
        struct upload_item *item;

        if (!array_reserve(&list->items, &list->capacity, list->count))
                return error_no_memory(err);
        item = &list->items[list->count];
        *item = (struct upload_item){
                .path = strdup(path),
                .build_id = *id,
                .kind = kind,
                .quality = quality_of(img, kind),
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

static enum status append(struct upload_list *list, const struct elf_image *img, const char *path,
                          enum upload_kind kind, struct error *err)
{
        return upload_list_append(list, img, path, kind, &img->build_id, err);
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

static char *path_by_build_id(const struct build_id *id)
{
        char hex[BUILD_ID_HEX_MAX];
        char *ret;

        build_id_hex(id, hex);
        return asprintf(&ret, SYSTEM_DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2) < 0 ? NULL : ret;
}

enum status upload_path_htlhash(const char *path, uint64_t size, struct build_id *ret, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

        return fd < 0 ? error_os(err, errno, "cannot open '%s'", path) : elf_htlhash(fd, size, ret, err);
}

/* Profilers that know the file by its hash know the one that runs: debuginfo and symbols get that as another name. */
static enum status name_by_hash(struct upload_list *list, size_t from, const struct elf_image *img, const char *path,
                                struct error *err)
{
        struct build_id htlhash;
        enum status st;

        if (!(elf_image_kind(img) & ELF_KIND_EXECUTABLE) || from == list->count)
                return ST_OK;
        st = upload_path_htlhash(path, img->size, &htlhash, err);
        for (size_t i = from; !st && i < list->count; i++)
                if (list->items[i].kind == UPLOAD_DEBUGINFO || list->items[i].kind == UPLOAD_SYMBOLS)
                        list->items[i].htlhash = htlhash;
        return st;
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
        return st ? st : companions_add(list, &debug, note, context, err);
}

/*
 * Such a file is known by the hash of its ends and its length, which only the whole has: so it is sent whole, where
 * whole executables are sent at all. What is not linked yet (.o) nobody runs.
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
        st = upload_path_htlhash(path, img->size, &id, err);
        if (!st)
                st = upload_list_append(list, img, path, UPLOAD_DEBUGINFO, &id, err);
        if (!st)
                list->items[list->count - 1].split = false;
        return st;
}

/* What came out of an archive is nobody's file to strip. */
static enum status note_program(struct upload_list *list, const struct elf_image *img, const char *path, struct error *err)
{
        struct strip_candidate *more;

        if (!list->strip || !split_is_needed(img) || shown(list, path) != path)
                return ST_OK;
        more = reallocarray(list->programs, list->program_count + 1, sizeof *more);
        if (!more)
                return error_no_memory(err);
        list->programs = more;
        more[list->program_count].build_id = img->build_id;
        more[list->program_count].path = strdup(path);
        return more[list->program_count].path ? list->program_count++, ST_OK : error_no_memory(err);
}

/* What goes with others, these have taken up. */
static enum status add_symbols(struct upload_list *list, const struct elf_image *img, const char *path, struct error *err)
{
        size_t before = list->count;
        enum status st;

        if (elf_image_is_supplement(img)) {
                list->skips.half++;
                return ST_OK;
        }
        st = symbols_add(list, img, path, err);
        return st || !img->build_id.size ? st : name_by_hash(list, before, img, path, err);
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
        if (companion_is_half(&img)) {
                list->skips.half++;
                return ST_OK;
        }
        if (list->symbols_only)
                return add_symbols(list, &img, path, err);
        if (elf_image_is_supplement(&img) && elf_image_supplement_id(&img, &id))
                return upload_list_append(list, &img, path, UPLOAD_SUPPLEMENTARY, &id, err);
        if (!img.build_id.size)
                return add_without_build_id(list, &img, path, err);
        kind = elf_image_kind(&img);
        if (elf_image_quality(&img) > QUALITY_NONE)
                st = append(list, &img, path, UPLOAD_DEBUGINFO, err);
        if (!st)
                st = note_program(list, &img, path, err);
        if (!st && list->sources && elf_image_quality(&img) >= QUALITY_LINES)
                st = append(list, &img, path, UPLOAD_SOURCE, err);
        if (!st && list->executables && (kind & ELF_KIND_EXECUTABLE))
                st = append(list, &img, path, UPLOAD_EXECUTABLE, err);
        /* Stripped files may still carry the link to a supplementary file; only DWARF needs it. */
        if (!st && elf_image_quality(&img) < QUALITY_LINES)
                st = add_installed_debug_file(list, &img, note, context, err);
        else if (!st)
                st = companions_add(list, &img, note, context, err);
        if (!st)
                st = name_by_hash(list, before, &img, path, err);
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
