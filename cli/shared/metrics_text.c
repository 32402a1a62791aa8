/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/metrics_text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

static bool is_name_byte(char c)
{
        return isalnum((unsigned char)c) || c == '_' || c == ':';
}

/* The brace after `at` that ends the labels, or NULL. Values are quoted, with backslash escapes. */
static char *find_labels_end(char *at)
{
        bool is_quoted = false;

        for (; *at; at++) {
                if (is_quoted && *at == '\\' && at[1])
                        at++;
                else if (*at == '"')
                        is_quoted = !is_quoted;
                else if (*at == '}' && !is_quoted)
                        return at;
        }
        return NULL;
}

/* Parses the line in place: NULs are written into it. False when it is malformed. */
static bool parse_metric_line(char *line, struct metric_sample *ret)
{
        char *at = line, *end;

        while (is_name_byte(*at))
                at++;
        if (at == line || isdigit((unsigned char)*line))
                return false;
        *ret = (struct metric_sample){ .name = line, .labels = "" };
        if (*at == '{') {
                *at++ = 0;
                ret->labels = at;
                at = find_labels_end(at);
                if (!at)
                        return false;
                *at++ = 0;
        } else if (*at == ' ' || *at == '\t') {
                *at++ = 0;
        } else {
                return false;
        }
        ret->value = strtod(at, &end);
        if (!(fabs(ret->value) < METRIC_VALUE_END)) /* rejects NaN too */
                return false;
        return end != at && (*end == 0 || *end == ' ' || *end == '\t' || *end == '\r');
}

static enum status parse_metric_lines(struct metrics_text *m, struct error *err)
{
        char *rest = m->text, *line;
        unsigned number = 0;
        size_t lines = 1;

        for (const char *p = m->text; *p; p++)
                lines += *p == '\n';
        if (lines > LIMIT_METRIC_SAMPLES)
                return error_set(err, ST_TOO_BIG, "metrics: more than %d lines", LIMIT_METRIC_SAMPLES);
        m->samples = calloc(lines, sizeof *m->samples);
        if (!m->samples)
                return error_no_memory(err);
        while ((line = strsep(&rest, "\n"))) {
                number++;
                line += strspn(line, " \t\r");
                if (!*line || *line == '#')
                        continue;
                if (!parse_metric_line(line, &m->samples[m->count]))
                        return error_set(err, ST_BAD_DATA, "metrics: line %u is not a metric", number);
                m->count++;
        }
        return ST_OK;
}

enum status metrics_text_parse(const void *data, size_t n, struct metrics_text *ret, struct error *err)
{
        enum status st;

        *ret = (struct metrics_text){ .text = malloc(n + 1) };
        if (!ret->text)
                return error_no_memory(err);
        if (n)
                memcpy(ret->text, data, n);
        ret->text[n] = 0;
        st = memchr(ret->text, 0, n) ? error_set(err, ST_BAD_DATA, "metrics: a NUL character")
                                     : parse_metric_lines(ret, err);
        if (st)
                metrics_text_deinit(ret);
        return st;
}

void metrics_text_deinit(struct metrics_text *m)
{
        free(m->samples);
        free(m->text);
        *m = (struct metrics_text){ 0 };
}

/* Whether the comma-separated list contains the label, NAME="VALUE". No list contains "". */
static bool has_label_text(const char *labels, const char *label)
{
        size_t n = strlen(label);

        for (const char *at = labels; n && (at = strstr(at, label)); at++)
                if ((at == labels || at[-1] == ',') && (at[n] == 0 || at[n] == ','))
                        return true;
        return false;
}

double metrics_text_sum(const struct metrics_text *m, const char *name, const char *label)
{
        double sum = 0;

        for (size_t i = 0; i < m->count; i++)
                if (strcmp(m->samples[i].name, name) == 0 && (!label || has_label_text(m->samples[i].labels, label)))
                        sum += m->samples[i].value;
        return fmax(-METRIC_VALUE_END, fmin(sum, METRIC_VALUE_END));
}
