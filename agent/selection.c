/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/selection.h"

#include <fnmatch.h>
#include <string.h>

static bool matches(const char *pattern, const char *text)
{
        return fnmatch(pattern, text, 0) == 0;
}

static bool any_matches(const struct option_list *patterns, const char *text)
{
        for (size_t i = 0; i < patterns->count; i++)
                if (matches(patterns->items[i], text))
                        return true;
        return false;
}

static bool any_matches_cgroup(const struct option_list *patterns, const struct cgroup_names *cgroup)
{
        char elements[CGROUP_PATH_SIZE];
        char *left = elements, *element;

        if (!patterns->count || any_matches(patterns, cgroup->path))
                return patterns->count;
        memcpy(elements, cgroup->path, sizeof elements);
        while ((element = strsep(&left, "/")))
                if (element[0] && any_matches(patterns, element))
                        return true;
        return false;
}

bool selection_is_active(const struct selection *s)
{
        return s->exclude_process.count || s->only_process.count || s->exclude_cgroup.count || s->only_cgroup.count;
}

bool selection_excludes(const struct selection *s, const char *name, const struct cgroup_names *cgroup)
{
        return any_matches(&s->exclude_process, name) || (s->only_process.count && !any_matches(&s->only_process, name)) ||
               any_matches_cgroup(&s->exclude_cgroup, cgroup) ||
               (s->only_cgroup.count && !any_matches_cgroup(&s->only_cgroup, cgroup));
}
