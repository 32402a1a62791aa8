/* SPDX-License-Identifier: Apache-2.0 */
/* cairn record: profile this host without a service. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/command.h"
#include "cli/commands/profile_output.h"
#include "cli/commands/record_report.h"
#include "cli/commands/record_run.h"
#include "cli/commands/share_link.h"
#include "cli/symbols/profile_symbols.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "symbolizer/extraction/debug_file_search.h"

#define NAME "record"

static const struct usage usage = {
        .synopsis = "cairn record [OPTION]... -p PID[,PID...] | -a | [--] COMMAND [ARGUMENT]...",
        .about = "Profile processes without a service. The result is a table of functions, or with -o a flame graph,\n"
                 "pprof, folded stacks or raw samples. Root records all processes, with BPF; other users record\n"
                 "their own processes, with perf events. Child processes are included. Ctrl-C stops recording and\n"
                 "writes the result. Symbols come from local files, their debug files, and the servers in\n"
                 "DEBUGINFOD_URLS, if it is set.",
        .examples = "  cairn record -a -d 10 -o flame.html\n"
                    "  cairn record -p 1234 -o cpu.pb.gz -o flame.html\n"
                    "  cairn record -d 10 -a --share https://cairn.example\n"
                    "  cairn record -- make -j4",
        .command = true,
};

struct record {
        struct record_target target;
        struct option_list pids, outputs;
        const char *format, *sampler;
        struct service_options share; /* server NULL: not shared */
        struct debug_files debug_files;
        struct profile_form form;
        bool all, json;
        enum profile_shape *shapes; /* owned; one per output, or one for standard output */
        char **command;             /* NULL none */
        uint32_t *process_ids;      /* owned */
        size_t process_id_capacity;
};

static atomic_bool cancelled;
static atomic_int came_alone; /* signal that cancelled and was not sent to the recorded command too; 0 none */

/* ---- the command line ----------------------------------------------------------------------------- */

static enum status add_target_pid(struct record *r, const char *text, struct error *err)
{
        uint64_t pid;

        if (!array_reserve(&r->process_ids, &r->process_id_capacity, r->target.pid_count))
                return error_no_memory(err);
        if (!parse_uint(text, &pid) || pid == 0 || pid > INT32_MAX)
                return error_set(err, ST_USAGE, "option '--pid' takes process ids, not '%.60s'", text);
        r->process_ids[r->target.pid_count++] = (uint32_t)pid;
        r->target.pids = r->process_ids;
        return ST_OK;
}

static enum status parse_pids(struct record *r, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; i < r->pids.count && !st; i++) {
                _cleanup_free_ char *list = strdup(r->pids.items[i]);
                char *rest = NULL;

                if (!list)
                        return error_no_memory(err);
                for (char *pid = strtok_r(list, ", \n", &rest); pid && !st; pid = strtok_r(NULL, ", \n", &rest))
                        st = add_target_pid(r, pid, err);
        }
        if (!st && r->pids.count && !r->target.pid_count)
                st = error_set(err, ST_USAGE, "option '--pid' takes process ids");
        return st;
}

static enum status check_record_target(struct record *r, int argc, char **argv, struct error *err)
{
        const struct record_target *t = &r->target;

        if (!!t->pid_count + r->all + (argc > 0) != 1)
                return error_set(err, ST_USAGE, "nothing to record: give -p PID, -a for all, or a command%s",
                                 t->pid_count || r->all ? ", one of them" : "");
        if (t->frequency_hz < 1 || t->frequency_hz > 10000)
                return error_set(err, ST_USAGE, "option '--frequency' takes 1 to 10000, not %llu",
                                 (unsigned long long)t->frequency_hz);
        if (t->duration_s > 86400)
                return error_set(err, ST_USAGE, "option '--duration' takes up to 86400 seconds, not %llu",
                                 (unsigned long long)t->duration_s);
        if (r->sampler && sampler_kind_parse(r->sampler, &r->target.sampler))
                return error_set(err, ST_USAGE, "option '--sampler' takes auto, bpf or perf, not '%s'", r->sampler);
        if (t->latency && t->sampler == SAMPLER_PERF)
                return error_set(err, ST_USAGE, "option '--latency' needs BPF: not '--sampler perf'");
        r->form.type = t->latency ? "latency" : NULL;
        r->command = argc ? argv : NULL;
        return ST_OK;
}

static size_t count_outputs(const struct record *r)
{
        return r->outputs.count || r->share.server ? r->outputs.count : 1;
}

static enum status parse_outputs(struct record *r, struct error *err)
{
        size_t count = count_outputs(r);
        enum status st = ST_OK;

