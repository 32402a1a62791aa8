/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plain_files.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void plain_files_check(const struct plain_files *p)
{
#ifndef NDEBUG
        uint64_t bytes = 0;

        assert(p->count <= PLAIN_FILES_MAX);
        for (size_t i = 0; i < p->count; i++) {
                assert(p->items[i].fd >= 0);
                bytes += p->items[i].size_bytes;
        }
        assert(bytes == p->bytes && bytes <= PLAIN_FILES_MAX_BYTES);
#else
        (void)p;
#endif
}

void plain_files_add(struct plain_files *p, const struct stored_object *object, int fd)
{
        assert(fd >= 0);
        if (p->count == PLAIN_FILES_MAX || object->size_bytes > PLAIN_FILES_MAX_BYTES - p->bytes) {
                close(fd);
                return;
        }
        p->items[p->count] =
                (struct plain_file){ .build_id = object->build_id, .size_bytes = object->size_bytes, .fd = fd };
        memcpy(p->items[p->count].sha256, object->sha256, sizeof object->sha256);
        p->count++;
        p->bytes += object->size_bytes;
        plain_files_check(p);
}

int plain_files_open(const struct plain_files *p, const struct stored_object *object)
{
        for (size_t i = 0; i < p->count; i++)
                if (build_id_equal(&p->items[i].build_id, &object->build_id) &&
                    memcmp(p->items[i].sha256, object->sha256, sizeof object->sha256) == 0)
                        return fcntl(p->items[i].fd, F_DUPFD_CLOEXEC, 0);
        return -1;
}

void plain_files_remove(struct plain_files *p, const struct build_id *id)
{
        size_t kept = 0;

        for (size_t i = 0; i < p->count; i++) {
                if (build_id_equal(&p->items[i].build_id, id)) {
                        close(p->items[i].fd);
                        p->bytes -= p->items[i].size_bytes;
                } else {
                        p->items[kept++] = p->items[i];
                }
        }
        p->count = kept;
        plain_files_check(p);
}

void plain_files_deinit(struct plain_files *p)
{
        for (size_t i = 0; i < p->count; i++)
                close(p->items[i].fd);
        *p = (struct plain_files){ 0 };
}
