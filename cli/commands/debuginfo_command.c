/* SPDX-License-Identifier: Apache-2.0 */
/* cairn debuginfo: list and maintain stored objects, at a service or in its data directory. */
#include "cli/commands/debuginfo_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/command.h"
#include "cli/commands/run_query.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/files/file.h"
#include "common/json/json_node.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "http/http_client.h"
#include "pipeline/index_state.h"
#include "server/api/debuginfo/debuginfo_list.h"
#include "server/api/debuginfo/gc_answer.h"
#include "server/core/data_lock.h"

/* ---- list, show ---- */

static void print_object_row(const struct json_node *o)
{
        const struct json_node *index = json_node_member(o, "index");

        printf("%-40s  %-10s  %-13s  %12" PRId64 "  %-8s  %s\n", PRINTABLE(json_node_text(o, "build_id")),
               PRINTABLE(json_node_text(o, "kind")), PRINTABLE(json_node_text(o, "quality")), json_node_int(o, "size"),
               PRINTABLE(json_node_text(index, "state")), PRINTABLE(json_node_text(o, "name")));
        if (*json_node_text(index, "error"))
                printf("%-40s  %s\n", "", PRINTABLE(json_node_text(index, "error")));
        if (*json_node_text(index, "partial"))
                printf("%-40s  partial: %s\n", "", PRINTABLE(json_node_text(index, "partial")));
}

static enum status print_object_table(struct buf *body, struct error *err)
{
        _cleanup_arena_ struct arena memory = { 0 };
        const struct json_node *root, *item;

        root = json_node_parse(body->data, body->size, &memory);
        if (!json_node_is_array(json_node_member(root, "objects")))
                return error_set(err, ST_BAD_DATA, "the service's response does not match the request");
        printf("%-40s  %-10s  %-13s  %12s  %-8s  %s\n", "build-id", "kind", "quality", "bytes", "index", "name");
        for (struct json_node_list l = json_node_list(root, "objects"); (item = json_node_next(&l));)
                print_object_row(item);
        return ST_OK;
}

static enum status print_object_answer(const struct debuginfo_options *o, struct buf *body, struct error *err)
{
        if (!o->json)
                return print_object_table(body, err);
        printf("%.*s\n", (int)body->size, (const char *)body->data);
        return ST_OK;
}

/* id NULL: all objects. */
static enum status list_objects(const struct debuginfo_options *o, const struct build_id *id, struct error *err)
{
        _cleanup_buf_ struct buf body = { 0 };
        char path[64 + BUILD_ID_HEX_MAX], hex[BUILD_ID_HEX_MAX];
        struct debuginfo_dir dir;
        enum status st;

        buf_init(&body, LIMIT_RESPONSE_BYTES);
        if (o->ask.data) {
                st = debuginfo_dir_open(o, false, &dir, err);
                if (st)
                        return st;
                st = id ? write_debuginfo_object(dir.objects, dir.symbols, id, &body, err)
                        : write_debuginfo_list(dir.objects, dir.symbols, &body, err);
                debuginfo_dir_close(&dir);
        } else {
                snprintf(path, sizeof path, "/api/v1/debuginfo%s%s", id ? "/" : "", id ? build_id_hex(id, hex) : "");
                st = debuginfo_request(o, "GET", path, NULL, &body, err);
        }
        return st ? st : print_object_answer(o, &body, err);
}

static enum status debuginfo_list(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                                  struct error *err)
{
        (void)ids;
        (void)count;
        return list_objects(o, NULL, err);
}

static enum status debuginfo_show(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                                  struct error *err)
{
        (void)count;
        return list_objects(o, &ids[0], err);
}

/* ---- missing ---- */

/* The default range is all samples: debuginfo that is missing usually has been missing for long. */
static enum status debuginfo_missing(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                                     struct error *err)
{
        struct query_options ask_of = o->ask;
        struct query_params params = { 0 };
        _cleanup_buf_ struct buf body;
        enum status st;

        (void)ids;
        (void)count;
        if (!ask_of.from)
                ask_of.from = "0";
        query_param_add(&params, "limit", o->limit);
        query_param_add(&params, "server", ask_of.service.server);
        query_param_add(&params, "format", o->json ? "json" : "text");
        buf_init(&body, LIMIT_RESPONSE_BYTES);
        st = run_query(&ask_of, "uploads", &params, &body, err);
        if (!st)
                printf("%.*s%s", (int)body.size, (const char *)body.data, o->json ? "\n" : "");
        return st;
}

