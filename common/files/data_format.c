/* SPDX-License-Identifier: Apache-2.0 */
#include "common/files/data_format.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"

#define FILE_BYTES_MAX 4096 /* later formats may have more lines */
#define TEXT_BEFORE "data-format "
#define UNRELEASED_TEXT "format 1 cairn 0.1.0" /* of programs before the first release */
#define TEXT_BETWEEN " cairn "

/* @param program_ret version of the program that wrote it, in line, which is modified. */
static bool parse_format_line(char *line, uint64_t *ret, const char **program_ret)
{
        char *number, *between;

        if (strncmp(line, TEXT_BEFORE, strlen(TEXT_BEFORE)) != 0)
                return false;
        number = line + strlen(TEXT_BEFORE);
        between = strstr(number, TEXT_BETWEEN);
        if (!between)
                return false;
        *between = 0;
        *program_ret = between + strlen(TEXT_BETWEEN);
        return parse_uint(number, ret) && *ret > 0;
}

/* Whether a program without this file, or with another first word in it, wrote databases or tables. */
static bool holds_data(const char *dir)
{
        static const char *const content[] = { "index/data.mdb", "debuginfo/meta/data.mdb", "profiles/tables" };
        int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        bool found = false;

        for (size_t i = 0; fd >= 0 && !found && i < sizeof content / sizeof *content; i++)
                found = faccessat(fd, content[i], F_OK, 0) == 0;
        if (fd >= 0)
                close(fd);
        return found;
}

static enum status refuse_unreleased_format(const char *dir, struct error *err)
{
        return error_set(err, ST_UNSUPPORTED,
                         "'%s' is from before cairn 0.1.0, and no release reads it: start with an empty directory and "
                         "send the data again, or export it with the program that wrote it",
                         dir);
}

/* 0 if the file does not exist. */
static enum status read_data_format(const char *dir, const char *path, uint64_t *ret, struct error *err)
{
        _cleanup_free_ char *line = NULL;
        const char *program;
        enum status st = file_read_first_line(path, FILE_BYTES_MAX, &line, err);

        if (st == ST_NOT_FOUND) {
                *ret = 0;
                return holds_data(dir) ? refuse_unreleased_format(dir, err) : ST_OK;
        }
        if (st == ST_OS || st == ST_NO_MEMORY)
                return st;
        if (!st && strncmp(line, UNRELEASED_TEXT, strlen(UNRELEASED_TEXT)) == 0)
                return refuse_unreleased_format(dir, err);
        if (st || !parse_format_line(line, ret, &program))
                return error_set(err, ST_BAD_DATA,
                                 "'%s' is not the format of a data directory: restore it from a snapshot, or remove it "
                                 "if no newer cairn ran here",
                                 path);
        if (*ret > DATA_FORMAT_VERSION)
                return error_set(err, ST_UNSUPPORTED,
                                 "'%s' has format %" PRIu64 ", of cairn %.20s; cairn " CAIRN_VERSION
                                 " reads up to %d: run that version, or a snapshot made before the upgrade",
                                 path, *ret, PRINTABLE(program), DATA_FORMAT_VERSION);
        return ST_OK;
}

enum status data_format_check(const char *dir, struct error *err)
{
        _cleanup_free_ char *path = path_join(dir, "format");
        uint64_t format;

        return path ? read_data_format(dir, path, &format, err) : error_no_memory(err);
}

enum status data_format_write(const char *dir, struct error *err)
{
        _cleanup_free_ char *path = path_join(dir, "format");
        char line[64];
        uint64_t format = 0;
        enum status st = path ? read_data_format(dir, path, &format, err) : error_no_memory(err);

        if (st || format == DATA_FORMAT_VERSION)
                return st;
        snprintf(line, sizeof line, TEXT_BEFORE "%d" TEXT_BETWEEN CAIRN_VERSION "\n", DATA_FORMAT_VERSION);
        return file_write_durable(path, line, strlen(line), err);
}
