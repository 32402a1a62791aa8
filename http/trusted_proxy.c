/* SPDX-License-Identifier: Apache-2.0 */
#include "http/trusted_proxy.h"

#include <arpa/inet.h>
#include <string.h>

#include "common/text/number_text.h"

#define ENTRY_MAX 64 /* longer than "[" address "%" zone "]:" port */

/* An IPv4 address is returned IPv4-mapped. */
static bool parse_address(const char *text, struct in6_addr *ret, bool *is_v4_ret)
{
        struct in_addr v4;

        *is_v4_ret = inet_pton(AF_INET, text, &v4) == 1;
        if (!*is_v4_ret)
                return inet_pton(AF_INET6, text, ret) == 1;
        *ret = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
        memcpy(ret->s6_addr + 12, &v4, sizeof v4);
        return true;
}

static bool have_same_prefix(const struct in6_addr *a, const struct in6_addr *b, unsigned bits)
{
        unsigned bytes = bits / 8, rest = bits % 8;

        if (memcmp(a->s6_addr, b->s6_addr, bytes) != 0)
                return false;
        return !rest || (a->s6_addr[bytes] ^ b->s6_addr[bytes]) >> (8 - rest) == 0;
}

static bool is_range_start(const struct address_range *r)
{
        for (unsigned i = r->bits; i < 128; i++)
                if (r->address.s6_addr[i / 8] & 0x80 >> i % 8)
                        return false;
        return true;
}

enum status address_range_parse(const char *text, struct address_range *ret, struct error *err)
{
        const char *slash = strchr(text, '/');
        size_t n = slash ? (size_t)(slash - text) : strlen(text);
        struct address_range range;
        char address[ENTRY_MAX];
        uint64_t bits;
        bool is_v4;

        if (n >= sizeof address)
                return error_set(err, ST_USAGE, "'%.80s' is not an address", text);
        memcpy(address, text, n);
        address[n] = 0;
        if (!parse_address(address, &range.address, &is_v4))
                return error_set(err, ST_USAGE, "'%.80s' is not an address, nor ADDRESS/BITS", text);
        bits = is_v4 ? 32 : 128;
        if (slash && (!parse_uint(slash + 1, &bits) || bits > (is_v4 ? 32 : 128)))
                return error_set(err, ST_USAGE, "'%.80s': /%s is not a number of bits from 0 to %d", text, slash + 1,
                                 is_v4 ? 32 : 128);
        range.bits = (unsigned)bits + (is_v4 ? 96 : 0);
        if (!is_range_start(&range))
                return error_set(err, ST_USAGE, "'%.80s' has bits set after its prefix of %u", text, (unsigned)bits);
        *ret = range;
        return ST_OK;
}

bool is_address_in_ranges(const struct in6_addr *address, const struct address_range *ranges, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (have_same_prefix(address, &ranges[i].address, ranges[i].bits))
                        return true;
        return false;
}

bool address_from_socket(const struct sockaddr *from, struct in6_addr *ret)
{
        if (from->sa_family == AF_INET6) {
                *ret = ((const struct sockaddr_in6 *)from)->sin6_addr;
                return true;
        }
        if (from->sa_family != AF_INET)
                return false;
        *ret = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
        memcpy(ret->s6_addr + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
        return true;
}

/* An entry of X-Forwarded-For: an address, optionally followed by a port (IPv6 in brackets then). */
static bool parse_entry(const char *text, size_t n, struct in6_addr *ret)
{
        char entry[ENTRY_MAX], *start = entry, *end;
        bool is_v4;

        while (n && (text[0] == ' ' || text[0] == '\t'))
                text++, n--;
        while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
                n--;
        if (n >= sizeof entry)
                return false;
        memcpy(entry, text, n);
        entry[n] = 0;
        if (entry[0] == '[') {
                start++;
                end = strchr(entry, ']');
                if (!end || (end[1] && end[1] != ':'))
                        return false;
                *end = 0;
        } else if (strchr(entry, '.') && (end = strchr(entry, ':')) && !strchr(end + 1, ':')) {
                *end = 0;
        }
        return parse_address(start, ret, &is_v4);
}

void find_forwarded_client(const char *header, const struct address_range *ranges, size_t count,
                           struct in6_addr *client)
{
        size_t end = header ? strlen(header) : 0;

        while (end && is_address_in_ranges(client, ranges, count)) {
                size_t start = end;
                struct in6_addr before;

                while (start && header[start - 1] != ',')
                        start--;
                if (!parse_entry(header + start, end - start, &before))
                        return;
                *client = before;
                end = start ? start - 1 : 0;
        }
}
