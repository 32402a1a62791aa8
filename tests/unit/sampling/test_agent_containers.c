/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of container engines: documents as the engines write them, below a root directory of the test; labels made of
 * it; and the cache, which finds that root by the parent of a process.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "sampling/containers/cgroup.h"
#include "sampling/objects/mount_probe.h"
#include "sampling/processes/container_cache.h"
#include "sampling/processes/process_labels.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define ID "3f1c2e8a9b7d6054c3f1e2d8a9b7c60543f1c2e8a9b7d6054c3f1e2d8a9b7c60"
#define OTHER "aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999"
#define COMPOSE "\"com.docker.compose.project\":\"shop\",\"com.docker.compose.service\":\"web\""

static char dir[TEMPORARY_DIR_BYTES];

/* The directory /proc/PID of a process whose root directory is dir is dir/proc. */

/* The engine's file at a path below the root directory, whose parents are made. */
static void write_state(const char *path, const char *text)
{
        char whole[1024];
        FILE *f;

        snprintf(whole, sizeof whole, "%s%s", dir, path);
        for (char *slash = whole + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
                *slash = 0;
                (void)!mkdir(whole, 0755);
                *slash = '/';
        }
        f = fopen(whole, "w");
        ck_assert_ptr_nonnull(f);
        ck_assert_int_ge(fputs(text, f), 0);
        ck_assert_int_eq(fclose(f), 0);
}

/* "name image tag service project", "none" without state. */
static const char *state_of(const char *id, const char *bundle)
{
        static char text[1024];
        char proc[1024];
        _cleanup_close_ int proc_fd = -1;
        struct container_names n;

        snprintf(proc, sizeof proc, "%s/proc", dir);
        proc_fd = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (!container_state_read(proc_fd, id, bundle, &n))
                return "none";
        snprintf(text, sizeof text, "%s %s %s %s %s", n.name, n.image, n.tag, n.compose_service, n.compose_project);
        return text;
}

static void set_up(void)
{
        char proc[64], root[128];

        temporary_dir_create(dir, "containers");
        snprintf(proc, sizeof proc, "%s/proc", dir);
        snprintf(root, sizeof root, "%s/root", proc);
        ck_assert_int_eq(mkdir(proc, 0755), 0);
        ck_assert_int_eq(symlink(dir, root), 0);
}

static void tear_down(void)
{
        mount_probe_end();
        temporary_dir_remove(dir);
}

START_TEST(docker_container_has_name_image_and_compose_service)
{
        write_state("/var/lib/docker/containers/" ID "/config.v2.json",
                    "{\"State\":{\"Pid\":7},\"ID\":\"" ID "\",\"Config\":{\"Hostname\":\"h\",\"Image\":"
                    "\"registry:5000/shop/web:1.4@sha256:00\",\"Labels\":{" COMPOSE "}},\"Name\":\"/shop-web-1\"}");
        ck_assert_str_eq(state_of(ID, ""), "shop-web-1 registry:5000/shop/web 1.4 web shop");
        ck_assert_str_eq(state_of(OTHER, ""), "none");
}
END_TEST

START_TEST(data_root_of_docker_is_that_of_its_configuration)
{
        write_state("/etc/docker/daemon.json", "{\"debug\":true,\"data-root\":\"/srv/docker\"}");
        write_state("/srv/docker/containers/" ID "/config.v2.json",
                    "{\"Config\":{\"Image\":\"nginx\",\"Labels\":null},\"Name\":\"/front\"}");
        ck_assert_str_eq(state_of(ID, ""), "front nginx   ");
}
END_TEST

START_TEST(container_of_an_image_without_name_has_only_its_own)
{
        write_state("/var/lib/docker/containers/" ID "/config.v2.json",
                    "{\"Config\":{\"Image\":\"sha256:0011\"},\"Name\":\"/quick\"}");
        ck_assert_str_eq(state_of(ID, ""), "quick    ");
}
END_TEST

#define STORAGE(id, metadata) "{\"id\":\"" id "\",\"names\":[\"x\"],\"layer\":\"l\",\"metadata\":\"" metadata "\"}"

