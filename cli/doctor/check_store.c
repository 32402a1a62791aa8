/* SPDX-License-Identifier: Apache-2.0 */
/* The object store of the service: whether its keys work, and whether it keeps the promises that commits rely on. */
#include <stdlib.h>

#include "cli/doctor/doctor_checks.h"
#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "profile-store/tables/table_storage.h"
#include "storage/s3/s3_storage.h"
#include "storage/storage_probe.h"

#define CLOCK_OFF_MS 300000 /* stores refuse signatures that are 15 minutes off */

static const char subject[] = "object store";
static const char fix_store[] = "see \"Object storage\" in docs/operations.md";

/* Of the configuration, else the one that the data directory has its tables in; NULL without one. */
static char *find_store_url(const struct examined *x)
{
        _cleanup_free_ char *profiles = x->data ? path_join(x->data, "profiles") : NULL;
        char *url = NULL;

        if (x->settings && x->settings->server.store)
                return strdup(x->settings->server.store);
        return profiles && get_table_location(profiles, &url, NULL) == ST_OK ? url : NULL;
}

static void report_probe(const char *url, const struct storage_probe *p, struct findings *f)
{
        bool is_off = p->ahead_ms > CLOCK_OFF_MS || p->ahead_ms < -CLOCK_OFF_MS;

        if (!p->has_ranges || !p->reads_own_writes || !p->lists_own_writes)
                report_finding(f, FINDING_ERROR, subject, "use another store", "%s cannot hold tables: %s", url,
                               p->has_ranges ? "what was written or removed is not read or listed at once"
                                             : "it does not answer ranges of objects");
        if (storage_lacks_conditional_put(p))
                report_finding(f, FINDING_WARNING, subject, "let one service alone write there, or use another store",
                               "%s does not refuse to replace objects: of %d racing creates of one key %u succeeded",
                               url, STORAGE_PROBE_RACERS, p->created);
        if (is_off)
                report_finding(f, FINDING_WARNING, subject, "synchronize the clock of this host",
                               "the clock of %s is %+.1f s from this host's", url, (double)p->ahead_ms / 1000);
        if (p->has_ranges && p->reads_own_writes && p->lists_own_writes && !storage_lacks_conditional_put(p) && !is_off)
                report_finding(f, FINDING_OK, subject, "", "%s: of %d racing creates of one key %u succeeded", url,
                               STORAGE_PROBE_RACERS, p->created);
}

void check_object_store(const struct examined *x, struct findings *f)
{
        _cleanup_free_ char *url = find_store_url(x);
        char scratch[] = "/tmp/cairn-doctor-XXXXXX";
        const struct s3_storage_options options = { .cache_dir = scratch, .cache_bytes = MiB(1) };
        struct storage *storage = NULL;
        struct storage_probe probe;
        struct error err;
        enum status st = ST_OK;

        if (!url)
                return;
        if (!mkdtemp(scratch)) {
                report_finding(f, FINDING_ERROR, subject, "", "cannot create a directory in /tmp");
                return;
        }
        st = s3_storage_open(url, &options, &storage, &err);
        if (!st)
                st = storage_run_probe(storage, &probe, &err);
        if (st)
                report_finding(f, FINDING_ERROR, subject, fix_store, "cannot use %s: %s", url, err.text);
        else
                report_probe(url, &probe, f);
        storage_close(storage);
        (void)!file_remove_tree(scratch, NULL);
}
