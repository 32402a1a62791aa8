/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf-frames OBJECT SECONDS: loads the BPF program, runs it for that CPU time, and unloads it a second later. Only
 * while it is loaded can `cairn record` name its code, which it does four times a second.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

int main(int argc, char **argv)
{
        struct bpf_object *object = argc == 3 ? bpf_object__open(argv[1]) : NULL;
        struct bpf_program *program = object ? bpf_object__find_program_by_name(object, "burn_packet") : NULL;
        char packet[64] = { 0 };
        LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = packet, .data_size_in = sizeof packet, .repeat = 20);
        clock_t end = (argc == 3 ? atoi(argv[2]) : 0) * CLOCKS_PER_SEC;

        if (!program || bpf_object__load(object))
                return 1;
        do
                if (bpf_prog_test_run_opts(bpf_program__fd(program), &run))
                        return 1;
        while (clock() < end);
        if (end)
                sleep(1);
        return 0;
}
