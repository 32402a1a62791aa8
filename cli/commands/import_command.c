/* SPDX-License-Identifier: Apache-2.0 */
/* cairn import: send profiles of other tools to the service. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "cli/commands/command.h"
#include "cli/commands/profile_input.h"
#include "cli/commands/run_query.h"
#include "common/compress/compress.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "http/http_client.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/sample_count.h"
#include "query/engine/unit_text.h"

static const struct usage usage = {
        .synopsis = "cairn import [--server URL] [--format F] [--label K=V]... [--type ID] [--time T] [--history] "
                    "[--dry-run] [--json] FILE...",
        .about = "Send profiles in pprof, OTLP, speedscope, perf script, folded or JFR format to the service; the\n"
                 "format is detected unless --format is given. A file that is sent twice counts once.",
        .examples = "  cairn import --label service.name=api cpu.pb.gz\n"
                    "  perf record -g --buildid-mmap ./app; perf script --show-mmap-events > app.txt; cairn import "
                    "app.txt\n  perf script --show-mmap-events | cairn import -\n  cairn import --format folded --type "
                    "process_cpu:samples:count:cpu:nanoseconds out.folded\n",
};

struct import_options {
        struct service_options service;
        const char *time;
        struct profile_input input;
        struct option_list labels;
        bool dry_run, history, json;
};

/* Response of the service. */
struct import_result {
        struct otlp_response otlp;
        uint64_t expiring_samples; /* accepted, but older than the service's retention */
};

/* @param labels  KEY=VALUE */
static enum status add_labels(struct profile *p, const struct option_list *labels, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = labels->count; !st && i-- > 0;) { /* the last of several values of a key counts */
                const char *equals = strchr(labels->items[i], '=');
                _cleanup_free_ char *key = NULL;

                assert(equals);
                key = strndup(labels->items[i], (size_t)(equals - labels->items[i]));
                st = key ? profile_add_label_to_all(p, key, equals + 1, err) : error_no_memory(err);
        }
        return st;
}

static enum status send_profile(const struct import_options *o, const struct profile *p, struct import_result *ret,
                                struct error *err)
{
        const char *const headers[] = { "Content-Type: application/x-protobuf", "Content-Encoding: gzip",
                                        o->history ? "X-Cairn-History: 1" : NULL, NULL };
        const struct http_client_options how = { .size = sizeof how };
        struct http_client_request request = {
                .method = "POST", .path = "/v1development/profiles", .headers = headers, .repeatable = true
        }; /* the service counts equal bodies once */
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        _cleanup_buf_ struct buf plain, packed;
        enum status st;

        buf_init(&plain, GiB(1));
        buf_init(&packed, GiB(1));
        st = otlp_encode(p, &plain, err);
        if (!st)
                st = gzip_compress(plain.data, plain.size, 6, &packed, err);
        if (!st)
                st = service_connect(&o->service, &how, &client, err);
        if (st)
                return st;
        request.body = packed.data;
        request.body_size = packed.size;
        st = service_send(client, &request, &response, err);
        if (st && o->history && response.code == 403)
                st = error_set(err, ST_USAGE, "HTTP 403; --history needs a token with the scopes ingest and history");
        if (!st)
                st = otlp_read_response(response.body.data, response.body.size, &ret->otlp, err);
        ret->expiring_samples = response.expiring_samples;
        if (!st && ret->otlp.rejected && ret->otlp.rejected >= p->samples.count)
                st = error_set(err, ST_BAD_DATA, "the service stored nothing: %s", PRINTABLE(ret->otlp.message));
        return st;
}

static void print_import(const char *path, const char *format, const struct profile *p, bool dry_run,
                         const struct otlp_response *response)
{
        bool are_stacks;
        uint64_t samples = profile_count_samples(p, &are_stacks);

        printf("%s: %s, ", path, format);
        if (!are_stacks)
                printf("%s, ", COUNTED(samples, "sample", "samples"));
        printf("%s, %s", COUNTED(p->stacks.count, "stack", "stacks"),
               COUNTED(p->locations.count, "location", "locations"));
        if (p->rejected_samples)
                printf(", %s out: %s", COUNTED(p->rejected_samples, "sample left", "samples left"),
                       PRINTABLE(p->rejected_reason));
        if (*p->note)
                printf(", %s", PRINTABLE(p->note));
        if (response->rejected)
                printf(", the service left out: %s", PRINTABLE(response->message));
        printf("%s", dry_run ? "; not sent" : "; sent");
        if (!response->rejected && *response->message)
                printf("; message of the service: %s", PRINTABLE(response->message));
        printf("\n");
}

