/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/perf_text.h"

#include <string.h>

struct perf_text perf_text_trim(struct perf_text t)
{
        for (; t.n && perf_is_blank(*t.at); t.at++)
                t.n--;
        while (t.n && perf_is_blank(t.at[t.n - 1]))
                t.n--;
        return t;
}

struct perf_text perf_text_word(struct perf_text *rest)
{
        struct perf_text t = perf_text_trim(*rest), word = { t.at, 0 };

        while (word.n < t.n && !perf_is_blank(t.at[word.n]))
                word.n++;
        *rest = (struct perf_text){ t.at + word.n, t.n - word.n };
        return word;
}

bool perf_text_number(struct perf_text t, int base, uint64_t *ret)
{
        uint64_t v = 0;

        if (base == 16 && t.n > 2 && t.at[0] == '0' && t.at[1] == 'x')
                t = (struct perf_text){ t.at + 2, t.n - 2 };
        if (t.n == 0)
                return false;
        for (size_t i = 0; i < t.n; i++) {
                unsigned c = (unsigned char)t.at[i], digit;

                digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
                if (digit >= (unsigned)base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
                    __builtin_add_overflow(v, digit, &v))
                        return false;
        }
        *ret = v;
        return true;
}

/* "2847.589551:" in nanoseconds. */
static bool text_time(struct perf_text t, int64_t *ret)
{
        const char *dot = memchr(t.at, '.', t.n);
        uint64_t seconds, fraction;
        struct perf_text after;

        if (!dot || t.n < 4 || t.at[t.n - 1] != ':')
                return false;
        after = (struct perf_text){ dot + 1, (size_t)(t.at + t.n - 1 - (dot + 1)) };
        if (!perf_text_number((struct perf_text){ t.at, (size_t)(dot - t.at) }, 10, &seconds) || seconds > INT32_MAX ||
            after.n > 9 || !perf_text_number(after, 10, &fraction))
                return false;
        for (size_t i = after.n; i < 9; i++)
                fraction *= 10;
        *ret = (int64_t)(seconds * 1000000000 + fraction);
        return true;
}

/* "28419" or "28419/28420": the last one is the thread, the first the process if there are two. */
static bool text_pid(struct perf_text t, uint64_t *ret)
{
        const char *slash = memchr(t.at, '/', t.n);

        return perf_text_number((struct perf_text){ t.at, slash ? (size_t)(slash - t.at) : t.n }, 10, ret);
}

/* The name may hold blanks and digits, so the time is looked for first. */
bool perf_text_header(struct perf_text line, struct perf_header *ret)
{
        struct perf_text rest = line, before = { line.at, 0 }, previous = { line.at, 0 };

        for (;;) {
                struct perf_text word = perf_text_word(&rest), pid;

                if (word.n == 0)
                        return false;
                if (text_time(word, &ret->time_ns)) {
                        pid = previous;
                        if (pid.n && pid.at[0] == '[')
                                pid = before;
                        if (pid.n && pid.at > line.at && text_pid(pid, &ret->pid)) {
                                ret->comm = perf_text_trim((struct perf_text){ line.at, (size_t)(pid.at - line.at) });
                                ret->rest = perf_text_trim(rest);
                                return true;
                        }
                }
                before = previous;
                previous = word;
        }
}
