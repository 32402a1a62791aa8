// SPDX-License-Identifier: Apache-2.0
//
// Frames that match a search, in a bounded number of steps for any pattern and names.
'use strict';
const CairnSearch = (() => {
  // Names are untrusted and patterns arbitrary: RegExp backtracks, so that (a+)+$ on a name of forty letters freezes
  // the page. This matcher simulates the NFA of a pattern (Thompson's construction) within a budget of steps for the
  // whole search. The syntax is that of the service's selectors, and \b \B. Searches ignore case.
  const SEARCH_STEPS = 2e7, PROGRAM_MAX = 2000;

  // Parse to a tree of [kind, ...]; throws on a syntax error. With `fold`, case is ignored.
  function parsePattern(text, fold) {
    let at = 0, depth = 0;
    const fail = () => { throw new SyntaxError(text); };
    const classes = { d: /[0-9]/, w: /[0-9a-z_]/i, s: /\s/ };
    const escaped = () => { // after a backslash: a character or a test of one
      const c = text[at++], named = c && classes[c.toLowerCase()];
      if (named) return c === c.toLowerCase() ? x => named.test(x) : x => !named.test(x);
      const control = { n: '\n', r: '\r', t: '\t' }[c];
      if (control) return control;
      if (c === 'x' && /^[0-9a-f]{2}$/i.test(text.slice(at, at + 2)))
        return String.fromCharCode(parseInt(text.slice(at, at += 2), 16));
      return c === undefined || /[0-9a-z]/i.test(c) ? fail() : c;
    };
    const letter = c => fold ? c.toLowerCase() : c;
    const equals = c => {
      if (typeof c !== 'string') return c;
      const wanted = letter(c);
      return x => x === wanted;
    };
    function set() {
      const negated = text[at] === '^', tests = [];
      at += negated;
      for (let first = true; first || text[at] !== ']'; first = false) {
        if (at >= text.length) fail();
        let low = text[at++], high;
        if (low === '\\') low = escaped();
        if (typeof low === 'string' && text[at] === '-' && text[at + 1] && text[at + 1] !== ']') {
          at++;
          high = text[at++];
          if (high === '\\') high = escaped();
          if (typeof high !== 'string' || high < low) fail();
          tests.push(x => (x >= low && x <= high) || (fold && x.toUpperCase() >= low && x.toUpperCase() <= high));
        } else {
          tests.push(equals(low));
        }
      }
      at++;
      return ['set', x => tests.some(t => t(x)) !== negated];
    }
    function atom() {
      const c = text[at++];
      if (c === '(') {
        if (++depth > 64) fail();
        if (text.startsWith('?:', at)) at += 2;
        else if (text[at] === '?') fail();
        const inner = alternatives();
        if (text[at++] !== ')') fail();
        depth--;
        return inner;
      }
      if (c === '[') return set();
      if (c === '^') return ['begin'];
      if (c === '$') return ['end'];
      if (c === '.') return ['set', () => true];
      if ('*+?{'.includes(c)) fail();
      if (c === '\\' && (text[at] === 'b' || text[at] === 'B')) return [text[at++] === 'b' ? 'edge' : 'no edge'];
      return ['set', equals(c === '\\' ? escaped() : c)];
    }
    function repeated() {
      let node = atom();
      while (at < text.length && '*+?{'.includes(text[at])) {
        const c = text[at++];
        let min = c === '+' ? 1 : 0, max = c === '?' ? 1 : Infinity;
        if (c === '{') {
          const counts = /^(\d{1,4})(,(\d{0,4}))?\}/.exec(text.slice(at, at + 12)) || fail();
          at += counts[0].length;
          min = +counts[1];
          max = !counts[2] ? min : counts[3] ? +counts[3] : Infinity;
          if (max < min) fail();
        }
        if (text[at] === '?') at++;
        node = ['repeat', node, min, max];
      }
      return node;
    }
    function alternatives() {
      const all = [[]];
      while (at < text.length && text[at] !== ')') {
        if (text[at] === '|') { at++; all.push([]); }
        else all[all.length - 1].push(repeated());
      }
      return ['any of', all];
    }
    const tree = alternatives();
    if (at < text.length) fail();
    return tree;
  }

  // Compile to instructions [kind, test or target, target]; throws when there are too many.
  function compilePattern(words, matchCase = false) {
    const folded = words.startsWith('(?i)'), text = folded ? words.slice(4) : words, fold = folded || !matchCase, code = [];
    let steps = 0;
    const put = (...instruction) => {
      if (code.length >= PROGRAM_MAX) throw new RangeError('the pattern repeats too much');
      return code.push(instruction) - 1;
    };
    function emit([kind, inner, min, max]) {
      if (++steps > 16 * PROGRAM_MAX) throw new RangeError('the pattern repeats too much');
      if (kind === 'any of') {
        const ends = [];
        inner.forEach((sequence, i) => {
          const split = i < inner.length - 1 ? put('split', code.length + 1, 0) : -1;
          sequence.forEach(emit);
          if (split < 0) return;
          ends.push(put('jump', 0));
          code[split][2] = code.length;
        });
        for (const end of ends) code[end][1] = code.length;
      } else if (kind === 'repeat') {
        for (let i = 0; i < min; i++) emit(inner);
        const optional = max === Infinity ? 1 : max - min;
        for (let i = 0; i < optional; i++) {
          const split = put('split', code.length + 1, 0);
          emit(inner);
          if (max === Infinity) put('jump', split);
          code[split][2] = code.length;
        }
      } else {
        put(kind, inner);
      }
    }
    emit(parsePattern(text, fold));
    code.push(['match']);
    return { code, fold, marks: new Float64Array(code.length), mark: 0 };
  }

  const isWord = c => c !== undefined && /[0-9a-z_]/i.test(c);

  // Whether the pattern matches anywhere in text; false once budget.left is used up.
  function findPattern(p, text, budget) {
    const s = p.fold ? text.toLowerCase() : text, stack = [];
    let now = [], matched = false;
    const enter = (list, state, at) => {
      stack.push(state);
      while (stack.length) {
        const pc = stack.pop(), [kind, target, other] = p.code[pc];
        budget.left--;
        if (p.marks[pc] === p.mark) continue;
        p.marks[pc] = p.mark;
        if (kind === 'match') matched = true;
        else if (kind === 'set') list.push(pc);
        else if (kind === 'jump') stack.push(target);
        else if (kind === 'split') stack.push(other, target);
        else if ((kind === 'begin' && at === 0) || (kind === 'end' && at === s.length) ||
                 ((kind === 'edge' || kind === 'no edge') && (isWord(s[at - 1]) !== isWord(s[at])) === (kind === 'edge')))
          stack.push(pc + 1);
      }
    };
    p.mark++;
    for (let at = 0; budget.left > 0; at++) {
      enter(now, 0, at);
      if (matched || at >= s.length) return matched;
      const next = [];
      p.mark++;
      for (const pc of now) {
        budget.left--;
        if (p.code[pc][1](s[at])) enter(next, pc + 1, at + 1);
      }
      now = next;
    }
    return false;
  }

  // Test each distinct text once: frames share files and objects.
  function testFrames(frames, test) {
    const known = new Map();
    const once = s => {
      let result = known.get(s);
      if (result === undefined) known.set(s, result = test(s));
      return result;
    };
    return frames.map(f => once(f[0]) || Boolean(f[1] && once(f[1])) || Boolean(f[2] && once(f[2])) ||
      Boolean(f[5] && once(f[5])) || Boolean(f[6] && once(f[6])));
  }

  // Frames with the words in one of their names, their file or their object, literally or as a pattern. `stopped` of
  // the result: the pattern exceeded the budget, and further matches are literal ones only.
  function findFrames(d, words) {
    const plain = words.toLowerCase(), budget = { left: SEARCH_STEPS };
    let pattern = null;
    try {
      pattern = compilePattern(words);
    } catch {
      // Words that are not a pattern are searched literally only. ("operator()" is a pattern, which is why both are
      // tried.)
    }
    const found = testFrames(d.frames, s => s.toLowerCase().includes(plain) || (pattern !== null && findPattern(pattern, s, budget)));
    found.stopped = budget.left <= 0;
    return found;
  }

  // Frames that match a filter of the query API. Throws an Error to display if it is not a pattern, or takes too long.
  function matchFrames(frames, pattern) {
    const budget = { left: 10 * SEARCH_STEPS };
    let program;
    try {
      program = compilePattern(pattern, true);
    } catch {
      throw new Error(`bad regular expression '${pattern.slice(0, 200)}'`);
    }
    const found = testFrames(frames, s => findPattern(program, s, budget));
    if (budget.left <= 0) throw new Error('the regular expression takes too long');
    return found;
  }

  return { findFrames, matchFrames };
})();
