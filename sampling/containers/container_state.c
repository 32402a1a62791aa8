/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/containers/container_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/json/json_value.h"
#include "common/memory/buf.h"
#include "common/text.h"
#include "sampling/objects/mount_probe.h"
#include "sampling/objects/open_in_root.h"

#define TASKS "/run/containerd/io.containerd.runtime.v2.task"
#define NAMESPACES_MAX 64 /* directories below TASKS that are tried */

/* ---- texts ---- */

/* "registry:5000/shop/web:1.4@sha256:..." is image "registry:5000/shop/web" with tag "1.4". */
static void split_image_reference(const char *reference, struct container_names *ret)
{
        size_t n = strcspn(reference, "@");
        const char *slash = memrchr(reference, '/', n), *name = slash ? slash + 1 : reference;
        const char *colon = memchr(name, ':', n - (size_t)(name - reference));
        size_t image_size = colon ? (size_t)(colon - reference) : n;

        if (starts_with(reference, "sha256:") || image_size >= sizeof ret->image)
                return;
        memcpy(ret->image, reference, image_size);
        ret->image[image_size] = 0;
        if (colon && n - image_size - 1 < sizeof ret->tag)
                snprintf(ret->tag, sizeof ret->tag, "%.*s", (int)(n - image_size - 1), colon + 1);
}

static void copy_member(const struct json_value *object, const char *key, char *to, size_t size)
{
        if (!json_value_text(object, key, to, size))
                to[0] = 0;
}

static void copy_image_reference(const struct json_value *object, const char *key, struct container_names *ret)
{
        char reference[sizeof ret->image + sizeof ret->tag + 128];

        if (json_value_text(object, key, reference, sizeof reference))
                split_image_reference(reference, ret);
}

/* ---- formats ---- */

bool container_parse_docker(const void *json, size_t n, struct container_names *ret)
{
        struct container_names names = { 0 };
        struct json_value root, config, labels;
        char name[sizeof names.name + 1]; /* "/NAME" */

        if (json_value_parse(json, n, &root, NULL) || !json_value_text(&root, "Name", name, sizeof name) ||
            name[0] != '/' || !name[1])
                return false;
        snprintf(names.name, sizeof names.name, "%s", name + 1);
        if (json_value_member(&root, "Config", &config)) {
                copy_image_reference(&config, "Image", &names);
                if (json_value_member(&config, "Labels", &labels)) {
                        copy_member(&labels, "com.docker.compose.service", names.compose_service,
                                    sizeof names.compose_service);
                        copy_member(&labels, "com.docker.compose.project", names.compose_project,
                                    sizeof names.compose_project);
                }
        }
        *ret = names;
        return true;
}

/* Metadata is JSON in a string. CRI-O's "name" is that of the kubelet, with pod and namespace in it. */
static bool parse_storage_metadata(const struct json_value *container, struct container_names *ret)
{
        char text[KiB(8)];
        struct json_value metadata;

        if (!json_value_text(container, "metadata", text, sizeof text) ||
            json_value_parse(text, strlen(text), &metadata, NULL))
                return false;
        copy_image_reference(&metadata, "image-name", ret);
        copy_member(&metadata, "metadata-name", ret->name, sizeof ret->name);
        if (!ret->name[0])
                copy_member(&metadata, "name", ret->name, sizeof ret->name);
        return ret->name[0];
}

bool container_parse_storage(const void *json, size_t n, const char *id, struct container_names *ret)
{
        struct json_scan scan;
        struct json_value all = { json, n }, container;
        char found[128];

        json_scan_init(&scan, json, n);
        json_scan_skip(&scan);
        if (json_scan_end(&scan, NULL) || !json_value_open_array(&all, &scan))
                return false;
        while (json_value_next(&scan, &container)) {
                struct container_names names = { 0 };

                if (!json_value_text(&container, "id", found, sizeof found) || strcmp(found, id) != 0)
                        continue;
                if (!parse_storage_metadata(&container, &names))
                        return false;
                *ret = names;
                return true;
        }
        return false;
}

bool container_parse_bundle(const void *json, size_t n, struct container_names *ret)
{
        static const char *const keys[] = { "io.kubernetes.cri.container-name", "nerdctl/name" };
        struct container_names names = { 0 };
        struct json_value root, annotations;

        if (json_value_parse(json, n, &root, NULL) || !json_value_member(&root, "annotations", &annotations))
                return false;
        for (size_t i = 0; i < sizeof keys / sizeof *keys && !names.name[0]; i++)
                copy_member(&annotations, keys[i], names.name, sizeof names.name);
        copy_image_reference(&annotations, "io.kubernetes.cri.image-name", &names);
        *ret = names;
        return names.name[0];
}

