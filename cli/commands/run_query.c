/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of a data directory, a service, and profiles in files: parameters, then one section for each source. */
#include "cli/commands/run_query.h"

#include <errno.h>
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/commands/profile_input.h"
#include "cli/commands/record_report.h"
#include "common/files/file.h"
#include "common/files/output_file.h"
#include "common/limits.h"
#include "common/text.h"
#include "common/text/utf8.h"
#include "debuginfo-store/stored_source.h"
#include "http/http_client.h"
#include "query/query.h"

#define COST_HEADER "X-Cairn-Cost"

void query_param_add(struct query_params *p, const char *name, const char *value)
{
        if (!value || !*value)
                return;
        assert(p->count < QUERY_PARAMS);
        p->names[p->count] = name;
        p->values[p->count++] = value;
}

void query_view_add(struct query_params *p, const struct query_view *v)
{
        query_param_add(p, "focus", v->focus);
        query_param_add(p, "ignore", v->ignore);
        query_param_add(p, "hide", v->hide);
        query_param_add(p, "show", v->show);
        query_param_add(p, "by", v->by);
        query_param_add(p, "groups", v->groups);
}

enum status parse_query_selector(int argc, char **argv, const char **ret, struct error *err)
{
        struct stat found;

        if (argc > 1)
                return error_set(err, ST_USAGE, "at most one selector: unexpected '%s' (quote it for the shell)",
                                 argv[1]);
        if (argc && !strpbrk(argv[0], "{=") && !stat(argv[0], &found))
                return error_set(err, ST_USAGE, "'%s' is no selector but a %s: query it with %s %s", argv[0],
                                 S_ISDIR(found.st_mode) ? "directory" : "file",
                                 S_ISDIR(found.st_mode) ? "--data" : "--profile", argv[0]);
        *ret = argc ? argv[0] : "";
        return ST_OK;
}

const char *query_param_value(void *context, const char *name)
{
        const struct query_params *p = context;

        for (size_t i = 0; i < p->count; i++)
                if (strcmp(p->names[i], name) == 0)
                        return p->values[i];
        return NULL;
}

/* Print on standard error what the answer leaves out, whatever its format. */
static void print_note(const struct query_params *p, const char *note)
{
        if (*note && !p->hides_notes)
                fprintf(stderr, "cairn%s%s: %s\n", p->command ? " " : "", p->command ? p->command : "",
                        PRINTABLE(note));
}

static double get_megabytes(uint64_t bytes)
{
        return (double)bytes / 1e6;
}

static void print_cost(const struct query_params *p, const struct query_cost *c)
{
        if (!p->explains || p->hides_notes)
                return;
        fprintf(stderr,
                "cairn%s%s: read %" PRIu64 " rows, %.3f MB of their columns, with %.3f MB of memory; asked the object "
                "store %" PRIu64 " times, for %.3f MB\n",
                p->command ? " " : "", p->command ? p->command : "", c->rows, get_megabytes(c->bytes),
                get_megabytes(c->memory_bytes), c->store_requests, get_megabytes(c->store_bytes));
}

enum status open_optional_index(const char *base, const char *without, struct symbol_index **ret, struct error *err)
{
        _cleanup_free_ char *index = path_join(base, "index");
        enum status st = index ? symbol_index_open(index, true, ret, err) : error_no_memory(err);

        if (st == ST_UNSUPPORTED)
                fprintf(stderr, "%s: %s. Until then %s\n", program_invocation_short_name, PRINTABLE(err->text),
                        without);
        if (st != ST_NOT_FOUND && st != ST_UNSUPPORTED)
                return st;
        *ret = NULL;
        return ST_OK;
}

/* The sources of a data directory; opened when the first one is read, as few queries show any. */
struct directory_sources {
        char *path; /* of the debuginfo store; owned */
        struct debuginfo_store *store;
};

static void close_directory_sources(struct directory_sources *s)
{
        debuginfo_store_close(s->store);
        free(s->path);
}

