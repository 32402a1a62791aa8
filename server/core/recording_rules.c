/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order: the check of a rule; texts of rules; opening; changes. A change decodes the stored rules, makes the new list
 * of them, writes it as text to the file, and keeps that text.
 */
#include "server/core/recording_rules.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/text.h"
#include "profile-formats/json/proto_json.h"
#include "query/engine/selector.h"
#include "relabel/label_set.h"

#define RULES_FILE "recording-rules.json"
#define RULE_ID_LABEL "rule_id"

struct recording_rules {
        char *path;             /* owned */
        struct buf provisioned; /* text */
        pthread_mutex_t lock;   /* of the rest */
        struct buf stored;      /* text; empty: none */
};

/* ---- the check of a rule ---- */

static bool is_metric_name(const char *name)
{
        return *name && strlen(name) <= LIMIT_RECORDING_TEXT_BYTES && !(name[0] >= '0' && name[0] <= '9') &&
               name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:")] == '\0';
}

static bool is_plain_label(const char *name)
{
        return label_name_is_valid(name) && !strchr(name, '.') && strlen(name) <= LIMIT_RECORDING_TEXT_BYTES &&
               strncmp(name, "__", 2) != 0 && strcmp(name, RULE_ID_LABEL) != 0;
}

const char *recording_rule_get_function(const Recording__Rule *rule)
{
        const Recording__StacktraceFilter *f = rule->stacktrace_filter;

        return f && f->function_name && *f->function_name->function_name ? f->function_name->function_name : NULL;
}

void recording_rule_put_selector(const Recording__Rule *rule, struct buf *ret)
{
        bool is_first = true;

        buf_append_str(ret, "{");
        for (size_t i = 0; i < rule->n_matchers; i++) {
                const char *text = rule->matchers[i] + strspn(rule->matchers[i], " {");
                size_t n = strlen(text);

                while (n && (text[n - 1] == ' ' || text[n - 1] == '}'))
                        n--;
                if (n)
                        buf_printf(ret, "%s%.*s", is_first ? "" : ",", (int)n, text);
                is_first = is_first && !n;
        }
        buf_append_str(ret, "}");
}

static enum status check_rule_matchers(const Recording__Rule *rule, struct error *err)
{
        if (rule->n_matchers > LIMIT_RECORDING_MATCHERS)
                return error_set(err, ST_USAGE, "rule '%.60s' has more than %d matchers", rule->metric_name,
                                 LIMIT_RECORDING_MATCHERS);
        return ST_OK;
}

static enum status parse_rule_selector(const Recording__Rule *rule, struct selector *ret, struct error *err)
{
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, LIMIT_SELECTOR_BYTES);
        recording_rule_put_selector(rule, &text);
        st = buf_status(&text, err, "the matchers of a recording rule");
        return st ? st : selector_parse(buf_cstr(&text), NULL, ret, err);
}

static enum status check_rule_selector(const Recording__Rule *rule, struct error *err)
{
        _cleanup_selector_ struct selector selector = { 0 };

        return parse_rule_selector(rule, &selector, err);
}

/* The type that the matchers name; "": none. */
static enum status set_rule_type(Recording__Rule *rule, struct arena *memory, struct error *err)
{
        _cleanup_selector_ struct selector selector = { 0 };
        enum status st = parse_rule_selector(rule, &selector, err);

        if (!st && selector.type) {
                rule->profile_type = (char *)arena_strndup(memory, selector.type, strlen(selector.type));
                if (!rule->profile_type)
                        st = arena_error(memory, err, "recording rules");
        }
        return st;
}

static enum status check_rule_labels(const Recording__Rule *rule, struct error *err)
{
        const size_t grouped = rule->n_group_by, all = grouped + rule->n_external_labels;
        const char *names[2 * LIMIT_RECORDING_LABELS];

