/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of pod lists of the Kubernetes API, and the lookup of pods by container. */
#include <string.h>

#include "common/limits.h"
#include "common/memory/buf.h"
#include "sampling/containers/pod_cache.h"
#include "tests/support/suite.h"

#define ID "3f1c2e8a9b7d6054c3f1e2d8a9b7c60543f1c2e8a9b7d6054c3f1e2d8a9b7c60"
#define ID2 "aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999"
#define UID "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
#define UID2 "11111111-4e5f-6071-8293-a4b5c6d7e8f9"
#define HASH "0123456789abcdef0123456789abcdef"

static struct pod_list parse_pods(const char *json)
{
        struct pod_list l;
        struct error err = { 0 };

        ck_assert_msg(pod_list_parse(json, strlen(json), &l, &err) == ST_OK, "%s", err.text);
        return l;
}

#define POD(metadata, status)                                                                                          \
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{"            \
        "\"metadata\":{\"uid\":\"" UID "\",\"name\":\"web-1\",\"namespace\":\"shop\"," metadata "},"                   \
        "\"spec\":{\"nodeName\":\"node-7\",\"containers\":[{\"name\":\"unused\"}]},\"status\":{" status "}}]}"
#define OWNER(kind, name)                                                                                              \
        "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"" kind "\",\"name\":\"" name "\",\"controller\":true}" \
        "]"

START_TEST(containers_of_every_runtime_are_found)
{
        static const char *const schemes[] = { "containerd", "docker", "cri-o" };

        for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
                _cleanup_pod_list_ struct pod_list l = { 0 };
                struct pod_match m;
                char json[2000];

                snprintf(json, sizeof json,
                         POD("\"labels\":null",
                             "\"containerStatuses\":[{\"name\":\"nginx\",\"containerID\":\"%s://" ID "\"}]"),
                         schemes[i]);
                l = parse_pods(json);
                m = pod_list_find(&l, ID, "");
                ck_assert_ptr_nonnull(m.pod);
                ck_assert_str_eq(m.container, "nginx");
                ck_assert_str_eq(pod_get_field(m.pod, POD_NAMESPACE), "shop");
                ck_assert_str_eq(pod_get_field(m.pod, POD_NAME), "web-1");
                ck_assert_str_eq(pod_get_field(m.pod, POD_NODE), "node-7");
                m = pod_list_find(&l, ID2, UID);
                ck_assert_ptr_nonnull(m.pod);
                ck_assert_str_eq(m.container, "");
                ck_assert_ptr_null(pod_list_find(&l, ID2, UID2).pod);
                ck_assert_ptr_null(pod_list_find(&l, "", "").pod);
        }
}
END_TEST

START_TEST(init_ended_and_restarted_containers_are_found)
{
        _cleanup_pod_list_ struct pod_list l = parse_pods(
                POD("\"labels\":{}",
                    "\"containerStatuses\":[{\"name\":\"app\",\"containerID\":\"containerd://"
                    "now\",\"lastState\":{\"terminated\":"
                    "{\"exitCode\":1,\"containerID\":\"containerd://before\"}}}],"
                    "\"initContainerStatuses\":[{\"name\":\"init\",\"state\":{\"terminated\":{\"containerID\":"
                    "\"containerd://init\"}}}],"
                    "\"ephemeralContainerStatuses\":[{\"name\":\"debug\",\"containerID\":\"containerd://debug\"}]"));
        static const char *const expected[][2] = {
                { "now", "app" }, { "before", "app" }, { "init", "init" }, { "debug", "debug" }
        };

        for (size_t i = 0; i < 4; i++)
                ck_assert_str_eq(pod_list_find(&l, expected[i][0], "").container, expected[i][1]);
}
END_TEST

START_TEST(static_pod_is_found_by_manifest_hash)
{
        _cleanup_pod_list_ struct pod_list l = parse_pods(POD("\"annotations\":{\"kubernetes.io/config.hash\":\"" HASH
                                                              "\",\"kubernetes.io/config.mirror\":\"x\"}",
                                                              ""));

        ck_assert_ptr_nonnull(pod_list_find(&l, "", HASH).pod);
        ck_assert_ptr_nonnull(pod_list_find(&l, "", UID).pod);
}
END_TEST

