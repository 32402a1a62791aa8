/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/folded.h"
#include "profile-formats/folded_address.h"

#include <string.h>

#include "common/limits.h"
#include "profile-formats/label_list.h"
#include "profile-formats/number_map.h"
#include "profile-formats/profile_type.h"

static const char kernel_mark[] = "_[k]";
#define KERNEL_MARK_SIZE (sizeof kernel_mark - 1)

/* The number after the last blank of a line; *n is cut back to the frames. */
static bool take_count(const char *line, size_t *n, int64_t *ret)
{
        size_t end = *n, start;
        int64_t v = 0;

        while (end && (line[end - 1] == ' ' || line[end - 1] == '\t' || line[end - 1] == '\r'))
                end--;
        start = end;
        while (start && line[start - 1] >= '0' && line[start - 1] <= '9')
                start--;
        if (start == end || start == 0 || (line[start - 1] != ' ' && line[start - 1] != '\t'))
                return false;
        for (size_t i = start; i < end; i++)
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, line[i] - '0', &v))
                        return false;
        *n = start - 1;
        *ret = v;
        return true;
}

/* What is under way. Locations are numbered as they are met, in the map and in the profile alike. */
struct decoder {
        struct profile *p;
        struct number_map locations, mappings;
        bool addresses;
};

static enum status add_address(struct decoder *d, const struct folded_address *a, bool is_kernel, uint32_t *ret,
                               struct error *err)
{
        struct profile_location l = { .mapping = PROFILE_NONE, .kind = ADDRESS_OBJECT, .address = a->address,
                                      .is_kernel = is_kernel };
        struct profile_mapping m = { .build_id = a->build_id };
        struct number_key key = { .parts = { [4] = 2 + is_kernel } };
        uint32_t number;
        bool fresh = false;
        enum status st = ST_OK;

        if (a->object_size) {
                st = profile_add_string(d->p, a->object, text_cut(a->object, a->object_size, LIMIT_PATH_BYTES), &m.file, err);
                if (!st)
                        st = number_map_get(&d->mappings, &(struct number_key){ { m.file } }, &l.mapping, &fresh, err);
                if (!st && fresh)
                        st = profile_add_mapping(d->p, &m, &number, err);
        }
        key.parts[0] = l.mapping;
        key.parts[1] = (uint32_t)a->address;
        key.parts[2] = (uint32_t)(a->address >> 32);
        if (!st)
                st = number_map_get(&d->locations, &key, ret, &fresh, err);
        return st || !fresh ? st : profile_add_location(d->p, &l, &number, err);
}

static enum status add_frame(struct decoder *d, const char *text, size_t n, uint32_t *ret, struct error *err)
{
        struct folded_address address;
        struct profile_location l = { .mapping = PROFILE_NONE, .kind = ADDRESS_NONE, .line_count = 1 };
        struct profile_line line = { 0 };
        uint32_t number;
        bool fresh = false;
        enum status st;

        if (n > KERNEL_MARK_SIZE && memcmp(text + n - KERNEL_MARK_SIZE, kernel_mark, KERNEL_MARK_SIZE) == 0) {
                l.is_kernel = true;
                n -= KERNEL_MARK_SIZE;
        }
        if (d->addresses && folded_address_parse(text, n, &address))
                return add_address(d, &address, l.is_kernel, ret, err);
        st = profile_add_string(d->p, text, text_cut(text, n, LIMIT_NAME_BYTES), &line.function, err);
        if (!st)
                st = number_map_get(&d->locations, &(struct number_key){ { line.function, [4] = l.is_kernel } }, ret,
                                    &fresh, err);
        if (st || !fresh)
                return st;
        st = profile_add_line(d->p, &line, &l.first_line, err);
        return st ? st : profile_add_location(d->p, &l, &number, err); /* number is *ret: both count up together */
}

static enum status add_line(struct decoder *d, const char *line, size_t n, uint32_t type, struct error *err)
{
        struct profile_sample s = { .type = type };
        _cleanup_free_ uint32_t *frames = NULL;
        uint32_t count = 0, wanted = 1, at;
        enum status st = ST_OK;

        if (!take_count(line, &n, &s.value))
                return error_set(err, ST_BAD_DATA, "no count at its end");
        for (size_t i = 0; i < n; i++)
                wanted += line[i] == ';';
        frames = calloc(wanted, sizeof *frames);
        if (!frames)
                return error_no_memory(err);
        for (size_t end = n; !st;) { /* from the leaf, which stands last */
                size_t start = end;

                while (start && line[start - 1] != ';')
                        start--;
                if (end > start)
                        st = add_frame(d, line + start, end - start, &frames[count++], err);
                if (start == 0)
                        break;
                end = start - 1;
        }
        if (!st)
                st = profile_add_stack(d->p, frames, count, &s.stack, err);
        return st ? st : profile_add_sample(d->p, &s, &at, err);
}

static enum status decode(const void *data, size_t n, const char *type_id, bool addresses, struct profile *ret,
                          struct error *err)
{
        struct decoder d = { .addresses = addresses };
        const char *at = n ? data : "", *end = at + n;
        struct profile p;
        uint32_t type, number = 0;
        enum status st = profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, err);

        if (st)
                return st;
        d.p = &p;
        st = profile_type_add_id(&p, type_id ? type_id : "samples:samples:count::", 0, &type, err);
        while (!st && at < end) {
                const char *eol = memchr(at, '\n', (size_t)(end - at));
                size_t size = (size_t)((eol ? eol : end) - at);

                number++;
                if (size && *at != '#' && !(size == 1 && *at == '\r'))
                        st = add_line(&d, at, size, type, err);
                if (st)
                        error_prefix(err, st, "line %u of folded stacks", number);
                at = eol ? eol + 1 : end;
        }
        number_map_deinit(&d.locations);
        number_map_deinit(&d.mappings);
        if (st) {
                profile_deinit(&p);
                return st;
        }
        *ret = p;
        return ST_OK;
}

enum status folded_decode(const void *data, size_t n, const char *type_id, struct profile *ret, struct error *err)
{
        return decode(data, n, type_id, false, ret, err);
}

enum status folded_decode_addresses(const void *data, size_t n, const char *type_id, struct profile *ret,
                                    struct error *err)
{
        return decode(data, n, type_id, true, ret, err);
}
