// SPDX-License-Identifier: Apache-2.0
// web-selection.js SCRIPT...: times, selections and selectors computed by the page's scripts, without a browser. Prints lines
// "ok - NAME" and "not ok - NAME".
'use strict';
const { readFileSync } = require('fs');

const names = ['CairnTimes', 'CairnSelection', 'CairnSelectorText', 'CairnTimePicker', 'CairnRecent', 'CairnApi', 'CairnTracesView', 'CairnChart', 'CairnDeploys', 'CairnServicesView', 'CairnNotes', 'CairnFilters', 'CairnUnits'];
const script = process.argv.slice(2).map(f => readFileSync(f, 'utf8')).join('\n');
const kept = new Map();
const storage = { getItem: k => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v), removeItem: k => kept.delete(k) };
const { CairnTimes, CairnSelection, CairnSelectorText, CairnTimePicker, CairnRecent, CairnApi, CairnTracesView, CairnChart, CairnDeploys, CairnServicesView, CairnNotes, CairnFilters, CairnUnits } =
  new Function('document', 'matchMedia', 'localStorage', 'addEventListener', `${script}\nreturn { ${names.join(', ')} };`)(
    { documentElement: { dataset: {} } }, () => ({ matches: false, addEventListener() {} }), storage, () => {});

