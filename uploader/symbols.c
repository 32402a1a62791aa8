/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/symbols.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "common/cleanup.h"
#include "elf-image/elf_identity.h"
#include "symbolizer/extraction/debug_file_search.h"
#include "symbolizer/workers/extract_worker.h"
#include "symbolizer/formats/portable_symbols.h"

static pthread_mutex_t extracting = PTHREAD_MUTEX_INITIALIZER;

/* The build-id to store symbols under: that of the file, or an executable's htlhash. */
static enum status find_stored_build_id(const struct elf_image *img, const char *path, struct build_id *ret,
                                        struct error *err)
{
        bool runs = (img->type == ET_EXEC || img->type == ET_DYN) && (elf_image_kind(img) & ELF_KIND_EXECUTABLE);

        *ret = img->build_id;
        return ret->size || !runs ? ST_OK : hash_executable_file(path, img->size, ret, err);
}

static enum symbol_quality find_best_quality(const struct elf_image *img, const char *path)
{
        enum symbol_quality best = elf_image_quality(img), other;
        _cleanup_elf_image_ struct elf_image debug = { 0 };
        struct extract_inputs in;

        if (best >= QUALITY_LINES || extract_inputs_find(path, SYSTEM_DEBUG_DIR, &in, NULL))
                return best;
        other = elf_image_from_fd(in.debuginfo_fd, path, &debug, NULL) ? QUALITY_NONE : elf_image_quality(&debug);
        extract_inputs_close(&in);
        return other > best ? other : best;
}

enum status symbols_add(struct upload_list *list, const struct elf_image *img, const char *path, struct error *err)
{
        enum symbol_quality quality = find_best_quality(img, path);
        struct build_id id;
        enum status st = find_stored_build_id(img, path, &id, err);

        if (st)
                return st;
        if (!id.size)
                list->skips.no_build_id++;
        else if (quality == QUALITY_NONE)
                list->skips.no_symbols++;
        if (!id.size || quality == QUALITY_NONE)
                return ST_OK;
        st = upload_list_append(list, img, path, UPLOAD_SYMBOLS, &id, err);
        if (!st)
                list->items[list->count - 1].quality = quality;
        return st;
}

static enum status extract_item_symbols(const struct upload_item *item, struct symbol_table *ret,
                                        const atomic_bool *stop, struct error *err)
{
        struct extract_inputs in;
        enum status st = extract_inputs_find(item->path, SYSTEM_DEBUG_DIR, &in, err);

        if (st)
                return st;
        pthread_mutex_lock(&extracting);
        st = symbol_table_extract_confined(&in, stop, ret, err);
        pthread_mutex_unlock(&extracting);
        extract_inputs_close(&in);
        return st;
}

static struct build_id read_go_build_id(const char *path)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct build_id ret = { 0 };

        if (elf_image_open(path, &img, NULL) == ST_OK && img.build_id_kind == ELF_BUILD_ID_GNU)
                (void)!elf_image_go_build_id(&img, &ret);
        return ret;
}

static enum status check_extracted_symbols(const struct upload_item *item, const struct symbol_table *t,
                                           struct error *err)
{
        if (t->build_id.size && !build_id_equal(&t->build_id, &item->build_id))
                return error_set(err, ST_NOT_FOUND, "'%s' was replaced while it was offered; upload it again",
                                 item->path);
        if (!t->range_count)
                return error_set(err, ST_BAD_DATA, "'%s' has no symbols that could be read%s%s", item->path,
                                 t->partial ? ": " : "", symbol_table_partial_text(t));
        return ST_OK;
}

enum status symbols_write(struct upload_item *item, int fd, uint64_t *size_ret, const atomic_bool *stop,
                          struct error *err)
{
        const struct build_id go_id = read_go_build_id(item->path);
        struct symbol_table t = { 0 };
        off_t size;
        enum status st = extract_item_symbols(item, &t, stop, err);

        if (!st)
                st = check_extracted_symbols(item, &t, err);
        if (!st) {
                t.build_id = item->build_id;
                item->quality = t.quality;
                snprintf(item->partial, sizeof item->partial, "%s", symbol_table_partial_text(&t));
                st = portable_symbols_write(&t, &go_id, fd, err);
        }
        symbol_table_deinit(&t);
        if (st)
                return st;
        size = lseek(fd, 0, SEEK_END);
        if (size < 0)
                return error_os(err, errno, "cannot write the symbols of '%s'", item->path);
        *size_ret = (uint64_t)size;
        return ST_OK;
}
