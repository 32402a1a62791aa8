// SPDX-License-Identifier: Apache-2.0
//
// Two selections compared: in one flame graph, side by side, or as a table of the largest changes. Keys of the
// selection:
//   compare        the difference of the sides: time (default), label, or selector
//   base_from, base_to, base_selector   the side before; by default the range just before the selected one
//   label, before, after   with compare=label: the label and its value on each side
//   shown          merged (default), sides or table
//   scale          shares (default): scaled to equal totals; values: unscaled
'use strict';
const CairnDiffView = (() => {
  const { make } = CairnDom, { formatValue, percent } = CairnUnits;
  const DAY_MS = 86400e3;
  const SHOWN = { merged: 'Merged', sides: 'Side by side', table: 'Largest changes' };
  const SCALES = { shares: 'Shares of the total', values: 'Values as they are' };
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

  // The bar in which the two sides are chosen.
  function makeChooser(context, now) {
    const compare = choice('Compare by', { time: 'Time', label: 'Label or build', selector: 'Selector' });
    const span = choice('Range before', Object.fromEntries(Object.entries(SPANS).map(([k, [text]]) => [k, text])));
    const from = field(20, 'from', 'Before, from'), to = field(20, 'to', 'Before, to'), selector = field(30, '{version="1"}', 'Before, selector');
    const name = make('select', { 'aria-label': 'Label' }), before = make('select', { 'aria-label': 'Value before' }), after = make('select', { 'aria-label': 'Value after' });
    const times = make('span', { className: 'bar' }, span, from, to), labels = make('span', { className: 'bar' }, name, ' before ', before, ' after ', after);
    const bar = make('form', { className: 'bar' }, make('label', {}, 'Compare by ', compare), times, labels, selector, make('button', { type: 'submit', textContent: 'Compare' }));
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
      const likely = ['version', 'service_version', 'service.version', 'build', 'service_name', 'service.name', 'host', 'comm'].filter(l => all.includes(l));
      fill(name, all, now().label || likely[0]);
      await loadValues(signal);
    }
    async function loadValues(signal) {
      if (!name.value) return;
      const { from, to, selector: chosen } = now();
      const values = await context.api.query('label/' + encodeURIComponent(name.value) + '/values', { selector: chosen, from, to, limit: 1000 }, signal);
      fill(before, values, now().before);
      fill(after, values, now().after || values[values.length - 1]);
    }
    const quiet = promise => promise.catch(() => {}); // the following request reports the error
    compare.onchange = () => { show(); if (compare.value === 'label') quiet(loadLabels()); };
    span.onchange = show;
    name.onchange = () => quiet(loadValues());
    bar.addEventListener('submit', event => {
      const none = { base_from: null, base_to: null, base_selector: null, label: null, before: null, after: null }, kind = compare.value;
      event.preventDefault();
      if (kind === 'label') context.go({ ...none, compare: kind, label: name.value, before: before.value, after: after.value });
      else if (kind === 'selector') context.go({ ...none, compare: kind, base_selector: selector.value.trim() });
      else if (span.value === 'own') context.go({ ...none, compare: null, base_from: from.value.trim(), base_to: to.value.trim() });
      else if (SPANS[span.value][1]) {
        const range = CairnTimes.resolveRange(now(), Date.now()), back = SPANS[span.value][1];
        context.go({ ...none, compare: null, base_from: CairnTimes.toIso(range.from - back), base_to: CairnTimes.toIso(range.to - back) });
      } else context.go({ ...none, compare: null });
    });
    return {
      bar,
      async show(selection, signal) {
        compare.value = ['label', 'selector'].includes(selection.compare) ? selection.compare : 'time';
        span.value = selection.base_from ? 'own' : 'previous';
        from.value = selection.base_from || '';
        to.value = selection.base_to || '';
        selector.value = selection.base_selector || '';
        show();
        if (compare.value === 'label') await quiet(loadLabels(signal));
      },
    };
  }

  // Rows of the table of changes, computed from a diff's tree for the page without a service.
  function changeRows(d) {
    const scale = d.absolute || !d.total[0] ? 1 : d.total2[0] / d.total[0];
    return CairnTable.topRows(d).map(r => ({ ...r, flat: r.flat * scale, cumulative: r.cumulative * scale }));
  }

  function create(root, context) {
    let current = {}, graphs = [], kind = '', about = { unit: '', total: 1 };
    const filters = CairnFilters.create(root, context.go), actions = CairnActions.create(context, () => current), links = CairnActions.links(context, () => current);
    const chooser = context.offline ? null : makeChooser(context, () => current);
    const views = Object.entries(SHOWN).map(([value, textContent]) => make('button', { type: 'button', textContent, onclick: () => context.go({ shown: value }) }));
    const scale = choice('Scale', SCALES), note = make('span', { className: 'soft', role: 'status' });
    const alone = ['before', 'after'].map((side, i) => make('button', { type: 'button', textContent: `Only ${side}`, onclick: () => showAlone(i) }));
    const graph = make('div', { className: 'flame' }), sides = make('div', { className: 'sides', hidden: true }), box = make('div', { className: 'table-box', hidden: true });
    const halves = ['Before', 'After'].map(textContent => {
      const inner = make('div', { className: 'flame' });
      sides.append(make('section', { className: 'part' }, make('h2', { textContent }), inner));
      return inner;
    });
    root.append(...[chooser && chooser.bar, make('div', { className: 'bar' }, make('div', { className: 'bar', role: 'group', 'aria-label': 'How to compare' }, ...views), scale,
      ...(context.offline ? [] : alone), note), graph, sides, box].filter(Boolean));
    scale.onchange = () => context.go({ scale: scale.value === 'shares' ? null : scale.value });

    function showAlone(side) {
      const p = makeParams(current, Date.now()), base = { selector: p.base_selector === undefined ? p.selector : p.base_selector, from: p.base_from, to: p.base_to };
      const { selector, from, to } = side ? p : base;
      context.go({ view: 'flame', selector, from, to });
    }

    const value = key => r => formatValue(r[key], about.unit);
    const table = CairnTable.create(box, [
      { title: 'Change', key: 'change', number: true, width: 9, text: r => (r.change > 0 ? '▲ +' : r.change < 0 ? '▼ ' : '') + formatValue(r.change, about.unit), explain: 'Of self' },
      { title: 'Size %', key: 'size', number: true, wide: true, width: 5.9, text: r => percent(r.size, about.total), explain: 'Of the change, as a part of the total after' },
      { title: 'Relative', key: 'relative', number: true, width: 7, text: r => Number.isFinite(r.relative) ? (r.relative > 0 ? '+' : '') + (100 * r.relative).toFixed(1) + '%' : 'new' },
      { title: 'Self before', key: 'flat', number: true, wide: true, width: 8.4, text: value('flat') }, { title: 'Self after', key: 'flat_after', number: true, wide: true, width: 7.6, text: value('flat_after') },
      { title: 'Total before', key: 'cumulative', number: true, wide: true, width: 8.8, text: value('cumulative') }, { title: 'Total after', key: 'cumulative_after', number: true, wide: true, width: 8, text: value('cumulative_after') },
      ...CairnTable.nameColumns(CairnActions.sourceOf(context, () => current)),
    ], { caption: 'Largest changes', sort: 'size', filter: ['function', 'file', 'object', 'short_name'], open: row => actions.sandwich(row.function), menu: CairnTopView.menuOf(actions, links) });

    function putTable(rows, unit, total) {
      about = { unit, total };
      table.show(rows.map(r => {
        const change = r.flat_after - r.flat;
        return { ...r, change, size: Math.abs(change), relative: r.flat ? change / r.flat : change ? Infinity : 0 };
      }));
    }
    function putGraphs(data, wanted) {
      const datas = wanted === 'sides' ? [0, 1].map(side => CairnChange.takeSide(data, side)) : [data];
      if (kind === wanted) datas.forEach((d, i) => graphs[i].setData(d));
      else {
        for (const g of graphs) g.destroy();
        graphs = datas.map((d, i) => CairnFlame.create(wanted === 'sides' ? halves[i] : graph, d,
          { actions, links, small: wanted === 'sides', label: wanted === 'sides' ? `Flame graph ${['before', 'after'][i]}` : 'Flame graph of both' }));
        kind = wanted;
      }
    }

    return {
      async show(selection, signal) {
        const wanted = SHOWN[selection.shown] ? selection.shown : 'merged', absolute = selection.scale === 'values', params = makeParams(selection, Date.now());
        current = selection;
        filters.show(selection);
        views.forEach((b, i) => b.setAttribute('aria-pressed', Object.keys(SHOWN)[i] === wanted));
        scale.value = absolute ? 'values' : 'shares';
        const chosen = chooser ? chooser.show(selection, signal) : null;
        let sidesOf;
        if (wanted === 'table' && !context.offline) {
          const json = await context.api.query('diff', { ...params, view: 'top', relative: absolute ? 0 : 1, limit: CairnTable.ROWS_MAX }, signal);
          putTable(json.rows, json.unit, json.total_after);
          sidesOf = [[json.total / (json.base_scale || 1), json.samples], [json.total_after, json.samples_after], json];
          about.total = json.total_after || 1;
          context.about('');
        } else {
          const data = CairnLayout.parse(await context.api.query('diff', params, signal));
          data.absolute = absolute;
          CairnLayout.place(data);
          if (wanted === 'table') putTable(changeRows(data), data.unit, data.total2[0] || 1);
          sidesOf = [[data.sides[0].total, data.sides[0].samples], [data.sides[1].total, data.sides[1].samples], data];
          context.about(CairnLayout.about(data));
          graph.hidden = wanted !== 'merged';
          sides.hidden = wanted !== 'sides';
          if (wanted !== 'table') putGraphs(data, wanted);
        }
        graph.hidden = wanted !== 'merged';
        sides.hidden = wanted !== 'sides';
        box.hidden = wanted !== 'table';
        const [[a, m], [b, n], { unit }] = sidesOf, text = (v, samples) => `${formatValue(v, unit)} (${samples.toLocaleString('en')} samples)`;
        note.textContent = !m && !n ? 'Neither side has samples.' : !m ? 'The side before has no samples.' : !n ? 'The side after has no samples.' :
          `before ${text(a, m)}, after ${text(b, n)}`;
        if (chosen) await chosen;
      },
      destroy() { for (const g of graphs) g.destroy(); },
    };
  }

  return { create, addMatcher, makeParams };
})();
