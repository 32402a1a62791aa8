/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/otlp_dictionary.h"

#include <inttypes.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/label_list.h"
#include "profile-formats/return_address.h"

static const struct {
        const char *name;
        uint32_t limit;
} tables[DICTIONARY_TABLES] = {
        [DICTIONARY_MAPPINGS] = { "mapping", LIMIT_LOCATIONS },
        [DICTIONARY_LOCATIONS] = { "location", LIMIT_LOCATIONS },
        [DICTIONARY_FUNCTIONS] = { "function", LIMIT_LOCATIONS },
        [DICTIONARY_LINKS] = { "link", LIMIT_SAMPLES },
        [DICTIONARY_STRINGS] = { "string", LIMIT_STRINGS },
        [DICTIONARY_ATTRIBUTES] = { "attribute", LIMIT_STRINGS },
        [DICTIONARY_STACKS] = { "stack", LIMIT_SAMPLES },
};

static void *scratch(struct otlp_dictionary *d, size_t count, size_t size, struct error *err)
{
        void *ret = arena_alloc_array(&d->scratch, count, size);

        if (!ret)
                error_set(err, ST_TOO_BIG, "OTLP dictionary needs more than %zu bytes of memory", d->scratch.max);
        return ret;
}

struct reader otlp_entry_reader(const struct otlp_dictionary *d, unsigned table, uint32_t i)
{
        const struct otlp_entry *e = &d->tables[table][i];
        struct reader r;

        reader_init(&r, e->data, e->size);
        r.base = (uint64_t)(e->data - d->start);
        return r;
}

enum status otlp_check_index(const struct otlp_dictionary *d, unsigned table, uint64_t index,
                             const struct reader *at, struct error *err)
{
        if (index == 0 || index < d->counts[table])
                return ST_OK;
        return error_at(err, ST_BAD_DATA, at->base, "OTLP %s index %" PRId64 " is outside the table of %u entries",
                        tables[table].name, (int64_t)index, d->counts[table]);
}

enum status otlp_string(struct otlp_dictionary *d, uint64_t index, const struct reader *at, uint32_t *ret,
                        struct error *err)
{
        const struct otlp_entry *e;
        enum status st = otlp_check_index(d, DICTIONARY_STRINGS, index, at, err);

        if (st)
                return st;
        if (index == 0) {
                *ret = 0;
                return ST_OK;
        }
        if (!d->strings[index]) {
                uint32_t number;

                e = &d->tables[DICTIONARY_STRINGS][index];
                st = profile_add_string(d->p, (const char *)e->data, text_cut(e->data, e->size, LIMIT_NAME_BYTES),
                                        &number, err);
                if (st)
                        return st;
                d->strings[index] = number + 1;
        }
        *ret = d->strings[index] - 1;
        return ST_OK;
}

const char *otlp_text(const struct otlp_dictionary *d, uint32_t string)
{
        return profile_text(d->p, string);
}

/* ---- the tables ------------------------------------------------------------------- */

/* The zero value may be spelled out: every field zero or empty. */
static enum status check_entry_zero(const struct otlp_dictionary *d, unsigned table, struct error *err)
{
        struct reader r;
        struct wire_field f;
        bool zero = true;

        if (d->counts[table] == 0)
                return ST_OK;
        r = otlp_entry_reader(d, table, 0);
        if (table == DICTIONARY_STRINGS) {
                zero = r.size == 0;
        } else {
                while (zero && wire_next(&r, &f)) {
                        zero = f.value == 0;
                        for (size_t i = 0; zero && f.type == WIRE_BYTES && i < f.bytes.size; i++)
                                zero = f.bytes.data[i] == 0;
                }
                if (r.failed)
                        return reader_error(&r, err, "OTLP dictionary entry");
        }
        if (zero)
                return ST_OK;
        return error_at(err, ST_BAD_DATA, r.base,
                        "OTLP %s table has content in entry 0, which must be empty since index 0 means not set",
                        tables[table].name);
}

static enum status walk_entries(struct otlp_dictionary *d, const void *data, size_t n, bool store,
                                struct error *err)
{
        struct reader request;
        struct wire_field part, entry;

