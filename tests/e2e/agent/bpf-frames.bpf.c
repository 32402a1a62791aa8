/* SPDX-License-Identifier: Apache-2.0 */
/* Burns time in three functions, whose lines bpf-frames.t finds by their comments. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";
__u64 sink;

/* All of the loop has one line: which instruction of it is sampled most depends on the CPU. */
#define TAKE_STEPS(x)                                                                                                  \
        for (int i = 0; i < 100; i++)                                                                                  \
        sink ^= sink * 5 + i + (x)

static __attribute__((noinline)) int inner_step(int x)
{
        TAKE_STEPS(x); /* line of inner_step */
        return sink & 0xff;
}

static long each_round(__u32 i, void *context)
{
        (void)context;
        return inner_step(i) < 0; /* line of each_round */
}

SEC("socket")
int burn_packet(struct __sk_buff *packet)
{
        return inner_step(packet->len) + bpf_loop(1000, each_round, 0, 0); /* line of burn_packet */
}
