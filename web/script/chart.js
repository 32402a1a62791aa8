// SPDX-License-Identifier: Apache-2.0
//
// Bars over time, stacked by group, on a canvas. Dragging chooses a range; so do arrow keys (with Shift) and Enter.
'use strict';
const CairnChart = (() => {
  const { make } = CairnDom;
  const AXIS = 17, TOP = 14, DRAG_MIN = 4, NAMED_MAX = 3;
  const TICKS_MS = [1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 10800e3, 21600e3, 43200e3,
    86400e3, 2 * 86400e3, 7 * 86400e3, 30 * 86400e3, 365 * 86400e3];

  // "12:05", with seconds if the ticks need them, and with the date at the first tick of a day unless all are of one.
  function tickText(ms, every, first, last) {
    const text = CairnTimes.toText(ms), day = text.slice(0, 10), time = every < 60e3 ? text.slice(11) : text.slice(11, 16);
    if (every >= 86400e3) return text.slice(5, 10);
    const isFirst = ms - every < first || CairnTimes.toText(ms - every).slice(0, 10) !== day;
    return isFirst && CairnTimes.toText(first).slice(0, 10) !== CairnTimes.toText(last).slice(0, 10) ? `${text.slice(5, 10)} ${time}` : time;
  }

  // options: label (for screen readers), small, onRange(from, to) in milliseconds, onHover(text or '').
  function create(options) {
    const canvas = make('canvas', { className: options.small ? 'chart chart-small' : 'chart', tabIndex: 0, role: 'application',
      'aria-roledescription': 'chart', 'aria-label': `${options.label}. Arrow keys move, with Shift they select a range, Enter shows it.` });
    let data = null, cursor = -1, anchor = -1, dragging = false, frame = 0;

    const count = () => (data ? data.groups[0].points.length : 0);
    const timeAt = i => data.groups[0].points[0][0] + i * data.step_ms;
    // The sum of steps, or of a gauge the average of those with snapshots.
    function sumOf(group, from, to) {
      const points = group.points.slice(from, to), sum = points.reduce((s, p) => s + p[1], 0);
      return data.average ? sum / (points.filter(p => p[2]).length || 1) : sum;
    }
    // A sum over a number of steps. CPU time per second is the number of cores in use.
    const costText = (value, steps) => data.format ? data.format(value) : data.is_cores ? `${CairnUnits.coresText(value, data.unit, steps * data.step_ms)} cores` : CairnUnits.formatValue(value, data.unit);
    const indexAt = x => Math.max(0, Math.min(count() - 1, Math.floor(x / canvas.clientWidth * count())));

    function say() {
      if (!options.onHover) return;
      if (cursor < 0 || !count()) { options.onHover(''); return; }
      const from = anchor < 0 ? cursor : Math.min(anchor, cursor), to = (anchor < 0 ? cursor : Math.max(anchor, cursor)) + 1;
      const parts = data.groups.map(g => ({ name: g.name, value: sumOf(g, from, to) })), sum = parts.reduce((s, p) => s + p.value, 0);
      const greatest = parts.filter(p => p.name && p.value).sort((a, b) => b.value - a.value).slice(0, NAMED_MAX);
      options.onHover(`${CairnTimes.toText(timeAt(from))} – ${CairnTimes.toText(timeAt(to)).slice(11)}: ${costText(sum, to - from)}` +
        (data.is_cores ? ` (${CairnUnits.formatValue(sum, data.unit)})` : '') + greatest.map(p => ` · ${p.name} ${costText(p.value, to - from)}`).join('') +
        data.deploys.filter(d => d.ms >= timeAt(from) && d.ms < timeAt(to)).slice(0, NAMED_MAX).map(d => ` · new ${d.text}`).join(''));
    }

    function drawTicks(c, w, h, style) {
      const first = timeAt(0), length = count() * data.step_ms, most = Math.max(1, Math.floor(w / 90));
      const every = TICKS_MS.find(t => length / t <= most) || TICKS_MS[TICKS_MS.length - 1];
      c.fillStyle = style.getPropertyValue('--soft');
      c.strokeStyle = style.getPropertyValue('--line');
      c.lineWidth = 1;
      const offset = CairnTimes.offset(first);
      for (let t = Math.ceil((first + offset) / every) * every - offset; t < first + length; t += every) {
        const x = Math.round((t - first) / length * w) + 0.5, text = tickText(t, every, first, first + length - 1), half = c.measureText(text).width / 2;
        c.beginPath();
        c.moveTo(x, h - AXIS);
        c.lineTo(x, h - AXIS + 4);
        c.stroke();
        if (x > half && x + half < w) c.fillText(text, x - half, h - 3);
      }
    }
    // A broken line where a service has a new version or build, with its name if there is room.
    function drawDeploys(c, w, h, style) {
      let free = 0;
      c.strokeStyle = c.fillStyle = style.getPropertyValue('--text');
      c.setLineDash([3, 3]);
      for (const { ms, name } of data.deploys.slice().sort((a, b) => a.ms - b.ms)) {
        const x = Math.round((ms - timeAt(0)) / (count() * data.step_ms) * w) + 0.5, wide = c.measureText(name).width;
        if (x < 0 || x > w) continue;
        c.beginPath();
        c.moveTo(x, 0);
        c.lineTo(x, h - AXIS);
        c.stroke();
        if (x < Math.max(free, 110) || x + wide + 6 > w) continue; // beside the greatest value
        c.fillText(name, x + 4, 10);
        free = x + wide + 10;
      }
      c.setLineDash([]);
    }
    function draw() {
      frame = 0;
      const c = canvas.getContext('2d'), ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
      const style = getComputedStyle(document.documentElement);
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      if (!w || !count()) return;
      const n = count(), axis = options.small ? 0 : AXIS, top = options.small ? 2 : TOP, room = h - axis - top, step = w / n;
      const bar = Math.max(step - (step > 3 ? 1 : 0), 0.7);
      c.font = '11px system-ui, sans-serif';
      for (let i = 0; i < n; i++) {
        let y = h - axis;
        for (const g of data.groups) {
          const tall = g.points[i][1] / (data.max || 1) * room;
          if (!tall) continue;
          c.fillStyle = g.colour;
          // A line in the page's colour between segments, if there is room.
          c.fillRect(i * step, y - tall, bar, Math.max(tall - (data.groups.length > 1 && tall > 3 ? 1 : 0), 0.5));
          y -= tall;
        }
      }
      if (!options.small) {
        c.strokeStyle = style.getPropertyValue('--line');
        c.strokeRect(-1, h - axis + 0.5, w + 2, 0);
        drawTicks(c, w, h, style);
        drawDeploys(c, w, h, style);
        c.fillStyle = style.getPropertyValue('--soft');
        const per = CairnTimes.formatDuration(data.step_ms);
        c.fillText(costText(data.max, 1) + (data.is_cores || data.format ? '' : data.average ? `, average of ${per}` : ` per ${per}`), 4, 11);
      }
      if (cursor >= 0) {
        const from = anchor < 0 ? cursor : Math.min(anchor, cursor), to = (anchor < 0 ? cursor : Math.max(anchor, cursor)) + 1;
        c.fillStyle = style.getPropertyValue('--text');
        c.globalAlpha = anchor < 0 ? 0.12 : 0.2;
        c.fillRect(from * step, 0, (to - from) * step, h - axis);
        c.globalAlpha = 1;
        c.fillRect(from * step, 0, 1, h - axis);
        if (anchor >= 0) c.fillRect(to * step - 1, 0, 1, h - axis);
      }
    }
    const redraw = () => { if (!frame) frame = requestAnimationFrame(draw); };
    function move(i, from) {
      cursor = i;
      anchor = from;
      say();
      redraw();
    }
    function choose() {
      const from = Math.min(anchor < 0 ? cursor : anchor, cursor), to = Math.max(anchor < 0 ? cursor : anchor, cursor) + 1;
      const range = [timeAt(from), timeAt(to)];
      move(-1, -1);
      options.onRange(...range);
    }

    let startX = 0;
    canvas.addEventListener('pointerdown', event => {
      if (!count() || event.button !== 0) return;
      dragging = true;
      startX = event.offsetX;
      canvas.setPointerCapture(event.pointerId);
      move(indexAt(startX), -1);
    });
    canvas.addEventListener('pointermove', event => {
      if (!count()) return;
      move(indexAt(event.offsetX), dragging && Math.abs(event.offsetX - startX) >= DRAG_MIN ? indexAt(startX) : -1);
    });
    canvas.addEventListener('pointerup', () => {
      if (!dragging) return;
      dragging = false;
      if (anchor >= 0) choose();
    });
    canvas.addEventListener('pointercancel', () => { dragging = false; move(-1, -1); });
    canvas.addEventListener('pointerleave', () => { if (!dragging) move(-1, -1); });
    canvas.addEventListener('blur', () => move(-1, -1));
    canvas.addEventListener('keydown', event => {
      const n = count(), at = cursor < 0 ? n - 1 : cursor;
      if (!n) return;
      const to = { ArrowLeft: Math.max(0, cursor < 0 ? at : at - 1), ArrowRight: Math.min(n - 1, at + 1), Home: 0, End: n - 1 }[event.key];
      if (to !== undefined) move(to, event.shiftKey ? (anchor < 0 ? at : anchor) : -1);
      else if (event.key === 'Enter' && cursor >= 0) choose();
      else if (event.key === 'Escape' && cursor >= 0) { dragging = false; move(-1, -1); }
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    const observer = new ResizeObserver(redraw);
    observer.observe(canvas);

    return {
      element: canvas,
      // { unit, step_ms, average, is_cores, format(value) in place of the unit, deploys: [{ ms, name, text }], max, groups: [{ points, colour, name }] }, names for groups; all groups have the same steps.
      show(shown) {
        data = shown && shown.groups.length && shown.groups[0].points.length ? shown : null;
        cursor = anchor = -1;
        redraw();
      },
      redraw,
      destroy() { observer.disconnect(); },
    };
  }

  return { create, tickText };
})();