        memset(d->counts, 0, sizeof d->counts);
        reader_init(&request, data, n);
        while (wire_next(&request, &part)) {
                if (part.number != REQUEST_DICTIONARY || part.type != WIRE_BYTES)
                        continue;
                while (wire_next(&part.bytes, &entry)) {
                        if (entry.number >= DICTIONARY_TABLES || entry.type != WIRE_BYTES)
                                continue;
                        if (store)
                                d->tables[entry.number][d->counts[entry.number]] =
                                        (struct otlp_entry){ entry.bytes.data, (uint32_t)entry.bytes.size };
                        if (++d->counts[entry.number] > tables[entry.number].limit)
                                return error_set(err, ST_TOO_BIG, "OTLP %s table has more than %u entries",
                                                 tables[entry.number].name, tables[entry.number].limit);
                }
                if (part.bytes.failed)
                        return reader_error(&part.bytes, err, "OTLP dictionary");
        }
        return request.failed ? reader_error(&request, err, "OTLP request") : ST_OK;
}

enum status otlp_dictionary_read(struct otlp_dictionary *d, struct profile *p, const void *data, size_t n,
                                 struct error *err)
{
        enum status st;

        *d = (struct otlp_dictionary){ .p = p, .start = data, .truncated_key = PROFILE_NONE };
        arena_init_budget(&d->scratch, LIMIT_PROFILE_MEMORY_BYTES, MEMORY_INGEST);
        st = walk_entries(d, data, n, false, err);
        for (unsigned t = 1; !st && t < DICTIONARY_TABLES; t++) {
                d->tables[t] = scratch(d, d->counts[t], sizeof *d->tables[t], err);
                if (!d->tables[t])
                        return ST_TOO_BIG;
        }
        if (!st)
                st = walk_entries(d, data, n, true, err);
        for (unsigned t = 1; !st && t < DICTIONARY_TABLES; t++)
                st = check_entry_zero(d, t, err);
        if (st)
                return st;

        /* One more than counted, so that index 0 has a place in an empty table too. */
        d->strings = scratch(d, d->counts[DICTIONARY_STRINGS] + 1u, sizeof *d->strings, err);
        d->attributes = scratch(d, d->counts[DICTIONARY_ATTRIBUTES] + 1u, sizeof *d->attributes, err);
        d->mappings = scratch(d, d->counts[DICTIONARY_MAPPINGS] + 1u, sizeof *d->mappings, err);
        d->mapping_ranges = scratch(d, d->counts[DICTIONARY_MAPPINGS] + 1u, sizeof *d->mapping_ranges, err);
        d->function_items = scratch(d, d->counts[DICTIONARY_FUNCTIONS] + 1u, sizeof *d->function_items, err);
        d->locations = scratch(d, d->counts[DICTIONARY_LOCATIONS] + 1u, sizeof *d->locations, err);
        d->stacks = scratch(d, d->counts[DICTIONARY_STACKS] + 1u, sizeof *d->stacks, err);
        d->links = scratch(d, d->counts[DICTIONARY_LINKS] + 1u, sizeof *d->links, err);
        if (!d->strings || !d->attributes || !d->mappings || !d->mapping_ranges || !d->function_items ||
            !d->locations || !d->stacks || !d->links)
                return ST_TOO_BIG;

        /* In the order in which they refer to each other. */
        for (uint32_t i = 1; !st && i < d->counts[DICTIONARY_ATTRIBUTES]; i++)
                st = otlp_read_attribute(d, i, err);
        for (uint32_t i = 1; !st && i < d->counts[DICTIONARY_MAPPINGS]; i++)
                st = otlp_read_mapping(d, i, err);
        for (uint32_t i = 1; !st && i < d->counts[DICTIONARY_FUNCTIONS]; i++)
                st = otlp_read_function(d, i, err);
        for (uint32_t i = 1; !st && i < d->counts[DICTIONARY_LOCATIONS]; i++)
                st = otlp_read_location(d, i, err);
        for (uint32_t i = 1; !st && i < d->counts[DICTIONARY_LINKS]; i++)
                st = otlp_read_link(d, i, err);
        if (!st)
                st = profile_add_stack(p, NULL, 0, &d->stacks[0], err);
        for (uint32_t i = 1; !st && i < d->counts[DICTIONARY_STACKS]; i++)
                st = otlp_read_stack(d, i, err);
        return st;
}

void otlp_dictionary_deinit(struct otlp_dictionary *d)
{
        arena_deinit(&d->scratch);
}
