// SPDX-License-Identifier: Apache-2.0
// flame-names.js SCRIPT DATA: the labels that the page draws, and how many frames each search finds. No browser.
'use strict';
const { readFileSync } = require('fs');
const flame = new Function(readFileSync(process.argv[2], 'utf8') + '; return CairnFlame;')();
const data = flame.parse(JSON.parse(readFileSync(process.argv[3], 'utf8')));
const labels = [...data.frame.keys()].slice(1).map(i => flame.labelOf(data, i));
const words = ['allocator<int>', 'vector<...>::push_back', 'push_back(int', 'net/http', '^http\\.', 'nothing'];
console.log(labels.join(' '), '|', words.map(w => flame.findFrames(data, w).filter(x => x).length).join(' '));

// A pattern that makes RegExp backtrack for ever on such names; others match what RegExp would; one that takes too many
// steps is given up. Counted in steps, not in time.
const frames = Array.from({ length: 20000 }, (_, i) => ['a'.repeat(60) + i + '!', 'f.c', 'obj', 0, '']);
const found = (pattern, count) => {
  const result = flame.findFrames({ frames: frames.slice(0, count) }, pattern);
  return result.filter(x => x).length + (result.stopped ? ' stopped' : '');
};
console.log(['(a+)+$', '(a|a)*$x', '^A+5!$', '\\ba{60}1\\d?!', '[^a]5|x', 'a{61}', '(a{1000}){1000}', '(a', 'a5!'].map(p => found(p, 100)).join(', '));
console.log(found('(.{0,30}){0,30}zz', 20000));