/* ---- upstreams ---- */

static void print_upstream(const struct json_node *u)
{
        printf("%-40s  %-9s  %8" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "\n",
               PRINTABLE(json_node_text(u, "url")), PRINTABLE(json_node_text(u, "breaker")), json_node_uint(u, "found"),
               json_node_uint(u, "missing"), json_node_uint(u, "failed") + json_node_uint(u, "refused"),
               json_node_uint(u, "skipped"), json_node_uint(u, "mean_ms"), json_node_uint(u, "slowest_ms"));
        if (strcmp(json_node_text(u, "breaker"), "closed") != 0)
                printf("  failed %s, next request in %" PRIu64 " s\n",
                       COUNTED(json_node_uint(u, "failures_in_a_row"), "time", "times in a row"),
                       json_node_uint(u, "retry_in_s"));
        if (json_node_text(u, "last_error")[0])
                printf("  last: %s\n", PRINTABLE(json_node_text(u, "last_error")));
}

static void print_upstreams(const struct json_node *all)
{
        const struct json_node *questions = json_node_member(all, "questions"), *one;
        struct json_node_list upstreams = json_node_list(all, "upstreams");

        one = json_node_next(&upstreams);
        if (!one) {
                printf("the service has no upstreams: start it with --upstream URL\n");
                return;
        }
        printf("%-40s  %-9s  %8s  %8s  %8s  %8s  %8s  %8s\n", "UPSTREAM", "BREAKER", "FOUND", "MISSING", "FAILED",
               "SKIPPED", "MEAN MS", "SLOW MS");
        for (; one; one = json_node_next(&upstreams))
                print_upstream(one);
        if (questions)
                printf("%s, %" PRIu64 " in flight; %s to be missing, %" PRIu64 " not retried yet\n",
                       COUNTED(json_node_uint(questions, "queued"), "request queued", "requests queued"),
                       json_node_uint(questions, "in_flight"),
                       COUNTED(json_node_uint(questions, "known_missing"), "object known", "objects known"),
                       json_node_uint(questions, "known_failed"));
}

static enum status debuginfo_upstreams(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                                       struct error *err)
{
        _cleanup_arena_ struct arena memory = { 0 };
        const struct json_node *all;
        _cleanup_buf_ struct buf body;
        enum status st;

        (void)ids;
        (void)count;
        buf_init(&body, LIMIT_RESPONSE_BYTES);
        st = debuginfo_request(o, "GET", "/api/v1/debuginfo/upstreams", NULL, &body, err);
        if (!st && o->json) {
                printf("%.*s", (int)body.size, (const char *)body.data);
                return ST_OK;
        }
        if (st)
                return st;
        all = json_node_parse(body.data, body.size, &memory);
        if (!all)
                return error_set(err, ST_BAD_DATA, "the service's response is not a JSON object");
        print_upstreams(all);
        return ST_OK;
}

/* ---- rm, pin, unpin ---- */

enum change { CHANGE_REMOVE, CHANGE_PIN, CHANGE_UNPIN };
static const char *const done[] = { "removed", "pinned", "unpinned" };

static enum status change_in_directory(struct debuginfo_store *objects, const struct build_id *id,
                                       enum object_kind kind, enum change what, struct error *err)
{
        if (what == CHANGE_REMOVE)
                return debuginfo_store_remove(objects, id, kind, err);
        return debuginfo_store_set_pin(objects, id, kind, what == CHANGE_PIN, err);
}

static enum status change_at_server(const struct debuginfo_options *o, const char *hex, enum change what,
                                    struct error *err)
{
        char path[80 + BUILD_ID_HEX_MAX];
        _cleanup_buf_ struct buf body;

        buf_init(&body, MiB(1));
        snprintf(path, sizeof path, "/api/v1/debuginfo/%s/%s%s", hex, object_kind_name(o->kind),
                 what == CHANGE_REMOVE ? "" : "/pin");
        return debuginfo_request(o, what == CHANGE_PIN ? "PUT" : "DELETE", path, NULL, &body, err);
}

static enum status change_objects(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                                  enum change what, struct error *err)
{
        struct debuginfo_dir dir = { 0 };
        enum status st = o->ask.data ? debuginfo_dir_open(o, true, &dir, err) : ST_OK;

