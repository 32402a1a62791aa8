// SPDX-License-Identifier: Apache-2.0
// flame-names.js SCRIPT,... DATA: the labels that the page draws, and the number of frames found by each search. Without a
// browser.
'use strict';
const { readFileSync } = require('fs');
const script = process.argv[2].split(',').map(f => readFileSync(f, 'utf8')).join('');
const { layout, search } = new Function(script + '; return { layout: CairnLayout, search: CairnSearch };')();
const data = layout.parse(JSON.parse(readFileSync(process.argv[3], 'utf8')));
const labels = [...data.frame.keys()].slice(1).map(i => layout.labelOf(data, i));
const words = ['allocator<int>', 'vector<...>::push_back', 'push_back(int', 'net/http', '^http\\.', 'nothing'];
console.log(labels.join(' '), '|', words.map(w => search.findFrames(data, w).filter(x => x).length).join(' '));

// A pattern for which RegExp would backtrack exponentially on such names; patterns that must match like RegExp; and one that is
// abandoned
// because of its step limit. Measured in steps, not in time.
const frames = Array.from({ length: 20000 }, (_, i) => ['a'.repeat(60) + i + '!', 'f.c', 'obj', 0, '']);
const found = (pattern, count) => {
  const result = search.findFrames({ frames: frames.slice(0, count) }, pattern);
  return result.filter(x => x).length + (result.stopped ? ' stopped' : '');
};
console.log(['(a+)+$', '(a|a)*$x', '^A+5!$', '\\ba{60}1\\d?!', '[^a]5|x', 'a{61}', '(a{1000}){1000}', '(a', 'a5!'].map(p => found(p, 100)).join(', '));
console.log(found('(.{0,30}){0,30}zz', 20000));
