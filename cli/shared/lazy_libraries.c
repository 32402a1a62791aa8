/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/lazy_libraries.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/exit_code.h"

/* Written by cli/shared/lazy_stub.inc. */
struct lazy_table {
        const char *const *libraries, *const *names;
        const uint8_t *library_of; /* by function */
        void **slots, **slots_end;
        size_t function_count, library_count;
};

extern const struct lazy_table lazy_table __attribute__((weak, visibility("hidden")));
void *find_lazy_function(unsigned index);

static void *look_up_lazy_function(size_t index)
{
        const char *library = lazy_table.libraries[lazy_table.library_of[index]];
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), *function; /* kept until the process ends */

        if (!handle)
                return NULL;
        function = dlsym(handle, lazy_table.names[index]);
        if (function)
                __atomic_store_n(&lazy_table.slots[index], function, __ATOMIC_RELEASE);
        return function;
}

/* Called by a function that is called for the first time. */
void *find_lazy_function(unsigned index)
{
        const int saved_errno = errno;
        void *function = look_up_lazy_function(index);

        if (!function) {
                fprintf(stderr, "cairn: %s\n", dlerror());
                _exit(EXIT_FAILED);
        }
        errno = saved_errno;
        return function;
}

enum status lazy_libraries_load(struct error *err)
{
        static bool loaded; /* a worker that is forked inherits the pointers, which are read-only */
        const struct lazy_table *t = &lazy_table;

        if (!t || loaded)
                return ST_OK;
        for (size_t i = 0; i < t->function_count; i++)
                if (!look_up_lazy_function(i))
                        return error_set(err, ST_OS, "%s", dlerror());
        if (mprotect(t->slots, (size_t)((char *)t->slots_end - (char *)t->slots), PROT_READ))
                return error_os(err, errno, "cannot protect the pointers to functions");
        loaded = true;
        return ST_OK;
}
