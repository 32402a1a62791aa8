/* SPDX-License-Identifier: Apache-2.0 */
/* cairn debuginfo: what is stored and what is missing, and looking after it; of a service or of its directory. */
#include "cli/debuginfo.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "http/client.h"
#include "server/data_lock.h"

static const struct usage usage = {
        .synopsis = "cairn debuginfo list|missing|upstreams|gc|verify [OPTION]...\n"
                    "       cairn debuginfo show|get|rm|pin|unpin BUILD-ID... [OPTION]...",
        .about = "list shows the objects that are stored and the state of their symbols, show those of a build-id;\n"
                 "missing shows the objects whose debuginfo would resolve most samples if somebody uploaded it, with the\n"
                 "command to do so; apart from them those that have names and would gain lines and inlined frames.\n"
                 "It looks at all samples unless --from and --to say otherwise.\n"
                 "get writes an object to a file, rm removes it, pin keeps it whatever the retention rules say.\n"
                 "upstreams shows how the debuginfod servers do that the service asks for what nobody uploaded.\n"
                 "gc removes what is past its retention: the rules of the service, or those given with --retain.\n"
                 "verify unpacks objects and compares them with their hashes; it needs --data.\n"
                 "All ask the service, or with --data work on its directory; to change it there, stop the service first.",
        .examples = "  cairn debuginfo list\n"
                    "  cairn debuginfo missing --from now-1d --limit 10\n"
                    "  cairn debuginfo missing --server http://cairn:7700 --json | jq -r '.missing[].build_id'\n"
                    "  cairn debuginfo gc --dry-run --retain 'label=release,keep' --retain 'unused=30d,size=200G'\n"
                    "  cairn debuginfo get 57fa1b0d5e2f3c60b1a9 --output program.debug\n"
                    "  cairn debuginfo verify --data /var/lib/cairn",
};

struct verb {
        const char *name;
        enum status (*run)(const struct debuginfo_options *o, const struct build_id *ids, size_t count, struct error *err);
        enum { IDS_NONE, IDS_ANY, IDS_ONE, IDS_SOME } takes;
        bool of_samples; /* --from, --to and --type mean something */
};

static const struct verb verbs[] = {
        { "list", debuginfo_list, IDS_NONE, false },      { "show", debuginfo_show, IDS_ONE, false },
        { "missing", debuginfo_missing, IDS_NONE, true }, { "get", debuginfo_get, IDS_ONE, false },
        { "rm", debuginfo_rm, IDS_SOME, false },          { "pin", debuginfo_pin, IDS_SOME, false },
        { "unpin", debuginfo_unpin, IDS_SOME, false },    { "gc", debuginfo_gc, IDS_NONE, false },
        { "verify", debuginfo_verify, IDS_ANY, false },   { "upstreams", debuginfo_upstreams, IDS_NONE, false },
};

enum status debuginfo_request(const struct debuginfo_options *o, const char *method, const char *path, const char *body,
                              struct buf *ret, struct error *err)
{
        static const char *const headers[] = { "Content-Type: application/json", NULL };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        /* A collection says nothing until its end. */
        const struct http_client_options how = { .size = sizeof how, .idle_timeout_s = 3600 };
        const struct http_client_request request = { .method = method,
                                                     .path = path,
                                                     .headers = body ? headers : NULL,
                                                     .body = body,
                                                     .body_size = body ? strlen(body) : 0,
                                                     .max_response = LIMIT_RESPONSE_BYTES };
        enum status st = service_connect(&o->ask.service, &how, &client, err);

        if (!st)
                st = http_client_send(client, &request, &response, err);
        if (!st)
                buf_append(ret, response.body.data, response.body.size);
        return st ? st : buf_status(ret, err, "answer");
}

enum status debuginfo_dir_open(const char *data, bool write, struct debuginfo_dir *ret, struct error *err)
{
        _cleanup_free_ char *index = path_join(data, "index"), *objects = path_join(data, "debuginfo");
        struct debuginfo_dir d = { 0 };
        enum status st = index && objects ? ST_OK : error_no_memory(err);

