/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_CONTAINERS_POD_CACHE_H
#define CAIRN_SAMPLING_CONTAINERS_POD_CACHE_H

/**
 * @file
 * The pods of this node, from the API server or the kubelet.
 *
 * A thread lists the pods of the node every half minute, and sooner when the last list lacks a container that is looked
 * up: at most every five seconds, and no more for a container that three lists lacked (negative cache). After a failure
 * it retries with exponential backoff, and the last list stays in use. Lookups never wait for a request.
 *
 * The token file is read for each request, since tokens of service accounts expire. Certificates are always verified.
 *
 * Threads: any for pod_cache_find() and pod_cache_get_stats(); the others by the owner.
 * Source: Kubernetes, "Accessing the Kubernetes API from a Pod"; API reference, list Pod (fieldSelector,
 * resourceVersion).
 */
#include <stdint.h>

#include "sampling/containers/pod_list.h"

enum pod_source {
        POD_SOURCE_NONE,
        POD_SOURCE_API,     /* the API server, as a pod reaches it */
        POD_SOURCE_KUBELET, /* the kubelet of this node */
};

/** Parse "api" or "kubelet". ST_USAGE for any other name. */
enum status pod_source_parse(const char *name, enum pod_source *ret) MUST_CHECK;

struct pod_cache_options {
        enum pod_source source;
        const char *url;        /* NULL: KUBERNETES_SERVICE_HOST and _PORT, or the kubelet's read-only port */
        const char *node;       /* NULL: the host's name */
        const char *token_file; /* NULL: the service account's, if there is one and the URL is https */
        const char *ca_file;    /* NULL: the service account's, if there is one, else the system's */
};

struct pod_cache;

/** Start the thread. @param o copied. @return ST_USAGE: no URL is given and the environment has none. */
enum status pod_cache_create(const struct pod_cache_options *o, struct pod_cache **ret, struct error *err) MUST_CHECK;
void pod_cache_destroy(struct pod_cache *c); /* takes NULL */

/** Borrowed from the cache. */
const char *pod_cache_get_node(const struct pod_cache *c);

/**
 * Look up the pod of a container, or else of a pod UID; either may be "".
 * @param match  in: an earlier match, or empty; out: the match found, to be released by the caller. Unchanged when
 *               nothing is found, since the pod may have been deleted.
 */
void pod_cache_find(struct pod_cache *c, const char *container_id, const char *uid, struct pod_match *match);

struct pod_cache_stats {
        uint64_t lists, failures; /* requests */
        uint64_t pods, left_out;  /* of the last list */
        uint64_t misses;          /* containers and pods missing from the list when they were looked up */
};

void pod_cache_get_stats(struct pod_cache *c, struct pod_cache_stats *ret);

#endif