/* Nothing is fetched without a service. */
static enum status read_directory_source(void *sources, const struct build_id *id, const char *path, bool may_fetch,
                                         struct buf *ret, struct error *err)
{
        struct directory_sources *s = sources;
        struct build_id owner;
        enum status st = s->store ? ST_OK : debuginfo_store_open(s->path, true, &s->store, err);

        (void)may_fetch;
        if (st)
                return st == ST_NOT_FOUND ? stored_source_explain_missing(NULL, id, "", err) : st;
        if (debuginfo_store_resolve_alias(s->store, id, &owner, NULL) == ST_OK)
                id = &owner;
        st = stored_source_append(s->store, id, path, ret, err);
        if (st == ST_NOT_FOUND)
                st = cached_source_append(s->store, id, path, ret, err);
        return st == ST_NOT_FOUND ? stored_source_explain_missing(s->store, id, "", err) : st;
}

static enum status query_data_directory(const struct query_options *o, const char *operation,
                                        struct query_params *params, struct buf *ret, struct error *err)
{
        _cleanup_free_ char *profiles = NULL, *base = NULL;
        struct profile_store_options options = { .size = sizeof options, .read_only = true };
        struct profile_store *store = NULL;
        _cleanup_(close_directory_sources) struct directory_sources stored = { 0 };
        const struct query_sources sources = { .read = read_directory_source, .context = &stored };
        struct query_report report = { 0 };
        struct query_input input = {
                .param = query_param_value, .param_context = params, .sources = &sources, .report = &report
        };
        struct query_answer query_answer;
        struct timespec now;
        enum status st = service_profiles_path(&o->service, o->data, &profiles, err);

        if (!st)
                st = service_debuginfo_path(&o->service, o->data, &base, err);
        if (st)
                return st;
        stored.path = path_join(base, "debuginfo");
        if (!stored.path)
                return error_no_memory(err);
        clock_gettime(CLOCK_REALTIME, &now);
        input.now_unix_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
        st = open_optional_index(base, SAMPLES_WITHOUT_INDEX, &options.symbols, err);
        if (!st)
                st = profile_store_open(profiles, &options, &store, err);
        if (!st)
                st = query_run(store, operation, &input, ret, &query_answer, err);
        if (!st)
                print_note(params, query_answer.note);
        if (!st)
                print_cost(params, &report.cost);
        if (store)
                profile_store_close(store);
        if (options.symbols)
                symbol_index_close(options.symbols);
        return st;
}

static enum status make_query_path(const char *operation, const struct query_params *params, struct buf *path,
                                   struct error *err)
{
        const char *name = query_param_value((void *)params, "name");
        char separator = '?';

        buf_append_str(path, "/api/v1/query/");
        if (strcmp(operation, "values") == 0 && name) {
                buf_append_str(path, "label/");
                http_client_escape(path, name);
                buf_append_str(path, "/values");
        } else {
                buf_append_str(path, operation);
        }
        for (size_t i = 0; i < params->count; i++) {
                if (params->values[i] == name)
                        continue;
                buf_printf(path, "%c%s=", separator, params->names[i]);
                http_client_escape(path, params->values[i]);
                separator = '&';
        }
        if (!buf_cstr(path))
                return buf_status(path, err, "query");
        return ST_OK;
}

struct told_cost {
        struct query_cost cost;
        bool is_told;
};

/* context: a struct told_cost */
static void take_cost_header(void *context, const char *name, size_t name_size, const char *value, size_t value_size)
{
        struct told_cost *t = context;
        struct query_cost *c = &t->cost;
        char text[200];

        if (name_size != strlen(COST_HEADER) || strncasecmp(name, COST_HEADER, name_size) != 0)
                return;
        snprintf(text, sizeof text, "%.*s", (int)value_size, value);
        t->is_told = sscanf(text,
                            "rows=%" SCNu64 " bytes=%" SCNu64 " memory=%" SCNu64 " store-requests=%" SCNu64
                            " store-bytes=%" SCNu64,
                            &c->rows, &c->bytes, &c->memory_bytes, &c->store_requests, &c->store_bytes) == 5;
}