        if (!st && write)
                st = data_lock(data, &d.lock, err);
        if (!st)
                st = symbol_index_open(index, true, &d.symbols, err);
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

static enum status parse_ids(char **texts, size_t count, struct build_id *ret, struct error *err)
{
        for (size_t i = 0; i < count; i++)
                if (!build_id_from_hex(&ret[i], texts[i], strlen(texts[i])))
                        return error_set(err, ST_USAGE, "'%.150s' is no build-id: hexadecimal digits, as 'readelf -n' and "
                                         "'cairn debuginfo list' print them", texts[i]);
        return ST_OK;
}

static enum status check_count(const struct verb *v, size_t count, struct error *err)
{
        if ((v->takes == IDS_NONE && count) || (v->takes == IDS_ONE && count != 1) || (v->takes == IDS_SOME && !count))
                return error_set(err, ST_USAGE, "%s takes %s", v->name,
                                 v->takes == IDS_NONE  ? "no arguments"
                                 : v->takes == IDS_ONE ? "one build-id"
                                                       : "one build-id or more");
        return ST_OK;
}

static enum status run(struct debuginfo_options *o, int argc, char **argv, struct error *err)
{
        size_t count = argc ? (size_t)argc - 1 : 0;
        _cleanup_free_ struct build_id *ids = calloc(count + 1, sizeof *ids);

        if (!ids)
                return error_no_memory(err);
        for (size_t i = 0; argc && i < sizeof verbs / sizeof *verbs; i++) {
                const struct verb *v = &verbs[i];
                enum status st;

                if (strcmp(argv[0], v->name) != 0)
                        continue;
                st = check_count(v, count, err);
                if (!st)
                        st = parse_ids(argv + 1, count, ids, err);
                if (!st && o->ask.service.server && o->ask.data)
                        st = error_set(err, ST_USAGE, "--server and --data exclude each other");
                if (!st && !v->of_samples && (o->ask.from || o->ask.to || o->ask.type))
                        st = error_set(err, ST_USAGE, "--from, --to and --type choose samples: they are for missing");
                return st ? st : v->run(o, ids, count, err);
        }
        return error_set(err, ST_USAGE, "say list, show, missing, get, rm, pin, unpin, gc, verify or upstreams (try --help)");
}

int command_debuginfo(int argc, char **argv)
{
        struct debuginfo_options o = { 0 };
        const char *kind = NULL;
        struct error err;
        enum status st;
        const struct option_spec specs[] = {
                ASK_OPTIONS(&o.ask),
                OPTION_STRING("limit", 'n', "N", &o.limit, "of missing: objects at most (tables show 30)"),
                OPTION_STRING("kind", 0, "KIND", &kind, "of get, rm, pin, unpin: debuginfo (default), executable, source, supplementary, dwp, dwo or symbols"),
                OPTION_STRING("output", 'o', "FILE", &o.output, "of get: where to (default: BUILD-ID.KIND; - is stdout)"),
                OPTION_LIST("retain", 0, "RULE", &o.retain, "of gc: use these rules, cairn-serve(8), instead of the service's"),
                OPTION_FLAG("dry-run", 0, &o.dry_run, "of gc: say what would go, remove nothing"),
                OPTION_FLAG("json", 0, &o.json, "print JSON"),
                OPTION_END,
        };

        st = options_parse(&usage, specs, &argc, &argv, &err);
        if (!st && kind && !object_kind_parse(kind, &o.kind))
                st = error_set(&err, ST_USAGE, "'%.40s' is no kind: " OBJECT_KIND_NAMES, kind);
        if (!st)
                st = run(&o, argc, argv, &err);
        options_list_deinit(&o.retain);
        return st ? command_fail("debuginfo", st, &err) : EXIT_DONE;
}
