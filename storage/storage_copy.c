/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/limits.h"

#define STEP_BYTES KiB(256)

static enum status copy_content(int from, int to, const char *name, uint64_t *bytes_ret, struct error *err)
{
        _cleanup_free_ char *step = malloc(STEP_BYTES);
        enum status st = step ? ST_OK : error_no_memory(err);

        *bytes_ret = 0;
        while (!st) {
                ssize_t n = read(from, step, STEP_BYTES);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read '%s'", name);
                if (n == 0)
                        break;
                st = file_write_all(to, step, (size_t)n, name, err);
                *bytes_ret += (uint64_t)n;
        }
        return st;
}

static enum status put_copy(int fd, struct storage *to, const char *key, uint64_t *bytes_ret, struct error *err)
{
        struct storage_upload u;
        enum status st = storage_make_folder(to, key, err);

        if (!st)
                st = storage_begin(to, key, &u, err);
        if (st)
                return st;
        st = copy_content(fd, u.fd, u.name, bytes_ret, err);
        if (!st)
                return storage_publish(&u, STORAGE_REPLACE, err);
        storage_discard(&u);
        return st;
}

static void count_copy(struct storage_copies *count, bool is_present, uint64_t bytes)
{
        count->present += is_present;
        count->copied += !is_present;
        count->copied_bytes += bytes;
        if (count->progress)
                count->progress(count->context, count);
}

enum status storage_copy(struct storage *from, const char *key, struct storage *to, const char *to_key,
                         struct storage_copies *count, struct error *err)
{
        _cleanup_close_ int fd = -1;
        struct storage_info info, there;
        uint64_t bytes = 0;
        enum status st = storage_stat(from, key, &info, err), found;

        if (st)
                return st;
        found = storage_stat(to, to_key ? to_key : key, &there, err);
        if (found && found != ST_NOT_FOUND)
                return found;
        if (!found && there.size == info.size) {
                count_copy(count, true, 0);
                return ST_OK;
        }
        st = storage_open(from, key, &fd, &info, err);
        if (!st)
                st = put_copy(fd, to, to_key ? to_key : key, &bytes, err);
        if (!st)
                count_copy(count, false, bytes);
        return st;
}
