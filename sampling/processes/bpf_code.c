/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/bpf_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/programs.skel.h"
#include "common/cleanup.h"
#include "common/limits.h"
#include "common/memory/array.h"

enum status bpf_code_open(struct bpf_code *ret, struct error *err)
{
        struct bpf_code c = { .bpf = programs_bpf__open() };
        int e = c.bpf ? programs_bpf__load(c.bpf) : -errno;

        if (!e) {
                c.link = bpf_program__attach(c.bpf->progs.find_bpf_code);
                e = c.link ? 0 : -errno;
        }
        if (e) {
                bpf_code_close(&c);
                return error_os(err, -e, "cannot list BPF programs");
        }
        *ret = c;
        return ST_OK;
}

void bpf_code_close(struct bpf_code *c)
{
        bpf_link__destroy(c->link);
        programs_bpf__destroy(c->bpf);
        bpf_code_forget(c);
        free(c->places);
        *c = (struct bpf_code){ 0 };
}

void bpf_code_forget(struct bpf_code *c)
{
        id_table_deinit(&c->by_address);
        c->by_address = (struct id_table){ 0 };
        c->count = 0;
}

/* The program writes its result to the memory that both share. */
static void ask_kernel(struct bpf_code *c, uint64_t address, struct bpf_code_place *ret)
{
        _cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(c->link));
        char unused[64];

        c->bpf->bss->wanted_address = address;
        c->bpf->bss->place.found = 0;
        while (fd >= 0 && read(fd, unused, sizeof unused) > 0)
                continue;
        *ret = c->bpf->bss->place;
        ret->name[sizeof ret->name - 1] = 0;
        ret->file[sizeof ret->file - 1] = 0;
}

/* Addresses are many, lines are few. */
static bool find_known_range(const struct bpf_code *c, uint64_t address, uint32_t *ret)
{
        for (size_t i = 0; i < c->count; i++) {
                if (!c->places[i].found || address < c->places[i].start || address >= c->places[i].end)
                        continue;
                *ret = (uint32_t)i;
                return true;
        }
        return false;
}

/* The number of the place of an address that was not looked up before. */
static bool add_code_place(struct bpf_code *c, uint64_t address, uint32_t *ret)
{
        if (!find_known_range(c, address, ret)) {
                if (c->count == LIMIT_AGENT_BPF_LOOKUPS || !array_reserve(&c->places, &c->capacity, c->count))
                        return false;
                *ret = (uint32_t)c->count;
                ask_kernel(c, address, &c->places[c->count++]);
        }
        return id_table_put(&c->by_address, &address, sizeof address, *ret);
}

const struct bpf_code_place *bpf_code_find(struct bpf_code *c, uint64_t address)
{
        uint32_t i;

        if (!c->bpf)
                return NULL;
        if (!id_table_find(&c->by_address, &address, sizeof address, &i) && !add_code_place(c, address, &i))
                return NULL;
        return c->places[i].found ? &c->places[i] : NULL;
}
