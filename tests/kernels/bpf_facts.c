/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the sampling program and prints what the kernel says of it, one fact a
 * line: instructions, instructions that the verifier walked, bytes of machine
 * code. When the kernel refuses it, the end of the verifier's log goes to
 * standard error.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "bpf/sample.skel.h"

#define LOG_BYTES (16u << 20)
#define LOG_STATS 4 /* BPF_LOG_STATS: the sums alone */
#define LOG_ALL 1
#define LINES_SHOWN 40

static int quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
        (void)level, (void)fmt, (void)args;
        return 0;
}

static const char *last_lines(const char *text, int lines)
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

/* Its log when it is refused is empty unless level asks for all of it. */
static struct sample_bpf *load(int level, char *log, int *status_ret)
{
        struct sample_bpf *bpf = sample_bpf__open();

        if (!bpf)
                return NULL;
        bpf_program__set_log_level(bpf->progs.sample_cpu, (unsigned)level);
        bpf_program__set_log_buf(bpf->progs.sample_cpu, log, LOG_BYTES);
        *status_ret = sample_bpf__load(bpf);
        return bpf;
}

int main(void)
{
        struct sample_bpf *bpf;
        struct utsname name;
        char *log = calloc(1, LOG_BYTES);
        int status = -1;

        libbpf_set_print(quiet);
        if (!log || uname(&name))
                return 1;
        printf("kernel %s\n", name.release);
        bpf = load(LOG_STATS, log, &status);
        if (!status) {
                status = print_facts(bpf, log);
        } else {
                sample_bpf__destroy(bpf);
                bpf = load(LOG_ALL, log, &status);
                fprintf(stderr, "refused: %s\n%s", strerror(-status), last_lines(log, LINES_SHOWN));
        }
        sample_bpf__destroy(bpf);
        free(log);
        return status != 0;
}
