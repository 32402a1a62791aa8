/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/process_labels.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/text.h"
#include "sampling/processes/wait_reason.h"

static const char *const KEYS[LABEL_KEY_COUNT] = {
        [LABEL_HOST_NAME] = "host.name",
        [LABEL_HOST_ID] = "host.id",
        [LABEL_HOST_ARCH] = "host.arch",
        [LABEL_OS_VERSION] = "os.version",
        [LABEL_PROCESS_NAME] = "process.executable.name",
        [LABEL_PROCESS_PATH] = "process.executable.path",
        [LABEL_PROCESS_BUILD] = "process.executable.build_id.gnu",
        [LABEL_SERVICE_NAME] = "service.name",
        [LABEL_THREAD_NAME] = "thread.name",
        [LABEL_CONTAINER_ID] = "container.id",
        [LABEL_ENGINE_NAME] = "container.name",
        [LABEL_IMAGE_NAME] = "container.image.name",
        [LABEL_IMAGE_TAG] = "container.image.tags",
        [LABEL_COMPOSE_SERVICE] = "container.label.com.docker.compose.service",
        [LABEL_COMPOSE_PROJECT] = "container.label.com.docker.compose.project",
        [LABEL_NAMESPACE] = "k8s.namespace.name",
        [LABEL_POD_NAME] = "k8s.pod.name",
        [LABEL_POD_UID] = "k8s.pod.uid",
        [LABEL_CONTAINER_NAME] = "k8s.container.name",
        [LABEL_NODE_NAME] = "k8s.node.name",
        [LABEL_DEPLOYMENT] = "k8s.deployment.name",
        [LABEL_STATEFUL_SET] = "k8s.statefulset.name",
        [LABEL_DAEMON_SET] = "k8s.daemonset.name",
        [LABEL_JOB] = "k8s.job.name",
        [LABEL_CRON_JOB] = "k8s.cronjob.name",
        [LABEL_APP] = "app",
        [LABEL_UNIT] = "systemd.unit",
        [LABEL_SLICE] = "systemd.slice",
        [LABEL_CGROUP] = "process.linux.cgroup",
        [LABEL_WAIT_REASON] = "cairn.wait.reason",
        [LABEL_WAIT_FUTEX] = "cairn.wait.futex",
        [LABEL_PID] = "process.pid",
        [LABEL_STACK_END] = "cairn.stack.end",
};

/* ---- selection of keys ---- */

static bool any_pattern_matches_key(const struct option_list *patterns, const char *key)
{
        for (size_t i = 0; i < patterns->count; i++)
                if (fnmatch(patterns->items[i], key, 0) == 0)
                        return true;
        return false;
}

static enum status check_label_patterns(const char *option, const struct option_list *patterns, struct error *err)
{
        for (size_t i = 0; i < patterns->count; i++) {
                bool found = false;

                for (size_t key = 0; key < LABEL_KEY_COUNT && !found; key++)
                        found = fnmatch(patterns->items[i], KEYS[key], 0) == 0;
                if (!found)
                        return error_set(err, ST_USAGE, "option '--%s %.100s' matches none of the agent's labels",
                                         option, patterns->items[i]);
        }
        return ST_OK;
}

enum status label_options_check(const struct label_options *o, struct error *err)
{
        enum status st = check_label_patterns("keep-label", &o->keep, err);

        return st ? st : check_label_patterns("drop-label", &o->drop, err);
}

static void choose_label_keys(struct labels *l, const struct label_options *o)
{
        for (size_t key = 0; key < LABEL_KEY_COUNT; key++) {
                bool is_enabled = (key == LABEL_PID && o->with_pid) || (key == LABEL_STACK_END && o->with_stack_end);
                bool kept = o->keep.count ? any_pattern_matches_key(&o->keep, KEYS[key])
                                          : key != LABEL_PID && key != LABEL_STACK_END;

                l->enabled[key] = (kept || is_enabled) && !any_pattern_matches_key(&o->drop, KEYS[key]);
        }
}

/* ---- host ---- */

/* Read the host's file, even in a container, if it shares the host's pid namespace. */
static void read_host_id(char *ret, size_t size)
{
        static const char *const paths[] = { "/proc/1/root/etc/machine-id", "/etc/machine-id",
                                             "/var/lib/dbus/machine-id" };

        for (size_t i = 0; i < sizeof paths / sizeof *paths && !ret[0]; i++) {
                _cleanup_buf_ struct buf text = { 0 };

                buf_init(&text, KiB(4));
                if (!file_read(paths[i], &text, NULL))
                        snprintf(ret, size, "%.*s", (int)strcspn(buf_cstr(&text), "\n"), (const char *)text.data);
        }
}

