/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_TEXT_NUMBER_TEXT_H
#define CAIRN_COMMON_TEXT_NUMBER_TEXT_H

/** @file Numbers in texts of users and of other programs: each parser takes the whole text or nothing. */
#include <stdbool.h>
#include <stdint.h>

/** An unsigned integer: decimal or 0x. */
bool parse_uint(const char *text, uint64_t *ret);

struct unit {
        char letter;
        uint64_t factor;
};

/** A positive integer followed by the letter of one of the units (the last array element is zero). */
bool parse_amount(const char *text, const struct unit *units, bool unit_needed, uint64_t *ret);

/** A positive number of bytes, followed by K, M, G, T (powers of 1024) or nothing. */
bool parse_bytes(const char *text, uint64_t *ret);

/** Hexadecimal, with or without 0x. */
bool parse_hex(const char *text, uint64_t *ret);

#endif
