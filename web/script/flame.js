// SPDX-License-Identifier: Apache-2.0
//
// The flame graph: interaction by pointer and keyboard, and its controls. flame_canvas.js draws it, flame_keys.js has
// the keys.
'use strict';
const CairnFlame = (() => {
  const { formatValue, percent, changeText, pointsText } = CairnUnits, { display } = CairnNames, { make } = CairnDom;
  const { nameOf, linkageOf, kindOf, placeOf, keyOf, findKey, KIND_TEXT } = CairnLayout, { ROW } = CairnFlameCanvas;
  const SAY_MS = 150, SEARCH_MS = 120, MIN_SPAN = 1e-7;
  const kept = { flipped: false, mode: 'object', diffBy: 'ratio', collapsed: false }; // shared by all graphs of the page

  // options, all of them optional:
  //   actions    entries of the menu: { sandwich, callees, callers, focus, ignore, hide, trend, source }, each called with (name,
  //              frame, line); { reverse } without arguments, for the button of that name
  //   links(name, frame, line)   [{ text, href }, ...] for the menu
  //   reversed   whether the tree is inverted already
  //   keep(keys) called with the keys of the selection for what one sees: search, zoom, colours, flip, recursion
  //   controls   more elements for the bar of controls
  //   label      accessible name of the graph
  //   hideRoot   omits the row of the root; flipped: fixed orientation, without a button; small: no controls
  function create(root, first, options = {}) {
    const actions = options.actions || {};
    const find = make('input', { type: 'search', placeholder: 'Search  (/)', size: 26, spellcheck: false, autocomplete: 'off',
      'aria-label': 'Search functions, files and objects; text or a regular expression' });
    const found = make('span', { className: 'soft', role: 'status' });
    const button = (text, pressed, title) => make('button', { type: 'button', textContent: text, title, 'aria-pressed': pressed === undefined ? null : String(pressed) });
    const next = button('Next match'), reset = button('Reset zoom'), flip = button('Flip', kept.flipped, 'The root at the bottom (i)');
    const recursion = button('Collapse recursion', kept.collapsed, 'Direct recursion as one frame (r)'), help = button('Keys', undefined, 'What keys do (?)');
    const reverse = actions.reverse ? button('Reverse', Boolean(options.reversed), 'From the functions that cost, to their callers (v)') : null;
    const colours = make('select', { 'aria-label': 'Colours by' }), legendBox = make('span', { className: 'legend' });
    const bar = make('div', { className: 'bar' }, find, next, found, make('span', { className: 'grow' }),
      ...(options.controls || []), make('label', {}, 'Colours ', colours), recursion, reverse, options.flipped === undefined ? flip : null, reset, help);
    const canvas = make('canvas', { tabIndex: 0, role: 'application',
      'aria-label': (options.label || 'Flame graph') + '. Arrow keys move, Enter zooms, Escape goes back, slash searches, question mark lists all keys. The table has the same functions as text.' });
    canvas.setAttribute('aria-roledescription', 'flame graph');
    const space = make('div', { className: 'flame-space' }), scroll = make('div', { className: 'flame-scroll' }, canvas, space);
    const onSource = actions.source ? button('Show source', undefined, 'The lines of the selected frame (o)') : null;
    const onCalls = actions.sandwich ? button('Show callers and callees', undefined, 'Of the selected frame') : null;
    const onTrend = actions.trend ? button('Show trend', undefined, 'The cost of the selected function over time (t)') : null;
    const onMore = button('More …', undefined, 'Actions on the selected frame (m)');
    onMore.setAttribute('aria-haspopup', 'menu');
    const status = make('div', { className: 'flame-status mono' }), doing = make('div', { className: 'bar', role: 'group', 'aria-label': 'The selected frame' }, onSource, onCalls, onTrend, onMore);
    const foot = make('div', { className: 'flame-foot' }, status, options.small ? null : doing), said = make('div', { className: 'unseen', 'aria-live': 'polite' });
    const tip = make('div', { className: 'flame-tip', hidden: true });
    root.replaceChildren(...(options.small ? [] : [bar, legendBox]), scroll, foot, said, tip);

    const painter = CairnFlameCanvas.create(canvas);
    const view = { d: null, left: 0, span: 1, top: 0, flipped: options.flipped === undefined ? kept.flipped : options.flipped,
      firstRow: options.hideRoot ? 1 : 0, zoomed: 0, selected: 0, hovered: -1, focused: false, matches: null, matchedBefore: null, fills: null };
    let source = null, d = null, result = null, width = 0, height = 0, placed = false, frame = 0, sayTimer = 0, searchTimer = 0;

    // ---- drawing --------------------------------------------------------------------------------

    function paint() {
      frame = 0;
      if (!width) return;
      view.top = scroll.scrollTop;
      painter.draw(view);
    }
    const redraw = () => { if (!frame) frame = requestAnimationFrame(paint); };

    function resize() {
      width = scroll.clientWidth;
      height = scroll.clientHeight;
      if (!width) return;
      painter.resize(width, height);
      space.style.height = Math.max(0, painter.contentHeight(view) - height) + 'px';
      if (!placed && view.flipped) scroll.scrollTop = scroll.scrollHeight;
      placed = true;
      redraw();
    }

    function recolour() {
      const dark = CairnPalette.isDark();
      view.fills = d.diff ? CairnPalette.makeDiffFills(d, kept.diffBy, dark) : CairnPalette.makeFills(d, kept.mode, dark);
      legendBox.replaceChildren(...view.fills.legend.map(([text, fill]) => {
        const swatch = make('i', {});
        swatch.style.background = fill;
        return make('span', {}, swatch, display(text, 40));
      }), ...(!d.diff && kept.mode !== 'kind' && d.frames.some(f => f[3] === 1) ? [make('span', {}, make('i', { className: 'dashed' }), 'inlined')] : []));
      redraw();
    }

    // ---- the data -------------------------------------------------------------------------------

    const pathOf = i => { const path = []; for (; i > 0; i = d.parent[i]) path.push(nameOf(d, i)); return path.reverse(); };
    function findPath(path) { // the longest existing prefix
      let at = 0;
      for (const name of path) {
        let child = at + 1;
        while (child < d.end[at] && nameOf(d, child) !== name) child = d.end[child];
        if (child >= d.end[at]) return at;
        at = child;
      }
      return at;
    }

    // Show another tree; zoom and selection are kept for nodes with the same callers.
    function setData(data) {
      const zoomPath = d ? pathOf(view.zoomed) : [], selectedPath = d ? pathOf(view.selected) : [];
      source = data;
      d = view.d = kept.collapsed ? CairnChange.collapseRecursion(data) : data;
      colours.replaceChildren(...(data.diff ? [['ratio', 'relative change'], ['difference', 'absolute change']] : Object.entries(CairnPalette.MODES))
        .map(([value, text]) => make('option', { value, textContent: text })));
      colours.value = data.diff ? kept.diffBy : kept.mode;
      search(find.value);
      recolour();
      if (width) space.style.height = Math.max(0, painter.contentHeight(view) - height) + 'px';
      hideTip();
      zoom(findPath(zoomPath), false);
      select(findPath(selectedPath), false);
    }

    // ---- text -----------------------------------------------------------------------------------

    const share = (i, side) => percent((side ? d.total2 : d.total)[i], (side ? d.total2 : d.total)[0]);
    const isOneSided = () => d.diff && !(d.total[0] && d.total2[0]); // nothing is compared
    function describe(i) {
      const at = placeOf(d, i), name = display(nameOf(d, i));
      if (d.diff) return `${name} — ${share(i, 0)} → ${share(i, 1)}` + (isOneSided() ? '' : ` (${pointsText(d.total[i] / d.total[0], d.total2[i] / d.total2[0])})`) + (at ? ` — ${at}` : '');
      return `${name} — ${formatValue(d.total[i], d.unit)}, ${share(i, 0)}` + (d.self[i] ? `, self ${formatValue(d.self[i], d.unit)}` : '') + (at ? ` — ${at}` : '');
    }
    function place(i) { // the position in words, for screen readers
      if (i === 0) return '';
      let number = 1, count = 0;
      const p = d.parent[i];
      for (let c = p + 1; c < d.end[p] && count < 10000; c = d.end[c]) if (++count && c < i) number++;
      return `, depth ${d.depth[i]}, ${number} of ${CairnUnits.things(count, 'callee')} of ${display(nameOf(d, p), 80)}`;
    }

    function select(i, reveal) {
      view.selected = i;
      status.textContent = d.count ? describe(i) : '';
      for (const b of [onSource, onCalls]) if (b) b.disabled = !hasFunction(i);
      if (onTrend) onTrend.disabled = !hasTrend(i);
      onMore.disabled = !d.count;
      clearTimeout(sayTimer);
      if (document.activeElement === canvas) sayTimer = setTimeout(() => { said.textContent = describe(i) + place(i); }, SAY_MS);
      if (reveal) {
        const y = painter.rowTop(view, d.depth[i]);
        if (y < scroll.scrollTop) scroll.scrollTop = y;
        else if (y + ROW > scroll.scrollTop + height) scroll.scrollTop = y + ROW - height;
        const a = d.x[i], b = a + d.w[i];
        if (b <= view.left || a >= view.left + view.span) look(a - (view.span - d.w[i]) / 2, view.span);
      }
      redraw();
    }

    // Whether a node is a function: not the root, "(other)" or a label value.
    const hasFunction = i => i > 0 && d.frames[d.frame[i]][3] < 4;
    const hasTrend = i => hasFunction(i) && kindOf(d, i) !== 'unresolved';
    const act = (key, i) => { if (actions[key] && hasFunction(i)) actions[key](nameOf(d, i), d.frames[d.frame[i]], d.line[i]); };

    // ---- zoom and position -----------------------------------------------------------------------

    function look(left, span) {
      view.span = Math.min(1, Math.max(MIN_SPAN, span));
      view.left = Math.max(0, Math.min(1 - view.span, left));
      reset.disabled = view.span === 1;
      hideTip();
      redraw();
    }
    function zoom(i, reveal = true) {
      if (!d.count || !d.w[i]) i = 0;
      view.zoomed = i;
      look(d.count ? d.x[i] : 0, d.count && i ? d.w[i] : 1);
      select(i, reveal);
    }
    // Zoom by a factor around a fixed point, given as a share of the width (0 to 1).
    const scale = (factor, at) => look(view.left + view.span * (1 - factor) * at, view.span * factor);
    const pan = px => look(view.left - px / width * view.span, view.span);

    // ---- the tip --------------------------------------------------------------------------------

    function hideTip() { tip.hidden = true; view.hovered = -1; }
    function tipRows(i) {
      const row = (...texts) => make('tr', {}, ...texts.map(text => make('td', { textContent: text })));
      if (d.diff) {
        const all = d.total[0] || 1, all2 = d.total2[0] || 1; // each change refers to the values of its row
        const values = (text, a, b) => row(text, formatValue(a, d.unit), formatValue(b, d.unit), isOneSided() ? '' : changeText(a, b, d.unit));
        const shares = (a, b) => row('of all', percent(a, all), percent(b, all2), isOneSided() ? '' : pointsText(a / all, b / all2));
        return [row('', 'before', 'after', 'change'), values('total', d.total[i], d.total2[i]), shares(d.total[i], d.total2[i]),
          values('self', d.self[i], d.self2[i]), shares(d.self[i], d.self2[i])];
      }
      const zoomed = view.zoomed, of = v => zoomed ? percent(v, d.total[zoomed]) : '';
      return [row('', '', 'of all', zoomed ? 'of zoomed' : ''), row('total', formatValue(d.total[i], d.unit), share(i, 0), of(d.total[i])),
        row('self', formatValue(d.self[i], d.unit), percent(d.self[i], d.total[0]), of(d.self[i]))];
    }
    function showTip(node, event) {
      const i = node < 0 ? d.rowNodes[~node] : node, linkage = linkageOf(d, i), at = placeOf(d, i);
      view.hovered = i;
      tip.replaceChildren(make('b', { className: 'mono', textContent: display(nameOf(d, i)) }),
        ...[linkage && display(linkage), at].filter(Boolean).map(textContent => make('div', { className: 'soft mono', textContent })),
        ...(i ? [make('div', { className: 'soft', textContent: node < 0 ? 'the first of several frames too narrow to be drawn each' : KIND_TEXT[kindOf(d, i)] })] : []),
        ...(nameOf(d, i) === CairnNames.JIT ? [make('div', { className: 'soft', textContent: CairnNames.JIT_TEXT })] : []),
        make('table', {}, make('tbody', {}, ...tipRows(i))));
      tip.hidden = false;
      const box = tip.getBoundingClientRect();
      tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + 'px';
      tip.style.top = Math.max(4, event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + 'px';
    }

    // ---- the menu -------------------------------------------------------------------------------

    function openMenu(i, x, y, from = canvas) {
      const f = i ? d.frames[d.frame[i]] : null, name = nameOf(d, i), line = d.line[i];
      const entry = (key, text) => hasFunction(i) && actions[key] ? { text, run: () => act(key, i) } : undefined;
      const items = [
        { text: 'Zoom to it', run: () => zoom(i) },
        { text: 'Copy its name', run: () => copyName(i) },
        f ? { text: 'Search for its name', run: () => search(name) } : undefined, null,
        entry('sandwich', 'Callers and callees'), entry('callees', 'Only what it calls'), entry('callers', 'Only what calls it'), null,
        entry('focus', 'Only stacks with it'), entry('ignore', 'Exclude stacks with it'), entry('hide', 'Hide frame (merge into caller)'), null,
        hasTrend(i) ? entry('trend', 'Show its trend') : undefined, entry('source', 'Show its source'), ...(hasFunction(i) && options.links ? options.links(name, f, line) : []),
      ].filter(item => item !== undefined);
      while (items[items.length - 1] === null) items.pop();
      hideTip();
      CairnFlameMenu.open(items, x, y, from);
    }
    function openMenuAt(i, from) { // at the frame, or at a button
      if (from) {
        const at = from.getBoundingClientRect();
        openMenu(i, at.left, at.top, from);
        return;
      }
      const box = canvas.getBoundingClientRect(), x = (d.x[i] - view.left) / view.span * width;
      openMenu(i, box.left + Math.max(0, Math.min(width - 20, x)) + 8, box.top + painter.rowTop(view, d.depth[i]) - scroll.scrollTop + ROW);
    }
    async function copyName(i) {
      const copied = await CairnFlameMenu.copyText(nameOf(d, i));
      status.textContent = said.textContent = copied ? 'Copied: ' + display(nameOf(d, i), 200) : 'The browser does not let this page copy';
    }

    // ---- what one sees, in the link ----

    const colourKey = () => d.diff ? 'diffBy' : 'mode';
    function keep() {
      const colour = kept[colourKey()];
      if (options.keep) options.keep({ search: find.value, zoom: keyOf(d, view.zoomed), colours: colour === 'object' || colour === 'ratio' ? null : colour,
        flip: view.flipped ? 1 : null, recursion: kept.collapsed ? 1 : null });
    }
    // Show what a selection says; the rest stays, and is kept.
    function restore({ search: words, zoom: key, colours: colour, flip: wantsFlip, recursion: wantsCollapsed }) {
      if (wantsCollapsed && !kept.collapsed) collapse();
      if (wantsFlip && !view.flipped) turn();
      if (colour && colour !== colours.value && [...colours.options].some(o => o.value === colour)) {
        colours.value = kept[colourKey()] = colour;
        recolour();
      }
      if (words && words !== find.value && !searchTimer) search(words);
      const node = key ? findKey(d, key) : 0;
      if (node && node !== view.zoomed) zoom(node, false);
      keep();
    }
    const zoomTo = i => { zoom(i); keep(); };
    function turn() {
      view.flipped = kept.flipped = !view.flipped;
      flip.setAttribute('aria-pressed', view.flipped);
      scroll.scrollTop = view.flipped ? scroll.scrollHeight : 0;
      redraw();
    }
    function collapse() {
      kept.collapsed = !kept.collapsed;
      recursion.setAttribute('aria-pressed', kept.collapsed);
      setData(source);
    }

    // ---- searching ------------------------------------------------------------------------------

    function search(words) {
      clearTimeout(searchTimer);
      searchTimer = 0;
      if (find.value !== words) find.value = words;
      result = CairnFlameSearch.find(d, words);
      view.matches = result ? result.matches : null;
      view.matchedBefore = result ? result.matchedBefore : null;
      found.textContent = result ? result.text : '';
      next.disabled = !result || !result.count;
      redraw();
    }
    function goMatch(way) {
      const i = result ? CairnFlameSearch.step(result, view.selected, way) : -1;
      if (i >= 0) select(i, true);
    }
    find.addEventListener('input', () => {
      clearTimeout(searchTimer);
      searchTimer = setTimeout(() => { search(find.value); keep(); }, d.count > 50000 ? SEARCH_MS : 0);
    });
    find.addEventListener('keydown', event => {
      if (event.key === 'Escape') { search(''); keep(); canvas.focus(); }
      else if (event.key === 'Enter') { search(find.value); keep(); goMatch(event.shiftKey ? -1 : 1); }
      else return;
      event.preventDefault();
    });

    // ---- actions --------------------------------------------------------------------------------

    function step(way) { // along the row
      const k = d.rank[view.selected] + way, depth = d.depth[view.selected];
      if (k >= d.rowStart[depth] && k < d.rowStart[depth + 1]) select(d.rowNodes[k], true);
    }
    const inward = () => { if (d.end[view.selected] > view.selected + 1) select(view.selected + 1, true); };
    const outward = () => { if (d.depth[view.selected] > view.firstRow) select(d.parent[view.selected], true); };
    const middle = () => Math.max(0, Math.min(1, (d.x[view.selected] + d.w[view.selected] / 2 - view.left) / view.span));
    const run = {
      down: () => view.flipped ? outward() : inward(), up: () => view.flipped ? inward() : outward(),
      left: () => step(-1), right: () => step(1), zoom: () => zoomTo(view.selected), all: () => zoomTo(0),
      back: () => { if (tip.hidden) zoomTo(view.zoomed ? Math.max(d.parent[view.zoomed], 0) : 0); else { hideTip(); redraw(); } },
      closer: () => scale(0.5, middle()), wider: () => scale(2, middle()), panLeft: () => pan(width / 8), panRight: () => pan(-width / 8),
      trend: () => { if (hasTrend(view.selected)) act('trend', view.selected); },
      pageDown: () => { scroll.scrollTop += height * 0.8; }, pageUp: () => { scroll.scrollTop -= height * 0.8; },
      search: () => { find.focus(); find.select(); }, next: () => goMatch(1), previous: () => goMatch(-1),
      menu: () => openMenuAt(view.selected), copy: () => copyName(view.selected), help: () => CairnFlameKeys.showHelp(canvas),
      flip: () => {
        if (options.flipped !== undefined) return;
        turn();
        keep();
      },
      recursion: () => { collapse(); keep(); },
      reverse: () => { if (actions.reverse) actions.reverse(); },
      ignore: () => act('ignore', view.selected), source: () => act('source', view.selected),
    };
    canvas.addEventListener('keydown', event => {
      const action = CairnFlameKeys.actionOf(event);
      if (!action || !d.count) return;
      event.preventDefault();
      run[action]();
    });
    next.onclick = run.next;
    reset.onclick = run.all;
    flip.onclick = run.flip;
    recursion.onclick = run.recursion;
    help.onclick = run.help;
    if (onSource) onSource.onclick = run.source;
    if (onCalls) onCalls.onclick = () => act('sandwich', view.selected);
    if (onTrend) onTrend.onclick = run.trend;
    onMore.onclick = () => openMenuAt(view.selected, onMore);
    if (reverse) reverse.onclick = run.reverse;
    colours.onchange = () => { kept[colourKey()] = colours.value; recolour(); keep(); };

    // ---- the pointer ----------------------------------------------------------------------------

    let drag = null; // { x, y, moved }
    const nodeAt = event => {
      const node = painter.hit(view, event.offsetX, event.offsetY);
      return node === null ? null : node;
    };
    canvas.addEventListener('pointerdown', event => { if (event.button === 0) drag = { x: event.clientX, y: event.clientY, id: event.pointerId, touch: event.pointerType === 'touch', moved: false }; });
    canvas.addEventListener('pointermove', event => {
      if (drag && event.buttons & 1) {
        const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
        if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 5) return;
        if (!drag.moved) { drag.moved = true; canvas.setPointerCapture(drag.id); hideTip(); }
        drag.x = event.clientX;
        drag.y = event.clientY;
        pan(dx);
        if (!drag.touch) scroll.scrollTop -= dy; // touch scrolls natively
        return;
      }
      const node = nodeAt(event);
      canvas.style.cursor = node === null || node === 0 ? 'default' : 'pointer';
      if (node === null) hideTip();
      else showTip(node, event);
      redraw();
    });
    canvas.addEventListener('pointerleave', () => { hideTip(); redraw(); });
    canvas.addEventListener('pointercancel', () => { drag = null; });
    canvas.addEventListener('click', event => {
      const moved = drag && drag.moved, node = nodeAt(event);
      drag = null;
      if (moved || node === null) return;
      if (node >= 0) zoomTo(node);
      else { // a run of narrow frames: zoom in on it
        const i = d.rowNodes[~node];
        select(i, false);
        scale(0.1, event.offsetX / width);
      }
    });
    canvas.addEventListener('contextmenu', event => {
      if (event.button !== 2 && document.activeElement === canvas) { event.preventDefault(); return; } // the menu key has its own handler
      const node = nodeAt(event), i = node === null ? -1 : node < 0 ? d.rowNodes[~node] : node;
      if (i < 0) return;
      event.preventDefault();
      select(i, false);
      openMenu(i, event.clientX, event.clientY);
    });
    canvas.addEventListener('wheel', event => {
      if (event.ctrlKey || event.metaKey) scale(1.002 ** event.deltaY, event.offsetX / width);
      else if (event.shiftKey && event.deltaY) pan(-event.deltaY);
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(-event.deltaX);
      else return;
      event.preventDefault();
    }, { passive: false });
    for (const type of ['focus', 'blur']) canvas.addEventListener(type, () => { view.focused = type === 'focus'; redraw(); });
    scroll.addEventListener('scroll', () => { hideTip(); redraw(); });

    const abort = new AbortController(), { signal } = abort;
    if (!options.small)
      addEventListener('keydown', event => {
        if (event.key === 'Escape' && !tip.hidden && document.activeElement !== canvas) { hideTip(); redraw(); }
        if (event.key !== '/' || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName) || !root.offsetParent) return;
        event.preventDefault();
        run.search();
      }, { signal });
    addEventListener('cairn-theme', recolour, { signal });
    matchMedia('(forced-colors: active)').addEventListener('change', redraw, { signal });
    const observer = new ResizeObserver(resize);
    observer.observe(scroll);
    setData(first);
    resize();
    return {
      setData, resize, search, query: () => find.value, zoom, restore,
      mark(words) { search(words); keep(); },
      destroy() { abort.abort(); observer.disconnect(); CairnFlameMenu.close(); cancelAnimationFrame(frame); clearTimeout(sayTimer); clearTimeout(searchTimer); },
    };
  }

  return { create };
})();
