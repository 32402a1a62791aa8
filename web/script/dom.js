// SPDX-License-Identifier: Apache-2.0
//
// Elements made by script. Texts go through textContent alone: nothing here parses HTML.
'use strict';
const CairnDom = (() => {
  // make('button', { type: 'button', 'aria-pressed': 'false', onclick: f }, child, ...): names with a hyphen, and role and
  // list, are attributes, the others properties. Children that are null or undefined are left out.
  function make(tag, props, ...children) {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(props || {})) {
      if (value === undefined || value === null) continue;
      if (name.includes('-') || name === 'role' || name === 'list') e.setAttribute(name, value);
      else e[name] = value;
    }
    e.append(...children.filter(c => c !== null && c !== undefined));
    return e;
  }

  const SVG = 'http://www.w3.org/2000/svg';
  // An icon of 16 by 16 from the d of its path, drawn in the colour of the text; decoration for screen readers.
  function makeIcon(path) {
    const svg = document.createElementNS(SVG, 'svg'), line = document.createElementNS(SVG, 'path');
    svg.setAttribute('viewBox', '0 0 16 16');
    svg.setAttribute('class', 'icon');
    svg.setAttribute('aria-hidden', 'true');
    line.setAttribute('d', path);
    svg.append(line);
    return svg;
  }

  return { make, makeIcon };
})();
