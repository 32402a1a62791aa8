/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cairn-upload: uploads debuginfo to a Cairn service.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/configuration.h"
#include "common/config/options.h"
#include "common/files/tenant_name.h"
#include "common/program/standard_output.h"
#include "common/text/utf8.h"
#include "http/http_client.h"
#include "sandbox/worker.h"
#include "symbolizer/workers/extract_job.h"
#include "uploader/find_files.h"
#include "uploader/offer.h"
#include "uploader/report.h"
#include "uploader/send_all.h"
#include "uploader/strip.h"
#include "uploader/unpack.h"
#include "uploader/upload_list.h"

#define DEFAULT_SERVER "http://127.0.0.1:7700"
#define VERIFY_TIMEOUT_S 900 /* the service responds after a worker has verified the whole object */

static const struct usage usage = {
        .synopsis = "cairn-upload [--server URL] [OPTION]... PATH...",
        .about = "Find ELF files with a build-id under each PATH, query the service for the debuginfo that it\n"
                 "lacks, and send only that. Code and data are left out; names, lines, inlined calls and\n"
                 "unwind tables are sent. Directories are walked and packages in them (.deb, .rpm)\n"
                 "unpacked; other archives (tar, zip, cpio, compressed or not) are unpacked when they\n"
                 "are named. - is standard input: a file or an archive. A second run over the same\n"
                 "files sends nothing.",
        .examples = "  cairn-upload build/\n"
                    "      send everything under build/ that the service lacks, before strip\n"
                    "  cairn-upload --server https://cairn.example --token-file ~/.cairn-token build/bin/server\n"
                    "  cairn-upload /usr/lib/debug\n"
                    "      everything that Debian's -dbgsym and -dbg packages installed\n"
                    "  cairn-upload dist/*.deb app.tar.zst\n"
                    "      the contents of packages and archives\n"
                    "  cairn-upload --strip build/\n"
                    "      the same, then strip the programs\n"
                    "  cairn-upload --symbols-only build/\n"
                    "      only the symbols that profiles need\n"
                    "  cairn-upload --dry-run --json build/ | jq -r '.files[] | select(.state == \"would_send\") | "
                    ".path'\n",
};

struct command_options {
        const char *server, *token_file, *ca_file, *tenant;
        struct send_options how;
        struct option_list sources, source_maps;
        struct configuration configuration;
        bool report_only; /* --check-config or --print-config: nothing else is done */
        bool json, dry_run, executables, strip, symbols_only;
        uint64_t jobs;
};

struct upload_search {
        struct upload_list list;
        struct unpacked unpacked;
        struct report report;
        uint64_t elf_files;
};

static atomic_bool stop;

static void on_stop_signal(int number)
{
        (void)number;
        atomic_store(&stop, true);
}

static void on_list_note(void *context, const char *path, const char *text)
{
        struct upload_search *f = context;

        report_add_note(&f->report, path, text);
}

static void on_find_problem(void *context, const char *path, const struct error *why)
{
        struct upload_search *f = context;

        (void)path;
        report_add_unreadable(&f->report, why);
}

static enum status on_elf_file(void *context, const char *path, struct error *err)
{
        struct upload_search *f = context;
        struct error why;
        enum status st;

        if (atomic_load(&stop))
                return error_set(err, ST_BUSY, "stopped while searching for files; nothing was sent");
        f->elf_files++;
        st = upload_list_add(&f->list, path, on_list_note, f, &why);
        if (st == ST_NO_MEMORY)
                return error_no_memory(err);
        if (st) {
                f->list.skips.broken++;
                report_add_problem(&f->report, &why);
        }
        return ST_OK;
}

static enum status on_unpacked_file(void *context, const char *path, struct error *err)
{
        struct upload_search *f = context;

        f->list.hidden = f->unpacked.root;
        return on_elf_file(f, path, err);
}

/* A damaged archive does not end the search. */
static enum status on_archive(void *context, const char *path, struct error *err)
{
        struct upload_search *f = context;
        struct error why;
        enum status st = unpack_archive(&f->unpacked, path, on_unpacked_file, f, &why);

        if (st == ST_NO_MEMORY || st == ST_BUSY || st == ST_OS || st == ST_TOO_BIG) {
                *err = why;
                return st;
        }
        if (st)
                report_add_unreadable(&f->report, &why);
        return ST_OK;
}

static enum status find_files_in_stdin(struct upload_search *f, const struct find_files_callbacks *callbacks,
                                       struct error *err)
{
        _cleanup_free_ char *path = NULL;
        enum status st = unpack_stdin(&f->unpacked, &path, err);

        f->list.hidden = f->unpacked.root;
        return st ? st : find_files(path, callbacks, f, err);
}

