/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers follow the JSON: read_pod() calls read_pod_metadata(), read_pod_spec() and read_pod_status(), which call
 * the readers of their members. They fill a draft, whose texts are appended to one buffer and referred to by offset,
 * because the buffer moves; offset 0 is "", an absent text. add_draft_pod() turns the draft into an immutable pod and
 * adds the keys of its containers and UIDs.
 *
 * Errors: a syntax error is kept by the scanner, every later call returns false, and pod_list_parse() reports it once
 * at the end. Lack of memory is kept in the draft, or returned as false.
 *
 * Keys are sorted after the last pod and searched by bisection; of equal ids the last pod in the list is found.
 *
 * Order: pods, reading, derived names, lists and lookup.
 */
#include "sampling/containers/pod_list.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json_scan.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/memory/buf.h"
#include "common/search.h"
#include "common/text/utf8.h"

#define ID_BYTES_MAX 256 /* of a container id with its scheme */
#define TEMPLATE_HASH_LEAST 5
#define TEMPLATE_HASH_MOST 10
#define CRONJOB_TIME_LEAST 8 /* digits: minutes since 1970 */

/* ---- one pod ---- */

const char *pod_get_text(const struct pod *pod, uint32_t offset)
{
        return pod->texts + offset;
}

const char *pod_get_field(const struct pod *pod, enum pod_text field)
{
        return pod_get_text(pod, pod->fields[field]);
}

static void free_pod(struct pod *pod)
{
        free(pod->texts);
        free(pod->labels);
        free(pod->containers);
        free(pod);
}

struct pod *pod_acquire(struct pod *pod)
{
        atomic_fetch_add_explicit(&pod->references, 1, memory_order_relaxed);
        return pod;
}

void pod_release(struct pod *pod)
{
        if (pod && atomic_fetch_sub_explicit(&pod->references, 1, memory_order_acq_rel) == 1)
                free_pod(pod);
}

const char *pod_get_workload(const struct pod *pod, const char *kind, char *buffer, size_t size)
{
        const char *owner_kind = pod_get_field(pod, POD_OWNER_KIND), *name = pod_get_field(pod, POD_OWNER_NAME);
        size_t n = strlen(name), digits = 0;

        if (strcmp(kind, owner_kind) == 0)
                return name;
        if (strcmp(kind, "CronJob") != 0 || strcmp(owner_kind, "Job") != 0)
                return "";
        while (digits < n && isdigit((unsigned char)name[n - 1 - digits]))
                digits++;
        if (digits < CRONJOB_TIME_LEAST || n < digits + 2 || name[n - 1 - digits] != '-' || n - digits > size)
                return "";
        memcpy(buffer, name, n - 1 - digits);
        buffer[n - 1 - digits] = 0;
        return buffer;
}

/* ---- scanning ---- */

/* The pod that is being read. */
struct pod_draft {
        struct pod *pod;
        struct buf texts;
        bool failed;                     /* without memory */
        uint32_t template_hash, apps[3]; /* values of these labels */
};

/* Enter an object, or skip any other value. */
static bool enter_optional_object(struct json_scan *s)
{
        if (json_scan_peek(s) == '{')
                return json_scan_object(s);
        json_scan_skip(s);
        return false;
}

static bool enter_optional_array(struct json_scan *s)
{
        if (json_scan_peek(s) == '[')
                return json_scan_array(s);
        json_scan_skip(s);
        return false;
}

/* Append the text and return its offset; 0, the offset of "", when it is empty, longer than a label may be, invalid
   UTF-8, or contains NUL bytes. */
static uint32_t keep_span(struct pod_draft *d, const struct json_span *span)
{
        size_t start = d->texts.size;
        const char *text;

        if (d->texts.failed || span->size > LIMIT_LABEL_BYTES)
                return 0;
        json_span_unescape(span, &d->texts);
        buf_append_u8(&d->texts, 0);
        if (d->texts.failed)
                return 0;
        text = (const char *)d->texts.data + start;
        if (*text && strlen(text) == d->texts.size - start - 1 && utf8_valid(text, strlen(text)))
                return (uint32_t)start;
        d->texts.size = start;
        return 0;
}

static uint32_t keep_optional_text(struct pod_draft *d, struct json_scan *s)
{
        struct json_span span;

        if (json_scan_peek(s) != '"') {
                json_scan_skip(s);
                return 0;
        }
        return json_scan_str(s, &span) ? keep_span(d, &span) : 0;
}