/* ---- files ---- */

/* The file system of the engine. */
struct engine_root {
        int proc_fd, fd;
};

/* An access to a mount whose server does not respond would block the sampling thread forever. */
static bool is_state_responsive(const struct engine_root *root, const char *path)
{
        return mount_probe_is_responsive(&(struct mount_probe_file){ .mount = mount_probe_make_key(root->proc_fd),
                                                                     .kind = MOUNT_PROBE_IN_ROOT,
                                                                     .proc_fd = root->proc_fd,
                                                                     .name = "",
                                                                     .path = path,
                                                                     .opens = true });
}

static bool read_state_file(const struct engine_root *root, const char *path, struct buf *ret)
{
        _cleanup_close_ int fd = is_state_responsive(root, path) ? open_regular_in_root(root->fd, path, 0) : -1;
        struct stat st;

        ret->size = 0;
        if (fd < 0 || !is_on_local_filesystem(fd) || fstat(fd, &st) < 0 || st.st_size <= 0 ||
            (uint64_t)st.st_size > LIMIT_CONTAINER_STATE_BYTES)
                return false;
        while (ret->size < (size_t)st.st_size) {
                void *to = buf_reserve(ret, (size_t)st.st_size - ret->size);
                ssize_t got = to ? read(fd, to, (size_t)st.st_size - ret->size) : -1;

                if (got <= 0)
                        return false;
                buf_commit(ret, (size_t)got);
        }
        return true;
}

static bool read_docker_state(const struct engine_root *root, const char *id, struct buf *text,
                              struct container_names *ret)
{
        char data_root[LIMIT_PATH_BYTES / 2] = "", path[LIMIT_PATH_BYTES];
        struct json_value daemon;

        if (read_state_file(root, "/etc/docker/daemon.json", text) &&
            !json_value_parse(text->data, text->size, &daemon, NULL))
                copy_member(&daemon, "data-root", data_root, sizeof data_root);
        snprintf(path, sizeof path, "%s/containers/%s/config.v2.json", data_root[0] ? data_root : "/var/lib/docker",
                 id);
        return read_state_file(root, path, text) && container_parse_docker(text->data, text->size, ret);
}

static bool read_storage_state(const struct engine_root *root, const char *id, const char *bundle, struct buf *text,
                               struct container_names *ret)
{
        static const char *const drivers[] = { "overlay", "vfs", "btrfs", "zfs" };
        const char *below = strstr(bundle, id);
        char path[LIMIT_PATH_BYTES];

        if (below &&
            snprintf(path, sizeof path, "%.*scontainers.json", (int)(below - bundle), bundle) < (int)sizeof path &&
            read_state_file(root, path, text) && container_parse_storage(text->data, text->size, id, ret))
                return true;
        for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
                snprintf(path, sizeof path, "/var/lib/containers/storage/%s-containers/containers.json", drivers[i]);
                if (read_state_file(root, path, text) && container_parse_storage(text->data, text->size, id, ret))
                        return true;
        }
        return false;
}

static bool read_containerd_state(const struct engine_root *root, const char *id, struct buf *text,
                                  struct container_names *ret)
{
        _cleanup_close_ int fd =
                is_state_responsive(root, TASKS) ? open_in_root(root->fd, TASKS, O_RDONLY | O_DIRECTORY) : -1;
        DIR *tasks = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *entry;
        bool found = false;

        if (!tasks)
                return false;
        (void)steal_fd(&fd);
        for (int i = 0; i < NAMESPACES_MAX && !found && (entry = readdir(tasks));) {
                char path[LIMIT_PATH_BYTES];

                if (entry->d_name[0] == '.')
                        continue;
                snprintf(path, sizeof path, TASKS "/%s/%s/config.json", entry->d_name, id);
                found = read_state_file(root, path, text) && container_parse_bundle(text->data, text->size, ret);
                i++;
        }
        closedir(tasks);
        return found;
}

bool container_state_read(int proc_fd, const char *id, const char *bundle, struct container_names *ret)
{
        _cleanup_close_ int fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
        const struct engine_root root = { proc_fd, fd };
        _cleanup_buf_ struct buf text = { 0 };

        buf_init(&text, LIMIT_CONTAINER_STATE_BYTES);
        return fd >= 0 &&
               (read_docker_state(&root, id, &text, ret) || read_storage_state(&root, id, bundle, &text, ret) ||
                read_containerd_state(&root, id, &text, ret));
}
