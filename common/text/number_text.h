/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_TEXT_NUMBER_TEXT_H
#define CAIRN_COMMON_TEXT_NUMBER_TEXT_H

/** @file Numbers in texts of users and of other programs: each parser takes the whole text or nothing. */
#include <stdbool.h>
#include <stdint.h>

/** An unsigned integer: decimal or 0x. */
bool parse_uint(const char *text, uint64_t *ret);

/** A positive number of bytes, followed by K, M, G, T (powers of 1024) or nothing. */
bool parse_bytes(const char *text, uint64_t *ret);

/** A positive number followed by s, m, h, d, w or y (365 d), in seconds. */
bool parse_age(const char *text, uint64_t *seconds_ret);

#define NUMBER_TEXT_SIZE 24
/** The shortest text that parse_bytes() or parse_age() reads as this value; "0" for 0. Returns out. */
const char *format_bytes(uint64_t bytes, char out[static NUMBER_TEXT_SIZE]);
const char *format_age(uint64_t seconds, char out[static NUMBER_TEXT_SIZE]);

#define COUNTED_SIZE 128
/** A number of things for a message: "1 batch", "2 batches". Returns out. */
const char *format_counted(uint64_t n, const char *one, const char *many, char out[static COUNTED_SIZE]);
#define COUNTED(n, one, many) format_counted((uint64_t)(n), (one), (many), (char[COUNTED_SIZE]){ 0 })

/** Hexadecimal, with or without 0x. */
bool parse_hex(const char *text, uint64_t *ret);

#endif