static bool read_true(struct json_scan *s)
{
        bool value = false;

        if (json_scan_peek(s) != 't') {
                json_scan_skip(s);
                return false;
        }
        return json_scan_bool(s, &value) && value;
}

static void read_pod_labels(struct pod_draft *d, struct json_scan *s)
{
        static const char *const apps[] = { "app.kubernetes.io/name", "app", "k8s-app" };
        struct pod *p = d->pod;
        struct json_span key;

        if (!enter_optional_object(s))
                return;
        while (json_scan_key(s, &key)) {
                struct pod_label label = { .key = keep_span(d, &key), .value = keep_optional_text(d, s) };

                if (!label.key || !label.value)
                        continue;
                for (size_t i = 0; i < sizeof apps / sizeof *apps; i++)
                        if (json_span_is(&key, apps[i]))
                                d->apps[i] = label.value;
                if (json_span_is(&key, "pod-template-hash"))
                        d->template_hash = label.value;
                if (p->label_count == LIMIT_KUBERNETES_POD_LABELS)
                        continue;
                if (!array_reserve(&p->labels, &p->label_capacity, p->label_count))
                        d->failed = true;
                else
                        p->labels[p->label_count++] = label;
        }
}

static void read_pod_annotations(struct pod_draft *d, struct json_scan *s)
{
        struct json_span key;

        if (!enter_optional_object(s))
                return;
        while (json_scan_key(s, &key)) {
                if (json_span_is(&key, "kubernetes.io/config.hash"))
                        d->pod->fields[POD_STATIC_HASH] = keep_optional_text(d, s);
                else
                        json_scan_skip(s);
        }
}

static void read_pod_owner(struct pod_draft *d, struct json_scan *s)
{
        uint32_t kind = 0, name = 0;
        bool is_controller = false;
        struct json_span key;

        if (!enter_optional_object(s))
                return;
        while (json_scan_key(s, &key)) {
                if (json_span_is(&key, "kind"))
                        kind = keep_optional_text(d, s);
                else if (json_span_is(&key, "name"))
                        name = keep_optional_text(d, s);
                else if (json_span_is(&key, "controller"))
                        is_controller = read_true(s);
                else
                        json_scan_skip(s);
        }
        if (is_controller || !d->pod->fields[POD_OWNER_NAME]) {
                d->pod->fields[POD_OWNER_KIND] = kind;
                d->pod->fields[POD_OWNER_NAME] = name;
        }
}

static void read_pod_metadata(struct pod_draft *d, struct json_scan *s)
{
        uint32_t *fields = d->pod->fields;
        struct json_span key;

        if (!enter_optional_object(s))
                return;
        while (json_scan_key(s, &key)) {
                if (json_span_is(&key, "name"))
                        fields[POD_NAME] = keep_optional_text(d, s);
                else if (json_span_is(&key, "namespace"))
                        fields[POD_NAMESPACE] = keep_optional_text(d, s);
                else if (json_span_is(&key, "uid"))
                        fields[POD_UID] = keep_optional_text(d, s);
                else if (json_span_is(&key, "labels"))
                        read_pod_labels(d, s);
                else if (json_span_is(&key, "annotations"))
                        read_pod_annotations(d, s);
                else if (json_span_is(&key, "ownerReferences") && enter_optional_array(s))
                        while (json_scan_item(s))
                                read_pod_owner(d, s);
                else if (!json_span_is(&key, "ownerReferences"))
                        json_scan_skip(s);
        }
}

static void read_pod_spec(struct pod_draft *d, struct json_scan *s)
{
        struct json_span key;

        if (!enter_optional_object(s))
                return;
        while (json_scan_key(s, &key)) {
                if (json_span_is(&key, "nodeName"))
                        d->pod->fields[POD_NODE] = keep_optional_text(d, s);
                else
                        json_scan_skip(s);
        }
}

/* "containerd://ID", "docker://ID", "cri-o://ID". */
static uint32_t keep_container_id(struct pod_draft *d, struct json_scan *s)
{
        uint32_t id = keep_optional_text(d, s);
        const char *text = (const char *)d->texts.data + id, *scheme = id ? strstr(text, "://") : NULL;

        return !id || strlen(text) > ID_BYTES_MAX || !scheme || !scheme[3]
                       ? 0
                       : (uint32_t)(scheme + 3 - (const char *)d->texts.data);
}

