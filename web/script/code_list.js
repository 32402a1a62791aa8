// SPDX-License-Identifier: Apache-2.0
//
// Lines or instructions with their cost: a virtualized grid, which has elements for visible rows only, so that files
// may have any length. Rows have one height. An item is { flat, cumulative, ... }; the caller's fill() adds the other
// cells of a row.
//
// Keys: arrows, Page Up and Down, Home, End; n and p go to the next and previous of the most expensive rows; Enter and
// Right open the row.
'use strict';
const CairnCodeList = (() => {
  const ROW = 22, MORE = 8, TEXT_MAX = 1000;
  const { make } = CairnDom, { formatValue, percent } = CairnUnits;
  // An untrusted text in displayable form, with its tabs.
  const visible = text => String(text).slice(0, TEXT_MAX).split('\t').map(part => CairnNames.display(part)).join('\t') + (text.length > TEXT_MAX ? '…' : '');

  // The indexes of items with cost, the most expensive first.
  function rank(items) {
    if (items.some(item => item.rank !== undefined)) return items.map((item, i) => i).filter(i => items[i].rank > 0).sort((a, b) => items[b].rank - items[a].rank || a - b);
    return items.map((item, i) => i).filter(i => items[i].flat || items[i].cumulative)
      .sort((a, b) => (items[b].flat || 0) - (items[a].flat || 0) || (items[b].cumulative || 0) - (items[a].cumulative || 0) || a - b);
  }

  // Value and bar of one column.
  function costCell(value, most, total, unit, name) {
    const cell = make('span', { className: 'cost ' + name, role: 'gridcell' });
    if (!value) return cell;
    if (typeof value === 'string') { cell.textContent = value; return cell; }
    const bar = make('i');
    bar.style.width = Math.max(1, 100 * value / most) + '%';
    cell.title = percent(value, total);
    cell.append(bar, make('b', { textContent: formatValue(value, unit) }));
    return cell;
  }

  let lists = 0;

  const COSTS = [['Self', 'flat', 'self'], ['Total', 'cumulative', 'all']]; // title, key of an item, class
  // costs: of other columns; a cost that is a text has no bar. An item's `rank`: its cost for the keys n and p.
  // fill(item, row, i) appends the cells after the costs; open(item, i, key) is called for Enter, ArrowRight and
  // ArrowLeft; moved(i) when the current row changes.
  function create(root, { label, columns, fill, open, moved, costs = COSTS }) {
    const id = 'code-' + ++lists;
    const body = make('div', { className: 'code-rows', role: 'rowgroup' });
    const head = make('div', { className: 'code-head', role: 'row', 'aria-rowindex': 1 },
      ...costs.map(([title]) => make('span', { role: 'columnheader', textContent: title, className: 'cost' })),
      ...columns.map(c => make('span', { role: 'columnheader', textContent: c, className: 'c-' + c.toLowerCase().replace(/ .*/, '') })));
    const box = make('div', { className: 'code-scroll mono', tabIndex: 0, role: 'grid', 'aria-label': label, 'aria-colcount': columns.length + costs.length },
      make('div', { role: 'rowgroup', className: 'code-headbox' }, head), body);
    root.append(box);
    let items = [], scale = { total: 0, unit: '', most: {} }, hot = [], current = -1, drawn = null;

    function makeRow(i) {
      const item = items[i];
      const row = make('div', { id: `${id}-${i}`, className: 'code-row ' + (item.kind || ''), role: 'row', 'aria-rowindex': i + 2 });
      row.style.top = i * ROW + 'px';
      row.append(...costs.map(([, key, name]) => costCell(item[key], scale.most[key], scale.total, scale.unit, name)));
      fill(item, row, i);
      row.addEventListener('mousedown', () => select(i));
      return row;
    }
    function draw(again) {
      const from = Math.max(0, Math.floor(box.scrollTop / ROW) - MORE);
      const to = Math.min(items.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + MORE);
      if (!again && drawn && drawn[0] === from && drawn[1] === to) return;
      drawn = [from, to];
      const rows = [];
      for (let i = from; i < to; i++) rows.push(makeRow(i));
      body.replaceChildren(...rows);
      mark();
    }
    // Rows are not replaced, so that a click on a button in a row reaches it.
    function mark() {
      const row = document.getElementById(`${id}-${current}`);
      for (const old of body.querySelectorAll('.current')) { old.classList.remove('current'); old.removeAttribute('aria-selected'); }
      if (!row) { box.removeAttribute('aria-activedescendant'); return; }
      row.classList.add('current');
      row.setAttribute('aria-selected', 'true');
      box.setAttribute('aria-activedescendant', row.id);
    }
    function select(i) {
      if (i === current || !items.length) return;
      current = Math.max(0, Math.min(items.length - 1, i));
      mark();
      if (moved) moved(current);
    }
    // Centred if it was not visible.
    function reveal(i) {
      const top = i * ROW, room = box.clientHeight - ROW;
      if (top < box.scrollTop || top + ROW > box.scrollTop + room) box.scrollTop = Math.max(0, top - room / 2);
    }
    function moveTo(i) {
      select(i);
      reveal(current);
      draw(false);
    }
    // Step through rows in the order of cost.
    function moveHot(step) {
      if (!hot.length) return;
      const at = hot.indexOf(current);
      moveTo(hot[at < 0 ? 0 : (at + step + hot.length) % hot.length]);
    }
    box.addEventListener('scroll', () => draw(false), { passive: true });
    box.addEventListener('keydown', event => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 2);
      const to = { ArrowUp: current - 1, ArrowDown: current + 1, PageUp: current - page, PageDown: current + page, Home: 0, End: items.length - 1 }[event.key];
      if (to !== undefined) moveTo(Math.max(0, to));
      else if (event.key === 'n') moveHot(1);
      else if (event.key === 'p') moveHot(-1);
      else if (['Enter', 'ArrowRight', 'ArrowLeft'].includes(event.key) && items[current]) open(items[current], current, event.key);
      else return;
      event.preventDefault();
    });
    const resized = new ResizeObserver(() => draw(false));
    resized.observe(box);

    return {
      // scale: { total, unit }. `keep`: the row to stay at, for the same list with rows opened or closed.
      show(list, { total, unit }, keep) {
        items = list;
        hot = rank(items.map(i => i.kind === 'site' ? {} : i));
        const most = name => items.reduce((a, i) => Math.max(a, Math.abs(Number(i[name]) || 0)), 1);
        scale = { total, unit, most: Object.fromEntries(costs.map(([, key]) => [key, most(key)])) };
        body.style.height = items.length * ROW + 'px';
        box.setAttribute('aria-rowcount', items.length + 1);
        if (keep === undefined) { current = -1; drawn = null; box.scrollTop = 0; }
        else current = keep;
        draw(true);
        if (keep === undefined && hot.length) moveHot(0);
        else if (keep === undefined && moved) moved(-1);
      },
      moveTo, moveHot,
      focus: () => box.focus({ preventScroll: true }),
      // The rank of a row by cost: 0 is the most expensive, -1 none.
      rankOf: i => hot.indexOf(i),
      hotCount: () => hot.length,
      destroy: () => resized.disconnect(),
    };
  }

  return { create, visible };
})();
