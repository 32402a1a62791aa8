/* SPDX-License-Identifier: Apache-2.0 */
/* State of a container in the format of each engine: names that are found end within their buffers. */
#include <stdint.h>
#include <string.h>

#include "sampling/containers/container_state.h"

#define ID "3f1c2e8a9b7d6054c3f1e2d8a9b7c60543f1c2e8a9b7d6054c3f1e2d8a9b7c60"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
        if (!ok)
                __builtin_trap();
}

static void check_container_names(const struct container_names *n)
{
        require(n->name[0] && memchr(n->name, 0, sizeof n->name) != NULL);
        require(memchr(n->image, 0, sizeof n->image) && memchr(n->tag, 0, sizeof n->tag));
        require(memchr(n->compose_service, 0, sizeof n->compose_service));
        require(memchr(n->compose_project, 0, sizeof n->compose_project));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct container_names names;

        if (container_parse_docker(data, size, &names))
                check_container_names(&names);
        if (container_parse_storage(data, size, ID, &names))
                check_container_names(&names);
        if (container_parse_bundle(data, size, &names))
                check_container_names(&names);
        return 0;
}