static enum status print_import_json(const char *path, const char *format, const struct profile *p, bool dry_run,
                                     const struct import_result *result, struct error *err)
{
        _cleanup_buf_ struct buf text;
        struct json_out j;
        bool are_stacks;
        uint64_t samples = profile_count_samples(p, &are_stacks);
        enum status st;

        buf_init(&text, MiB(1));
        json_out_init(&j, &text);
        json_out_object(&j, NULL);
        json_out_str(&j, "file", path);
        json_out_str(&j, "format", format);
        json_out_bool(&j, "sent", !dry_run);
        json_out_uint(&j, "samples", samples);
        if (are_stacks)
                json_out_str(&j, "samples_are", "stacks");
        json_out_uint(&j, "stacks", p->stacks.count);
        json_out_uint(&j, "locations", p->locations.count);
        json_out_uint(&j, "unreadable_samples", p->rejected_samples);
        json_out_uint(&j, "rejected_samples", result->otlp.rejected);
        json_out_uint(&j, "expiring_samples", result->expiring_samples);
        if (p->rejected_samples)
                json_out_str(&j, "unreadable_reason", p->rejected_reason);
        if (*p->note)
                json_out_str(&j, "note", p->note);
        if (*result->otlp.message)
                json_out_str(&j, "message", result->otlp.message);
        json_out_object_end(&j);
        st = buf_status(&text, err, "the report");
        if (!st)
                printf("%s\n", buf_cstr(&text));
        return st;
}

/* @param others_would_fail  set when the service refuses or cannot be reached, not because of this file. */
static enum status import_file(const struct import_options *common, const char *path, bool *others_would_fail,
                               struct error *err)
{
        const struct import_options o = *common;
        const char *format;
        struct import_result result = { 0 };
        struct profile p;
        enum status st = profile_input_read(path, &o.input, &p, &format, err);

        if (st)
                return st;
        if (o.input.type && strcmp(format, "folded") != 0)
                st = error_set(err, ST_USAGE, "--type is for folded stacks; this is a file of %s", format);
        if (!st)
                st = add_labels(&p, &o.labels, err);
        if (!st && !o.dry_run) {
                st = send_profile(&o, &p, &result, err);
                *others_would_fail = st && st != ST_BAD_DATA && st != ST_TOO_BIG;
        }
        if (!st && o.json)
                st = print_import_json(path, format, &p, o.dry_run, &result, err);
        else if (!st)
                print_import(path, format, &p, o.dry_run, &result.otlp);
        profile_deinit(&p);
        return st;
}

static enum status check_import_options(struct import_options *o, int argc, struct error *err)
{
        struct timespec now;
        enum status st = ST_OK;

        clock_gettime(CLOCK_REALTIME, &now);
        if (argc == 0)
                return error_set(err, ST_USAGE, "no FILE is given");
        for (size_t i = 0; i < o->labels.count; i++)
                if (!strchr(o->labels.items[i], '=') || o->labels.items[i][0] == '=')
                        return error_set(err, ST_USAGE, "label '%.60s' is not KEY=VALUE", o->labels.items[i]);
        if (o->input.type)
                st = profile_type_check(o->input.type, err);
        if (!st && o->time)
                st = time_text_parse(o->time, now.tv_sec * INT64_C(1000000000) + now.tv_nsec, &o->input.time_unix_ns,
                                     err);
        return st;
}

/* Each file that fails is reported. @return the exit status of the first one */
static int import_files(const struct import_options *o, int count, char **paths)
{
        int code = EXIT_DONE;

        for (int i = 0; i < count; i++) {
                bool others_would_fail = false;
                struct error err;
                enum status st = import_file(o, paths[i], &others_would_fail, &err);
                int failed;

                if (!st)
                        continue;
                failed = command_fail("import", error_prefix(&err, st, "%s", paths[i]), &err);
                code = code ? code : failed;
                if (!others_would_fail)
                        continue;
                if (i + 1 < count)
                        fprintf(stderr, "cairn import: not tried: %s, from '%s' on\n",
                                COUNTED(count - i - 1, "file", "files"), PRINTABLE(paths[i + 1]));
                break;
        }
        return code;
}

int command_import(int argc, char **argv)
{
        struct import_options o = { 0 };
        const struct option_spec specs[] = {
                OPTION_STRING("server", 0, "URL", &o.service.server,
                              "send to this server (default " DEFAULT_SERVER ")"),
                SERVICE_OPTIONS(&o.service),
                TENANT_OPTION(&o.service),
                OPTION_STRING("format", 0, "F", &o.input.format,
                              "pprof, otlp, speedscope, perf (text of perf script), folded or jfr (default: detected)"),
                OPTION_LIST("label", 0, "K=V", &o.labels, "add this label to every sample without it"),
                OPTION_STRING("type", 0, "ID", &o.input.type,
                              "profile type of folded stacks, five parts joined by ':'"),
                OPTION_STRING("time", 0, "T", &o.time,
                              "time of samples without one (default: the file's time; now for standard input)"),
                OPTION_FLAG("history", 0, &o.history, "send samples of any age; a token also needs the scope history"),
                OPTION_FLAG("dry-run", 0, &o.dry_run, "read and check, send nothing"),
                OPTION_FLAG("json", 0, &o.json, "print JSON, one object per line and file"),
                OPTION_END,
        };
        struct error err;
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);
        int code;

        if (!st)
                st = check_import_options(&o, argc, &err);
        code = st ? command_fail("import", st, &err) : import_files(&o, argc, argv);
        options_list_deinit(&o.labels);
        return code;
}
