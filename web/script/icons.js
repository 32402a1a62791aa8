// SPDX-License-Identifier: Apache-2.0
//
// Icons, each a path of 16 by 16.
'use strict';
const CairnIcons = (() => {
  const SVG = 'http://www.w3.org/2000/svg';
  // An icon from the d of its path, in the colour of the text; hidden from screen readers.
  function makeIcon(path) {
    const svg = document.createElementNS(SVG, 'svg'), line = document.createElementNS(SVG, 'path');
    svg.setAttribute('viewBox', '0 0 16 16');
    svg.setAttribute('class', 'icon');
    svg.setAttribute('aria-hidden', 'true');
    line.setAttribute('d', path);
    svg.append(line);
    return svg;
  }

  return { makeIcon };
})();
