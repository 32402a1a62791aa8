// SPDX-License-Identifier: Apache-2.0
//
// Light and dark, and the colours of frames.
'use strict';
const CairnPalette = (() => {
  const { kindOf, baseName } = CairnLayout, { isDark } = CairnTheme;

  function hash(text) {
    let h = 2166136261;
    for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
    return h >>> 0;
  }
  // User code by object, from green over blue to violet; the name moves the shade a little, so neighbours differ.
  function colour(d, i, dark) {
    const kind = kindOf(d, i);
    if (i === 0) return dark ? '#3a4048' : '#dcdcd6';
    const f = d.frames[d.frame[i]], jitter = hash(f[0]) % 9 - 4;
    if (kind === 'unresolved' || kind === 'other' || kind === 'label') return `hsl(40 3% ${(dark ? 33 : 80) + jitter / 2}%)`;
    if (kind === 'kernel') return `hsl(${30 + jitter} ${dark ? 48 : 88}% ${(dark ? 33 : 74) + jitter / 2}%)`;
    const hue = 140 + hash(baseName(f[2])) % 13 * 11;
    const light = dark ? (kind === 'inlined' ? 26 : 34) : (kind === 'inlined' ? 84 : 74);
    return `hsl(${hue + jitter} ${dark ? 34 : 48}% ${light + jitter / 2}%)`;
  }
  // Blue is less, orange is more: readable without telling red from green.
  function diffColour(d, i, dark) {
    const before = d.total[0] ? d.total[i] / d.total[0] : 0, after = d.total2[0] ? d.total2[i] / d.total2[0] : 0;
    const change = before + after ? (after - before) / (before + after) : 0;
    if (i === 0 || Math.abs(change) < 0.005) return dark ? '#3a4048' : '#e3e3de';
    const strong = Math.min(1, Math.abs(change) * 1.6);
    const hue = change > 0 ? 24 : 214;
    return dark ? `hsl(${hue} ${30 + 45 * strong}% ${26 + 16 * strong}%)` : `hsl(${hue} ${40 + 50 * strong}% ${90 - 24 * strong}%)`;
  }

  function legend(d) {
    const box = document.createElement('span'), dark = isDark();
    const items = d.diff ?
      [['less', dark ? 'hsl(214 75% 42%)' : 'hsl(214 90% 66%)'], ['more', dark ? 'hsl(24 75% 42%)' : 'hsl(24 90% 66%)']] :
      [['user', dark ? 'hsl(200 34% 34%)' : 'hsl(200 48% 74%)'], ['inlined', dark ? 'hsl(200 34% 26%)' : 'hsl(200 48% 84%)'],
        ['kernel', dark ? 'hsl(30 48% 33%)' : 'hsl(30 88% 74%)'], ['not resolved', dark ? 'hsl(40 3% 33%)' : 'hsl(40 3% 80%)']];
    box.className = 'legend';
    for (const [text, fill] of items) {
      const item = document.createElement('span'), swatch = document.createElement('i');
      swatch.style.background = fill;
      item.append(swatch, text);
      box.append(item);
    }
    return box;
  }

  return { colour, diffColour, legend };
})();
