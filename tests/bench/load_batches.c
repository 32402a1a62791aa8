/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends batches of a fleet of agents at a constant rate:
 *
 *      load_batches RATE SECONDS ROWS PORT...
 *
 * RATE batches a second in total, each of ROWS samples of one host, to the services on these ports of 127.0.0.1 in
 * turn. A host sends one each ten seconds, so there are RATE * 10 hosts. Batches are encoded and compressed as the
 * agent's, and have their own host, time and id. Stacks are drawn from the same STACKS for all hosts and in each run.
 *
 * The schedule does not wait for answers: a batch for which all connections of its service wait is late. Each second,
 * and at the end, prints a line: seconds, batches answered 200, batches answered otherwise, milliseconds that the next
 * batch is late, median and 99th percentile of the latency in milliseconds since the batch was due, own CPU seconds.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"
#include "tests/support/profiles.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define TIME_NS INT64_C(1728000000000000000) /* replaced in each batch */
#define HOST "host-0000000"                  /* likewise */
#define INTERVAL_S 10
#define STACKS 20000
#define LOCATIONS 30000
#define SERVICES 20
#define SERVICES_OF_HOST 4
#define TEMPLATES 64
#define PLACES_MAX 4096
#define SERVICES_MAX 16
#define CONNECTIONS 64 /* to each service, at most */
#define GZIP_LEVEL 1   /* the receiver's work hardly depends on it */
#define LATENCIES_MAX 1000000

struct template
{
        struct buf body;
        size_t times[PLACES_MAX], time_count, hosts[PLACES_MAX], host_count; /* offsets in the body */
};

struct connection {
        uint16_t port;
        int64_t due_ns;  /* of the batch that waits for its answer; 0: none */
        uint64_t number; /* of that batch */
        char head[KiB(4)];
        size_t head_size;
};

struct service {
        struct connection connections[CONNECTIONS];
        uint64_t sent; /* batches; its next one is due at sent / (its rate) */
};

static struct template templates[TEMPLATES];
static struct service services[SERVICES_MAX];
static struct pollfd polled[SERVICES_MAX * CONNECTIONS];
static size_t service_count;
static double rate_of_service;
static int64_t start_ns, first_id;
static uint64_t host_count, accepted, refused;
static float latencies_ms[LATENCIES_MAX];
static size_t latency_count;
static uint32_t random_state = 1;

static void die(const char *what)
{
        fprintf(stderr, "load_batches: %s\n", what);
        exit(1);
}

static uint32_t draw_number(uint32_t below)
{
        random_state = random_state * 1664525 + 1013904223;
        return (random_state >> 4) % below;
}

/* ---- batches ---- */

static void add_sample(struct test_profile *t, uint32_t number)
{
        uint32_t chosen = draw_number(draw_number(STACKS) + 1), saved = random_state, stack[30], n = 0;
        char service[32];

        random_state = chosen * 7919 + 1;
        for (uint32_t depth = 5 + draw_number(25); depth; depth--)
                stack[n++] = test_location(t, 0x1000 + 0x10 * draw_number(draw_number(LOCATIONS) + 1));
        random_state = saved;
        snprintf(service, sizeof service, "service.name=service-%u",
                 (number * 5 + chosen % SERVICES_OF_HOST) % SERVICES);
        test_sample(t, TIME_NS, 52631578, stack, n, (const char *const[]){ service, "host.name=" HOST, NULL });
}

static size_t find_places(const struct buf *body, const void *text, size_t n, size_t *places)
{
        const char *data = (const char *)body->data, *at = data, *end = at + body->size;
        size_t count = 0;

        while ((at = memmem(at, (size_t)(end - at), text, n))) {
                if (count == PLACES_MAX)
                        die("too many rows");
                places[count++] = (size_t)(at - data);
                at += n;
        }
        if (!count)
                die("a body has no time or host");
        return count;
}

