// SPDX-License-Identifier: Apache-2.0
//
// Draws the flame graph of docs/formats/query-api.md on a canvas: only the
// frames in view and wider than half a pixel, so that a tree of a hundred
// thousand nodes stays fluid. Everything the pointer can do, the keyboard can.
'use strict';
const CairnFlame = (() => {
  const ROW = 19, PAD = 4;
  const KINDS = ['native', 'inlined', 'kernel', 'unresolved', 'other', 'label'];
  const KIND_TEXT = { native: 'native', inlined: 'inlined', kernel: 'kernel', unresolved: 'not resolved', other: 'many small callees', label: 'samples with this label' };

  const isDark = () => {
    const forced = document.documentElement.dataset.theme;
    return forced ? forced === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  };

  function themeButton(button) {
    button.onclick = () => {
      document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
      dispatchEvent(new Event('cairn-theme'));
    };
  }

  // ---- values ------------------------------------------------------------------------------

  function scaled(v, scales) {
    for (const [least, unit] of scales)
      if (Math.abs(v) >= least || least === 1) {
        const x = v / least;
        return x.toFixed(Math.abs(x) < 9.995 ? 2 : 1) + ' ' + unit;
      }
  }
  function formatValue(v, unit) {
    if (v === 0) return '0';
    if (unit === 'nanoseconds')
      return scaled(v, [[3600e9, 'h'], [60e9, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']]);
    if (unit === 'bytes')
      return scaled(v, [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [1024, 'KiB'], [1, 'B']]);
    return v.toLocaleString('en');
  }
  const percent = (v, total) => (total ? 100 * v / total : 0).toFixed(2) + '%';
  const timeText = ms => new Date(ms).toISOString().slice(0, 19).replace('T', ' ');

  function about(d) {
    const side = s => `${formatValue(s.total, d.unit)} in ${s.samples.toLocaleString('en')} samples, ` +
      `${timeText(s.from_ms)} to ${timeText(s.to_ms)} UTC` + (s.selector ? ` ${s.selector}` : '');
    return (d.type ? d.type + ' · ' : '') + d.sides.map(side).join('  →  ');
  }

  // ---- the tree -------------------------------------------------------------------------------

  // Columns instead of objects; x and w are shares of the whole width.
  function parse(json) {
    const n = json.nodes.length, diff = json.sides.length > 1;
    const d = {
      type: json.type, unit: json.unit, sides: json.sides, frames: json.frames, focus: json.focus,
      inverted: json.inverted, full: json.names === 'full', leftOut: json.left_out, diff, count: n, depths: 0,
      parent: new Int32Array(n), frame: new Int32Array(n), depth: new Int32Array(n), end: new Int32Array(n),
      self: new Float64Array(n), total: new Float64Array(n), self2: new Float64Array(n), total2: new Float64Array(n),
      line: new Float64Array(n), x: new Float64Array(n), w: new Float64Array(n),
    };
    json.nodes.forEach((v, i) => {
      d.parent[i] = v[0]; d.frame[i] = v[1]; d.self[i] = v[2]; d.total[i] = v[3]; d.line[i] = v[4];
      if (diff) { d.self2[i] = v[5]; d.total2[i] = v[6]; }
      d.depth[i] = i ? d.depth[v[0]] + 1 : 0;
      d.depths = Math.max(d.depths, d.depth[i] + 1);
    });
    // In a diff both sides weigh the same, whatever their totals.
    const total = n ? d.total[0] : 0, total2 = n ? d.total2[0] : 0;
    const weight = i => !diff ? (total ? d.total[i] / total : 0) :
      ((total ? d.total[i] / total : 0) + (total2 ? d.total2[i] / total2 : 0)) / ((total ? 1 : 0) + (total2 ? 1 : 0) || 1);
    const used = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      d.w[i] = weight(i);
      if (i) {
        d.x[i] = d.x[d.parent[i]] + used[d.parent[i]];
        used[d.parent[i]] += d.w[i];
      }
    }
    for (let i = n - 1; i >= 0; i--) { // one past the last node of a subtree: nodes stand parents first
      d.end[i] = Math.max(d.end[i], i + 1);
      if (i) d.end[d.parent[i]] = Math.max(d.end[d.parent[i]], d.end[i]);
    }
    return d;
  }

  // A frame is [name, file, object, kind, state, short name, linkage name]; the last two only where they differ.
  const shortOf = f => f[5] || f[0];
  const nameOf = (d, i) => i === 0 ? (d.focus ? d.focus : 'all') : d.frames[d.frame[i]][0];
  const labelOf = (d, i) => i === 0 || d.full ? nameOf(d, i) : shortOf(d.frames[d.frame[i]]);
  const linkageOf = (d, i) => i === 0 ? '' : d.frames[d.frame[i]][6] || '';
  const kindOf = (d, i) => i === 0 ? 'native' : KINDS[d.frames[d.frame[i]][3]];
  const baseName = path => path.slice(path.lastIndexOf('/') + 1);

  function placeOf(d, i) {
    if (i === 0) return '';
    const [, file, object, , state] = d.frames[d.frame[i]];
    const parts = [];
    if (file) parts.push(d.line[i] ? `${file}:${d.line[i]}` : file);
    if (object) parts.push(object);
    if (state) parts.push(state.replaceAll('_', ' '));
    return parts.join(' · ');
  }

  // ---- search ----------------------------------------------------------------------------------

  // Names come from outside and patterns from a person: RegExp backtracks, so that (a+)+$ on a name of forty letters
  // freezes the page. Here the states of a pattern are followed side by side (Thompson's construction), within a budget
  // of steps for the whole search. The syntax is that of the service's selectors, and \b \B. Matching ignores case.
  const SEARCH_STEPS = 2e7, PROGRAM_MAX = 2000;

  // A tree of [kind, ...]; throws on what is not in the syntax.
  function parsePattern(text) {
    let at = 0, depth = 0;
    const fail = () => { throw new SyntaxError(text); };
    const classes = { d: /[0-9]/, w: /[0-9a-z_]/i, s: /\s/ };
    const escaped = () => { // after a backslash: a test of one character
      const c = text[at++], named = c && classes[c.toLowerCase()];
      if (named) return c === c.toLowerCase() ? x => named.test(x) : x => !named.test(x);
      const control = { n: '\n', r: '\r', t: '\t' }[c];
      if (control) return control;
      if (c === 'x' && /^[0-9a-f]{2}$/i.test(text.slice(at, at + 2)))
        return String.fromCharCode(parseInt(text.slice(at, at += 2), 16)).toLowerCase();
      return c === undefined || /[0-9a-z]/i.test(c) ? fail() : c;
    };
    const equals = c => typeof c === 'string' ? x => x === c.toLowerCase() : c;
    function set() {
      const negated = text[at] === '^', tests = [];
      at += negated;
      for (let first = true; first || text[at] !== ']'; first = false) {
        if (at >= text.length) fail();
        let low = text[at++], high;
        if (low === '\\') low = escaped();
        if (typeof low === 'string' && text[at] === '-' && text[at + 1] && text[at + 1] !== ']') {
          at++;
          high = text[at++];
          if (high === '\\') high = escaped();
          if (typeof high !== 'string' || high < low) fail();
          tests.push(x => (x >= low && x <= high) || (x.toUpperCase() >= low && x.toUpperCase() <= high));
        } else {
          tests.push(equals(low));
        }
      }
      at++;
      return ['set', x => tests.some(t => t(x)) !== negated];
    }
    function atom() {
      const c = text[at++];
      if (c === '(') {
        if (++depth > 64) fail();
        if (text.startsWith('?:', at)) at += 2;
        else if (text[at] === '?') fail();
        const inner = alternatives();
        if (text[at++] !== ')') fail();
        depth--;
        return inner;
      }
      if (c === '[') return set();
      if (c === '^') return ['begin'];
      if (c === '$') return ['end'];
      if (c === '.') return ['set', () => true];
      if ('*+?{'.includes(c)) fail();
      if (c === '\\' && (text[at] === 'b' || text[at] === 'B')) return [text[at++] === 'b' ? 'edge' : 'no edge'];
      return ['set', equals(c === '\\' ? escaped() : c)];
    }
    function repeated() {
      let node = atom();
      while (at < text.length && '*+?{'.includes(text[at])) {
        const c = text[at++];
        let min = c === '+' ? 1 : 0, max = c === '?' ? 1 : Infinity;
        if (c === '{') {
          const counts = /^(\d{1,4})(,(\d{0,4}))?\}/.exec(text.slice(at, at + 12)) || fail();
          at += counts[0].length;
          min = +counts[1];
          max = !counts[2] ? min : counts[3] ? +counts[3] : Infinity;
          if (max < min) fail();
        }
        if (text[at] === '?') at++;
        node = ['repeat', node, min, max];
      }
      return node;
    }
    function alternatives() {
      const all = [[]];
      while (at < text.length && text[at] !== ')') {
        if (text[at] === '|') { at++; all.push([]); }
        else all[all.length - 1].push(repeated());
      }
      return ['any of', all];
    }
    const tree = alternatives();
    if (at < text.length) fail();
    return tree;
  }

  // Instructions: [kind, test or target, target]; throws when there are too many.
  function compilePattern(text) {
    const code = [];
    let steps = 0;
    const put = (...instruction) => {
      if (code.length >= PROGRAM_MAX) throw new RangeError('the pattern repeats too much');
      return code.push(instruction) - 1;
    };
    function emit([kind, inner, min, max]) {
      if (++steps > 16 * PROGRAM_MAX) throw new RangeError('the pattern repeats too much');
      if (kind === 'any of') {
        const ends = [];
        inner.forEach((sequence, i) => {
          const split = i < inner.length - 1 ? put('split', code.length + 1, 0) : -1;
          sequence.forEach(emit);
          if (split < 0) return;
          ends.push(put('jump', 0));
          code[split][2] = code.length;
        });
        for (const end of ends) code[end][1] = code.length;
      } else if (kind === 'repeat') {
        for (let i = 0; i < min; i++) emit(inner);
        const optional = max === Infinity ? 1 : max - min;
        for (let i = 0; i < optional; i++) {
          const split = put('split', code.length + 1, 0);
          emit(inner);
          if (max === Infinity) put('jump', split);
          code[split][2] = code.length;
        }
      } else {
        put(kind, inner);
      }
    }
    emit(parsePattern(text));
    code.push(['match']);
    return { code, marks: new Float64Array(code.length), mark: 0 };
  }

  const isWord = c => c !== undefined && /[0-9a-z_]/i.test(c);

  // Whether the pattern matches anywhere in text; false once budget.left is used up.
  function findPattern(p, text, budget) {
    const s = text.toLowerCase(), stack = [];
    let now = [], matched = false;
    const enter = (list, state, at) => {
      stack.push(state);
      while (stack.length) {
        const pc = stack.pop(), [kind, target, other] = p.code[pc];
        budget.left--;
        if (p.marks[pc] === p.mark) continue;
        p.marks[pc] = p.mark;
        if (kind === 'match') matched = true;
        else if (kind === 'set') list.push(pc);
        else if (kind === 'jump') stack.push(target);
        else if (kind === 'split') stack.push(other, target);
        else if ((kind === 'begin' && at === 0) || (kind === 'end' && at === s.length) ||
                 ((kind === 'edge' || kind === 'no edge') && (isWord(s[at - 1]) !== isWord(s[at])) === (kind === 'edge')))
          stack.push(pc + 1);
      }
    };
    p.mark++;
    for (let at = 0; budget.left > 0; at++) {
      enter(now, 0, at);
      if (matched || at >= s.length) return matched;
      const next = [];
      p.mark++;
      for (const pc of now) {
        budget.left--;
        if (p.code[pc][1](s[at])) enter(next, pc + 1, at + 1);
      }
      now = next;
    }
    return false;
  }

  // Which frames have the words in one of their names, their file or their object: as they stand, or as a pattern. The
  // result's `stopped` says that the pattern took too many steps; it is then what the words alone find.
  function findFrames(d, words) {
    const plain = words.toLowerCase(), budget = { left: SEARCH_STEPS }, known = new Map();
    let pattern = null;
    try {
      pattern = compilePattern(words);
    } catch {
      // Words that are no pattern ("operator()" is one, but another than was meant) are looked for as they stand.
    }
    const test = s => {
      let result = known.get(s);
      if (result === undefined)
        known.set(s, result = s.toLowerCase().includes(plain) || (pattern !== null && findPattern(pattern, s, budget)));
      return result;
    };
    const found = d.frames.map(f => [f[0], f[1], f[2], f[5], f[6]].some(s => s && test(s)));
    found.stopped = budget.left <= 0;
    return found;
  }

  // ---- colours ---------------------------------------------------------------------------------

  function hash(text) {
    let h = 2166136261;
    for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
    return h >>> 0;
  }
  // User code by object, from green over blue to violet; the name moves the shade a little, so neighbours differ.
  function colour(d, i, dark) {
    const kind = kindOf(d, i);
    if (i === 0) return dark ? '#3a4048' : '#dcdcd6';
    const f = d.frames[d.frame[i]], jitter = hash(f[0]) % 9 - 4;
    if (kind === 'unresolved' || kind === 'other' || kind === 'label') return `hsl(40 3% ${(dark ? 33 : 80) + jitter / 2}%)`;
    if (kind === 'kernel') return `hsl(${30 + jitter} ${dark ? 48 : 88}% ${(dark ? 33 : 74) + jitter / 2}%)`;
    const hue = 140 + hash(baseName(f[2])) % 13 * 11;
    const light = dark ? (kind === 'inlined' ? 26 : 34) : (kind === 'inlined' ? 84 : 74);
    return `hsl(${hue + jitter} ${dark ? 34 : 48}% ${light + jitter / 2}%)`;
  }
  // Blue is less, orange is more: readable without telling red from green.
  function diffColour(d, i, dark) {
    const before = d.total[0] ? d.total[i] / d.total[0] : 0, after = d.total2[0] ? d.total2[i] / d.total2[0] : 0;
    const change = before + after ? (after - before) / (before + after) : 0;
    if (i === 0 || Math.abs(change) < 0.005) return dark ? '#3a4048' : '#e3e3de';
    const strong = Math.min(1, Math.abs(change) * 1.6);
    const hue = change > 0 ? 24 : 214;
    return dark ? `hsl(${hue} ${30 + 45 * strong}% ${26 + 16 * strong}%)` : `hsl(${hue} ${40 + 50 * strong}% ${90 - 24 * strong}%)`;
  }

  function legend(d) {
    const box = document.createElement('span'), dark = isDark();
    const items = d.diff ?
      [['less', dark ? 'hsl(214 75% 42%)' : 'hsl(214 90% 66%)'], ['more', dark ? 'hsl(24 75% 42%)' : 'hsl(24 90% 66%)']] :
      [['user', dark ? 'hsl(200 34% 34%)' : 'hsl(200 48% 74%)'], ['inlined', dark ? 'hsl(200 34% 26%)' : 'hsl(200 48% 84%)'],
        ['kernel', dark ? 'hsl(30 48% 33%)' : 'hsl(30 88% 74%)'], ['not resolved', dark ? 'hsl(40 3% 33%)' : 'hsl(40 3% 80%)']];
    box.className = 'legend';
    for (const [text, fill] of items) {
      const item = document.createElement('span'), swatch = document.createElement('i');
      swatch.style.background = fill;
      item.append(swatch, text);
      box.append(item);
    }
    return box;
  }

  // ---- the view ----------------------------------------------------------------------------------

  function create(root, d, options) {
    root.textContent = '';
    const make = (tag, props, ...inner) => {
      const e = Object.assign(document.createElement(tag), props);
      e.append(...inner);
      return e;
    };
    const find = make('input', { type: 'search', placeholder: 'Search  (/)', size: 28, spellcheck: false });
    find.setAttribute('aria-label', 'Search functions, files and objects; text or a regular expression');
    const found = make('span', { className: 'soft' });
    const reset = make('button', { type: 'button', textContent: 'Reset zoom', disabled: true });
    const flip = make('button', { type: 'button', textContent: 'Flip' });
    flip.setAttribute('aria-pressed', 'false');
    let legendBox = legend(d);
    const bar = make('div', { className: 'bar' }, find, found, make('span', { className: 'grow' }), legendBox, flip, reset);
    const canvas = make('canvas', { tabIndex: 0 });
    canvas.setAttribute('role', 'application');
    canvas.setAttribute('aria-label', 'Flame graph. Arrow keys move, Enter zooms, Escape goes back, slash searches.');
    const space = make('div', { className: 'flame-space' });
    const scroll = make('div', { className: 'flame-scroll' }, canvas, space);
    const status = make('div', { className: 'flame-status mono' });
    status.setAttribute('aria-live', 'polite');
    const tip = make('div', { className: 'flame-tip', hidden: true });
    root.append(bar, scroll, status, tip);

    let zoomed = 0, selected = 0, hovered = -1, matches = null, width = 0, height = 0, flipped = false, frame = 0;
    const context = canvas.getContext('2d');

    const text = i => {
      const place = placeOf(d, i);
      if (d.diff)
        return `${nameOf(d, i)} — ${percent(d.total[i], d.total[0])} → ${percent(d.total2[i], d.total2[0])}` + (place ? ` — ${place}` : '');
      return `${nameOf(d, i)} — ${formatValue(d.total[i], d.unit)}, ${percent(d.total[i], d.total[0])}` +
        (d.self[i] ? `, self ${formatValue(d.self[i], d.unit)}` : '') + (place ? ` — ${place}` : '');
    };

    // Where a node lies on the canvas; ancestors of the zoomed node take the whole width.
    const isAncestor = i => i <= zoomed && d.end[i] >= d.end[zoomed];
    const left = i => isAncestor(i) ? 0 : (d.x[i] - d.x[zoomed]) / d.w[zoomed] * width;
    const wide = i => isAncestor(i) ? width : d.w[i] / d.w[zoomed] * width;
    const contentHeight = () => d.depths * ROW + 2;
    const top = i => (flipped ? (d.depths - 1 - d.depth[i]) * ROW : d.depth[i] * ROW) - scroll.scrollTop;

    function draw() {
      frame = 0;
      const style = getComputedStyle(document.documentElement), dark = isDark();
      const ink = style.getPropertyValue('--text'), mark = style.getPropertyValue('--mark'), bg = style.getPropertyValue('--bg');
      const ratio = devicePixelRatio || 1;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.fillStyle = bg;
      context.fillRect(0, 0, width, height);
      if (!d.count || !d.w[0]) {
        context.fillStyle = ink;
        context.font = '14px system-ui, sans-serif';
        context.fillText('No samples here. Try a longer time range or another selector.', 12, 30);
        return;
      }
      context.font = '12px ui-monospace, "DejaVu Sans Mono", monospace';
      context.textBaseline = 'middle';
      const letter = context.measureText('m').width;
      for (let i = 0; i < d.count;) {
        const w = wide(i), x = left(i), y = top(i);
        // A subtree that is beside the zoom or too thin to see is skipped as a whole.
        if (x + w < 0 || x > width || w < 0.5) { i = d.end[i]; continue; }
        if (y > -ROW && y < height) {
          context.globalAlpha = isAncestor(i) && i !== zoomed ? 0.55 : 1;
          context.fillStyle = d.diff ? diffColour(d, i, dark) : colour(d, i, dark);
          context.fillRect(x, y, Math.max(w - 0.6, 0.5), ROW - 1);
          if (matches && matches[i]) {
            context.fillStyle = mark;
            context.globalAlpha = 0.34;
            context.fillRect(x, y, Math.max(w - 0.6, 0.5), ROW - 1);
          }
          context.globalAlpha = matches && !matches[i] ? 0.55 : 1;
          const room = Math.floor((Math.min(w, width - Math.max(x, 0)) - 2 * PAD) / letter);
          if (room > 2) {
            const name = labelOf(d, i);
            context.fillStyle = ink;
            context.fillText(name.length <= room ? name : name.slice(0, room - 1) + '…', Math.max(x, 0) + PAD, y + ROW / 2);
          }
          context.globalAlpha = 1;
        }
        i++;
      }
      for (const [i, line] of [[hovered, 1], [selected, 2]])
        if (i > 0 || (i === 0 && line === 2 && document.activeElement === canvas)) {
          context.strokeStyle = ink;
          context.lineWidth = line;
          context.strokeRect(left(i) + 0.5, top(i) + 0.5, Math.max(wide(i) - 1, 1), ROW - 2);
        }
    }
    const redraw = () => { if (!frame) frame = requestAnimationFrame(draw); };

    function resize() {
      width = scroll.clientWidth;
      height = scroll.clientHeight;
      if (!width) return;
      const ratio = devicePixelRatio || 1;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = width + 'px';
      canvas.style.height = height + 'px';
      space.style.height = Math.max(0, contentHeight() - height) + 'px';
      redraw();
    }

    function nodeAt(px, py) {
      for (let i = 0; i < d.count;) {
        const x = left(i), w = wide(i);
        if (px < x || px >= x + w) { i = d.end[i]; continue; }
        if (py >= top(i) && py < top(i) + ROW) return i;
        i++;
      }
      return -1;
    }

    function select(i, reveal) {
      selected = i;
      status.textContent = d.count ? text(i) : '';
      if (reveal) {
        const y = flipped ? (d.depths - 1 - d.depth[i]) * ROW : d.depth[i] * ROW;
        if (y < scroll.scrollTop) scroll.scrollTop = y;
        else if (y + ROW > scroll.scrollTop + height) scroll.scrollTop = y + ROW - height;
      }
      redraw();
    }
    function zoom(i) {
      if (!d.count || !d.w[i]) return;
      zoomed = i;
      reset.disabled = i === 0;
      hideTip();
      select(i, true);
    }

    function hideTip() { tip.hidden = true; hovered = -1; }
    function showTip(i, event) {
      tip.textContent = '';
      const row = (name, a, b, c) => {
        const tr = document.createElement('tr');
        for (const v of [name, a, b, c]) { const td = document.createElement('td'); td.textContent = v; tr.append(td); }
        return tr;
      };
      const table = document.createElement('table');
      if (d.diff) {
        table.append(row('', 'before', 'after', 'change'),
          row('total', percent(d.total[i], d.total[0]), percent(d.total2[i], d.total2[0]),
            percent(d.total2[i] / (d.total2[0] || 1) - d.total[i] / (d.total[0] || 1), 1)),
          row('self', formatValue(d.self[i], d.unit), formatValue(d.self2[i], d.unit), ''));
      } else {
        table.append(row('', '', 'of all', zoomed ? 'of zoomed' : ''),
          row('total', formatValue(d.total[i], d.unit), percent(d.total[i], d.total[0]), zoomed ? percent(d.total[i], d.total[zoomed]) : ''),
          row('self', formatValue(d.self[i], d.unit), percent(d.self[i], d.total[0]), zoomed ? percent(d.self[i], d.total[zoomed]) : ''));
      }
      tip.append(make('b', { className: 'mono', textContent: nameOf(d, i) }));
      if (linkageOf(d, i)) tip.append(make('div', { className: 'soft mono', textContent: linkageOf(d, i) }));
      const place = placeOf(d, i);
      if (place) tip.append(make('div', { className: 'soft mono', textContent: place }));
      if (i) tip.append(make('div', { className: 'soft', textContent: KIND_TEXT[kindOf(d, i)] }));
      tip.append(table);
      tip.hidden = false;
      const box = tip.getBoundingClientRect();
      tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + 'px';
      tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + 'px';
    }

    canvas.addEventListener('pointermove', event => {
      const i = nodeAt(event.offsetX, event.offsetY);
      canvas.style.cursor = i > 0 ? 'pointer' : 'default';
      if (i < 0) hideTip();
      else { hovered = i; showTip(i, event); }
      redraw();
    });
    canvas.addEventListener('pointerleave', () => { hideTip(); redraw(); });
    canvas.addEventListener('click', event => {
      const i = nodeAt(event.offsetX, event.offsetY);
      if (i >= 0) zoom(i);
    });
    canvas.addEventListener('contextmenu', event => {
      const i = nodeAt(event.offsetX, event.offsetY);
      if (i > 0 && options.onFunction) { event.preventDefault(); options.onFunction(nameOf(d, i)); }
    });
    canvas.addEventListener('focus', redraw);
    canvas.addEventListener('blur', redraw);

    const sibling = (i, step) => {
      if (i === 0) return 0;
      const p = d.parent[i];
      if (step > 0) return d.end[i] < d.end[p] ? d.end[i] : i;
      let last = p + 1;
      while (d.end[last] < i) last = d.end[last];
      return last < i ? last : i;
    };
    canvas.addEventListener('keydown', event => {
      const down = flipped ? 'ArrowUp' : 'ArrowDown', up = flipped ? 'ArrowDown' : 'ArrowUp';
      const key = event.key;
      if (key === down && d.end[selected] > selected + 1) select(selected + 1, true);
      else if (key === up) select(Math.max(d.parent[selected], 0), true);
      else if (key === 'ArrowRight') select(sibling(selected, 1), true);
      else if (key === 'ArrowLeft') select(sibling(selected, -1), true);
      else if (key === 'Enter' || key === ' ') zoom(selected);
      else if (key === 'Escape' || key === 'Backspace') zoom(zoomed ? Math.max(d.parent[zoomed], 0) : 0);
      else if (key === 'Home') zoom(0);
      else return;
      event.preventDefault();
    });

    function search(words) {
      find.value = words;
      matches = null;
      found.textContent = '';
      if (words && d.count) {
        const frames = findFrames(d, words);
        let sum = 0, sum2 = 0, nodes = 0;
        matches = new Uint8Array(d.count);
        for (let i = 1, covered = 0; i < d.count; i++) {
          if (!frames[d.frame[i]]) continue;
          matches[i] = 1;
          nodes++;
          if (i >= covered) { sum += d.total[i]; sum2 += d.total2[i]; covered = d.end[i]; }
        }
        if (frames.stopped) found.textContent = 'The pattern takes too long: search for a part of the name instead';
        else found.textContent = nodes ? `${percent(sum, d.total[0])}${d.diff ? ' → ' + percent(sum2, d.total2[0]) : ''} in ${nodes} frames` : 'nothing found';
      }
      redraw();
    }
    find.addEventListener('input', () => search(find.value));
    find.addEventListener('keydown', event => { if (event.key === 'Escape') { search(''); canvas.focus(); } });
    reset.onclick = () => zoom(0);
    flip.onclick = () => {
      flipped = !flipped;
      flip.setAttribute('aria-pressed', flipped);
      scroll.scrollTop = flipped ? contentHeight() : 0;
      redraw();
    };
    const abort = new AbortController(), signal = abort.signal;
    addEventListener('keydown', event => {
      if (event.key === '/' && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName) && !root.hidden) {
        event.preventDefault();
        find.focus();
      }
    }, { signal });
    const recolour = () => {
      const fresh = legend(d);
      legendBox.replaceWith(fresh);
      legendBox = fresh;
      redraw();
    };
    addEventListener('cairn-theme', recolour, { signal });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour, { signal });
    scroll.addEventListener('scroll', () => { hideTip(); redraw(); });
    const observer = new ResizeObserver(resize);
    observer.observe(scroll);
    resize();
    select(0, false);
    return { resize, search, query: () => find.value, destroy() { abort.abort(); observer.disconnect(); } };
  }

  // ---- the table ---------------------------------------------------------------------------------

  // Flat and cumulative per function and file; a function that is above itself counts once.
  function topRows(d) {
    const rows = new Map(), open = [];
    for (let i = 1; i < d.count; i++) {
      const f = d.frames[d.frame[i]], key = f[0] + '\0' + f[1];
      while (open.length && open[open.length - 1].end <= i) open.pop().row.depth--;
      let row = rows.get(key);
      if (!row) rows.set(key, row = { function: f[0], label: d.full ? f[0] : shortOf(f), file: f[1], line: d.line[i], object: f[2], flat: 0, cumulative: 0,
        flat_after: 0, cumulative_after: 0, depth: 0 });
      row.flat += d.self[i];
      row.flat_after += d.self2[i];
      if (row.depth === 0) { row.cumulative += d.total[i]; row.cumulative_after += d.total2[i]; }
      row.depth++;
      open.push({ end: d.end[i], row });
    }
    const change = r => Math.abs(r.flat_after - r.flat);
    return [...rows.values()].sort((a, b) => d.diff ? change(b) - change(a) : b.flat - a.flat || b.cumulative - a.cumulative);
  }

  function table(d, rows, onFunction) {
    const e = document.createElement('table'), head = e.createTHead().insertRow(), body = e.createTBody();
    const columns = d.diff ? ['Flat before', 'Flat after', 'Change'] : ['Flat', '', 'Cumulative', ''];
    e.className = 'rows';
    for (const c of [...columns, 'Function', 'File']) {
      const th = document.createElement('th');
      th.textContent = c;
      th.scope = 'col';
      if (c !== 'Function' && c !== 'File') th.className = 'n';
      head.append(th);
    }
    for (const r of rows.slice(0, 1000)) {
      const tr = body.insertRow(), total = d.sides[0].total;
      const values = d.diff ? [formatValue(r.flat, d.unit), formatValue(r.flat_after, d.unit), formatValue(r.flat_after - r.flat, d.unit)] :
        [formatValue(r.flat, d.unit), percent(r.flat, total), formatValue(r.cumulative, d.unit), percent(r.cumulative, total)];
      for (const v of values) { const td = tr.insertCell(); td.className = 'n'; td.textContent = v; }
      const button = document.createElement('button'), name = tr.insertCell(), file = tr.insertCell();
      button.type = 'button';
      button.className = 'link mono';
      button.textContent = r.label || r.short_name || r.function;
      button.title = r.function;
      button.onclick = () => onFunction(r.function);
      name.className = 'f';
      name.append(button);
      file.className = 'f soft mono';
      file.textContent = r.file ? (r.line ? `${r.file}:${r.line}` : r.file) : r.object;
    }
    if (!rows.length) {
      const cell = body.insertRow().insertCell();
      cell.colSpan = columns.length + 2;
      cell.textContent = 'No samples here. Try a longer time range or another selector.';
    }
    return e;
  }

  return { parse, create, table, topRows, findFrames, labelOf, about, formatValue, percent, timeText, themeButton, isDark };
})();