START_TEST(workload_is_derived_from_owner)
{
        static const struct {
                const char *metadata, *deployment, *kind, *name;
        } cases[] = {
                { "\"labels\":{\"pod-template-hash\":\"7d4b9c8f6d\"}," OWNER("ReplicaSet", "web-front-7d4b9c8f6d"),
                  "web-front", "ReplicaSet", "web-front-7d4b9c8f6d" },
                { OWNER("ReplicaSet", "web-7d4b9c8f6d"), "web", "ReplicaSet", "web-7d4b9c8f6d" },
                { OWNER("ReplicaSet", "web-frontend"), "", "ReplicaSet", "web-frontend" }, /* vowels: not a hash */
                { "\"labels\":{\"pod-template-hash\":\"abc\"}," OWNER("ReplicaSet", "web-7d4b9c8f6d"), "", "ReplicaSet",
                  "web-7d4b9c8f6d" },
                { OWNER("ReplicaSet", "-7d4b9c8f6d"), "", "ReplicaSet", "-7d4b9c8f6d" },
                { OWNER("StatefulSet", "db"), "", "StatefulSet", "db" },
                { OWNER("DaemonSet", "logs-7d4b9c8f6d"), "", "DaemonSet", "logs-7d4b9c8f6d" },
                { OWNER("Job", "backup-29012345"), "", "Job", "backup-29012345" },
                { OWNER("Job", "backup-29012345"), "", "CronJob", "backup" },
                { OWNER("Job", "backup-2"), "", "CronJob", "" },
                { OWNER("Job", "-29012345"), "", "CronJob", "" },
                { "\"ownerReferences\":[{\"kind\":\"Other\",\"name\":\"o\"},{\"kind\":\"StatefulSet\",\"name\":\"db\","
                  "\"controller\":true}]",
                  "", "StatefulSet", "db" },
                { "\"ownerReferences\":null", "", "StatefulSet", "" },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                _cleanup_pod_list_ struct pod_list l = { 0 };
                char json[2000], name[256];

                snprintf(json, sizeof json, "{\"items\":[{\"metadata\":{\"uid\":\"" UID "\",%s}}]}", cases[i].metadata);
                l = parse_pods(json);
                ck_assert_uint_eq(l.count, 1);
                ck_assert_str_eq(pod_get_field(l.pods[0], POD_DEPLOYMENT), cases[i].deployment);
                ck_assert_str_eq(pod_get_workload(l.pods[0], cases[i].kind, name, sizeof name), cases[i].name);
        }
}
END_TEST

START_TEST(app_is_first_of_three_labels)
{
        static const char *const cases[][2] = {
                { "{\"k8s-app\":\"c\",\"app\":\"b\",\"app.kubernetes.io/name\":\"a\"}", "a" },
                { "{\"k8s-app\":\"c\",\"app\":\"b\",\"app.kubernetes.io/name\":\"\"}", "b" },
                { "{\"k8s-app\":\"\\u0063\"}", "c" },
                { "{\"app\":7,\"other\":\"x\"}", "" },
                { "null", "" },
                { "[]", "" },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                _cleanup_pod_list_ struct pod_list l = { 0 };
                char json[2000];

                snprintf(json, sizeof json, "{\"items\":[{\"metadata\":{\"uid\":\"u\",\"labels\":%s}}]}", cases[i][0]);
                l = parse_pods(json);
                ck_assert_str_eq(pod_get_field(l.pods[0], POD_APP), cases[i][1]);
        }
}
END_TEST

