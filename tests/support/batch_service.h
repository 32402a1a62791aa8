/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_BATCH_SERVICE_H
#define CAIRN_TESTS_SUPPORT_BATCH_SERVICE_H

/*
 * A server that accepts batches and sends scripted responses, one for each request. It records the id and body of every
 * request.
 */
#include <pthread.h>
#include <stddef.h>

#define BATCH_POSTS_MAX 4096

struct batch_answer {
        int code;            /* 0: accept the batch, but close the connection without a response */
        const char *headers; /* "Retry-After: 2\r\n"; NULL: none */
        const char *body;    /* NULL: none */
};

struct batch_post {
        char id[33];
        int code;
        unsigned char *body; /* as sent; owned */
        size_t size;
};

struct batch_service {
        int fd;
        unsigned short port;
        char url[64];
        const struct batch_answer *answers; /* the next one; after code -1 every response is 200 */
        pthread_t thread;
        pthread_mutex_t lock; /* protects the following fields */
        struct batch_post posts[BATCH_POSTS_MAX];
        size_t count;
};

void batch_service_start(struct batch_service *s, const struct batch_answer *answers);
/* Recorded requests stay valid until batch_service_deinit(). */
void batch_service_stop(struct batch_service *s);
void batch_service_deinit(struct batch_service *s);
/* Number of distinct ids accepted: answered with 200 or without a response. */
size_t batch_service_taken(struct batch_service *s);
size_t batch_service_count(struct batch_service *s);
/* A port without a listener, until the process ends. */
unsigned short batch_service_closed_port(void);

#endif
