/* SPDX-License-Identifier: Apache-2.0 */
#include "query/regex_match.h"

#include <string.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/hash_table.h"
#include "common/limits.h"
#include "common/utf8.h"
#include "query/regex_program.h"

enum operation { OP_SET, OP_SPLIT, OP_JUMP, OP_BEGIN, OP_END, OP_MATCH };

struct instruction {
        enum operation op;
        uint32_t x, y; /* targets of SPLIT and JUMP; the set of SET */
};

/* States that are possible at one position: members in order of arrival, and where each stands among them. */
struct states {
        uint32_t members[LIMIT_REGEX_PROGRAM + 1];
        uint32_t places[LIMIT_REGEX_PROGRAM + 1];
        uint32_t count;
};

struct known_text {
        const char *text;
        size_t size;
        bool matches;
};

struct regex_match {
        struct regex_tree tree; /* its sets are used while matching */
        struct work_meter *meter;
        struct hash_table known; /* texts that were matched, entries of `results` */
        struct known_text *results; /* owned */
        size_t result_capacity;
        struct arena texts;   /* of results */
        uint64_t steps_taken; /* by the text at hand, not reported to the meter yet */
        struct instruction program[LIMIT_REGEX_PROGRAM + 1];
        uint32_t size;
        uint32_t steps; /* of compiling: repeating what is empty adds no instruction, so it is counted apart */
        struct states now, next;
        uint32_t stack[2 * LIMIT_REGEX_PROGRAM + 2];
};

/* ---- compiling ------------------------------------------------------------------------------ */

static bool put(struct regex_match *m, enum operation op, uint32_t x, uint32_t y)
{
        if (m->size == LIMIT_REGEX_PROGRAM)
                return false;
        m->program[m->size++] = (struct instruction){ op, x, y };
        return true;
}

static bool compile(struct regex_match *m, uint32_t node);

static bool compile_repeat(struct regex_match *m, const struct regex_node *n)
{
        uint32_t at;

        for (uint32_t i = 0; i < n->min; i++)
                if (!compile(m, n->left))
                        return false;
        if (n->max == REPEAT_FOREVER) {
                at = m->size;
                if (!put(m, OP_SPLIT, at + 1, 0) || !compile(m, n->left) || !put(m, OP_JUMP, at, 0))
                        return false;
                m->program[at].y = m->size;
                return true;
        }
        for (uint32_t i = n->min; i < n->max; i++) {
                at = m->size;
                if (!put(m, OP_SPLIT, at + 1, 0) || !compile(m, n->left))
                        return false;
                m->program[at].y = m->size; /* leaving one optional copy enters the next, which may be left too */
        }
        return true;
}

/* False when the program gets too long. Depth is bounded by the pattern's length. */
static bool compile(struct regex_match *m, uint32_t node)
{
        const struct regex_node *n = &m->tree.nodes[node];
        uint32_t split, jump;

        if (++m->steps > 16 * LIMIT_REGEX_PROGRAM)
                return false;
        switch (n->kind) {
        case NODE_EMPTY:
                return true;
        case NODE_SET:
                return put(m, OP_SET, n->left, 0);
        case NODE_BEGIN:
                return put(m, OP_BEGIN, 0, 0);
        case NODE_END:
                return put(m, OP_END, 0, 0);
        case NODE_CAT:
                return compile(m, n->left) && compile(m, n->right);
        case NODE_ALT:
                split = m->size;
                if (!put(m, OP_SPLIT, split + 1, 0) || !compile(m, n->left))
                        return false;
                jump = m->size;
                if (!put(m, OP_JUMP, 0, 0))
                        return false;
                m->program[split].y = m->size;
                if (!compile(m, n->right))
                        return false;
                m->program[jump].x = m->size;
                return true;
        case NODE_REPEAT:
                return compile_repeat(m, n);
        }
        return false;
}

enum status regex_match_create(const char *pattern, struct work_meter *meter, struct regex_match **ret,
                               struct error *err)
{
        _cleanup_free_ struct regex_match *m = NULL;
        enum status st;

        if (strlen(pattern) > LIMIT_REGEX_BYTES)
                return error_set(err, ST_USAGE, "a regular expression may have up to %d bytes", LIMIT_REGEX_BYTES);
        m = calloc(1, sizeof *m);
        if (!m)
                return error_no_memory(err);
        st = regex_parse(pattern, &m->tree, err);
        if (st)
                return st;
        if (!compile(m, m->tree.root))
                return error_set(err, ST_USAGE,
                                 "regular expression '%.60s' repeats too much: counted out it has more than %d parts; "
                                 "use * or + in place of large counts",
                                 pattern, LIMIT_REGEX_PROGRAM);
        m->meter = meter;
        arena_init(&m->texts, LIMIT_REGEX_REMEMBERED_BYTES);
        m->program[m->size++] = (struct instruction){ .op = OP_MATCH }; /* there is room for one more */
        *ret = steal_ptr(m);
        return ST_OK;
}