START_TEST(podman_and_crio_containers_are_found_in_containers_storage)
{
        write_state(
                "/var/lib/containers/storage/overlay-containers/containers.json",
                "[" STORAGE(
                        OTHER,
                        "{\\\"pod-name\\\":\\\"web-0\\\",\\\"image-name\\\":\\\"quay.io/a/b:v2\\\","
                        "\\\"name\\\":\\\"k8s_app_web-0_ns_0\\\",\\\"metadata-name\\\":\\\"app\\\"}") "," STORAGE(ID,
                                                                                                                  "{\\"
                                                                                                                  "\"im"
                                                                                                                  "age-"
                                                                                                                  "name"
                                                                                                                  "\\\""
                                                                                                                  ":\\"
                                                                                                                  "\"lo"
                                                                                                                  "calh"
                                                                                                                  "ost/"
                                                                                                                  "ston"
                                                                                                                  "es:"
                                                                                                                  "7\\"
                                                                                                                  "\","
                                                                                                                  "\\\""
                                                                                                                  "name"
                                                                                                                  "\\\""
                                                                                                                  ":\\"
                                                                                                                  "\"po"
                                                                                                                  "dweb"
                                                                                                                  "\\\""
                                                                                                                  "}") "]");
        ck_assert_str_eq(state_of(ID, ""), "podweb localhost/stones 7  ");
        ck_assert_str_eq(state_of(OTHER, ""), "app quay.io/a/b v2  ");
}
END_TEST

START_TEST(storage_of_rootless_podman_is_where_its_monitor_says)
{
        write_state(
                "/home/u/.local/share/containers/storage/overlay-containers/containers.json",
                "[" STORAGE(ID, "{\\\"image-name\\\":\\\"docker.io/library/redis:7\\\",\\\"name\\\":\\\"r\\\"}") "]");
        ck_assert_str_eq(state_of(ID, ""), "none");
        ck_assert_str_eq(state_of(ID, "/home/u/.local/share/containers/storage/overlay-containers/" ID "/userdata"),
                         "r docker.io/library/redis 7  ");
}
END_TEST

START_TEST(containerd_containers_are_named_by_annotations)
{
        write_state("/run/containerd/io.containerd.runtime.v2.task/moby/" OTHER "/config.json", "{\"annotations\":{}}");
        write_state("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
                    "{\"ociVersion\":\"1\",\"annotations\":{\"io.kubernetes.cri.container-name\":\"app\","
                    "\"io.kubernetes.cri.image-name\":\"docker.io/library/nginx:1.27\"}}");
        ck_assert_str_eq(state_of(ID, ""), "app docker.io/library/nginx 1.27  ");
        ck_assert_str_eq(state_of(OTHER, ""), "none");
        write_state("/run/containerd/io.containerd.runtime.v2.task/default/" OTHER "/config.json",
                    "{\"annotations\":{\"nerdctl/name\":\"n\"}}");
        ck_assert_str_eq(state_of(OTHER, ""), "n    ");
}
END_TEST

START_TEST(state_that_is_damaged_hostile_or_too_long_counts_as_none)
{
        static const char *const documents[] = {
                "",
                "{",
                "[]",
                "null",
                "{\"Name\":\"web\"}",
                "{\"Name\":\"/\"}",
                "{\"Name\":7}",
                "{\"Name\":\"/a\\u0000b\"}",
        };
        static char text[2000];
        char path[1024];

        for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
                write_state("/var/lib/docker/containers/" ID "/config.v2.json", documents[i]);
                ck_assert_msg(strcmp(state_of(ID, ""), "none") == 0, "%s", documents[i]);
        }
        memset(text, 'n', sizeof text - 3);
        memcpy(text, "{\"Name\":\"/", 10);
        memcpy(text + sizeof text - 3, "\"}", 3);
        write_state("/var/lib/docker/containers/" ID "/config.v2.json", text);
        ck_assert_str_eq(state_of(ID, ""), "none");
        write_state("/outside", "{\"Name\":\"/stolen\"}");
        snprintf(path, sizeof path, "%s/var/lib/docker/containers/" ID "/config.v2.json", dir);
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(mkfifo(path, 0600), 0); /* opening it would block */
        ck_assert_str_eq(state_of(ID, ""), "none");
}
END_TEST

START_TEST(labels_name_the_container_and_the_compose_service)
{
        struct container_names names = { .name = "shop-web-1",
                                         .image = "shop/web",
                                         .tag = "1.4",
                                         .compose_service = "web",
                                         .compose_project = "shop" };
        static const struct sample_key key = { .process = { .tgid = 1 }, .comm = "w" };
        struct process p = { .name = "nginx", .container = &names };
        const char *keep[] = { "container.*", "service.name" };
        const struct label_options o = { .keep = { keep, 2 } };
        struct labels l;
        struct sample_label_set got;
        struct error err;
        char text[1024] = "";

        ck_assert_msg(labels_init(&l, &o, &err) == ST_OK, "%s", err.text);
        labels_collect(&l, &p, &key, "", &got);
        labels_add_own(&l, &got);
        for (size_t i = 0; i < got.count; i++)
                snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s=%s ", (int)got.items[i].key_size,
                         got.items[i].key, got.items[i].value);
        ck_assert_str_eq(text, "service.name=web container.name=shop-web-1 container.image.name=shop/web "
                               "container.image.tags=1.4 container.label.com.docker.compose.service=web "
                               "container.label.com.docker.compose.project=shop ");
}
END_TEST

