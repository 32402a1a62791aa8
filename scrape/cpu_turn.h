/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_CPU_TURN_H
#define CAIRN_SCRAPE_CPU_TURN_H

/**
 * @file
 * Requests wait for the network, hundreds at a time. What takes a CPU, and with it memory that is not kept (decoding,
 * differences, packing), runs as many at a time as there are CPUs: more would not be faster.
 *
 * Threads: any; one turn each.
 */
void cpu_turn_begin(void);
void cpu_turn_end(void);

#endif
