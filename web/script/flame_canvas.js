// SPDX-License-Identifier: Apache-2.0
//
// Draws the visible part of a laid out call tree. The work depends on the number of pixels, not of nodes: each row is
// searched for its first visible frame, and all frames within one pixel are merged and skipped by a binary search. The
// drawn edges are kept by row, which also serves to find the frame under the pointer.
'use strict';
const CairnFlameCanvas = (() => {
  const { labelOf, OTHER } = CairnLayout, { label } = CairnNames;
  const ROW = 20, PAD = 4, THIN = 1.5, HATCH = 5, FONT = '12px ui-monospace, "DejaVu Sans Mono", monospace';
  const EMPTY = 'No samples here. Try a longer time range, another selector, or fewer filters.';

  // view: { d, left, span (shares of the whole width), top (px), flipped, firstRow, zoomed, selected, hovered, focused,
  // matches, matchedBefore (of each rank), fills, diff }
  function create(canvas) {
    const context = canvas.getContext('2d', { alpha: false });
    let width = 0, height = 0, ratio = 1, letter = 7.2;
    let edges = new Float32Array(4096), nodes = new Int32Array(4096), drawn = 0;
    let firstOfRow = new Int32Array(2), topRow = 0, rows = 0; // edges [left, right) of the visible rows
    const texts = { frames: null, full: false, list: [] };
    const boxes = { x: new Float32Array(1024), y: new Float32Array(1024), w: new Float32Array(1024), node: new Int32Array(1024), count: 0 };

    function resize(w, h) {
      width = w;
      height = h;
      ratio = devicePixelRatio || 1;
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
      canvas.style.width = w + 'px';
      canvas.style.height = h + 'px';
      context.font = FONT;
      letter = context.measureText('mmmmmmmmmm').width / 10;
    }

    const rowCount = view => Math.max(0, view.d.depths - view.firstRow);
    const contentHeight = view => rowCount(view) * ROW + 1;
    const rowTop = (view, depth) => (view.flipped ? view.d.depths - 1 - depth : depth - view.firstRow) * ROW;

    // The text of a frame: escaped once, and truncated with an ellipsis to the number of letters that fit.
    function textOf(d, i) {
      if (i === 0) return label(labelOf(d, 0));
      if (texts.frames !== d.frames || texts.full !== d.full) {
        texts.frames = d.frames;
        texts.full = d.full;
        texts.list = new Array(d.frames.length);
      }
      const f = d.frame[i];
      return texts.list[f] === undefined ? texts.list[f] = label(labelOf(d, i)) : texts.list[f];
    }

    function keepEdge(left, right, node) {
      if (2 * drawn + 2 > edges.length) {
        const wideEdges = new Float32Array(2 * edges.length), wideNodes = new Int32Array(2 * nodes.length);
        wideEdges.set(edges);
        wideNodes.set(nodes);
        edges = wideEdges;
        nodes = wideNodes;
      }
      edges[2 * drawn] = left;
      edges[2 * drawn + 1] = right;
      nodes[drawn++] = node;
    }
    function keepBox(x, y, w, node) {
      const b = boxes;
      if (b.count === b.x.length)
        for (const name of ['x', 'y', 'w', 'node']) {
          const old = b[name];
          b[name] = new old.constructor(2 * old.length);
          b[name].set(old);
        }
      b.x[b.count] = x; b.y[b.count] = y; b.w[b.count] = w; b.node[b.count++] = node;
    }

    const snap = px => Math.round(px * ratio) / ratio;

    // The boxes of one row, from left to right. Frames narrower than THIN are merged into runs, whose node is ~rank of
    // the first.
    function layRow(view, depth, y) {
      const { d } = view, { x, w, rowNodes } = d, scale = width / view.span, from = d.rowStart[depth], to = d.rowStart[depth + 1];
      const firstPast = (low, edge) => { // the first frame of the row from low on that ends right of edge
        let high = to;
        while (low < high) {
          const mid = low + high >> 1, i = rowNodes[mid];
          if ((x[i] + w[i] - view.left) * scale > edge) high = mid;
          else low = mid + 1;
        }
        return low;
      };
      const { matchedBefore } = view;
      let runFrom = -1, runEnd = 0, runRank = 0, runHit = false;
      const endRun = () => {
        if (runFrom < 0) return;
        const a = snap(runFrom), b = Math.max(snap(runEnd), a + 1 / ratio);
        keepEdge(a, b, ~runRank);
        keepBox(a, y, b - a, ~runRank);
        runFrom = -1;
      };
      for (let k = firstPast(from, 0.01); k < to;) {
        const i = rowNodes[k], a = (x[i] - view.left) * scale, b = a + w[i] * scale;
        if (a >= width) break;
        if (b - a >= THIN) {
          endRun();
          const left = snap(Math.max(a, -2)), right = snap(Math.min(b, width + 2));
          keepEdge(left, right, i);
          keepBox(left, y, right - left, i);
          k++;
          continue;
        }
        // All frames that end within this pixel, at least this one. A frame that is not narrow is never among them.
        const next = Math.max(k + 1, firstPast(k + 1, Math.floor(b) + 1)), last = rowNodes[next - 1];
        const isHit = matchedBefore !== null && matchedBefore[next] > matchedBefore[k];
        if (runFrom >= 0 && (a > runEnd + 1 || isHit !== runHit)) endRun();
        if (runFrom < 0) { runFrom = a; runRank = k; runHit = isHit; }
        runEnd = Math.max(b, (x[last] + w[last] - view.left) * scale);
        k = next;
      }
      endRun();
    }

    function drawBoxes(view, colours, forced) {
      const { d, matches, matchedBefore } = view, { x, y, w, node, count } = boxes;
      let fill = null;
      const use = colour => { if (colour !== fill) context.fillStyle = fill = colour; };
      for (let k = 0; k < count; k++) {
        const isRun = node[k] < 0, i = isRun ? d.rowNodes[~node[k]] : node[k], boxHeight = ROW - 1; // a run: the fill of its heaviest frame
        const hit = matches && (isRun ? matchedBefore[boxEnd(k, d)] > matchedBefore[~node[k]] : matches[i]);
        const c = i === 0 ? colours.neutral : colours.ofNode ? colours.ofNode(i) : colours.of[d.frame[i]];
        use(hit ? colours.mark : matches ? colours.faint[c] : colours.fill[c]);
        if (isRun) { context.fillRect(x[k], y[k], w[k], boxHeight); continue; }
        // Leave a gap of one pixel to the right if the frame is wide enough.
        context.fillRect(x[k], y[k], w[k] > 2 ? w[k] - 1 : w[k] - 0.5, boxHeight);
        if (forced && w[k] > 3) {
          context.strokeStyle = colours.ink;
          context.lineWidth = 1;
          context.strokeRect(x[k] + 0.5, y[k] + 0.5, w[k] - 2, boxHeight - 1);
        }
      }
    }
    // One past the rank of the last frame of the run in box k: runs end at the next box of their row.
    function boxEnd(k, d) {
      const rank = ~boxes.node[k], depth = d.depth[d.rowNodes[rank]];
      if (k + 1 < boxes.count && boxes.y[k + 1] === boxes.y[k]) {
        const next = boxes.node[k + 1];
        return next < 0 ? ~next : d.rank[next];
      }
      return d.rowStart[depth + 1];
    }

    // Runs of narrow frames are hatched: they are many functions, not one without a name.
    function drawRuns(colours) {
      const { x, y, w, node, count } = boxes;
      context.strokeStyle = colours.hatch;
      context.lineWidth = 1;
      context.beginPath();
      for (let k = 0; k < count; k++) {
        if (node[k] >= 0 || w[k] < HATCH) continue;
        // Lines at multiples of HATCH in the window, so that they do not move with the edges of the run.
        const left = Math.max(0, x[k]), right = Math.min(width, x[k] + w[k]), h = ROW - 1;
        for (let at = Math.floor(left / HATCH) * HATCH - Math.ceil(h / HATCH) * HATCH; at < right; at += HATCH) {
          const a = Math.max(at, left), b = Math.min(at + h, right);
          if (b <= a) continue;
          context.moveTo(a, y[k] + h - (a - at));
          context.lineTo(b, y[k] + h - (b - at));
        }
      }
      context.stroke();
    }

    // Inlined frames have a dashed lower edge, "(other)" frames a dotted one.
    function drawKinds(view, colours) {
      const { d } = view, { x, y, w, node, count } = boxes;
      context.strokeStyle = colours.ink;
      context.lineWidth = 1;
      for (const [kind, dash] of [[1, [4, 3]], [OTHER, [1, 2]]]) {
        context.setLineDash(dash);
        context.beginPath();
        for (let k = 0; k < count; k++)
          if (node[k] > 0 && w[k] > 6 && d.frames[d.frame[node[k]]][3] === kind) {
            context.moveTo(Math.max(0, x[k]) + 1, y[k] + ROW - 1.5);
            context.lineTo(Math.min(width, x[k] + w[k]) - 2, y[k] + ROW - 1.5);
          }
        context.stroke();
      }
      context.setLineDash([]);
    }

    function drawTexts(view, colours) {
      const { d } = view, { x, y, w, node, count } = boxes;
      context.fillStyle = colours.ink;
      context.font = FONT;
      context.textBaseline = 'middle';
      context.direction = 'ltr';
      for (let k = 0; k < count; k++) {
        const i = node[k];
        if (i < 0 || w[k] < 3 * letter + 2 * PAD) continue;
        const left = Math.max(x[k], 0) + PAD, space = Math.min(x[k] + w[k], width) - PAD - left, room = Math.floor(space / letter);
        if (room < 3) continue;
        let text = textOf(d, i);
        if (colours.ofNode && i) {
          const c = colours.ofNode(i) - colours.neutral;
          if (c) text = (c > 0 ? '▲' : '▼') + text;
        }
        if (text.length > room) text = text.slice(0, room - 1) + '…';
        if (/^[ -~…▲▼]*$/.test(text)) context.fillText(text, left, y[k] + ROW / 2);
        else context.fillText(text, left, y[k] + ROW / 2, space); // for letters of unusual width
      }
    }

    // A ring in two colours, visible on any fill.
    function drawRing(view, i, lineWidth, colours, page) {
      const { d } = view, scale = width / view.span;
      if (i < 0 || i >= d.count || d.depth[i] < view.firstRow) return;
      const a = Math.max(-3, (d.x[i] - view.left) * scale), b = Math.min(width + 3, a < -2 ? (d.x[i] + d.w[i] - view.left) * scale : a + d.w[i] * scale);
      const y = rowTop(view, d.depth[i]) - view.top;
      if (b < 0 || a > width || y < -ROW || y > height) return;
      const w = Math.max(b - a - 1, 3);
      context.lineWidth = lineWidth + 2;
      context.strokeStyle = page;
      context.strokeRect(a + 1, y + 1, w - 2, ROW - 3);
      context.lineWidth = lineWidth;
      context.strokeStyle = colours.ink;
      context.strokeRect(a + 1, y + 1, w - 2, ROW - 3);
    }

    function draw(view) {
      const { d } = view, style = getComputedStyle(document.documentElement), page = style.getPropertyValue('--bg').trim() || '#fff';
      const forced = matchMedia('(forced-colors: active)').matches;
      const colours = forced ? forceColours(view.fills) : view.fills, back = forced ? 'Canvas' : page;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.fillStyle = back;
      context.fillRect(0, 0, width, height);
      drawn = boxes.count = rows = 0;
      if (!d.count || !d.w[0]) {
        context.fillStyle = colours.ink;
        context.font = '14px system-ui, sans-serif';
        context.textBaseline = 'alphabetic';
        context.fillText(EMPTY, 12, 30);
        return;
      }
      const all = rowCount(view);
      topRow = Math.max(0, Math.floor(view.top / ROW));
      const past = Math.min(all, Math.ceil((view.top + height) / ROW));
      if (firstOfRow.length < past - topRow + 2) firstOfRow = new Int32Array(past - topRow + 64);
      for (let row = topRow; row < past; row++) {
        firstOfRow[rows++] = drawn;
        layRow(view, view.flipped ? d.depths - 1 - row : row + view.firstRow, row * ROW - view.top);
      }
      firstOfRow[rows] = drawn;
      drawBoxes(view, colours, forced);
      drawRuns({ hatch: forced ? colours.ink : back });
      drawKinds(view, colours);
      drawTexts(view, colours);
      if (view.hovered !== view.selected) drawRing(view, view.hovered, 1, colours, back);
      if (view.selected > 0 || view.focused) drawRing(view, view.selected, 2, colours, back);
    }

    // The node last drawn at a point; ~rank of the first for a run of narrow frames; null if none.
    function hit(view, px, py) {
      const row = Math.floor((py + view.top) / ROW) - topRow;
      if (row < 0 || row >= rows) return null;
      let low = firstOfRow[row], high = firstOfRow[row + 1];
      while (low < high) {
        const mid = low + high >> 1;
        if (edges[2 * mid + 1] > px) high = mid;
        else low = mid + 1;
      }
      return low < firstOfRow[row + 1] && edges[2 * low] <= px ? nodes[low] : null;
    }

    return { resize, draw, hit, contentHeight, rowTop, drawnBoxes: () => boxes.count };
  }

  // The system's colours for high contrast.
  const forceColours = fills => ({ ...fills, fill: fills.fill.map(() => 'Canvas'), faint: fills.faint.map(() => 'Canvas'), mark: 'Highlight', ink: 'CanvasText' });

  return { create, ROW };
})();
