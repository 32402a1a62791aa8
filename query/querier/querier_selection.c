/* SPDX-License-Identifier: Apache-2.0 */
/* Convert the type, selector, ids and times of a request to a selection of the query engine. */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "query/querier/querier_call.h"

#define LIMIT_SELECTED_IDS 1000
#define NS_PER_MS INT64_C(1000000)

/* ---- labels derived from the type ---- */

const char *const querier_type_labels[TYPE_LABEL_COUNT] = { "__name__",         "__period_type__", "__period_unit__",
                                                            "__profile_type__", "__type__",        "__unit__" };

static const enum profile_type_part type_label_parts[TYPE_LABEL_COUNT] = { TYPE_NAME,        TYPE_PERIOD_TYPE,
                                                                           TYPE_PERIOD_UNIT, TYPE_NAME,
                                                                           TYPE_SAMPLE_TYPE, TYPE_SAMPLE_UNIT };

static size_t find_type_label(const char *name)
{
        size_t i = 0;

        while (i < TYPE_LABEL_COUNT && strcmp(querier_type_labels[i], name) != 0)
                i++;
        return i;
}

bool querier_is_type_label(const char *name)
{
        return find_type_label(name) < TYPE_LABEL_COUNT;
}

const char *querier_get_type_label(const char *name, const char *type, size_t *n_ret)
{
        size_t i = find_type_label(name);

        if (strcmp(name, "__profile_type__") == 0) {
                *n_ret = strlen(type);
                return type;
        }
        *n_ret = 0;
        return i < TYPE_LABEL_COUNT ? profile_type_part(type, type_label_parts[i], n_ret) : "";
}

/* ---- matchers ---- */

/* Matcher that treats a missing service_name as UNKNOWN_SERVICE. */
struct service_matcher {
        const struct label_matcher *inner;
};

static bool match_service(void *context, const char *text, size_t n)
{
        const struct label_matcher *inner = ((const struct service_matcher *)context)->inner;

        if (!n) {
                text = UNKNOWN_SERVICE;
                n = strlen(text);
        }
        if (inner->op == LABEL_REGEX || inner->op == LABEL_NOT_REGEX)
                return inner->match(inner->context, text, n);
        return strlen(inner->value) == n && memcmp(inner->value, text, n) == 0;
}

/* Whether the result may differ from that of the plain matcher, which can use column statistics. */
static bool needs_service_matcher(const struct label_matcher *m)
{
        return (strcmp(m->key, "service_name") == 0 || strcmp(m->key, "service.name") == 0) &&
               (m->op == LABEL_REGEX || m->op == LABEL_NOT_REGEX || strcmp(m->value, UNKNOWN_SERVICE) == 0);
}

static int compare_selected_ids(const void *a, const void *b)
{
        return strcasecmp(*(char *const *)a, *(char *const *)b);
}

struct id_text {
        const char *text;
        size_t size;
};

/* The order of compare_selected_ids(), for ids as long as the text. */
static int compare_id_text(const void *key, const void *id)
{
        const struct id_text *k = key;

        return strncasecmp(k->text, *(char *const *)id, k->size);
}

/* Binary search: called for each distinct value of a scan. */
static bool has_id(char *const *ids, size_t count, const char *text, size_t n)
{
        const struct id_text key = { text, n };

        return n == strlen(ids[0]) && bsearch(&key, ids, count, sizeof *ids, compare_id_text);
}

/* Matches one of the request's ids. */
static bool match_trace_id(void *context, const char *text, size_t n)
{
        const struct querier_choice *choice = context;

        return has_id(choice->trace_ids, choice->trace_id_count, text, n);
}

static bool match_span_id(void *context, const char *text, size_t n)
{
        const struct querier_choice *choice = context;

        return has_id(choice->span_ids, choice->span_id_count, text, n);
}

/* Also sorts the ids, for has_id(). */
static enum status check_ids(char **ids, size_t count, size_t digits, const char *what, struct error *err)
{
        if (count > LIMIT_SELECTED_IDS)
                return error_set(err, ST_USAGE, "a request may have up to %d %s", LIMIT_SELECTED_IDS, what);
        for (size_t i = 0; i < count; i++) {
                size_t n = 0;

                while (hex_digit_value(ids[i][n]) >= 0)
                        n++;
                if (n != digits || ids[i][n])
                        return error_set(err, ST_USAGE, "'%.40s' among the %s is not an id of %zu hexadecimal digits",
                                         ids[i], what, digits);
        }
        if (count)
                qsort(ids, count, sizeof *ids, compare_selected_ids);
        return ST_OK;
}

/* Build the matchers of the selector and of ids. */
static enum status make_matchers(struct querier_selection *s, const struct querier_choice *choice, struct error *err)
{
        struct selector *all = &s->selection.selector;

