/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>

#include "common/cleanup.h"
#include "elf-image/elf_image.h"
#include "uploader/send.h"
#include "uploader/split.h"
#include "uploader/symbols.h"

/* The bytes to send, as an open file: the split, or the file itself. The build-id must still be the one asked
 * about. */
static enum status open_content(const struct upload_item *item, const struct source_options *sources, int *fd_ret, uint64_t *size_ret, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_close_ int fd = open(item->path, O_RDONLY | O_CLOEXEC);
        _cleanup_close_ int tmp = -1;
        struct split_range ranges[SPLIT_GO_RANGES_MAX];
        size_t found, named;
        enum status st;

        if (fd < 0)
                return error_os(err, errno, "cannot open '%s'", item->path);
        st = elf_image_from_fd(fd, item->path, &img, err);
        if (st)
                return st;
        if ((item->kind == UPLOAD_EXECUTABLE || item->kind == UPLOAD_SOURCE || (item->kind == UPLOAD_DEBUGINFO && img.build_id.size)) &&
            !build_id_equal(&img.build_id, &item->build_id))
                return error_set(err, ST_NOT_FOUND, "'%s' was replaced while the server was asked; upload it again",
                                 item->path);
        if (!item->split && item->kind != UPLOAD_SOURCE) {
                *size_ret = img.size;
                *fd_ret = steal_fd(&fd);
                return ST_OK;
        }
        st = split_temporary(&tmp, err);
        if (!st && item->kind == UPLOAD_SOURCE)
                st = sources_write(&img, sources, tmp, size_ret, &found, &named, err);
        else if (!st)
                st = split_write(&img, ranges, split_go_ranges(&img, ranges), tmp, size_ret, err);
        if (!st)
                *fd_ret = steal_fd(&tmp);
        return st;
}

static enum status open_symbols(struct upload_item *item, int *fd_ret, uint64_t *size_ret, const atomic_bool *stop, struct error *err)
{
        _cleanup_close_ int tmp = -1;
        enum status st = split_temporary(&tmp, err);

        if (!st)
                st = symbols_write(item, tmp, size_ret, stop, err);
        if (!st)
                *fd_ret = steal_fd(&tmp);
        return st;
}

enum status send_item(struct http_client *client, struct upload_item *item, const struct send_options *o, _Atomic uint64_t *moved,
                      const atomic_bool *stop, struct error *err)
{
        _cleanup_close_ int fd = -1;
        uint64_t size;
        enum status st = item->kind == UPLOAD_SYMBOLS ? open_symbols(item, &fd, &size, stop, err)
                                                      : open_content(item, &o->sources, &fd, &size, err);

        if (st == ST_NOT_FOUND && item->kind == UPLOAD_SOURCE) { /* no failure: what a library was made of is seldom here */
                item->state = UPLOAD_REFUSED;
                snprintf(item->reason, sizeof item->reason, "%s", err->text);
                return ST_OK;
        }
        return st ? st : send_content(client, item, fd, size, o, moved, stop, err);
}
