/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/perf_maps.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/limits.h"
#include "profile-formats/label_list.h"

#define PROCESS_START                                                                                              \
        (UINT64_C(1) << 40) /* newer perf prints file offsets of user code, older perf process addresses */
#define LIMIT_MMAPS 1000000

void perf_maps_deinit(struct perf_maps *maps)
{
        free(maps->mmaps);
        free(maps->file_mappings);
        number_map_deinit(&maps->files);
}

enum status perf_maps_add(struct perf_maps *maps, struct perf_text t, struct error *err)
{
        const char *open = memchr(t.at, '[', t.n), *close, *paren;
        struct profile_mapping m = { 0 };
        struct perf_mmap map = { 0 };
        struct perf_text inside, word;
        uint64_t size;
        enum status st;

        close = open ? memmem(open, (size_t)(t.at + t.n - open), "]: ", 3) : NULL;
        if (!close)
                return ST_OK;
        inside = (struct perf_text){ open + 1, (size_t)(close - open - 1) };
        word = perf_text_word(&inside);
        paren = memchr(word.at, '(', word.n);
        if (!paren || word.at[word.n - 1] != ')' ||
            !perf_text_number((struct perf_text){ word.at, (size_t)(paren - word.at) }, 16, &map.start) ||
            !perf_text_number((struct perf_text){ paren + 1, (size_t)(word.at + word.n - 1 - (paren + 1)) }, 16, &size) ||
            __builtin_add_overflow(map.start, size, &map.end))
                return ST_OK;
        word = perf_text_word(&inside); /* @ */
        word = perf_text_word(&inside);
        if (!perf_text_number(word, 16, &map.file_offset))
                return ST_OK;
        word = perf_text_word(&inside);
        if (word.n > 2 && word.at[0] == '<' && !build_id_from_hex(&m.build_id, word.at + 1, word.n - 2))
                m.build_id.size = 0;
        t = (struct perf_text){ close + 3, (size_t)(t.at + t.n - (close + 3)) };
        m.file_offset = map.file_offset;
        m.size = size;
        perf_text_word(&t); /* r-xp */
        t = perf_text_trim(t);
        if (t.n > 17 && memcmp(t.at, "[kernel.kallsyms]", 17) == 0)
                t.n = 17; /* perf appends the reference symbol here, not in stacks */
        st = profile_add_string(maps->p, t.at, text_cut(t.at, t.n, LIMIT_PATH_BYTES), &m.file, err);
        if (!st)
                st = profile_add_mapping(maps->p, &m, &map.mapping, err);
        if (st)
                return st;
        map.file = m.file;
        if (maps->mmap_count == LIMIT_MMAPS)
                return error_set(err, ST_TOO_BIG, "more than %d mappings", LIMIT_MMAPS);
        if (!array_reserve(&maps->mmaps, &maps->mmap_capacity, maps->mmap_count))
                return error_no_memory(err);
        maps->mmaps[maps->mmap_count++] = map;
        return ST_OK;
}

static enum status file_mapping(struct perf_maps *maps, uint32_t file, uint32_t *ret, struct error *err)
{
        struct profile_mapping m = { .file = file };
        uint32_t number;
        bool fresh;
        enum status st = number_map_get(&maps->files, &(struct number_key){ { file } }, &number, &fresh, err);

        if (!st && fresh && !array_reserve(&maps->file_mappings, &maps->file_capacity, number))
                return error_no_memory(err);
        if (!st && fresh)
                st = profile_add_mapping(maps->p, &m, &maps->file_mappings[number], err);
        if (!st)
                *ret = maps->file_mappings[number];
        return st;
}

enum status perf_maps_place(struct perf_maps *maps, uint32_t file, struct profile_location *l, struct error *err)
{
        bool offset = l->address < PROCESS_START;

        l->is_kernel = l->address >> 63 || strncmp(profile_text(maps->p, file), "[kernel", 7) == 0;
        for (uint32_t i = maps->mmap_count; i-- > 0;) { /* the latest first */
                const struct perf_mmap *m = &maps->mmaps[i];

                if (m->file != file ||
                    (!offset && !l->is_kernel && (l->address < m->start || l->address >= m->end)))
                        continue;
                l->mapping = m->mapping;
                if (!l->is_kernel) {
                        l->kind = ADDRESS_FILE_OFFSET;
                        if (!offset)
                                l->address = l->address - m->start + m->file_offset;
                }
                return ST_OK;
        }
        if (profile_text(maps->p, file)[0] == '/' && offset)
                l->kind = ADDRESS_FILE_OFFSET;
        return file ? file_mapping(maps, file, &l->mapping, err) : ST_OK;
}
