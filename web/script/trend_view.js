// SPDX-License-Identifier: Apache-2.0
//
// The cost of one function over time, itself and with what it calls, with the deploys. Trends are by the hour, so a range
// of less than a day is extended to a week. Keys of the selection:
//   function, file   the name, and the file of one of several functions with it
//   scale            shares (default) of the cost of the selection, or values
'use strict';
const CairnTrendView = (() => {
  const { make } = CairnDom, { isCores, formatValue, coresText, percent, things } = CairnUnits, { display, label, wholePattern } = CairnNames;
  const HOUR_MS = 3600e3, DAY_MS = 24 * HOUR_MS, WEEK_MS = 7 * DAY_MS, FUNCTIONS_MAX = 50, PAGE = 24;
  const COLOURS = { light: ['#c05a00', '#0b6e8a'], dark: ['#f0a860', '#58b7d1'] };
  const SCALES = { shares: 'Share of the selection', values: 'Cost' };

  function rangeOf(selection, now) {
    const { from, to } = CairnTimes.resolveRange(selection, now);
    return { from: to - from < DAY_MS ? to - WEEK_MS : from, to };
  }
  // The points of a series with what they are shares of, the latest first: { time_ms, self, total, samples, all }. Steps
  // without samples of any function tell nothing and are left out.
  const rowsOf = (series, all) => series.points.map(([time_ms, self, total, samples], i) => ({ time_ms, self, total, samples, all: all[i][1] })).filter((_, i) => all[i][2]).reverse();
  const shareOf = (value, all) => all > 0 ? 100 * value / all : 0;

  function create(root, context) {
    let current = {}, answer = null, series = null, rows = [], deploys = [], chart = null;
    const hints = make('datalist', { id: 'trend-functions' });
    const input = make('input', { className: 'mono', size: 40, list: 'trend-functions', spellcheck: false, autocomplete: 'off' });
    const files = make('select', { 'aria-label': 'File', hidden: true, onchange: () => context.go({ file: files.value }) });
    const form = make('form', { className: 'bar' }, make('label', {}, 'Function ', input), hints, make('button', { type: 'submit', textContent: 'Show function' }), files);
    const title = make('h2', { className: 'mono name' }), note = make('p', { className: 'soft', role: 'status' });
    const ways = Object.entries(SCALES).map(([value, textContent]) => make('button', { type: 'button', textContent, onclick: () => context.go({ scale: value === 'shares' ? null : value }) }));
    const calls = make('button', { type: 'button', textContent: 'Show callers and callees', onclick: () => context.go({ view: 'sandwich', function: series.function }) });
    const bar = make('div', { className: 'bar' }, make('div', { className: 'segments', role: 'group', 'aria-label': 'Scale' }, ...ways), calls);
    const swatches = ['self', 'in what it calls'].map(text => [make('i', { className: 'swatch', 'aria-hidden': 'true' }), text]);
    const legend = make('div', { className: 'bar legend' }, ...swatches.map(parts => make('span', {}, ...parts)));
    const readout = make('p', { className: 'soft readout chart-foot', role: 'status' });
    const body = make('div', { className: 'trend-chart' }), whole = make('section', { hidden: true, className: 'trend' }, bar, body, legend, readout), box = make('div', { className: 'changes', hidden: true });
    root.classList.add('panel');
    root.append(form, make('div', { className: 'sandwich-title' }, title, note), whole, box);
    form.addEventListener('submit', event => {
      event.preventDefault();
      context.go({ function: input.value.trim(), file: null });
    });

    const costText = value => isCores(answer) ? coresText(value, answer.unit, answer.step_ms) : formatValue(value, answer.unit);
    const shareText = (value, all) => all > 0 ? percent(value, all) : '';
    const cost = key => r => costText(r[key]), share = key => r => shareText(r[key], r.all);
    const table = CairnRecordTable.create(box, [
      { title: 'From', key: 'time_ms', number: true, text: r => CairnTimes.toText(r.time_ms).slice(0, 16) },
      { title: 'Self', key: 'self', number: true, text: cost('self'), explain: 'In the function itself: of CPU time, cores' },
      { title: 'Self %', key: 'self_share', number: true, text: share('self') },
      { title: 'Total', key: 'total', number: true, text: cost('total'), explain: 'With what it calls: of CPU time, cores' },
      { title: 'Total %', key: 'total_share', number: true, text: share('total') },
      { title: 'Samples', key: 'samples', number: true, text: r => r.samples.toLocaleString('en') },
      { title: 'Deploy', key: 'deploy' },
    ], { caption: 'Steps of the trend', sort: 'time_ms', thing: 'step', things: 'steps', page: PAGE, empty: 'No samples.', keep: context.keep });

    function draw() {
      if (!series) return;
      const byShare = current.scale !== 'values', colours = COLOURS[CairnTheme.isDark() ? 'dark' : 'light'];
      const values = answer.all.map(([ms, all, samples], i) => {
        const [, self, total] = series.points[i], shown = byShare ? [shareOf(self, all), shareOf(total, all)] : [self, total];
        return [[ms, shown[0], samples], [ms, shown[1] - shown[0], samples]];
      });
      const max = Math.max(...values.map(([a, b]) => a[1] + b[1]));
      swatches.forEach(([swatch], i) => { swatch.style.background = colours[i]; });
      chart.show({ unit: answer.unit, step_ms: answer.step_ms, average: byShare, is_cores: !byShare && isCores(answer), format: byShare ? v => v.toFixed(2) + '%' : null, deploys,
        max: max > 0 ? max : 1, groups: ['self', 'in what it calls'].map((name, k) => ({ name, colour: colours[k], points: values.map(v => v[k]) })) });
    }
    addEventListener('cairn-theme', draw);

    // Without a function: the most expensive one.
    async function loadNames(selection, signal) {
      const top = await context.api.query('top', { ...CairnSelection.params(selection), limit: 200 }, signal);
      const names = top.rows.filter(r => r.kind !== 'unresolved').map(r => r.function);
      hints.replaceChildren(...names.filter(n => n.length < 400).map(value => make('option', { value })));
      return names;
    }
    async function choose(selection, signal) {
      const names = loadNames(selection, signal);
      if (!selection.function) return (await names)[0] || '';
      names.catch(() => {}); // hints only
      return selection.function;
    }
    function chooseSeries(file) {
      series = answer.series.find(s => s.file === file) || answer.series[0] || null;
      files.hidden = answer.series.length < 2;
      files.replaceChildren(...answer.series.map(s => new Option(label(s.file) || '(unknown file)', s.file)));
      if (series) files.value = series.file;
    }
    const deployAt = ms => deploys.filter(d => d.ms >= ms && d.ms < ms + answer.step_ms).map(d => d.text).join(', ');

    return {
      async show(selection, signal) {
        const range = rangeOf(selection, Date.now()), params = { selector: selection.selector, type: selection.type, from: CairnTimes.toIso(range.from), to: CairnTimes.toIso(range.to) };
        const name = await choose(selection, signal);
        if (signal.aborted) return;
        const json = name ? await context.api.query('trend', { ...params, function: wholePattern(name), limit: FUNCTIONS_MAX }, signal) : null;
        if (signal.aborted) return;
        const seen = json && json.series.length ? await context.api.query('series', { ...params, versions: 1, step: json.step_ms === HOUR_MS ? '1h' : null }, signal) : null;
        if (signal.aborted) return;
        current = selection;
        answer = json;
        input.value = name;
        title.textContent = display(name);
        series = null;
        files.hidden = true;
        if (json) chooseSeries(selection.file);
        whole.hidden = box.hidden = !series;
        context.about('');
        if (!series) {
          note.textContent = name ? 'No hour of this time has samples of a function with this name.' : 'No samples here. Try a longer time range or another selector.';
          return;
        }
        title.textContent = display(series.function);
        const all = json.all.reduce((sum, p) => sum + p[1], 0);
        note.textContent = `self ${percent(series.self, all)}, total ${percent(series.total, all)} of the cost since ${CairnTimes.toText(json.all[0][0]).slice(0, 16)}, in ${things(series.samples, 'sample')}` +
          (series.file ? ` — ${display(series.file, 200)}` : '');
        ways.forEach((b, i) => b.setAttribute('aria-pressed', (Object.keys(SCALES)[i] === 'values') === (selection.scale === 'values')));
        deploys = CairnDeploys.list(seen.versions);
        rows = rowsOf(series, json.all).map(r => ({ ...r, self_share: shareOf(r.self, r.all), total_share: shareOf(r.total, r.all), deploy: deployAt(r.time_ms) }));
        table.show(rows);
        table.restore(selection);
        if (!chart) {
          chart = CairnChart.create({ label: 'Cost of the function over time', onRange: (from, to) => context.go({ from: CairnTimes.toIso(from), to: CairnTimes.toIso(to) }),
            onHover: text => { readout.textContent = text; } });
          body.append(chart.element);
        }
        draw();
      },
      destroy() { if (chart) chart.destroy(); },
    };
  }

  return { create };
})();