        for (size_t i = 0; i < count && !st; i++) {
                char hex[BUILD_ID_HEX_MAX];

                build_id_hex(&ids[i], hex);
                st = o->ask.data ? change_in_directory(dir.objects, &ids[i], o->kind, what, err)
                                 : change_at_server(o, hex, what, err);
                if (!st && !o->json)
                        printf("%s  %-10s  %s\n", hex, object_kind_name(o->kind), done[what]);
                else if (!st)
                        printf("{\"build_id\":\"%s\",\"kind\":\"%s\",\"state\":\"%s\"}\n", hex,
                               object_kind_name(o->kind), done[what]);
        }
        debuginfo_dir_close(&dir);
        return st;
}

static enum status debuginfo_rm(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                                struct error *err)
{
        return change_objects(o, ids, count, CHANGE_REMOVE, err);
}

static enum status debuginfo_pin(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                                 struct error *err)
{
        return change_objects(o, ids, count, CHANGE_PIN, err);
}

static enum status debuginfo_unpin(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                                   struct error *err)
{
        return change_objects(o, ids, count, CHANGE_UNPIN, err);
}

/* ---- gc ---- */

static enum status collect_in_directory(const struct debuginfo_options *o, struct buf *ret, struct error *err)
{
        struct retention_rule rules[RETENTION_RULES_MAX];
        struct gc_options options = { .rules = rules,
                                      .rule_count = o->retain.count,
                                      .dry_run = o->dry_run,
                                      .sweep = true,
                                      .now_unix_s = wall_clock_ns() / 1000000000,
                                      .needed = index_state_is_pending };
        struct debuginfo_dir dir;
        struct gc_result r;
        enum status st = retention_rules_parse(o->retain.items, o->retain.count, rules, err);

        if (!st && !o->retain.count)
                st = error_set(err, ST_USAGE,
                               "a data directory has no retention rules: give --retain, or use --server");
        if (!st)
                st = debuginfo_dir_open(o, !o->dry_run, &dir, err);
        if (st)
                return st;
        options.context = dir.symbols;
        st = run_gc_with_report(dir.objects, &options, &r, ret, err);
        debuginfo_dir_close(&dir);
        return st;
}

static enum status collect_at_server(const struct debuginfo_options *o, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf request;
        struct json_out j;
        enum status st;

        buf_init(&request, MiB(1));
        json_out_init(&j, &request);
        json_out_object(&j, NULL);
        json_out_bool(&j, "dry_run", o->dry_run);
        if (o->retain.count) {
                json_out_array(&j, "rules");
                for (size_t i = 0; i < o->retain.count; i++)
                        json_out_str(&j, NULL, o->retain.items[i]);
                json_out_array_end(&j);
        }
        json_out_object_end(&j);
        st = buf_cstr(&request) ? ST_OK : buf_status(&request, err, "request");
        return st ? st : debuginfo_request(o, "POST", "/api/v1/debuginfo/gc", buf_cstr(&request), ret, err);
}

static enum status print_gc_report(struct buf *body, struct error *err)
{
        _cleanup_arena_ struct arena memory = { 0 };
        const struct json_node *root, *r;
        size_t removed = 0;
        bool dry_run;

        root = json_node_parse(body->data, body->size, &memory);
        if (!json_node_is_array(json_node_member(root, "removed")))
                return error_set(err, ST_BAD_DATA, "the service's response does not match the request");
        dry_run = json_node_flag(root, "dry_run");
        for (struct json_node_list l = json_node_list(root, "removed"); (r = json_node_next(&l)); removed++) {
                printf("%-40s  %-10s  %-6s  %12" PRId64 "  %s%s%s\n", json_node_text(r, "build_id"),
                       json_node_text(r, "kind"), json_node_text(r, "reason"), json_node_int(r, "stored_bytes"),
                       PRINTABLE(json_node_text(r, "name")), *json_node_text(r, "tag") ? "  " : "",
                       PRINTABLE(json_node_text(r, "tag")));
        }
        printf("%s %s, %" PRId64 " bytes, and %s a record, %" PRId64 " bytes\n", dry_run ? "would remove" : "removed",
               COUNTED(removed, "object", "objects"), json_node_int(root, "removed_bytes"),
               COUNTED(json_node_int(root, "strays"), "file without", "files without"),
               json_node_int(root, "stray_bytes"));
        printf("%s, %" PRId64 " bytes; past their rule, but pinned: %" PRId64
               ", or not in the symbol index yet: %" PRId64 "\n",
               COUNTED(json_node_int(root, "objects"), "object stays", "objects stay"), json_node_int(root, "bytes"),
               json_node_int(root, "pinned"), json_node_int(root, "needed"));
        return ST_OK;
}

