// SPDX-License-Identifier: Apache-2.0
//
// Since when which functions cost more or less, by service, and the build or version that came then. Changes are found
// by the hour, so a short range is extended to a week. A row leads to the comparison of the time before and after, and
// to the trend of the function.
'use strict';
const CairnChangesView = (() => {
  const { make } = CairnDom, { isCores, formatValue, coresText, things } = CairnUnits;
  const WEEK_MS = 7 * 86400e3, DAY_MS = 86400e3, LIMIT = 1000;
  const STATES = { regression: 'costs more', improvement: 'costs less', went_away: 'went away', moved: 'moved', diluted: 'others changed', daily: 'every day' };

  // The range of the selection, at least a week.
  function rangeOf(selection, now) {
    const { from, to } = CairnTimes.resolveRange(selection, now);
    return { from: Math.min(from, to - WEEK_MS), to };
  }
  const share = value => value === null ? '' : value.toFixed(2) + '%';
  const changeText = row => row.change_percent === null ? 'new' : `${row.change_percent > 0 ? '▲ +' : '▼ '}${row.change_percent.toFixed(1)}%`;
  // The cost of the change: of CPU time as cores.
  function costText(row, answer) {
    const sign = row.cost_per_hour > 0 ? '+' : '−', size = Math.abs(row.cost_per_hour || 0);
    return isCores(answer) ? sign + coresText(size, answer.unit, 3600e3) : `${sign}${formatValue(Math.round(size), answer.unit)} an hour`;
  }
  function causeText(row) {
    const from = row.cause === 'build' ? row.build_before : null, build = row.build_after && row.build_after.slice(0, 8), parts = [];
    if (row.version_after) parts.push(`version ${row.version_before ? row.version_before + ' → ' : ''}${row.version_after}`);
    if (row.cause === 'build') parts.push(`build ${from ? from.slice(0, 8) + ' → ' : ''}${build}`);
    else if (build) parts.push(`build ${build} of another object`);
    return parts.join(', ') || 'no new build';
  }
  function stateText(row) {
    const text = STATES[row.state] || row.state;
    if (row.moved) return `${text} ${row.change_percent > 0 ? 'from' : 'to'} ${row.moved}`;
    return row.returned_ms > row.time_ms ? `${text} ${CairnTimes.toText(row.returned_ms)}` : text;
  }
  // The days before and after a change, of its service.
  const comparisonOf = (row, range, selector) => ({ view: 'diff', shown: 'table', by: null, compare: null, base_selector: null, label: null, before: null, after: null,
    selector: CairnSelectorText.withMatcher(selector || '', 'service_name', row.service_name),
    base_from: CairnTimes.toIso(Math.max(range.from, row.time_ms - DAY_MS)), base_to: CairnTimes.toIso(row.time_ms),
    from: CairnTimes.toIso(row.time_ms), to: CairnTimes.toIso(Math.min(range.to, row.time_ms + DAY_MS)) });

  const trendOf = (row, selector) => ({ view: 'trend', selector: CairnSelectorText.withMatcher(selector || '', 'service_name', row.service_name), function: row.function, file: row.file });

  function create(root, context) {
    let selection = {}, answer = null, range = {};
    const all = make('input', { type: 'checkbox', onchange: () => context.go({ all: all.checked ? '1' : null }) });
    const note = make('span', { className: 'soft', role: 'status' }), box = make('div', { className: 'changes' });
    root.classList.add('panel');
    root.append(make('div', { className: 'bar' }, make('label', {}, all, ' Show dismissed changes'), note), box);
    const compareButton = row => make('button', { type: 'button', textContent: 'Compare', 'aria-label': `Compare before and after: ${CairnNames.label(row.function)}`,
      onclick: () => context.go(comparisonOf(row, range, selection.selector)) });
    const table = CairnRecordTable.create(box, [
      { title: `Since (${CairnTimes.zoneText(Date.now())})`, key: 'time_ms', number: true, text: row => CairnTimes.toText(row.time_ms).slice(0, 16) },
      { title: 'Service', key: 'service_name', text: row => row.service_name || '(none)' },
      { title: 'Function', key: 'function', className: 'mono', node: row => make('button', { type: 'button', className: 'link mono', textContent: CairnNames.label(row.function), title: 'Its cost over time',
        onclick: () => context.go(trendOf(row, selection.selector)) }) },
      { title: 'Share before', key: 'percent_before', number: true, text: row => share(row.percent_before), explain: 'Self cost in the cost of the service' },
      { title: 'Share after', key: 'percent_after', number: true, text: row => share(row.percent_after) },
      { title: 'Change', key: 'change_percent', number: true, text: changeText, explain: 'Relative, as if only this function had changed' },
      { title: 'Cost change', key: 'cost_per_hour', number: true, text: row => costText(row, answer) },
      { title: 'What came', key: 'cause_text' },
      { title: 'State', key: 'state_text' },
      { title: 'Comparison', key: 'compared', node: compareButton },
    ], { caption: 'Changes', sort: 'cost_per_hour', filter: row => [row.service_name, row.function, row.file, row.cause_text, row.state_text],
      thing: 'change', things: 'changes', empty: 'No function changed by more than chance explains.', keep: context.keep });

    return {
      async show(next, signal) {
        range = rangeOf(next, Date.now());
        all.checked = next.all === '1';
        const json = await context.api.query('changes', { selector: next.selector, type: next.type, from: CairnTimes.toIso(range.from), to: CairnTimes.toIso(range.to),
          all: all.checked ? 1 : null, limit: LIMIT }, signal);
        if (signal.aborted) return;
        selection = next;
        answer = json;
        table.show(json.rows.map(row => ({ ...row, cause_text: causeText(row), state_text: stateText(row) })));
        table.restore(next);
        const none = json.counts.went_away + json.counts.moved + json.counts.diluted + json.counts.daily;
        note.textContent = `${things(json.tested, 'function')} of ${things(json.services, 'service')}, ` +
          `${CairnTimes.toText(json.from_ms).slice(0, 16)} – ${CairnTimes.toText(json.to_ms).slice(0, 16)}.` + (none && !all.checked ? ` ${things(none, 'was', 'were')} dismissed: ${none === 1 ? 'it' : 'they'} went away, moved, ${none === 1 ? 'is' : 'are'} daily, or ${none === 1 ? 'was' : 'were'} caused by others.` : '');
        context.about('');
      },
      destroy() {},
    };
  }

  return { create, comparisonOf };
})();
