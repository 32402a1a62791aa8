/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_STORE_PROBE_H
#define CAIRN_SERVER_CORE_STORE_PROBE_H

/**
 * @file
 * Whether an object store can hold tables: the probe of storage/storage_probe.h, whose some 50 requests are made once a
 * day for all services of a store. The object "probe/passed" tells the others, with the store's address, since a copy
 * of the objects may be elsewhere, and the time by the store's clock.
 */
#include "storage/storage.h"

/**
 * Probe the store unless it passed within a day; then only write to it. A warning is logged if it does not refuse to
 * replace objects; such a store is probed at each start.
 * @param context  ignored: the type is that of check_tables in profile-store/profile_store.h.
 * @return ST_OK also for local files; ST_UNSUPPORTED if it cannot hold tables.
 */
enum status store_probe_require(void *context, struct storage *tables, struct error *err) MUST_CHECK;

#endif
