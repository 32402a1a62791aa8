/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/perf_line.h"

#include <string.h>

static bool perf_is_digit(char c)
{
        return c >= '0' && c <= '9';
}

struct perf_text trim_perf_text(struct perf_text t)
{
        for (; t.n && perf_is_blank(*t.at); t.at++)
                t.n--;
        while (t.n && perf_is_blank(t.at[t.n - 1]))
                t.n--;
        return t;
}

struct perf_text cut_perf_word(struct perf_text *rest)
{
        struct perf_text t = trim_perf_text(*rest), word = { t.at, 0 };

        while (word.n < t.n && !perf_is_blank(t.at[word.n]))
                word.n++;
        *rest = (struct perf_text){ t.at + word.n, t.n - word.n };
        return word;
}

bool parse_perf_number(struct perf_text t, int base, uint64_t *ret)
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
static bool parse_perf_time(struct perf_text t, int64_t *ret)
{
        const char *dot = memchr(t.at, '.', t.n);
        uint64_t seconds, fraction;
        struct perf_text after;

        if (!dot || t.n < 4 || t.at[t.n - 1] != ':')
                return false;
        after = (struct perf_text){ dot + 1, (size_t)(t.at + t.n - 1 - (dot + 1)) };
        if (!parse_perf_number((struct perf_text){ t.at, (size_t)(dot - t.at) }, 10, &seconds) || seconds > INT32_MAX ||
            after.n > 9 || !parse_perf_number(after, 10, &fraction))
                return false;
        for (size_t i = after.n; i < 9; i++)
                fraction *= 10;
        *ret = (int64_t)(seconds * 1000000000 + fraction);
        return true;
}

bool parse_perf_pid(struct perf_text t, uint64_t *ret)
{
        const char *slash = memchr(t.at, '/', t.n);

        return parse_perf_number((struct perf_text){ t.at, slash ? (size_t)(slash - t.at) : t.n }, 10, ret);
}

#define WORDS_AFTER_PID 4 /* most words between the process and the time: CPU, misc, date and time of day */

bool parse_perf_header(struct perf_text line, struct perf_header *ret)
{
        struct perf_text rest = line, pid = { NULL, 0 }, word;
        unsigned words_after_pid = 0;
        struct perf_header found = { 0 };
        bool is_found = false;
        int64_t time_ns;
        uint64_t number;

        for (word = cut_perf_word(&rest); word.n; word = cut_perf_word(&rest)) {
                if (parse_perf_time(word, &time_ns)) {
                        bool has_pid = pid.at && words_after_pid <= WORDS_AFTER_PID && parse_perf_pid(pid, &number);

                        if (has_pid || (!is_found && *line.at != '\t')) {
                                const char *end = has_pid ? pid.at : word.at;

                                found = (struct perf_header){ .comm = trim_perf_text((struct perf_text){
                                                                      line.at, (size_t)(end - line.at) }),
                                                              .rest = trim_perf_text(rest),
                                                              .time_ns = time_ns,
                                                              .has_pid = has_pid,
                                                              .pid = has_pid ? number : 0 };
                                is_found = true;
                        }
                        if (has_pid)
                                break;
                }
                words_after_pid++;
                if (parse_perf_pid(word, &number)) {
                        pid = word;
                        words_after_pid = 0;
                }
        }
        if (is_found)
                *ret = found;
        return is_found;
}

bool is_skipped_line(struct perf_text t)
{
        return (t.n > 1 && t.at[0] == '|' && perf_is_digit(t.at[1])) ||
               (t.n > RECORD_PREFIX_SIZE && memcmp(t.at, RECORD_PREFIX, RECORD_PREFIX_SIZE) == 0);
}

bool is_marked_header(const struct perf_header *h)
{
        struct perf_text rest = h->rest, word;

        if (!h->has_pid)
                return false;
        word = cut_perf_word(&rest);
        if (word.n && perf_is_digit(*word.at))
                word = cut_perf_word(&rest); /* after the period */
        return word.n > 1 && (word.at[word.n - 1] == ':' || is_skipped_line(word));
}

static struct perf_text cut_text_line(const char *at, const char *end)
{
        const char *eol = memchr(at, '\n', (size_t)(end - at));

        return (struct perf_text){ at, (size_t)((eol ? eol : end) - at) };
}

/* Whether a line ends in ":PID/TID", as records of names do. */
static bool ends_in_process(struct perf_text t)
{
        size_t n = t.n;

        while (n && (perf_is_digit(t.at[n - 1]) || t.at[n - 1] == '/'))
                n--;
        return n && n < t.n && t.at[n - 1] == ':';
}

#define NAME_BYTES 15 /* longest name of a process */

/* Whether a line may be the beginning of a name with line ends. */
static bool may_begin_name(struct perf_text line)
{
        struct perf_header h;

        return line.n && line.n < NAME_BYTES && *line.at != '#' && !perf_is_blank(*line.at) && !is_skipped_line(line) &&
               !parse_perf_header(line, &h);
}

