// SPDX-License-Identifier: Apache-2.0
// web-scripts.js SHARED_SCRIPT: computations of the pages' scripts, without a browser. Prints lines "ok - NAME" and "not ok -
// NAME".
'use strict';
const { readFileSync } = require('fs');
const { performance } = require('perf_hooks');

// Browser interfaces that the scripts use when they are loaded.
const media = { matches: false, addEventListener() {} };
const names = ['CairnUnits', 'CairnNames', 'CairnSearch', 'CairnLayout', 'CairnChange', 'CairnPalette', 'CairnFlameSearch', 'CairnFlameKeys', 'CairnFilters',
  'CairnTable', 'CairnDiffView', 'CairnSandwich', 'CairnOfflineApi'];
const script = process.argv.slice(2).map(f => readFileSync(f, 'utf8')).join('\n');
const load = () => new Function('document', 'matchMedia', 'localStorage', 'addEventListener', `${script}\nreturn { ${names.join(', ')} };`)(
  { documentElement: { dataset: {} } }, () => media, { getItem: () => null }, () => {});
const cairn = load();
const { CairnUnits, CairnNames, CairnSearch, CairnLayout, CairnChange, CairnPalette, CairnFlameSearch, CairnFilters, CairnTable, CairnDiffView, CairnSandwich, CairnOfflineApi } = cairn;

