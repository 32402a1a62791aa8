/* SPDX-License-Identifier: Apache-2.0 */
#include "common/request_id.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"

static bool is_valid_request_id(const char *text)
{
        size_t n = 0;

        while (n <= REQUEST_ID_MAX && text[n] && (unsigned char)text[n] < 0x80 &&
               (isalnum((unsigned char)text[n]) || strchr("-._~:/+=@", text[n])))
                n++;
        return n && n <= REQUEST_ID_MAX && !text[n];
}

void request_id_choose(const char *sent, char ret[static REQUEST_ID_SIZE])
{
        static _Atomic uint64_t count;
        uint64_t random[2];

        if (sent && is_valid_request_id(sent)) {
                memcpy(ret, sent, strlen(sent) + 1);
                return;
        }
        /* An id need not be secret; until the kernel's random generator is ready it is only unique in this process. */
        if (getrandom(random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) {
                random[0] = (uint64_t)wall_clock_ns();
                random[1] = atomic_fetch_add(&count, 1);
        }
        snprintf(ret, REQUEST_ID_SIZE, "%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]);
}