        if ((r->share.token_file || r->share.ca_file) && !r->share.server)
                return error_set(err, ST_USAGE, "--token-file and --ca need --share");
        if (r->json && r->format)
                return error_set(err, ST_USAGE, "--json and --format exclude each other");
        if (r->json)
                r->format = "json";
        r->shapes = calloc(count + 1, sizeof *r->shapes);
        if (!r->shapes)
                return error_no_memory(err);
        for (size_t i = 0; i < count && !st; i++) {
                const char *path = r->outputs.count ? r->outputs.items[i] : "-";
                bool standard = strcmp(path, "-") == 0;

                r->shapes[i] = SHAPE_TEXT;
                if (r->format)
                        st = profile_shape_parse(r->format, &r->shapes[i], err);
                else if (!standard)
                        st = profile_shape_of(path, &r->shapes[i], err);
                if (!st && standard && profile_shape_is_binary(r->shapes[i]) && isatty(STDOUT_FILENO))
                        st = error_set(err, ST_USAGE, "this format is binary: give -o FILE");
                if (!st)
                        st = profile_output_check(path, err);
        }
        return st;
}

static enum status parse_record_options(struct record *r, int argc, char **argv, struct error *err)
{
        const struct option_spec specs[] = {
                OPTION_LIST("pid", 'p', "PID,...", &r->pids, "record these processes and their new children"),
                OPTION_FLAG("all", 'a', &r->all, "record the whole host"),
                OPTION_LIST("output", 'o', "FILE", &r->outputs,
                            "write FILE; its suffix selects the format: .html flame graph, .pb.gz pprof, .folded, "
                            ".otlp raw samples, .json, .txt table"),
                OPTION_UINT("frequency", 'F', "HZ", &r->target.frequency_hz, "samples per second and CPU (default 99)"),
                OPTION_UINT("duration", 'd', "SECONDS", &r->target.duration_s,
                            "stop after this time (default: at Ctrl-C, or when the processes end)"),
                OPTION_STRING("format", 0, "F", &r->format,
                              "text, html, pprof, folded, otlp or json; overrides the suffix of FILE"),
                OPTION_FLAG("json", 0, &r->json, "same as --format json"),
                OPTION_STRING("limit", 'n', "N", &r->form.limit, "maximum number of rows (default 30, all in json)"),
                OPTION_STRING("names", 0, "N", &r->form.names, "short or full (default: short in html, else full)"),
                OPTION_STRING("sampler", 0, "KIND", &r->sampler,
                              "bpf, perf, or auto (default): bpf if possible, else perf"),
                OPTION_FLAG("latency", 0, &r->target.latency,
                            "measure and show latency: CPU time over the running threads of its process"),
                OPTION_STRING("share", 0, "URL", &r->share.server,
                              "upload the profile to this service and print a link to its flame graph"),
                SERVICE_OPTIONS(&r->share),
                DEBUG_FILES_OPTIONS(&r->debug_files),
                OPTION_END,
        };
        enum status st = options_parse(&usage, specs, &argc, &argv, err);

        if (!st)
                st = parse_pids(r, err);
        if (!st)
                st = check_record_target(r, argc, argv, err);
        return st ? st : parse_outputs(r, err);
}

/* ---- from a recording to files ---------------------------------------------------------------------- */

static void cancel_resolution(int signal, siginfo_t *info, void *context)
{
        (void)context;
        if (info->si_code <= 0) /* sent by a process; the terminal signals the whole process group */
                atomic_store(&came_alone, signal);
        atomic_store(&cancelled, true);
}

static void mask_end_signals(int how)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGHUP);
        sigprocmask(how, &set, NULL);
}

/* Ctrl-C now cancels downloads; a second one ends the program. */
static void handle_end_signals(void)
{
        const struct sigaction action = { .sa_sigaction = cancel_resolution,
                                          .sa_flags = (int)SA_RESETHAND | SA_SIGINFO };

        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGHUP, &action, NULL);
        mask_end_signals(SIG_UNBLOCK);
}

static enum status resolve_recording(struct record *r, struct profile *p, struct error *err)
{
        struct local_symbols l = { .debug_files = &r->debug_files, .held = r->target.held };
        enum status st = debug_files_open(&r->debug_files, err);

        if (!st)
                st = local_symbols_fill(&l, p, err);
        if (!st)
                record_report_frames(p, &l.symbols, r->debug_files.fetcher);
        local_symbols_deinit(&l);
        debug_files_close(&r->debug_files);
        return st;
}

static enum status write_recording_as(const struct record *r, const struct profile *p, size_t i, struct error *err)
{
        const char *path = r->outputs.count ? r->outputs.items[i] : NULL;
        _cleanup_buf_ struct buf out;
        enum status st;

        buf_init(&out, GiB(2));
        st = profile_shape_put(p, r->shapes[i], &r->form, &out, err);
        if (!st)
                st = profile_output_write(path, &out, err);
        if (!st && path && strcmp(path, "-") != 0)
                fprintf(stderr, "wrote %s\n", path);
        return st;
}

static enum status share_recording(const struct record *r, const struct profile *p, struct error *err)
{
        return share_and_print_link(&r->share, p, r->all ? "?by=process.executable.name" : "", err);
}