static enum status query_server(const struct query_options *o, const char *operation, const struct query_params *params,
                                struct buf *ret, struct error *err)
{
        /* The service ends a query that takes too long (--query-timeout), and sends nothing before. */
        const struct http_client_options how = { .size = sizeof how, .attempts = 2, .idle_timeout_s = 3600 };
        struct told_cost told = { 0 };
        struct http_client_request request = { .method = "GET",
                                               .max_response = LIMIT_RESPONSE_BYTES,
                                               .header = take_cost_header,
                                               .header_context = &told,
                                               .no_timeout_retry = true };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        _cleanup_buf_ struct buf path;
        char text[sizeof err->text];
        enum status st;

        buf_init(&path, LIMIT_HTTP_HEADER_BYTES);
        st = make_query_path(operation, params, &path, err);
        if (!st)
                st = service_connect(&o->service, &how, &client, err);
        if (st)
                return st;
        request.path = (const char *)path.data;
        st = service_send(client, &request, &response, err);
        if (st == ST_NOT_FOUND && *http_client_get_error_member(&response, "error", text, sizeof text))
                return error_set(err, ST_NOT_FOUND, "%s", text); /* unchanged: it may end with a command to run */
        if (st)
                return st;
        buf_append(ret, response.body.data, response.body.size);
        print_note(params, response.note);
        if (told.is_told)
                print_cost(params, &told.cost);
        else if (params->explains && !params->hides_notes)
                fprintf(stderr, "cairn: the service does not say what the query read: it is older than this program\n");
        return buf_status(ret, err, "answer");
}

enum status run_query(const struct query_options *o, const char *operation, struct query_params *params,
                      struct buf *ret, struct error *err)
{
        params->explains = o->explains;
        query_param_add(params, "from", o->from);
        query_param_add(params, "to", o->to);
        query_param_add(params, "type", o->type);
        if (!!o->service.server + !!o->data + !!o->profile > 1)
                return error_set(err, ST_USAGE, "--server, --data and --profile exclude each other");
        if (o->profile)
                return query_profile_file(o->profile, operation, params, ret, err);
        if (o->data)
                return query_data_directory(o, operation, params, ret, err);
        return query_server(o, operation, params, ret, err);
}

/* @param suffixes  joined by ", " */
static bool has_suffix_of(const char *path, const char *suffixes)
{
        char suffix[16];

        for (size_t n; *suffixes; suffixes += n + strspn(suffixes + n, ", ")) {
                n = strcspn(suffixes, ",");
                snprintf(suffix, sizeof suffix, "%.*s", (int)n, suffixes);
                if (ends_with(path, suffix))
                        return true;
        }
        return false;
}

enum status check_output_suffix(const char *output, const char *own, struct error *err)
{
        static const char others[] =
                ".html, .htm, .json, .csv, .svg, .png, .pdf, .xml, .md, .sarif, .pb, .pprof, .gz, .zst, .jfr";

        if (!output || has_suffix_of(output, own) || !has_suffix_of(output, others))
                return ST_OK;
        return error_set(err, ST_USAGE,
                         "no format has the suffix of '%.100s': use one of %s, or an option for the format", output,
                         own);
}

enum status write_query_answer(const struct buf *answer, const char *output, struct error *err)
{
        enum status st;

        if (output && strcmp(output, "-") != 0)
                return output_file_write(output, OUTPUT_OF_COMMAND, answer->data, answer->size, err);
        st = file_write_all(STDOUT_FILENO, answer->data, answer->size, "standard output", err);
        if (!st && answer->size && answer->data[answer->size - 1] != '\n' && isatty(STDOUT_FILENO))
                putchar('\n');
        return st;
}

enum status run_and_write_query(const struct query_options *o, const char *operation, struct query_params *params,
                                const char *output, struct error *err)
{
        _cleanup_buf_ struct buf answer;
        enum status st;

        buf_init(&answer, LIMIT_RESPONSE_BYTES);
        st = run_query(o, operation, params, &answer, err);
        return st ? st : write_query_answer(&answer, output, err);
}

/* ---- profiles in files ---- */

#define SIDE "cairn.side" /* the label that distinguishes two files */

