/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads all programs and prints the kernel's information about the sampling program, one value per line: instructions,
 * instructions processed by the verifier, bytes of machine code. If the kernel rejects a program, the end of the
 * verifier's log is printed to standard error.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "bpf/sample.skel.h"

#define LOG_BYTES (16u << 20)
#define LOG_STATS 4 /* BPF_LOG_STATS: only the totals */
#define LOG_ALL 1
#define LINES_SHOWN 60

static int suppress_log(enum libbpf_print_level level, const char *fmt, va_list args)
{
        (void)level, (void)fmt, (void)args;
        return 0;
}

static const char *print_last_lines(const char *text, int lines)
{
        const char *p = text + strlen(text);

        while (p > text && lines >= 0)
                lines -= *--p == '\n';
        return p;
}

static int print_facts(const struct sample_bpf *bpf, const char *log)
{
        const char *processed = strstr(log, "processed ");
        struct bpf_prog_info info = { 0 };
        unsigned size = sizeof info;

        if (bpf_obj_get_info_by_fd(bpf_program__fd(bpf->progs.sample_cpu), &info, &size) || !processed)
                return 1;
        printf("instructions %u\n", info.xlated_prog_len / 8);
        printf("verified_instructions %ld\n", strtol(processed + strlen("processed "), NULL, 10));
        printf("machine_code_bytes %u\n", info.jited_prog_len);
        return 0;
}

/* The log of a rejected program is empty unless level requests all of it: then the log is that of the last program. */
static struct sample_bpf *load_program(int level, char *log, int *status_ret)
{
        struct sample_bpf *bpf = sample_bpf__open();
        struct bpf_program *p;

        if (!bpf)
                return NULL;
        bpf_object__for_each_program(p, bpf->obj)
        {
                if (level != LOG_ALL && p != bpf->progs.sample_cpu)
                        continue;
                bpf_program__set_log_level(p, (unsigned)level);
                bpf_program__set_log_buf(p, log, LOG_BYTES);
        }
        *status_ret = sample_bpf__load(bpf);
        return bpf;
}

int main(void)
{
        struct sample_bpf *bpf;
        struct utsname name;
        char *log = calloc(1, LOG_BYTES);
        int status = -1;

        libbpf_set_print(suppress_log);
        if (!log || uname(&name))
                return 1;
        printf("kernel %s\n", name.release);
        bpf = load_program(LOG_STATS, log, &status);
        if (!status) {
                status = print_facts(bpf, log);
        } else {
                sample_bpf__destroy(bpf);
                bpf = load_program(LOG_ALL, log, &status);
                fprintf(stderr, "refused: %s\n%s", strerror(-status), print_last_lines(log, LINES_SHOWN));
        }
        sample_bpf__destroy(bpf);
        free(log);
        return status != 0;
}
