/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock first, then the seccomp filter, which is sufficient without it (seccomp.c). */
#include <assert.h>
#include <sys/prctl.h>

#include "sandbox/confine_internal.h"
#include "sandbox/landlock.h"
#include "sandbox/mount_namespace.h"
#include "sandbox/sanitizers.h"
#include "sandbox/seccomp.h"
#include "sandbox/worker.h"
#include "sandbox/worker_user.h"

static enum status confine_worker(enum worker_needs needs, const struct worker_files *files, int abi_max,
                                  struct error *err)
{
        enum status st = ST_OK;

        if (!BUILT_WITH_SANITIZER) {
                if (needs == WORKER_NEEDS_NETWORK && (abi_max == 0 || landlock_version() == 0))
                        mount_namespace_enter(files);
                worker_user_drop_capabilities();
                prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* other processes of its uid cannot trace it */
                st = landlock_restrict(needs, files, abi_max, err);
        }
        return st ? st : seccomp_restrict(needs, files != NULL, err);
}

enum status confine_with_landlock_abi(enum worker_needs needs, int abi_max, struct error *err)
{
        return confine_worker(needs, NULL, abi_max, err);
}

enum status confine_files_with_landlock_abi(const struct worker_files *files, int abi_max, struct error *err)
{
        return confine_worker(WORKER_NEEDS_NETWORK, files, abi_max, err);
}

enum status worker_confine(enum worker_needs needs, struct error *err)
{
        return confine_worker(needs, NULL, LANDLOCK_ABI_NEWEST, err);
}

enum status worker_confine_with_files(const struct worker_files *files, struct error *err)
{
        assert(files);
        return confine_worker(WORKER_NEEDS_NETWORK, files, LANDLOCK_ABI_NEWEST, err);
}
