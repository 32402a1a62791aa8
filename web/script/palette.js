// SPDX-License-Identifier: Apache-2.0
//
// The colours of frames. Hues are distinguishable with all kinds of colour blindness (Paul Tol's "light" scheme), and
// are never the only indication of their meaning. Names are drawn on them in the text colour with a contrast of at
// least 4.5: each fill is adjusted to a luminance that permits it. Neighbours of one hue differ slightly, and there is
// a gap in the page's colour between any two.
'use strict';
const CairnPalette = (() => {
  const { kindOf, baseName, KINDS } = CairnLayout, { isDark } = CairnTheme;
  const HUES = ['#77aadd', '#ee8866', '#44bb99', '#eedd88', '#ffaabb', '#bbcc33', '#99ddff', '#cc99dd', '#aaaa00'];
  const KERNEL = '#ee8866', NEUTRAL = '#dddddd', LESS = '#5e9be0', MORE = '#f1a340', MARK = '#e58ae5';
  const MODES = { object: 'object', file: 'file', package: 'package', kind: 'kind of code' };
  const INK = { light: '#1d1f21', dark: '#e6e7e8' }; // --text of the style
  const SHADES = 3; // of each hue

  const parseHex = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255);
  const toLinear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const fromLinear = c => c <= 0.0031308 ? c * 12.92 : 1.055 * c ** (1 / 2.4) - 0.055;
  const luminanceOf = linear => 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  const luminance = hex => luminanceOf(parseHex(hex).map(toLinear));
  const toHex = linear => '#' + linear.map(c => Math.round(255 * fromLinear(Math.min(1, Math.max(0, c)))).toString(16).padStart(2, '0')).join('');

  // WCAG 2.2, 1.4.3.
  function contrast(a, b) {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  }

  // The colour with another luminance: scaled, or mixed with white beyond the maximum.
  function withLuminance(hex, wanted) {
    let linear = parseHex(hex).map(toLinear);
    const now = luminanceOf(linear);
    linear = linear.map(c => c * wanted / now);
    const over = Math.max(...linear);
    if (over > 1) {
      linear = linear.map(c => c / over);
      const missing = luminanceOf(linear), share = (wanted - missing) / (1 - missing);
      linear = linear.map(c => c + (1 - c) * share);
    }
    return toHex(linear);
  }
  const mix = (a, b, share) => toHex(parseHex(a).map(toLinear).map((c, i) => c + (toLinear(parseHex(b)[i]) - c) * share));

  // A shade of a hue in the theme; shade 0 is the strongest. On a dark page fills are dark, with light text.
  function shade(hex, dark, step) {
    return dark ? withLuminance(hex, 0.108 - 0.017 * step) : withLuminance(hex, Math.min(0.86, Math.max(0.40, luminance(hex)) * (1 + 0.1 * step)));
  }

  function hash(text) {
    let h = 2166136261;
    for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
    return h >>> 0;
  }

  // The package of a function: the qualifiers of its name, at most two; without qualifiers its object.
  function packageOf(f) {
    const name = f[0].replace(/^(?:static |void )/, ''), plain = name.replace(/[<([{].*/s, '');
    const go = /^((?:[\w.~-]+\/)*[\w~-]+)\.[\w(*]/.exec(name);
    if (go && (go[1].includes('/') || /\.\(\*/.test(name))) return go[1];
    const parts = plain.split(/::|\./).filter(Boolean);
    if (parts.length > 1) return parts.slice(0, Math.min(2, parts.length - 1)).join(plain.includes('::') ? '::' : '.');
    return baseName(f[2]) || baseName(f[1]) || 'no package';
  }

  const CATEGORY = {
    object: f => baseName(f[2]) || 'no object',
    file: f => f[1] || baseName(f[2]) || 'no file',
    package: packageOf,
    kind: f => KINDS[f[3]],
  };

  // Kernel code and unresolved frames have the same colour in every mode.
  const fixedHue = f => f[3] === 2 ? KERNEL : f[3] >= 3 ? NEUTRAL : null;

  // Categories by their share of self, the heaviest first.
  function rankCategories(d, mode) {
    const sums = new Float64Array(d.frames.length), weights = new Map();
    for (let i = 1; i < d.count; i++) sums[d.frame[i]] += d.self[i] + (d.diff ? d.self2[i] : 0);
    d.frames.forEach((f, k) => {
      if (fixedHue(f) && mode !== 'kind') return;
      const category = CATEGORY[mode](f);
      weights.set(category, (weights.get(category) || 0) + sums[k]);
    });
    return [...weights.keys()].sort((a, b) => weights.get(b) - weights.get(a) || (a < b ? -1 : 1));
  }

  // The hue of a category is that of its name without numbers, in every page and version. It is the same in all graphs of
  // a page: of its first categories, the heaviest of a graph first, one whose hue is taken gets the next free one.
  const OWN = HUES.filter(h => h !== KERNEL), ASSIGNED_MAX = 20000, assigned = new Map();
  function hueOf(mode, category) {
    if (!assigned.has(mode) || assigned.get(mode).size >= ASSIGNED_MAX) assigned.set(mode, new Map());
    const hues = assigned.get(mode);
    if (!hues.has(category)) {
      const taken = hues.size < OWN.length ? new Set(hues.values()) : new Set();
      let at = hash(category.replace(/\d+/g, '')) % OWN.length;
      while (taken.has(OWN[at])) at = (at + 1) % OWN.length;
      hues.set(category, OWN[at]);
    }
    return hues.get(category);
  }

  // The fills of a tree's frames: fill[of[frame]]; `faint` the fills of frames that do not match a search; `legend`:
  // [text, colour] of the heaviest categories.
  function makeFills(d, mode, dark) {
    const fill = [], faint = [], number = new Map(), ink = INK[dark ? 'dark' : 'light'];
    const page = dark ? '#16181b' : '#fcfcfb';
    const add = (hex, step) => {
      const key = hex + step;
      if (!number.has(key)) {
        number.set(key, fill.length);
        fill.push(shade(hex, dark, step));
        faint.push(mix(page, shade(hex, dark, step), 0.22));
      }
      return number.get(key);
    };
    const neutral = add(NEUTRAL, 1), ranked = rankCategories(d, mode), hues = new Map(ranked.map(c => [c, hueOf(mode, c)]));
    const of = new Uint16Array(d.frames.length);
    d.frames.forEach((f, k) => {
      const fixed = fixedHue(f);
      of[k] = add(fixed || (mode === 'kind' ? OWN[f[3] === 1 ? 1 : 0] : hues.get(CATEGORY[mode](f))), hash(f[0]) % SHADES);
    });
    const legend = mode === 'kind' ? [['native', shade(OWN[0], dark, 1)], ['inlined', shade(OWN[1], dark, 1)]] :
      ranked.slice(0, 5).map(c => [baseName(c) || c, shade(hues.get(c), dark, 1)]);
    if (d.frames.some(f => f[3] === 2)) legend.push(['kernel', shade(KERNEL, dark, 1)]);
    if (d.frames.some(f => f[3] >= 3)) legend.push(['not resolved, other', shade(NEUTRAL, dark, 1)]);
    return { fill, faint, of, ink, neutral, mark: markFill(dark), legend };
  }
  const markFill = dark => shade(MARK, dark, 0);

  // ---- comparison -----------------------------------------------------------------------------------
  // Blue is less, orange is more, in steps; arrows have the same meaning.
  const DIFF_STEPS = 4;

  function diffFill(step, dark) { // -DIFF_STEPS to DIFF_STEPS
    const none = shade(NEUTRAL, dark, dark ? 2 : 0);
    if (!step) return none;
    const end = dark ? withLuminance(step < 0 ? LESS : MORE, 0.13) : step < 0 ? LESS : MORE;
    return mix(none, end, Math.abs(step) / DIFF_STEPS);
  }

  // The value of one sample of a side. If only stacks as sent were counted, each for any number of samples, it is
  // estimated; in aggregated profiles (folded stacks) by the least value of a stack.
  function estimateSample(d, side) {
    const self = side ? d.self2 : d.self, { total, samples, samples_are } = d.sides[side];
    let stacks = 0, least = Infinity;
    if (samples > 0 && samples_are !== 'stacks') return total / samples;
    for (let i = 0; i < d.count; i++)
      if (self[i] > 0) {
        stacks++;
        least = Math.min(least, self[i]);
      }
    return samples > stacks && total > 0 ? total / samples : stacks ? least : 1;
  }

  // The change of a node: `before` and `after` are shares of the totals, or values with d.absolute. `counts`: whether
  // it is statistically significant, that is, more than twice the square root of the number of samples.
  function changeOf(d, i) {
    if (!d.sampleValue) d.sampleValue = [0, 1].map(side => estimateSample(d, side));
    const scale = d.absolute ? [1, 1] : [d.total[0] || 1, d.total2[0] || 1];
    const before = d.total[i] / scale[0], after = d.total2[i] / scale[1];
    const each = side => d.sampleValue[side];
    const all = d.total[0] / each(0), all2 = d.total2[0] / each(1), even = d.absolute || !all || !all2 ? 1 : all2 / all;
    const a = d.total[i] / each(0) * even, b = d.total2[i] / each(1);
    return { before, after, counts: Math.abs(a - b) > 2 * Math.sqrt(Math.max(0, a + b)) };
  }

  // -DIFF_STEPS to DIFF_STEPS: by the ratio of after to before, or by the difference as a share of the whole.
  function diffStep(d, i, by) {
    if (i === 0 || !d.total[0] || !d.total2[0]) return 0; // an empty side is no baseline
    const { before, after, counts } = changeOf(d, i);
    if (!counts || !(before + after)) return 0;
    const whole = d.absolute ? Math.max(d.total[0], d.total2[0]) || 1 : 1;
    const strength = by === 'difference' ? Math.sqrt(Math.min(1, 5 * Math.abs(after - before) / whole)) : Math.abs(after - before) / (before + after) * 1.6;
    const step = Math.min(DIFF_STEPS, Math.ceil(strength * DIFF_STEPS - 0.05));
    return after > before ? step : -step;
  }

  function makeDiffFills(d, by, dark) {
    const steps = Array.from({ length: 2 * DIFF_STEPS + 1 }, (_, k) => diffFill(k - DIFF_STEPS, dark)), page = dark ? '#16181b' : '#fcfcfb';
    return {
      fill: steps, faint: steps.map(c => mix(page, c, 0.22)), ofNode: i => diffStep(d, i, by) + DIFF_STEPS, neutral: DIFF_STEPS,
      ink: INK[dark ? 'dark' : 'light'], mark: markFill(dark),
      legend: [['▼ less', steps[0]], ['no change, or too few samples', steps[DIFF_STEPS]], ['▲ more', steps[2 * DIFF_STEPS]]],
    };
  }

  return { MODES, INK, makeFills, makeDiffFills, changeOf, diffStep, contrast, isDark };
})();
