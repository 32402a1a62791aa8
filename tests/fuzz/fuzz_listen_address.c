/* SPDX-License-Identifier: Apache-2.0 */
/* The argument of --listen. Numeric addresses are resolved, names are not: fuzzing must not send DNS requests. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "http/listen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
        if (!ok)
                abort();
}

/* Only characters of numeric addresses; no zone, since network interfaces depend on the host. */
static bool is_numeric_text(const char *text)
{
        size_t n = strspn(text, "0123456789abcdefABCDEF.:[]");

        return text[n] == 0 && strpbrk(text, ".:[");
}

/* Text that getaddrinfo() treats as a name, such as "abc" or "1.2.beef", would be resolved. */
static bool is_numeric_host(const char *text)
{
        struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *info;
        _cleanup_free_ char *host = strdup(text);
        char *end;

        require(host != NULL);
        if (host[0] == '[') {
                end = strchr(host, ']');
                if (!end)
                        return true; /* refused before it is resolved */
                *end = 0;
                end = host + 1;
        } else {
                end = strrchr(host, ':');
                if (end)
                        *end = 0;
                end = host;
        }
        if (!*end)
                return true; /* the wildcard address */
        if (getaddrinfo(end, NULL, &hints, &info))
                return false;
        freeaddrinfo(info);
        return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = strndup(size ? (const char *)data : "", size);
        struct listen_address l;
        struct error err;

        require(text != NULL);
        if (!is_numeric_text(text) || !is_numeric_host(text))
                return 0;
        if (parse_listen_address(text, 7070, &l, &err))
                return 0;
        require(l.host[0] && strlen(l.host) < sizeof l.host && !strpbrk(l.host, "[]"));
        require(!l.is_loopback || strcmp(l.host, "0.0.0.0") != 0);
        if (!strchr(text, ':'))
                require(l.port == 7070);
        return 0;
}
