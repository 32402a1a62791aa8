/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <check.h>
#include <string.h>

#include "http/trusted_proxy.h"
#include "tests/support/suite.h"

static struct address_range parse_range(const char *text)
{
        struct address_range r;

        ck_assert_msg(address_range_parse(text, &r, NULL) == ST_OK, "%s", text);
        return r;
}

/* A range with a single address. */
static struct in6_addr parse_address(const char *text)
{
        return parse_range(text).address;
}

static bool is_in(const char *address, const char *range)
{
        struct address_range r = parse_range(range);
        struct in6_addr a = parse_address(address);

        return is_address_in_ranges(&a, &r, 1);
}

START_TEST(ranges_contain_addresses_with_their_prefix)
{
        ck_assert(is_in("127.0.0.1", "127.0.0.1"));
        ck_assert(!is_in("127.0.0.2", "127.0.0.1"));
        ck_assert(is_in("10.255.255.255", "10.0.0.0/8"));
        ck_assert(!is_in("11.0.0.0", "10.0.0.0/8"));
        ck_assert(is_in("192.0.2.129", "192.0.2.128/25"));
        ck_assert(!is_in("192.0.2.127", "192.0.2.128/25"));
        ck_assert(is_in("8.8.8.8", "0.0.0.0/0"));
        ck_assert(!is_in("::1", "0.0.0.0/0"));
        ck_assert(is_in("::ffff:10.1.2.3", "10.0.0.0/8"));
        ck_assert(is_in("fd00:1::1", "fd00::/8"));
        ck_assert(!is_in("fe00::1", "fd00::/8"));
        ck_assert(!is_in("127.0.0.1", "::1"));
}
END_TEST

START_TEST(malformed_range_is_refused)
{
        static const char *const bad[] = { "",           "localhost",   "1.2.3",     "10.0.0.1/8",
                                           "10.0.0.0/",  "10.0.0.0/33", "::/129",    "fd00::1/64",
                                           "10.0.0.0/x", "10.0.0.0/-1", "1.2.3.4:5", "[::1]" };
        struct address_range r;
        struct error err;

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                ck_assert_msg(address_range_parse(bad[i], &r, &err) == ST_USAGE, "%s", bad[i]);
}
END_TEST

static void expect_client(const char *peer, const char *header, const char *client)
{
        const struct address_range trusted[] = { parse_range("127.0.0.1"), parse_range("10.0.0.0/8"),
                                                 parse_range("fd00::/8") };
        struct in6_addr found = parse_address(peer), wanted = parse_address(client);

        find_forwarded_client(header, trusted, 3, &found);
        ck_assert_msg(memcmp(&found, &wanted, sizeof found) == 0, "%s behind %s is not %s", header, peer, client);
}

START_TEST(client_is_last_untrusted_address)
{
        expect_client("127.0.0.1", NULL, "127.0.0.1");
        expect_client("127.0.0.1", "", "127.0.0.1");
        expect_client("127.0.0.1", "192.0.2.1", "192.0.2.1");
        expect_client("127.0.0.1", "1.1.1.1, 192.0.2.1", "192.0.2.1"); /* the first one was written by the client */
        expect_client("127.0.0.1", "1.1.1.1,192.0.2.1 ,\t10.0.0.3", "192.0.2.1");
        expect_client("127.0.0.1", "10.0.0.4, 10.0.0.3", "10.0.0.4");
        expect_client("fd00::1", "[2001:db8::1]:4711, 10.0.0.3:80", "2001:db8::1");
        expect_client("127.0.0.1", "2001:db8::7", "2001:db8::7");
        expect_client("127.0.0.1", "192.0.2.1:80", "192.0.2.1");
        expect_client("192.0.2.9", "192.0.2.1", "192.0.2.9"); /* a peer that is not a proxy is the client */
        expect_client("127.0.0.1", "192.0.2.1, unknown", "127.0.0.1");
        expect_client("127.0.0.1", "192.0.2.1, _cairn-0123, 10.0.0.3", "10.0.0.3");
        expect_client("127.0.0.1", "192.0.2.1,", "127.0.0.1");
        expect_client("127.0.0.1", "[2001:db8::1", "127.0.0.1");
        expect_client(
                "127.0.0.1",
                "192.0.2.1, 00000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
                "127.0.0.1");
}
END_TEST

TEST_SUITE("trusted_proxy", ranges_contain_addresses_with_their_prefix, malformed_range_is_refused,
           client_is_last_untrusted_address)
