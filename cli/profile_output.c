/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_output.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/ask.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "profile-formats/folded.h"
#include "profile-formats/otlp.h"
#include "profile-formats/pprof.h"

static const char *const names[] = { "text", "json", "html", "folded", "pprof", "otlp" };

enum status profile_shape_parse(const char *name, enum profile_shape *ret, struct error *err)
{
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                if (strcmp(name, names[i]) == 0) {
                        *ret = (enum profile_shape)i;
                        return ST_OK;
                }
        }
        return error_set(err, ST_USAGE, "format '%.40s' is none of text, json, html, folded, pprof, otlp", name);
}

enum status profile_shape_of(const char *path, enum profile_shape *ret, struct error *err)
{
        static const struct {
                const char *end;
                enum profile_shape shape;
        } endings[] = {
                { ".html", SHAPE_HTML },     { ".htm", SHAPE_HTML },    { ".json", SHAPE_JSON },  { ".txt", SHAPE_TEXT },
                { ".folded", SHAPE_FOLDED }, { ".pb.gz", SHAPE_PPROF }, { ".pprof", SHAPE_PPROF }, { ".otlp", SHAPE_OTLP },
        };
        size_t n = strlen(path);

        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
                size_t m = strlen(endings[i].end);

                if (n >= m && strcmp(path + n - m, endings[i].end) == 0) {
                        *ret = endings[i].shape;
                        return ST_OK;
                }
        }
        return error_set(err, ST_USAGE,
                         "'%.100s' does not say what to write: end it in .html, .pb.gz, .folded, .otlp, .json or .txt, or "
                         "give --format", path);
}

bool profile_shape_is_binary(enum profile_shape s)
{
        return s == SHAPE_PPROF || s == SHAPE_OTLP;
}

enum status profile_shape_put(const struct profile *p, enum profile_shape s, const struct profile_form *form,
                              struct buf *ret, struct error *err)
{
        struct ask_params params = { 0 };

        if (!p->samples.count && (s == SHAPE_TEXT || s == SHAPE_FOLDED))
                return ST_OK;
        ask_param(&params, "names", form->names);
        switch (s) {
        case SHAPE_TEXT:
        case SHAPE_JSON:
                ask_param(&params, "limit", form->limit);
                ask_param(&params, "format", s == SHAPE_TEXT ? "text" : "rows");
                return ask_profiles(&p, 1, "top", &params, ret, err);
        case SHAPE_HTML:
                ask_param(&params, "format", "html");
                return ask_profiles(&p, 1, "flame", &params, ret, err);
        case SHAPE_FOLDED:
                return folded_encode(p, NULL, ret, err);
        case SHAPE_PPROF:
                return pprof_encode(p, ret, err);
        case SHAPE_OTLP:
                return otlp_encode(p, ret, err);
        }
        return ST_USAGE;
}

/* ---- files ------------------------------------------------------------------------------------- */

static bool is_standard(const char *path)
{
        return !path || strcmp(path, "-") == 0;
}

/* A device or a pipe is written to as it is: nothing takes its place. */
static bool is_special(const char *path)
{
        struct stat s;

        return stat(path, &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

enum status profile_output_check(const char *path, struct error *err)
{
        _cleanup_free_ char *tmp = NULL;
        struct stat s;
        enum status st;
        int fd;

        if (is_standard(path))
                return ST_OK;
        if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
                return error_set(err, ST_OS, "cannot write '%s': it is a directory", path);
        if (is_special(path))
                return access(path, W_OK) < 0 ? error_os(err, errno, "cannot write '%s'", path) : ST_OK;
        st = file_create_temporary(path, &tmp, &fd, err);
        if (st)
                return error_prefix(err, st, "cannot write '%s'", path);
        close(fd);
        unlink(tmp);
        return ST_OK;
}

enum status profile_output_write(const char *path, const struct buf *b, struct error *err)
{
        _cleanup_close_ int fd = -1;

        if (is_standard(path))
                return file_write_all(STDOUT_FILENO, b->data, b->size, "standard output", err);
        if (!is_special(path))
                return file_write_durable(path, b->data, b->size, err);
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return fd < 0 ? error_os(err, errno, "cannot write '%s'", path) : file_write_all(fd, b->data, b->size, path, err);
}
