/* SPDX-License-Identifier: Apache-2.0 */
/* Which connection is closed when several clients connect concurrently. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "http/connections.h"
#include "tests/support/suite.h"

#define ALL 3
#define PER_ADDRESS 2

static struct connections *c;

struct client {
        int here, there;
        struct connection *connection;
};

static struct sockaddr_in address_of(unsigned client)
{
        return (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000000 + client) };
}

static bool admit(unsigned client)
{
        const struct sockaddr_in a = address_of(client);

        return connections_make_room(c, (const struct sockaddr *)&a);
}

static struct client connect_client(unsigned client)
{
        const struct sockaddr_in a = address_of(client);
        int pair[2];

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        return (struct client){ pair[0], pair[1], connection_open(c, pair[0], (const struct sockaddr *)&a) };
}

static bool is_closed(const struct client *client)
{
        char byte;

        return recv(client->there, &byte, 1, 0) == 0;
}

static void disconnect_client(struct client *client)
{
        connection_close(c, client->connection);
        close(client->here);
        close(client->there);
}

static void set_up(void)
{
        const struct connection_limits limits = {
                .all = ALL, .per_address = PER_ADDRESS, .headers_s = 60, .slow_s = 60
        };

        ck_assert_int_eq(connections_create(&limits, &c, NULL), ST_OK);
}

static void tear_down(void)
{
        connections_destroy(c);
}

START_TEST(two_connections_admitted_for_one_slot_do_not_both_stay)
{
        struct client first, second, third;

        ck_assert(admit(1));
        first = connect_client(1);
        ck_assert(admit(1) && admit(1));
        second = connect_client(1);
        third = connect_client(1);
        ck_assert(is_closed(&first));
        ck_assert(!is_closed(&second) && !is_closed(&third));
        disconnect_client(&first);
        disconnect_client(&second);
        disconnect_client(&third);
}
END_TEST

START_TEST(two_connections_admitted_for_the_last_slot_do_not_both_stay)
{
        struct client clients[ALL + 1];
        unsigned ended = 0;

        for (unsigned i = 0; i <= ALL; i++)
                ck_assert(admit(i));
        for (unsigned i = 0; i <= ALL; i++)
                clients[i] = connect_client(i);
        for (unsigned i = 0; i <= ALL; i++)
                ended += is_closed(&clients[i]);
        ck_assert_uint_eq(ended, 1);
        ck_assert(!is_closed(&clients[ALL]));
        for (unsigned i = 0; i <= ALL; i++)
                disconnect_client(&clients[i]);
}
END_TEST

START_TEST(new_connection_is_closed_if_no_other_may_be)
{
        struct client first, second, third;

        ck_assert(admit(1) && admit(1) && admit(1));
        first = connect_client(1);
        second = connect_client(1);
        connection_set_phase(first.connection, CONNECTION_WORKING);
        connection_set_phase(second.connection, CONNECTION_WORKING);
        third = connect_client(1);
        ck_assert(is_closed(&third));
        ck_assert(!is_closed(&first) && !is_closed(&second));
        ck_assert(!admit(1));
        disconnect_client(&first);
        disconnect_client(&second);
        disconnect_client(&third);
        ck_assert(admit(1));
}
END_TEST

/* ---- clients that leave ---- */

static void wait_for_flag(const atomic_bool *flag)
{
        int64_t end = monotonic_ns() + 30ll * 1000000000;

        while (!atomic_load(flag)) {
                ck_assert_msg(monotonic_ns() < end, "the request was not cancelled");
                poll(NULL, 0, 1);
        }
}

