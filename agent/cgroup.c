/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cgroup.h"

#include <stdbool.h>

#include "agent/text_line.h"

#define ID_DIGITS (CGROUP_CONTAINER_SIZE - 1)

static bool is_hex(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* "docker-<64 digits>.scope", "cri-containerd-<64 digits>.scope" or the bare digits. */
static bool container_of(struct text_line element, struct cgroup_names *ret)
{
        const char *at = element.at;

        while (at < element.end) {
                size_t digits = 0;

                while (at + digits < element.end && is_hex(at[digits]))
                        digits++;
                if (digits == ID_DIGITS && (at == element.at || at[-1] == '-') &&
                    (at + digits == element.end || at[digits] == '.')) {
                        memcpy(ret->container, at, ID_DIGITS);
                        ret->container[ID_DIGITS] = 0;
                        return true;
                }
                at += digits + 1;
        }
        return false;
}

static bool ends_with(struct text_line element, const char *suffix)
{
        size_t n = strlen(suffix);

        return text_size(&element) > n && memcmp(element.end - n, suffix, n) == 0;
}

static void take_element(struct text_line element, struct cgroup_names *ret)
{
        if (container_of(element, ret))
                return;
        if ((ends_with(element, ".service") || ends_with(element, ".scope")) && text_size(&element) < CGROUP_UNIT_SIZE) {
                memcpy(ret->unit, element.at, text_size(&element));
                ret->unit[text_size(&element)] = 0;
        }
}

void cgroup_parse(const char *text, size_t n, struct cgroup_names *ret)
{
        struct text_line left = { text, text + n }, line;

        *ret = (struct cgroup_names){ 0 };
        while (text_next_line(&left, &line)) {
                /* "HIERARCHY:CONTROLLERS:PATH"; the path begins with a slash. */
                const char *at = memchr(line.at, '/', text_size(&line));

                while (at && at < line.end) {
                        const char *end = memchr(at + 1, '/', (size_t)(line.end - at - 1));

                        take_element((struct text_line){ at + 1, end ? end : line.end }, ret);
                        at = end;
                }
        }
}
