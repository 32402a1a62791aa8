/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/disk_storage.h"

#include "storage/local_storage.h"

struct storage *disk_storage(void)
{
        static struct storage *disk;

        if (!disk && local_storage_open("/", &disk, NULL))
                abort();
        return disk;
}