static enum status find_all_files(struct upload_search *f, char **paths, int count, struct error *err)
{
        static const struct find_files_callbacks callbacks = { .file = on_elf_file,
                                                               .archive = on_archive,
                                                               .problem = on_find_problem };
        enum status st = ST_OK;

        for (int i = 0; i < count && !st; i++)
                st = strcmp(paths[i], "-") == 0 ? find_files_in_stdin(f, &callbacks, err)
                                                : find_files(paths[i], &callbacks, f, err);
        if (st)
                return st;
        upload_list_settle(&f->list);
        if (!f->elf_files && !f->report.problems)
                return error_set(err, ST_NOT_FOUND, "no ELF files under '%s'%s", paths[0],
                                 count > 1 ? " and the other paths" : "");
        return ST_OK;
}

static enum status offer_list(const struct http_client_options *http, struct upload_list *list, struct error *err)
{
        _cleanup_http_client_ struct http_client *client = NULL;
        enum status st = http_client_create(http, &client, err);

        return st ? st : offer_files(client, list, err);
}

/* ---- after the upload ---- */

static bool is_debuginfo_uploaded(const struct upload_list *list, const struct build_id *id)
{
        for (size_t i = 0; i < list->count; i++) {
                const struct upload_item *item = &list->items[i];

                if (item->kind == UPLOAD_DEBUGINFO && build_id_equal(&item->build_id, id))
                        return item->state == UPLOAD_SENT || item->state == UPLOAD_THERE;
        }
        return false;
}

static size_t strip_uploaded_programs(const struct upload_list *list, struct report *report)
{
        size_t count = 0;

        for (size_t i = 0; i < list->program_count; i++) {
                const struct strip_candidate *c = &list->programs[i];
                struct error err;
                bool done = false;

                if (!is_debuginfo_uploaded(list, &c->build_id))
                        report_add_note(report, c->path,
                                        "not stripped, because the service did not accept its debuginfo");
                else if (strip_file(c->path, &c->build_id, &done, &err))
                        report_add_problem(report, &err);
                count += done;
        }
        return count;
}

/* ---- the command ---- */

static enum status run_upload(const struct command_options *o, struct upload_search *f, char **paths, int count,
                              struct error *err)
{
        const char *of_environment = getenv("CAIRN_TOKEN");
        _cleanup_free_ char *token = NULL;
        struct http_client_options http = { .size = sizeof http,
                                            .base_url = o->server,
                                            .ca_file = o->ca_file,
                                            .tenant = o->tenant,
                                            .idle_timeout_s = VERIFY_TIMEOUT_S,
                                            .user_agent = "cairn-upload/" CAIRN_VERSION,
                                            .stop = &stop };
        enum status st = o->token_file ? http_client_read_token(o->token_file, &token, err) : ST_OK;

        if (st)
                return st;
        http.token = token ? token : of_environment && *of_environment ? of_environment : NULL;
        if (http.token && http_client_exposes_token(o->server))
                fprintf(stderr, "cairn-upload: the token goes to %s unencrypted; use https\n", o->server);
        f->unpacked.stop = &stop;
        f->list.executables = o->executables;
        f->list.strip = o->strip;
        f->list.symbols_only = o->symbols_only;
        f->list.sources = o->sources.count > 0;
        st = find_all_files(f, paths, count, err);
        if (!st && !o->how.force && f->list.count)
                st = offer_list(&http, &f->list, err);
        for (size_t i = 0; !st && o->how.force && i < f->list.count; i++)
                f->list.items[i].state = UPLOAD_WANTED;
        if (!st && !o->dry_run)
                st = send_items(&http, &f->list, (unsigned)o->jobs, &o->how, &f->report, err);
        if (st)
                return st;
        if (o->strip)
                f->report.stripped = strip_uploaded_programs(&f->list, &f->report);
        if (o->json)
                report_print_json(&f->report, &f->list, o->server, o->dry_run);
        else
                report_print_summary(&f->report, &f->list, o->dry_run);
        return atomic_load(&stop) ? error_set(err, ST_BUSY, "stopped; run the same command again to send the rest")
                                  : ST_OK;
}