static enum status debuginfo_gc(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                                struct error *err)
{
        _cleanup_buf_ struct buf body;
        enum status st;

        (void)ids;
        (void)count;
        buf_init(&body, LIMIT_RESPONSE_BYTES);
        st = o->ask.data ? collect_in_directory(o, &body, err) : collect_at_server(o, &body, err);
        if (st || !o->json)
                return st ? st : print_gc_report(&body, err);
        printf("%.*s\n", (int)body.size, (const char *)body.data);
        return ST_OK;
}

/* ---- the command ---- */

static const struct usage usage = {
        .about = "Show and maintain the stored objects of the service, or with --data of its data directory; stop the\n"
                 "service before changing that.",
        .examples = "  cairn debuginfo list\n"
                    "  cairn debuginfo missing --from now-1d --limit 10\n"
                    "  cairn debuginfo missing --server http://cairn:7700 --json | jq -r '.missing[].build_id'\n"
                    "  cairn debuginfo gc --dry-run --retain 'tag=release,keep' --retain 'unused=30d,size=200G'\n"
                    "  cairn debuginfo get 57fa1b0d5e2f3c60b1a9 --output program.debug\n"
                    "  cairn debuginfo offsets 57fa1b0d5e2f3c60b1a9 PyCodeObject.co_name\n"
                    "  cairn debuginfo verify --data /var/lib/cairn",
};

static const struct usage list_usage = {
        .synopsis = "cairn debuginfo list [--server URL | --data DIR] [--json]",
        .about = "Print the stored objects and the state of their symbols.",
};

static const struct usage show_usage = {
        .synopsis = "cairn debuginfo show BUILD-ID [--server URL | --data DIR] [--json]",
        .about = "Print the stored objects of a build-id and the state of their symbols.",
};

static const struct usage missing_usage = {
        .synopsis =
                "cairn debuginfo missing [--server URL | --data DIR | --profile FILE] [--from T] [--to T] [--type T] "
                "[--limit N] [--json]",
        .about =
                "Print the objects whose debuginfo would resolve the most samples, each with the command that "
                "supplies\n"
                "it; then objects with names only, which would gain lines and inlined frames; over all samples unless\n"
                "--from or --to is given.",
        .examples = "  cairn debuginfo missing --from now-1d --limit 10\n"
                    "  cairn debuginfo missing --server http://cairn:7700 --json | jq -r '.missing[].build_id'",
};

static const struct usage get_usage = {
        .synopsis = "cairn debuginfo get BUILD-ID [--kind KIND] [--output FILE] [--server URL | --data DIR]",
        .about = "Write an object to a file.",
        .examples = "  cairn debuginfo get 57fa1b0d5e2f3c60b1a9 --output program.debug",
};

static const struct usage change_usage = {
        .synopsis = "cairn debuginfo rm|pin|unpin BUILD-ID... [--kind KIND] [--server URL | --data DIR] [--json]",
        .about = "Remove objects, exempt them from the retention rules, or apply the rules to them again. With --data\n"
                 "the service must be stopped.",
};

static const struct usage gc_usage = {
        .synopsis = "cairn debuginfo gc [--dry-run] [--retain RULE]... [--server URL | --data DIR] [--json]",
        .about = "Remove objects past their retention, by the service's rules or those of --retain. With --data the\n"
                 "service must be stopped, unless it is a dry run.",
        .examples = "  cairn debuginfo gc --dry-run --retain 'tag=release,keep' --retain 'unused=30d,size=200G'",
};

static const struct usage verify_usage = {
        .synopsis = "cairn debuginfo verify [BUILD-ID]... --data DIR [--json]",
        .about = "Decompress objects, by default all, and check their hashes.",
        .examples = "  cairn debuginfo verify --data /var/lib/cairn",
};

static const struct usage offsets_usage = {
        .synopsis = "cairn debuginfo offsets BUILD-ID STRUCT[.FIELD]... [--server URL | --data DIR] [--json]",
        .about = "Print the offset and size in bytes of fields of C structures, by the DWARF of a stored object, or "
                 "the\n"
                 "size of a structure.",
        .examples = "  cairn debuginfo offsets 57fa1b0d5e2f3c60b1a9 PyCodeObject.co_name PyThreadState",
};

