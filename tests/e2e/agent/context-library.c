/* SPDX-License-Identifier: Apache-2.0 */
/* The thread-local variable of OTEP 4947, and its writer: linked into agent-context.c, or a library of its own. */
extern __thread const void *otel_thread_ctx_v1;
__thread const void *otel_thread_ctx_v1;

void context_attach(const void *record);
void context_attach(const void *record)
{
        otel_thread_ctx_v1 = record;
        __asm__ volatile("" ::: "memory");
}