/* ---- the cache ---- */

/* A monitor, whose root directory is dir, and its child; both wait. Returns the child's id. */
static pid_t start_container(pid_t *monitor_ret)
{
        int ids[2];
        pid_t child = 0;

        ck_assert_int_eq(pipe(ids), 0);
        *monitor_ret = fork();
        if (*monitor_ret == 0) {
                if (chroot(dir) < 0)
                        _exit(1);
                child = fork();
                if (child == 0)
                        for (;;)
                                pause();
                (void)!write(ids[1], &child, sizeof child);
                for (;;)
                        pause();
        }
        close(ids[1]);
        ck_assert_msg(read(ids[0], &child, sizeof child) == sizeof child, "chroot() needs root");
        close(ids[0]);
        return child;
}

START_TEST(state_is_read_once_below_the_root_of_the_monitor)
{
        struct container_cache c;
        struct container_names names;
        struct error err;
        pid_t monitor, child = start_container(&monitor);
        _cleanup_close_ int proc_fd = -1;
        char path[32];

        write_state("/var/lib/docker/containers/" ID "/config.v2.json", "{\"Name\":\"/inner\"}");
        ck_assert_int_eq(container_cache_init(&c, &err), ST_OK);
        snprintf(path, sizeof path, "/proc/%d", child);
        proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ck_assert_int_ge(proc_fd, 0);
        ck_assert(container_cache_find(&c, proc_fd, ID, &names));
        ck_assert_str_eq(names.name, "inner");
        ck_assert(!container_cache_find(&c, proc_fd, OTHER, &names));
        ck_assert_uint_eq(c.reads_left, LIMIT_CONTAINER_READS - 2);
        ck_assert(container_cache_find(&c, proc_fd, ID, &names));
        ck_assert(!container_cache_find(&c, proc_fd, OTHER, &names));
        ck_assert_uint_eq(c.reads_left, LIMIT_CONTAINER_READS - 2);
        kill(child, SIGKILL);
        kill(monitor, SIGKILL);
        ck_assert_int_eq(waitpid(monitor, NULL, 0), monitor);
        container_cache_deinit(&c);
}
END_TEST

START_TEST(new_containers_of_a_drain_and_known_ones_are_limited)
{
        struct container_cache c;
        struct container_names names;
        struct error err;
        _cleanup_close_ int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        ck_assert_int_eq(container_cache_init(&c, &err), ST_OK);
        for (unsigned i = 0; i < LIMIT_CONTAINERS + 10; i++) {
                char id[CGROUP_CONTAINER_SIZE];

                if (i % LIMIT_CONTAINER_READS == 0)
                        container_cache_begin_drain(&c);
                snprintf(id, sizeof id, "%064x", i);
                ck_assert(!container_cache_find(&c, proc_fd, id, &names));
        }
        ck_assert_uint_eq(c.entries.count, LIMIT_CONTAINERS);
        container_cache_begin_drain(&c);
        for (unsigned i = 0; i < LIMIT_CONTAINER_READS; i++) {
                char id[CGROUP_CONTAINER_SIZE];

                snprintf(id, sizeof id, "%064x", 4 * LIMIT_CONTAINERS + i);
                (void)container_cache_find(&c, proc_fd, id, &names);
        }
        ck_assert_uint_eq(c.reads_left, 0);
        ck_assert(!container_cache_find(&c, proc_fd, ID, &names));
        container_cache_begin_drain(&c);
        (void)container_cache_find(&c, proc_fd, ID, &names); /* it was not remembered as without state */
        ck_assert_uint_eq(c.reads_left, LIMIT_CONTAINER_READS - 1);
        ck_assert(!container_cache_find(&c, proc_fd, "a-machine", &names)); /* of systemd-nspawn or LXC */
        ck_assert_uint_eq(c.reads_left, LIMIT_CONTAINER_READS - 1);
        container_cache_deinit(&c);
}
END_TEST

TEST_SUITE_WITH_FIXTURE(
        "agent_containers", docker_container_has_name_image_and_compose_service,
        data_root_of_docker_is_that_of_its_configuration, container_of_an_image_without_name_has_only_its_own,
        podman_and_crio_containers_are_found_in_containers_storage,
        storage_of_rootless_podman_is_where_its_monitor_says, containerd_containers_are_named_by_annotations,
        state_that_is_damaged_hostile_or_too_long_counts_as_none, labels_name_the_container_and_the_compose_service,
        state_is_read_once_below_the_root_of_the_monitor, new_containers_of_a_drain_and_known_ones_are_limited)
