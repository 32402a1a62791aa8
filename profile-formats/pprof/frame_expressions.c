/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/pprof/frame_expressions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/text/regex_match.h"
#include "common/text.h"

/* Two consecutive matchers together have more of an expression than fits into one. */
#define MAX_MATCHERS (2 * LIMIT_FRAMES_PATTERN_BYTES / LIMIT_REGEX_BYTES + 2)

#define MAX_FLAGS_BYTES 8

struct frames_pattern {
        struct regex_match *matchers[MAX_MATCHERS]; /* owned */
        size_t count;
};

struct frame_expressions {
        struct work_meter meter;
        struct frames_pattern drop, keep;
        struct buf name;    /* of the current function */
        enum status failed; /* to simplify a name */
};

/* ---- expressions ---- */

/* The end of a class that begins at s, or of the text. */
static const char *skip_regex_class(const char *s)
{
        s += s[1] == '^' ? 2 : 1;
        if (*s == ']')
                s++;
        while (*s && *s != ']') {
                const char *named = s[0] == '[' && s[1] == ':' ? strstr(s + 2, ":]") : NULL;

                if (named)
                        s = named + 2;
                else
                        s += s[0] == '\\' && s[1] ? 2 : 1;
        }
        return *s ? s + 1 : s;
}

/* The end of a text in \Q...\E, or of another escape, that begins at s. */
static const char *skip_regex_escape(const char *s)
{
        const char *end = s[1] == 'Q' ? strstr(s, "\\E") : NULL;

        if (s[1] == 'Q' && !end)
                return s + strlen(s);
        return end ? end + 2 : s + (s[1] ? 2 : 1);
}

/* The next '|' that is in no group or class, or the end of the text. */
static const char *find_alternative_end(const char *s)
{
        unsigned depth = 0;

        while (*s && (*s != '|' || depth)) {
                depth += *s == '(';
                depth -= *s == ')' && depth;
                s = *s == '[' ? skip_regex_class(s) : *s == '\\' ? skip_regex_escape(s) : s + 1;
        }
        return s;
}

/* The end of the alternatives at s that fit into one matcher: at least of one. */
static const char *find_matcher_end(const char *s, size_t max)
{
        const char *end = find_alternative_end(s);

        while (*end) {
                const char *next = find_alternative_end(end + 1);

                if ((size_t)(next - s) > max)
                        break;
                end = next;
        }
        return end;
}

/* The size of a group of flags, such as (?i), at the start. They hold for all alternatives. */
static size_t find_flags_end(const char *text)
{
        size_t n = starts_with(text, "(?") ? 2 + strspn(text + 2, "imsU-") : 0;

        return n && text[n] == ')' && n < MAX_FLAGS_BYTES ? n + 1 : 0;
}

/* @param flags  of this size, before the n bytes of text. */
static enum status add_pattern_matcher(struct frames_pattern *p, const char *flags, size_t flags_size, const char *text,
                                       size_t n, struct work_meter *meter, struct error *err)
{
        char pattern[LIMIT_FRAMES_PATTERN_BYTES + MAX_FLAGS_BYTES + 1];
        enum status st;

        assert(p->count < MAX_MATCHERS);
        snprintf(pattern, sizeof pattern, "%.*s%.*s", (int)flags_size, flags, (int)n, text);
        st = regex_match_create(pattern, meter, &p->matchers[p->count], err);
        p->count += st == ST_OK;
        return st;
}

static enum status compile_frames_pattern(struct frames_pattern *p, const char *text, struct work_meter *meter,
                                          struct error *err)
{
        const char *flags = text, *end;
        const size_t flags_size = find_flags_end(text);
        enum status st = ST_OK;

        if (strlen(text) > LIMIT_FRAMES_PATTERN_BYTES)
                return error_set(err, ST_TOO_BIG, "the expression has more than %zu bytes", LIMIT_FRAMES_PATTERN_BYTES);
        for (text += flags_size; !st; text = end + 1) {
                end = find_matcher_end(text, LIMIT_REGEX_BYTES - flags_size);
                st = add_pattern_matcher(p, flags, flags_size, text, (size_t)(end - text), meter, err);
                if (!*end)
                        break;
        }
        return st;
}