void regex_match_destroy(struct regex_match *m)
{
        if (!m)
                return;
        hash_table_deinit(&m->known);
        free(m->results);
        arena_deinit(&m->texts);
        free(m);
}

/* ---- matching --------------------------------------------------------------------------------- */

static bool in_ranges(struct regex_match *m, const struct regex_set *set, uint32_t code)
{
        m->steps_taken += set->count / 4; /* comparing a range costs a fraction of following a state */
        for (uint32_t i = set->first; i < set->first + set->count; i++)
                if (code >= m->tree.ranges[i].low && code <= m->tree.ranges[i].high)
                        return true;
        return false;
}

static bool in_set(struct regex_match *m, uint32_t number, uint32_t code)
{
        const struct regex_set *set = &m->tree.sets[number];
        bool in = in_ranges(m, set, code);

        if (!in && m->tree.any_case && ((code | 0x20) >= 'a' && (code | 0x20) <= 'z'))
                in = in_ranges(m, set, code ^ 0x20);
        return in != set->negated;
}

/* Add a state and all that it reaches without reading. Each state enters once, so empty loops end. */
static void add_state(struct regex_match *m, struct states *s, uint32_t state, bool at_begin, bool at_end)
{
        uint32_t depth = 0;

        m->stack[depth++] = state;
        while (depth) {
                uint32_t pc = m->stack[--depth], place = s->places[pc];
                const struct instruction *in = &m->program[pc];

                m->steps_taken++;
                if (place < s->count && s->members[place] == pc)
                        continue;
                s->places[pc] = s->count;
                s->members[s->count++] = pc;
                if (in->op == OP_JUMP) {
                        m->stack[depth++] = in->x;
                } else if (in->op == OP_SPLIT) {
                        m->stack[depth++] = in->y;
                        m->stack[depth++] = in->x;
                } else if ((in->op == OP_BEGIN && at_begin) || (in->op == OP_END && at_end)) {
                        m->stack[depth++] = pc + 1;
                }
        }
}

/* The next code point; a byte that is no UTF-8 stands for itself. */
static uint32_t next_code(const char *text, size_t n, size_t *size_ret)
{
        const unsigned char *u = (const unsigned char *)text;
        size_t size = utf8_sequence(text, n);

        *size_ret = size ? size : 1;
        return size < 2    ? u[0]
               : size == 2 ? (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu)
               : size == 3 ? (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu)
                           : (u[0] & 0x07u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
}

static bool run_program(struct regex_match *m, const char *text, size_t n)
{
        struct states *now = &m->now, *next = &m->next;

        now->count = 0;
        add_state(m, now, 0, true, n == 0);
        for (size_t i = 0, size; i < n && now->count; i += size) {
                uint32_t code = next_code(text + i, n - i, &size);
                struct states *swap;

                next->count = 0;
                for (uint32_t j = 0; j < now->count; j++) {
                        const struct instruction *in = &m->program[now->members[j]];

                        if (in->op == OP_SET && in_set(m, in->x, code))
                                add_state(m, next, now->members[j] + 1, false, i + size == n);
                }
                if (!work_meter_add_regex(m->meter, m->steps_taken + now->count))
                        return false;
                m->steps_taken = 0;
                swap = now;
                now = next;
                next = swap;
        }
        for (uint32_t j = 0; j < now->count; j++)
                if (m->program[now->members[j]].op == OP_MATCH)
                        return true;
        return false;
}

static bool is_known_text(const void *context, uint32_t entry, const void *key, size_t size)
{
        const struct known_text *k = (const struct known_text *)context + entry;

        return k->size == size && memcmp(k->text, key, size) == 0;
}

/* Nothing is remembered for want of room. */
static void remember_text(struct regex_match *m, uint32_t hash, const char *text, size_t n, bool matches)
{
        const char *copy;

        if (!array_reserve(&m->results, &m->result_capacity, m->known.count) ||
            hash_table_reserve(&m->known, NULL) != ST_OK)
                return;
        copy = arena_strndup(&m->texts, text, n);
        if (!copy)
                return;
        m->results[m->known.count] = (struct known_text){ copy, n, matches };
        hash_table_insert(&m->known, hash, m->known.count);
}

bool regex_match_text(void *context, const char *text, size_t n)
{
        struct regex_match *m = context;
        uint32_t hash = hash_table_hash(text, n), entry;
        bool matches;

        if (hash_table_find(&m->known, hash, is_known_text, m->results, text, n, &entry))
                return m->results[entry].matches;
        matches = run_program(m, text, n);
        remember_text(m, hash, text, n, matches);
        return matches;
}
