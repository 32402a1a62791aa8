/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/s3/store_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "storage/s3/s3_location.h"

#define ADDRESS_FILE "object-store"

enum status store_address_read(const char *dir, char **ret, struct error *err)
{
        _cleanup_free_ char *path = path_join(dir, ADDRESS_FILE);
        enum status st = path ? file_read_first_line(path, KiB(4), ret, err) : error_no_memory(err);

        if (st != ST_NOT_FOUND)
                return st;
        *ret = NULL;
        return ST_OK;
}

static enum status write_store_address(const char *dir, const char *url, struct error *err)
{
        _cleanup_free_ char *path = path_join(dir, ADDRESS_FILE), *line = NULL;
        enum status st;

        if (!path || asprintf(&line, "%s\n", url) < 0) {
                line = NULL;
                return error_no_memory(err);
        }
        st = file_make_dirs(dir, err);
        return st ? st : file_write_durable(path, line, strlen(line), err);
}

enum status store_address_set(const char *dir, const char *url, const char *local, const char *what, const char *owner,
                              struct error *err)
{
        _cleanup_free_ char *local_path = path_join(dir, local), *there = NULL;
        _cleanup_s3_location_ struct s3_location checked = { 0 };
        enum status st = local_path ? s3_location_parse(url, &checked, err) : error_no_memory(err);
        const char *now;

        if (!st)
                st = store_address_read(dir, &there, err);
        if (st)
                return st;
        if (!there && access(local_path, F_OK) != 0)
                return write_store_address(dir, url, err);
        now = there ? there : "files of this directory";
        if (strcmp(now, url) == 0)
                return ST_OK;
        return error_set(err, ST_USAGE,
                         "the %s of '%.80s' are in %.60s, not in %.60s: give that address, or another data directory",
                         what, owner, now, url);
}
