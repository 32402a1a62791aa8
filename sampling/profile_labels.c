/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/profile_labels.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text.h"
#include "relabel/label_set.h"

#define META "__meta_kubernetes_"

void profile_labels_deinit(struct profile_labels *l)
{
        id_table_deinit(&l->known);
        id_table_deinit(&l->context_keys);
        free(l->items);
}

static enum status intern_label(struct profile *p, const char *key, size_t key_size, const char *value,
                                struct profile_label *ret, struct error *err)
{
        enum status st = profile_add_string(p, key, key_size, &ret->key, err);

        return st ? st : profile_add_string(p, value, strlen(value), &ret->value, err);
}

static enum status add_collected_labels(struct profile *p, const struct sample_label_set *from,
                                        struct labeled_sample *ret, struct error *err)
{
        struct profile_label set[LIMIT_LABELS_PER_SAMPLE];
        enum status st = ST_OK;

        for (size_t i = 0; i < from->count && !st; i++)
                st = intern_label(p, from->items[i].key, from->items[i].key_size, from->items[i].value, &set[i], err);
        ret->label_count = (uint32_t)from->count;
        return st ? st : profile_add_label_set(p, set, ret->label_count, &ret->first_label, err);
}

/* ---- relabelling ---- */

static enum status put_collected_labels(struct label_set *l, const struct sample_label_set *from, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; i < from->count && !st; i++) {
                char key[LIMIT_LABEL_KEY_BYTES + 1];

                if (from->items[i].key_size >= sizeof key)
                        return error_set(err, ST_TOO_BIG, "a label's name is too long");
                memcpy(key, from->items[i].key, from->items[i].key_size);
                key[from->items[i].key_size] = 0;
                st = label_set_put(l, key, from->items[i].value, err);
        }
        return st;
}

static enum status put_pod_label(struct label_set *l, const struct pod *pod, const struct pod_label *label,
                                 struct error *err)
{
        char name[LIMIT_LABEL_KEY_BYTES + 1];
        int n = snprintf(name, sizeof name, META "pod_label_%s", pod_get_text(pod, label->key));

        if (n >= (int)sizeof name)
                return ST_OK; /* Kubernetes allows longer names; a truncated name could match the wrong rule */
        for (char *c = name; *c; c++)
                if (!isalnum((unsigned char)*c))
                        *c = '_';
        return label_set_put(l, name, pod_get_text(pod, label->value), err);
}

static enum status put_meta_labels(struct label_set *l, const struct pod_match *match, struct error *err)
{
        static const struct {
                const char *name;
                enum pod_text field;
        } fields[] = {
                { META "namespace", POD_NAMESPACE },
                { META "pod_name", POD_NAME },
                { META "pod_uid", POD_UID },
                { META "pod_node_name", POD_NODE },
                { META "pod_controller_kind", POD_OWNER_KIND },
                { META "pod_controller_name", POD_OWNER_NAME },
        };
        enum status st = ST_OK;

        if (!match->pod)
                return ST_OK;
        for (size_t i = 0; i < sizeof fields / sizeof *fields && !st; i++)
                st = label_set_put(l, fields[i].name, pod_get_field(match->pod, fields[i].field), err);
        if (!st)
                st = label_set_put(l, META "pod_container_name", match->container, err);
        for (size_t i = 0; i < match->pod->label_count && !st; i++)
                st = put_pod_label(l, match->pod, &match->pod->labels[i], err);
        return st;
}

static enum status add_relabeled(struct profile *p, const struct label_set *from, struct labeled_sample *ret,
                                 struct error *err)
{
        struct profile_label set[LIMIT_LABELS_PER_SAMPLE];
        uint32_t count = 0;
        enum status st = ST_OK;

        for (size_t i = 0; i < from->count && !st; i++) {
                const struct set_label *l = &from->items[i];

                if (!starts_with(l->name, "__") && count < LIMIT_LABELS_PER_SAMPLE)
                        st = intern_label(p, l->name, strlen(l->name), l->value, &set[count++], err);
        }
        ret->label_count = count;
        return st ? st : profile_add_label_set(p, set, count, &ret->first_label, err);
}