function check(good, name, detail) {
  console.log(`${good ? 'ok' : 'not ok'} - ${name}`);
  if (!good && detail !== undefined) console.log('  ' + detail);
}
const equal = (got, want, name) => check(JSON.stringify(got) === JSON.stringify(want), name, `got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);

// ---- trees ------------------------------------------------------------------------------------------

// From { 'a;b;c': value, or [before, after] }, in the service's format. A frame "k:name" has kind k.
function treeOf(stacks) {
  const diff = Object.values(stacks).some(Array.isArray), frames = [], numbers = new Map(), nodes = [[-1, -1, 0, 0, 0, 0, 0]], children = [new Map()];
  for (const [stack, value] of Object.entries(stacks)) {
    let at = 0;
    for (const name of stack.split(';')) {
      if (!numbers.has(name)) {
        const [, kind, text] = /^(?:(\d):)?(.*)$/.exec(name);
        numbers.set(name, frames.length);
        frames.push([text, text.includes('.') ? '' : text + '.c', '/bin/' + text[0], Number(kind || 0), '']);
      }
      const f = numbers.get(name);
      if (!children[at].has(f)) { children[at].set(f, nodes.length); nodes.push([at, f, 0, 0, 7, 0, 0]); children.push(new Map()); }
      at = children[at].get(f);
    }
    const [a, b] = Array.isArray(value) ? value : [value, 0];
    nodes[at][2] += a;
    nodes[at][5] += b;
    for (let i = at; i >= 0; i = nodes[i][0]) { nodes[i][3] += a; nodes[i][6] += b; }
  }
  const order = [], position = new Map();
  const visit = i => {
    position.set(i, order.length);
    order.push(i);
    [...children[i].values()].sort((x, y) => nodes[y][3] + nodes[y][6] - nodes[x][3] - nodes[x][6]).forEach(visit);
  };
  visit(0);
  const side = k => ({ selector: '', from_ms: 0, to_ms: 1, total: nodes[0][k], samples: nodes[0][k] });
  return CairnLayout.parse({ type: 't', unit: 'count', focus: null, inverted: false, names: 'full', left_out: 0, frames,
    sides: diff ? [side(3), side(6)] : [side(3)],
    nodes: order.map(i => [i ? position.get(nodes[i][0]) : -1, ...nodes[i].slice(1, diff ? 7 : 5)]) });
}
// Back to stacks; the root's self value has the key ''.
function stacksOf(d) {
  const all = {};
  for (let i = 0; i < d.count; i++) {
    if (!d.self[i] && !(d.diff && d.self2[i])) continue;
    const path = [];
    for (let at = i; at > 0; at = d.parent[at]) path.unshift(d.frames[d.frame[at]][0]);
    const key = path.join(';'), value = d.diff ? [d.self[i], d.self2[i]] : d.self[i];
    all[key] = value;
  }
  return Object.fromEntries(Object.entries(all).sort(([a], [b]) => a < b ? -1 : 1));
}
// Parents come first, totals are the sums, subtrees are contiguous, rows are from left to right without overlap.
function isSound(d) {
  const sum = Float64Array.from(d.self);
  for (let i = d.count - 1; i > 0; i--) {
    if (d.parent[i] >= i || d.depth[i] !== d.depth[d.parent[i]] + 1 || d.end[i] > d.end[d.parent[i]]) return `node ${i}`;
    sum[d.parent[i]] += sum[i];
  }
  for (let i = 0; i < d.count; i++) if (sum[i] !== d.total[i]) return `total of ${i}: ${d.total[i]}, sum ${sum[i]}`;
  for (let r = 0; r < d.depths; r++)
    for (let k = d.rowStart[r] + 1; k < d.rowStart[r + 1]; k++) {
      const a = d.rowNodes[k - 1], b = d.rowNodes[k];
      if (d.depth[b] !== r || d.x[a] + d.w[a] > d.x[b] + 1e-9) return `row ${r}`;
    }
  return '';
}
const selfOf = (d, name) => CairnTable.topRows(d).filter(r => r.function === name).reduce((sum, r) => sum + r.flat, 0);

const plain = treeOf({ 'main;work;leaf': 10, 'main;work': 5, 'main;read;2:sys': 3, 'idle;work;leaf': 2 });
equal(isSound(plain), '', 'a tree is laid out in rows');
equal(stacksOf(plain), { 'idle;work;leaf': 2, 'main;read;sys': 3, 'main;work': 5, 'main;work;leaf': 10 }, 'its stacks are those of the answer');

const truth = (d, ...wanted) => d.frames.map(f => wanted.includes(f[0]));
const filtered = (d, how) => stacksOf(CairnChange.filterStacks(d, how));
equal(filtered(plain, { focus: truth(plain, 'read') }), { 'main;read;sys': 3 }, 'focus keeps stacks with a frame');
equal(filtered(plain, { ignore: truth(plain, 'leaf') }), { 'main;read;sys': 3, 'main;work': 5 }, 'ignore drops stacks with a frame');
equal(filtered(plain, { hide: truth(plain, 'leaf', 'main') }), { 'idle;work': 2, 'read;sys': 3, work: 15 }, 'the cost of a hidden frame stays with its caller');
equal(filtered(plain, { show: truth(plain, 'leaf') }), { leaf: 12 }, 'show keeps frames, and drops stacks without any');
equal(filtered(plain, { hide: truth(plain, 'main', 'work', 'leaf', 'idle') }), { 'read;sys': 3 }, 'a stack without any frame left is dropped');
equal(isSound(CairnChange.filterStacks(plain, { hide: truth(plain, 'work') })), '', 'a filtered tree is sound');

const deep = treeOf({ 'main;f;f;f;g': 4, 'main;f;f': 2, 'main;f': 1, 'main;f;g;f': 8 }), collapsed = CairnChange.collapseRecursion(deep);
equal(stacksOf(collapsed), { 'main;f': 3, 'main;f;g': 4, 'main;f;g;f': 8 }, 'direct recursion becomes one frame');
equal([selfOf(collapsed, 'f'), selfOf(collapsed, 'g')], [selfOf(deep, 'f'), selfOf(deep, 'g')], 'the self time of functions is what it was');
equal(isSound(collapsed), '', 'a collapsed tree is sound');

const callers = CairnChange.takeCallers(plain, null, null);
equal(stacksOf(callers), { 'leaf;work;idle': 2, 'leaf;work;main': 10, 'sys;read;main': 3, 'work;main': 5 }, 'a reversed tree begins with the functions that cost');
equal(callers.total[0], plain.total[0], 'and has the same total');
equal(stacksOf(CairnChange.takeCallers(deep, truth(deep, 'f'), 'f')), { 'f;f;f;main': 4, 'f;f;main': 2, 'f;g;f;main': 8, 'f;main': 1 }, 'callers are those of the innermost frame');
equal(stacksOf(CairnChange.takeCallees(deep, truth(deep, 'f'), 'f')), { f: 1, 'f;f': 2, 'f;f;f;g': 4, 'f;g;f': 8 }, 'callees are those of the outermost frame');
const big = treeOf({ 'a;b': 2 ** 52, 'a;c': 1, a: 1 });
equal(CairnChange.takeCallers(big, null, null).total[0], 2 ** 52 + 2, 'sums are exact');

// On random stacks: each operation must keep the total.
let seed = 12345;
const random = n => (seed = Math.imul(seed, 1103515245) + 12345 >>> 0) % n;
const drawn = {};
for (let i = 0; i < 3000; i++) drawn[Array.from({ length: 1 + random(12) }, () => 'f' + random(6)).join(';')] = 1 + random(100);
const wild = treeOf(drawn), wildTop = name => selfOf(wild, name);
for (const [what, d] of [['collapsed', CairnChange.collapseRecursion(wild)], ['reversed', CairnChange.takeCallers(wild, null, null)], ['hidden', CairnChange.filterStacks(wild, { hide: truth(wild, 'nothing') })]]) {
  equal(isSound(d), '', `a tree of random stacks is sound when ${what}`);
  equal(d.total[0], wild.total[0], '  and loses nothing');
}
equal(['f0', 'f1', 'f2'].map(n => selfOf(CairnChange.collapseRecursion(wild), n)), ['f0', 'f1', 'f2'].map(wildTop), '  collapsing leaves self as it was');
const kept = Object.entries(drawn).filter(([s]) => s.split(';').includes('f1')).reduce((sum, [, v]) => sum + v, 0);
equal(CairnChange.filterStacks(wild, { focus: truth(wild, 'f1') }).total[0], kept, '  focus sums what has the frame');

// ---- comparison -------------------------------------------------------------------------------------

const both = treeOf({ 'main;same': [1000, 2000], 'main;more': [100, 2200], 'main;less': [900, 0], 'main;few': [1, 3] });
const nodeOf = (d, name) => [...Array(d.count).keys()].find(i => i && d.frames[d.frame[i]][0] === name);
const stepOf = (name, by) => CairnPalette.diffStep(both, nodeOf(both, name), by);
check(stepOf('more', 'ratio') > 0 && stepOf('less', 'ratio') < 0 && stepOf('more', 'difference') > 0, 'more and less are told apart');
equal([stepOf('few', 'ratio'), stepOf('main', 'ratio')], [0, 0], 'what few samples say is no change');
equal([stacksOf(CairnChange.takeSide(both, 0)), CairnChange.takeSide(both, 1).total[0]], [{ 'main;few': 1, 'main;less': 900, 'main;more': 100, 'main;same': 1000 }, 4203], 'one side of a comparison stands alone');
equal(Math.abs(both.w[nodeOf(both, 'same')] - (1000 / 2001 + 2000 / 4203) / 2) < 1e-9, true, 'both sides have the same weight');
const summed = treeOf({ base: [700e6, 800e6], log: [100e6, 900e6], tick: [10e6, 10e6] });
summed.sides.forEach(side => { side.samples = 3; side.samples_are = 'stacks'; });
check(CairnPalette.diffStep(summed, nodeOf(summed, 'log'), 'ratio') > 0, 'stacks that were sent summed up are not taken for so few samples');
const counted = treeOf({ base: [700e6, 700e6], log: [100e6, 160e6] });
counted.sides.forEach((side, i) => { side.samples = i ? 86 : 80; }); // 10 ms each; one node for 10 and 16 samples
check(CairnPalette.diffStep(counted, nodeOf(counted, 'log'), 'ratio') === 0, '  but samples that were merged into few stacks are counted');
counted.sides.forEach((side, i) => { side.samples = i ? 8600 : 8000; });
counted.sampleValue = undefined;
check(CairnPalette.diffStep(counted, nodeOf(counted, 'log'), 'ratio') > 0, '  so that many of them are no chance');
const oneSided = treeOf({ a: [0, 5], b: [0, 7] });
check([...oneSided.w].every(Number.isFinite), 'an empty side divides by nothing');
equal([1, 2].map(i => CairnPalette.diffStep(oneSided, i, 'ratio')), [0, 0], '  and colours nothing');
const measured = [[1234567, 'microseconds'], [90, 's'], [5120, 'kilobytes'], [1234567, 'count'], [5, 'toString'], [5120, 'kB'], [90, 'secs'], [3, 'Byte'],
  [7, 'bs']];
equal(measured.map(([v, unit]) => CairnUnits.formatValue(v, unit)),
  ['1.23 s', '1.50 min', '5.00 MiB', '1,234,567', '5', '5.00 MiB', '1.50 min', '3.00 B', '7'], 'times and sizes have their unit, whatever the unit of the profile');
equal([CairnUnits.things(1, 'batch', 'batches'), CairnUnits.things(2000, 'batch', 'batches'), CairnUnits.things(0, 'row')], ['1 batch', '2,000 batches', '0 rows'],
  'one thing is no plural');
const { changeText, pointsText } = CairnUnits;
equal([changeText(5e9, 4e9, 'nanoseconds'), changeText(1, 3, 'count'), changeText(0, 2048, 'bytes'), changeText(7, 7, 'count')],
  ['-1.00 s, ×0.80', '+2, ×3.00', '+2.00 KiB, new', '0'], 'a change has the sign and the unit of its values');
equal([pointsText(0.4655, 0.6324), pointsText(0.5, 0.25), pointsText(0.1, 0.1), pointsText(0, 0.1)],
  ['+16.69 pp, ×1.36', '-25.00 pp, ×0.50', '0', '+10.00 pp, new'], '  that of a share is in percentage points');
const ideas = CairnDiffView.suggest({ from: '2026-01-02T00:00:00Z', to: '2026-01-02T01:00:00Z' }, { label: 'version', values: ['1', '2', '3'] }, 0);
equal(ideas.map(c => [c.text, c.change.base_from, c.change.base_to, c.change.before, c.change.after]),
  [['A day earlier', '2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z', null, null], ['A week earlier', '2025-12-26T00:00:00Z', '2025-12-26T01:00:00Z', null, null],
    ['version 2 → 3', null, null, '2', '3']], 'without a baseline, other ones are offered');
const add = selector => CairnDiffView.addMatcher(selector, 'v', '1"2');
equal([add('{a=~"b|c"}'), add(''), add('{}'), add('a="b"'), add('cpu:x{a="b",v="3"}')],
  ['{a=~"b|c", v="1\\"2"}', '{v="1\\"2"}', '{v="1\\"2"}', '{a="b", v="1\\"2"}', 'cpu:x{a="b", v="1\\"2"}'], 'a matcher is added to a selector, or takes the place of one');

// ---- colours ----------------------------------------------------------------------------------------

let worst = 99;
const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`${i % 5}:n${i};1:x${i}`, 60 - i]));
for (const dark of [false, true]) {
  const page = dark ? '#16181b' : '#fcfcfb';
  for (const mode of Object.keys(CairnPalette.MODES)) {
    const fills = CairnPalette.makeFills(treeOf(many), mode, dark);
    for (const c of [...fills.fill, ...fills.faint, fills.mark]) worst = Math.min(worst, CairnPalette.contrast(c, fills.ink));
  }
  const diff = CairnPalette.makeDiffFills(both, 'ratio', dark);
  for (const c of [...diff.fill, ...diff.faint, diff.mark]) worst = Math.min(worst, CairnPalette.contrast(c, diff.ink));
  check(CairnPalette.contrast(page, CairnPalette.INK[dark ? 'dark' : 'light']) > 7, `text stands out from the ${dark ? 'dark' : 'light'} page`);
}
check(worst >= 4.5, 'names have a contrast of 4.5 or more on every fill, also while something else matches a search', `least ${worst.toFixed(2)}`);

const hue = (d, name, palette = CairnPalette) => { const f = palette.makeFills(d, 'object', false); return f.fill[f.of[d.frames.findIndex(x => x[0] === name)]]; };
equal(hue(treeOf({ alpha: 1, beta: 9 }), 'alpha'), hue(treeOf({ gamma: 20, alpha: 7, beta: 1 }), 'alpha'), 'an object has one colour in all graphs of a page');
const firstHues = objects => {
  const d = treeOf(Object.fromEntries(objects.map((o, i) => [o, 9 - i])));
  d.frames.forEach(f => { f[2] = f[0]; f[0] = 'f'; }); // names differ in shade
  return load().CairnPalette.makeFills(d, 'object', false).legend.map(l => l[1]);
};
const [[one], [, second], [newer]] = [['libssl.so.3'], ['postgres', 'libssl.so.3'], ['libssl.so.4']].map(firstHues);
equal([second, newer], [one, one], '  and in all pages, whatever its version and what else is in them');
equal(new Set(firstHues(['a', 'b', 'c', 'd', 'e'])).size, 5, '  and the heaviest objects have different ones');

// Distinguishable with each kind of colour blindness (Machado, Oliveira, Fernandes 2009, severity 1): less and more.
const BLIND = {
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
};
const linear = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
function lab([r, g, b]) {
  const f = t => t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116;
  const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505), y = f(0.2126 * r + 0.7152 * g + 0.0722 * b), z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
const distance = (a, b, seen) => {
  const [p, q] = [a, b].map(hex => lab(seen.map(row => Math.max(0, row.reduce((sum, m, i) => sum + m * linear(hex)[i], 0)))));
  return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
};
for (const [name, seen] of Object.entries(BLIND))
  for (const dark of [false, true]) {
    const { fill } = CairnPalette.makeDiffFills(both, 'ratio', dark), last = fill.length - 1, middle = fill[last / 2];
    const least = Math.min(distance(fill[0], fill[last], seen), distance(fill[0], middle, seen), distance(fill[last], middle, seen));
    check(least > 15, `less, more and no change differ with ${name}, ${dark ? 'dark' : 'light'}`, `least difference ${least.toFixed(1)}`);
  }

// ---- search and filters -----------------------------------------------------------------------------

const search = (d, words) => CairnFlameSearch.find(d, words).text;
equal(search(deep, '^f$'), '100.00% in 4 frames', 'of matches in one stack the topmost counts');
equal([search(plain, 'leaf|sys'), search(plain, 'nothing')], ['75.00% in 3 frames', 'nothing found'], 'a search is a regular expression');
const found = CairnFlameSearch.find(plain, 'leaf'), steps = [];
for (let i = 0, k = 0; k < 3; k++) steps.push(plain.frames[plain.frame[i = CairnFlameSearch.step(found, i, 1)]][0] + i);
check(steps[0] === steps[2] && steps[0] !== steps[1], 'one goes from match to match, around the end', steps);
const matched = (pattern, ...frames) => CairnSearch.matchFrames(frames.map(f => [f, '', '', 0, '']), pattern);
equal([matched('^Foo$', 'Foo', 'foo'), matched('(?i)^foo$', 'Foo', 'foo'), matched('^[A-C]+$', 'ABC', 'abc')], [[true, false], [true, true], [true, false]], 'filters see the case of letters');
let message = '';
try { matched('(', 'x'); } catch (e) { message = e.message; }
check(/bad regular expression/.test(message), 'a filter that is no pattern is refused', message);
equal(CairnFilters.split('a|b(c|d)|[|]|\\|e'), ['a', 'b(c|d)', '[|]', '\\|e'], 'the parts of a filter');
equal(CairnFilters.split('[]a|b]|[^]|]|c'), ['[]a|b]', '[^]|]', 'c'], '  of sets that begin with ]');
equal(CairnFilters.split('(?i)a|b'), ['(?i)a|b'], '  and of one whose option holds for all');
const once = CairnFilters.addName({}, 'ignore', 'std::vector<int>::at(int) const');
const twice = CairnFilters.addName(once, 'ignore', 'x|y');
equal(matched(twice.ignore, 'std::vector<int>::at(int) const', 'x|y', 'x', 'std::vector<int>::at(int) const2'), [true, true, false, false], 'names are added to a filter as they stand');
check(Buffer.byteLength(CairnFilters.addName({}, 'hide', 'é'.repeat(5000)).hide) <= 512, '  and a long one stays within the limit of the service');

// ---- names ------------------------------------------------------------------------------------------

const { display } = CairnNames;
equal([display('main'), display('operator<<'), display('über::größe'), display('名前'), display('<script>alert(1)</script>')],
  ['main', 'operator<<', 'über::größe', '名前', '<script>alert(1)</script>'], 'usual names are shown as they are');
equal(display('a\u0000b\nc\u001b[31m\u007f\u009bd'), 'a\\x00b\\x0ac\\x1b[31m\\x7f\\x9bd', 'controls are visible');
equal(display('safe\u202egpj.exe\u2066x\u200bnull\ufeff\u00ad'), 'safe\\u{202e}gpj.exe\\u{2066}x\\u{200b}null\\u{feff}\\xad', 'so is what changes the direction of text, or has no width');
equal(display('x\ud800y\u{e0041}'), 'x\\u{d800}y\\u{e0041}', 'so are halves of surrogates, and tags');
equal(display('bad \ufffd\ufffd byte'), 'bad \ufffd\ufffd byte', 'bytes that were no UTF-8 stay visible');
check(display('e' + '\u0301'.repeat(40)).includes('\\u{301}'), 'piles of marks are taken apart');
const long = display('f'.repeat(10000) + 'end');
check(long.length < 1100 && long.endsWith('end') && long.includes('[9,003 more]'), 'a name of 10 kB keeps its beginning and its end', long.length);
check(!/[\ud800-\udfff]/.test(display('\u{1f600}'.repeat(3000)).replace(/[\ud800-\udbff][\udc00-\udfff]/g, '')), '  and no half of a letter');
check(display('\u202e'.repeat(20000)).length < 10000, '  however it is made');

// ---- the page without a service -----------------------------------------------------------------------

(async () => {
  const api = CairnOfflineApi.create(plain), names = d => stacksOf(d.columns);
  equal(names(await api.query('flame', {})), stacksOf(plain), 'without a service the tree is that of the page');
  equal(names(await api.query('flame', { ignore: '^read$', callees_of: 'work' })), { 'work': 5, 'work;leaf': 12 }, '  filtered and of one function');
  const sandwich = await api.query('sandwich', { function_name: 'work' });
  equal([sandwich.rows.map(r => [r.flat, r.cumulative]), sandwich.callers.columns.total[0], CairnSandwich.neighbours(sandwich.callers.columns).map(r => [r.function, r.value])],
    [[[5, 17]], 17, [['main', 15], ['idle', 2]]], '  with callers and callees');
  equal((await api.query('top', { hide: 'leaf' })).rows[0].function, 'work', '  and a table');

  // A million nodes, of which laying out takes CPU time in proportion: 100 times that of 100,000 if each looked at all.
  const frames = Array.from({ length: 20000 }, (_, i) => [`ns${i % 50}::f${i}`, 'a.c', '/bin/x', 0, '']);
  const layOut = n => {
    const nodes = [[-1, -1, 0, 0, 0]], last = new Int32Array(501);
    for (let i = 1, depth = 0; i < n; i++) {
      depth = i % 2000 < 499 ? i % 2000 + 1 : 1 + (i * 7919 >>> 3) % Math.min(depth + 1, 499);
      nodes.push([last[depth - 1], i * 31 % 20000, 1, 0, 5]);
      last[depth] = i;
    }
    for (let i = n - 1; i >= 0; i--) { nodes[i][3] += nodes[i][2]; if (i) nodes[nodes[i][0]][3] += nodes[i][3]; }
    const begin = process.cpuUsage();
    const layout = CairnLayout.parse({ type: '', unit: 'count', focus: null, inverted: false, names: 'full', left_out: 0, frames, nodes, sides: [{ total: n, samples: n }] });
    const { user, system } = process.cpuUsage(begin);
    return [layout, (user + system) / 1000];
  };
  const n = 1e6, [, fewMs] = layOut(n / 10), [huge, allMs] = layOut(n);
  equal([isSound(huge), huge.depths], ['', 500], 'a million nodes, 499 deep, are laid out');
  check(allMs < 40 * fewMs, '  in time that grows like their number', [fewMs, allMs]);
  const text = search(huge, 'ns7::f\\d+7$');
  const bytes = Object.values(huge).reduce((sum, v) => sum + (ArrayBuffer.isView(v) ? v.byteLength : 0), 0);
  check(/in \d[\d,]* frames$/.test(text), '  and searched', text);
  check(bytes < 100 * n, '  in less than 100 bytes each', bytes / n);
  console.log(`  ${Math.round(allMs)} ms, ${Math.round(fewMs)} ms of a tenth, ${Math.round(bytes / n)} bytes a node`);
})();
