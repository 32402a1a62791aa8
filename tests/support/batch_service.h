/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_BATCH_SERVICE_H
#define CAIRN_TESTS_SUPPORT_BATCH_SERVICE_H

/*
 * A service that takes batches and answers what it is told to, one answer for
 * each post. It remembers every id and body.
 */
#include <pthread.h>
#include <stddef.h>

#define BATCH_POSTS_MAX 4096

struct batch_answer {
        int code;            /* 0: close the connection without an answer, though the batch counts as taken */
        const char *headers; /* "Retry-After: 2\r\n"; NULL none */
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
        const struct batch_answer *answers; /* the next; code -1 ends them, then 200 */
        pthread_t thread;
        pthread_mutex_t lock; /* what follows */
        struct batch_post posts[BATCH_POSTS_MAX];
        size_t count;
};

void batch_service_start(struct batch_service *s, const struct batch_answer *answers);
/* The posts stay until batch_service_deinit(). */
void batch_service_stop(struct batch_service *s);
void batch_service_deinit(struct batch_service *s);
/* Distinct ids that were taken: answered with 200, or with nothing. */
size_t batch_service_taken(struct batch_service *s);
size_t batch_service_count(struct batch_service *s);
/* A port that nobody listens on. */
unsigned short batch_service_closed_port(void);

#endif