static enum status parse_upload_options(struct command_options *o, int *argc, char ***argv, struct error *err)
{
        const struct option_spec specs[] = {
                OPTION_STRING("server", 0, "URL", &o->server, "the service (default " DEFAULT_SERVER ")"),
                OPTION_STRING("token-file", 0, "FILE", &o->token_file,
                              "file with a token of scope upload; else CAIRN_TOKEN has it"),
                OPTION_STRING("ca", 0, "FILE", &o->ca_file,
                              "certificates that may sign the service's, as PEM (the system's)"),
                OPTION_STRING("tenant", 0, "NAME", &o->tenant, "upload as this tenant of the service (the token's)"),
                OPTION_FLAG("executables", 0, &o->executables,
                            "send whole executables too, for gdb and debuginfod clients"),
                OPTION_FLAG("symbols-only", 0, &o->symbols_only,
                            "send names, files, lines and inlined calls, and no debuginfo"),
                OPTION_LIST("sources", 0, "DIR", &o->sources,
                            "send the source files below DIR that the debuginfo names; repeatable"),
                OPTION_LIST("source-map", 0, "OLD=NEW", &o->source_maps,
                            "source paths below OLD in the debuginfo are below NEW on this machine; repeatable"),
                OPTION_FLAG("strip", 0, &o->strip, "then strip each program whose debuginfo the service has"),
                OPTION_FLAG("dry-run", 'n', &o->dry_run, "query the service, send nothing"),
                OPTION_FLAG("force", 0, &o->how.force, "send without querying, and replace stored objects"),
                OPTION_STRING("tag", 0, "TAG", &o->how.tag,
                              "tag of the objects, for the service's retention rules, such as release"),
                OPTION_UINT("jobs", 'j', "N", &o->jobs, "files in flight at a time (default 4)"),
                OPTION_FLAG("json", 0, &o->json, "print the result as JSON on stdout"),
                OPTIONS_OF_CONFIGURATION(&o->configuration),
                OPTION_END,
        };
        enum status st = configuration_parse(&o->configuration, &usage, specs, argc, argv, err);

        if (st)
                return st;
        o->report_only = configuration_report(&o->configuration, specs);
        if (o->report_only)
                return ST_OK;
        if (*argc == 0)
                return error_set(err, ST_USAGE, "no PATH given (try 'cairn-upload --help')");
        if (o->tenant && !tenant_name_is_valid(o->tenant))
                return error_set(err, ST_USAGE, "--tenant '%.40s' is not a tenant's name", o->tenant);
        o->how.sources = (struct source_options){ .roots = o->sources.items,
                                                  .root_count = o->sources.count,
                                                  .maps = o->source_maps.items,
                                                  .map_count = o->source_maps.count };
        st = source_options_check(&o->how.sources, err);
        if (st)
                return st;
        if (o->symbols_only && (o->sources.count || o->executables || o->strip))
                return error_set(err, ST_USAGE,
                                 "--symbols-only sends no %s: leave %s out, or upload without --symbols-only",
                                 o->sources.count ? "sources"
                                 : o->executables ? "executables"
                                                  : "debuginfo that --strip could leave at the service",
                                 o->sources.count ? "--sources"
                                 : o->executables ? "--executables"
                                                  : "--strip");
        if (o->strip && o->dry_run)
                return error_set(err, ST_USAGE, "--strip and --dry-run exclude each other");
        if (o->jobs == 0 || o->jobs > SEND_JOBS_MAX)
                return error_set(err, ST_USAGE, "--jobs is 1 to %d", SEND_JOBS_MAX);
        return ST_OK;
}

/* Whether worker_run() started this process; a user's command line has the program's name first. */
static bool is_worker_command(int argc, char **argv)
{
        return argc > 2 && strcmp(argv[0], "cairn") == 0 && strcmp(argv[1], "worker") == 0 &&
               strcmp(argv[2], "symbols") == 0;
}

static int run_extract_worker(int argc, char **argv)
{
        struct error err;
        enum status st = extract_run_job(argc, argv, &err);

        if (!st)
                return EXIT_DONE;
        fprintf(stderr, "%s\n", PRINTABLE(err.text));
        return worker_exit_code(st);
}

int main(int argc, char **argv)
{
        struct command_options o = { .server = DEFAULT_SERVER, .jobs = 4, .configuration = { .section = "upload" } };
        const struct sigaction action = { .sa_handler = on_stop_signal };
        struct upload_search f = { 0 };
        struct error err = { 0 };
        enum status st;

        if (is_worker_command(argc, argv))
                return run_extract_worker(argc - 2, argv + 2);
        check_standard_output_at_exit("cairn-upload");
        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                printf("cairn-upload %s\n", CAIRN_VERSION);
                return EXIT_DONE;
        }
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        signal(SIGPIPE, SIG_IGN);
        report_init(&f.report);
        st = parse_upload_options(&o, &argc, &argv, &err);
        if (!st && !o.report_only)
                st = run_upload(&o, &f, argv, argc, &err);
        if (st)
                fprintf(stderr, "cairn-upload: %s\n", PRINTABLE(err.text));
        else
                st = f.report.first_failure;
        upload_list_deinit(&f.list);
        unpacked_deinit(&f.unpacked);
        options_list_deinit(&o.sources);
        options_list_deinit(&o.source_maps);
        configuration_deinit(&o.configuration);
        return exit_code_from_status(st);
}