/* The lines that the name of a process divides; the first line if there is no such name. */
static struct perf_text cut_divided_name(const char *at, const char *end)
{
        const struct perf_text first = cut_text_line(at, end);
        const char *record = memmem(first.at, first.n, RECORD_PREFIX "COMM", RECORD_PREFIX_SIZE + 4), *next;
        const bool is_divided_record = record && !ends_in_process(first);
        const char *name =
                is_divided_record ? memmem(record, (size_t)(first.at + first.n - record), ": ", 2) : first.at;
        struct perf_text line = first;
        struct perf_header h;

        if (!name || (!is_divided_record && !may_begin_name(first)))
                return first;
        for (next = line.at + line.n + 1; next < end && next - name <= NAME_BYTES + 2; next = line.at + line.n + 1) {
                line = cut_text_line(next, end);
                if (is_divided_record ? ends_in_process(line) : parse_perf_header(line, &h) && h.has_pid)
                        return (struct perf_text){ at, (size_t)(line.at + line.n - at) };
        }
        return first;
}

#define PATH_BYTES 4096 /* longest path that the kernel records */

static bool is_frame_line(struct perf_text t)
{
        uint64_t address;

        return t.n && perf_is_blank(*t.at) && parse_perf_number(cut_perf_word(&t), 16, &address) && trim_perf_text(t).n;
}

/* The parenthesis before the path of a file, if the line ends without the one after it; else NULL. */
static const char *find_open_path(struct perf_text t)
{
        const char *path = memmem(t.at, t.n, " (/", 3);

        return path && !memchr(path, ')', (size_t)(t.at + t.n - path)) ? path : NULL;
}

/* The part of the input in which a path at `path` may end. */
static const char *limit_path_end(const char *path, const char *end)
{
        return end - path > PATH_BYTES ? path + PATH_BYTES : end;
}

/* A frame with all lines of its path. Time: the search ends at the next line from which another may begin. */
static struct perf_text cut_divided_frame(struct perf_text first, const char *end)
{
        const char *path = find_open_path(first), *stop;
        struct perf_text line = first, t;
        struct perf_header h;

        if (!path || (!is_frame_line(first) && !parse_perf_header(first, &h)))
                return first;
        stop = limit_path_end(path, end);
        for (const char *next = first.at + first.n + 1; next < stop; next = line.at + line.n + 1) {
                line = cut_text_line(next, stop);
                if (is_frame_line(line) || parse_perf_header(line, &h))
                        break;
                t = trim_perf_text(line);
                if (t.n && t.at[t.n - 1] == ')')
                        return (struct perf_text){ first.at, (size_t)(line.at + line.n - first.at) };
        }
        return first;
}

/* Whether a line below the record of a mapping may be a part of its path. One that may begin a name is not. */
static bool may_continue_path(struct perf_text line, const char *end)
{
        struct perf_text rest = line;
        struct perf_header h;

        if (!line.n || perf_is_blank(*line.at) || *line.at == '#' || is_skipped_line(line) ||
            parse_perf_header(line, &h) || cut_divided_name(line.at, end).n > line.n)
                return false;
        if (cut_perf_word(&rest).n < BUILD_ID_CHARS_LEAST)
                return true;
        rest = trim_perf_text(rest);
        return !rest.n || !strchr("/[", *rest.at);
}

/* The record of a mapping with all lines of its path. */
static struct perf_text cut_divided_mapping(struct perf_text first, const char *end)
{
        const char *stop = limit_path_end(first.at, end);
        struct perf_text all = first;

        while (all.at + all.n + 1 < stop) {
                const struct perf_text line = cut_text_line(all.at + all.n + 1, stop);

                if ((line.at + line.n == stop && stop < end) || !may_continue_path(line, stop))
                        break;
                all.n += 1 + line.n;
        }
        return all;
}

struct perf_text cut_perf_line(const char *at, const char *end)
{
        const struct perf_text line = cut_divided_name(at, end);

        if (line.n && line.at[line.n - 1] == ')') /* nearly all frames */
                return line;
        if (memmem(line.at, line.n, RECORD_PREFIX "MMAP", RECORD_PREFIX_SIZE + 4))
                return cut_divided_mapping(line, end);
        return cut_divided_frame(line, end);
}

/* An entry of the branch stack, FROM/TO/P/-/-/0. */
static bool is_branch_entry(const char *word, size_t n)
{
        for (size_t i = 0; i + 4 < n; i++)
                if (word[i] == '/' && memchr("MPN-", word[i + 1], 4) && word[i + 2] == '/' &&
                    memchr("X-", word[i + 3], 2) && word[i + 4] == '/')
                        return true;
        return false;
}

void cut_perf_branches(struct perf_text *frame)
{
        const char *end = memmem(frame->at, frame->n, ") => ", 5);

        if (end) {
                struct perf_text target = { end + 5, frame->n - (size_t)(end + 5 - frame->at) };
                uint64_t address;

                target = trim_perf_text(target);
                if (parse_perf_number(cut_perf_word(&target), 16, &address))
                        frame->n = (size_t)(end + 1 - frame->at);
        }
        for (;;) {
                const struct perf_text all = trim_perf_text(*frame);
                const char *blank = all.n ? memrchr(all.at, ' ', all.n) : NULL;

                if (!blank || !is_branch_entry(blank + 1, (size_t)(all.at + all.n - blank - 1)))
                        return;
                frame->n = (size_t)(blank - frame->at);
        }
}