/* Values that OpenTelemetry defines for host.arch. */
static const char *get_host_arch(void)
{
#if defined(__x86_64__)
        return "amd64";
#elif defined(__aarch64__)
        return "arm64";
#else
#error "unsupported processor"
#endif
}

enum status labels_init(struct labels *ret, const struct label_options *o, struct error *err)
{
        struct labels l = { .host_arch = get_host_arch(),
                            .service_name = o->service_name,
                            .own = &o->own,
                            .keep = o->keep,
                            .drop = o->drop };
        struct utsname u;
        enum status st = label_options_check(o, err);

        if (st)
                return st;
        if (gethostname(l.host_name, sizeof l.host_name - 1) < 0)
                return error_os(err, errno, "cannot read the host's name");
        if (uname(&u) < 0)
                return error_os(err, errno, "cannot read the kernel's release");
        snprintf(l.os_version, sizeof l.os_version, "%s", u.release);
        read_host_id(l.host_id, sizeof l.host_id);
        choose_label_keys(&l, o);
        *ret = l;
        return ST_OK;
}

/* ---- samples ---- */

/* Kernel thread names end in a number or CPU: "kworker/3:1-events" is of service "kworker". */
static void get_process_name(const struct process *process, const struct sample_key *key,
                             char ret[static SAMPLE_COMM_SIZE])
{
        memcpy(ret, process->name, SAMPLE_COMM_SIZE);
        ret[SAMPLE_COMM_SIZE - 1] = 0;
        if (key->flags & SAMPLE_KERNEL_THREAD)
                ret[strcspn(ret, "/:")] = 0;
}

/* The build-id of the process's program, not of its libraries; "" if unknown. */
static void get_process_build(const struct process *process, char ret[static BUILD_ID_HEX_MAX])
{
        ret[0] = 0;
        for (size_t i = 0; process->executable && process->objects && i < process->maps.count; i++) {
                const struct object *o = process->objects[i];

                if (!o || !o->build_id.size || strcmp(process->maps.items[i].path, process->executable) != 0)
                        continue;
                build_id_hex(&o->build_id, ret);
                return;
        }
}

static void put_label(struct sample_label_set *list, const char *key, size_t key_size, const char *value)
{
        for (size_t i = 0; i < list->count; i++) {
                if (list->items[i].key_size == key_size && memcmp(list->items[i].key, key, key_size) == 0) {
                        list->items[i].value = value;
                        return;
                }
        }
        if (list->count < LIMIT_LABELS_PER_SAMPLE)
                list->items[list->count++] = (struct label_pair){ key, key_size, value };
}

/* Set the values of the labels that come from the process's pod. */
static void collect_pod_values(const struct pod_match *match, struct sample_label_set *ret,
                               const char *values[LABEL_KEY_COUNT])
{
        static const enum label_key workloads[] = { LABEL_DEPLOYMENT, LABEL_STATEFUL_SET, LABEL_DAEMON_SET,
                                                    LABEL_CRON_JOB, LABEL_JOB };
        const struct pod *pod = match->pod;
        const char *service;

        values[LABEL_NAMESPACE] = pod_get_field(pod, POD_NAMESPACE);
        values[LABEL_POD_NAME] = pod_get_field(pod, POD_NAME);
        values[LABEL_CONTAINER_NAME] = match->container;
        if (*pod_get_field(pod, POD_NODE))
                values[LABEL_NODE_NAME] = pod_get_field(pod, POD_NODE);
        values[LABEL_DEPLOYMENT] = pod_get_field(pod, POD_DEPLOYMENT);
        values[LABEL_STATEFUL_SET] = pod_get_workload(pod, "StatefulSet", NULL, 0);
        values[LABEL_DAEMON_SET] = pod_get_workload(pod, "DaemonSet", NULL, 0);
        values[LABEL_JOB] = pod_get_workload(pod, "Job", NULL, 0);
        values[LABEL_CRON_JOB] = pod_get_workload(pod, "CronJob", ret->cron_job, sizeof ret->cron_job);
        values[LABEL_APP] = pod_get_field(pod, POD_APP);
        service = values[LABEL_APP];
        for (size_t i = 0; i < sizeof workloads / sizeof *workloads && !*service; i++)
                service = values[workloads[i]];
        values[LABEL_SERVICE_NAME] = *service ? service : values[LABEL_POD_NAME];
}

/* Set the values of the labels that come from the state of the container engine. */
static void collect_container_values(const struct container_names *names, const char *values[LABEL_KEY_COUNT])
{
        values[LABEL_ENGINE_NAME] = names->name;
        values[LABEL_IMAGE_NAME] = names->image;
        values[LABEL_IMAGE_TAG] = names->tag;
        values[LABEL_COMPOSE_SERVICE] = names->compose_service;
        values[LABEL_COMPOSE_PROJECT] = names->compose_project;
        if (names->compose_service[0])
                values[LABEL_SERVICE_NAME] = names->compose_service;
}

