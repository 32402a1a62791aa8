// SPDX-License-Identifier: Apache-2.0
//
// The text of a selector, {name="value", other=~"a|b"}, during editing: the token at the caret, and changes to single
// matchers. The service parses selectors; this must agree with it only on complete selectors.
'use strict';
const CairnSelectorText = (() => {
  const NAME = '[A-Za-z_][\\w.\\/-]*';
  const BARE = '[^\\s=,{}"\'`]'; // of a value without quotes
  const MATCHER = new RegExp(`(${NAME})\\s*(=~|!~|!=|=)\\s*("(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*'|\`[^\`]*\`|${BARE}+)`, 'g');

  // Quote with escapes as in Go, which the service unquotes; invisible and bidirectional formatting characters are
  // escaped.
  const quote = value => '"' + value.replace(/[\\"]/g, '\\$&').replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, c => {
    const code = c.charCodeAt(0);
    return code < 0x80 ? '\\x' + code.toString(16).padStart(2, '0') : '\\u' + code.toString(16).padStart(4, '0');
  }) + '"';
  function unquote(text) {
    if (!/^["'`]/.test(text)) return text;
    if (text[0] === '`') return text.slice(1, -1);
    return text.slice(1, -1).replace(/\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))/gs, (all, byte, unit, c) =>
      byte || unit ? String.fromCharCode(parseInt(byte || unit, 16)) : { n: '\n', t: '\t', r: '\r' }[c] || c);
  }

  // [{ name, op, value, start, end }]
  const matchers = text => [...text.matchAll(MATCHER)].map(m =>
    ({ name: m[1], op: m[2], value: unquote(m[3]), start: m.index, end: m.index + m[0].length }));

  const format = list => list.map(m => m.name + m.op + quote(m.value)).join(', ');

  // The token before the caret: { kind: 'name', prefix, start, end } or { kind: 'value', name, op, prefix, start, end
  // }, where a completion replaces start to end; null for any other token.
  function contextAt(text, caret) {
    const before = text.slice(0, caret), after = text.slice(caret);
    const value = new RegExp(`(${NAME})\\s*(=~|!~|!=|=)\\s*("(?:[^"\\\\]|\\\\.)*|${BARE}*)$`).exec(before);
    if (value && !/^\s*[=!~]/.test(after)) {
      const isQuoted = value[3].startsWith('"'), rest = isQuoted ? /^(?:[^"\\]|\\.)*"?/.exec(after) : new RegExp(`^${BARE}*`).exec(after);
      return { kind: 'value', name: value[1], op: value[2], prefix: value[3].slice(isQuoted ? 1 : 0), matcher: value.index,
        start: caret - value[3].length, end: caret + rest[0].length };
    }
    const name = new RegExp(`(^|[{,])\\s*((?:${NAME})?)$`).exec(before);
    if (!name) return null;
    return { kind: 'name', prefix: name[2], start: caret - name[2].length, end: caret + /^[\w.\/-]*/.exec(after)[0].length };
  }

  // All matchers except the one at the caret.
  const without = (text, context) => format(matchers(text).filter(m => m.end <= context.matcher || m.start >= context.end));

  // Add a matcher; it replaces an equality matcher of the same name.
  const withMatcher = (text, name, value) =>
    format([...matchers(text).filter(m => m.name !== name || m.op !== '='), { name, op: '=', value }]);

  // The same for each label of a group; text may be undefined.
  const withLabels = (text, labels) => Object.entries(labels).reduce((all, [name, value]) => withMatcher(all, name, value), text || '');

  return { quote, matchers, format, contextAt, without, withMatcher, withLabels };
})();
