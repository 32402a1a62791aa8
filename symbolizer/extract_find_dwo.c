/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extract_find_dwo.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "elf-image/elf_image.h"

#define PLACES_MAX 2
#define CANDIDATES_MAX (1 + 3 * PLACES_MAX)

struct dwo_places {
        char *files[PLACES_MAX]; /* owned; symbolic links followed */
        size_t count;
};

static void add_place(struct dwo_places *p, const char *path)
{
        char *real = realpath(path, NULL);

        if (real && p->count && strcmp(real, p->files[0]) == 0)
                free(real);
        else if (real)
                p->files[p->count++] = real;
}

enum status dwo_places_create(const char *path, int debuginfo_fd, struct dwo_places **ret, struct error *err)
{
        struct dwo_places *p = calloc(1, sizeof *p);
        char self[64];

        if (!p)
                return error_no_memory(err);
        add_place(p, path);
        snprintf(self, sizeof self, "/proc/self/fd/%d", debuginfo_fd);
        add_place(p, self);
        *ret = p;
        return ST_OK;
}

void dwo_places_destroy(struct dwo_places *p)
{
        if (!p)
                return;
        for (size_t i = 0; i < p->count; i++)
                free(p->files[i]);
        free(p);
}

/* Anything but a regular file is not even opened: that may wait, or do things. */
static int open_with(const char *path, const char *section)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_close_ int fd = -1;
        struct stat s;

        if (stat(path, &s) || !S_ISREG(s.st_mode))
                return -1;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || elf_image_from_fd(fd, path, &img, NULL) || !elf_image_section(&img, section))
                return -1;
        return steal_fd(&fd);
}

/* ---- packages ---- */

int dwo_places_open_package(const struct dwo_places *p)
{
        for (size_t i = 0; i < p->count; i++) {
                const char *file = p->files[i], *suffix = strstr(file, ".debug");
                char candidate[PATH_MAX];
                int n = snprintf(candidate, sizeof candidate, "%s.dwp", file), fd = -1;

                if (n < (int)sizeof candidate)
                        fd = open_with(candidate, ".debug_cu_index");
                if (fd < 0 && n < (int)sizeof candidate && suffix && suffix[6] == 0) {
                        memcpy(candidate + (suffix - file), ".dwp", 5); /* FILE.debug and FILE.dwp */
                        fd = open_with(candidate, ".debug_cu_index");
                }
                if (fd >= 0)
                        return fd;
        }
        return -1;
}

/* ---- single files ---- */

struct candidates {
        char paths[CANDIDATES_MAX][PATH_MAX];
        size_t count;
};

static void add(struct candidates *c, const char *root, int root_size, const char *directory, const char *name)
{
        int n = snprintf(c->paths[c->count], PATH_MAX, "%.*s%s%s%s%s", root_size, root, root_size ? "/" : "", directory,
                         directory[0] ? "/" : "", name);

        c->count += n > 0 && n < PATH_MAX;
}

static void list(const struct dwo_places *p, const char *directory, const char *name, struct candidates *c)
{
        const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;

        if (name[0] == '/')
                add(c, "", 0, "", name);
        else if (directory[0] == '/')
                add(c, "", 0, directory, name);
        for (size_t i = 0; i < p->count; i++) {
                const char *root = p->files[i];
                int size = (int)(strrchr(root, '/') - root);

                if (name[0] != '/' && directory[0] && directory[0] != '/')
                        add(c, root, size, directory, name);
                if (name[0] != '/')
                        add(c, root, size, "", name);
                if (base != name)
                        add(c, root, size, "", base);
        }
}

enum status dwo_places_open(void *places, uint64_t id, const char *directory, const char *name, unsigned attempt, int *fd_ret)
{
        _cleanup_free_ struct candidates *c = malloc(sizeof *c);

        (void)id; /* whoever reads the file compares it */
        if (!c)
                return ST_NO_MEMORY;
        c->count = 0;
        if (name[0])
                list(places, directory ? directory : "", name, c);
        for (size_t i = 0; i < c->count; i++) {
                int fd = open_with(c->paths[i], ".debug_info.dwo");

                if (fd < 0)
                        continue;
                if (attempt-- == 0) {
                        *fd_ret = fd;
                        return ST_OK;
                }
                close(fd);
        }
        return ST_NOT_FOUND;
}
