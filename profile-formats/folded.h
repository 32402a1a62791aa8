/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_FOLDED_H
#define CAIRN_PROFILE_FORMATS_FOLDED_H

/**
 * @file
 * Folded stacks: one line per stack, frames from the root to the leaf joined by ';', a space, a number.
 *
 * A frame that ends in "_[k]" is a kernel frame; the mark is removed. Frames have names only (ADDRESS_NONE).
 * Blank lines are skipped, as are lines that begin with '#' and have a blank after it or no count, and a byte order
 * mark, and stacks with the count 0. Counts with a fraction are rounded so that their sum is right. A text whose lines
 * all end in two numbers has a note (profile.h).
 *
 * folded_decode_addresses() also accepts frames that are addresses of an object: "0x1f2c" (the caller knows the
 * object),
 * "[/lib/libfoo.so+0x1f2c]", "/lib/libfoo.so+0x1f2c" and "0x1f2c [libfoo.so]". A build-id of at least 16 hexadecimal
 * digits may replace the path.
 *
 * Threads: no shared state.
 * Source: Brendan Gregg's FlameGraph, stackcollapse-*.pl.
 */
#include "common/memory/buf.h"
#include "profile-formats/profile.h"

/**
 * @param type_id  the samples' type, five parts; NULL: "samples:samples:count::".
 * @return ST_BAD_DATA with the line's number when a line has no count.
 */
enum status folded_decode(const void *data, size_t n, const char *type_id, struct profile *ret,
                          struct error *err) MUST_CHECK;

/** As folded_decode(); frames that are addresses become locations with an address (ADDRESS_OBJECT). */
enum status folded_decode_addresses(const void *data, size_t n, const char *type_id, struct profile *ret,
                                    struct error *err) MUST_CHECK;

/** As folded_decode() for lines without a count, each of which counts 1 (format=lines of Pyroscope's /ingest). */
enum status folded_decode_lines(const void *data, size_t n, const char *type_id, struct profile *ret,
                                struct error *err) MUST_CHECK;

/** A frame that is an address, in one of the forms above. */
struct folded_address {
        uint64_t address;
        const char *object; /* borrowed from the frame */
        size_t object_size; /* 0: not named */
        struct build_id build_id;
};

/** False for a name; *ret is then untouched. */
bool folded_parse_address(const char *text, size_t n, struct folded_address *ret) MUST_CHECK;

/**
 * Append one line per distinct stack of one type of the profile, in the order of their first sample: every line of a
 * location is a frame, a location without lines is "0x1f2c [libfoo.so]".
 * @param sample_type  of the type ("cpu"); NULL: the type of the first sample.
 * @param root_label  a label whose value is the first frame ("comm"), NULL for none.
 */
enum status folded_encode(const struct profile *p, const char *sample_type, const char *root_label, struct buf *ret,
                          struct error *err) MUST_CHECK;

#endif
