// SPDX-License-Identifier: Apache-2.0
//
// The page at "/": asks the query API and shows what it says. Its state is in
// the address, so that a view can be sent to somebody.
'use strict';
{
  const $ = id => document.getElementById(id);
  const FIELDS = { selector: 'selector', type: 'type', from: 'from', to: 'to', base_selector: 'base-selector',
    base_from: 'base-from', base_to: 'base-to' };
  let view = 'flame', focus = null, flame = null, asked = 0, timer = 0;

  // ---- state in the address -----------------------------------------------------------------------

  function readAddress() {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const [name, id] of Object.entries(FIELDS)) {
      if (name === 'type' && state.get('type')) addType(state.get('type'));
      if (state.has(name)) $(id).value = state.get(name);
    }
    if (['flame', 'top', 'diff', 'missing'].includes(state.get('view'))) view = state.get('view');
    for (const way of ['callees_of', 'callers_of']) if (state.get(way)) focus = [way, state.get(way)];
  }
  function writeAddress() {
    const state = new URLSearchParams();
    for (const [name, id] of Object.entries(FIELDS)) if ($(id).value) state.set(name, $(id).value);
    state.set('view', view);
    if (focus) state.set(focus[0], focus[1]);
    history.replaceState(null, '', '#' + state);
  }

  // ---- asking ----------------------------------------------------------------------------------------

  function params(names) {
    const p = new URLSearchParams();
    for (const name of names) if ($(FIELDS[name]).value) p.set(name, $(FIELDS[name]).value);
    return p;
  }
  const usual = () => params(['selector', 'type', 'from', 'to']);
  const url = (operation, p) => 'api/v1/query/' + operation + '?' + p;

  async function ask(operation, p) {
    const answer = await fetch(url(operation, p));
    if (answer.ok) return answer.json();
    let text = await answer.text();
    try { text = JSON.parse(text).error || text; } catch { /* plain text */ }
    throw new Error(text || `the server answered ${answer.status}`);
  }

  function addType(id) {
    if (![...$('type').options].some(o => o.value === id)) $('type').add(new Option(id.split(':').slice(0, 3).join(' · '), id));
  }
  async function loadHints() {
    const p = params(['from', 'to']);
    const [types, labels] = await Promise.all([ask('types', p), ask('labels', p)]);
    if (!$('type').options.length) $('type').add(new Option('CPU, or what there is', ''));
    types.forEach(addType);
    $('hints').textContent = '';
    for (const l of labels) $('hints').append(new Option(`{${l}=""}`));
  }
  $('selector').addEventListener('change', async () => { // {comm=""} offers the values of comm
    const open = /([\w.\/-]+)\s*=~?\s*""/.exec($('selector').value);
    if (!open) return;
    const values = await ask('label/' + encodeURIComponent(open[1]) + '/values', params(['from', 'to'])).catch(() => []);
    $('hints').textContent = '';
    for (const v of values.slice(0, 200)) $('hints').append(new Option($('selector').value.replace('""', JSON.stringify(v))));
  });

  // ---- showing ------------------------------------------------------------------------------------------

  function show(name) {
    view = name;
    for (const tab of document.querySelectorAll('[role=tab]')) tab.setAttribute('aria-selected', tab.dataset.view === view);
    for (const v of ['flame', 'top', 'diff', 'missing']) $('view-' + v).hidden = v !== view;
    $('compare').hidden = view !== 'diff';
    $('focus').hidden = !focus || view !== 'flame';
    if (focus) $('focus-name').textContent = focus[1];
  }
  function focusOn(name) {
    focus = ['callees_of', name];
    show('flame');
    refresh();
  }
  function putFlame(root, json) {
    const words = flame && flame.root === root ? flame.query() : '', data = CairnFlame.parse(json);
    if (flame) flame.destroy();
    flame = CairnFlame.create(root, data, { onFunction: focusOn });
    flame.root = root;
    if (words) flame.search(words);
    $('about').textContent = CairnFlame.about(data);
  }

  const views = {
    async flame() {
      const p = usual();
      if (focus) p.set(focus[0], focus[1]);
      return [$('view-flame'), await ask('flame', p)];
    },
    async diff() {
      const p = params(['selector', 'type', 'from', 'to', 'base_selector', 'base_from', 'base_to']);
      if (!p.has('base_from') && !p.has('base_selector')) { // the range just before
        const s = await ask('series', usual());
        const step = s.step_ms, first = s.points[0][0], last = s.points[s.points.length - 1][0] + step;
        p.set('base_from', first - (last - first));
        p.set('base_to', first);
      }
      return [$('view-diff'), await ask('diff', p)];
    },
    async top() {
      const p = usual();
      p.set('limit', 500);
      return ask('top', p);
    },
    async missing() { return ask('missing', usual()); },
  };

  function putMissing(rows) {
    const e = document.createElement('table'), head = e.createTHead().insertRow(), body = e.createTBody();
    e.className = 'rows';
    for (const c of ['Samples', 'Locations', 'State', 'Build id', 'Object']) {
      const th = document.createElement('th');
      th.textContent = c;
      if (c === 'Samples' || c === 'Locations') th.className = 'n';
      head.append(th);
    }
    for (const r of rows) {
      const tr = body.insertRow();
      for (const v of [r.samples.toLocaleString('en'), r.locations, r.state.replaceAll('_', ' '), r.build_id, r.object]) tr.insertCell().textContent = v;
      tr.cells[0].className = tr.cells[1].className = 'n';
      tr.cells[3].className = tr.cells[4].className = 'mono f';
    }
    if (!rows.length) body.insertRow().insertCell().textContent = 'Nothing is missing in this range.';
    $('view-missing').replaceChildren(e);
  }

  async function refresh() {
    const mine = ++asked, current = view;
    writeAddress();
    const p = usual();
    for (const [id, operation] of [['pprof', 'pprof'], ['folded', 'folded']]) $(id).href = url(operation, p);
    $('pprof').download = 'cairn.pb.gz';
    p.set('format', 'html');
    $('page').href = url('flame', p);
    try {
      const [answer, series] = await Promise.all([views[current](), ask('series', usual())]);
      if (mine !== asked) return; // a later question is under way
      $('error').hidden = true;
      if (current === 'flame' || current === 'diff') putFlame(...answer);
      else if (current === 'top') {
        const side = { selector: $('selector').value, from_ms: answer.from_ms, to_ms: answer.to_ms, total: answer.total, samples: answer.samples };
        const data = { type: answer.type, unit: answer.unit, sides: [side], diff: false };
        $('about').textContent = CairnFlame.about(data);
        $('view-top').replaceChildren(CairnFlame.table(data, answer.rows, focusOn));
      } else putMissing(answer);
      drawSeries(series);
    } catch (e) {
      if (mine !== asked) return;
      $('error').textContent = e.message;
      $('error').hidden = false;
    }
  }

  // ---- the series ----------------------------------------------------------------------------------------

  let shown = null, dragFrom = -1, dragTo = -1;
  function drawSeries(series) {
    if (series) shown = series;
    const canvas = $('series'), c = canvas.getContext('2d'), ratio = devicePixelRatio || 1;
    const w = canvas.clientWidth, h = canvas.clientHeight, style = getComputedStyle(document.documentElement);
    canvas.width = w * ratio;
    canvas.height = h * ratio;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (!shown || !shown.points.length) return;
    const max = Math.max(1, ...shown.points.map(p => p[1])), step = w / shown.points.length;
    c.fillStyle = style.getPropertyValue('--accent');
    shown.points.forEach((p, i) => {
      const bar = p[1] / max * (h - 18);
      c.fillRect(i * step, h - bar, Math.max(step - 1, 0.5), bar);
    });
    c.fillStyle = style.getPropertyValue('--soft');
    c.font = '11px system-ui, sans-serif';
    c.fillText(CairnFlame.timeText(shown.points[0][0]), 4, 12);
    const last = CairnFlame.timeText(shown.points[shown.points.length - 1][0] + shown.step_ms);
    c.fillText(last, w - c.measureText(last).width - 4, 12);
    c.fillText('up to ' + CairnFlame.formatValue(max, shown.unit) + ' per ' + shown.step_ms / 1000 + ' s', w / 2 - 60, 12);
    if (dragFrom >= 0) {
      c.globalAlpha = 0.25;
      c.fillRect(Math.min(dragFrom, dragTo), 0, Math.abs(dragTo - dragFrom), h);
      c.globalAlpha = 1;
    }
  }
  const canvas = $('series');
  canvas.addEventListener('pointerdown', e => { dragFrom = dragTo = e.offsetX; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener('pointermove', e => { if (dragFrom >= 0) { dragTo = e.offsetX; drawSeries(); } });
  canvas.addEventListener('pointerup', () => {
    const from = Math.max(0, Math.min(dragFrom, dragTo)), to = Math.min(canvas.clientWidth, Math.max(dragFrom, dragTo));
    dragFrom = -1;
    if (shown && to - from > 3) {
      const at = x => shown.points[0][0] + x / canvas.clientWidth * shown.points.length * shown.step_ms;
      $('from').value = new Date(at(from)).toISOString();
      $('to').value = new Date(at(to)).toISOString();
      refresh();
    } else drawSeries();
  });

  // ---- controls --------------------------------------------------------------------------------------------

  $('ask').addEventListener('submit', e => { e.preventDefault(); loadHints().catch(() => {}); refresh(); });
  $('type').addEventListener('change', refresh);
  for (const tab of document.querySelectorAll('[role=tab]')) tab.onclick = () => { show(tab.dataset.view); refresh(); };
  $('focus-callees').onclick = () => { focus[0] = 'callees_of'; refresh(); };
  $('focus-callers').onclick = () => { focus[0] = 'callers_of'; refresh(); };
  $('focus-none').onclick = () => { focus = null; show(view); refresh(); };
  $('live').addEventListener('change', () => {
    clearInterval(timer);
    if ($('live').checked) timer = setInterval(() => { if (!document.hidden) refresh(); }, 5000);
  });
  CairnFlame.themeButton($('theme'));
  addEventListener('resize', () => drawSeries());
  addEventListener('cairn-theme', () => drawSeries());
  $('type').add(new Option('CPU, or what there is', ''));
  readAddress();
  show(view);
  loadHints().catch(() => {}).finally(refresh);
}
