/* SPDX-License-Identifier: Apache-2.0 */
/* Who has to go when several come at one time. */
#include <arpa/inet.h>
#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

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

        return connections_admit(c, (const struct sockaddr *)&a);
}

static struct client come(unsigned client)
{
        const struct sockaddr_in a = address_of(client);
        int pair[2];

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        return (struct client){ pair[0], pair[1], connection_open(c, pair[0], (const struct sockaddr *)&a) };
}

static bool was_ended(const struct client *client)
{
        char byte;

        return recv(client->there, &byte, 1, 0) == 0;
}

static void leave(struct client *client)
{
        connection_close(c, client->connection);
        close(client->here);
        close(client->there);
}

static void set_up(void)
{
        const struct connection_limits limits = { .all = ALL, .per_address = PER_ADDRESS, .headers_s = 60, .slow_s = 60 };

        ck_assert_int_eq(connections_create(&limits, &c, NULL), ST_OK);
}

static void tear_down(void)
{
        connections_destroy(c);
}

START_TEST(two_that_are_admitted_to_one_place_do_not_both_keep_it)
{
        struct client first, second, third;

        ck_assert(admit(1));
        first = come(1);
        ck_assert(admit(1) && admit(1));
        second = come(1);
        third = come(1);
        ck_assert(was_ended(&first));
        ck_assert(!was_ended(&second) && !was_ended(&third));
        leave(&first);
        leave(&second);
        leave(&third);
}
END_TEST

START_TEST(nor_when_the_place_is_everybodys)
{
        struct client clients[ALL + 1];
        unsigned ended = 0;

        for (unsigned i = 0; i <= ALL; i++)
                ck_assert(admit(i));
        for (unsigned i = 0; i <= ALL; i++)
                clients[i] = come(i);
        for (unsigned i = 0; i <= ALL; i++)
                ended += was_ended(&clients[i]);
        ck_assert_uint_eq(ended, 1);
        ck_assert(!was_ended(&clients[ALL]));
        for (unsigned i = 0; i <= ALL; i++)
                leave(&clients[i]);
}
END_TEST

START_TEST(the_newcomer_goes_when_nobody_else_may)
{
        struct client first, second, third;

        ck_assert(admit(1) && admit(1) && admit(1));
        first = come(1);
        second = come(1);
        connection_enter(first.connection, CONNECTION_WORKING);
        connection_enter(second.connection, CONNECTION_WORKING);
        third = come(1);
        ck_assert(was_ended(&third));
        ck_assert(!was_ended(&first) && !was_ended(&second));
        ck_assert(!admit(1));
        leave(&first);
        leave(&second);
        leave(&third);
        ck_assert(admit(1));
}
END_TEST

int main(void)
{
        const TTest *const tests[] = { two_that_are_admitted_to_one_place_do_not_both_keep_it, nor_when_the_place_is_everybodys,
                                       the_newcomer_goes_when_nobody_else_may };

        return suite_run_with("connections", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
