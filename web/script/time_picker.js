// SPDX-License-Identifier: Apache-2.0
//
// The time range: a button with the chosen range, relative ranges, fields, and steps to adjacent ranges.
'use strict';
const CairnTimePicker = (() => {
  const { make } = CairnDom;
  const PRESETS = [['5m', '5 minutes'], ['15m', '15 minutes'], ['30m', '30 minutes'], ['1h', '1 hour'], ['3h', '3 hours'], ['6h', '6 hours'],
    ['12h', '12 hours'], ['1d', '24 hours'], ['2d', '2 days'], ['7d', '7 days'], ['30d', '30 days'], ['90d', '90 days']];
  const RANGE_MIN_MS = 1000, RANGE_MAX_MS = 10 * 365 * 86400e3;

  // "Last 15 minutes", or both ends, a shared date only once.
  function textOf({ from, to }, now) {
    const relative = /^(?:now)?-(.+)$/.exec(from || '-1h');
    if (relative && (!to || to === 'now')) {
      const preset = PRESETS.find(([text]) => CairnTimes.parseDuration(text) === CairnTimes.parseDuration(relative[1]));
      return 'Last ' + (preset ? preset[1] : relative[1]);
    }
    const range = CairnTimes.resolveRange({ from, to }, now);
    if (!Number.isFinite(range.from) || !Number.isFinite(range.to)) return `${from || ''} to ${to || 'now'}`;
    const a = CairnTimes.toText(range.from), b = CairnTimes.toText(range.to);
    return `${a} – ${a.slice(0, 10) === b.slice(0, 10) ? b.slice(11) : b}`;
  }

  // Changes of a selection; null if its times are invalid.
  function shift(selection, now, by) {
    const { from, to } = CairnTimes.resolveRange(selection, now), step = Math.round((to - from) * by);
    if (!(to > from)) return null;
    return { from: CairnTimes.toIso(from + step), to: CairnTimes.toIso(to + step) };
  }
  function zoomOut(selection, now) {
    const { from, to } = CairnTimes.resolveRange(selection, now), length = to - from;
    if (!(length > 0) || length * 2 > RANGE_MAX_MS) return null;
    if ((!selection.to || selection.to === 'now') && CairnTimes.isRelative(selection.from || ''))
      return { from: 'now-' + CairnTimes.formatDuration(2 * length), to: 'now' };
    const end = Math.min(to + length / 2, Math.max(now, to));
    return { from: CairnTimes.toIso(Math.round(end - 2 * length)), to: CairnTimes.toIso(Math.round(end)) };
  }

  // parts: button, note (its description), panel, earlier, later, wider. go(change) and selection() as in the page.
  function create({ button, note, panel, earlier, later, wider }, { go, selection }) {
    const label = make('span', {});
    button.append(label);
    const from = make('input', { className: 'mono', size: 24, spellcheck: false, autocomplete: 'off' });
    const to = make('input', { className: 'mono', size: 24, spellcheck: false, autocomplete: 'off' });
    const wrong = make('p', { className: 'error', role: 'alert', hidden: true });
    const presets = PRESETS.map(([text, title]) => make('button', { type: 'button', className: 'menu-item', textContent: 'Last ' + title,
      onclick: () => { popover.close(); go({ from: 'now-' + text, to: 'now' }); } }));
    const zone = CairnTimes.zoneText(Date.now()), zones = make('select', {}, ...[['', 'UTC'], ['local', `local time (${CairnTimes.localZoneText(Date.now())})`]]
      .map(([value, textContent]) => make('option', { value, textContent })));
    zones.value = CairnTimes.isLocal() ? 'local' : '';
    zones.onchange = () => { CairnTimes.chooseLocal(Boolean(zones.value)); location.reload(); };
    note.textContent = `Time range, in ${zone}`;
    const form = make('form', { className: 'time-fields' }, make('label', {}, 'From ', from), make('label', {}, 'To ', to),
      make('p', { className: 'soft', textContent: `${zone}: 2026-01-31 12:00, now-2h, Unix seconds` }), make('label', {}, 'Times in ', zones), wrong,
      make('button', { type: 'submit', className: 'primary', textContent: 'Apply' }));
    panel.append(make('div', { className: 'time-presets', role: 'group', 'aria-label': 'Relative ranges' }, ...presets), form);
    const popover = CairnPopover.attach(button, panel, () => {
      const range = CairnTimes.resolveRange(selection(), Date.now());
      from.value = CairnTimes.isRelative(selection().from || '') ? selection().from || '' : CairnTimes.toText(range.from);
      to.value = CairnTimes.isRelative(selection().to || '') ? selection().to || '' : CairnTimes.toText(range.to);
      wrong.hidden = true;
      for (const [i, [text]] of PRESETS.entries()) presets[i].setAttribute('aria-pressed', selection().from === 'now-' + text && selection().to === 'now');
    });

    // Absolute times as ISO text; relative ones stay as they are.
    function fieldValue(text) {
      const ms = CairnTimes.parse(text, Date.now(), CairnTimes.isLocal());
      if (!Number.isFinite(ms)) throw new Error(`"${text}" is not a time`);
      return CairnTimes.isRelative(text) ? text : CairnTimes.toIso(ms);
    }
    form.addEventListener('submit', event => {
      event.preventDefault();
      try {
        const change = { from: fieldValue(from.value.trim() || 'now-1h'), to: fieldValue(to.value.trim() || 'now') };
        const range = CairnTimes.resolveRange(change, Date.now());
        if (range.to - range.from < RANGE_MIN_MS) throw new Error('the range has to be one second at least');
        popover.close();
        go(change);
      } catch (e) {
        wrong.textContent = CairnNames.sentence(e.message);
        wrong.hidden = false;
      }
    });
    const connect = (element, change) => element.addEventListener('click', () => { const c = change(); if (c) go(c); });
    connect(earlier, () => shift(selection(), Date.now(), -1));
    connect(later, () => shift(selection(), Date.now(), 1));
    connect(wider, () => zoomOut(selection(), Date.now()));

    return {
      show(current) {
        const now = Date.now();
        label.textContent = textOf(current, now);
        later.disabled = !(CairnTimes.resolveRange(current, now).to < now);
      },
    };
  }

  return { create, textOf, shift, zoomOut };
})();