static bool match_frames_pattern(struct frames_pattern *p, const char *name, size_t n)
{
        for (size_t i = 0; i < p->count; i++)
                if (regex_match_once(p->matchers[i], name, n))
                        return true;
        return false;
}

static void destroy_frames_pattern(struct frames_pattern *p)
{
        for (size_t i = 0; i < p->count; i++)
                regex_match_destroy(p->matchers[i]);
}

enum status frame_expressions_create(const char *drop, const char *keep, size_t input_bytes,
                                     struct frame_expressions **ret, struct error *err)
{
        struct frame_expressions *d = calloc(1, sizeof *d);
        enum status st;

        if (!d)
                return error_no_memory(err);
        work_meter_init(&d->meter, NULL, NULL);
        if (input_bytes < LIMIT_REGEX_STEPS / LIMIT_DECODE_WORK_PER_BYTE)
                d->meter.regex_steps_left = LIMIT_FRAMES_STEPS_FREE + LIMIT_DECODE_WORK_PER_BYTE * input_bytes;
        buf_init(&d->name, LIMIT_NAME_BYTES + 1);
        st = compile_frames_pattern(&d->drop, drop, &d->meter, err);
        if (!st && *keep)
                st = compile_frames_pattern(&d->keep, keep, &d->meter, err);
        if (st)
                frame_expressions_destroy(d);
        else
                *ret = d;
        return st;
}

void frame_expressions_destroy(struct frame_expressions *d)
{
        if (!d)
                return;
        destroy_frames_pattern(&d->drop);
        destroy_frames_pattern(&d->keep);
        buf_deinit(&d->name);
        free(d);
}

/* ---- names ---- */

/* Names of Java and Go may have brackets as well. */
static bool looks_like_cplusplus(const char *name)
{
        if (strstr(name, ".<") || strstr(name, "])."))
                return false;
        return strpbrk(name, "<>[]") || strstr(name, "::");
}

/* Remove nested pairs of brackets with their content, up to one that closes nothing. */
static void remove_bracket_pairs(struct buf *name, char open, char close)
{
        size_t out = 0, first = 0, depth = 0, i = 0;

        for (; i < name->size; i++) {
                char c = (char)name->data[i];

                if (c == close && !depth)
                        break;
                if (c == open && depth++ == 0)
                        first = out;
                name->data[out++] = (uint8_t)c;
                if (c == close && --depth == 0)
                        out = first;
        }
        memmove(name->data + out, name->data + i, name->size - i);
        name->size = out + name->size - i;
}

/* The size of a name without its parameters. */
static size_t find_parameters(const char *name)
{
        static const char *const parts_of_names[] = { "(anonymous namespace)", "operator()" };
        size_t i = 0;

        while (name[i]) {
                size_t skipped = 1;

                for (size_t k = 0; k < sizeof parts_of_names / sizeof *parts_of_names; k++)
                        if (starts_with(name + i, parts_of_names[k]))
                                skipped = strlen(parts_of_names[k]);
                if (skipped == 1 && name[i] == '(')
                        break;
                i += skipped;
        }
        return i;
}

/* The name that the expressions are compared with, in d->name; NULL without memory. */
static const char *simplify_frame_name(struct frame_expressions *d, const char *text, bool is_plain)
{
        const char *name;

        buf_clear(&d->name);
        if (buf_append_str(&d->name, text) == ST_OK && is_plain && looks_like_cplusplus(text)) {
                remove_bracket_pairs(&d->name, '(', ')');
                remove_bracket_pairs(&d->name, '<', '>');
        }
        name = buf_cstr(&d->name);
        if (!name)
                d->failed = d->name.failed;
        return name;
}

bool frame_expressions_match(struct frame_expressions *d, const char *name, bool is_plain)
{
        const char *simple = simplify_frame_name(d, name, is_plain);
        size_t n;

        if (!simple || !*simple)
                return false;
        simple += *simple == '.'; /* of functions in the first ELF ABI of PowerPC */
        n = find_parameters(simple);
        return match_frames_pattern(&d->drop, simple, n) && !match_frames_pattern(&d->keep, simple, n);
}

enum status frame_expressions_check(struct frame_expressions *d, struct error *err)
{
        if (d->failed)
                return error_no_memory(err);
        return work_meter_check(&d->meter, NULL) ? error_set(err, ST_TOO_BIG, "they take too many steps") : ST_OK;
}
