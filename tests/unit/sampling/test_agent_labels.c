/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing /proc/PID/cgroup of each container runtime, exclusion of processes by cgroup and name, and selection of
 * labels.
 */
#include <string.h>

#include "sampling/processes/process_labels.h"
#include "sampling/processes/process_filter.h"
#include "tests/support/suite.h"

#define ID "3f1c2e8a9b7d6054c3f1e2d8a9b7c60543f1c2e8a9b7d6054c3f1e2d8a9b7c60"
#define ID2 "aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999"
#define UID "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
#define UID_ "0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9"
#define HASH "0123456789abcdef0123456789abcdef"

static const struct {
        const char *what, *text;
        const char *container, *pod, *unit, *slice, *path;
} CASES[] = {
        { "a root process", "0::/\n", "", "", "", "", "" },
        { "systemd service, v2", "0::/system.slice/cron.service\n", "", "", "cron.service", "system.slice",
          "/system.slice/cron.service" },
        { "instance in a slice of its own, v2", "0::/system.slice/system-getty.slice/getty@tty1.service\n", "", "",
          "getty@tty1.service", "system-getty.slice", "/system.slice/system-getty.slice/getty@tty1.service" },
        { "login session, v1",
          "12:cpuset:/\n4:memory:/user.slice/user-1000.slice/session-3.scope\n"
          "1:name=systemd:/user.slice/user-1000.slice/session-3.scope\n0::/user.slice/user-1000.slice/"
          "session-3.scope\n",
          "", "", "session-3.scope", "user-1000.slice", "/user.slice/user-1000.slice/session-3.scope" },
        { "service of a user's manager", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/dbus.service\n",
          "", "", "dbus.service", "app.slice", "/user.slice/user-1000.slice/user@1000.service/app.slice/dbus.service" },
        { "v1, systemd's hierarchy wins over the others",
          "11:memory:/longer/than/the/other/path\n1:name=systemd:/system.slice/ssh.service\n0::/\n", "", "",
          "ssh.service", "system.slice", "/system.slice/ssh.service" },
        { "v1 without systemd", "3:cpu:/\n2:memory:/batch/jobs/77\n0::/\n", "", "", "", "", "/batch/jobs/77" },

        { "docker, cgroupfs, v1",
          "12:pids:/docker/" ID "\n5:cpu,cpuacct:/docker/" ID "\n1:name=systemd:/docker/" ID
          "\n0::/system.slice/containerd.service\n",
          ID, "", "containerd.service", "system.slice", "/system.slice/containerd.service" },
        { "docker, systemd, v2", "0::/system.slice/docker-" ID ".scope\n", ID, "", "", "system.slice",
          "/system.slice/docker-" ID ".scope" },
        { "rootless docker", "0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope\n", ID,
          "", "user@1000.service", "user.slice",
          "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope" },
        { "docker in docker", "0::/docker/" ID "/docker/" ID2 "\n", ID2, "", "", "", "/docker/" ID "/docker/" ID2 },
        { "containerd (nerdctl), systemd", "0::/system.slice/nerdctl-" ID ".scope\n", ID, "", "", "system.slice",
          "/system.slice/nerdctl-" ID ".scope" },
        { "containerd, cgroupfs", "0::/default/" ID "\n", ID, "", "", "", "/default/" ID },
        { "ECS", "9:memory:/ecs/cluster/0123456789abcdef0123456789abcdef/" ID "\n", ID, "", "", "",
          "/ecs/cluster/0123456789abcdef0123456789abcdef/" ID },

        { "ECS on Fargate", "0::/ecs/" HASH "/" HASH "-1234567890\n", HASH "-1234567890", "", "", "",
          "/ecs/" HASH "/" HASH "-1234567890" },
        { "Garden", "8:memory:/system.slice/garden.service/garden/6f265890-5165-7fab-6b52-18d1\n",
          "6f265890-5165-7fab-6b52-18d1", "", "garden.service", "system.slice",
          "/system.slice/garden.service/garden/6f265890-5165-7fab-6b52-18d1" },
        { "Garden without systemd", "8:memory:/garden/6f265890-5165-7fab-6b52-18d1\n", "6f265890-5165-7fab-6b52-18d1",
          "", "", "", "/garden/6f265890-5165-7fab-6b52-18d1" },
        { "a directory like a container of Garden, elsewhere", "0::/jobs/6f265890-5165-7fab-6b52-18d1\n", "", "", "",
          "", "/jobs/6f265890-5165-7fab-6b52-18d1" },
        { "a Fargate id with a letter too many", "0::/ecs/" HASH "-12x\n", "", "", "", "", "/ecs/" HASH "-12x" },

        { "Kubernetes, containerd, systemd driver, v2",
          "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID
          ".scope\n",
          ID, UID, "", "kubepods-burstable.slice",
          "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID ".scope" },
        { "Kubernetes, guaranteed pod, systemd driver",
          "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n", ID, UID, "", "kubepods.slice",
          "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope" },
        { "Kubernetes, containerd, cgroupfs driver, v1",
          "11:memory:/kubepods/besteffort/pod" UID "/" ID "\n1:name=systemd:/kubepods/besteffort/pod" UID "/" ID "\n",
          ID, UID, "", "", "/kubepods/besteffort/pod" UID "/" ID },
        { "Kubernetes, guaranteed pod, cgroupfs driver", "0::/kubepods/pod" UID "/" ID "\n", ID, UID, "", "",
          "/kubepods/pod" UID "/" ID },
        { "Kubernetes, containerd told of a systemd cgroup but using cgroupfs",
          "1:name=systemd:/system.slice/containerd.service/kubepods-besteffort-pod" UID_ ".slice:cri-containerd:" ID
          "\n",
          ID, UID, "containerd.service", "system.slice",
          "/system.slice/containerd.service/kubepods-besteffort-pod" UID_ ".slice:cri-containerd:" ID },
        { "Kubernetes, static pod, systemd driver",
          "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" HASH ".slice/crio-" ID
          ".scope/container\n",
          ID, HASH, "", "kubepods-burstable.slice",
          "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" HASH ".slice/crio-" ID ".scope/container" },
        { "Kubernetes, static pod, cgroupfs driver", "0::/kubepods/burstable/pod" HASH "/" ID "\n", ID, HASH, "", "",
          "/kubepods/burstable/pod" HASH "/" ID },
        { "kind: Kubernetes inside of docker",
          "0::/docker/" ID2 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
          "kubelet-kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" ID ".scope\n",
          ID, UID, "", "kubelet-kubepods-besteffort.slice",
          "/docker/" ID2 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
          "kubelet-kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" ID ".scope" },
        { "CRI-O's keeper of a container is in none",
          "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/crio-conmon-" ID ".scope\n",
          "", UID, "", "kubepods-burstable.slice",
          "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/crio-conmon-" ID ".scope" },
        { "an agent in a pod of its own cgroup namespace sees its neighbours",
          "0::/../../kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID ".scope\n", ID, UID, "", "",
          "/kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID ".scope" },

        { "podman, systemd", "0::/machine.slice/libpod-" ID ".scope/container\n", ID, "", "", "machine.slice",
          "/machine.slice/libpod-" ID ".scope/container" },
        { "rootless podman", "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope\n", ID,
          "", "user@1000.service", "user.slice",
          "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope" },
        { "podman, cgroupfs", "0::/libpod_parent/libpod-" ID "\n", ID, "", "", "", "/libpod_parent/libpod-" ID },
        { "podman, a pod", "0::/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope\n", ID, "", "",
          "machine-libpod_pod_" ID2 ".slice", "/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope" },
        { "podman's keeper of a container is in none", "0::/machine.slice/libpod-conmon-" ID ".scope\n", "", "", "",
          "machine.slice", "/machine.slice/libpod-conmon-" ID ".scope" },

        { "systemd-nspawn", "0::/machine.slice/systemd-nspawn@web.service/payload\n", "web", "", "", "machine.slice",
          "/machine.slice/systemd-nspawn@web.service/payload" },
        { "a service inside of systemd-nspawn",
          "0::/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service\n", "web", "",
          "nginx.service", "system.slice",
          "/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service" },
        { "a machine whose name has a dash", "0::/machine.slice/machine-build\\x2dbox.scope/payload\n", "build-box", "",
          "", "machine.slice", "/machine.slice/machine-build\\x2dbox.scope/payload" },
        { "LXC, v2", "0::/lxc.payload.db1/system.slice/mariadb.service\n", "db1", "", "mariadb.service", "system.slice",
          "/lxc.payload.db1/system.slice/mariadb.service" },
        { "LXC, v1", "4:memory:/lxc/db1\n1:name=systemd:/lxc/db1/init.scope\n", "db1", "", "init.scope", "",
          "/lxc/db1/init.scope" },

        { "63 digits are no container", "0::/docker/3f1c2e8a9b7d6054c3f1e2d8a9b7c60543f1c2e8a9b7d6054c3f1e2d8a9b7c6\n",
          "", "", "", "", "/docker/3f1c2e8a9b7d6054c3f1e2d8a9b7c60543f1c2e8a9b7d6054c3f1e2d8a9b7c6" },
        { "a word that ends in pod is no pod", "0::/tripod" UID "\n", "", "", "", "", "/tripod" UID },
        { "a colon in a path", "0::/a:b/c\n", "", "", "", "", "/a:b/c" },
        { "no text at all", "", "", "", "", "", "" },
        { "lines without a path", "0::\nnonsense\n::::\n:\n", "", "", "", "", "" },
};

START_TEST(cgroups_of_every_runtime_are_parsed)
{
        for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
                struct cgroup_names names;

                cgroup_parse(CASES[i].text, strlen(CASES[i].text), &names);
#define SAME(field)                                                                                                    \
        ck_assert_msg(strcmp(names.field, CASES[i].field) == 0, "%s: " #field " is '%s'", CASES[i].what, names.field)
                SAME(container);
                SAME(pod);
                SAME(unit);
                SAME(slice);
                SAME(path);
        }
}
END_TEST

START_TEST(truncated_cgroup_text_is_not_overread)
{
        for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
                size_t size = strlen(CASES[i].text);

                for (size_t n = 0; n < size; n++) {
                        char *cut =
                                strndup(CASES[i].text,
                                        n); /* an allocation of its own, so that AddressSanitizer detects overreads */
                        struct cgroup_names names;

                        ck_assert_ptr_nonnull(cut);
                        cgroup_parse(cut, n, &names);
                        ck_assert_uint_lt(strlen(names.path), CGROUP_PATH_SIZE);
                        free(cut);
                }
        }
}
END_TEST

START_TEST(names_over_the_limit_are_omitted)
{
        char text[3000] = "0::/";
        struct cgroup_names names;

        memset(text + 4, 'u', 2000);
        memcpy(text + 2004, ".service/deep.slice\n", 21);
        cgroup_parse(text, strlen(text), &names);
        ck_assert_str_eq(names.path, "");
        ck_assert_str_eq(names.unit, "");
        ck_assert_str_eq(names.slice, "deep.slice");
}
END_TEST

/* ---- selection ------------------------------------------------------------------ */

static struct option_list list(const char **items, size_t count)
{
        return (struct option_list){ items, count };
}

#define LIST(...) list((const char *[]){ __VA_ARGS__ }, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *))

static struct cgroup_names cgroup(const char *path)
{
        struct cgroup_names ret = { 0 };

        snprintf(ret.path, sizeof ret.path, "%s", path);
        return ret;
}

START_TEST(no_process_is_excluded_without_patterns)
{
        struct process_filter s = { 0 };
        struct cgroup_names c = cgroup("/x");

        ck_assert(!process_filter_is_active(&s));
        ck_assert(!process_filter_excludes(&s, "any", &c));
}
END_TEST

START_TEST(processes_are_excluded_by_name)
{
        struct process_filter s = { .exclude_process = LIST("ps", "kwork*") };
        struct cgroup_names c = { 0 };

        ck_assert(process_filter_is_active(&s));
        ck_assert(process_filter_excludes(&s, "ps", &c));
        ck_assert(process_filter_excludes(&s, "kworker/0:1", &c)); /* '*' matches the slash */
        ck_assert(!process_filter_excludes(&s, "postgres", &c));
        s = (struct process_filter){ .only_process = LIST("postgres", "redis*"), .exclude_process = LIST("redis-cli") };
        ck_assert(!process_filter_excludes(&s, "postgres", &c));
        ck_assert(!process_filter_excludes(&s, "redis-server", &c));
        ck_assert(process_filter_excludes(&s, "redis-cli", &c));
        ck_assert(process_filter_excludes(&s, "nginx", &c));
}
END_TEST

START_TEST(processes_are_excluded_by_cgroup)
{
        struct process_filter s = { .exclude_cgroup = LIST("cron.service", "docker-*", "/a/*/c") };
        struct cgroup_names cron = cgroup("/system.slice/cron.service"),
                            docker = cgroup("/system.slice/docker-" ID ".scope");
        struct cgroup_names abc = cgroup("/a/b/c"), ab = cgroup("/a/b"), root = cgroup("");

        ck_assert(process_filter_excludes(&s, "x", &cron));
        ck_assert(process_filter_excludes(&s, "x", &docker));
        ck_assert(process_filter_excludes(&s, "x", &abc));
        ck_assert(!process_filter_excludes(&s, "x", &ab));
        ck_assert(!process_filter_excludes(&s, "x", &root));
        s = (struct process_filter){ .only_cgroup = LIST("system.slice") };
        ck_assert(!process_filter_excludes(&s, "x", &cron));
        ck_assert(process_filter_excludes(&s, "x", &ab));
        ck_assert(process_filter_excludes(&s, "x", &root)); /* also of a process that has ended */
}
END_TEST

/* ---- labels ----------------------------------------------------------------------- */

/* "key=value key=value ..." of a process in a pod, which published these labels. */
static const char *labels_with_context(const struct label_options *o, const struct context_label *context, size_t count)
{
        static char text[4096];
        static struct process p = { .name = "postgres" };
        static struct proc_mapping mappings[] = { { .path = "/usr/lib/libc.so.6" },
                                                  { .path = "/usr/lib/postgresql/15/bin/postgres" } };
        static const struct object library = { .build_id = { .size = 2, .bytes = { 1, 2 } } },
                                   program = { .build_id = { .size = 2, .bytes = { 0xab, 0xcd } } };
        static const struct object *objects[] = { &library, &program };
        const struct sample_key key = { .process = { .tgid = 4711 }, .comm = "exactly16letters" };
        struct labels l;
        struct sample_label_set got;
        struct error err;
        size_t at = 0;

        p.executable = strdup("/usr/lib/postgresql/15/bin/postgres");
        p.maps = (struct proc_maps){ .items = mappings, .count = 2 };
        p.objects = objects;
        cgroup_parse(CASES[19].text, strlen(CASES[19].text), &p.cgroup);
        ck_assert_msg(labels_init(&l, o, &err) == ST_OK, "%s", err.text);
        snprintf(l.host_name, sizeof l.host_name, "h");
        snprintf(l.host_id, sizeof l.host_id, "m");
        snprintf(l.os_version, sizeof l.os_version, "6.1");
        l.host_arch = "amd64";
        labels_collect(&l, &p, &key, "complete", &got);
        for (size_t i = 0; i < count; i++)
                labels_add_context(&l, &context[i], &got);
        labels_add_own(&l, &got);
        text[0] = 0;
        for (size_t i = 0; i < got.count; i++)
                at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s=%s", i ? " " : "",
                                       (int)got.items[i].key_size, got.items[i].key, got.items[i].value);
        free(p.executable);
        return text;
}