        s->matchers = calloc(s->parsed.count + 2, sizeof *s->matchers);
        s->services = calloc(s->parsed.count + 1, sizeof *s->services);
        if (!s->matchers || !s->services)
                return error_no_memory(err);
        all->matchers = s->matchers;
        for (size_t i = 0; i < s->parsed.count; i++) {
                const struct label_matcher *m = &s->parsed.matchers[i];
                bool is_negative = m->op == LABEL_NOT_REGEX || m->op == LABEL_NOT_EQUAL;

                s->matchers[all->count] = *m;
                if (needs_service_matcher(m)) {
                        s->services[i].inner = m;
                        s->matchers[all->count].op = is_negative ? LABEL_NOT_REGEX : LABEL_REGEX;
                        s->matchers[all->count].match = match_service;
                        s->matchers[all->count].context = &s->services[i];
                }
                all->count++;
        }
        if (choice->trace_id_count)
                s->matchers[all->count++] = (struct label_matcher){ "trace_id", LABEL_REGEX, "", match_trace_id,
                                                                    (void *)(uintptr_t)choice };
        if (choice->span_id_count)
                s->matchers[all->count++] =
                        (struct label_matcher){ "span_id", LABEL_REGEX, "", match_span_id, (void *)(uintptr_t)choice };
        return ST_OK;
}

/* ---- type and times ---- */

/* Copy a type id without ":delta", which is not part of its identity. */
static enum status copy_type(const char *id, char **ret, struct error *err)
{
        const char *delta = ends_with(id, ":delta") ? id + strlen(id) - strlen(":delta") : NULL;
        _cleanup_free_ char *type = delta ? strndup(id, (size_t)(delta - id)) : strdup(id);
        enum status st = type ? ST_OK : error_no_memory(err);

        if (!st)
                st = profile_type_check(type, err);
        if (!st)
                *ret = steal_ptr(type);
        return st;
}

/* The type of the request, or of its selector; if both have one, it must be the same. */
static enum status choose_type(struct querier_selection *s, const struct querier_choice *choice, struct error *err)
{
        _cleanup_free_ char *other = NULL;
        enum status st = ST_OK;

        if (s->parsed.type)
                st = copy_type(s->parsed.type, &s->type, err);
        if (st || !choice->type)
                return st;
        other = steal_ptr(s->type);
        st = copy_type(choice->type, &s->type, err);
        if (!st && other && strcmp(other, s->type) != 0)
                st = error_set(err, ST_USAGE, "the type is '%.60s', but the selector has the type '%.60s'", s->type,
                               other);
        return st;
}

static enum status set_times(struct query_selection *s, const struct querier_choice *choice, int64_t now_unix_ns,
                             struct error *err)
{
        int64_t end_ms;

        s->from_unix_ns = 0;
        s->to_unix_ns = INT64_MAX;
        if (!choice->start_ms && !choice->end_ms)
                return ST_OK;
        end_ms = choice->end_ms ? choice->end_ms : now_unix_ns / NS_PER_MS;
        if (choice->start_ms < 0 || end_ms < 0)
                return error_set(err, ST_USAGE, "start and end are not milliseconds since 1970");
        if (choice->start_ms > end_ms)
                return error_set(err, ST_USAGE, "start is after end");
        if (__builtin_mul_overflow(choice->start_ms, NS_PER_MS, &s->from_unix_ns) ||
            __builtin_mul_overflow(end_ms, NS_PER_MS, &s->to_unix_ns) ||
            __builtin_add_overflow(s->to_unix_ns, NS_PER_MS, &s->to_unix_ns)) /* end is inclusive */
                return error_set(err, ST_USAGE, "start and end are not milliseconds since 1970");
        return ST_OK;
}

/* ---- selection ---- */

enum status querier_selection_init(struct querier_selection *s, struct querier_call *c,
                                   const struct querier_choice *choice)
{
        struct error *err = c->q.err;
        enum status st;

        *s = (struct querier_selection){ .selection.text = choice->selector };
        st = set_times(&s->selection, choice, c->q.now_unix_ns, err);
        if (!st)
                query_call_note_selection(&c->q, choice->selector, s->selection.from_unix_ns, s->selection.to_unix_ns);
        if (!st)
                st = selector_parse(choice->selector, c->q.meter, &s->parsed, err);
        if (!st)
                st = choose_type(s, choice, err);
        if (!st)
                st = check_ids(choice->trace_ids, choice->trace_id_count, 32, "trace ids", err);
        if (!st)
                st = check_ids(choice->span_ids, choice->span_id_count, 16, "span ids", err);
        if (!st && choice->profile_id_count)
                st = error_set(err, ST_UNSUPPORTED, "profile ids are not supported: select samples by time and labels");
        if (!st)
                st = make_matchers(s, choice, err);
        if (st)
                querier_selection_deinit(s);
        return st;
}

void querier_selection_deinit(struct querier_selection *s)
{
        selector_deinit(&s->parsed);
        free(s->matchers);
        free(s->services);
        free(s->type);
        *s = (struct querier_selection){ 0 };
}

struct scan_filter querier_selection_make_filter(const struct querier_selection *s)
{
        return query_selection_make_filter(&s->selection, s->type);
}

void querier_call_select(struct querier_call *c, const struct querier_selection *s)
{
        c->q.r.selection = s->selection;
        c->q.r.type = s->type;
        c->q.r.is_type_exact = true;
}