/* "state" and "lastState": the id of a terminated container. */
static uint32_t read_terminated_id(struct pod_draft *d, struct json_scan *s)
{
        struct json_span state, key;
        uint32_t id = 0;

        if (!enter_optional_object(s))
                return 0;
        while (json_scan_key(s, &state)) {
                if (!json_span_is(&state, "terminated")) {
                        json_scan_skip(s);
                        continue;
                }
                if (!enter_optional_object(s))
                        continue;
                while (json_scan_key(s, &key)) {
                        if (json_span_is(&key, "containerID"))
                                id = keep_container_id(d, s);
                        else
                                json_scan_skip(s);
                }
        }
        return id;
}

static void read_container_status(struct pod_draft *d, struct json_scan *s)
{
        struct pod *p = d->pod;
        uint32_t ids[3] = { 0 }, name = 0;
        struct json_span key;

        if (!enter_optional_object(s))
                return;
        while (json_scan_key(s, &key)) {
                if (json_span_is(&key, "name"))
                        name = keep_optional_text(d, s);
                else if (json_span_is(&key, "containerID"))
                        ids[0] = keep_container_id(d, s);
                else if (json_span_is(&key, "state"))
                        ids[1] = read_terminated_id(d, s);
                else if (json_span_is(&key, "lastState"))
                        ids[2] = read_terminated_id(d, s);
                else
                        json_scan_skip(s);
        }
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
                if (!ids[i] || p->container_count == LIMIT_KUBERNETES_CONTAINERS)
                        continue;
                if (!array_reserve(&p->containers, &p->container_capacity, p->container_count))
                        d->failed = true;
                else
                        p->containers[p->container_count++] = (struct pod_container){ ids[i], name };
        }
}

static void read_pod_status(struct pod_draft *d, struct json_scan *s)
{
        static const char *const lists[] = { "containerStatuses", "initContainerStatuses",
                                             "ephemeralContainerStatuses" };
        struct json_span key;

        if (!enter_optional_object(s))
                return;
        while (json_scan_key(s, &key)) {
                bool is_list = false;

                for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
                        is_list = is_list || json_span_is(&key, lists[i]);
                if (!is_list)
                        json_scan_skip(s);
                else if (enter_optional_array(s))
                        while (json_scan_item(s))
                                read_container_status(d, s);
        }
}

/* ---- names derived from others ---- */

/* The length and alphabet of pod template hashes. */
static bool is_template_hash(const char *text)
{
        size_t n = strlen(text);

        return n >= TEMPLATE_HASH_LEAST && n <= TEMPLATE_HASH_MOST && strspn(text, "bcdfghjklmnpqrstvwxz2456789") == n;
}

static void keep_deployment_name(struct pod_draft *d)
{
        const char *base = (const char *)d->texts.data, *name = base + d->pod->fields[POD_OWNER_NAME];
        const char *dash = strrchr(name, '-');
        struct json_span span = { .text = name };
        char copy[LIMIT_LABEL_BYTES];

        if (strcmp(base + d->pod->fields[POD_OWNER_KIND], "ReplicaSet") != 0 || !dash || dash == name)
                return;
        if (d->template_hash ? strcmp(dash + 1, base + d->template_hash) != 0 : !is_template_hash(dash + 1))
                return;
        span.size = (size_t)(dash - name);
        if (span.size > sizeof copy)
                return;
        memcpy(copy, name, span.size); /* the texts may move */
        span.text = copy;
        d->pod->fields[POD_DEPLOYMENT] = keep_span(d, &span);
}

/* ---- lists ---- */

void pod_list_deinit(struct pod_list *l)
{
        for (size_t i = 0; i < l->count; i++)
                pod_release(l->pods[i]);
        free(l->pods);
        free(l->keys);
        *l = (struct pod_list){ 0 };
}

static bool add_pod_key(struct pod_list *l, uint32_t text, uint32_t pod, uint32_t container)
{
        if (!text)
                return true;
        if (!array_reserve(&l->keys, &l->key_capacity, l->key_count))
                return false;
        l->keys[l->key_count++] = (struct pod_key){ pod_get_text(l->pods[pod], text), pod, container };
        return true;
}

static bool index_pod(struct pod_list *l, uint32_t number)
{
        const struct pod *p = l->pods[number];
        bool ok =
                add_pod_key(l, p->fields[POD_UID], number, 0) && add_pod_key(l, p->fields[POD_STATIC_HASH], number, 0);

        for (uint32_t i = 0; ok && i < p->container_count; i++)
                ok = add_pod_key(l, p->containers[i].id, number, i + 1);
        return ok;
}