function equal(got, want, name) {
  const good = JSON.stringify(got) === JSON.stringify(want);
  console.log(`${good ? 'ok' : 'not ok'} - ${name}`);
  if (!good) console.log(`  got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

// ---- times --------------------------------------------------------------------------------------------

const now = Date.UTC(2026, 0, 31, 12), at = text => CairnTimes.parse(text, now);
equal(['now', 'now-15m', '-1h30m', 'now+1d', '-90', 'now-250ms'].map(t => at(t) - now), [0, -900e3, -5400e3, 86400e3, -90e3, -250], 'relative times');
equal(['1769860800', '1769860800000', '1769860800000000', '1769860800000000000'].map(at), [now, now, now, now], 'Unix times of each unit');
equal(['2026-01-31', '2026-01-31T12:00:00Z', '2026-01-31 12:00', '2026-01-31T13:00:00+01:00', '2026-01-31t12:00:00.5z'].map(t => at(t) - now),
  [-43200e3, 0, 0, 0, 500], 'dates');
equal(['', 'yesterday', '+1h', 'now-', 'now-1x', 'now-1h30', '-1d12h30', '2026-13-01', '31.1.2026', 'now-1h-1h', '-', 'nowadays'].map(at).filter(Number.isFinite), [], 'what is no time');
equal([5400e3, 86400e3, 7 * 86400e3, 8 * 86400e3, 90e3, 1500, 0].map(CairnTimes.formatDuration), ['1h30m', '1d', '1w', '8d', '1m30s', '1s500ms', '0s'], 'durations');
equal([5400e3, 8 * 86400e3, 90e3].map(ms => CairnTimes.parseDuration(CairnTimes.formatDuration(ms))), [5400e3, 8 * 86400e3, 90e3], '  are read back');

const { textOf, shift, zoomOut } = CairnTimePicker;
equal([textOf({ from: 'now-15m', to: 'now' }, now), textOf({ from: 'now-90m' }, now), textOf({ from: '2026-01-31T12:00:00Z', to: '2026-01-31T13:00:00Z' }, now),
  textOf({ from: '2026-01-31', to: '2026-02-01' }, now)],
['Last 15 minutes', 'Last 90m', '2026-01-31 12:00:00 – 13:00:00', '2026-01-31 00:00:00 – 2026-02-01 00:00:00'], 'a range in words');
equal(shift({ from: 'now-1h', to: 'now' }, now, -1), { from: '2026-01-31T10:00:00Z', to: '2026-01-31T11:00:00Z' }, 'one range earlier');
equal(shift({ from: 'now', to: 'now-1h' }, now, -1), null, '  not of a range that is the wrong way round');
equal(zoomOut({ from: 'now-45m', to: 'now' }, now), { from: 'now-1h30m', to: 'now' }, 'twice a relative range goes on moving');
equal(zoomOut({ from: '2026-01-31T10:00:00Z', to: '2026-01-31T12:00:00Z' }, now), { from: '2026-01-31T08:00:00Z', to: '2026-01-31T12:00:00Z' },
  'twice a range that ends now does not reach into the future');

// ---- selections -----------------------------------------------------------------------------------------

const selection = CairnSelection.parse('#view=top&selector=' + encodeURIComponent('{a="b&c=d"}') + '&from=now-1h&to=now&function=f');
equal(selection, { view: 'top', from: 'now-1h', to: 'now', selector: '{a="b&c=d"}', function: 'f' }, 'a selection is read');
equal(CairnSelection.parse(CairnSelection.format(selection)), selection, '  and written as it was');
equal(CairnSelection.change(selection, { view: 'flame', type: 'x' }), { view: 'flame', from: 'now-1h', to: 'now', selector: '{a="b&c=d"}', type: 'x' },
  'another view does not get what belongs to the old one');
equal(CairnSelection.change(selection, { selector: null }).selector, undefined, 'null removes');
equal(CairnSelection.makeAbsolute({ ...selection, base_from: '-2h' }, now),
  { ...selection, from: '2026-01-31T11:00:00Z', to: '2026-01-31T12:00:00Z', base_from: '2026-01-31T10:00:00Z' }, 'links have absolute times');
const hostile = CairnSelection.parse('#__proto__=x&constructor=y&view=' + 'v'.repeat(1e5) + '&A=1&a b=2&' + 'k=1&'.repeat(1000));
equal([Object.getPrototypeOf(hostile) === Object.prototype, typeof hostile.__proto__, hostile.view.length, hostile.A], [true, 'object', 16384, undefined],
  'keys and lengths from outside are bounded');

// ---- selectors --------------------------------------------------------------------------------------------

const T = CairnSelectorText, context = text => { const i = text.indexOf('|'), c = T.contextAt(text.replace('|', ''), i); return c && [c.kind, c.name || '', c.prefix]; };
equal(['|', '{|', 'ser|', '{a="b", ser|', 'a="x",|'].map(context), [['name', '', ''], ['name', '', ''], ['name', '', 'ser'], ['name', '', 'ser'], ['name', '', '']],
  'where a name is completed');
equal(['a=|', 'a="|', 'a=~"x|y"', 'b="1", service.name!="po|'].map(context), [['value', 'a', ''], ['value', 'a', ''], ['value', 'a', 'x'], ['value', 'service.name', 'po']],
  'where a value is');
equal(['a=x|', 'a="b", service_name=che|', 'a=~po.*|'].map(context), [['value', 'a', 'x'], ['value', 'service_name', 'che'], ['value', 'a', 'po.*']], '  also without a quote');
equal(T.withMatcher('zone=a, v=~1.*', 'zone', 'b'), 'v=~"1.*", zone="b"', '  which is added');
equal(['a="b"|', 'a|="b"', 'a="b" c|'].map(context), [null, ['name', '', 'a'], null], 'where neither is');
const text = '{zone="a", service=~"x\\"y", host!=`h`}';
equal(T.matchers(text).map(m => m.value), ['a', 'x"y', 'h'], 'matchers are read, however they are quoted');
equal(T.without(text, T.contextAt(text, text.indexOf('y"'))), 'zone="a", host!="h"', 'the others than the one at the caret');
equal(T.withMatcher('zone="a", v="1"', 'zone', 'b'), 'v="1", zone="b"', 'a value takes the place of another');
const odd = 'a"\\\n\u0001\u202e\u0085é<b>';
equal(T.quote(odd), '"a\\"\\\\\\x0a\\x01\\u202e\\u0085é<b>"', 'what cannot be seen is escaped');
equal(T.matchers('x=' + T.quote(odd))[0].value, odd, '  and read back');
const started = process.hrtime.bigint();
T.matchers('a="' + '\\'.repeat(100000));
T.contextAt('a='.repeat(50000) + '"' + 'x'.repeat(100000), 200000);
equal(process.hrtime.bigint() - started < 20000000000n, true, 'texts that are no selector take no time');

equal([CairnSelection.orderLabels(['arch', 'host', 'env', 'service_name', 'zone']), CairnSelection.orderLabels([{ name: 'a' }, { name: 'pod' }], l => l.name)],
  [['service_name', 'env', 'host', 'arch', 'zone'], [{ name: 'pod' }, { name: 'a' }]], 'labels are ordered by use, others stay as they came');

// ---- ids of traces and spans ------------------------------------------------------------------------------

const V = CairnTracesView, trace = '4bf92f3577b34da6a3ce929d0e0e4736', span = '00f067aa0ba902b7';
equal([`00-${trace}-${span}-01`, trace.toUpperCase(), span, `${trace}, ${span}`, `https://x.example/trace/${trace}?s=1`, '4bf92f35-77b3-4da6-a3ce-929d0e0e4736'].map(V.parseIds),
  [{ trace_id: trace, span_id: span }, { trace_id: trace }, { span_id: span }, { trace_id: trace, span_id: span }, { trace_id: trace }, { trace_id: trace }], 'ids are found in what is pasted');
equal(['', 'api', trace + '0', trace.slice(1), 'g'.repeat(32)].map(V.parseIds), [null, null, null, null, null], '  and not in other texts');
equal([V.withIds('', { trace_id: trace }), V.withIds(`cpu{a="b", span_id="x"}`, { trace_id: trace, span_id: '' }), V.withIds('span_id=~"a.*"', { span_id: span })],
  [`{trace_id="${trace}"}`, `cpu{a="b", trace_id="${trace}"}`, `{span_id=~"a.*", span_id="${span}"}`], 'a selector gets ids in place of its own');
equal(['https://t.example/{trace_id}?q={span_id}', 'https://t.example/{other}', 'javascript:alert(1)//{trace_id}', '/{trace_id}', 'data:text/html,{trace_id}', 'https://t.example/' + 'x'.repeat(9000)]
  .map(t => V.fillLink(t, { trace_id: 'a"/<b>', span_id: 'c d' }).slice(0, 60)),
['https://t.example/a%22%2F%3Cb%3E?q=c%20d', '', '', '', '', 'https://t.example/' + 'x'.repeat(42)], 'links to a tracing UI are of the web, and encoded');

// ---- data stored in the browser ----

for (let i = 0; i < 20; i++) CairnRecent.add({ selector: `a="${i}"`, view: 'top', from: 'now-1h' });
CairnRecent.add({ selector: 'a="15"' });
equal([CairnRecent.read().length, CairnRecent.read()[0], CairnRecent.read()[1].selector], [12, { selector: 'a="15"' }, 'a="19"'], 'recent queries are bounded, each is there once');
CairnRecent.add({ selector: 'x'.repeat(5000) });
equal(CairnRecent.read()[0].selector, 'a="15"', '  long ones are not kept');
kept.set('cairn-recent', '[{"selector":{"a":1}},7,{"selector":"ok"}]');
equal(CairnRecent.read(), [{ selector: 'ok' }], '  and what others wrote is not believed');

// ---- the chart and the services -------------------------------------------------------------------------

const day = Date.UTC(2026, 0, 31), ticks = (first, last, every) => {
  const texts = [];
  for (let t = Math.ceil(first / every) * every; t < last; t += every) texts.push(CairnChart.tickText(t, every, first, last - 1));
  return texts;
};
equal(ticks(day + 3600e3, day + 5 * 3600e3, 3600e3), ['01:00', '02:00', '03:00', '04:00'], 'times of one day have no date');
equal(ticks(day - 12 * 3600e3, day + 36 * 3600e3, 6 * 3600e3), ['01-30 12:00', '18:00', '01-31 00:00', '06:00', '12:00', '18:00', '02-01 00:00', '06:00'],
  '  of several days the first of each has');
const answer = { type: 'process_cpu:cpu:nanoseconds:cpu:nanoseconds', unit: 'nanoseconds', from_ms: day, to_ms: day + 10e3, base_from_ms: day - 20e3, base_to_ms: day };
const changes = [[10e9, 10e9], [10e9, 20e9], [4e9, 0], [0, 1e9], [0, 0]].map(([value, value_before]) => CairnServicesView.changeOf({ value, value_before }, answer).text);
equal(changes, ['▲ +100.0%', '0.0%', 'new', 'gone', ''], 'changes are those of the cost per second');
const deployed = { value: 0, value_before: 0, points: [9, 1, 1, 2, 2], versions: [{ label: 'version', value: '1', first_ms: day + 2e3, last_ms: day + 6e3 }, { label: 'version', value: '2', first_ms: day + 6e3, last_ms: day + 10e3 }] };
const steps = { ...answer, first_ms: day, step_ms: 2e3 }, since = (row, how = 'deploy', of = steps) => CairnServicesView.changeOf(row, of, how).text;
equal([since(deployed), since(deployed, ''), since({ ...deployed, versions: deployed.versions.slice(1) }), since(deployed, 'deploy', { ...steps, from_ms: day + 7e3 })], ['▲ +100.0%', '', '', ''],
  '  or since the last deploy in the range, against the version before');
equal(since({ ...deployed, points: [0, 4, 0, 2, 0] }, 'deploy', { ...steps, aggregation: 'average' }), '▼ -50.0%', '  of averages without steps that have none');
equal([15e9, 1e6, 0].map(value => CairnServicesView.costText({ value, value_before: 0 }, answer)), ['1.50', '0.0001', '0.00'], '  and CPU time is in cores');
const inUnit = (name, unit, value) => CairnServicesView.costText({ value, value_before: 0 }, { ...answer, type: `process_cpu:${name}:${unit}:wall:${unit}`, unit });
equal([inUnit('cpu', 'microseconds', 15e6), inUnit('cpu', 'ms', 15e3), inUnit('wall', 'microseconds', 15e6), inUnit('cpu', 'count', 15)], ['1.50', '1.50', '15.0 s', '15'],
  '  in any unit of time');
const versions = [{ label: 'version', value: '1', first_ms: day - 20e3, last_ms: day - 10e3 }, { label: 'version', value: '2', first_ms: day, last_ms: day + 10e3 }];
const comparison = v => CairnServicesView.comparisonOf({ labels: { service_name: 'a"b' }, versions: v }, answer, { selector: 'x="1"' });
equal([comparison(versions).text, comparison(versions).change.from, comparison(versions).change.selector, comparison([]).text],
  ['1', '2026-01-30T23:59:40Z', 'x="1", service_name="a\\"b"', 'the time before'], 'a version that ended before the range is compared in a range that has it');
equal(CairnDeploys.list([{ service_name: 'api', value: '1', first_ms: 5 }, { service_name: 'api', value: '1b', first_ms: 5 }, { service_name: 'api', value: '2', first_ms: 9 },
  { service_name: 'web', value: '7', first_ms: 9 }]), [{ ms: 9, name: '2', text: 'version: api 1b → 2' }], 'a deployment is a version that appears later than others of its service');
const build = (program, value, first_ms, version = '') => ({ service_name: 'shop', label: 'process_executable_build_id_gnu', program, version, value: value.repeat(40), first_ms, last_ms: first_ms + 1 });
const builds = [build('shop', 'a', 1), build('sh', 'c', 2), build('shop', 'b', 3), build('shop', 'd', 4, '1'), build('sh', 'e', 5), build('shop', 'f', 6, '2')];
equal(CairnDeploys.list(builds).map(d => [d.ms, d.name, d.text]), [[3, 'bbbbbbbb', 'build: shop aaaaaaaa → bbbbbbbb'], [5, 'eeeeeeee', 'build: shop sh cccccccc → eeeeeeee']],
  '  or another build of the same program and version');
const { text: oldBuild, change: buildChange } = comparison(builds.slice(0, 3));
equal([oldBuild, buildChange.label, buildChange.before, buildChange.after], ['aaaaaaaa', 'process_executable_build_id_gnu', 'a'.repeat(40), 'b'.repeat(40)],
  '  which is compared with the build before');
equal([comparison(builds.slice(0, 2)).text, CairnDeploys.findLast([...builds, { value: '3', first_ms: 7 }, { value: '4', first_ms: 7 }]).now.value[0]], ['the time before', 'e'],
  '  that of another program is none, nor is what came at the same time');

const notes = [], api = CairnApi.create({ note: text => notes.push(text) });
globalThis.fetch = async path => ({ ok: true, status: 200, headers: new Map([['X-Cairn-Note', path.replace(/\?.*/, '')]]), json: () => ({}) });
const noted = Promise.all([api.query('top', {}), api.query('labels', { from: 1 }), api.query('label/a%2Fb/values', { from: 1 }), api.query('series', {})]);
noted.then(() => equal(notes, ['api/v1/query/top', 'api/v1/query/series'], 'only notes about what the page shows are shown'));
const sent = [];
noted.then(async () => {
  globalThis.fetch = async (path, options) => { sent.push(options.headers || {}); return { ok: true, status: 200, headers: new Map(), json: () => ({}) }; };
  await CairnApi.create({ tenant: () => 'team-a' }).query('top', {});
  await CairnApi.create({ tenant: () => '' }).query('top', {});
  equal(sent, [{ 'X-Scope-OrgID': 'team-a' }, {}], 'requests are those of the tenant that the link names');
});

// ---- notes, filters and tables ------------------------------------------------------------------------

const note = text => ({ kind: CairnNotes.kindOf(text), text });
const range = day => note(`no samples are in this time range; there are some from 2026-01-${day} 12:00:00 to 2026-02-01T00:00:00Z UTC`);
const sum = (value, more = '') => note(`stacks with negative values are not drawn: ${value} together${more}`);
CairnNotes.dismiss(range('02'));
CairnNotes.dismiss(sum('1.20 s'));
equal([range('03'), sum('340 ms'), sum('7'), sum('1.20 s', '; sums beyond 5 are cut off'), note('not included: samples of type a:b:c:d:e')].map(n => CairnNotes.isDismissed(n)),
  [true, true, false, false, false], 'a dismissed note stays away while it differs in times and values only');
equal([sum('1 s').kind === sum('x', '; more').kind, range('02').kind === sum('1 s').kind], [true, false], '  its kind is how it begins');
CairnNotes.dismiss(sum('1.20 s', '; more'));
equal([CairnNotes.isDismissed(sum('1.20 s')), CairnNotes.isDismissed(sum('9.99 s', '; more'))], [false, true], '  of a kind the last text is kept');
CairnNotes.restore([range('02')]);
equal([CairnNotes.isDismissed(range('02')), CairnNotes.isDismissed(sum('1 s', '; more'))], [false, true], '  and a kind can be shown again');
for (let i = 0; i < 200; i++) CairnNotes.dismiss(note(`kind ${String.fromCharCode(97 + i % 26)}${String.fromCharCode(97 + Math.floor(i / 26))}`));
equal([Object.keys(JSON.parse(kept.get('cairn-notes'))).length, CairnNotes.isDismissed(note('kind ra'))], [64, false], '  a browser keeps the last 64 kinds');
for (const broken of ['{', '[]', '"x"', 'null', '7']) {
  kept.set('cairn-notes', broken);
  equal(CairnNotes.isDismissed(sum('1 s')), false, `  "${broken}" in its place is none`);
}

const chip = selection => CairnFilters.chipTexts(CairnFilters.list(selection));
equal([{}, { focus: '^malloc$' }, { ignore: 'a|b', hide: '^x\\.y$' }, { show: '^a\\d$' }, { hide: '(a|b)' }].map(chip),
  [['Filter', ''], ['Filter: with malloc', ''], ['Filter: without a', '+ 2'], ['Filter: only frames ^a\\d$', ''], ['Filter: hidden (a|b)', '']], 'the chip has the first filter, an exact name without its pattern');

equal(CairnSelection.tableKeys('hosts', { sort: '-size', page: null }), { hosts_sort: '-size', hosts_page: null }, 'keys of one of several tables');
equal(CairnSelection.tableState('hosts', { sort: 'a', hosts_sort: 'b', hosts_filter: 'c' }), { sort: 'b', filter: 'c' }, '  and what they say');
equal(CairnSelection.tableState('', { sort: 'a', hosts_sort: 'b' }), { sort: 'a' }, '  of a view with one table without its name');
equal(CairnSelection.parse(CairnSelection.format(CairnSelection.change({ view: 'status' }, CairnSelection.tableKeys('hosts', { sort: '-a', filter: 'x y', page: 2 })))).hosts_filter, 'x y', '  in the address');
equal([0, 1e-9, 2e-6, 0.05, 2].map(cores => CairnUnits.coresText(cores * 1e9, 'nanoseconds', 1000)), ['0.00', '<0.000001', '0.000002', '0.05', '2.00'], 'cores have no exponent');

equal(CairnApi.makeUrl('api/x', { a: '1&2', b: undefined, c: null, d: '', e: ['p', 'q'], f: 0 }), 'api/x?a=1%262&e=p&e=q&f=0', 'parameters');