START_TEST(other_responses_are_errors_and_malformed_members_ignored)
{
        static const char *const wrong[] = {
                "",     "[]", "{}", "{\"kind\":\"Status\",\"status\":\"Failure\"}", "{\"items\":[", "{\"items\":[]} x",
                "null",
        };
        static const char *const odd[] = {
                "{\"items\":null}",
                "{\"items\":[1,null,\"x\",{}]}",
                "{\"items\":[{\"metadata\":1,\"spec\":[],\"status\":null}]}",
                "{\"items\":[{\"metadata\":{\"uid\":\"nul\\u0000\"}}]}",
        };

        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                struct pod_list l;

                ck_assert_int_eq(pod_list_parse(wrong[i], strlen(wrong[i]), &l, NULL), ST_BAD_DATA);
        }
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
                _cleanup_pod_list_ struct pod_list l = parse_pods(odd[i]);

                ck_assert_uint_eq(l.count, 0);
        }
}
END_TEST

/* An answer is as large as LIMIT_KUBERNETES_LIST_BYTES: depth must not cost stack, nor repetition memory. */
START_TEST(nested_and_repeated_values_are_bounded)
{
        static const struct {
                const char *start, *repeated;
        } cases[] = {
                { "{\"items\":[", "[" },
                { "{\"items\":[{\"metadata\":", "{\"labels\":" },
                { "{\"items\":[{\"status\":{\"containerStatuses\":[{\"state\":", "{\"terminated\":" },
                { "{\"items\":[{\"metadata\":{", "\"labels\":{\"a\":\"b\"}," },
                { "{\"items\":[", "{\"metadata\":{}}," },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                _cleanup_buf_ struct buf json;
                struct pod_list l;

                buf_init(&json, LIMIT_KUBERNETES_LIST_BYTES);
                buf_append_str(&json, cases[i].start);
                for (unsigned n = 0; n < 100000; n++)
                        buf_append_str(&json, cases[i].repeated);
                ck_assert_int_eq(json.failed, ST_OK);
                ck_assert_int_eq(pod_list_parse(json.data, json.size, &l, NULL), ST_BAD_DATA);
        }
}
END_TEST

START_TEST(pods_over_limit_are_dropped_and_counted)
{
        _cleanup_pod_list_ struct pod_list l = { 0 };
        _cleanup_buf_ struct buf json;
        struct error err;

        buf_init(&json, MiB(4));
        buf_append_str(&json, "{\"items\":[{\"metadata\":{\"uid\":\"big\",\"labels\":{");
        for (int i = 0; i < 100; i++)
                buf_printf(&json, "%s\"label%d\":\"%01000d\"", i ? "," : "", i, i);
        buf_append_str(&json, "}}}");
        for (int i = 0; i <= LIMIT_KUBERNETES_PODS; i++)
                buf_printf(&json, ",{\"metadata\":{\"uid\":\"u%d\",\"labels\":{\"a\":\"b\"}}}", i);
        buf_append_str(&json, "]}");
        ck_assert_int_eq(pod_list_parse(json.data, json.size, &l, &err), ST_OK);
        ck_assert_uint_eq(l.count, LIMIT_KUBERNETES_PODS);
        ck_assert_uint_eq(l.left_out, 2);
        ck_assert_ptr_null(pod_list_find(&l, "", "big").pod);
        ck_assert_ptr_nonnull(pod_list_find(&l, "", "u0").pod);
}
END_TEST

START_TEST(reference_keeps_pod_after_list_is_replaced)
{
        struct pod_list l = parse_pods(POD("\"labels\":{\"app\":\"a\"}", ""));
        struct pod *pod = pod_acquire(pod_list_find(&l, "", UID).pod);

        pod_list_deinit(&l);
        ck_assert_str_eq(pod_get_field(pod, POD_APP), "a");
        ck_assert_uint_eq(pod->label_count, 1);
        ck_assert_str_eq(pod_get_text(pod, pod->labels[0].key), "app");
        pod_release(pod);
        pod_release(NULL);
}
END_TEST

TEST_SUITE("agent_pods", containers_of_every_runtime_are_found, init_ended_and_restarted_containers_are_found,
           static_pod_is_found_by_manifest_hash, workload_is_derived_from_owner, app_is_first_of_three_labels,
           other_responses_are_errors_and_malformed_members_ignored, nested_and_repeated_values_are_bounded,
           pods_over_limit_are_dropped_and_counted, reference_keeps_pod_after_list_is_replaced)
