/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/tables/node_identity.h"

#include <string.h>
#include <sys/random.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/text.h"

enum status node_identity_read(const char *dir, char ret[static NODE_ID_SIZE], struct error *err)
{
        _cleanup_free_ char *path = path_join(dir, NODE_IDENTITY_FILE), *line = NULL;
        enum status st = path ? file_read_first_line(path, 64, &line, err) : error_no_memory(err);

        if (st && st != ST_NOT_FOUND)
                return st;
        if (line && (strlen(line) != NODE_ID_SIZE - 1 || strspn(line, "0123456789abcdef") != NODE_ID_SIZE - 1))
                return error_set(err, ST_BAD_DATA,
                                 "'%s' is not the identity of a node: 16 hexadecimal digits; restore "
                                 "it from a copy of the directory, or remove it when the directory "
                                 "has no queue",
                                 path);
        snprintf(ret, NODE_ID_SIZE, "%s", line ? line : "");
        return ST_OK;
}

enum status node_identity_replace(const char *dir, char ret[static NODE_ID_SIZE], struct error *err)
{
        _cleanup_free_ char *path = path_join(dir, NODE_IDENTITY_FILE);
        char line[NODE_ID_SIZE + 1];
        uint8_t random[(NODE_ID_SIZE - 1) / 2];
        enum status st;

        if (!path)
                return error_no_memory(err);
        if (getrandom(random, sizeof random, 0) != sizeof random)
                return error_os(err, errno, "cannot get random bytes for the identity of a node");
        hex_encode(random, sizeof random, line);
        line[NODE_ID_SIZE - 1] = '\n';
        st = file_write_durable(path, line, NODE_ID_SIZE, err);
        if (!st)
                snprintf(ret, NODE_ID_SIZE, "%.16s", line);
        return st;
}

enum status node_identity_make(const char *dir, char ret[static NODE_ID_SIZE], struct error *err)
{
        enum status st = node_identity_read(dir, ret, err);

        return st || *ret ? st : node_identity_replace(dir, ret, err);
}
