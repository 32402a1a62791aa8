// SPDX-License-Identifier: Apache-2.0
//
// Draws the flame graph of docs/formats/query-api.md on a canvas: only the
// frames in view and wider than half a pixel, so that a tree of a hundred
// thousand nodes stays fluid. Everything the pointer can do, the keyboard can.
'use strict';
const CairnFlame = (() => {
  const { formatValue, percent, timeText } = CairnUnits, { parse, about, nameOf, labelOf, linkageOf, kindOf, placeOf, KIND_TEXT } = CairnLayout,
    { findFrames } = CairnSearch, { isDark } = CairnTheme, { colour, diffColour, legend } = CairnPalette, { topRows, create: table } = CairnTable;
  const ROW = 19, PAD = 4;

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

  return { parse, create, table, topRows, findFrames, labelOf, about, formatValue, percent, timeText };
})();