static void make_template(struct template *ret, uint32_t number, uint32_t rows)
{
        const int64_t time_ns = TIME_NS;
        struct test_profile t;
        struct error err;

        test_profile_init(&t, ID, "/usr/bin/worker");
        for (uint32_t i = 0; i < rows; i++)
                add_sample(&t, number);
        buf_init(&ret->body, LIMIT_HTTP_BODY_BYTES);
        if (otlp_encode(&t.p, &ret->body, &err))
                die(err.text);
        test_profile_deinit(&t);
        ret->time_count = find_places(&ret->body, &time_ns, sizeof time_ns, ret->times);
        ret->host_count = find_places(&ret->body, HOST, strlen(HOST), ret->hosts);
}

static void pack_batch(uint64_t number, struct buf *ret)
{
        struct template *t = &templates[number % TEMPLATES];
        int64_t now_ns = wall_clock_ns();
        char host[sizeof HOST];
        struct error err;

        snprintf(host, sizeof host, "host-%07u", (unsigned)(number % host_count) % 10000000);
        for (size_t i = 0; i < t->time_count; i++)
                memcpy((char *)t->body.data + t->times[i], &now_ns, sizeof now_ns);
        for (size_t i = 0; i < t->host_count; i++)
                memcpy((char *)t->body.data + t->hosts[i], host, sizeof host - 1);
        buf_init(ret, LIMIT_HTTP_BODY_BYTES);
        if (gzip_compress(t->body.data, t->body.size, GZIP_LEVEL, ret, &err))
                die(err.text);
}

/* ---- connections ---- */

static int connect_to(uint16_t port)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

        if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
                die("cannot connect");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return fd;
}

static void send_all(int fd, const void *data, size_t n)
{
        for (size_t sent = 0; sent < n;) {
                ssize_t now = send(fd, (const char *)data + sent, n - sent, MSG_NOSIGNAL);

                if (now <= 0)
                        return; /* its answer is the end of the connection */
                sent += (size_t)now;
        }
}

static void send_batch(struct connection *c, int fd)
{
        _cleanup_buf_ struct buf body = { 0 };
        char head[512];
        int n;

        pack_batch(c->number, &body);
        n = snprintf(
                head, sizeof head,
                "POST /v1development/profiles HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-protobuf\r\n"
                "Content-Encoding: gzip\r\nX-Cairn-Batch: %016llx%016llx\r\nContent-Length: %zu\r\n\r\n",
                (unsigned long long)first_id, (unsigned long long)c->number, body.size);
        send_all(fd, head, (size_t)n);
        send_all(fd, body.data, body.size);
        c->head_size = 0;
}

static void count_answer(struct connection *c, unsigned code)
{
        *(code == 200 ? &accepted : &refused) += 1;
        if (code != 200 && code != 429 && code != 503)
                die(c->head);
        if (latency_count < LATENCIES_MAX)
                latencies_ms[latency_count++] = (float)(monotonic_ns() - c->due_ns) / 1e6F;
        c->due_ns = 0;
}

/* The service has closed a connection, as it does with idle ones; a batch that has just been sent is sent again. */
static void connect_again(struct connection *c, int *fd)
{
        close(*fd);
        *fd = connect_to(c->port);
        if (c->due_ns)
                send_batch(c, *fd);
}

/* The whole answer is one head and a short body. */
static void read_answer(struct connection *c, int *fd)
{
        ssize_t n = recv(*fd, c->head + c->head_size, sizeof c->head - 1 - c->head_size, MSG_DONTWAIT);
        char *end, *length;
        unsigned code;

        if (n <= 0 || !c->due_ns) {
                connect_again(c, fd);
                return;
        }
        c->head_size += (size_t)n;
        c->head[c->head_size] = 0;
        end = strstr(c->head, "\r\n\r\n");
        if (!end)
                return;
        length = strcasestr(c->head, "\r\nContent-Length:");
        if (!length || sscanf(c->head, "HTTP/1.1 %u", &code) != 1)
                die("an answer has no length");
        if (c->head_size == (size_t)(end + 4 - c->head) + strtoull(strchr(length + 2, ':') + 1, NULL, 10))
                count_answer(c, code);
}

/* ---- schedule ---- */

static int64_t get_due_ns(const struct service *s)
{
        return start_ns + (int64_t)((double)s->sent / rate_of_service * 1e9);
}

