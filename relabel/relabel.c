/* SPDX-License-Identifier: Apache-2.0 */
#include "relabel/relabel.h"

#include <assert.h>
#include <ctype.h>
#include <openssl/evp.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/text/utf8.h"

static const char *const action_names[] = {
        [RELABEL_REPLACE] = "replace",
        [RELABEL_KEEP] = "keep",
        [RELABEL_DROP] = "drop",
        [RELABEL_KEEP_EQUAL] = "keepequal",
        [RELABEL_DROP_EQUAL] = "dropequal",
        [RELABEL_HASH_MOD] = "hashmod",
        [RELABEL_LABEL_MAP] = "labelmap",
        [RELABEL_LABEL_DROP] = "labeldrop",
        [RELABEL_LABEL_KEEP] = "labelkeep",
        [RELABEL_LOWERCASE] = "lowercase",
        [RELABEL_UPPERCASE] = "uppercase",
};

void relabel_rule_deinit(struct relabel_rule *r)
{
        for (size_t i = 0; i < r->source_count; i++)
                free(r->sources[i]);
        free(r->sources);
        free(r->separator);
        free(r->pattern);
        free(r->replacement);
        free(r->target_label);
        regex_match_destroy(r->regex);
        *r = (struct relabel_rule){ 0 };
}

enum status relabel_action_parse(const char *name, enum relabel_action *ret)
{
        for (unsigned i = 0; i < sizeof action_names / sizeof *action_names; i++)
                if (strcasecmp(action_names[i], name) == 0) {
                        *ret = (enum relabel_action)i;
                        return ST_OK;
                }
        return ST_USAGE;
}

static bool set_default_text(char **text, const char *standard)
{
        if (!*text)
                *text = strdup(standard);
        return *text != NULL;
}

static bool action_writes_target_label(enum relabel_action a)
{
        return a == RELABEL_REPLACE || a == RELABEL_HASH_MOD || a == RELABEL_LOWERCASE || a == RELABEL_UPPERCASE;
}

static enum status check_relabel_rule(const struct relabel_rule *r, struct error *err)
{
        const char *action = action_names[r->action];
        bool equal = r->action == RELABEL_KEEP_EQUAL || r->action == RELABEL_DROP_EQUAL;

        if ((action_writes_target_label(r->action) || equal) && !r->target_label)
                return error_set(err, ST_USAGE, "action '%s' needs target_label", action);
        if (r->action == RELABEL_HASH_MOD && !r->modulus)
                return error_set(err, ST_USAGE, "action 'hashmod' needs a modulus of at least 1");
        /* The target label of "replace" may refer to groups. */
        if (r->target_label && (r->action != RELABEL_REPLACE || !strchr(r->target_label, '$')) &&
            !label_name_is_valid(r->target_label))
                return error_set(err, ST_USAGE, "'%.60s' is not the name of a label", PRINTABLE(r->target_label));
        return ST_OK;
}

enum status relabel_rule_finish(struct relabel_rule *r, struct error *err)
{
        enum status st = check_relabel_rule(r, err);

        if (st)
                return st;
        if (!set_default_text(&r->separator, ";") || !set_default_text(&r->pattern, "(.*)") ||
            !set_default_text(&r->replacement, "$1"))
                return error_no_memory(err);
        return regex_match_create_captures(r->pattern, &r->regex, err);
}

/* ---- replacements ---- */

static bool is_name_character(char c)
{
        return isalnum((unsigned char)c) || c == '_';
}

/* Parse "$NAME" or "${NAME}"; group -1 when no group has the name. Returns its size, 0 for a literal '$'. */
static size_t read_group_reference(const struct regex_match *regex, const char *text, int *group_ret)
{
        bool braced = text[1] == '{';
        const char *name = text + 1 + braced;
        size_t n = 0;

        while (is_name_character(name[n]))
                n++;
        if (!n || (braced && name[n] != '}'))
                return 0;
        *group_ret = n == 1 && isdigit((unsigned char)*name) ? *name - '0' : regex_match_find_group(regex, name, n);
        return 1 + (size_t)braced + n + (size_t)braced;
}

static void expand_replacement(const struct relabel_rule *r, const char *text, const struct regex_capture *groups,
                               struct buf *ret)
{
        while (*text) {
                int group = -1;
                size_t n;

                if (*text != '$') {
                        buf_append_u8(ret, (uint8_t)*text++);
                        continue;
                }
                if (text[1] == '$') {
                        buf_append_u8(ret, '$');
                        text += 2;
                        continue;
                }
                n = read_group_reference(r->regex, text, &group);
                if (!n)
                        buf_append_u8(ret, '$');
                else if (group >= 0)
                        buf_append(ret, groups[group].text, groups[group].size);
                text += n ? n : 1;
        }
}

/* ---- rules ---- */

static void init_label_buf(struct buf *b)
{
        buf_init(b, LIMIT_LABEL_BYTES * LIMIT_RELABEL_LABELS);
}

static enum status join_source_labels(const struct relabel_rule *r, const struct label_set *l, struct buf *ret,
                                      struct error *err)
{
        for (size_t i = 0; i < r->source_count; i++) {
                if (i)
                        buf_append_str(ret, r->separator);
                buf_append_str(ret, label_set_get(l, r->sources[i]));
        }
        buf_cstr(ret);
        return buf_status(ret, err, "source labels");
}

static enum status apply_replace(const struct relabel_rule *r, const struct buf *value, struct label_set *l,
                                 struct error *err)
{
        struct regex_capture groups[REGEX_CAPTURES];
        _cleanup_buf_ struct buf name, text;
        enum status st;

