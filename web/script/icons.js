// SPDX-License-Identifier: Apache-2.0
//
// Icons, each a path of lines on 16 by 16.
'use strict';
const CairnIcons = (() => {
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

  return { makeIcon };
})();
