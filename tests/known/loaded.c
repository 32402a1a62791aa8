// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include "work.h"
FUNCTION void back(void)
{
        burn(500000);
        sink++;
}
int main(void)
{
        for (;;) {
                void *library = dlopen("./library.so", RTLD_NOW);
                void (*there)(void (*)(void)) = dlsym(library, "there");
                for (int i = 0; i < 2000; i++)
                        there(back);
                dlclose(library);
        }
}
