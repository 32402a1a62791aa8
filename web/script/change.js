// SPDX-License-Identifier: Apache-2.0
//
// Transformations of call trees: filters, inversion, focus on one function, collapsed recursion. The same operations
// that the service does on stacks, done on the nodes of the page; sums of self stay exact, and self of a function does
// not change unless the function is hidden.
'use strict';
const CairnChange = (() => {
  const { makeColumns, place } = CairnLayout;

  // A growing tree: child() finds or adds a node by its parent and frame. Indices of parents are smaller.
  function startTree(like) {
    let capacity = 1024, slots = new Int32Array(4096);
    let parent = new Int32Array(capacity), frame = new Int32Array(capacity), line = new Int32Array(capacity);
    let self = new Float64Array(capacity), self2 = new Float64Array(capacity), lineValue = new Float64Array(capacity), count = 1;
    parent[0] = frame[0] = -1;
    const widen = old => { const wide = new old.constructor(2 * old.length); wide.set(old); return wide; };
    const slotOf = (p, f) => {
      let h = Math.imul(p, 0x9e3779b1) ^ Math.imul(f + 1, 0x85ebca6b);
      h = Math.imul(h ^ h >>> 15, 0x2c1b3c6d);
      return (h ^ h >>> 13) & slots.length - 1;
    };
    function insert(node) {
      let at = slotOf(parent[node], frame[node]);
      while (slots[at]) at = at + 1 & slots.length - 1;
      slots[at] = node;
    }
    return {
      child(p, f) {
        for (let at = slotOf(p, f); slots[at]; at = at + 1 & slots.length - 1)
          if (parent[slots[at]] === p && frame[slots[at]] === f) return slots[at];
        if (count === capacity) {
          capacity *= 2;
          parent = widen(parent); frame = widen(frame); line = widen(line);
          self = widen(self); self2 = widen(self2); lineValue = widen(lineValue);
        }
        if (2 * count >= slots.length) {
          slots = new Int32Array(4 * slots.length);
          for (let i = 1; i < count; i++) insert(i);
        }
        parent[count] = p;
        frame[count] = f;
        insert(count);
        return count++;
      },
      add(node, value, value2) { self[node] += value; self2[node] += value2; },
      // Keep the line of the heaviest node merged into this one.
      see(node, l, value) { if (l && value > lineValue[node]) { line[node] = l; lineValue[node] = value; } },
      // Siblings by falling total, each node followed by its descendants.
      finish(changes) {
        const d = Object.assign(makeColumns(like, count), changes), total = new Float64Array(count), total2 = new Float64Array(count);
        const first = new Int32Array(count + 2), sorted = new Int32Array(Math.max(0, count - 1)), weight = new Float64Array(count);
        for (let i = count - 1; i >= 0; i--) {
          total[i] += self[i];
          total2[i] += self2[i];
          weight[i] = total[i] + total2[i];
          if (i) { total[parent[i]] += total[i]; total2[parent[i]] += total2[i]; first[parent[i] + 2]++; }
        }
        for (let i = 2; i < first.length; i++) first[i] += first[i - 1];
        for (let i = 1; i < count; i++) sorted[first[parent[i] + 1]++] = i;
        for (let i = 0; i < count; i++)
          if (first[i + 1] - first[i] > 1) sorted.subarray(first[i], first[i + 1]).sort((a, b) => weight[b] - weight[a] || a - b);
        const position = new Int32Array(count), open = [0];
        for (let to = 0; open.length; to++) {
          const i = open.pop();
          position[i] = to;
          d.parent[to] = i ? position[parent[i]] : -1;
          d.frame[to] = frame[i];
          d.line[to] = line[i];
          d.self[to] = self[i];
          d.total[to] = total[i];
          if (d.diff) { d.self2[to] = self2[i]; d.total2[to] = total2[i]; }
          for (let k = first[i + 1]; k-- > first[i];) open.push(sorted[k]);
        }
        return place(d);
      },
    };
  }

  const value2 = (d, i) => d.diff ? d.self2[i] : 0;
  const weight = (d, i) => d.total[i] + (d.diff ? d.total2[i] : 0);

  // focus and ignore filter stacks, hide and show frames; each is an array of booleans by frame, or null.
  function filterStacks(d, { focus, ignore, hide, show }) {
    const n = d.count, kept = new Uint8Array(n), seen = new Uint8Array(n), to = new Int32Array(n), tree = startTree(d);
    const isHidden = f => (hide && hide[f]) || (show && !show[f]);
    for (let i = 1; i < n; i++) {
      const f = d.frame[i];
      seen[i] = seen[d.parent[i]] | (focus && focus[f] ? 1 : 0) | (ignore && ignore[f] ? 2 : 0);
    }
    for (let i = n - 1; i >= 0; i--) { // 2: a kept stack ends here, 1: one ends below
      if ((d.self[i] || value2(d, i)) && (!focus || seen[i] & 1) && !(seen[i] & 2)) kept[i] |= 2;
      if (i && kept[i]) kept[d.parent[i]] |= 1;
    }
    for (let i = 1; i < n; i++) {
      if (!kept[i]) continue;
      to[i] = isHidden(d.frame[i]) ? to[d.parent[i]] : tree.child(to[d.parent[i]], d.frame[i]);
      if (to[i] && to[i] !== to[d.parent[i]]) tree.see(to[i], d.line[i], weight(d, i));
      if (kept[i] & 2 && to[i]) tree.add(to[i], d.self[i], value2(d, i)); // a stack without remaining frames is dropped
    }
    if (kept[0] & 2) tree.add(0, d.self[0], value2(d, 0));
    return tree.finish();
  }

  const isSame = (a, b) => a === b || (a[0] === b[0] && a[1] === b[1] && a[2] === b[2]);

  // Direct recursion: a frame called by its own function is merged into its caller.
  function collapseRecursion(d) {
    const n = d.count, to = new Int32Array(n), tree = startTree(d);
    if (n) tree.add(0, d.self[0], value2(d, 0));
    for (let i = 1; i < n; i++) {
      const p = d.parent[i], same = p > 0 && isSame(d.frames[d.frame[i]], d.frames[d.frame[p]]);
      to[i] = same ? to[p] : tree.child(to[p], d.frame[i]);
      if (!same) tree.see(to[i], d.line[i], weight(d, i));
      tree.add(to[i], d.self[i], value2(d, i));
    }
    return tree.finish({ absolute: d.absolute });
  }

  // The outermost target frame of each stack, and its callees.
  function takeCallees(d, isTarget, name) {
    const n = d.count, to = new Int32Array(n), tree = startTree(d);
    for (let i = 1; i < n; i++) {
      const p = to[d.parent[i]];
      if (!p && !isTarget[d.frame[i]]) continue;
      to[i] = tree.child(p, d.frame[i]);
      tree.see(to[i], d.line[i], weight(d, i));
      tree.add(to[i], d.self[i], value2(d, i));
    }
    return tree.finish({ focus: name, inverted: false });
  }

  // The innermost target frame of each stack and its callers, inverted; without targets, the last frame of each stack.
  function takeCallers(d, isTarget, name) {
    const n = d.count, inner = new Int32Array(n), sum = new Float64Array(n), sum2 = new Float64Array(n), tree = startTree(d);
    for (let i = 1; i < n; i++) {
      inner[i] = !isTarget || isTarget[d.frame[i]] ? i : inner[d.parent[i]];
      sum[inner[i]] += d.self[i];
      sum2[inner[i]] += value2(d, i);
    }
    for (let i = 1; i < n; i++) {
      if (!sum[i] && !sum2[i]) continue;
      let node = 0;
      for (let at = i; at > 0; at = d.parent[at]) {
        node = tree.child(node, d.frame[at]);
        tree.see(node, d.line[at], sum[i] + sum2[i]);
      }
      tree.add(node, sum[i], sum2[i]);
    }
    return tree.finish({ focus: name, inverted: true });
  }

  // One side of a diff, with the layout of the diff.
  function takeSide(d, side) {
    const one = { ...d, sides: [d.sides[side]], diff: false, absolute: false, self2: new Float64Array(0), total2: new Float64Array(0),
      self: side ? d.self2 : d.self, total: side ? d.total2 : d.total };
    return place(one);
  }

  return { filterStacks, collapseRecursion, takeCallees, takeCallers, takeSide };
})();
