/* SPDX-License-Identifier: Apache-2.0 */
/* cairn import: send profiles of other tools to the service. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/ask.h"
#include "cli/command.h"
#include "common/compress.h"
#include "common/file.h"
#include "common/limits.h"
#include "common/utf8.h"
#include "http/client.h"
#include "profile-formats/folded.h"
#include "profile-formats/otlp.h"
#include "profile-formats/perf_script.h"
#include "profile-formats/pprof.h"
#include "query/time_text.h"

static const struct usage usage = {
        .synopsis = "cairn import [--server URL] [--format F] [--label K=V]... [--type ID] [--time T] [--dry-run] "
                    "FILE...",
        .about = "Send profiles in pprof, OTLP, perf script or folded form to the service; the form is recognized "
                 "unless --format says it. The same file sent twice counts once. With --dry-run files are only read and "
                 "checked.",
        .examples = "  cairn import --label service.name=api cpu.pb.gz\n"
                    "  perf record -g --buildid-mmap ./app; perf script --show-mmap-events > app.txt; cairn import "
                    "app.txt\n  cairn import --format folded --type process_cpu:samples:count:cpu:nanoseconds out.folded\n",
};

struct import_options {
        const char *server, *token_file, *format, *type, *time;
        struct option_list labels;
        bool dry_run;
        int64_t time_unix_ns; /* of --time, or of the file */
};

enum format { FORMAT_PPROF, FORMAT_OTLP, FORMAT_PERF, FORMAT_FOLDED };
static const char *const format_names[] = { "pprof", "otlp", "perf", "folded" };

static bool looks_like_text(const struct buf *b)
{
        size_t n = b->size < 4096 ? b->size : 4096, end = n > 4 && n < b->size ? n - 4 : n;

        for (size_t i = 0; i < n; i++)
                if (b->data[i] < 0x20 && b->data[i] != '\n' && b->data[i] != '\r' && b->data[i] != '\t')
                        return false;
        for (size_t i = 0; i < end;) {
                size_t len = utf8_sequence((const char *)b->data + i, n - i);

                if (!len)
                        return false;
                i += len;
        }
        return true;
}

static enum status decode_as(enum format f, const struct buf *b, const struct import_options *o,
                             struct profile *ret, struct error *err)
{
        switch (f) {
        case FORMAT_PPROF:
                return pprof_decode(b->data, b->size, NULL, ret, err);
        case FORMAT_OTLP:
                return otlp_decode(b->data, b->size, ret, err);
        case FORMAT_PERF:
                return perf_script_decode(b->data, b->size, o->time_unix_ns, ret, err);
        case FORMAT_FOLDED:
                return folded_decode(b->data, b->size, o->type, ret, err);
        }
        return ST_UNSUPPORTED;
}

/* A pprof file has a string table where an OTLP request has nothing, so at most one of the two decodes. */
static enum status decode(const struct buf *b, const struct import_options *o, struct profile *ret,
                          enum format *format_ret, struct error *err)
{
        bool text = looks_like_text(b);
        enum format first = text ? FORMAT_PERF : FORMAT_PPROF, second = text ? FORMAT_FOLDED : FORMAT_OTLP;
        struct error first_err, second_err;
        enum status st;

        for (int i = 0; o->format && i < 4; i++) {
                if (strcmp(o->format, format_names[i]) == 0) {
                        *format_ret = (enum format)i;
                        return decode_as(*format_ret, b, o, ret, err);
                }
        }
        if (o->format)
                return error_set(err, ST_USAGE, "format '%.40s' is none of pprof, otlp, perf, folded", o->format);
        *format_ret = first;
        st = decode_as(first, b, o, ret, &first_err);
        if (st == ST_BAD_DATA) {
                *format_ret = second;
                st = decode_as(second, b, o, ret, &second_err);
                if (st == ST_BAD_DATA)
                        return error_set(err, st, "in no form we know; as %s: %.80s; as %s: %.80s",
                                         format_names[first], first_err.text, format_names[second],
                                         second_err.text);
                first_err = second_err;
        }
        if (st)
                *err = first_err;
        return st;
}

static enum status read_unpacked(const char *path, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf raw;
        enum status st;

        buf_init(&raw, GiB(1));
        st = file_read(path, &raw, err);
        if (st)
                return st;
        if (gzip_detect(raw.data, raw.size))
                return gzip_unpack(raw.data, raw.size, ret, err);
        if (zstd_detect(raw.data, raw.size))
                return zstd_unpack(raw.data, raw.size, ret, err);
        buf_append(ret, raw.data, raw.size);
        return buf_status(ret, err, path);
}

