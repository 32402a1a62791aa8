/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/stack_builder.h"

#include <string.h>

#include "common/limits.h"
#include "profile-formats/folded.h"
#include "profile-formats/sample_labels.h"

static const char kernel_mark[] = "_[k]";
#define KERNEL_MARK_SIZE (sizeof kernel_mark - 1)

static enum status add_address_frame(struct stack_builder *b, const struct folded_address *a, bool is_kernel,
                                     uint32_t *ret, struct error *err)
{
        struct profile_location l = { .mapping = PROFILE_NONE,
                                      .kind = ADDRESS_OBJECT,
                                      .address = a->address,
                                      .frame_type = is_kernel ? PROFILE_FRAME_KERNEL : PROFILE_FRAME_UNKNOWN };
        struct profile_mapping m = { .build_id = a->build_id };
        struct number_key key = { .parts = { [4] = 2 + is_kernel } };
        uint32_t number;
        bool fresh = false;
        enum status st = ST_OK;

        if (a->object_size) {
                st = profile_add_string(b->p, a->object, utf8_truncate(a->object, a->object_size, LIMIT_PATH_BYTES),
                                        &m.file, err);
                if (!st)
                        st = number_map_get(&b->mappings, &(struct number_key){ { m.file } }, &l.mapping, &fresh, err);
                if (!st && fresh)
                        st = profile_add_mapping(b->p, &m, &number, err);
        }
        key.parts[0] = l.mapping;
        key.parts[1] = (uint32_t)a->address;
        key.parts[2] = (uint32_t)(a->address >> 32);
        if (!st)
                st = number_map_get(&b->locations, &key, ret, &fresh, err);
        return st || !fresh ? st : profile_add_location(b->p, &l, &number, err);
}

enum status stack_builder_add_frame(struct stack_builder *b, const char *text, size_t n, uint32_t *ret,
                                    struct error *err)
{
        struct folded_address address;
        struct profile_location l = { .mapping = PROFILE_NONE, .kind = ADDRESS_NONE, .line_count = 1 };
        struct profile_line line = { 0 };
        uint32_t number;
        bool fresh = false;
        enum status st;

        if (n > KERNEL_MARK_SIZE && memcmp(text + n - KERNEL_MARK_SIZE, kernel_mark, KERNEL_MARK_SIZE) == 0) {
                l.frame_type = PROFILE_FRAME_KERNEL;
                n -= KERNEL_MARK_SIZE;
        }
        if (b->addresses && folded_parse_address(text, n, &address))
                return add_address_frame(b, &address, l.frame_type == PROFILE_FRAME_KERNEL, ret, err);
        st = profile_add_string(b->p, text, utf8_truncate(text, n, LIMIT_NAME_BYTES), &line.function, err);
        if (!st)
                st = number_map_get(&b->locations, &(struct number_key){ { line.function, [4] = l.frame_type } }, ret,
                                    &fresh, err);
        if (st || !fresh)
                return st;
        st = profile_add_line(b->p, &line, &l.first_line, err);
        return st ? st : profile_add_location(b->p, &l, &number, err); /* number is *ret: both count up together */
}

enum status stack_builder_add_text(struct stack_builder *b, const char *text, size_t n, struct profile_sample *s,
                                   struct error *err)
{
        uint32_t frames[LIMIT_STACK_FRAMES + 1]; /* one more, so that profile_add_stack() detects truncation */
        uint32_t count = 0, at;
        enum status st = ST_OK;

        for (size_t end = n;
             !st && count <= LIMIT_STACK_FRAMES;) { /* the leaf is last in the text and first in a stack */
                size_t start = end;

                while (start && text[start - 1] != ';')
                        start--;
                if (end > start)
                        st = stack_builder_add_frame(b, text + start, end - start, &frames[count++], err);
                if (start == 0)
                        break;
                end = start - 1;
        }
        if (!st)
                st = profile_add_stack(b->p, frames, count, &s->stack, err);
        return st ? st : profile_add_sample(b->p, s, &at, err);
}

void stack_builder_deinit(struct stack_builder *b)
{
        number_map_deinit(&b->locations);
        number_map_deinit(&b->mappings);
}