/* Raw samples first, then resolved formats, then those with the program's name as root frame. */
static enum status write_recording(struct record *r, struct profile *p, struct error *err)
{
        static const bool rooted[] = { [SHAPE_HTML] = true, [SHAPE_FOLDED] = true, [SHAPE_OTLP] = false };
        size_t count = count_outputs(r), raw = 0;
        enum status st = ST_OK;

        for (size_t i = 0; i < count && !st; i++)
                if (r->shapes[i] == SHAPE_OTLP && ++raw)
                        st = write_recording_as(r, p, i, err);
        if (!st && (raw < count || r->share.server))
                st = resolve_recording(r, p, err);
        for (size_t i = 0; i < count && !st; i++)
                if (r->shapes[i] != SHAPE_OTLP && !rooted[r->shapes[i]])
                        st = write_recording_as(r, p, i, err);
        if (!st && r->share.server)
                st = share_recording(r, p, err);
        if (!st)
                st = profile_add_roots(p, "process.executable.name", err);
        for (size_t i = 0; i < count && !st; i++)
                if (rooted[r->shapes[i]])
                        st = write_recording_as(r, p, i, err);
        return st;
}

/* ---- progress, on a terminal ------------------------------------------------------------------------------ */

/* A command shares the terminal, so its recording is announced once. */
static void announce_recording(const struct record *r)
{
        char limit[64] = "until it ends";

        if (r->target.duration_s)
                snprintf(limit, sizeof limit, "for %" PRIu64 " s", r->target.duration_s);
        fprintf(stderr, "recording %s %s; Ctrl-C ends it\n", PRINTABLE(r->command[0]), limit);
}

static void show_progress(const struct record_target *t, bool is_preparing, uint64_t elapsed_s)
{
        char limit[40] = "";

        if (t->duration_s)
                snprintf(limit, sizeof limit, " of %" PRIu64, t->duration_s);
        if (is_preparing)
                fputs("\r\033[Kpreparing: building the unwind tables of running processes", stderr);
        else
                fprintf(stderr, "\r\033[Krecording: %" PRIu64 "%s s; Ctrl-C stops it and writes the result", elapsed_s,
                        limit);
        fflush(stderr);
}

static void begin_progress(struct record *r)
{
        if (!isatty(STDERR_FILENO))
                return;
        if (r->command)
                announce_recording(r);
        else
                r->target.progress = show_progress;
}

static void end_progress(const struct record *r)
{
        if (r->target.progress)
                fputs("\r\033[K", stderr);
}

/* ---- the run ------------------------------------------------------------------------------------------ */

static enum status add_advice(struct error *err)
{
        const struct error reason = *err;

        if (strstr(reason.text, "--doctor"))
                return reason.code;
        return error_set(err, reason.code, "%.180s; %s", reason.text,
                         geteuid() ? "run it as root (sudo)" : "'cairn-agent --doctor' shows what is missing");
}

static enum status record_and_write(struct record *r, struct error *err)
{
        struct recording *recording;
        struct record_counts counts;
        struct profile p;
        enum status st = record_begin(&r->target, &recording, err);

        if (st)
                return st == ST_OS ? add_advice(err) : st;
        begin_progress(r);
        st = record_run(recording, &p, &counts, err);
        end_progress(r);
        if (!st) {
                handle_end_signals();
                record_report_samples(&counts, &r->target, &p);
                st = write_recording(r, &p, err);
                profile_deinit(&p);
        }
        if (r->command && !st) {
                mask_end_signals(SIG_BLOCK);
                record_await_child(recording, atomic_load(&came_alone));
        }
        record_destroy(recording);
        return st;
}

static enum status start_record(struct record *r, struct record_child *child, struct held_files *held,
                                struct error *err)
{
        enum status st = ST_OK;

        if (r->command) { /* while there is one thread, and before limits are changed */
                st = record_child_start(child, r->command, err);
                r->process_ids = malloc(sizeof *r->process_ids);
                if (!st && !r->process_ids)
                        st = error_no_memory(err);
                if (st)
                        return st;
                r->process_ids[0] = (uint32_t)child->pid;
                r->target.pids = r->process_ids;
                r->target.pid_count = 1;
                r->target.child = child;
        }
        held_files_init(held);
        r->target.held = held;
        return record_and_write(r, err);
}

int command_record(int argc, char **argv)
{
        struct record r = { .target = { .frequency_hz = 99 },
                            .debug_files = { .directory = DEBUG_DIRECTORY, .cancel = &cancelled } };
        struct record_child child = { 0 };
        struct held_files held = { 0 };
        struct error err = { 0 };
        int code = EXIT_DONE;
        enum status st = parse_record_options(&r, argc, argv, &err);

        if (!st)
                st = start_record(&r, &child, &held, &err);
        if (st) {
                code = command_fail(NAME, st, &err);
        }
        if (child.ended && (!st || child.exec_errno))
                code = record_child_exit_code(&child);
        record_child_deinit(&child);
        held_files_deinit(&held);
        options_list_deinit(&r.pids);
        options_list_deinit(&r.outputs);
        free(r.shapes);
        free(r.process_ids);
        return code;
}
