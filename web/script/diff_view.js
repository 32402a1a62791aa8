// SPDX-License-Identifier: Apache-2.0
//
// Two selections compared: in one flame graph, side by side, or as a table of the largest changes. Keys of the
// selection:
//   compare        the difference of the sides: time (default), label, or selector
//   base_from, base_to, base_selector   the side before; by default the range just before the selected one
//   label, before, after   with compare=label: the label and its value on each side
//   shown          merged (default), sides or table
//   scale          shares (default) of the total of each side, or values
'use strict';
const CairnDiffView = (() => {
  const { make } = CairnDom, { formatValue, percent, changeText, pointsText } = CairnUnits;
  const DAY_MS = 86400e3;
  const SHOWN = { merged: 'Merged', sides: 'Side by side', table: 'Largest changes' };
  const SCALES = { shares: 'Shares of the total', values: 'Values' };
  const NO_SIDES = { base_from: null, base_to: null, base_selector: null, label: null, before: null, after: null }, DEPLOYS_SHOWN = 6;
  const SPANS = { previous: ['the range before', null], day: ['a day earlier', DAY_MS], week: ['a week earlier', 7 * DAY_MS], own: ['another range', null] };

  // A selector with one more matcher, which replaces an equality matcher of the same label.
  function addMatcher(selector, name, value) {
    const text = (selector || '').trim(), type = /^[\w:]+(?=\s*\{)/.exec(text);
    return (type ? type[0] : '') + '{' + CairnSelectorText.withMatcher(text, name, value) + '}';
  }

  // The query parameters of a selection: those of the side after, and prefixed with base_ those of the side before.
  function makeParams(selection, now) {
    const common = { ...CairnSelection.params(selection), ...CairnFilters.params(selection) };
    const { compare, base_selector, base_from, base_to, label, before, after } = selection;
    if (compare === 'label' && label)
      return { ...common, selector: addMatcher(selection.selector, label, after || ''), base_selector: addMatcher(selection.selector, label, before || ''), base_from: selection.from, base_to: selection.to };
    if (compare === 'selector') return { ...common, base_selector: base_selector || selection.selector || '{}', base_from: base_from || selection.from, base_to: base_to || selection.to };
    if (base_from || base_selector) return { ...common, base_selector, base_from, base_to };
    const { from, to } = CairnTimes.resolveRange(selection, now);
    return { ...common, base_from: CairnTimes.toIso(from - (to - from)), base_to: CairnTimes.toIso(from) };
  }

  const choice = (label, texts) => make('select', { 'aria-label': label }, ...Object.entries(texts).map(([value, textContent]) => make('option', { value, textContent })));
  const field = (size, placeholder, label) => make('input', { className: 'mono', size, placeholder, spellcheck: false, autocomplete: 'off', 'aria-label': label });

  // What is compared, in short.
  function sidesText({ compare, label, before, after, selector, base_selector, base_from, base_to }, now) {
    const value = v => !v ? '(none)' : label === CairnDeploys.BUILD_LABEL ? CairnDeploys.shortId(v) : v, time = text => { const ms = CairnTimes.parse(text, now); return Number.isFinite(ms) ? CairnTimes.toText(ms).slice(0, 16) : text; };
    if (compare === 'label' && label) return `${label} ${value(before)} → ${value(after)}`;
    if (compare === 'selector' || base_selector) return `${base_selector || 'all'} → ${selector || 'all'}`;
    return base_from ? `before: ${time(base_from)} – ${time(base_to || 'now')}` : 'the range before';
  }

  // The button that tells the two sides, and its panel, in which they are chosen.
  function makeChooser(context, now, alone) {
    const compare = choice('Compare by', { time: 'Time', label: 'Label or build', selector: 'Selector' });
    const span = choice('Range before', Object.fromEntries(Object.entries(SPANS).map(([k, [text]]) => [k, text])));
    const from = field(20, 'from', 'Before, from'), to = field(20, 'to', 'Before, to'), selector = field(30, '{version="1"}', 'Before, selector');
    const name = make('select', { 'aria-label': 'Label' }), before = make('select', { 'aria-label': 'Value before' }), after = make('select', { 'aria-label': 'Value after' });
    const times = make('span', { className: 'bar' }, span, from, to), labels = make('span', { className: 'bar' }, name,
      make('span', { className: 'pair' }, 'before', before), make('span', { className: 'pair' }, 'after', after));
    const bar = make('form', { className: 'bar' }, make('label', {}, 'Compare by ', compare), times, labels, selector, make('button', { type: 'submit', textContent: 'Apply' }));
    const deploys = make('div', { className: 'bar', role: 'group', 'aria-label': 'Deploys in the range', hidden: true });
    const chip = make('button', { type: 'button', className: 'sides-chip' }), panel = make('div', { id: 'sides-panel', className: 'popover sides-panel', role: 'dialog', 'aria-label': 'Sides of the comparison', hidden: true },
      bar, deploys, make('div', { className: 'bar' }, ...alone));
    const popover = CairnPopover.attach(chip, panel, () => quiet(loadDeploys()));
    const fill = (select, values, chosen) => {
      select.replaceChildren(...values.map(v => make('option', { value: v, textContent: CairnNames.label(v) || '(none)' })));
      if (values.includes(chosen)) select.value = chosen;
    };

    function show() {
      times.hidden = compare.value !== 'time';
      from.hidden = to.hidden = compare.value === 'time' && span.value !== 'own';
      labels.hidden = compare.value !== 'label';
      selector.hidden = compare.value !== 'selector';
    }
    async function loadLabels(signal) {
      const { from, to } = now(), all = await context.api.query('labels', { from, to }, signal);
      const likely = LIKELY.filter(l => all.includes(l));
      fill(name, CairnSelection.orderLabels(all), now().label || likely[0]);
      await loadValues(signal);
    }
    async function loadValues(signal) {
      if (!name.value) return;
      const { from, to, selector: chosen } = now();
      const values = await context.api.query('label/' + encodeURIComponent(name.value) + '/values', { selector: chosen, from, to, limit: 1000 }, signal);
      fill(before, values, now().before);
      fill(after, values, now().after || values[values.length - 1]);
    }
    // The last deploys in the range, each of which can be compared.
    async function loadDeploys() {
      const selection = now(), { versions } = await context.api.query('series', { ...CairnSelection.params(selection), versions: 1 });
      const pairs = CairnDeploys.pairs(versions).filter(p => p.before.label === p.now.label).sort((a, b) => b.now.first_ms - a.now.first_ms).slice(0, DEPLOYS_SHOWN);
      deploys.hidden = !pairs.length;
      deploys.replaceChildren('Deploys ', ...pairs.map(pair => make('button', { type: 'button', textContent: CairnDeploys.pairText(pair), onclick: () => {
        popover.close();
        context.go({ ...NO_SIDES, compare: 'label', label: pair.now.label, before: pair.before.value, after: pair.now.value, selector: CairnSelectorText.withMatcher(selection.selector || '', 'service_name', pair.now.service_name) });
      } })));
    }
    const quiet = promise => promise.catch(() => {}); // the following request reports the error
    compare.onchange = () => { show(); if (compare.value === 'label') quiet(loadLabels()); };
    span.onchange = show;
    name.onchange = () => quiet(loadValues());
    bar.addEventListener('submit', event => {
      const none = NO_SIDES, kind = compare.value;
      event.preventDefault();
      popover.close();
      if (kind === 'label') context.go({ ...none, compare: kind, label: name.value, before: before.value, after: after.value });
      else if (kind === 'selector') context.go({ ...none, compare: kind, base_selector: selector.value.trim() });
      else if (span.value === 'own') context.go({ ...none, compare: null, base_from: from.value.trim(), base_to: to.value.trim() });
      else if (SPANS[span.value][1]) {
        const range = CairnTimes.resolveRange(now(), Date.now()), back = SPANS[span.value][1];
        context.go({ ...none, compare: null, base_from: CairnTimes.toIso(range.from - back), base_to: CairnTimes.toIso(range.to - back) });
      } else context.go({ ...none, compare: null });
    });
    return {
      parts: [chip, panel],
      async show(selection, signal) {
        compare.value = ['label', 'selector'].includes(selection.compare) ? selection.compare : 'time';
        span.value = selection.base_from ? 'own' : 'previous';
        from.value = selection.base_from || '';
        to.value = selection.base_to || '';
        selector.value = selection.base_selector || '';
        chip.textContent = 'Sides: ' + CairnNames.display(sidesText(selection, Date.now()), 80);
        show();
        if (compare.value === 'label') await quiet(loadLabels(signal));
      },
    };
  }

  // The labels whose values are probably builds, or parts of the system, most likely first.
  const LIKELY = ['version', 'service_version', 'build', CairnDeploys.BUILD_LABEL, 'service_name', 'host', 'comm'];

  // What can be compared instead, if a side has no samples. builds: { label, values } of the time range, or with `from` of
  // the time since then.
  function suggest(selection, builds, now) {
    const { from, to } = CairnTimes.resolveRange(selection, now), own = { compare: null, base_selector: null, label: null, before: null, after: null };
    const back = ms => ({ ...own, base_from: CairnTimes.toIso(from - ms), base_to: CairnTimes.toIso(to - ms) });
    const [before, after] = builds.values.slice(-2), byLabel = { ...own, base_from: null, base_to: null, compare: 'label', label: builds.label, before, after, ...(builds.from && { from: builds.from, to: 'now' }) };
    return [{ text: 'A day earlier', change: back(DAY_MS) }, { text: 'A week earlier', change: back(7 * DAY_MS) },
      ...(after ? [{ text: CairnNames.label(`${builds.label} ${before} → ${after}`) + (builds.from ? ', last 7 days' : ''), change: byLabel }] : [])];
  }

  function create(root, context) {
    let current = {}, graphs = [], kind = '', about = { unit: '', totals: [1, 1], absolute: false };
    const actions = CairnActions.create(context, () => current), links = CairnActions.links(context, () => current);
    const views = Object.entries(SHOWN).map(([value, textContent]) => make('button', { type: 'button', textContent, onclick: () => context.go({ shown: value }) }));
    const scale = choice('Scale', SCALES), note = make('span', { className: 'soft totals', role: 'status' });
    const alone = ['Baseline alone', 'Comparison alone'].map((textContent, i) => make('button', { type: 'button', textContent, onclick: () => showAlone(i) }));
    const chooser = context.offline ? null : makeChooser(context, () => current, alone);
    const empty = make('div', { className: 'empty', hidden: true, role: 'status' });
    const graph = make('div', { className: 'flame' }), halvesBox = make('div', { className: 'sides', hidden: true }), box = make('div', { className: 'table-box', hidden: true });
    const halves = ['Before', 'After'].map(textContent => {
      const inner = make('div', { className: 'flame' });
      halvesBox.append(make('section', { className: 'part' }, make('h2', { textContent }), inner));
      return inner;
    });
    root.append(...[make('div', { className: 'bar' }, ...(chooser ? chooser.parts : []), make('div', { className: 'segments', role: 'group', 'aria-label': 'How to compare' }, ...views), scale, note), empty, graph, halvesBox, box].filter(Boolean));
    scale.onchange = () => context.go({ scale: scale.value === 'shares' ? null : scale.value });

    function showAlone(side) {
      const p = makeParams(current, Date.now()), base = { selector: p.base_selector === undefined ? p.selector : p.base_selector, from: p.base_from, to: p.base_to };
      const { selector, from, to } = side ? p : base;
      context.go({ view: 'flame', selector, from, to });
    }

    // Each cost as it is, or as a share of the total of its side; changes are sorted by their size.
    const cost = (key, side) => r => about.absolute ? formatValue(r[key], about.unit) : percent(r[key], about.totals[side]);
    const change = key => r => {
      const [a, b] = [r[key], r[key + '_after']], [x, y] = [a / (about.totals[0] || 1), b / (about.totals[1] || 1)];
      const text = about.absolute ? changeText(a, b, about.unit) : pointsText(x, y), rises = about.absolute ? b > a : y > x;
      return text === '0' ? text : (rises ? '▲ ' : '▼ ') + text;
    };
    const column = (title, key, width, text, more) => ({ title, key, number: true, width, text, ...more });
    const table = CairnTable.create(box, [
      column('Change of self', 'self_size', 12, change('flat')), column('Change of total', 'total_size', 12, change('cumulative'), { wide: true }),
      column('Self before', 'flat', 7.6, cost('flat', 0), { wide: true }), column('Self after', 'flat_after', 7.2, cost('flat_after', 1), { wide: true }),
      column('Total before', 'cumulative', 8, cost('cumulative', 0), { wide: true }), column('Total after', 'cumulative_after', 7.6, cost('cumulative_after', 1), { wide: true }),
      ...CairnTable.nameColumns(CairnActions.sourceOf(context, () => current)),
    ], { caption: 'Largest changes', sort: 'self_size', filter: ['function', 'file', 'object', 'short_name'], open: row => actions.sandwich(row.function), menu: CairnTopView.menuOf(actions, links), keep: context.keep });

    function putTable(rows) {
      const size = (r, key) => Math.abs(about.absolute ? r[key + '_after'] - r[key] : r[key + '_after'] / (about.totals[1] || 1) - r[key] / (about.totals[0] || 1));
      table.show(rows.map(r => ({ ...r, self_size: size(r, 'flat'), total_size: size(r, 'cumulative') })));
      table.restore(current);
    }
    // Builds of the range, or if there are not two, of the last week.
    async function findBuilds(selection, signal) {
      const builds = await listBuilds(selection, signal);
      if (builds.values.length > 1) return builds;
      const from = 'now-7d', older = await listBuilds({ ...selection, from, to: 'now' }, signal);
      return older.values.length > 1 ? { ...older, from } : builds;
    }
    async function listBuilds({ from, to, selector }, signal) {
      const all = await context.api.query('labels', { from, to }, signal), label = LIKELY.slice(0, 3).find(l => all.includes(l));
      return { label, values: label ? await context.api.query('label/' + encodeURIComponent(label) + '/values', { selector, from, to, limit: 1000 }, signal) : [] };
    }
    // In place of a comparison with nothing: what else to compare with.
    async function putEmpty(selection, [before, after], signal) {
      empty.hidden = !before && !after;
      if (empty.hidden) return;
      const text = before && after ? 'Neither side has samples.' : before ? 'The baseline has no samples, so there is nothing to compare with.' : 'The side after has no samples.';
      const choices = context.offline ? [] : suggest(selection, await findBuilds(selection, signal), Date.now());
      empty.replaceChildren(make('p', { textContent: text }), ...choices.map(c => make('button', { type: 'button', textContent: c.text, onclick: () => context.go(c.change) })));
    }
    function putGraphs(data, wanted) {
      const datas = wanted === 'sides' ? [0, 1].map(side => CairnChange.takeSide(data, side)) : [data];
      if (kind === wanted) datas.forEach((d, i) => graphs[i].setData(d));
      else {
        for (const g of graphs) g.destroy();
        graphs = datas.map((d, i) => CairnFlame.create(wanted === 'sides' ? halves[i] : graph, d,
          { actions, links, keep: wanted === 'merged' ? context.keep : undefined, small: wanted === 'sides', label: wanted === 'sides' ? `Flame graph ${['before', 'after'][i]}` : 'Flame graph of both' }));
        kind = wanted;
      }
      if (wanted === 'merged') graphs[0].restore(current);
    }

    return {
      async show(selection, signal) {
        const wanted = SHOWN[selection.shown] ? selection.shown : 'merged', absolute = selection.scale === 'values', params = makeParams(selection, Date.now());
        current = selection;
        views.forEach((b, i) => b.setAttribute('aria-pressed', Object.keys(SHOWN)[i] === wanted));
        scale.value = absolute ? 'values' : 'shares';
        const chosen = chooser ? chooser.show(selection, signal) : null;
        let sides, rows = null;
        if (wanted === 'table' && !context.offline) {
          const json = await context.api.query('diff', { ...params, view: 'top', compare: absolute ? 'values' : 'shares', limit: CairnTable.ROWS_MAX }, signal);
          sides = ['', '_after'].map(suffix => CairnLayout.sideOf(json, '', suffix));
          about = { unit: json.unit, totals: sides.map(s => s.total), absolute };
          rows = json.rows;
          context.about('');
        } else {
          const data = CairnLayout.parse(await context.api.query('diff', params, signal));
          data.absolute = absolute;
          CairnLayout.place(data);
          sides = data.sides;
          about = { unit: data.unit, totals: [data.total[0], data.total2[0]], absolute };
          context.about(CairnLayout.about(data));
          graph.hidden = wanted !== 'merged';
          halvesBox.hidden = wanted !== 'sides';
          if (wanted === 'table') rows = CairnTable.topRows(data);
          else putGraphs(data, wanted);
        }
        const isEmpty = sides.map(s => !s.samples);
        if (rows) putTable(rows);
        graph.hidden = wanted !== 'merged' || (isEmpty[0] && isEmpty[1]);
        halvesBox.hidden = wanted !== 'sides';
        box.hidden = wanted !== 'table' || isEmpty[0] || isEmpty[1];
        await putEmpty(selection, isEmpty, signal);
        note.textContent = isEmpty[0] || isEmpty[1] ? '' :
          sides.map((s, i) => `${['before', 'after'][i]} ${formatValue(s.total, about.unit)} (${CairnLayout.countText(s)})`).join(', ');
        if (chosen) await chosen;
      },
      destroy() { for (const g of graphs) g.destroy(); },
    };
  }

  return { create, addMatcher, makeParams, suggest, sidesText };
})();