        if (grouped > LIMIT_RECORDING_LABELS || rule->n_external_labels > LIMIT_RECORDING_LABELS)
                return error_set(err, ST_USAGE, "rule '%.60s' has more than %d labels", rule->metric_name,
                                 LIMIT_RECORDING_LABELS);
        for (size_t i = 0; i < all; i++) {
                names[i] = i < grouped ? rule->group_by[i] : rule->external_labels[i - grouped]->name;
                if (!is_plain_label(names[i]))
                        return error_set(err, ST_USAGE, "rule '%.60s': '%.60s' is not the name of a label",
                                         rule->metric_name, names[i]);
                for (size_t k = 0; k < i; k++)
                        if (strcmp(names[i], names[k]) == 0)
                                return error_set(err, ST_USAGE, "rule '%.60s' has the label %s twice",
                                                 rule->metric_name, names[i]);
        }
        for (size_t i = 0; i < rule->n_external_labels; i++)
                if (strlen(rule->external_labels[i]->value) > LIMIT_RECORDING_TEXT_BYTES)
                        return error_set(err, ST_USAGE, "rule '%.60s': the value of %s is too long", rule->metric_name,
                                         names[grouped + i]);
        return ST_OK;
}

static enum status check_recording_rule(const Recording__Rule *rule, struct error *err)
{
        const char *function = recording_rule_get_function(rule);
        enum status st;

        if (!is_metric_name(rule->metric_name))
                return error_set(err, ST_USAGE, "'%.60s' is not the name of a metric", rule->metric_name);
        if (function && strlen(function) > LIMIT_RECORDING_TEXT_BYTES)
                return error_set(err, ST_USAGE, "rule '%.60s': the name of the function is too long",
                                 rule->metric_name);
        if (rule->stacktrace_filter && rule->stacktrace_filter->function_name &&
            rule->stacktrace_filter->function_name->metric_type)
                return error_set(err, ST_USAGE, "rule '%.60s': only the total of a function is recorded",
                                 rule->metric_name);
        st = check_rule_labels(rule, err);
        if (!st)
                st = check_rule_matchers(rule, err);
        return st ? st : check_rule_selector(rule, err);
}

/* ---- texts of rules ---- */

static enum status decode_rules(const struct buf *text, struct arena *memory, const char *what,
                                const Recording__ListRulesResponse **ret, struct error *err)
{
        const void *message = NULL;
        const char *data = text->size ? (const char *)text->data : "{}";
        enum status st = proto_json_decode(&recording__list_rules_response__descriptor, data,
                                           text->size ? text->size : 2, memory, what, &message, err);

        if (!st)
                *ret = message;
        return st;
}

const Recording__Rule *recording_rules_find(const Recording__ListRulesResponse *rules, const char *id)
{
        for (size_t i = 0; i < rules->n_rules; i++)
                if (strcmp(rules->rules[i]->id, id) == 0)
                        return rules->rules[i];
        return NULL;
}

/* Append the rules to the text of a list; the caller opened and closes it. */
static void put_rules(const Recording__ListRulesResponse *rules, bool provisioned, struct buf *ret, size_t *count)
{
        for (size_t i = 0; i < rules->n_rules; i++) {
                rules->rules[i]->provisioned = provisioned;
                if ((*count)++)
                        buf_append_str(ret, ",");
                proto_json_append(ret, &rules->rules[i]->base);
        }
}

static void init_rules_memory(struct arena *memory)
{
        arena_init(memory, LIMIT_RECORDING_MEMORY_BYTES);
}

enum status recording_rules_list(struct recording_rules *r, struct arena *memory, struct buf *text,
                                 const Recording__ListRulesResponse **ret, struct error *err)
{
        struct arena parts[2];
        const Recording__ListRulesResponse *lists[2] = { NULL };
        size_t count = 0;
        enum status st;

        arena_init(memory, 2 * LIMIT_RECORDING_MEMORY_BYTES);
        init_rules_memory(&parts[0]);
        init_rules_memory(&parts[1]);
        buf_init(text, 4 * LIMIT_RECORDING_FILE_BYTES);
        pthread_mutex_lock(&r->lock);
        st = decode_rules(&r->provisioned, &parts[0], "the file of recording rules", &lists[0], err);
        if (!st)
                st = decode_rules(&r->stored, &parts[1], RULES_FILE, &lists[1], err);
        if (!st) {
                buf_append_str(text, "{\"rules\":[");
                put_rules(lists[0], true, text, &count);
                put_rules(lists[1], false, text, &count);
                buf_append_str(text, "]}");
                st = buf_status(text, err, "recording rules");
        }
        pthread_mutex_unlock(&r->lock);
        if (!st)
                st = decode_rules(text, memory, "recording rules", ret, err);
        for (size_t i = 0; !st && i < (*ret)->n_rules; i++)
                st = set_rule_type((*ret)->rules[i], memory, err);
        arena_deinit(&parts[0]);
        arena_deinit(&parts[1]);
        return st;
}

