/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extract_find.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "symbolizer/extract_find_dwo.h"

void extract_inputs_close(struct extract_inputs *in)
{
        cleanup_close(&in->debuginfo_fd);
        cleanup_close(&in->executable_fd);
        cleanup_close(&in->altlink_fd);
        if (in->dwp_fd > 0)
                close(in->dwp_fd);
        in->debuginfo_fd = in->executable_fd = in->altlink_fd = in->dwp_fd = -1;
        if (in->dwo.open == dwo_places_open)
                dwo_places_destroy(in->dwo.context);
        in->dwo = (struct dwarf_dwo_source){ 0 };
}

/* "DIR/.build-id/xx/yyyy.debug"; false when it does not fit. */
static bool build_id_path(const char *directory, const struct build_id *id, char out[PATH_MAX])
{
        char hex[BUILD_ID_HEX_MAX];
        int n;

        if (id->size < 2)
                return false;
        build_id_hex(id, hex);
        n = snprintf(out, PATH_MAX, "%s/.build-id/%.2s/%s.debug", directory, hex, hex + 2);
        return n > 0 && n < PATH_MAX;
}

/* The directory of the file itself, symbolic links followed, without a slash at its end. */
static bool directory_of(const char *path, char out[PATH_MAX])
{
        char *slash;

        if (!realpath(path, out))
                return false;
        slash = strrchr(out, '/');
        *slash = 0;
        return true;
}

static bool has_checksum(const struct elf_image *img, uint32_t crc)
{
        return crc32_z(0, img->data, img->size) == crc;
}

/* A debug file is one with the same build-id, or without any, one with the checksum of the link. */
static int open_debug_file(const char *path, const struct elf_image *of, const uint32_t *crc)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        _cleanup_elf_image_ struct elf_image img = { 0 };

        if (fd < 0 || elf_image_from_fd(fd, path, &img, NULL))
                return -1;
        if (of->build_id.size ? !build_id_equal(&of->build_id, &img.build_id) : !crc || !has_checksum(&img, *crc))
                return -1;
        return steal_fd(&fd);
}

static int find_by_debuglink(const char *path, const char *directory, const struct elf_image *img)
{
        char dir[PATH_MAX], candidate[PATH_MAX];
        const char *name;
        uint32_t crc;

        if (elf_image_debuglink(img, &name, &crc, NULL) || strchr(name, '/') || !directory_of(path, dir))
                return -1;
        for (int place = 0; place < 3; place++) {
                int n = place == 0 ? snprintf(candidate, sizeof candidate, "%s/%s", dir, name) :
                        place == 1 ? snprintf(candidate, sizeof candidate, "%s/.debug/%s", dir, name) :
                                 snprintf(candidate, sizeof candidate, "%s%s/%s", directory, dir, name);
                int fd = n > 0 && n < (int)sizeof candidate ? open_debug_file(candidate, img, &crc) : -1;

                if (fd >= 0)
                        return fd;
        }
        return -1;
}

static int find_debug_file(const char *path, const char *directory, const struct elf_image *img)
{
        char candidate[PATH_MAX];
        int fd = -1;

        if (build_id_path(directory, &img->build_id, candidate))
                fd = open_debug_file(candidate, img, NULL);
        return fd >= 0 ? fd : find_by_debuglink(path, directory, img);
}

static int open_altlink(const char *path, const struct build_id *id)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        _cleanup_elf_image_ struct elf_image img = { 0 };

        if (fd < 0 || elf_image_from_fd(fd, path, &img, NULL) || !elf_image_is_supplement_of(&img, id))
                return -1;
        return steal_fd(&fd);
}

/* The path in the file, relative to the file; else the build-id under the debug directory. */
static int find_altlink(const char *directory, int debuginfo_fd)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        char self[64], dir[PATH_MAX], candidate[PATH_MAX];
        const char *target;
        struct build_id id;
        int fd = -1, n = 0;

        if (elf_image_from_fd(debuginfo_fd, "debuginfo", &img, NULL) || elf_image_altlink(&img, &target, &id, NULL))
                return -1;
        snprintf(self, sizeof self, "/proc/self/fd/%d", debuginfo_fd);
        if (target[0] == '/')
                fd = open_altlink(target, &id);
        else if (directory_of(self, dir))
                n = snprintf(candidate, sizeof candidate, "%s/%s", dir, target);
        if (n > 0 && n < (int)sizeof candidate)
                fd = open_altlink(candidate, &id);
        if (fd < 0 && build_id_path(directory, &id, candidate))
                fd = open_altlink(candidate, &id);
        return fd;
}

enum status extract_inputs_find(const char *path, const char *directory, struct extract_inputs *ret, struct error *err)
{
        struct extract_inputs in = { .debuginfo_fd = -1, .executable_fd = -1, .altlink_fd = -1, .dwp_fd = -1,
                                     .name = path };
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct dwo_places *places;
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        enum status st;

        if (fd < 0)
                return error_os(err, errno, "cannot open '%s'", path);
        st = elf_image_from_fd(fd, path, &img, err);
        if (st)
                return st;
        if (elf_image_quality(&img) < QUALITY_LINES)
                in.debuginfo_fd = find_debug_file(path, directory, &img);
        if (in.debuginfo_fd < 0)
                in.debuginfo_fd = steal_fd(&fd);
        else
                in.executable_fd = steal_fd(&fd);
        in.altlink_fd = find_altlink(directory, in.debuginfo_fd);
        st = dwo_places_create(path, in.debuginfo_fd, &places, err);
        if (st) {
                extract_inputs_close(&in);
                return st;
        }
        in.dwp_fd = dwo_places_open_package(places);
        in.dwo = (struct dwarf_dwo_source){ dwo_places_open, places };
        *ret = in;
        return ST_OK;
}
