/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_HOTSPOT_METHOD_H
#define CAIRN_SAMPLING_RUNTIMES_HOTSPOT_METHOD_H

/**
 * @file
 * Methods of a HotSpot process: name, source file, and the line of a bytecode.
 *
 * A name is that of the class, with slashes, a dot, and that of the method, as in JDK Flight Recorder files
 * (profile-formats/jfr/jfr_decode.h); numbers that the JVM gives to generated classes are left out.
 *
 * A Method stays at its address until its class is unloaded. Then something else may be there, so what identifies it is
 * read again in each interval. A Method is recognized by its constant pool and the class of that, which refer to each
 * other, or, for those that the JVM makes for method handles, by its entry in the interpreter.
 *
 * Threads: no shared state.
 * Source: OpenJDK share/oops/method.hpp, constMethod.hpp, constantPool.hpp, symbol.hpp.
 */
#include "sampling/runtimes/hotspot_layout.h"

/** Words that identify a Method; compared byte by byte. */
struct hotspot_method_key {
        uint64_t code; /* address of its bytecode */
        uint64_t constants;
        uint32_t code_bytes;
        uint32_t name; /* number in the constant pool */
};

struct hotspot_method {
        struct hotspot_method_key key;
        char *name, *file; /* owned; "": none */
        uint8_t *lines;    /* owned; NULL: none */
        uint32_t line_bytes;
};

void hotspot_method_deinit(struct hotspot_method *x);

/** Read what identifies the Method. False when there is none at the address. */
bool hotspot_method_read_key(const struct process_memory *m, const struct hotspot_objects *o, uint64_t address,
                             struct hotspot_method_key *ret);

/** @param ret  owned, hotspot_method_deinit(); untouched on failure. False: there is no Method, or no memory. */
bool hotspot_method_read(const struct process_memory *m, const struct hotspot_objects *o, uint64_t address,
                         struct hotspot_method *ret);

#endif