/* ---- opening ---- */

/* @param failure  the status for a text that cannot be read. */
static enum status check_rules_text(const struct buf *text, const char *path, enum status failure, struct error *err)
{
        struct arena memory;
        const Recording__ListRulesResponse *rules = NULL;
        struct error why = { 0 };
        enum status st;

        init_rules_memory(&memory);
        st = decode_rules(text, &memory, path, &rules, &why);
        if (!st && rules->n_rules > LIMIT_RECORDING_RULES)
                st = error_set(&why, ST_USAGE, "more than %d rules", LIMIT_RECORDING_RULES);
        for (size_t i = 0; !st && i < rules->n_rules; i++) {
                st = check_recording_rule(rules->rules[i], &why);
                if (!st && (!*rules->rules[i]->id || strlen(rules->rules[i]->id) > LIMIT_RECORDING_TEXT_BYTES ||
                            recording_rules_find(rules, rules->rules[i]->id) != rules->rules[i]))
                        st = error_set(&why, ST_USAGE, "rule '%.60s' has no id of its own",
                                       rules->rules[i]->metric_name);
        }
        arena_deinit(&memory);
        return st ? error_set(err, failure, "cannot read '%.80s': %s", path, why.text) : ST_OK;
}

static enum status read_rules_file(const char *path, bool may_be_absent, struct buf *ret, struct error *err)
{
        enum status st = file_read(path, ret, err);

        if (st == ST_NOT_FOUND && may_be_absent) {
                buf_clear(ret);
                return ST_OK;
        }
        return st ? st : check_rules_text(ret, path, ST_BAD_DATA, err);
}

enum status recording_rules_open(const char *dir, const char *provisioned, struct recording_rules **ret,
                                 struct error *err)
{
        struct recording_rules *r = calloc(1, sizeof *r);
        enum status st = ST_OK;

        if (!r)
                return error_no_memory(err);
        pthread_mutex_init(&r->lock, NULL);
        buf_init(&r->provisioned, LIMIT_RECORDING_FILE_BYTES);
        buf_init(&r->stored, LIMIT_RECORDING_FILE_BYTES);
        r->path = path_join(dir, RULES_FILE);
        if (!r->path)
                st = error_no_memory(err);
        if (!st && provisioned)
                st = read_rules_file(provisioned, false, &r->provisioned, err);
        if (!st)
                st = read_rules_file(r->path, true, &r->stored, err);
        if (st)
                recording_rules_close(r);
        else
                *ret = r;
        return st;
}

void recording_rules_close(struct recording_rules *r)
{
        if (!r)
                return;
        pthread_mutex_destroy(&r->lock);
        buf_deinit(&r->provisioned);
        buf_deinit(&r->stored);
        free(r->path);
        free(r);
}

/* ---- changes ---- */

/* Store the rules without the one that has this id, and with `added` unless it is NULL. The lock is held. */
static enum status store_changed_rules(struct recording_rules *r, const Recording__ListRulesResponse *rules,
                                       const char *without, Recording__Rule *added, struct error *err)
{
        struct buf text;
        size_t count = 0;
        enum status st;

        buf_init(&text, LIMIT_RECORDING_FILE_BYTES);
        buf_append_str(&text, "{\"rules\":[");
        for (size_t i = 0; i < rules->n_rules; i++) {
                if (strcmp(rules->rules[i]->id, without) == 0)
                        continue;
                buf_append_str(&text, count++ ? "," : "");
                proto_json_append(&text, &rules->rules[i]->base);
        }
        if (added) {
                buf_append_str(&text, count++ ? "," : "");
                proto_json_append(&text, &added->base);
        }
        buf_append_str(&text, "]}");
        st = buf_status(&text, err, "recording rules");
        if (!st && count > LIMIT_RECORDING_RULES)
                st = error_set(err, ST_TOO_BIG, "a tenant may have %d recording rules", LIMIT_RECORDING_RULES);
        if (!st) /* else the next start would end with it */
                st = check_rules_text(&text, "the changed rules", ST_USAGE, err);
        if (!st)
                st = file_write_durable(r->path, text.data, text.size, err);
        if (st) {
                buf_deinit(&text);
                return st;
        }
        buf_deinit(&r->stored);
        r->stored = text;
        return ST_OK;
}