/* ST_TOO_BIG past a limit of relabelling. */
static enum status relabel_label_set(const struct profile_labels *l, const struct sample_label_set *from,
                                     const struct pod_match *pod, struct labeled_sample *ret, struct error *err)
{
        const struct relabel_rules *rules = l->c->rules;
        _cleanup_label_set_ struct label_set labels = { 0 };
        bool keep = true;
        enum status st = put_collected_labels(&labels, from, err);

        if (!st)
                st = put_meta_labels(&labels, pod, err);
        if (!st)
                st = relabel_apply(rules->items, rules->count, &labels, &keep, err);
        if (st == ST_TOO_BIG)
                return st;
        ret->is_dropped = !st && !keep;
        return st || !keep ? st : add_relabeled(l->p, &labels, ret, err);
}

/*
 * Label sets past a limit of relabelling are sent as the agent collected them. A process cannot escape the rules by the
 * labels of its contexts: these are left out first.
 * @param bare  without the labels of contexts.
 */
static enum status relabel_sample(const struct profile_labels *l, const struct sample_label_set *from,
                                  const struct sample_label_set *bare, const struct pod_match *pod,
                                  struct labeled_sample *ret, struct error *err)
{
        enum status st = relabel_label_set(l, from, pod, ret, err);

        if (st == ST_TOO_BIG && from->count != bare->count)
                st = relabel_label_set(l, bare, pod, ret, err);
        if (st != ST_TOO_BIG)
                return st;
        l->stats->relabel_failures++;
        return add_collected_labels(l->p, bare, ret, err);
}

/* ---- contexts ---- */

/* A server refuses a batch with too many keys, so a process that invents keys must not add as many as it likes. */
static bool is_context_key_sent(struct profile_labels *l, const char *key)
{
        uint32_t number;

        if (id_table_find(&l->context_keys, key, strlen(key), &number))
                return true;
        if (l->context_key_count == LIMIT_AGENT_CONTEXT_KEYS ||
            !id_table_put(&l->context_keys, key, strlen(key), l->context_key_count)) {
                l->stats->context_labels_left++;
                return false;
        }
        l->context_key_count++;
        return true;
}

/* Add the labels of the contexts of a process and of its thread, which takes precedence. */
static void collect_context_labels(struct profile_labels *l, const struct process *process,
                                   const struct thread_context *thread, struct sample_label_set *ret)
{
        const struct process_context *c = &process->request.context;

        for (size_t i = 0; i < thread->label_count; i++)
                if (is_context_key_sent(l, thread->labels[i].key))
                        labels_add_context(l->c->labels, &thread->labels[i], ret);
        for (size_t i = 0; i < c->label_count; i++)
                if (is_context_key_sent(l, c->labels[i].key))
                        labels_add_context(l->c->labels, &c->labels[i], ret);
}

/* ---- samples ---- */

/* Everything that determines the labels of a sample. No padding: the bytes are the key. */
struct label_source {
        struct sample_process process;
        char comm[SAMPLE_COMM_SIZE];
        uint64_t stack_end; /* names differ in address */
        uint64_t futex, context;
        uint32_t is_kernel_thread, wait_reason;
};

enum status profile_labels_get(struct profile_labels *l, const struct sample_key *key, struct process *process,
                               const struct thread_context *context, const char *stack_end, struct labeled_sample *ret,
                               struct error *err)
{
        struct label_source source = { .process = key->process,
                                       .stack_end = (uintptr_t)stack_end,
                                       .futex = key->futex,
                                       .context = key->context,
                                       .is_kernel_thread = key->flags & SAMPLE_KERNEL_THREAD,
                                       .wait_reason = key->wait_reason };
        struct labeled_sample fresh = { 0 };
        struct sample_label_set collected, bare;
        uint32_t number;
        enum status st;

        memcpy(source.comm, key->comm, sizeof source.comm);
        if (id_table_find(&l->known, &source, sizeof source, &number)) {
                *ret = l->items[number];
                return ST_OK;
        }
        if (l->c->pods)
                pod_cache_find(l->c->pods, process->cgroup.container, process->cgroup.pod, &process->pod);
        labels_collect(l->c->labels, process, key, stack_end, &collected);
        bare = collected;
        labels_add_own(l->c->labels, &bare);
        collect_context_labels(l, process, context, &collected);
        labels_add_own(l->c->labels, &collected);
        st = l->c->rules && l->c->rules->count ? relabel_sample(l, &collected, &bare, &process->pod, &fresh, err)
                                               : add_collected_labels(l->p, &collected, &fresh, err);
        if (st)
                return st;
        if (!array_reserve(&l->items, &l->capacity, l->count) ||
            !id_table_put(&l->known, &source, sizeof source, (uint32_t)l->count))
                return error_no_memory(err);
        l->items[l->count++] = fresh;
        *ret = fresh;
        return ST_OK;
}
