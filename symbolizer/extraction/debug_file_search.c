/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract_inputs_search_of() is the whole search: a debug file if the given file has no line tables, then the dwz file
 * of the one with the DWARF, then its package of split units. Single .dwo files are opened later, by
 * dwo_places_open(), when the reader reaches their skeleton unit; the attempt number lets it continue with the next
 * candidate if the id of one does not match.
 *
 * Names and paths in the files are untrusted. A candidate is accepted only by its content: the build-id, or without
 * any the checksum of .gnu_debuglink; for split DWARF the section it must have, and the unit's id, which the reader
 * compares. Files from search->fetch pass the same checks.
 *
 * Order: split DWARF (places, packages, single files), debug files, dwz files, the search.
 */
#include "symbolizer/extraction/debug_file_search.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <libdeflate.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "elf-image/elf_image.h"

/* ---- split DWARF ---- */

/*
 * Split DWARF on this machine: the package beside a file (FILE.dwp), or single
 * .dwo files in their compilation directory (from the skeleton unit) and beside
 * the executable and its debug file.
 *
 * Names come from an untrusted file and may be any path. Only regular ELF files
 * with .debug_info.dwo are opened; the reader compares the id with the
 * skeleton's.
 */

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

static enum status dwo_places_create(const char *path, int debuginfo_fd, struct dwo_places **ret, struct error *err)
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

static void dwo_places_destroy(struct dwo_places *p)
{
        if (!p)
                return;
        for (size_t i = 0; i < p->count; i++)
                free(p->files[i]);
        free(p);
}

/* Opening other than regular files may block or have side effects. */
static int open_if_has_section(const char *path, const char *section)
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