/* Whether the id is that of a provisioned rule. The lock is held. */
static enum status refuse_provisioned(struct recording_rules *r, const char *id, struct error *err)
{
        struct arena memory;
        const Recording__ListRulesResponse *rules = NULL;
        enum status st;

        init_rules_memory(&memory);
        st = decode_rules(&r->provisioned, &memory, "the file of recording rules", &rules, err);
        if (!st && recording_rules_find(rules, id))
                st = error_set(err, ST_USAGE, "rule '%.60s' is of the file of rules: change it there", id);
        arena_deinit(&memory);
        return st;
}

static enum status make_rule_id(char ret[RECORDING_RULE_ID_CHARS + 1], struct error *err)
{
        uint64_t random;

        if (getrandom(&random, sizeof random, 0) != sizeof random)
                return error_os(err, errno, "cannot create an id");
        snprintf(ret, RECORDING_RULE_ID_CHARS + 1, "%016llx", (unsigned long long)random);
        return ST_OK;
}

static enum status replace_rule(struct recording_rules *r, const Recording__ListRulesResponse *rules,
                                Recording__Rule *rule, char id_ret[RECORDING_RULE_ID_CHARS + 1], struct error *err)
{
        const Recording__Rule *old = recording_rules_find(rules, rule->id);
        char id[RECORDING_RULE_ID_CHARS + 1] = "";
        enum status st = ST_OK;

        if (*rule->id && !old)
                return error_set(err, ST_NOT_FOUND, "there is no recording rule '%.60s'", rule->id);
        if (old && old->generation != rule->generation)
                return error_set(err, ST_BUSY, "rule '%.60s' was changed meanwhile", rule->id);
        if (old)
                snprintf(id, sizeof id, "%s", old->id);
        else
                st = make_rule_id(id, err);
        rule->id = id;
        rule->generation = old ? old->generation + 1 : 1;
        if (!st)
                st = store_changed_rules(r, rules, id, rule, err);
        if (!st)
                memcpy(id_ret, id, sizeof id);
        return st;
}

enum status recording_rules_upsert(struct recording_rules *r, const Recording__UpsertRuleRequest *request,
                                   char id_ret[RECORDING_RULE_ID_CHARS + 1], struct error *err)
{
        Recording__Rule rule = RECORDING__RULE__INIT;
        const Recording__ListRulesResponse *rules = NULL;
        struct arena memory;
        enum status st;

        rule.id = request->id;
        rule.metric_name = request->metric_name;
        rule.n_matchers = request->n_matchers;
        rule.matchers = request->matchers;
        rule.n_group_by = request->n_group_by;
        rule.group_by = request->group_by;
        rule.n_external_labels = request->n_external_labels;
        rule.external_labels = request->external_labels;
        rule.generation = request->generation;
        rule.stacktrace_filter = request->stacktrace_filter;
        st = check_recording_rule(&rule, err);
        if (st)
                return st;
        init_rules_memory(&memory);
        pthread_mutex_lock(&r->lock);
        st = refuse_provisioned(r, rule.id, err);
        if (!st)
                st = decode_rules(&r->stored, &memory, RULES_FILE, &rules, err);
        if (!st)
                st = replace_rule(r, rules, &rule, id_ret, err);
        pthread_mutex_unlock(&r->lock);
        arena_deinit(&memory);
        return st;
}

enum status recording_rules_remove(struct recording_rules *r, const char *id, struct error *err)
{
        const Recording__ListRulesResponse *rules = NULL;
        struct arena memory;
        enum status st;

        init_rules_memory(&memory);
        pthread_mutex_lock(&r->lock);
        st = refuse_provisioned(r, id, err);
        if (!st)
                st = decode_rules(&r->stored, &memory, RULES_FILE, &rules, err);
        if (!st && !recording_rules_find(rules, id))
                st = error_set(err, ST_NOT_FOUND, "there is no recording rule '%.60s'", id);
        if (!st)
                st = store_changed_rules(r, rules, id, NULL, err);
        pthread_mutex_unlock(&r->lock);
        arena_deinit(&memory);
        return st;
}