        init_label_buf(&name);
        init_label_buf(&text);
        if (!regex_match_capture(r->regex, (const char *)value->data, value->size, groups))
                return ST_OK;
        expand_replacement(r, r->target_label, groups, &name);
        expand_replacement(r, r->replacement, groups, &text);
        if (!buf_cstr(&name) || !buf_cstr(&text)) {
                st = buf_status(&name, err, "a label's name");
                return st ? st : buf_status(&text, err, "a label's value");
        }
        if (!label_name_is_valid(buf_cstr(&name)))
                return ST_OK;
        return label_set_put(l, buf_cstr(&name), buf_cstr(&text), err);
}

/* The last eight bytes of the MD5 sum, as in Prometheus, so that both shard alike. */
static enum status apply_hash_mod(const struct relabel_rule *r, const struct buf *value, struct label_set *l,
                                  struct error *err)
{
        uint8_t sum[EVP_MAX_MD_SIZE];
        uint64_t number = 0;
        char text[24];

        if (!EVP_Digest(value->data, value->size, sum, NULL, EVP_md5(), NULL))
                return error_set(err, ST_UNSUPPORTED, "action 'hashmod': MD5 is not available");
        for (int i = 8; i < 16; i++)
                number = number << 8 | sum[i];
        snprintf(text, sizeof text, "%llu", (unsigned long long)(number % r->modulus));
        return label_set_put(l, r->target_label, text, err);
}

static enum status apply_case(const struct relabel_rule *r, const struct buf *value, struct label_set *l,
                              struct error *err)
{
        _cleanup_free_ char *text = strndup((const char *)value->data, value->size);

        if (!text)
                return error_no_memory(err);
        for (char *c = text; *c; c++) /* ASCII only */
                *c = (char)(r->action == RELABEL_UPPERCASE ? (*c >= 'a' && *c <= 'z' ? *c - 32 : *c)
                                                           : (*c >= 'A' && *c <= 'Z' ? *c + 32 : *c));
        return label_set_put(l, r->target_label, text, err);
}

static bool label_name_matches(const struct relabel_rule *r, const char *name, struct regex_capture *groups)
{
        return regex_match_capture(r->regex, name, strlen(name), groups);
}

/* Copies are collected in a separate set, so that a new name is not mapped again. */
static enum status apply_label_map(const struct relabel_rule *r, struct label_set *l, struct error *err)
{
        _cleanup_label_set_ struct label_set mapped = { 0 };
        struct regex_capture groups[REGEX_CAPTURES];
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < l->count; i++) {
                _cleanup_buf_ struct buf name;
                const char *text;

                init_label_buf(&name);
                if (!label_name_matches(r, l->items[i].name, groups))
                        continue;
                expand_replacement(r, r->replacement, groups, &name);
                text = buf_cstr(&name);
                if (!text)
                        st = buf_status(&name, err, "a label's name");
                else if (label_name_is_valid(text))
                        st = label_set_put(&mapped, text, l->items[i].value, err);
        }
        return st ? st : label_set_put_all(l, &mapped, err);
}

static enum status apply_label_filter(const struct relabel_rule *r, struct label_set *l, struct error *err)
{
        struct regex_capture groups[REGEX_CAPTURES];
        enum status st = ST_OK;

        for (size_t i = l->count; !st && i-- > 0;)
                if (label_name_matches(r, l->items[i].name, groups) == (r->action == RELABEL_LABEL_DROP))
                        st = label_set_put(l, l->items[i].name, "", err);
        return st;
}

static bool is_text_equal(const struct buf *value, const char *text)
{
        return value->size == strlen(text) && (!value->size || memcmp(value->data, text, value->size) == 0);
}

static enum status apply_relabel_rule(const struct relabel_rule *r, struct label_set *l, bool *keep_ret,
                                      struct error *err)
{
        struct regex_capture groups[REGEX_CAPTURES];
        _cleanup_buf_ struct buf value;
        enum status st;

        init_label_buf(&value);
        st = join_source_labels(r, l, &value, err);
        if (st)
                return st;
        assert(value.data); /* buf_cstr() appended a NUL */
        switch (r->action) {
        case RELABEL_REPLACE:
                return apply_replace(r, &value, l, err);
        case RELABEL_KEEP:
        case RELABEL_DROP:
                *keep_ret = regex_match_capture(r->regex, (const char *)value.data, value.size, groups) ==
                            (r->action == RELABEL_KEEP);
                return ST_OK;
        case RELABEL_KEEP_EQUAL:
        case RELABEL_DROP_EQUAL:
                *keep_ret =
                        is_text_equal(&value, label_set_get(l, r->target_label)) == (r->action == RELABEL_KEEP_EQUAL);
                return ST_OK;
        case RELABEL_HASH_MOD:
                return apply_hash_mod(r, &value, l, err);
        case RELABEL_LABEL_MAP:
                return apply_label_map(r, l, err);
        case RELABEL_LABEL_DROP:
        case RELABEL_LABEL_KEEP:
                return apply_label_filter(r, l, err);
        case RELABEL_LOWERCASE:
        case RELABEL_UPPERCASE:
                return apply_case(r, &value, l, err);
        }
        return ST_OK;
}

enum status relabel_apply(const struct relabel_rule *rules, size_t count, struct label_set *l, bool *keep_ret,
                          struct error *err)
{
        bool keep = true;
        enum status st = ST_OK;

        for (size_t i = 0; !st && keep && i < count; i++)
                st = apply_relabel_rule(&rules[i], l, &keep, err);
        *keep_ret = keep;
        return st;
}