static enum status add_labels(struct profile *p, const struct option_list *labels, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < labels->count; i++) {
                const char *equals = strchr(labels->items[i], '=');
                _cleanup_free_ char *key = NULL;

                if (!equals || equals == labels->items[i])
                        return error_set(err, ST_USAGE, "label '%.60s' is not KEY=VALUE", labels->items[i]);
                key = strndup(labels->items[i], (size_t)(equals - labels->items[i]));
                st = key ? profile_label_all(p, key, equals + 1, err) : error_no_memory(err);
        }
        return st;
}

static enum status send_profile(const struct import_options *o, const struct profile *p, struct error *err)
{
        static const char *const headers[] = { "Content-Type: application/x-protobuf", "Content-Encoding: gzip",
                                               NULL };
        struct http_client_options options = { .size = sizeof options,
                                               .base_url = o->server ? o->server : DEFAULT_SERVER };
        struct http_client_request request = {
                .method = "POST", .path = "/v1development/profiles", .headers = headers, .repeatable = true
        }; /* equal bodies count once */
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        _cleanup_free_ char *token = NULL;
        _cleanup_buf_ struct buf plain, packed;
        enum status st;

        buf_init(&plain, GiB(1));
        buf_init(&packed, GiB(1));
        st = otlp_encode(p, &plain, err);
        if (!st)
                st = gzip_pack(plain.data, plain.size, 6, &packed, err);
        if (!st && o->token_file)
                st = http_client_read_token(o->token_file, &token, err);
        options.token = token;
        if (!st)
                st = http_client_create(&options, &client, err);
        if (st)
                return st;
        request.body = packed.data;
        request.body_size = packed.size;
        return http_client_send(client, &request, &response, err);
}

static enum status import_file(const struct import_options *common, const char *path, struct error *err)
{
        struct import_options o = *common;
        _cleanup_buf_ struct buf b;
        enum format format = FORMAT_PPROF;
        struct profile p;
        struct stat file;
        enum status st;

        buf_init(&b, GiB(1));
        st = read_unpacked(path, &b, err);
        if (st)
                return st;
        if (!o.time_unix_ns)
                o.time_unix_ns =
                        stat(path, &file) ? 0 : file.st_mtim.tv_sec * INT64_C(1000000000) + file.st_mtim.tv_nsec;
        st = decode(&b, &o, &p, &format, err);
        if (st)
                return st;
        profile_default_time(&p, o.time_unix_ns);
        st = add_labels(&p, &o.labels, err);
        if (!st && !o.dry_run)
                st = send_profile(&o, &p, err);
        if (!st) {
                printf("%s: %s, %u samples, %u stacks, %u locations", path, format_names[format], p.samples.count,
                       p.stacks.count, p.locations.count);
                if (p.rejected_samples)
                        printf(", %" PRIu64 " samples left out: %s", p.rejected_samples, p.rejected_reason);
                printf("%s\n", o.dry_run ? "; not sent" : "; sent");
        }
        profile_deinit(&p);
        return st;
}

static enum status import_all(struct import_options *o, int argc, char **argv, struct error *err)
{
        struct timespec now;
        enum status st = ST_OK;

        clock_gettime(CLOCK_REALTIME, &now);
        if (argc == 0)
                return error_set(err, ST_USAGE, "which file?");
        if (o->time)
                st = time_text_parse(o->time, now.tv_sec * INT64_C(1000000000) + now.tv_nsec, &o->time_unix_ns,
                                     err);
        for (int i = 0; !st && i < argc; i++) {
                st = import_file(o, argv[i], err);
                if (st)
                        error_prefix(err, st, "%s", argv[i]);
        }
        return st;
}

int command_import(int argc, char **argv)
{
        struct import_options o = { 0 };
        const struct option_spec specs[] = {
                OPTION_STRING("server", 0, "URL", &o.server, "send to this server (default " DEFAULT_SERVER ")"),
                OPTION_STRING("token-file", 0, "FILE", &o.token_file, "file with the token for the server"),
                OPTION_STRING("format", 0, "F", &o.format, "pprof, otlp, perf (the text of perf script) or folded"),
                OPTION_LIST("label", 0, "K=V", &o.labels, "give every sample that lacks it this label"),
                OPTION_STRING("type", 0, "ID", &o.type, "profile type of folded stacks, five parts joined by ':'"),
                OPTION_STRING("time", 0, "T", &o.time,
                              "when samples without a time were taken (default: the file's time)"),
                OPTION_FLAG("dry-run", 0, &o.dry_run, "read and check, send nothing"),
                OPTION_END,
        };
        struct error err;
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);

        if (!st)
                st = import_all(&o, argc, argv, &err);
        options_list_deinit(&o.labels);
        return st ? command_fail("import", st, &err) : EXIT_DONE;
}