static int dwo_places_open_package(const struct dwo_places *p)
{
        for (size_t i = 0; i < p->count; i++) {
                const char *file = p->files[i], *suffix = strstr(file, ".debug");
                char candidate[PATH_MAX];
                int n = snprintf(candidate, sizeof candidate, "%s.dwp", file), fd = -1;

                if (n < (int)sizeof candidate)
                        fd = open_if_has_section(candidate, ".debug_cu_index");
                if (fd < 0 && n < (int)sizeof candidate && suffix && suffix[6] == 0) {
                        memcpy(candidate + (suffix - file), ".dwp", 5); /* FILE.debug and FILE.dwp */
                        fd = open_if_has_section(candidate, ".debug_cu_index");
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

static void add_dwo_candidate(struct candidates *c, const char *root, int root_size, const char *directory,
                              const char *name)
{
        int n = snprintf(c->paths[c->count], PATH_MAX, "%.*s%s%s%s%s", root_size, root, root_size ? "/" : "", directory,
                         directory[0] ? "/" : "", name);

        c->count += n > 0 && n < PATH_MAX;
}

static void list_dwo_candidates(const struct dwo_places *p, const char *directory, const char *name,
                                struct candidates *c)
{
        const char *base = path_base(name);

        if (name[0] == '/')
                add_dwo_candidate(c, "", 0, "", name);
        else if (directory[0] == '/')
                add_dwo_candidate(c, "", 0, directory, name);
        for (size_t i = 0; i < p->count; i++) {
                const char *root = p->files[i];
                int size = (int)(strrchr(root, '/') - root);

                if (name[0] != '/' && directory[0] && directory[0] != '/')
                        add_dwo_candidate(c, root, size, directory, name);
                if (name[0] != '/')
                        add_dwo_candidate(c, root, size, "", name);
                if (base != name)
                        add_dwo_candidate(c, root, size, "", base);
        }
}

static enum status dwo_places_open(void *places, uint64_t id, const char *directory, const char *name, unsigned attempt,
                                   int *fd_ret)
{
        _cleanup_free_ struct candidates *c = malloc(sizeof *c);

        (void)id; /* compared by the reader */
        if (!c)
                return ST_NO_MEMORY;
        c->count = 0;
        if (name[0])
                list_dwo_candidates(places, directory ? directory : "", name, c);
        for (size_t i = 0; i < c->count; i++) {
                int fd = open_if_has_section(c->paths[i], ".debug_info.dwo");

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

/* ---- debug files ---- */

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
static bool format_buildid_link_path(const char *directory, const struct build_id *id, char out[PATH_MAX])
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
static bool get_file_directory(const char *path, char out[PATH_MAX])
{
        char *slash;

        if (!realpath(path, out))
                return false;
        slash = strrchr(out, '/');
        *slash = 0;
        return true;
}

static bool matches_debuglink_crc(const struct elf_image *img, uint32_t crc)
{
        return libdeflate_crc32(0, img->data, img->size) == crc;
}

/* A debug file is one with the same build-id, or without any, one with the checksum of the link. Takes fd. */
static int check_debug_file(int fd_taken, const char *path, const struct elf_image *of, const uint32_t *crc)
{
        _cleanup_close_ int fd = fd_taken;
        _cleanup_elf_image_ struct elf_image img = { 0 };

        if (fd < 0 || elf_image_from_fd(fd, path, &img, NULL))
                return -1;
        if (of->build_id.size ? !build_id_equal(&of->build_id, &img.build_id)
                              : !crc || !matches_debuglink_crc(&img, *crc))
                return -1;
        return steal_fd(&fd);
}

static int open_matching_debug_file(const char *path, const struct elf_image *of, const uint32_t *crc)
{
        return check_debug_file(open(path, O_RDONLY | O_CLOEXEC), path, of, crc);
}

static int find_by_debuglink(const char *path, const char *directory, const struct elf_image *img)
{
        char dir[PATH_MAX], candidate[PATH_MAX];
        const char *name;
        uint32_t crc;

        if (elf_image_debuglink(img, &name, &crc, NULL) || strchr(name, '/') || !get_file_directory(path, dir))
                return -1;
        for (int place = 0; place < 3; place++) {
                int n = place == 0   ? snprintf(candidate, sizeof candidate, "%s/%s", dir, name)
                        : place == 1 ? snprintf(candidate, sizeof candidate, "%s/.debug/%s", dir, name)
                                     : snprintf(candidate, sizeof candidate, "%s%s/%s", directory, dir, name);
                int fd = n > 0 && n < (int)sizeof candidate ? open_matching_debug_file(candidate, img, &crc) : -1;

                if (fd >= 0)
                        return fd;
        }
        return -1;
}

/* ---- in a list of paths ---- */

/* The next entry of a list, without its sign. False at the end. */
static bool next_path_entry(const char **list, char out[PATH_MAX])
{
        const char *entry = *list;
        size_t n;

        if (!entry)
                return false;
        n = strcspn(entry, ":");
        *list = entry[n] ? entry + n + 1 : NULL;
        if (*entry == '+' || *entry == '-') {
                entry++;
                n--;
        }
        snprintf(out, PATH_MAX, "%.*s", n < PATH_MAX ? (int)n : 0, entry);
        return true;
}

static bool format_path_below(const char *directory, const char *below, const char *name, char out[PATH_MAX])
{
        int n = snprintf(out, PATH_MAX, "%s/%s%s%s", directory, below, *below ? "/" : "", name);

        return n > 0 && n < PATH_MAX;
}

/* Below a debug directory: "DIR/usr/bin/NAME", "DIR/bin/NAME", "DIR/NAME" for a file of /usr/bin. */
static int open_debug_file_below(const char *directory, const char *below, const char *name, const struct elf_image *of,
                                 const uint32_t *crc)
{
        char candidate[PATH_MAX];
        int fd = -1;

        for (bool is_last = false; fd < 0 && !is_last; below += strcspn(below, "/")) {
                below += *below == '/';
                is_last = !*below;
                if (format_path_below(directory, below, name, candidate))
                        fd = open_matching_debug_file(candidate, of, crc);
        }
        return fd;
}

/* By build-id under every absolute path, then by the name of the link or "FILE.debug". */
static int find_in_path_list(const char *path, const char *list, const struct elf_image *img)
{
        char dir[PATH_MAX], entry[PATH_MAX], candidate[PATH_MAX], own_name[NAME_MAX + sizeof ".debug"];
        const char *next = list, *name;
        bool has_link;
        uint32_t crc;
        int fd = -1;

        while (fd < 0 && next_path_entry(&next, entry))
                if (entry[0] == '/' && format_buildid_link_path(entry, &img->build_id, candidate))
                        fd = open_matching_debug_file(candidate, img, NULL);
        if (fd >= 0 || !get_file_directory(path, dir))
                return fd;
        has_link = elf_image_debuglink(img, &name, &crc, NULL) == ST_OK;
        if (!has_link) {
                snprintf(own_name, sizeof own_name, "%.*s.debug", NAME_MAX, path_base(path));
                name = own_name;
        }
        if (strchr(name, '/'))
                return -1;
        for (next = list; fd < 0 && next_path_entry(&next, entry);)
                fd = entry[0] == '/' ? open_debug_file_below(entry, dir, name, img, has_link ? &crc : NULL)
                                     : open_debug_file_below(dir, entry, name, img, has_link ? &crc : NULL);
        return fd;
}

/* "FILE.debug" beside the file, of the same build. */
static int find_by_own_name(const char *path, const struct elf_image *img)
{
        char file[PATH_MAX], candidate[PATH_MAX];
        int n;

        if (!img->build_id.size || !realpath(path, file))
                return -1;
        n = snprintf(candidate, sizeof candidate, "%s.debug", file);
        return n > 0 && n < (int)sizeof candidate ? open_matching_debug_file(candidate, img, NULL) : -1;
}

/* In the places that gdb knows, and beside the file. */
static int find_in_debug_directory(const char *path, const char *directory, const struct elf_image *img)
{
        char candidate[PATH_MAX];
        int fd = -1;

        if (format_buildid_link_path(directory, &img->build_id, candidate))
                fd = open_matching_debug_file(candidate, img, NULL);
        if (fd < 0)
                fd = find_by_debuglink(path, directory, img);
        return fd < 0 ? find_by_own_name(path, img) : fd;
}

static int find_local_debug_file(const char *path, const struct debug_file_search *search, const struct elf_image *img)
{
        int fd = search->path_list ? find_in_path_list(path, search->path_list, img)
                                   : find_in_debug_directory(path, search->directory, img);

        if (fd < 0 && search->fetch && img->build_id.size)
                fd = check_debug_file(search->fetch(search->context, &img->build_id, path), path, img, NULL);
        return fd;
}

/* Takes fd. */
static int check_altlink(int fd_taken, const char *path, const struct build_id *id)
{
        _cleanup_close_ int fd = fd_taken;
        _cleanup_elf_image_ struct elf_image img = { 0 };

        if (fd < 0 || elf_image_from_fd(fd, path, &img, NULL) || !elf_image_is_supplement_of(&img, id))
                return -1;
        return steal_fd(&fd);
}

static int open_matching_altlink(const char *path, const struct build_id *id)
{
        return check_altlink(open(path, O_RDONLY | O_CLOEXEC), path, id);
}

/* Under each absolute path: the build-id, or the name, also in ".dwz". */
static int find_altlink_in_path_list(const char *list, const char *target, const struct build_id *id)
{
        char entry[PATH_MAX], candidate[PATH_MAX];
        int fd = -1;

        while (fd < 0 && next_path_entry(&list, entry)) {
                if (entry[0] != '/')
                        continue;
                if (format_buildid_link_path(entry, id, candidate))
                        fd = open_matching_altlink(candidate, id);
                if (fd < 0 && format_path_below(entry, "", path_base(target), candidate))
                        fd = open_matching_altlink(candidate, id);
                if (fd < 0 && format_path_below(entry, ".dwz", path_base(target), candidate))
                        fd = open_matching_altlink(candidate, id);
        }
        return fd;
}

/* The path in the file, relative to the file; else the build-id under the debug directory; else a server. */
static int find_local_altlink(const struct debug_file_search *search, int debuginfo_fd)
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
                fd = open_matching_altlink(target, &id);
        else if (get_file_directory(self, dir))
                n = snprintf(candidate, sizeof candidate, "%s/%s", dir, target);
        if (n > 0 && n < (int)sizeof candidate)
                fd = open_matching_altlink(candidate, &id);
        if (fd < 0 && search->path_list)
                fd = find_altlink_in_path_list(search->path_list, target, &id);
        else if (fd < 0 && format_buildid_link_path(search->directory, &id, candidate))
                fd = open_matching_altlink(candidate, &id);
        if (fd < 0 && search->fetch && elf_image_quality(&img) >= QUALITY_LINES)
                fd = check_altlink(search->fetch(search->context, &id, target), target, &id);
        return fd;
}

enum status extract_inputs_find(const char *path, const char *directory, struct extract_inputs *ret, struct error *err)
{
        return extract_inputs_search(path, &(struct debug_file_search){ .directory = directory }, ret, err);
}

enum status extract_inputs_search(const char *path, const struct debug_file_search *search, struct extract_inputs *ret,
                                  struct error *err)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return error_os(err, errno, "cannot open '%s'", path);
        return extract_inputs_search_of(fd, path, search, ret, err);
}

enum status extract_inputs_search_of(int fd_taken, const char *path, const struct debug_file_search *search,
                                     struct extract_inputs *ret, struct error *err)
{
        struct extract_inputs in = { .debuginfo_fd = -1,
                                     .executable_fd = -1,
                                     .altlink_fd = -1,
                                     .dwp_fd = -1,
                                     .name = path,
                                     .file_name = path_base(path) };
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct dwo_places *places = NULL;
        _cleanup_close_ int fd = fd_taken;
        enum status st = elf_image_from_fd(fd, path, &img, err);

        if (st)
                return st;
        if (elf_image_quality(&img) < QUALITY_LINES)
                in.debuginfo_fd = find_local_debug_file(path, search, &img);
        if (in.debuginfo_fd < 0)
                in.debuginfo_fd = steal_fd(&fd);
        else
                in.executable_fd = steal_fd(&fd);
        in.altlink_fd = find_local_altlink(search, in.debuginfo_fd);
        st = dwo_places_create(path, in.debuginfo_fd, &places, err);
        if (st) {
                extract_inputs_close(&in);
                return st;
        }
        in.dwp_fd = search->package ? open_if_has_section(search->package, ".debug_cu_index")
                                    : dwo_places_open_package(places);
        in.dwo = (struct dwarf_dwo_source){ dwo_places_open, places };
        *ret = in;
        return ST_OK;
}
