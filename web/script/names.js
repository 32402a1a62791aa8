// SPDX-License-Identifier: Apache-2.0
//
// Untrusted names in displayable form: every character visible, and bounded in length. Names without control characters
// and zero-width characters, and of usual length, are unchanged.
'use strict';
const CairnNames = (() => {
  const SHOWN_MAX = 1000, LABEL_MAX = 400;

  // Control characters (C0, DEL, C1), bidirectional formatting, zero-width characters (soft hyphen, joiners, byte order
  // mark, variation selectors, tags), line and paragraph separators, private-use characters and noncharacters, lone
  // surrogates, and combining marks from the fifth on one letter.
  const HIDDEN = new RegExp('[\\x00-\\x1f\\x7f-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f' +
    '\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff]|[\\ud800-\\udfff]|' +
    '[\\u{e0000}-\\u{e0fff}]|[\\u{1d173}-\\u{1d17a}]', 'gu');
  const MARKS = /(\p{M}{4})(\p{M}+)/gu;

  const escapeOne = c => {
    const code = c.codePointAt(0);
    return code < 0x100 ? '\\x' + code.toString(16).padStart(2, '0') : `\\u{${code.toString(16)}}`;
  };
  const escapeAll = text => text.replace(HIDDEN, escapeOne).replace(MARKS, (all, few, rest) => few + Array.from(rest, escapeOne).join(''));

  // Cut without splitting surrogate pairs.
  function cut(text, from, to) {
    const half = at => at > 0 && at < text.length && /[\ud800-\udbff]/.test(text[at - 1]) && /[\udc00-\udfff]/.test(text[at]);
    return text.slice(half(from) ? from + 1 : from, half(to) ? to - 1 : to);
  }

  // A name of more than max characters is shortened in the middle.
  function display(text, max = SHOWN_MAX) {
    let s = text === null || text === undefined ? '' : String(text);
    if (s.length > max) {
      const tail = Math.floor(max / 4), head = max - tail;
      s = escapeAll(cut(s, 0, head)) + `…[${(s.length - max).toLocaleString('en')} more]…` + escapeAll(cut(s, s.length - tail, s.length));
    } else {
      s = escapeAll(s);
    }
    return s;
  }

  // For one line of a graph or table.
  const label = text => display(text, LABEL_MAX);

  // A regular expression of the query API that matches exactly this name; of a long name, its prefix.
  const PATTERN_MAX = 400;
  function exactPattern(name) {
    let pattern = '';
    for (const c of name) {
      const piece = /[\\^$.*+?()[\]{}|]/.test(c) ? '\\' + c : c;
      if (new TextEncoder().encode(pattern + piece).length > PATTERN_MAX) return '^' + pattern;
      pattern += piece;
    }
    return '^' + pattern + '$';
  }

  // The same where a pattern has to match the whole name.
  const wholePattern = name => { const pattern = exactPattern(name); return pattern.endsWith('$') ? pattern : pattern + '.*'; };

  // Frames of generated code without names, and the options by which runtimes write them (docs/quick-starts/agents.md).
  const JIT = '[jit]', JIT_TEXT = 'Code that a runtime generated, without names. They come from a perf map, which these options write: ' +
    'Java -XX:+PreserveFramePointer with jcmd PID Compiler.perfmap, Node.js --perf-basic-prof, Python 3.12 -X perf, ' +
    '.NET DOTNET_PerfMapEnabled=1, Ruby --yjit-perf, PHP opcache.jit_debug=0x10, Erlang +JPperf true.';

  // A message of the service as a whole sentence.
  const sentence = text => { const s = display(text); return s && s[0].toUpperCase() + s.slice(1) + (/[.!?]$/.test(s) ? '' : '.'); };

  return { sentence, display, label, exactPattern, wholePattern, JIT, JIT_TEXT };
})();
