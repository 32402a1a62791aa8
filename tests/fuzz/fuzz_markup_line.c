/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/drop-in/markup_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk_fields(const struct markup_node *n)
{
        const char *start = n->tag.data + n->tag.size, *end = n->text.data + n->text.size - 3;
        struct markup_span rest = { start, (size_t)(end - start) }, field;
        uint64_t value;
        size_t count = 0;

        assert(start <= end);
        for (; markup_next_field(&rest, &field); count++) {
                assert(field.data + field.size <= end);
                (void)markup_parse_address(&field, &value);
                (void)markup_parse_number(&field, 0, &value);
                if (count < MARKUP_FIELDS_KEPT)
                        assert(n->fields[count].data == field.data && n->fields[count].size == field.size);
        }
        assert(count == n->field_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *line = malloc(size + 1);
        struct markup_cursor c = { .at = line };
        struct markup_node n;
        const char *at = line;

        if (!line)
                return 0;
        if (size)
                memcpy(line, data, size);
        line[size] = 0;
        while (markup_line_next(&c, &n)) {
                assert(n.text.data == at && n.text.size); /* nothing of the line is left out */
                at += n.text.size;
                if (n.kind == MARKUP_ELEMENT)
                        walk_fields(&n);
        }
        assert(!*at);
        free(line);
        return 0;
}
