// SPDX-License-Identifier: Apache-2.0
// Zig's own DWARF, of its own code generator and of LLVM's; the standard library makes up most of the program.
var sink: u32 = 0;
fn mix(a: u32, b: u32) u32 {
    return (a << 3) ^ b;
}
const Leaf = struct {
    weight: u32,
    noinline fn sum(self: Leaf, n: u32) u32 {
        var s: u32 = self.weight;
        var i: u32 = 0;
        while (i < n) : (i += 1) s = mix(s, i);
        return s;
    }
};
fn Pair(comptime T: type) type {
    return struct {
        a: T,
        noinline fn twice(self: @This()) T {
            return self.a +% self.a;
        }
    };
}
pub fn main() void {
    const leaf = Leaf{ .weight = 7 };
    const pair = Pair(u32){ .a = 9 };
    sink = leaf.sum(5) +% pair.twice();
}
