/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_UNIT_TEXT_H
#define CAIRN_QUERY_ENGINE_UNIT_TEXT_H

/** @file Times, durations and values as text: parsed from parameters, formatted for text answers. */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/**
 * Parse a point in time, as nanoseconds of the Unix epoch:
 * "now", "now-1h30m", "-15m" (same as now-15m), "2026-01-31",
 * "2026-01-31T12:00:00Z", "...T12:00:00.25+01:00", or a number of seconds,
 * milliseconds, microseconds or nanoseconds, distinguished by its size.
 * @return ST_USAGE; the message has the text and the accepted forms.
 * Source: RFC 3339.
 */
enum status time_text_parse(const char *text, int64_t now_unix_ns, int64_t *ret, struct error *err) MUST_CHECK;

/** Parse a positive duration: "90s", "1h30m", "7d", "250ms"; a number alone is seconds. */
enum status duration_text_parse(const char *text, int64_t *ret_ns, struct error *err) MUST_CHECK;

/**
 * Format a value with its unit: "1.23 s" for nanoseconds and other units of time, "4.5 MiB" for bytes and their
 * multiples, else "12,345". Returns out.
 */
const char *format_value(int64_t value, const char *unit, char *out, size_t size);

/** Nanoseconds of a unit of time: 1000 of "microseconds" and "us"; 0 for other units. */
double get_unit_ns(const char *unit);

/** 0 if the total is 0. */
double compute_percent(int64_t value, int64_t total);

/** The change of the share of the total between two sides, in percentage points. */
double compute_share_change(const int64_t values[2], const int64_t totals[2]);

/** Format the difference of the values of two sides with its sign and unit: "+1.23 s", "0". Returns out. */
const char *format_change(const int64_t values[2], const char *unit, char *out, size_t size);

/** Format the change of the share of the total between two sides: "+17.10 pp", "0"; "-" if a side has none.
 * Returns out. */
const char *format_share_change(const int64_t values[2], const int64_t totals[2], char *out, size_t size);

/** Format a time as "2026-01-31 12:00:00" in UTC. Returns out. */
const char *format_time_utc(int64_t unix_ns, char *out, size_t size);

#endif
