/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_PROGRAM_METRICS_WRITE_H
#define CAIRN_COMMON_PROGRAM_METRICS_WRITE_H

/** @file Metrics in the Prometheus text format. Source: Prometheus, text format 0.0.4. Threads: any. */
#include "common/memory/buf.h"

/** Append the label NAME="VALUE", escaped. */
void metric_label(struct buf *to, const char *name, const char *value);

/** Append all registered metrics, including histograms, to out, grouped by family. */
void metrics_write(struct buf *out);

#endif