enum status query_profiles(const struct profile *const *profiles, size_t count, const char *operation,
                           struct query_params *params, struct buf *ret, struct error *err)
{
        struct query_report report = { 0 };
        const struct query_input input = { .param = query_param_value, .param_context = params, .report = &report };
        const struct profile_query query = { profiles, count, operation, &input };
        struct query_answer query_answer;
        enum status st = query_run_profiles(&query, ret, &query_answer, err);

        if (!st)
                print_note(params, query_answer.note);
        if (!st)
                print_cost(params, &report.cost);
        return st;
}

static enum status read_resolved_profile(const char *path, bool is_reported, struct profile *ret, struct error *err)
{
        const struct profile_input input = { 0 };
        struct debug_files debug_files = { .directory = DEBUG_DIRECTORY };
        struct local_symbols l = { .debug_files = &debug_files };
        enum status st = profile_input_read(path, &input, ret, NULL, err);

        if (st)
                return error_prefix(err, st, "%s", path);
        st = debug_files_open(&debug_files, err);
        if (!st)
                st = local_symbols_fill(&l, ret, err);
        if (!st && is_reported)
                record_report_frames(ret, &l.symbols, debug_files.fetcher);
        local_symbols_deinit(&l);
        debug_files_close(&debug_files);
        if (st)
                profile_deinit(ret);
        return st;
}

enum status query_profile_file(const char *path, const char *operation, struct query_params *params, struct buf *ret,
                               struct error *err)
{
        const struct profile *profiles[1];
        struct profile p;
        enum status st = read_resolved_profile(path, true, &p, err);

        if (st)
                return st;
        profiles[0] = &p;
        st = query_profiles(profiles, 1, operation, params, ret, err);
        profile_deinit(&p);
        return st;
}

enum status query_difference(const char *operation, char *const paths[2], struct query_params *params, struct buf *ret,
                             struct error *err)
{
        _cleanup_profile_ struct profile a = { 0 }, b = { 0 };
        const struct profile *const profiles[] = { &a, &b };
        enum status st = read_resolved_profile(paths[0], true, &a, err);

        if (!st)
                st = read_resolved_profile(paths[1], true, &b, err);
        if (!st)
                st = profile_add_label_to_all(&a, SIDE, "before", err);
        if (!st)
                st = profile_add_label_to_all(&b, SIDE, "after", err);
        query_param_add(params, "base_selector", "{" SIDE "=\"before\"}");
        query_param_add(params, "selector", "{" SIDE "=\"after\"}");
        return st ? st : query_profiles(profiles, 2, operation, params, ret, err);
}

static enum status read_side_file(struct file_sides *f, const char *path, const char *side, size_t run,
                                  struct error *err)
{
        struct profile *p = &f->profiles[f->count];
        char number[24];
        enum status st = read_resolved_profile(path, false, p, err);

        if (st)
                return st;
        f->items[f->count++] = p;
        snprintf(number, sizeof number, "%zu", run);
        st = profile_add_label_to_all(p, SIDE, side, err);
        return st ? st : profile_add_label_to_all(p, FILE_RUN_LABEL, number, err);
}

enum status file_sides_read(char *const *before, size_t before_count, char *const *after, size_t after_count,
                            struct file_sides *ret, struct error *err)
{
        struct file_sides f = { 0 };
        enum status st = ST_OK;

        f.profiles = calloc(before_count + after_count + 1, sizeof *f.profiles);
        f.items = calloc(before_count + after_count + 1, sizeof *f.items);
        if (!f.profiles || !f.items)
                st = error_no_memory(err);
        for (size_t i = 0; !st && i < before_count; i++)
                st = read_side_file(&f, before[i], "before", i + 1, err);
        for (size_t i = 0; !st && i < after_count; i++)
                st = read_side_file(&f, after[i], "after", i + 1, err);
        if (st)
                file_sides_deinit(&f);
        else
                *ret = f;
        return st;
}

void file_sides_deinit(struct file_sides *f)
{
        for (size_t i = 0; i < f->count; i++)
                profile_deinit(&f->profiles[i]);
        free(f->profiles);
        free(f->items);
        *f = (struct file_sides){ 0 };
}