static const char *labels_of(const struct label_options *o)
{
        return labels_with_context(o, NULL, 0);
}

START_TEST(optional_labels_are_sent_only_on_request)
{
        ck_assert_str_eq(labels_of(&(struct label_options){ 0 }),
                         "host.name=h host.id=m host.arch=amd64 os.version=6.1 process.executable.name=postgres "
                         "process.executable.path=/usr/lib/postgresql/15/bin/postgres "
                         "process.executable.build_id.gnu=abcd service.name=postgres "
                         "thread.name=exactly16letters container.id=" ID " k8s.pod.uid=" UID
                         " systemd.slice=kubepods-burstable.slice process.linux.cgroup="
                         "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
                         ".slice/cri-containerd-" ID ".scope");
}
END_TEST

START_TEST(keys_are_kept_and_dropped_by_pattern)
{
        ck_assert_str_eq(labels_of(&(struct label_options){ .keep = LIST("k8s.*", "process.pid") }),
                         "k8s.pod.uid=" UID " process.pid=4711");
        ck_assert_str_eq(labels_of(&(struct label_options){ .keep = LIST("host.*", "thread.name"),
                                                            .drop = LIST("host.id", "*arch") }),
                         "host.name=h thread.name=exactly16letters");
        ck_assert_str_eq(labels_of(&(struct label_options){ .keep = LIST("host.name"), .with_pid = true }),
                         "host.name=h process.pid=4711");
        ck_assert_str_eq(labels_of(&(struct label_options){ .keep = LIST("host.name"), .with_stack_end = true }),
                         "host.name=h cairn.stack.end=complete");
        ck_assert_str_eq(labels_of(&(struct label_options){ .drop = LIST("*") }), "");
}
END_TEST

