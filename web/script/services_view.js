// SPDX-License-Identifier: Apache-2.0
//
// The services, or the values of the labels of `by`: cost, share, trend, change against the range before or the time before
// the last deploy (against=deploy), share in named functions. A row leads to its flame graph and to the comparison with the
// version before; two ticked rows are compared.
'use strict';
const CairnServicesView = (() => {
  const { make } = CairnDom, { formatValue, percent, isCores, coresText } = CairnUnits;
  const SVG = 'http://www.w3.org/2000/svg', SPARK_WIDTH = 120, SPARK_HEIGHT = 22;
  const NO_COMPARISON = { compare: null, base_selector: null, base_from: null, base_to: null, label: null, before: null, after: null };

  const nameOf = row => row.labels ? CairnNames.label(Object.values(row.labels).map(v => v || '(none)').join(', ')) : 'all others';
  // The selector of a row's samples.
  const selectorOf = (row, selector) => CairnSelectorText.withLabels(selector, row.labels);

  // Cost per second of both sides; an average of snapshots is one already.
  function ratesOf(row, answer) {
    if (answer.aggregation === 'average') return [row.value_before, row.value];
    return [1000 * row.value_before / (answer.base_to_ms - answer.base_from_ms), 1000 * row.value / (answer.to_ms - answer.from_ms)];
  }
  function costText(row, answer) {
    if (!isCores(answer)) return formatValue(row.value, answer.unit);
    return coresText(ratesOf(row, answer)[1], answer.unit, 1000);
  }
  // The same with the last version in the range, and with the one before it, from its first samples on; undefined if there
  // was no deploy in the range.
  function deployRatesOf(row, answer) {
    const { before, now } = CairnDeploys.findLast(row.versions), { first_ms, step_ms } = answer;
    if (!before || now.first_ms <= answer.from_ms) return undefined;
    const sums = [0, 0], lengths = [0, 0];
    row.points.forEach((value, i) => {
      const at = first_ms + i * step_ms, side = at >= now.first_ms ? 1 : 0, length = Math.min(at + step_ms, answer.to_ms) - Math.max(at, answer.from_ms);
      if (at + step_ms <= before.first_ms || (answer.aggregation === 'average' && !value)) return;
      sums[side] += value;
      lengths[side] += answer.aggregation === 'average' ? 1 : length / 1000;
    });
    return sums.map((sum, side) => lengths[side] > 0 ? sum / lengths[side] : 0);
  }
  function changeOf(row, answer, against) {
    const rates = against === 'deploy' ? deployRatesOf(row, answer) : ratesOf(row, answer);
    if (!rates) return { change: 0, text: '' };
    const [before, now] = rates;
    if (!(before > 0)) return now > 0 ? { change: Infinity, text: 'new' } : { change: 0, text: '' };
    const change = (now - before) / before;
    return { change, text: now > 0 ? `${change >= 0.0005 ? '▲ +' : change <= -0.0005 ? '▼ ' : ''}${(100 * change).toFixed(1).replace('-0.0', '0.0')}%` : 'gone' };
  }

  // What the flame graph of a row is compared with: the version or build before, if one was seen, else the range before.
  function comparisonOf(row, answer, selection) {
    const change = { ...NO_COMPARISON, view: 'diff', shown: 'table', by: null, selector: selectorOf(row, selection.selector) };
    const { before, now } = CairnDeploys.findLast(row.versions);
    if (!before || before.label !== now.label) return { text: 'the time before', change };
    const isInside = before.last_ms > answer.from_ms;
    return { text: CairnNames.label(CairnDeploys.textOf(before)), change: { ...change, compare: 'label', label: now.label, before: before.value, after: now.value,
      ...(isInside ? {} : { from: CairnTimes.toIso(answer.base_from_ms), to: CairnTimes.toIso(answer.to_ms) }) } };
  }
  // Two rows, the second as the side after.
  const comparisonOfTwo = ([before, after], selection) => ({ ...NO_COMPARISON, view: 'diff', shown: 'table', by: null, compare: 'selector',
    base_selector: `{${selectorOf(before, selection.selector)}}`, selector: selectorOf(after, selection.selector) });

  function makeSpark(points) {
    const svg = document.createElementNS(SVG, 'svg'), line = document.createElementNS(SVG, 'polyline'), max = Math.max(1, ...points);
    const step = SPARK_WIDTH / Math.max(1, points.length - 1);
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`, class: 'spark', 'aria-hidden': 'true', preserveAspectRatio: 'none' })) svg.setAttribute(name, value);
    line.setAttribute('points', points.map((v, i) => `${(i * step).toFixed(1)},${(SPARK_HEIGHT - 1 - Math.max(0, v) / max * (SPARK_HEIGHT - 2)).toFixed(1)}`).join(' '));
    svg.append(line);
    return svg;
  }
  function makeShare(row, answer) {
    const bar = make('i', { 'aria-hidden': 'true' });
    bar.style.width = (answer.total > 0 ? Math.max(0, Math.min(100, 100 * row.value / answer.total)) : 0) + '%';
    return make('span', { className: 'share' }, percent(row.value, answer.total), bar);
  }

  function create(root, context) {
    let selection = {}, answer = null, ticked = [], table = null, kind = '';
    const both = make('button', { type: 'button', textContent: 'Compare the two ticked', disabled: true, onclick: () => context.go(comparisonOfTwo(ticked, selection)) });
    const note = make('span', { className: 'soft', role: 'status' });
    const against = make('select', {}, new Option('the range before', ''), new Option('before the last deploy', 'deploy'));
    against.onchange = () => context.go({ against: against.value });
    const bar = make('div', { className: 'bar' }, both, make('label', {}, 'Change against ', against), note), box = make('div', { className: 'services' });
    root.classList.add('panel');
    root.append(bar, box);

    function tick(row, isTicked) {
      ticked = ticked.filter(r => r !== row);
      if (isTicked) ticked.push(row);
      both.disabled = ticked.length !== 2;
    }
    const tickBox = row => row.labels ? make('input', { type: 'checkbox', className: 'tick', 'aria-label': `Tick ${nameOf(row)}`, checked: ticked.includes(row),
      onchange: event => tick(row, event.currentTarget.checked) }) : '';
    const nameButton = row => row.labels ? make('button', { type: 'button', className: 'link mono', textContent: nameOf(row), title: 'Its flame graph',
      onclick: () => context.go({ view: 'flame', by: null, selector: selectorOf(row, selection.selector) }) }) : make('span', { textContent: 'all others' });
    function compareButton(row) {
      if (!row.labels) return '';
      const { text, change } = comparisonOf(row, answer, selection);
      return make('button', { type: 'button', textContent: `Compare with ${text}`, 'aria-label': `Compare with ${text}: ${nameOf(row)}`, onclick: () => context.go(change) });
    }
    const versionText = row => {
      const { before, now } = CairnDeploys.findLast(row.versions);
      return [before, now].filter(Boolean).map(CairnDeploys.textOf).join(' → ');
    };

    // The titles depend on the labels and the type.
    function makeTable(title, cost) {
      box.replaceChildren();
      table = CairnRecordTable.create(box, [
        { title: 'Tick', node: tickBox, key: 'ticked' },
        { title, key: 'name', node: nameButton },
        { title: cost, key: 'value', number: true, text: row => costText(row, answer), explain: cost === 'Cores' ? 'CPU cores in use, on average over the range' : '' },
        { title: 'Share', key: 'value', number: true, node: row => makeShare(row, answer) },
        { title: 'Trend', key: 'trend', node: row => makeSpark(row.points) },
        { title: 'Change', key: 'change', number: true, text: row => row.change_text, explain: 'Of the cost per second, against what is chosen above' },
        { title: 'Named', key: 'named_share', number: true, text: row => row.value > 0 ? percent(row.named, row.value) : '', explain: 'Cost in functions with a name' },
        { title: CairnUnits.samplesTitle(answer), key: 'samples', number: true, text: row => row.samples.toLocaleString('en') },
        { title: 'Version', key: 'version', className: 'mono', text: versionText },
        { title: 'Comparison', key: 'compared', node: compareButton },
      ], { caption: title, sort: 'value', filter: row => [row.name, row.version], thing: 'row', things: 'rows', empty: 'No samples here.', keep: context.keep });
    }

    return {
      async show(next, signal) {
        const json = await context.api.query('services', { ...CairnSelection.params(next), ...CairnFilters.params(next), by: next.by, groups: 1000 }, signal);
        if (signal.aborted) return;
        const isLanding = /^#?$/.test(location.hash);
        if (isLanding && json.rows.length < 2) { context.go({ view: 'flame' }, true); return; }
        selection = next;
        answer = json;
        ticked = [];
        both.disabled = true;
        const title = next.by || 'service_name', cost = isCores(json) ? 'Cores' : 'Cost', wanted = [title, cost, CairnUnits.samplesTitle(json)].join('\n');
        if (kind !== wanted) makeTable(title, cost);
        kind = wanted;
        table.show(json.rows.map(row => {
          const { change, text } = changeOf(row, json, next.against);
          return { ...row, name: nameOf(row), change, change_text: text, named_share: row.value > 0 ? row.named / row.value : 0, version: versionText(row) };
        }));
        table.restore(next);
        against.value = next.against === 'deploy' ? 'deploy' : '';
        note.textContent = `${percent(json.named, json.total)} of the cost has names. ` + (against.value ? 'Changes are since the last deploy in the range, against the version before.' :
          `Changes are against ${CairnTimes.toText(json.base_from_ms)} – ${CairnTimes.toText(json.base_to_ms)}.`);
        context.about(CairnLayout.about({ type: json.type, unit: json.unit, sides: [CairnLayout.sideOf(json, next.selector)] }));
      },
      destroy() {},
    };
  }

  return { create, changeOf, comparisonOf, costText };
})();
