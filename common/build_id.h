/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_BUILD_ID_H
#define CAIRN_COMMON_BUILD_ID_H

/**
 * @file
 * The identity of one ELF file.
 *
 * A GNU build-id is kept as raw bytes. A Go build-id is text; it is always reduced to 20 bytes by the same hash, so
 * that an object has one spelling. An OTLP htlhash is 16 raw bytes.
 *
 * A placeholder is not an identity, since different files have it: zeros, which some build systems write to fill in
 * later (perf takes them for no build-id), or fewer than three bytes (elfutils finds no file by these). Readers of
 * files and profiles take it for no build-id, and no object is stored under it. Source: ELF note NT_GNU_BUILD_ID; Go
 * note type 4.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUILD_ID_MAX 64
#define BUILD_ID_MIN 3 /* shorter ones are placeholders */
#define BUILD_ID_HEX_MAX (2 * BUILD_ID_MAX + 1)

struct build_id {
        uint8_t size; /* 0 means unknown */
        uint8_t bytes[BUILD_ID_MAX];
};

extern const struct build_id unknown_build_id; /* size 0 */

/** False when n is 0 or over BUILD_ID_MAX. */
bool build_id_from_bytes(struct build_id *ret, const void *bytes, size_t n);

/** Upper or lower case hex of even length, 2 to 128 digits. */
bool build_id_from_hex(struct build_id *ret, const char *hex, size_t n);

/** False when the text is empty or over 256 bytes. */
bool build_id_from_go(struct build_id *ret, const char *text, size_t n);

/** Lower-case hex into out; returns out. */
const char *build_id_hex(const struct build_id *id, char out[static BUILD_ID_HEX_MAX]);

/** False for an unknown one. */
bool build_id_is_placeholder(const struct build_id *id);

/** For messages, after the name of the file. */
#define BUILD_ID_PLACEHOLDER_TEXT                                                                                      \
        "the build-id of the file is a placeholder, which other files have too; link it with --build-id"

bool build_id_equal(const struct build_id *a, const struct build_id *b);
int build_id_compare(const struct build_id *a, const struct build_id *b); /* memcmp order, shorter first on a tie */

#endif
