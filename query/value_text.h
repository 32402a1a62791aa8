/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_VALUE_TEXT_H
#define CAIRN_QUERY_VALUE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/** A value for people: "1.23 s" for nanoseconds, "4.5 MiB" for bytes, "12,345" for everything else. Returns out. */
const char *value_text(int64_t value, const char *unit, char *out, size_t size);

/** "2026-01-31 12:00:00" in UTC. Returns out. */
const char *time_utc_text(int64_t unix_ns, char *out, size_t size);

#endif
