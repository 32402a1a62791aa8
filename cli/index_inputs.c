/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/index_inputs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/object_directory.h"
#include "common/array.h"
#include "common/cleanup.h"

void index_inputs_deinit(struct index_inputs *in)
{
        for (size_t i = 0; i < in->count; i++)
                free(in->paths[i]);
        free(in->paths);
        *in = (struct index_inputs){ 0 };
}

static enum status add(struct index_inputs *in, const char *path, struct error *err)
{
        char *copy;

        if (!array_reserve(&in->paths, &in->capacity, in->count))
                return error_no_memory(err);
        copy = strdup(path);
        if (!copy)
                return error_no_memory(err);
        in->paths[in->count++] = copy;
        return ST_OK;
}

static int compare_paths(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum status add_directory(struct index_inputs *in, const char *path, struct error *err)
{
        struct object_directory found = { 0 };
        size_t first = in->count;
        enum status st = object_directory_scan(path, &found, err);

        for (size_t i = 0; !st && i < found.count; i++) {
                struct stat s;

                if (lstat(found.objects[i].path, &s) == 0 && S_ISREG(s.st_mode))
                        st = add(in, found.objects[i].path, err);
        }
        object_directory_deinit(&found);
        if (!st && in->count == first)
                st = error_set(err, ST_NOT_FOUND, "'%s' has no ELF file with a build-id", path);
        if (!st)
                qsort(in->paths + first, in->count - first, sizeof *in->paths, compare_paths);
        return st;
}

enum status index_inputs_add(struct index_inputs *in, const char *path, struct error *err)
{
        struct stat s;

        if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
                return add_directory(in, path, err);
        return add(in, path, err);
}
