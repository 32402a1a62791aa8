/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_JFR_JFR_DECODE_H
#define CAIRN_PROFILE_FORMATS_JFR_JFR_DECODE_H

/**
 * @file
 * Recordings of JDK Flight Recorder and async-profiler into a struct profile.
 *
 * Samples with the same stack, type and labels in one chunk are summed; their time is that of the chunk. Types are
 * those of Pyroscope:
 *
 *     jdk.ExecutionSample                process_cpu:cpu, nanoseconds; wall:wall too if that is async-profiler's event;
 *                                        perf:EVENT for its events that are not times
 *     jdk.CPUTimeSample                  process_cpu:cpu; in its chunk jdk.ExecutionSample is process_cpu:samples
 *     profiler.WallClockSample           wall:wall, nanoseconds
 *     jdk.ObjectAllocationInNewTLAB      memory:alloc_in_new_tlab_objects, ..._bytes
 *     jdk.ObjectAllocationOutsideTLAB    memory:alloc_outside_tlab_objects, ..._bytes
 *     jdk.ObjectAllocationSample         memory:alloc_sample_objects, ..._bytes
 *     profiler.LiveObject                memory:live
 *     profiler.Malloc                    memory:malloc_objects, ..._bytes
 *     jdk.JavaMonitorEnter               mutex:contentions, mutex:delay in nanoseconds
 *     jdk.ThreadPark                     block:contentions, block:delay
 *     jdk.NativeMethodSample             native_method:samples, which Pyroscope leaves out: threads inside of native
 *                                        methods, running or waiting
 *
 * Other events are skipped; a note has the names of those with stacks, or of all if nothing is used. A frame is
 * "package/Class.method" with its line; numbers that the JVM gives to generated classes are left out of names, so that
 * equal code has one. Frames that the compiler inlined are lines of one location with the frame that they were inlined
 * into; a location's mapping says how its code ran ("[jit]", "[interpreted]").
 *
 * For a worker: the input is hostile, and memory is bounded by the limits of common/limits.h, not by the budget alone.
 *
 * Threads: no shared state.
 * Source: grafana/jfr-parser, pprof/ (types, labels).
 */
#include "profile-formats/profile.h"

struct jfr_options {
        int64_t period_ns;  /* of async-profiler's `interval`; 0: by the recording's settings */
        const void *labels; /* of Pyroscope's agent, jfr_labels.h; may be NULL */
        size_t labels_size;
};

/** @param ret initialised here; profile_deinit() it on success only. */
enum status jfr_decode(const void *data, size_t n, const struct jfr_options *options, struct profile *ret,
                       struct error *err) MUST_CHECK;

#endif