/* @return when the next batch of any service is due that has a free connection, or a second from now. */
static int64_t send_due_batches(int64_t end_ns)
{
        int64_t now = monotonic_ns(), next = now + 1000000000;

        for (size_t i = 0; i < service_count; i++) {
                int64_t due = get_due_ns(&services[i]);

                for (size_t k = 0; k < CONNECTIONS && due < end_ns; k++) {
                        if (services[i].connections[k].due_ns)
                                continue;
                        if (due > now) {
                                next = due < next ? due : next;
                                break;
                        }
                        services[i].connections[k].due_ns = due;
                        services[i].connections[k].number = services[i].sent++ * service_count + i;
                        send_batch(&services[i].connections[k], polled[i * CONNECTIONS + k].fd);
                        due = get_due_ns(&services[i]);
                }
        }
        return next;
}

static int compare_latencies(const void *x, const void *y)
{
        float a = *(const float *)x, b = *(const float *)y;

        return (a > b) - (a < b);
}

static void print_state(void)
{
        int64_t now = monotonic_ns(), due = now;
        struct rusage used;

        for (size_t i = 0; i < service_count; i++)
                due = get_due_ns(&services[i]) < due ? get_due_ns(&services[i]) : due;
        getrusage(RUSAGE_SELF, &used);
        qsort(latencies_ms, latency_count, sizeof *latencies_ms, compare_latencies);
        printf("%.1f %llu %llu %.0f %.1f %.1f %.3f\n", (double)(now - start_ns) / 1e9, (unsigned long long)accepted,
               (unsigned long long)refused, (double)(now - due) / 1e6,
               latency_count ? (double)latencies_ms[latency_count / 2] : 0,
               latency_count ? (double)latencies_ms[latency_count * 99 / 100] : 0,
               (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
        fflush(stdout);
        latency_count = 0;
}

static void send_until(int64_t end_ns)
{
        int64_t next_line = start_ns + 1000000000;

        while (monotonic_ns() < end_ns) {
                int64_t next = send_due_batches(end_ns), now = monotonic_ns();
                struct timespec pause = { 0 };

                next = next < next_line ? next : next_line;
                if (next > now)
                        pause = (struct timespec){ .tv_sec = (next - now) / 1000000000,
                                                   .tv_nsec = (next - now) % 1000000000 };
                if (ppoll(polled, service_count * CONNECTIONS, &pause, NULL) < 0)
                        die("cannot wait");
                for (size_t i = 0; i < service_count * CONNECTIONS; i++)
                        if (polled[i].revents)
                                read_answer(&services[i / CONNECTIONS].connections[i % CONNECTIONS], &polled[i].fd);
                if (monotonic_ns() >= next_line) {
                        print_state();
                        next_line += 1000000000;
                }
        }
}

int main(int argc, char **argv)
{
        double rate, seconds;
        uint32_t rows;

        if (argc < 5 || argc - 4 > SERVICES_MAX || (rate = strtod(argv[1], NULL)) <= 0 ||
            (seconds = strtod(argv[2], NULL)) <= 0 || !(rows = (uint32_t)strtoul(argv[3], NULL, 10)))
                die("usage: load_batches RATE SECONDS ROWS PORT...");
        service_count = (size_t)argc - 4;
        rate_of_service = rate / (double)service_count;
        host_count = (uint64_t)(rate * INTERVAL_S) + 1;
        for (uint32_t i = 0; i < TEMPLATES; i++)
                make_template(&templates[i], i, rows);
        for (size_t i = 0; i < service_count * CONNECTIONS; i++) {
                struct connection *c = &services[i / CONNECTIONS].connections[i % CONNECTIONS];

                c->port = (uint16_t)strtoul(argv[4 + i / CONNECTIONS], NULL, 10);
                polled[i] = (struct pollfd){ .fd = connect_to(c->port), .events = POLLIN };
        }
        start_ns = monotonic_ns();
        first_id = wall_clock_ns();
        send_until(start_ns + (int64_t)(seconds * 1e9));
        print_state();
        return 0;
}