/* The periodic check cannot detect it: it uses TCP_INFO, which Unix sockets do not support. */
START_TEST(request_is_cancelled_when_client_disconnects)
{
        struct client leaving = connect_client(1), staying = connect_client(2), early = connect_client(3);
        atomic_bool cancel_leaving = false, cancel_staying = false;

        connection_watch(leaving.connection, &cancel_leaving, INT64_MAX);
        connection_watch(staying.connection, &cancel_staying, INT64_MAX);
        connection_set_phase(leaving.connection, CONNECTION_WORKING);
        connection_set_phase(staying.connection, CONNECTION_WORKING);
        ck_assert_int_eq(shutdown(early.there, SHUT_WR), 0); /* while its request is not being processed */
        ck_assert_int_eq(shutdown(leaving.there, SHUT_WR), 0);
        wait_for_flag(&cancel_leaving);
        ck_assert(atomic_load(connection_client_left(leaving.connection)));
        ck_assert(!atomic_load(&cancel_staying));
        ck_assert(!atomic_load(connection_client_left(staying.connection)));
        ck_assert(!atomic_load(connection_client_left(early.connection)));
        connection_watch(leaving.connection, NULL, 0);
        connection_watch(staying.connection, NULL, 0);
        disconnect_client(&leaving);
        disconnect_client(&staying);
        disconnect_client(&early);
}
END_TEST

START_TEST(short_request_of_half_closed_connection_is_not_cancelled)
{
        struct client brief = connect_client(1), leaving = connect_client(2);
        atomic_bool cancel_brief = false, cancel_leaving = false;
        int64_t begin_ns, took_ns;

        connection_watch(brief.connection, &cancel_brief, INT64_MAX);
        connection_watch(leaving.connection, &cancel_leaving, INT64_MAX);
        connection_set_phase(brief.connection, CONNECTION_WORKING);
        connection_set_phase(leaving.connection, CONNECTION_WORKING);
        begin_ns = monotonic_ns();
        ck_assert_int_eq(shutdown(brief.there, SHUT_WR), 0);
        connection_set_phase(brief.connection, CONNECTION_SENDING);
        took_ns = monotonic_ns() - begin_ns;
        ck_assert_int_eq(shutdown(leaving.there, SHUT_WR), 0);
        wait_for_flag(&cancel_leaving); /* by then the grace period of both has ended */
        ck_assert(!atomic_load(&cancel_brief) ||
                  took_ns > 40000000); /* unless this thread was delayed for longer than the period */
        connection_watch(brief.connection, NULL, 0);
        connection_watch(leaving.connection, NULL, 0);
        disconnect_client(&brief);
        disconnect_client(&leaving);
}
END_TEST

/* ---- memory in use ---- */

#define HELD_BYTES MiB(2)
static const char bytes[KiB(64)];

static struct client connect_sender(unsigned client, size_t held)
{
        struct sockaddr_in local = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        const struct sockaddr_in a = address_of(client);
        socklen_t size = sizeof local;
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), room = 4096;
        struct client ret;

        ck_assert(listener >= 0 && !bind(listener, (struct sockaddr *)&local, sizeof local) && !listen(listener, 1));
        ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&local, &size), 0);
        ret.there = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert(!setsockopt(ret.there, SOL_SOCKET, SO_RCVBUF, &room, sizeof room));
        ck_assert_int_eq(connect(ret.there, (struct sockaddr *)&local, sizeof local), 0);
        ret.here = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        close(listener);
        ret.connection = connection_open(c, ret.here, (const struct sockaddr *)&a);
        connection_set_held_bytes(ret.connection, held);
        connection_set_phase(ret.connection, CONNECTION_SENDING);
        return ret;
}

/* Sends as much as the socket accepts; false once the connection was closed. */
static bool send_more(const struct client *client)
{
        ssize_t n;

        do
                n = send(client->here, bytes, sizeof bytes, MSG_NOSIGNAL);
        while (n > 0);
        return errno == EAGAIN;
}

static void refuse_memory(void)
{
        struct memory_reservation r = { .use = MEMORY_ANSWERS };

        ck_assert_int_ne(memory_reserve(&r, LIMIT_MEMORY_LEAST_BYTES * 2, NULL), ST_OK);
}

