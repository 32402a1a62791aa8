// SPDX-License-Identifier: Apache-2.0
//
// One function between its callers and its callees: two flame graphs that meet at it, tables of its direct callers and
// callees, and the cost of each of its lines.
'use strict';
const CairnSandwich = (() => {
  const { make } = CairnDom, { formatValue, percent } = CairnUnits, { display, wholePattern } = CairnNames;
  const LINES_MAX = 2000;

  // The direct callers or callees of a tree's top function: the nodes of depth 2, with their cost there.
  function neighbours(d) {
    const rows = new Map();
    for (let k = d.rowStart[2] || 0; d.depths > 2 && k < d.rowStart[3]; k++) {
      const i = d.rowNodes[k], f = d.frames[d.frame[i]], key = f[0] + '\0' + f[1];
      if (!rows.has(key)) rows.set(key, { function: f[0], short_name: CairnLayout.shortOf(f), file: f[1], object: f[2], kind: f[3], value: 0 });
      rows.get(key).value += d.total[i];
    }
    return [...rows.values()];
  }

  function create(root, context) {
    let current = {}, about = { unit: '', total: 0, own: 0 };
    const actions = CairnActions.create(context, () => current), links = CairnActions.links(context, () => current);
    const hints = make('datalist', { id: 'sandwich-functions' });
    const input = make('input', { className: 'mono', size: 40, list: 'sandwich-functions', spellcheck: false, autocomplete: 'off' });
    const form = make('form', { className: 'bar' }, make('label', {}, 'Function ', input), hints, make('button', { type: 'submit', textContent: 'Show function' }));
    const title = make('h2', { className: 'mono name' }), costs = make('p', { className: 'soft' }), buttons = make('div', { className: 'bar' });
    const callersGraph = make('div', { className: 'flame' }), calleesGraph = make('div', { className: 'flame' });
    const callersTable = make('div', { className: 'table-box' }), calleesTable = make('div', { className: 'table-box' }), linesTable = make('div', { className: 'table-box lines' });
    const linesPart = make('section', { className: 'part' }, make('h2', { textContent: 'Lines' }), linesTable);
    const whole = make('div', { className: 'sandwich', hidden: true },
      make('section', { className: 'part' }, make('h2', { textContent: 'Callers' }), callersTable),
      make('section', { className: 'part' }, make('h2', { textContent: 'Callers, above the function' }), callersGraph),
      make('section', { className: 'part' }, make('h2', { textContent: 'Callees' }), calleesTable),
      make('section', { className: 'part' }, make('h2', { textContent: 'Callees, below the function' }), calleesGraph));
    root.append(form, make('div', { className: 'sandwich-title' }, title, costs, buttons), whole, linesPart);
    linesPart.hidden = true;
    form.addEventListener('submit', event => {
      event.preventDefault();
      context.go({ function: input.value.trim() });
    });

    const columns = [
      { title: 'Cost', key: 'value', number: true, text: r => formatValue(r.value, about.unit) },
      { title: '%', key: 'value', number: true, width: 5.9, text: r => percent(r.value, about.own), explain: 'Of the cost of the function' },
      ...CairnTable.nameColumns(CairnActions.sourceOf(context, () => current)).slice(0, 2),
    ];
    const tableOf = (box, caption) => CairnTable.create(box, columns, { caption, name: caption.toLowerCase(), keep: context.keep, sort: 'value', empty: 'None.',
      open: row => { if (row.kind < 4) context.go({ function: row.function }); }, menu: CairnTopView.menuOf(actions, links) });
    const callers = tableOf(callersTable, 'Callers'), callees = tableOf(calleesTable, 'Callees');
    const lines = CairnTable.create(linesTable, [
      { title: 'Self', key: 'flat', number: true, text: r => formatValue(r.flat, about.unit) },
      { title: 'Total', key: 'cumulative', number: true, text: r => formatValue(r.cumulative, about.unit) },
      { title: 'Total %', key: 'cumulative', number: true, width: 5.9, wide: true, text: r => percent(r.cumulative, about.own) },
      { title: 'Line', key: 'line', number: true, width: 5.4, text: r => r.line || '?' },
      { title: 'File', key: 'file', isPath: true, href: CairnActions.sourceOf(context, () => current) },
      { title: 'Source', key: 'source', className: 'mono source', share: 2 },
    ], { caption: 'Cost of each line', name: 'lines', keep: context.keep, sort: 'cumulative', empty: 'No line is known.', keyOf: r => `${r.function}\0${r.file}\0${r.line}` });
    const said = make('span', { className: 'soft', role: 'status' });
    async function copyName(name) { said.textContent = await CairnFlameMenu.copyText(name) ? 'Copied' : 'The browser does not let this page copy'; }
    let graphs = [];

    const act = (text, run) => run ? make('button', { type: 'button', textContent: text, onclick: run }) : null;

    // Without a function: the most expensive one.
    async function choose(selection, signal) {
      const top = await context.api.query('top', { ...CairnSelection.params(selection), ...CairnFilters.params(selection), limit: 200 }, signal);
      hints.replaceChildren(...top.rows.map(r => r.function).filter(n => n.length < 400).map(value => make('option', { value })));
      return selection.function || (top.rows.length ? top.rows[0].function : '');
    }

    function putGraphs(up, down) {
      for (const g of graphs) g.destroy();
      const one = (box, data, flipped, label) => CairnFlame.create(box, data, { small: true, hideRoot: true, flipped, label, actions, links });
      graphs = [one(callersGraph, up, true, 'Flame graph of callers'), one(calleesGraph, down, false, 'Flame graph of callees')];
      callers.show(neighbours(up));
      callees.show(neighbours(down));
    }

    return {
      async show(selection, signal) {
        current = selection;
        const name = await choose(selection, signal), filter = { ...CairnSelection.params(selection), ...CairnFilters.params(selection) };
        input.value = name;
        if (!name) {
          title.textContent = '';
          costs.textContent = 'No samples here. Try a longer time range or another selector.';
          whole.hidden = linesPart.hidden = buttons.hidden = true;
          return;
        }
        const wholeName = wholePattern(name);
        const [json, lineJson] = await Promise.all([context.api.query('sandwich', context.offline ? { ...filter, function_name: name } : { ...filter, function: wholeName }, signal),
          context.offline ? null : context.api.query('lines', { ...filter, function: wholeName, limit: LINES_MAX }, signal)]);
        const flat = json.rows.reduce((sum, r) => sum + r.flat, 0), up = CairnLayout.parse(json.callers), down = CairnLayout.parse(json.callees);
        const own = down.total[0];
        up.focus = down.focus = name;
        about = { unit: json.unit, total: json.total, own };
        title.textContent = display(name);
        costs.textContent = `self ${formatValue(flat, json.unit)} (${percent(flat, json.total)}), total ${formatValue(own, json.unit)} (${percent(own, json.total)})` +
          (json.rows.length > 1 ? `, in ${json.rows.length} places` : '') + (json.rows.length && json.rows[0].file ? ` — ${display(json.rows[0].file, 200)}` : '');
        const row = json.rows[0] || { file: '', line: 0 };
        buttons.replaceChildren(...[act('Copy name', () => copyName(name)), act('Flame graph of what it calls', () => actions.callees(name)),
          act('Flame graph of what calls it', () => actions.callers(name)), act('Exclude', () => actions.ignore(name)),
          actions.trend ? act('Show trend', () => actions.trend(name, [name, row.file])) : null,
          actions.source ? act('Show source', () => actions.source(name, [name, row.file], row.line)) : null,
          !row.line && context.canShow && context.canShow('debuginfo') ? act('Why it has no line', () => context.go({ view: 'debuginfo', panel: 'why', function: name })) : null, said].filter(Boolean));
        said.textContent = '';
        whole.hidden = buttons.hidden = !json.rows.length;
        linesPart.hidden = !lineJson || !lineJson.rows.length;
        if (!json.rows.length) costs.textContent = 'No function of that name has samples here.';
        else putGraphs(up, down);
        if (lineJson) lines.show(lineJson.rows);
        for (const table of [callers, callees, lines]) table.restore(selection);
        context.about(CairnLayout.about({ type: json.type, unit: json.unit, sides: [CairnLayout.sideOf(json, selection.selector)] }));
      },
      destroy() { for (const g of graphs) g.destroy(); },
    };
  }

  return { create, neighbours };
})();
