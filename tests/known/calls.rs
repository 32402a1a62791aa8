// SPDX-License-Identifier: Apache-2.0
fn read(x: u64) -> u64 { unsafe { std::ptr::read_volatile(&x) } }
#[inline(never)] fn burn(n: u64) -> u64 { let mut s = 0; for i in 0..n { s += read(i) * i; } s }
#[inline(never)] fn down(n: u64) -> u64 { if n == 0 { return burn(1000000) } down(n - 1) + read(1) }
fn main() { loop { if down(20) == 1 { return } } }