START_TEST(client_that_reads_nothing_and_holds_memory_is_closed)
{
        struct client idle = connect_sender(1, HELD_BYTES), reading = connect_sender(2, HELD_BYTES),
                      small = connect_sender(3, LIMIT_HTTP_HELD_BYTES - 1);
        int64_t end = monotonic_ns() + 30ll * 1000000000;
        char read_bytes[KiB(16)];

        ck_assert_int_eq(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, NULL), ST_OK);
        while (send_more(&idle)) {
                struct pollfd reader = { .fd = reading.there, .events = POLLIN };

                ck_assert_msg(monotonic_ns() < end, "it was not ended");
                refuse_memory(); /* which shortens the interval */
                ck_assert_msg(send_more(&reading), "one that reads was ended");
                ck_assert_msg(send_more(&small), "one that holds little was ended");
                if (poll(&reader, 1, 10) > 0)
                        ck_assert_int_gt(recv(reading.there, read_bytes, sizeof read_bytes, 0), 0);
        }
        disconnect_client(&idle);
        disconnect_client(&reading);
        disconnect_client(&small);
}
END_TEST

/* A connection of TCP from client 1, whose both ends are here. */
static struct client connect_with_tcp(int listener)
{
        const struct sockaddr_in a = address_of(1);
        struct sockaddr_in at;
        socklen_t n = sizeof at;
        struct client client = { .there = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };

        ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &n), 0);
        ck_assert_int_eq(connect(client.there, (const struct sockaddr *)&at, n), 0);
        client.here = accept(listener, NULL, NULL);
        ck_assert_int_ge(client.here, 0);
        client.connection = connection_open(c, client.here, (const struct sockaddr *)&a);
        return client;
}

static void send_byte(int from, int to)
{
        struct pollfd arrived = { .fd = to, .events = POLLIN };

        ck_assert_int_eq(send(from, "x", 1, 0), 1);
        ck_assert_int_eq(poll(&arrived, 1, -1), 1);
}

START_TEST(handshakes_that_wait_are_limited_by_address)
{
        enum { HANDSHAKES = 2 };
        const struct connection_limits limits = {
                .all = 100, .per_address = 50, .handshakes = HANDSHAKES, .headers_s = 60, .slow_s = 60
        };
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct client silent, clients[HANDSHAKES];
        char byte;

        connections_destroy(c);
        ck_assert_int_eq(connections_create(&limits, &c, NULL), ST_OK);
        ck_assert_int_eq(bind(listener, (const struct sockaddr *)&a, sizeof a), 0);
        ck_assert_int_eq(listen(listener, 10), 0);

        silent = connect_with_tcp(listener);
        for (unsigned i = 0; i < HANDSHAKES; i++) {
                ck_assert(admit(1));
                clients[i] = connect_with_tcp(listener);
                send_byte(clients[i].there, clients[i].here);
        }
        ck_assert_msg(!admit(1), "as many as may wait do wait");
        ck_assert_msg(admit(2), "other addresses are not concerned");

        ck_assert_int_eq(recv(clients[0].here, &byte, 1, 0), 1);
        ck_assert_msg(admit(1), "bytes that were read do not wait");
        ck_assert_msg(!admit(1), "the one that was admitted counts before it is opened");
        disconnect_client(&silent);
        silent = connect_with_tcp(listener);
        ck_assert_msg(admit(1), "  and not twice after that");

        disconnect_client(&silent);
        silent = connect_with_tcp(listener);
        send_byte(clients[1].here, clients[1].there);
        ck_assert_msg(admit(1) && admit(1), "an answered connection never counts");
        disconnect_client(&silent);
        for (unsigned i = 0; i < HANDSHAKES; i++)
                disconnect_client(&clients[i]);
        close(listener);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("connections", client_that_reads_nothing_and_holds_memory_is_closed,
                        two_connections_admitted_for_one_slot_do_not_both_stay,
                        two_connections_admitted_for_the_last_slot_do_not_both_stay,
                        new_connection_is_closed_if_no_other_may_be, request_is_cancelled_when_client_disconnects,
                        short_request_of_half_closed_connection_is_not_cancelled,
                        handshakes_that_wait_are_limited_by_address)
