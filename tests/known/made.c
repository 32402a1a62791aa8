// SPDX-License-Identifier: Apache-2.0
// Code generated at run time, as by a JIT compiler: in writable pages, and regenerated repeatedly.
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "work.h"
#if defined(__x86_64__) // push rbp; mov rbp, rsp; mov ecx, 2000000; again: dec ecx; jnz again; pop rbp; ret
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xb9, 0x80, 0x84, 0x1e,
                                      0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3 };
#else // stp x29, x30, [sp, -16]!; mov x29, sp; mov w0, 0x1e0000; again: subs w0, w0, 1; b.ne again; ldp x29, x30, [sp],
      // 16; ret
static const unsigned code[] = { 0xa9bf7bfd, 0x910003fd, 0x52a003c0, 0x71000400, 0x54ffffe1, 0xa8c17bfd, 0xd65f03c0 };
#endif
FUNCTION void work(void (*made)(void))
{
        burn(100000);
        made();
        sink++;
}
int main(void)
{
        for (time_t since = 0;;) {
                static void *page;
                if (time(0) != since) {
                        page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                        memcpy(page, code, sizeof code);
                        __builtin___clear_cache(page, (char *)page + sizeof code);
                        since = time(0);
                }
                work((void (*)(void))page);
        }
}
