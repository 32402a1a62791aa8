/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_CPU_TURN_H
#define CAIRN_SCRAPE_CPU_TURN_H

/**
 * @file
 * Semaphore for work that uses CPU and temporary memory: decoding, deltas, compression. Hundreds of requests may wait
 * for the network, but only as many threads compute as there are CPUs; more would use more memory and not be faster.
 *
 * Threads: any; a thread holds at most one turn.
 */
void cpu_turn_begin(void);
void cpu_turn_end(void);

#endif
