// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include "work.h"
FUNCTION void *thread(void *arg)
{
        for (;;) {
                burn(1000000);
                sink++;
        }
        return arg;
}
int main(void)
{
        pthread_t t[3];
        for (int i = 0; i < 3; i++)
                pthread_create(&t[i], 0, thread, 0);
        pthread_join(t[0], 0);
}
