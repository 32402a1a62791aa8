/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/drop-in/drop_in.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "sandbox/worker.h"
#include "symbolizer/workers/extract_job.h"

int (*drop_in_find(const char *argv0))(int argc, char **argv)
{
        static const struct {
                const char *name;
                int (*run)(int argc, char **argv);
        } names[] = {
                { "addr2line", run_gnu_addr2line },         { "cairn-addr2line", run_gnu_addr2line },
                { "eu-addr2line", run_eu_addr2line },       { "cairn-eu-addr2line", run_eu_addr2line },
                { "llvm-symbolizer", run_llvm_symbolizer }, { "cairn-symbolizer", run_llvm_symbolizer },
                { "llvm-addr2line", run_llvm_addr2line },
        };
        const char *name = path_base(argv0);

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (strcmp(name, names[i].name) == 0)
                        return names[i].run;
        return NULL;
}

static enum status execute_cairn(char **argv, struct error *err)
{
        char path[4096], *slash;
        ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "/cairn");

        if (n > 0) {
                path[n] = 0;
                slash = strrchr(path, '/');
                memcpy(slash ? slash : path, "/cairn", sizeof "/cairn");
                execv(path, argv);
        }
        return error_set(err, ST_UNSUPPORTED, "this needs the program '%s'", n > 0 ? path : "cairn");
}

int drop_in_run_worker(int argc, char **argv)
{
        char *cairn_argv[16] = { (char *)"cairn" };
        struct error err;
        enum status st;

        if (argc > 1 && strcmp(argv[1], "symbols") == 0) {
                st = extract_run_job(argc - 1, argv + 1, &err);
        } else {
                for (int i = 0; i < argc && i < 14; i++)
                        cairn_argv[i + 1] = argv[i];
                st = execute_cairn(cairn_argv, &err);
        }
        if (st)
                fprintf(stderr, "%s\n", PRINTABLE(err.text));
        return worker_exit_code(st);
}
