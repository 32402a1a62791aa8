/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_FOLDED_H
#define CAIRN_PROFILE_FORMATS_FOLDED_H

/**
 * @file
 * Folded stacks: one line per stack, frames from the root to the leaf joined by ';', a space, a number.
 *
 * A frame that ends in "_[k]" is a kernel frame; the mark is taken off. Frames have names only (ADDRESS_NONE).
 * Empty lines and lines that begin with '#' are skipped.
 *
 * Frames that are addresses, for those who ask for them: "0x1f2c" (of an object that is known otherwise),
 * "[/lib/libfoo.so+0x1f2c]", "/lib/libfoo.so+0x1f2c" and "0x1f2c [libfoo.so]"; in place of a path may stand a build-id
 * of at least 16 hexadecimal digits. The address is the object's own.
 *
 * Threads: no shared state.
 * Source: Brendan Gregg's FlameGraph, stackcollapse-*.pl.
 */
#include "common/buf.h"
#include "profile-formats/profile.h"

/**
 * @param type_id  the samples' type, five parts; NULL: "samples:samples:count::".
 * @return ST_BAD_DATA with the line's number when a line has no count.
 */
enum status folded_decode(const void *data, size_t n, const char *type_id, struct profile *ret,
                          struct error *err) MUST_CHECK;

/** The same, with frames that are addresses as locations with one (ADDRESS_OBJECT). */
enum status folded_decode_addresses(const void *data, size_t n, const char *type_id, struct profile *ret,
                                    struct error *err) MUST_CHECK;

/**
 * Append one line per distinct stack of the profile's first type, in the order of their first sample: every line of a
 * location is a frame, a location without any is "0x1f2c [libfoo.so]".
 * @param root_label  a label whose value is the first frame ("comm"), NULL for none.
 */
enum status folded_encode(const struct profile *p, const char *root_label, struct buf *ret,
                          struct error *err) MUST_CHECK;

#endif
