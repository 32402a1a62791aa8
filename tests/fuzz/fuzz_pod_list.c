/* SPDX-License-Identifier: Apache-2.0 */
/* A list of pods as a response of an API server: every key finds a pod, and all texts are UTF-8. */
#include <string.h>

#include "common/limits.h"
#include "common/text/utf8.h"
#include "sampling/containers/pod_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
        if (!ok)
                __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct pod_list l;
        char name[64];

        if (pod_list_parse(data, size, &l, NULL))
                return 0;
        require(l.count <= LIMIT_KUBERNETES_PODS);
        for (size_t i = 0; i < l.count; i++) {
                const struct pod *p = l.pods[i];

                for (int field = 0; field < POD_TEXT_COUNT; field++) {
                        const char *text = pod_get_field(p, (enum pod_text)field);

                        require(utf8_valid(text, strlen(text)));
                }
                require(p->label_count <= LIMIT_KUBERNETES_POD_LABELS &&
                        p->container_count <= LIMIT_KUBERNETES_CONTAINERS);
                require(strlen(pod_get_workload(p, "CronJob", name, sizeof name)) < sizeof name);
                require(pod_list_find(&l, "", pod_get_field(p, POD_UID)).pod != NULL);
                for (size_t c = 0; c < p->container_count; c++)
                        require(pod_list_find(&l, pod_get_text(p, p->containers[c].id), "").pod != NULL);
        }
        pod_list_deinit(&l);
        return 0;
}
