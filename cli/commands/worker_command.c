/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cairn worker NAME ARGUMENT...`: jobs on untrusted input, started by worker_run() with their files as descriptors
 * from 3 on. A worker logs nothing; the reason of a failure is the last line of its stderr, which the parent reads.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/command.h"
#include "cli/shared/lazy_libraries.h"
#include "common/files/file.h"
#include "common/text/utf8.h"
#include "debuginfo-store/federation/fetch.h"
#include "debuginfo-store/verify_worker.h"
#include "debuginfod-client/debuginfod_worker.h"
#include "disassembler/disassemble_job.h"
#include "package-trees/package_inspect.h"
#include "pipeline/elf_job.h"
#include "pipeline/jfr_job.h"
#include "sampling/unwinding/unwind_builder.h"
#include "sandbox/worker.h"
#include "symbolizer/explain/explain.h"
#include "symbolizer/explain/explain_libdw.h"
#include "symbolizer/structs/struct_offsets.h"
#include "symbolizer/workers/dwo_request.h"
#include "symbolizer/workers/extract_job.h"
#include "symbolizer/workers/object_facts.h"

enum { FIRST_FD = 3, SECOND_FD, THIRD_FD, FOURTH_FD };

static int report_worker_failure(enum status st, const struct error *err)
{
        fprintf(stderr, "%s\n", PRINTABLE(err->text));
        return worker_exit_code(st);
}

/* ---- explain object|second-opinion NAME ---- */

/* All but ADDRESSES and OUTPUT may be closed. The socket is for requests for single files of split DWARF. */
enum {
        EXPLAIN_DEBUGINFO_FD = FIRST_FD,
        EXPLAIN_EXECUTABLE_FD,
        EXPLAIN_ALTLINK_FD,
        EXPLAIN_ADDRESSES_FD,
        EXPLAIN_OUTPUT_FD,
        EXPLAIN_DWP_FD,
        EXPLAIN_DWO_SOCKET
};

static int descriptor_or_none(int fd)
{
        return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

static enum status enter_explain_worker(int argc, char **argv, struct error *err)
{
        const bool second_opinion = argc > 1 && strcmp(argv[1], "second-opinion") == 0;
        const char *name = argc > 2 ? argv[2] : "object"; /* for messages */
        struct dwo_requester dwo = { .socket = descriptor_or_none(EXPLAIN_DWO_SOCKET),
                                     .lock = PTHREAD_MUTEX_INITIALIZER };
        const struct extract_inputs in = { .debuginfo_fd = descriptor_or_none(EXPLAIN_DEBUGINFO_FD),
                                           .executable_fd = descriptor_or_none(EXPLAIN_EXECUTABLE_FD),
                                           .altlink_fd = descriptor_or_none(EXPLAIN_ALTLINK_FD),
                                           .dwp_fd = descriptor_or_none(EXPLAIN_DWP_FD),
                                           .dwo = { .open = dwo.socket >= 0 ? dwo_request_send : NULL,
                                                    .context = &dwo },
                                           .name = name,
                                           .file_name = argc > 3 ? argv[3] : NULL };
        uint64_t addresses[EXPLAIN_ADDRESSES_MAX];
        _cleanup_buf_ struct buf report = { 0 };
        ssize_t n = pread(EXPLAIN_ADDRESSES_FD, addresses, sizeof addresses, 0);
        enum status st;

        if (n < 0)
                return error_os(err, errno, "cannot read the addresses");
        buf_init(&report, EXPLAIN_REPORT_BYTES_MAX);
        if (second_opinion)
                st = explain_write_second_opinion(in.debuginfo_fd >= 0 ? in.debuginfo_fd : in.executable_fd,
                                                  in.altlink_fd, name, addresses, (size_t)n / sizeof *addresses,
                                                  &report, err);
        else
                st = explain_write(&in, addresses, (size_t)n / sizeof *addresses, &report, err);
        return st ? st : file_write_all(EXPLAIN_OUTPUT_FD, report.data, report.size, "report", err);
}

/* ---- jobs of one call ---- */

/* elf supplement|sections */
static enum status enter_elf_worker(int argc, char **argv, struct error *err)
{
        return elf_job_run_worker(argc, argv, FIRST_FD, SECOND_FD, err);
}

/* fetch PATH SECONDS TOTAL-SECONDS MAX-BYTES FORWARDED-FOR; descriptors: debuginfo-store/federation/fetch.h */
static enum status enter_fetch_worker(int argc, char **argv, struct error *err)
{
        if (argc != 1 + FETCH_WORKER_ARGS)
                return error_set(err, ST_USAGE, "worker fetch takes %d arguments", FETCH_WORKER_ARGS);
        return fetch_worker_run(argv + 1, err);
}

/* objects: the facts, then the files */
static enum status enter_objects_worker(int argc, char **argv, struct error *err)
{
        (void)argc;
        (void)argv;
        return object_facts_run_worker(FIRST_FD, SECOND_FD, err);
}

/* jfr PERIOD-NS: the recording, the labels, the answer */
static enum status enter_jfr_worker(int argc, char **argv, struct error *err)
{
        return jfr_job_run_worker(argc, argv, FIRST_FD, SECOND_FD, THIRD_FD, err);
}

/* scan: a socket, the results, a temporary file */
static enum status enter_scan_worker(int argc, char **argv, struct error *err)
{
        (void)argc;
        (void)argv;
        return inspect_worker_run(FIRST_FD, SECOND_FD, THIRD_FD, err);
}

/* member ORDINAL: the archive, the member */
static enum status enter_member_worker(int argc, char **argv, struct error *err)
{
        if (argc != 2)
                return error_set(err, ST_USAGE, "worker member takes a number");
        return member_worker_run(argv[1], FIRST_FD, SECOND_FD, err);
}

/* source-names: the debuginfo, the hashes */
static enum status enter_source_names_worker(int argc, char **argv, struct error *err)
{
        (void)argc;
        (void)argv;
        return source_names_worker_run(FIRST_FD, SECOND_FD, err);
}

/* offsets: the debuginfo, its dwz file or nothing, the fields, the answer */
static enum status enter_offsets_worker(int argc, char **argv, struct error *err)
{
        (void)argc;
        (void)argv;
        return struct_offsets_run_worker(FIRST_FD, descriptor_or_none(SECOND_FD), THIRD_FD, FOURTH_FD, err);
}

/* verify: the file, the result, the supplementary file */
static enum status enter_verify_worker(int argc, char **argv, struct error *err)
{
        (void)argc;
        (void)argv;
        return verify_worker_run(FIRST_FD, SECOND_FD, THIRD_FD, err);
}

/* Confines itself, as the next two do. */
static int enter_symbols_worker(int argc, char **argv)
{
        struct error err;
        enum status st = extract_run_job(argc, argv, &err);

        return st ? report_worker_failure(st, &err) : EXIT_DONE;
}

static int enter_unwind_worker(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        return worker_unwind();
}

/* Loads a library first, then confines itself. */
static int enter_disassemble_worker(int argc, char **argv)
{
        struct error err;
        enum status st = disassemble_worker_run(&err);

        (void)argc;
        (void)argv;
        return st ? report_worker_failure(st, &err) : EXIT_DONE;
}

/* ---- all of them ---- */

struct worker {
        const char *name;
        enum worker_needs needs;
        enum status (*run)(int argc, char **argv, struct error *err); /* after worker_confine() */
        int (*run_unconfined)(int argc, char **argv);                 /* instead: confines itself; returns exit code */
};

static const struct worker workers[] = {
        { "symbols", WORKER_NEEDS_NOTHING, NULL, enter_symbols_worker },
        { "verify", WORKER_NEEDS_NOTHING, enter_verify_worker, NULL },
        { "explain", WORKER_NEEDS_DESCRIPTORS, enter_explain_worker, NULL },
        { "offsets", WORKER_NEEDS_NOTHING, enter_offsets_worker, NULL },
        { "elf", WORKER_NEEDS_NOTHING, enter_elf_worker, NULL },
        { "jfr", WORKER_NEEDS_NOTHING, enter_jfr_worker, NULL },
        { "objects", WORKER_NEEDS_NOTHING, enter_objects_worker, NULL },
        { "unwind", WORKER_NEEDS_NOTHING, NULL, enter_unwind_worker },
        { "scan", WORKER_NEEDS_DESCRIPTORS, enter_scan_worker, NULL },
        { "member", WORKER_NEEDS_NOTHING, enter_member_worker, NULL },
        { "source-names", WORKER_NEEDS_NOTHING, enter_source_names_worker, NULL },
        { "fetch", WORKER_NEEDS_NETWORK, enter_fetch_worker, NULL },
        { "debuginfod", WORKER_NEEDS_NETWORK, NULL, debuginfod_worker },
        { "disassemble", WORKER_NEEDS_NOTHING, NULL, enter_disassemble_worker },
};

static const struct worker *find_worker(const char *name)
{
        for (size_t i = 0; i < sizeof workers / sizeof *workers; i++)
                if (strcmp(workers[i].name, name) == 0)
                        return &workers[i];
        return NULL;
}

int command_worker(int argc, char **argv)
{
        const struct worker *worker = argc > 1 ? find_worker(argv[1]) : NULL;
        struct error err;
        enum status st;

        if (!worker) {
                fprintf(stderr, "cairn worker: an internal command, started by other commands\n");
                return EXIT_USAGE;
        }
        assert(!worker->run != !worker->run_unconfined);
        st = worker->run_unconfined == enter_symbols_worker ? ST_OK : lazy_libraries_load(&err); /* it needs none */
        if (!st && worker->run_unconfined)
                return worker->run_unconfined(argc - 1, argv + 1);
        if (!st)
                st = worker_confine(worker->needs, &err);
        if (!st)
                st = worker->run(argc - 1, argv + 1, &err);
        return st ? report_worker_failure(st, &err) : EXIT_DONE;
}