static const struct usage upstreams_usage = {
        .synopsis = "cairn debuginfo upstreams [--server URL] [--json]",
        .about = "Print the state of the debuginfod servers that the service fetches from.",
};

#define SERVER_OPTIONS "server token-file ca tenant "

enum {
        VERB_LIST,
        VERB_SHOW,
        VERB_MISSING,
        VERB_GET,
        VERB_RM,
        VERB_PIN,
        VERB_UNPIN,
        VERB_UPSTREAMS,
        VERB_OFFSETS,
        VERB_GC,
        VERB_VERIFY,
        VERB_COUNT
};

static const struct option_verb verbs[VERB_COUNT] = {
        [VERB_LIST] = { "list", SERVER_OPTIONS "data json", "the stored objects and the state of their symbols",
                        &list_usage },
        [VERB_SHOW] = { "show", SERVER_OPTIONS "data json", "the same for a build-id", &show_usage },
        [VERB_MISSING] = { "missing", SERVER_OPTIONS "data profile from to type limit json",
                           "the objects whose debuginfo would resolve the most samples", &missing_usage },
        [VERB_GET] = { "get", SERVER_OPTIONS "data kind output", "write an object to a file", &get_usage },
        [VERB_RM] = { "rm", SERVER_OPTIONS "data kind json", "remove objects", &change_usage },
        [VERB_PIN] = { "pin", SERVER_OPTIONS "data kind json", "exempt objects from the retention rules",
                       &change_usage },
        [VERB_UNPIN] = { "unpin", SERVER_OPTIONS "data kind json", "apply the retention rules to them again",
                         &change_usage },
        [VERB_UPSTREAMS] = { "upstreams", SERVER_OPTIONS "json",
                             "the state of the debuginfod servers that the service fetches from", &upstreams_usage },
        [VERB_OFFSETS] = { "offsets", SERVER_OPTIONS "data json", "the offsets of fields of C structures",
                           &offsets_usage },
        [VERB_GC] = { "gc", SERVER_OPTIONS "data retain dry-run json", "remove objects past their retention",
                      &gc_usage },
        [VERB_VERIFY] = { "verify", "data tenant json", "decompress objects and check their hashes; needs --data",
                          &verify_usage },
};

static const struct {
        enum status (*run)(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                           struct error *err);
        enum { IDS_NONE, IDS_ANY, IDS_ONE, IDS_SOME, IDS_FIELDS } takes;
} runs[VERB_COUNT] = {
        [VERB_LIST] = { debuginfo_list, IDS_NONE },
        [VERB_SHOW] = { debuginfo_show, IDS_ONE },
        [VERB_MISSING] = { debuginfo_missing, IDS_NONE },
        [VERB_GET] = { debuginfo_get, IDS_ONE },
        [VERB_RM] = { debuginfo_rm, IDS_SOME },
        [VERB_PIN] = { debuginfo_pin, IDS_SOME },
        [VERB_UNPIN] = { debuginfo_unpin, IDS_SOME },
        [VERB_UPSTREAMS] = { debuginfo_upstreams, IDS_NONE },
        [VERB_OFFSETS] = { debuginfo_offsets, IDS_FIELDS },
        [VERB_GC] = { debuginfo_gc, IDS_NONE },
        [VERB_VERIFY] = { debuginfo_verify, IDS_ANY },
};

enum status debuginfo_request(const struct debuginfo_options *o, const char *method, const char *path, const char *body,
                              struct buf *ret, struct error *err)
{
        static const char *const headers[] = { "Content-Type: application/json", NULL };
        const struct http_client_request request = { .method = method,
                                                     .path = path,
                                                     .headers = body ? headers : NULL,
                                                     .body = body,
                                                     .body_size = body ? strlen(body) : 0,
                                                     .max_response = LIMIT_RESPONSE_BYTES };

        return service_call(&o->ask.service, &request, ret, err);
}

enum status debuginfo_dir_open(const struct debuginfo_options *o, bool write, struct debuginfo_dir *ret,
                               struct error *err)
{
        _cleanup_free_ char *base = NULL, *index = NULL, *objects = NULL;
        struct debuginfo_dir d = { 0 };
        enum status st = service_own_debuginfo_path(&o->ask.service, o->ask.data, &base, err);

