/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/label_groups.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/csv.h"
#include "common/text/utf8.h"
#include "query/engine/frames.h"

static bool is_label_listed(const struct label_list *l, const char *name)
{
        for (size_t i = 0; i < l->count; i++)
                if (strcmp(l->names[i], name) == 0)
                        return true;
        return false;
}

enum status label_list_parse(const char *text, struct label_list *ret, struct error *err)
{
        struct label_list l = { 0 };
        char *at, *name;

        if (!text) {
                *ret = l;
                return ST_OK;
        }
        l.text = at = strdup(text);
        if (!l.text)
                return error_no_memory(err);
        while ((name = strsep(&at, ","))) {
                size_t n;

                name += strspn(name, " ");
                for (n = strlen(name); n && name[n - 1] == ' '; n--)
                        ;
                name[n] = 0;
                if (is_label_listed(&l, name))
                        continue;
                if (!*name || l.count == LIMIT_GROUP_LABELS) {
                        free(l.text);
                        return error_set(err, ST_USAGE,
                                         "'%.60s' is not a list of 1 to %d label names, as in host,service", text,
                                         LIMIT_GROUP_LABELS);
                }
                l.names[l.count++] = name;
        }
        *ret = l;
        return ST_OK;
}

void label_list_deinit(struct label_list *l)
{
        free(l->text);
        *l = (struct label_list){ 0 };
}

void label_groups_init(struct label_groups *g, const struct label_list *labels, struct work_meter *meter)
{
        *g = (struct label_groups){ .labels = labels, .meter = meter, .memory.use = MEMORY_QUERIES };
        arena_init_budget(&g->arena, LIMIT_PROFILE_MEMORY_BYTES, MEMORY_QUERIES);
}

void label_groups_deinit(struct label_groups *g)
{
        number_map_deinit(&g->numbers);
        free(g->items);
        free(g->shown);
        free(g->shown_as);
        memory_release(&g->memory);
        arena_deinit(&g->arena);
}

static struct number_key make_group_key(const struct scan_group_label *values, size_t count)
{
        struct number_key key = { 0 };
        uint64_t sum[2] = { 0 };

        for (size_t i = 0; i < count; i++) {
                struct hash128 hash = hash_bytes128(values[i].value, strlen(values[i].value));
                uint64_t x[2];

                memcpy(x, hash.bytes, sizeof x);
                sum[0] = (sum[0] ^ x[0]) * 0x9e3779b97f4a7c15u;
                sum[1] = (sum[1] + x[1]) * 0xc2b2ae3d27d4eb4fu;
        }
        memcpy(key.parts, sum, sizeof sum);
        return key;
}

enum status label_groups_find_or_add(struct label_groups *g, const struct scan_group_label *values, uint32_t *ret,
                                     struct error *err)
{
        struct number_key key = make_group_key(values, g->labels->count);
        struct label_group group = { 0 };
        bool fresh = false;
        enum status st = work_meter_add(g->meter, 16, err);

        if (!st)
                st = number_map_get(&g->numbers, &key, ret, &fresh, err);
        if (st || !fresh)
                return st;
        st = array_charge_growth(&g->memory, g->capacity, g->count, sizeof *g->items + NUMBER_MAP_KEY_BYTES, err);
        if (st)
                return st;
        if (!array_reserve(&g->items, &g->capacity, g->count))
                return error_no_memory(err);
        group.values = arena_alloc_array(&g->arena, g->labels->count + 1, sizeof *group.values);
        for (size_t i = 0; group.values && i < g->labels->count; i++) {
                group.values[i] = arena_strndup(&g->arena, values[i].value, strlen(values[i].value));
                if (!group.values[i])
                        group.values = NULL;
        }
        if (!group.values)
                return arena_error(&g->arena, err, "the values of the labels");
        g->items[g->count++] = group;
        return ST_OK;
}

void label_groups_add_value(struct label_groups *g, uint32_t group, unsigned side, int64_t value,
                            struct counted_samples samples)
{
        assert(group < g->count && side < 2);
        add_saturating(&g->items[group].total[side], value);
        sample_count_add(&g->items[group].samples[side], samples);
}

static int compare_group_totals(const void *x, const void *y, void *context)
{
        const struct label_group *items = context;
        uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
        int64_t ta = items[a].total[0], tb = items[b].total[0];

        add_saturating(&ta, items[a].total[1]);
        add_saturating(&tb, items[b].total[1]);
        if (ta != tb)
                return ta > tb ? -1 : 1;
        return a < b ? -1 : a > b;
}

enum status label_groups_rank(struct label_groups *g, uint64_t limit, struct error *err)
{
        _cleanup_free_ uint32_t *order = NULL;
        uint32_t kept = limit && limit < LIMIT_SHOWN_GROUPS ? (uint32_t)limit : LIMIT_SHOWN_GROUPS;
        enum status st = g->count > ARRAY_UNCHARGED
                                 ? memory_reserve(&g->memory, g->count * (sizeof *order + sizeof *g->shown_as), err)
                                 : ST_OK;

        if (st)
                return st;
        if (kept > g->count)
                kept = g->count;
        order = calloc(g->count + (size_t)1, sizeof *order);
        g->shown_as = calloc(g->count + (size_t)1, sizeof *g->shown_as);
        g->shown = calloc(kept + (size_t)1, sizeof *g->shown);
        if (!order || !g->shown_as || !g->shown)
                return error_no_memory(err);
        for (uint32_t i = 0; i < g->count; i++)
                order[i] = i;
        st = work_meter_sort(g->meter, order, g->count, sizeof *order, compare_group_totals, g->items, err);
        for (uint32_t i = 0; !st && i < g->count; i++) {
                const struct label_group *from = &g->items[order[i]];
                uint32_t place = i < kept ? i : kept;

                g->shown_as[order[i]] = place;
                if (place < kept)
                        g->shown[place].values = from->values;
                for (int side = 0; side < 2; side++) {
                        add_saturating(&g->shown[place].total[side], from->total[side]);
                        sample_count_add(&g->shown[place].samples[side], from->samples[side]);
                }
        }
        g->shown_count = kept + (kept < g->count);
        return st;
}

void label_group_put_json(const struct label_groups *g, const struct label_group *group, const char *key,
                          struct json_out *j)
{
        if (!group->values) {
                json_out_str(j, key, NULL);
                return;
        }
        json_out_object(j, key);
        for (size_t i = 0; i < g->labels->count; i++)
                json_out_str(j, g->labels->names[i], group->values[i]);
        json_out_object_end(j);
}

void label_group_put_csv(const struct label_groups *g, const struct label_group *group, struct buf *ret)
{
        for (size_t i = 0; i < g->labels->count; i++)
                csv_put_text(ret, group->values ? group->values[i] : "(other)", ',');
}

void label_group_put_text(const struct label_groups *g, const struct label_group *group, struct buf *ret)
{
        if (!group->values) {
                buf_append_str(ret, "(other)");
                return;
        }
        for (size_t i = 0; i < g->labels->count; i++) {
                buf_append_str(ret, i ? ", " : "");
                utf8_append_escaped(ret, g->labels->names[i]);
                buf_append_str(ret, "=\"");
                utf8_append_escaped(ret, group->values[i]);
                buf_append_u8(ret, '"');
        }
}
