// SPDX-License-Identifier: Apache-2.0
//
// The cost per step of time, as bars; dragging over them chooses a range.
'use strict';
const CairnSeries = (() => {
  // onRange(from, to) is called with milliseconds.
  function create(root, onRange) {
    const canvas = CairnDom.make('canvas', { className: 'series', role: 'img', 'aria-label': 'Cost over time; drag to choose a range' });
    let shown = null, dragFrom = -1, dragTo = -1;
    root.append(canvas);

    function draw() {
      const c = canvas.getContext('2d'), ratio = devicePixelRatio || 1;
      const w = canvas.clientWidth, h = canvas.clientHeight, style = getComputedStyle(document.documentElement);
      canvas.width = w * ratio;
      canvas.height = h * ratio;
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      if (!shown || !shown.points.length) return;
      const max = Math.max(1, ...shown.points.map(p => p[1])), step = w / shown.points.length;
      c.fillStyle = style.getPropertyValue('--accent');
      shown.points.forEach((p, i) => {
        const bar = p[1] / max * (h - 18);
        c.fillRect(i * step, h - bar, Math.max(step - 1, 0.5), bar);
      });
      c.fillStyle = style.getPropertyValue('--soft');
      c.font = '11px system-ui, sans-serif';
      c.fillText(CairnTimes.toText(shown.points[0][0]), 4, 12);
      const last = CairnTimes.toText(shown.points[shown.points.length - 1][0] + shown.step_ms);
      c.fillText(last, w - c.measureText(last).width - 4, 12);
      c.fillText('up to ' + CairnUnits.formatValue(max, shown.unit) + ' per ' + shown.step_ms / 1000 + ' s', w / 2 - 60, 12);
      if (dragFrom >= 0) {
        c.globalAlpha = 0.25;
        c.fillRect(Math.min(dragFrom, dragTo), 0, Math.abs(dragTo - dragFrom), h);
        c.globalAlpha = 1;
      }
    }

    canvas.addEventListener('pointerdown', e => { dragFrom = dragTo = e.offsetX; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener('pointermove', e => { if (dragFrom >= 0) { dragTo = e.offsetX; draw(); } });
    canvas.addEventListener('pointerup', () => {
      const from = Math.max(0, Math.min(dragFrom, dragTo)), to = Math.min(canvas.clientWidth, Math.max(dragFrom, dragTo));
      dragFrom = -1;
      draw();
      if (!shown || !shown.points.length || to - from <= 3) return;
      const at = x => shown.points[0][0] + x / canvas.clientWidth * shown.points.length * shown.step_ms;
      onRange(at(from), at(to));
    });
    new ResizeObserver(draw).observe(canvas);
    addEventListener('cairn-theme', draw);

    return { show(series) { shown = series; draw(); } };
  }

  return { create };
})();