void labels_collect(const struct labels *l, const struct process *process, const struct sample_key *key,
                    const char *stack_end, struct sample_label_set *ret)
{
        const char *values[LABEL_KEY_COUNT] = {
                [LABEL_HOST_NAME] = l->host_name,
                [LABEL_HOST_ID] = l->host_id,
                [LABEL_HOST_ARCH] = l->host_arch,
                [LABEL_OS_VERSION] = l->os_version,
                [LABEL_PROCESS_NAME] = ret->process_name,
                [LABEL_PROCESS_PATH] = process->executable ? process->executable : "",
                [LABEL_PROCESS_BUILD] = ret->process_build,
                [LABEL_SERVICE_NAME] = ret->process_name,
                [LABEL_THREAD_NAME] = ret->thread_name,
                [LABEL_CONTAINER_ID] = process->cgroup.container,
                [LABEL_POD_UID] = process->cgroup.pod,
                [LABEL_NODE_NAME] = l->node_name,
                [LABEL_UNIT] = process->cgroup.unit,
                [LABEL_SLICE] = process->cgroup.slice,
                [LABEL_CGROUP] = process->cgroup.path,
                [LABEL_WAIT_REASON] = wait_reason_name(key->wait_reason),
                [LABEL_WAIT_FUTEX] = ret->futex,
                [LABEL_PID] = ret->pid,
                [LABEL_STACK_END] = stack_end,
        };

        ret->count = 0;
        ret->has_context_service = false;
        if (process->container)
                collect_container_values(process->container, values);
        if (process->pod.pod)
                collect_pod_values(&process->pod, ret, values);
        if (l->service_name)
                values[LABEL_SERVICE_NAME] = l->service_name;
        get_process_name(process, key, ret->process_name);
        get_process_build(process, ret->process_build);
        memcpy(ret->thread_name, key->comm, SAMPLE_COMM_SIZE);
        ret->thread_name[SAMPLE_COMM_SIZE] = 0;
        ret->futex[0] = 0;
        if (key->futex)
                snprintf(ret->futex, sizeof ret->futex, "0x%" PRIx64, (uint64_t)key->futex);
        snprintf(ret->pid, sizeof ret->pid, "%" PRIu32, key->process.tgid);
        for (size_t i = 0; i < LABEL_KEY_COUNT; i++)
                if (l->enabled[i] && values[i] && values[i][0])
                        put_label(ret, KEYS[i], strlen(KEYS[i]), values[i]);
}

static char spell_as_column(char c)
{
        if (c >= 'A' && c <= 'Z')
                return (char)(c - 'A' + 'a');
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
}

/*
 * Whether a service stores two keys in one column: it then keeps the value of the key that is first in byte order
 * (docs/formats/tables.md), so a program could replace the label k8s.pod.name by one that is called k8s-pod-name.
 */
static bool share_column(const char *a, size_t a_size, const char *b, size_t b_size)
{
        if (a_size != b_size)
                return false;
        for (size_t i = 0; i < a_size; i++)
                if (spell_as_column(a[i]) != spell_as_column(b[i]))
                        return false;
        return true;
}

static bool is_own_key(const struct labels *l, const char *key, size_t size)
{
        for (size_t i = 0; i < l->own->count; i++) {
                const char *text = l->own->items[i];

                if (share_column(text, (size_t)(strchr(text, '=') - text), key, size))
                        return true;
        }
        return false;
}

void labels_add_context(const struct labels *l, const struct context_label *label, struct sample_label_set *ret)
{
        const char *const service = KEYS[LABEL_SERVICE_NAME], *key = label->key;
        size_t size = strlen(key);
        bool is_service = share_column(key, size, service, strlen(service));

        if (!size || starts_with(key, "__") || any_pattern_matches_key(&l->drop, key) ||
            (l->keep.count && !any_pattern_matches_key(&l->keep, key)))
                return;
        if ((is_service && (l->service_name || ret->has_context_service)) || is_own_key(l, key, size))
                return;
        for (size_t i = 0; i < ret->count; i++)
                if (!is_service && share_column(ret->items[i].key, ret->items[i].key_size, key, size))
                        return;
        put_label(ret, is_service ? service : key, size, label->value);
        ret->has_context_service |= is_service;
}

void labels_add_own(const struct labels *l, struct sample_label_set *ret)
{
        for (size_t i = 0; i < l->own->count; i++) {
                const char *text = l->own->items[i], *equals = strchr(text, '=');

                put_label(ret, text, (size_t)(equals - text), equals + 1);
        }
}
