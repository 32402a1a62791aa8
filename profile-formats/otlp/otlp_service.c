/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/otlp/otlp_service.h"

#include <string.h>

#include "common/files/file.h"

#define UNKNOWN_SERVICE "unknown_service"
#define MAIN_FILE_FRAMES 32 /* from the root; below it are only those that start the program or a thread */

/* The text of a label, "" without it. */
static const char *get_label_text(const struct profile *p, const struct sample_labels *l, const char *key)
{
        for (uint32_t i = 0; i < l->count; i++)
                if (strcmp(profile_text(p, l->items[i].key), key) == 0)
                        return profile_text(p, l->items[i].value);
        return "";
}

static const char *get_program_name(const struct profile *p, const struct sample_labels *l)
{
        const char *name = get_label_text(p, l, "process.executable.name");

        return *name ? name : path_base(get_label_text(p, l, "process.executable.path"));
}

bool has_service_name(const struct profile *p, const struct sample_labels *l)
{
        return *get_label_text(p, l, "service.name") || *get_label_text(p, l, "service_name");
}

bool has_program_name(const struct profile *p, const struct sample_labels *l)
{
        return *get_program_name(p, l);
}

/* Libraries are NAME.so and NAME.so.VERSION; [vdso], [jit] and the like are no files. */
static bool is_executable_name(const char *path)
{
        const char *name = path_base(path), *library = strstr(name, ".so");

        return *name && *name != '[' && !(library && (library[3] == 0 || library[3] == '.'));
}

uint32_t find_main_file(const struct profile *p, uint32_t stack)
{
        const struct profile_stack *s = &p->stacks.items[stack];

        for (uint32_t i = 0; i < s->location_count && i < MAIN_FILE_FRAMES; i++) {
                uint32_t at = p->stack_locations.items[s->first_location + s->location_count - 1 - i];
                const struct profile_location *l = &p->locations.items[at];

                if (l->mapping != PROFILE_NONE && l->frame_type != PROFILE_FRAME_KERNEL &&
                    is_executable_name(profile_text(p, p->mappings.items[l->mapping].file)))
                        return p->mappings.items[l->mapping].file;
        }
        return 0;
}

enum status set_unknown_service(struct profile *p, uint32_t main_file, struct sample_labels *l, struct error *err)
{
        const char *program = get_program_name(p, l);
        char text[sizeof UNKNOWN_SERVICE + LIMIT_LABEL_BYTES];

        if (!*program)
                program = path_base(profile_text(p, main_file));
        snprintf(text, sizeof text, UNKNOWN_SERVICE "%s%s", *program ? ":" : "", program);
        return sample_labels_set_text(l, p, "service.name", text, strlen(text), err);
}
