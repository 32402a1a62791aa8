/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes the contexts of OTEP 4719 and 4947 as an SDK does, and works.
 *
 *   agent-context MAPPING [LIBRARY]
 *
 * MAPPING: "memfd" or "anonymous"; "none" publishes no context of the process. LIBRARY: opened when the program runs;
 * else the variable is linked. Thread "work-N" has the trace ID of 16 bytes N + 1, the span ID of 8 bytes N + 1, and
 * the attributes "http.route": "/N" and, whose name is added when the program runs, "tenant.name". Thread "no-context"
 * has none, "invalid" one that is being changed. A line break on its standard input ends the program.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 4
#define PAGE 4096

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

void context_attach(const void *record);
static void (*attach)(const void *);
static volatile int is_ended;

/* ---- context of the process ---- */

struct message {
        uint8_t bytes[2048];
        size_t size;
};

static void put_field(struct message *m, int number, const void *bytes, size_t n)
{
        m->bytes[m->size++] = (uint8_t)(number << 3 | 2);
        if (n >= 128)
                m->bytes[m->size++] = (uint8_t)(n | 128);
        m->bytes[m->size++] = (uint8_t)(n >= 128 ? n >> 7 : n);
        memcpy(m->bytes + m->size, bytes, n);
        m->size += n;
}

static struct message make_text(const char *text)
{
        struct message m = { .size = 0 };

        put_field(&m, 1, text, strlen(text));
        return m;
}

static void put_attribute(struct message *to, int number, const char *key, const struct message *value)
{
        struct message m = { .size = 0 };

        put_field(&m, 1, key, strlen(key));
        put_field(&m, 2, value->bytes, value->size);
        put_field(to, number, m.bytes, m.size);
}

static void put_text_attribute(struct message *to, int number, const char *key, const char *text)
{
        struct message value = make_text(text);

        put_attribute(to, number, key, &value);
}

static struct message make_context(size_t names)
{
        static const char *const all[] = { "http.route", "tenant.name" };
        struct message resource = { .size = 0 }, values = { .size = 0 }, array = { .size = 0 }, context = { .size = 0 };

        put_text_attribute(&resource, 1, "service.name", "checkout");
        put_text_attribute(&resource, 1, "service.instance.id", "instance-1");
        put_text_attribute(&resource, 1, "host.name", "not-this-host");
        put_field(&context, 1, resource.bytes, resource.size);
        for (size_t i = 0; i < names; i++) {
                struct message name = make_text(all[i]);

                put_field(&values, 1, name.bytes, name.size);
        }
        put_field(&array, 5, values.bytes, values.size);
        put_text_attribute(&context, 2, "threadlocal.schema_version", "tls_v1");
        put_attribute(&context, 2, "threadlocal.attribute_key_map", &array);
        return context;
}

struct header {
        char signature[8];
        uint32_t version, size;
        uint64_t published_ns;
        const void *payload;
};

static struct header *map_header(const char *kind)
{
        int fd = strcmp(kind, "memfd") == 0 ? memfd_create("OTEL_CTX", 0) : -1;
        void *at;

        if (fd >= 0 && ftruncate(fd, PAGE))
                exit(1);
        at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
        if (at == MAP_FAILED)
                exit(1);
        madvise(at, PAGE, MADV_DONTFORK);
        prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, PAGE, "OTEL_CTX");
        return at;
}

static void publish_context(struct header *h, size_t names)
{
        static struct message messages[2];
        struct message *m = &messages[names - 1];
        struct timespec now;

        clock_gettime(CLOCK_BOOTTIME, &now);
        *m = make_context(names);
        __atomic_store_n(&h->published_ns, 0, __ATOMIC_SEQ_CST);
        h->version = 2;
        h->size = (uint32_t)m->size;
        h->payload = m->bytes;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        memcpy(h->signature, "OTEL_CTX", 8);
        __atomic_store_n(&h->published_ns, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, __ATOMIC_SEQ_CST);
}

/* ---- contexts of threads ---- */

struct record {
        uint8_t trace_id[16], span_id[8], valid, flags;
        uint16_t size;
        uint8_t attributes[64];
};

static void put_value(struct record *r, uint8_t key, const char *value)
{
        uint8_t *at = r->attributes + r->size;
        size_t n = strlen(value);

        *at++ = key;
        *at++ = (uint8_t)n;
        memcpy(at, value, n);
        r->size = (uint16_t)(r->size + n + 2);
}

static pthread_barrier_t are_named; /* all threads, and their contexts are attached */

static void work(void)
{
        pthread_barrier_wait(&are_named);
        for (volatile unsigned i = 0; !is_ended; i++)
                ;
}

static void *run_worker(void *arg)
{
        int number = (int)(intptr_t)arg;
        struct record r = { .flags = 1 };
        char text[16];

        snprintf(text, sizeof text, "work-%d", number);
        pthread_setname_np(pthread_self(), text);
        memset(r.trace_id, number + 1, sizeof r.trace_id);
        memset(r.span_id, number + 1, sizeof r.span_id);
        put_value(&r, 0, "/replaced");
        snprintf(text, sizeof text, "/%d", number);
        put_value(&r, 0, text);
        put_value(&r, 1, "shop");
        put_value(&r, 9, "without a name");
        r.valid = 1;
        attach(&r);
        work();
        return NULL;
}

static void *run_other(void *arg)
{
        struct record r = { .valid = 2 };

        pthread_setname_np(pthread_self(), arg ? "invalid" : "no-context");
        memset(r.trace_id, 0xee, sizeof r.trace_id);
        if (arg)
                attach(&r);
        work();
        return NULL;
}

int main(int argc, char **argv)
{
        struct header *header = NULL;
        pthread_t threads[WORKERS + 2];

#ifdef OPENS_LIBRARY
        void *library = argc > 2 ? dlopen(argv[2], RTLD_NOW) : NULL;

        attach = library ? (void (*)(const void *))dlsym(library, "context_attach") : NULL;
#else
        attach = context_attach;
#endif
        if (argc < 2 || !attach)
                return 1;
        if (strcmp(argv[1], "none") != 0) {
                header = map_header(argv[1]);
                publish_context(header, 1);
        }
        pthread_barrier_init(&are_named, NULL, WORKERS + 3);
        for (intptr_t i = 0; i < WORKERS; i++)
                pthread_create(&threads[i], NULL, run_worker, (void *)i);
        pthread_create(&threads[WORKERS], NULL, run_other, NULL);
        pthread_create(&threads[WORKERS + 1], NULL, run_other, "");
        pthread_barrier_wait(&are_named);
        puts("started");
        fflush(stdout);
        while (getchar() == 'n') /* a new name */
                publish_context(header, 2);
        is_ended = 1;
        for (int i = 0; i < WORKERS + 2; i++)
                pthread_join(threads[i], NULL);
        return 0;
}