START_TEST(labels_of_user_take_precedence)
{
        ck_assert_str_eq(
                labels_of(&(struct label_options){ .keep = LIST("host.name", "service.name"),
                                                   .drop = LIST("host.name"),
                                                   .service_name = "db",
                                                   .own = LIST("host.name=mine", "service.name=shop", "env=a=b") }),
                "service.name=shop host.name=mine env=a=b");
}
END_TEST

/* A service stores host.name and host-name in one column, with the value of the second one. */
START_TEST(labels_of_contexts_replace_no_other_by_another_spelling)
{
        static const struct context_label context[] = {
                { "host-name", "x" },      { "K8S.Pod.UID", "x" }, { "Team", "x" },
                { "service-name", "app" }, { "http.route", "/a" }, { "http route", "/b" },
        };

        ck_assert_str_eq(labels_with_context(&(struct label_options){ .drop = LIST("process.*", "systemd.*", "thread.*",
                                                                                   "os.*", "host.id", "host.arch"),
                                                                      .own = LIST("team=a") },
                                             context, sizeof context / sizeof *context),
                         "host.name=h service.name=app container.id=" ID " k8s.pod.uid=" UID " http.route=/a team=a");
}
END_TEST

/* The context of a thread is added first. */
START_TEST(the_service_of_a_thread_replaces_that_of_its_process)
{
        static const struct context_label context[] = {
                { "service.name", "of the thread" },
                { "service.name", "of the process" },
        };
        const struct label_options o = { .keep = LIST("service.name") };

        ck_assert_str_eq(labels_with_context(&o, context, 2), "service.name=of the thread");
        ck_assert_str_eq(labels_with_context(&o, context + 1, 1), "service.name=of the process");
}
END_TEST

START_TEST(pattern_that_matches_no_key_is_refused)
{
        struct error err;

        ck_assert_int_eq(label_options_check(&(struct label_options){ .keep = LIST("host.*", "pid") }, &err), ST_USAGE);
        ck_assert_str_eq(err.text, "option '--keep-label pid' matches none of the agent's labels");
        ck_assert_int_eq(label_options_check(&(struct label_options){ .drop = LIST("Host.name") }, &err), ST_USAGE);
}
END_TEST

TEST_SUITE("agent_labels", cgroups_of_every_runtime_are_parsed, truncated_cgroup_text_is_not_overread,
           names_over_the_limit_are_omitted, no_process_is_excluded_without_patterns, processes_are_excluded_by_name,
           processes_are_excluded_by_cgroup, optional_labels_are_sent_only_on_request,
           keys_are_kept_and_dropped_by_pattern, labels_of_user_take_precedence,
           labels_of_contexts_replace_no_other_by_another_spelling,
           the_service_of_a_thread_replaces_that_of_its_process, pattern_that_matches_no_key_is_refused)
