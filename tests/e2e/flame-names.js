// SPDX-License-Identifier: Apache-2.0
// flame-names.js SCRIPT DATA: the labels that the page draws, and how many frames each search finds. No browser.
'use strict';
const { readFileSync } = require('fs');
const flame = new Function(readFileSync(process.argv[2], 'utf8') + '; return CairnFlame;')();
const data = flame.parse(JSON.parse(readFileSync(process.argv[3], 'utf8')));
const labels = [...data.frame.keys()].slice(1).map(i => flame.labelOf(data, i));
const words = ['allocator<int>', 'vector<...>::push_back', 'push_back(int', 'net/http', '^http\\.', 'nothing'];
console.log(labels.join(' '), '|', words.map(w => flame.findFrames(data, w).filter(x => x).length).join(' '));
