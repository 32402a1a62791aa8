// SPDX-License-Identifier: Apache-2.0
//
// The cost over time: of the selection, or of the groups by a label, as one stacked chart or a chart for each.
'use strict';
const CairnSeries = (() => {
  const { make } = CairnDom;
  const GROUPS_SHOWN = 20;
  // Contrast of at least 3:1 against the page, different lightness; the same order in both themes.
  const COLOURS = {
    light: ['#0b6e8a', '#c05a00', '#6b3fa0', '#2f7d32', '#b3266b', '#7a6a00', '#3f51b5', '#8a4b2f'],
    dark: ['#58b7d1', '#f0a860', '#b79df0', '#7fcf8f', '#f08fb5', '#d9c75a', '#8fa4ff', '#d69a7a'],
  };
  const REST = { light: '#85888d', dark: '#868d96' };

  const colourOf = (i, isRest) => {
    const theme = CairnTheme.isDark() ? 'dark' : 'light';
    return isRest || i >= COLOURS[theme].length ? REST[theme] : COLOURS[theme][i];
  };
  const textOf = (group, grouped) => !grouped ? '' : group.labels ? valuesText(group.labels) : 'all others';
  const valuesText = labels => CairnNames.label(Object.values(labels).map(v => v || '(none)').join(', '));

  // context: api, go(change).
  function create(root, { api, go }) {
    const readout = make('span', { className: 'soft readout', role: 'status' });
    const stacked = make('button', { type: 'button', textContent: 'Stacked', onclick: () => go({ charts: null }) });
    const multiples = make('button', { type: 'button', textContent: 'Side by side', onclick: () => go({ charts: 'multiples' }) });
    const ways = make('div', { className: 'segments', role: 'group', 'aria-label': 'Charts', hidden: true }, stacked, multiples);
    const body = make('div', { className: 'charts' });
    const legend = make('ul', { className: 'group-legend', hidden: true, 'aria-label': 'Groups' });
    root.append(body, legend, make('div', { className: 'bar chart-foot' }, readout, make('span', { className: 'grow' }), ways));
    let shown = null, selection = {}, charts = [], kind = '', about = '';

    const onRange = (from, to) => go({ from: CairnTimes.toIso(from), to: CairnTimes.toIso(to) });
    const onHover = text => { readout.textContent = text || about; };
    const only = group => go({ by: null, selector: CairnSelectorText.withLabels(selection.selector, group.labels) });

    function addChart(label, data, small) {
      const chart = CairnChart.create({ label, small, onRange, onHover });
      chart.show(data);
      charts.push(chart);
      return chart.element;
    }
    const maxOf = groups => Math.max(1, ...groups[0].points.map((_, i) => groups.reduce((s, g) => s + g.points[i][1], 0)));

    // A button that selects only the group; the rest is plain text.
    function nameOf(group, i) {
      const swatch = make('i', { className: 'swatch', 'aria-hidden': 'true' });
      swatch.style.background = colourOf(i, !group.labels);
      const texts = [make('span', { className: 'mono group-name', textContent: group.labels ? valuesText(group.labels) : 'all others' }),
        make('span', { className: 'soft', textContent: CairnUnits.percent(group.total, shown.total) })];
      if (!group.labels) return make('span', { className: 'group' }, swatch, ...texts);
      const title = 'Only ' + Object.entries(group.labels).map(([n, v]) => `${n}="${v}"`).join(', ');
      return make('button', { type: 'button', className: 'group', title: CairnNames.label(title), onclick: () => only(group) }, swatch, ...texts);
    }

    function makeEmpty() {
      const range = CairnTimes.resolveRange(selection, Date.now()), day = 86400e3;
      const wider = range.to - range.from < day ? make('button', { type: 'button', textContent: 'Look at the last 24 hours', onclick: () => go({ from: 'now-1d', to: 'now' }) }) : null;
      const all = selection.selector ? make('button', { type: 'button', textContent: 'Look at all profiles', onclick: () => go({ selector: null }) }) : null;
      const hint = selection.selector ? null : make('p', { className: 'soft' }, 'Profiles come from ', make('code', { textContent: 'cairn-agent --server ' + location.origin }),
        ', from pprof, OpenTelemetry and Pyroscope clients, and from ', make('code', { textContent: 'cairn import' }), '.');
      return make('div', { className: 'empty' }, make('p', { textContent: 'No samples in this range.' }), wider, all, hint);
    }
    function clearCharts(next) {
      for (const chart of charts) chart.destroy();
      charts = [];
      kind = next;
    }
    function build() {
      const grouped = Boolean(shown && shown.by), apart = grouped && selection.charts === 'multiples';
      ways.hidden = !grouped;
      legend.hidden = !grouped || apart;
      stacked.setAttribute('aria-pressed', !apart);
      multiples.setAttribute('aria-pressed', apart);
      body.className = apart ? 'charts charts-apart' : 'charts';
      if (!shown || !shown.groups.length) {
        clearCharts('');
        body.replaceChildren(makeEmpty());
        legend.replaceChildren();
        return;
      }
      const { unit, step_ms, average, is_cores, deploys } = shown, groups = shown.groups.map((g, i) => ({ ...g, colour: colourOf(i, !g.labels && grouped), name: textOf(g, grouped) }));
      if (apart) {
        clearCharts('apart');
        const max = Math.max(...groups.map(g => maxOf([g])));
        body.replaceChildren(...groups.map((g, i) => make('div', { className: 'chart-cell' }, nameOf(g, i),
          addChart(g.labels ? valuesText(g.labels) : 'All others', { unit, step_ms, average, is_cores, deploys: [], max, groups: [g] }, true))));
      } else {
        const label = grouped ? `Cost over time by ${shown.by}` : 'Cost over time', data = { unit, step_ms, average, is_cores, deploys, max: maxOf(groups), groups };
        if (kind === label) charts[0].show(data); // which keeps the focus
        else {
          clearCharts(label);
          body.replaceChildren(addChart(label, data, false));
        }
      }
      legend.replaceChildren(...groups.map((g, i) => make('li', {}, nameOf(g, i))));
    }

    addEventListener('cairn-theme', build);
    return {
      // The text below the chart while the pointer is elsewhere.
      about(text) {
        about = text;
        readout.textContent = text;
      },
      async show(next, signal) {
        const { by } = next, params = { ...CairnSelection.params(next), ...CairnFilters.params(next) };
        const series = await api.query('series', { ...params, by, groups: by ? GROUPS_SHOWN : '', versions: 1 }, signal);
        if (signal.aborted) return;
        const groups = by ? series.groups : series.points.length ? [{ labels: null, points: series.points, total: series.total }] : [];
        const total = groups.reduce((s, g) => s + g.total, 0);
        selection = next;
        shown = { groups: total ? groups : [], by, unit: series.unit, step_ms: series.step_ms, is_cores: CairnUnits.isCores(series), deploys: CairnDeploys.list(series.versions), total, average: series.aggregation === 'average' };
        build();
      },
    };
  }

  return { create };
})();