/* @return false without memory. */
static bool add_draft_pod(struct pod_list *l, struct pod_draft *d)
{
        if (d->failed || d->texts.failed == ST_NO_MEMORY)
                return false;
        if (d->texts.failed || !d->pod->fields[POD_UID] || l->count == LIMIT_KUBERNETES_PODS) {
                l->left_out++;
                return true;
        }
        if (!array_reserve(&l->pods, &l->capacity, l->count))
                return false;
        for (size_t i = 0; i < sizeof d->apps / sizeof *d->apps && !d->pod->fields[POD_APP]; i++)
                d->pod->fields[POD_APP] = d->apps[i];
        d->pod->texts = realloc(d->texts.data, d->texts.size);
        if (!d->pod->texts)
                return false;
        d->texts.data = NULL;
        d->texts.size = d->texts.capacity = 0;
        l->pods[l->count++] = steal_ptr(d->pod);
        return index_pod(l, (uint32_t)l->count - 1);
}

/* @return false without memory. */
static bool read_pod(struct pod_list *l, struct json_scan *s)
{
        struct pod_draft d = { .pod = calloc(1, sizeof *d.pod) };
        struct json_span key;
        bool ok;

        buf_init(&d.texts, LIMIT_KUBERNETES_POD_BYTES);
        if (!d.pod || buf_append_u8(&d.texts, 0)) {
                free(d.pod);
                buf_deinit(&d.texts);
                return false;
        }
        atomic_init(&d.pod->references, 1);
        if (enter_optional_object(s)) {
                while (json_scan_key(s, &key)) {
                        if (json_span_is(&key, "metadata"))
                                read_pod_metadata(&d, s);
                        else if (json_span_is(&key, "spec"))
                                read_pod_spec(&d, s);
                        else if (json_span_is(&key, "status"))
                                read_pod_status(&d, s);
                        else
                                json_scan_skip(s);
                }
        }
        keep_deployment_name(&d);
        ok = s->failed || add_draft_pod(l, &d);
        if (d.pod)
                free_pod(d.pod);
        buf_deinit(&d.texts);
        return ok;
}

/* Equal ids are ordered by position in the list, so that lookups are deterministic: the last pod wins. */
static int compare_pod_keys(const void *a, const void *b)
{
        const struct pod_key *x = a, *y = b;
        int order = strcmp(x->id, y->id);

        return order ? order : x->pod != y->pod ? (x->pod < y->pod) - (x->pod > y->pod) : 0;
}

enum status pod_list_parse(const void *json, size_t n, struct pod_list *ret, struct error *err)
{
        _cleanup_pod_list_ struct pod_list l = { 0 };
        bool has_items = false, has_memory = true;
        struct json_span key;
        struct json_scan s;
        enum status st;

        json_scan_init(&s, json, n);
        json_scan_object(&s);
        while (has_memory && json_scan_key(&s, &key)) {
                if (!json_span_is(&key, "items")) {
                        json_scan_skip(&s);
                        continue;
                }
                has_items = true;
                if (enter_optional_array(&s))
                        while (has_memory && json_scan_item(&s))
                                has_memory = read_pod(&l, &s);
        }
        if (!has_memory)
                return error_no_memory(err);
        st = json_scan_end(&s, err);
        if (st)
                return st;
        if (!has_items)
                return error_set(err, ST_BAD_DATA, "not a list of pods: there are no items");
        if (l.key_count)
                qsort(l.keys, l.key_count, sizeof *l.keys, compare_pod_keys);
        *ret = l;
        l = (struct pod_list){ 0 };
        return ST_OK;
}

static struct pod_match find_pod_key(const struct pod_list *l, const char *id)
{
        size_t at = find_lower_bound(i, 0, l->key_count, strcmp(l->keys[i].id, id) < 0);
        const struct pod_key *key;
        struct pod *pod;

        if (!*id || at == l->key_count || strcmp(l->keys[at].id, id) != 0)
                return (struct pod_match){ .container = "" };
        key = &l->keys[at];
        pod = l->pods[key->pod];
        return (struct pod_match){ pod,
                                   key->container ? pod_get_text(pod, pod->containers[key->container - 1].name) : "" };
}

struct pod_match pod_list_find(const struct pod_list *l, const char *container_id, const char *uid)
{
        struct pod_match found = find_pod_key(l, container_id);

        return found.pod ? found : find_pod_key(l, uid);
}
