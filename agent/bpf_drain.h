/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_BPF_DRAIN_H
#define CAIRN_AGENT_BPF_DRAIN_H

/**
 * @file
 * Taking one half of the BPF double buffer out of its maps. Nobody writes the
 * half meanwhile.
 *
 * Threads: one at a time on one half.
 */
#include "agent/sampler.h"

/** Empty the map of counts into the batch. */
enum status bpf_drain_counts(int fd, struct sample_batch *b, struct error *err) MUST_CHECK;

/**
 * Empty the map of chunks and put the stacks of the batch's counts together.
 * A chain with a chunk missing (the map was full) ends there.
 */
enum status bpf_drain_chunks(int fd, struct sample_batch *b, struct error *err) MUST_CHECK;

#endif
