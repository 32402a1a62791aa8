// SPDX-License-Identifier: Apache-2.0
volatile unsigned long count;
void there(void (*back)(void))
{
        back();
        count++;
}