        if (st)
                return st;
        index = path_join(base, "index");
        objects = path_join(base, "debuginfo");
        st = !index || !objects ? error_no_memory(err)
             : write            ? symbol_index_open(index, true, &d.symbols, err)
                                : open_optional_index(base, "all objects appear as not indexed", &d.symbols, err);
        if (!st && write) /* only now, so that the lock is created only in the data directory of a service */
                st = lock_data_dir(o->ask.data, &d.lock, err);
        if (!st)
                st = debuginfo_store_open(objects, !write, &d.objects, err);
        if (st)
                debuginfo_dir_close(&d);
        else
                *ret = d;
        return st;
}

void debuginfo_dir_close(struct debuginfo_dir *d)
{
        if (d->objects)
                debuginfo_store_close(d->objects);
        if (d->symbols)
                symbol_index_close(d->symbols);
        if (d->lock)
                close(d->lock);
}

static enum status parse_build_id_arguments(char **texts, size_t count, struct build_id *ret, struct error *err)
{
        for (size_t i = 0; i < count; i++)
                if (!build_id_from_hex(&ret[i], texts[i], strlen(texts[i])))
                        return error_set(err, ST_USAGE,
                                         "'%.150s' is not a build-id: expected hexadecimal digits, as 'readelf -n' and "
                                         "'cairn debuginfo list' print them",
                                         texts[i]);
        return ST_OK;
}

static enum status check_argument_count(size_t verb, size_t count, struct error *err)
{
        int takes = runs[verb].takes;

        if (takes == IDS_FIELDS && count < 2)
                return error_set(err, ST_USAGE, "%s takes a build-id and STRUCT.FIELD", verbs[verb].name);
        if ((takes == IDS_NONE && count) || (takes == IDS_ONE && count != 1) || (takes == IDS_SOME && !count))
                return error_set(err, ST_USAGE, "%s takes %s", verbs[verb].name,
                                 takes == IDS_NONE  ? "no arguments"
                                 : takes == IDS_ONE ? "one build-id"
                                                    : "one build-id or more");
        return ST_OK;
}

static enum status run_debuginfo_verb(struct debuginfo_options *o, size_t verb, int argc, char **argv,
                                      struct error *err)
{
        size_t count = (size_t)argc;
        _cleanup_free_ struct build_id *ids = calloc(count + 1, sizeof *ids);
        enum status st = ids ? check_argument_count(verb, count, err) : error_no_memory(err);

        if (!st && runs[verb].takes == IDS_FIELDS) {
                o->fields = (const char *const *)argv + 1;
                o->field_count = count - 1;
                count = 1;
        }
        if (!st)
                st = parse_build_id_arguments(argv, count, ids, err);
        if (!st && o->ask.service.server && o->ask.data)
                st = error_set(err, ST_USAGE, "--server and --data exclude each other");
        return st ? st : runs[verb].run(o, ids, count, err);
}

int command_debuginfo(int argc, char **argv)
{
        struct debuginfo_options o = { 0 };
        static const struct option_verbs all = {
                .command = "cairn debuginfo", .usage = &usage, .items = verbs, .count = VERB_COUNT
        };
        const struct option_verb *verb;
        const char *kind = NULL;
        struct error err;
        enum status st;
        const struct option_spec specs[] = {
                QUERY_OPTIONS(&o.ask),
                OPTION_STRING("limit", 'n', "N", &o.limit,
                              "missing: maximum number of objects (default 30, all with --json)"),
                OPTION_STRING("kind", 0, "KIND", &kind,
                              "get, rm, pin, unpin: debuginfo (default), executable, source, supplementary, dwp, "
                              "dwo or symbols"),
                OPTION_STRING("output", 'o', "FILE", &o.output,
                              "get: output file (default BUILD-ID.KIND), - for standard output"),
                OPTION_LIST("retain", 0, "RULE", &o.retain,
                            "gc: retention rule, see cairn-serve(8), instead of the service's"),
                OPTION_FLAG("dry-run", 0, &o.dry_run, "gc: print what would be removed, remove nothing"),
                OPTION_FLAG("json", 0, &o.json, "print JSON"),
                OPTION_END,
        };

        st = options_parse_verb(&all, specs, &argc, &argv, &verb, &err);
        if (!st && kind && !object_kind_parse(kind, &o.kind))
                st = error_set(&err, ST_USAGE, "unknown kind '%.40s': " OBJECT_KIND_NAMES, kind);
        if (!st)
                st = run_debuginfo_verb(&o, (size_t)(verb - verbs), argc, argv, &err);
        options_list_deinit(&o.retain);
        return st ? command_fail("debuginfo", st, &err) : EXIT_DONE;
}
