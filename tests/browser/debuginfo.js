// SPDX-License-Identifier: Apache-2.0
// debuginfo.js URL FILE: the debuginfo and status views. FILE: {"missing": build-id without debuginfo, "named": build-id and
// "named_function" of an object that has only a symbol table, "full": build-id and "full_address" of one with DWARF,
// "upstream": URL}.
'use strict';
const fs = require('fs');
const { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');

const [url, file] = process.argv.slice(2);
const data = JSON.parse(fs.readFileSync(file));
const LOOKS = [['light', {}], ['dark', { dark: true }], ['narrow', { width: 360, height: 740 }]];
const address = keys => url + '/#' + new URLSearchParams({ from: 'now-1h', to: 'now', ...keys });
const ready = page => page.waitForFunction(() => {
  const shown = document.querySelector('[role=tabpanel]:not([hidden])');
  return shown && shown.getAttribute('aria-busy') === 'false';
});
const ask = async path => (await fetch(`${url}/api/v1/${path}`)).json();
const region = (page, name) => page.locator(`.table-scroll[aria-label="${name}"]`);
const texts = locator => locator.evaluateAll(all => all.map(e => e.textContent.trim()));
// The cells of a column, selected by its title, without the detail rows.
const column = (page, name, title) => region(page, name).locator(`tbody tr:not(.detail) td[data-title="${title}"]`).evaluateAll(all => all.map(e => e.textContent));
async function show(page, keys) {
  await page.evaluate(h => { location.hash = h; }, address(keys).split('#')[1]);
  await page.waitForFunction(k => Object.entries(k).every(([n, v]) => new URLSearchParams(location.hash.slice(1)).get(n) === v), keys);
  await ready(page);
}

// ---- missing debuginfo ----

async function tryMissing(browser) {
  const page = await openPage(browser, address({ view: 'debuginfo' }), { permissions: ['clipboard-read', 'clipboard-write'] });
  await ready(page);
  const want = await ask(`query/uploads?from=now-1h&to=now&server=${encodeURIComponent(url)}`);
  const samples = (await column(page, 'Missing debuginfo', 'Samples')).map(t => Number(t.replace(/,/g, '')));
  equal(samples, want.missing.map(u => u.samples).slice(0, 20), 'objects without names are listed, the most sampled first');
  const costs = await column(page, 'Missing debuginfo', 'Cost');
  check(costs.length && costs.every(Boolean), 'each object that lacks debuginfo has its cost', costs);
  const commands = await texts(region(page, 'Missing debuginfo').locator('.command code'));
  check(commands.length && want.missing.every(u => commands.includes(u.command) || u.mapping.length > 100), '  with the command of each, as the API has it', commands);
  check(commands.every(c => c.includes(` --server ${url} `)), '  which names the service as the page was reached');
  const lines = await region(page, 'Missing debuginfo').locator('tbody td[data-title="Build id"]').evaluateAll(all => all.map(td => {
    const range = document.createRange();
    range.selectNodeContents(td);
    return new Set([...range.getClientRects()].map(r => Math.round(r.bottom))).size;
  }));
  check(lines.every(n => n === 1), '  build-ids stand on one line', lines);
  const first = region(page, 'Missing debuginfo').locator('tr.detail').first();
  await first.locator('button', { hasText: 'Copy' }).click();
  await first.locator('text=Copied').waitFor();
  equal(await page.evaluate(() => navigator.clipboard.readText()), want.missing[0].command, '  Copy has the exact command');
  await page.click('text=Copy all commands');
  await page.waitForSelector('text=/[0-9]+ commands copied/');
  equal(await page.evaluate(() => navigator.clipboard.readText()), want.missing.map(u => u.command + '\n').join(''), '  and all of them can be copied');
  check((await column(page, 'Objects with names only', 'Build id')).some(t => t.startsWith(data.named.slice(0, 16))), 'objects with names only have a list of their own');

  const sorter = region(page, 'Missing debuginfo').locator('th button', { hasText: 'Object' });
  await sorter.focus();
  await page.keyboard.press('Enter');
  const names = await column(page, 'Missing debuginfo', 'Object');
  equal(names, names.slice().sort((a, b) => a.localeCompare(b, 'en')), 'the keyboard sorts by a column');
  equal(await sorter.locator('..').getAttribute('aria-sort'), 'ascending', '  which is said');
  await page.fill('input[aria-label="Filter Missing debuginfo"]', 'NOBODY onerror');
  await page.waitForFunction(() => document.querySelector('.table-scroll[aria-label="Missing debuginfo"]').querySelectorAll('tbody tr:not(.detail)').length === 1);
  const hostile = (await column(page, 'Missing debuginfo', 'Object'))[0];
  match(hostile, /<img src=x onerror="window\.reached=1">.*\\u\{202e\}.*\\x1b/, 'a filter finds an object by words, and its hostile name is shown as text');
  equal(await page.evaluate(() => [window.reached, document.images.length]), [undefined, 0], '  nothing of it became markup');
  match((await texts(region(page, 'Missing debuginfo').locator('.command code')))[0], / FILE$/, '  and its command has no part of it');
  await page.fill('input[aria-label="Filter Missing debuginfo"]', '');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// ---- stored objects ----

async function tryObjects(browser) {
  const page = await openPage(browser, address({ view: 'debuginfo', panel: 'objects' }));
  await ready(page);
  const { objects } = await ask('debuginfo'), full = objects.find(o => o.build_id === data.full);
  const row = region(page, 'Stored objects').locator('tbody tr', { has: page.locator(`button[title="${data.full}"]`) });
  const cells = await texts(row.locator('td'));
  equal([cells[0], cells[1], cells[2], cells[3], cells[4]], [full.name, 'debuginfo', full.quality, 'indexed', 'upload, release'], 'an object has name, kind, quality, state and origin');
  match(cells.slice(5).join(' '), /^[0-9.]+ (B|KiB|MiB) [0-9.]+ (B|KiB|MiB) .* (ago|now) /, '  its sizes, when it came and when it was used');

  // Thousands of rows.
  const many = Array.from({ length: 5000 }, (_, i) => ({ ...full, build_id: i.toString(16).padStart(40, '0'), name: `object-${i}`, size: 1000 * i, stored_bytes: i,
    ...(i === 4321 && { index: { state: 'failed', error: 'no <b>ELF</b>' }, source: 'upstream', label: '', pinned: true }) }));
  await page.route('**/api/v1/debuginfo', route => route.fulfill({ json: { objects: many } }));
  await page.click('#refresh');
  await page.waitForSelector('text=1–50 of 5,000 objects');
  check(await region(page, 'Stored objects').locator('tbody tr').count() <= 51, 'of 5,000 objects a page has 50');
  await region(page, 'Stored objects').locator('th button', { hasText: /^Size$/ }).click();
  equal((await column(page, 'Stored objects', 'Object'))[0], 'object-4999', '  sorted by size');
  await page.click('button[aria-label="Next page of Stored objects"]');
  await page.waitForSelector('text=51–100 of 5,000 objects');
  equal((await column(page, 'Stored objects', 'Object'))[0], 'object-4949', '  the second page goes on');
  const keys = new URLSearchParams(new URL(page.url()).hash.slice(1));
  equal([keys.get('objects_sort'), keys.get('objects_page')], ['-size', '2'], '  order and page are in the address');
  await page.reload();
  await page.waitForSelector('text=51–100 of 5,000 objects');
  equal((await column(page, 'Stored objects', 'Object'))[0], 'object-4949', '  which shows the same again');
  await page.fill('input[aria-label="Filter Stored objects"]', 'failed upstream pinned');
  await page.waitForSelector('text=1 object, of 5,000');
  match((await texts(region(page, 'Stored objects').locator('tr.detail')))[0], /Not indexed: no <b>ELF<\/b>\. Pinned/, '  words find one by state, origin and pin, and it says why it failed');
  await page.click('#refresh');
  await ready(page);
  check(await page.isVisible('text=1 object, of 5,000'), '  a refresh keeps the filter');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

async function tryUpstreams(browser) {
  const page = await openPage(browser, address({ view: 'debuginfo', panel: 'upstreams' }));
  await ready(page);
  const { upstreams: [want] } = await ask('debuginfo/upstreams');
  equal(await column(page, 'Upstreams', 'Upstream'), [data.upstream], 'the upstream is listed');
  equal([(await column(page, 'Upstreams', 'Missing'))[0], (await column(page, 'Upstreams', 'Failed'))[0]], [String(want.missing), String(want.failed)], '  with what it answered');
  check(want.failed > 0 && want.last_error, '  it has failed', want);
  match((await texts(region(page, 'Upstreams').locator('tr.detail')))[0], new RegExp('Last error, .*: .*' + want.last_error.slice(0, 20).replace(/[^\w ]/g, '.')), '  and its last error');
  await page.route('**/api/v1/debuginfo/upstreams', route => route.fulfill({ status: 403, json: { error: 'this concerns all tenants, and the token is bound to one' } }));
  page.expected.push(/403/);
  await page.click('#refresh');
  await page.waitForSelector('text=This concerns all tenants');
  check(await page.isHidden('#error'), 'a token of one tenant is told why it sees none');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// ---- explanation of an address ----

async function tryWhy(browser) {
  const page = await openPage(browser, address({ view: 'flame', selector: '{service_name="nobody"}' }));
  await ready(page);
  await page.waitForSelector('#view-flame canvas');
  await page.focus('#view-flame canvas');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Shift+F10');
  const link = page.locator('.menu a', { hasText: 'Why it has no name' });
  const href = await link.getAttribute('href');
  match(href, /view=debuginfo.*panel=why|panel=why.*view=debuginfo/, 'the menu of an unresolved frame leads to why');
  await page.keyboard.press('Escape');
  await page.evaluate(h => { location.hash = h; }, href);
  await page.waitForSelector('.why .steps');
  match(await page.textContent('.why'), /No name: no debuginfo\./, '  which says that there is no debuginfo');
  match(await page.textContent('.why .missing'), /Next: .*[Uu]pload/, '  and what to do');
  match(await page.textContent('.why .command code'), new RegExp(`^cairn-upload --server ${url} `), '  with the command');
  match((await texts(page.locator('.why .steps li.bad b'))).join(), /✗ Files/, '  and the step that failed');
  equal((await column(page, 'Addresses', 'State')), ['no debuginfo'], '  the address of that frame is listed');
  await axe(page, '  axe has no complaint');
  await screenshot(page, 'why-missing');

  await show(page, { view: 'top', selector: '{service_name="nobody"}' });
  await page.focus('#view-top table[role=grid]');
  await page.keyboard.press('Shift+F10');
  match(await page.locator('.menu a', { hasText: 'Why it has no name' }).getAttribute('href'), /panel=why/, '  and so does a row of the table');
  await page.keyboard.press('Escape');
  await show(page, { view: 'sandwich', selector: '{service_name="nobody"}' });
  await page.click('#view-sandwich button:text-is("Why it has no line")');
  await page.waitForSelector('.why .steps');
  equal(await column(page, 'Addresses', 'State'), ['no debuginfo'], '  and the view of its callers');

  await show(page, { view: 'debuginfo', panel: 'why', selector: '', build_id: data.full, address: data.full_address, second: '1' });
  await page.waitForSelector('.why .frames');
  match(await page.textContent('.why'), /Named by dwarf\./, 'a resolved address says by what');
  match(await page.textContent('.why .frames'), /^work_01 at .*work\.c:\d+/, '  with function, file and line');
  const steps = (await texts(page.locator('.why .steps > li > b'))).join();
  match(steps, /✓ Files.*✓ Index of symbols.*✓ Place in the file.*Sources of names.*✓ Unit of DWARF.*✓ Functions around it.*✓ Row of the line table/, '  and every step');
  match(steps, /✓ Second opinion/, '  libdw was asked, and agrees');
  await page.locator('.why details summary', { hasText: 'The whole report' }).click();
  match(await page.textContent('.why > details'), /build id.*results/s, '  the whole report can be opened');
  check(await page.inputValue('#view-debuginfo form input >> nth=0') === data.full, '  the form has what was asked');

  await show(page, { view: 'source', function: data.named_function });
  await page.click('text=Why it has no lines');
  await page.waitForSelector('.why .steps');
  match(await page.textContent('.why'), /Named by symtab; without a line\./, 'a function without lines leads to why from its source');
  match(await page.textContent('.why .missing'), /Upload debuginfo/, '  and what to do');
  match(await page.textContent('.why .command code'), new RegExp(`^cairn-upload --server ${url} `), '  with the command');

  await show(page, { view: 'debuginfo', panel: 'objects' });
  await page.locator(`button[title="${data.full}"]`).click();
  await page.waitForSelector('.table-scroll[aria-label="Addresses"] tbody button');
  check((await column(page, 'Addresses', 'Name')).includes('work_01'), 'an object leads to its addresses');
  await page.fill('#view-debuginfo form input >> nth=0', 'xyz');
  await page.fill('#view-debuginfo form input >> nth=1', '0x10');
  page.expected.push(/400/);
  await page.keyboard.press('Enter');
  await page.waitForSelector('#error:not([hidden])');
  match(await page.textContent('#error'), /^'?[^a-z].*not a build-id.*\.$/, 'what is no build-id is refused in a sentence');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// ---- status ----

async function tryStatus(browser) {
  const page = await openPage(browser, address({ view: 'status' }));
  await ready(page);
  const status = await ask('status'), { senders } = await ask('status/senders');
  match(await page.textContent('.conditions'), /Warning: quarantine.*1 batch of 8 bytes.*Next: See 'cairn store quarantine list'/, 'a condition is shown with what to do');
  const hosts = await column(page, 'Hosts', 'Host');
  equal(hosts.length, senders.length, 'all hosts are listed');
  const at = hosts.indexOf('web-71');
  equal([(await column(page, 'Hosts', 'Sent by'))[at], (await column(page, 'Hosts', 'Version'))[at]], ['cairn-agent', '1.2.3'], '  with agent and version');
  match((await column(page, 'Hosts', 'Last batch'))[at], /^(now|\d+ (s|min) ago)/, '  and its last batch');
  check(hosts.some(h => /<img src=x onerror="window\.reached=1">\\u\{202e\}/.test(h)), '  a hostile name is text', hosts);
  match((await column(page, 'Hosts', 'Clock')).join(), /[\d,]+ d ahead.*5 d behind|5 d behind.*[\d,]+ d ahead/, '  and a clock that is wrong is told');
  const cards = await texts(page.locator('.cards h2'));
  equal(cards, ['Ingest', 'Queue', 'Storage of samples', 'Compaction', 'Re-symbolization', 'Retention', 'Debuginfo', 'Memory', 'Requests', 'Disk'],
    'ingest, queue, storage, and work have a card each');
  match(await page.getAttribute('.bars', 'aria-label'), new RegExp(`^Samples of each of the last 60 minutes: ${status.ingest.samples.toLocaleString('en')} in all`), '  the last hour of samples is drawn, and said');
  match(await page.textContent('.card >> nth=0'), /Last 5 minutes[1-9][\d,.]* samples\/s/, '  with the rate of now');
  const wrapped = await page.$$eval('.card dt', all => all.filter(t => t.getBoundingClientRect().height > 1.6 * parseFloat(getComputedStyle(t).lineHeight || 20) &&
    t.getBoundingClientRect().width + t.nextSibling.getBoundingClientRect().width < 0.8 * t.parentElement.getBoundingClientRect().width).map(t => t.textContent));
  equal(wrapped, [], '  no label is wrapped where it has room');
  equal(await page.$$eval('.card dd', all => all.filter(v => v.getBoundingClientRect().height > 1.6 * parseFloat(getComputedStyle(v).lineHeight || 20) &&
    v.getBoundingClientRect().width < 0.7 * v.parentElement.getBoundingClientRect().width).map(v => v.textContent)), [], '  nor a value');
  const named = await texts(page.locator('.card dt'));
  equal(named.filter(name => name.includes('_')), [], '  names of tables and pools are words');
  match(await page.textContent('.card >> nth=5'), /Samples are kept30 d/, '  retention');
  match(await page.textContent('.card:has(h2:text-is("Debuginfo"))'), new RegExp(`Stored${(await ask('debuginfo')).objects.length} objects`), '  as many objects as are stored now');
  const reasons = await column(page, 'Errors', 'Reason');
  check(reasons.includes('bad data') && reasons.includes('too far ahead'), 'errors are listed by reason', reasons);
  match((await texts(region(page, 'Errors').locator('tr.detail'))).join('\n'), /The last one: .* \(from broken\/0\.1, 127\.0\.0\.1\).*Next: /s, '  with the last text, its sender, and what to do');
  await page.fill('input[aria-label="Filter Hosts"]', 'web-71');
  await page.waitForSelector('text=/1 sender, of /');
  equal(await column(page, 'Hosts', 'Host'), ['web-71'], 'hosts are filtered');
  await region(page, 'Errors').locator('th button', { hasText: /^What$/ }).click();
  const errors = await column(page, 'Errors', 'What'), other = await openPage(browser, page.url());
  await ready(other);
  equal([await column(other, 'Hosts', 'Host'), await column(other, 'Errors', 'What'), await region(other, 'Errors').locator('th[aria-sort]').getAttribute('aria-sort')],
    [['web-71'], errors, 'ascending'], '  a link has the order and filter of both tables');
  await other.context().close();
  await region(page, 'Errors').locator('th button', { hasText: /^Count$/ }).click();

  // Three answers of 5xx, the last 90 seconds ago.
  await page.route('**/api/v1/status/service', async route => {
    const answer = await (await route.fetch()).json(), like = answer.metrics.find(m => m.name === 'cairn_http_requests_total');
    answer.metrics = [...answer.metrics.filter(m => m.name !== 'cairn_http_last_5xx_timestamp_seconds' && !/5xx/.test(m.labels)),
      { ...like, labels: 'code="5xx"', value: 3 }, { ...like, name: 'cairn_http_last_5xx_timestamp_seconds', labels: '', value: status.now_unix_s - 90 }];
    return route.fulfill({ json: answer });
  });
  await page.click('#refresh');
  await page.waitForSelector('tr:has(td:text-is("code=5xx")):has(td:text-is("3"))');
  const failed = await texts(region(page, 'Errors').locator('tbody tr:not(.detail)', { hasText: 'code=5xx' }).locator('td'));
  match(failed.join('|'), /^Requests answered\|code=5xx\|3\|\d+ (s|min) ago\|/, 'answers of 5xx have the time of the last one');
  check(!(await column(page, 'Errors', 'Metric')).some(m => /last_5xx/.test(m)), '  which is no error itself');
  match((await texts(region(page, 'Errors').locator('tr.detail'))).join(), /The log of the service has a line for each, with its path and reason\./, '  and where to look');
  await page.unroute('**/api/v1/status/service');

  // Senders that ended after what they sent, and those that send again and again, all an hour ago with samples of two days before.
  await page.route('**/api/v1/status/senders', route => {
    const last = status.now_unix_s - 3600, like = { ...senders[0], last_unix_s: last, newest_sample_unix_s: last - 2 * 86400 };
    return route.fulfill({ json: { forgotten: 0, senders: [
      { ...like, host: 'imported', agent: 'cairn/1.2.3', batches: 1, first_unix_s: last },
      { ...like, host: 'posted', agent: 'curl/8.5.0', batches: 40, first_unix_s: last - 60 },
      { ...like, host: 'agent', agent: 'cairn-agent/1.2.3', batches: 1, first_unix_s: last },
      { ...like, host: 'sdk', agent: 'pyroscope-java/2.0', batches: 40, first_unix_s: last - 600 }] } });
  });
  await page.fill('input[aria-label="Filter Hosts"]', '');
  await page.click('#refresh');
  await page.waitForSelector('td:text-is("imported")');
  const namedHosts = await column(page, 'Hosts', 'Host'), seen = await column(page, 'Hosts', 'Last batch'), clocks = await column(page, 'Hosts', 'Clock');
  equal(Object.fromEntries(namedHosts.map((h, i) => [h, [/silent/.test(seen[i]), clocks[i]]])),
    { imported: [false, '—'], posted: [false, '—'], agent: [true, '2 d behind'], sdk: [true, '2 d behind'] },
    'only senders that send again and again are silent, or have a clock that is wrong');
  await page.unroute('**/api/v1/status/senders');

  let asked = 0;
  await page.route('**/api/v1/status/service', route => { asked++; return route.continue(); });
  await page.route('**/api/v1/status', route => route.fulfill({ json: { ...status, may_see_service: false, tenant: 'team', conditions: [] } }));
  await page.click('#refresh');
  await page.waitForSelector('text=What concerns all tenants is not shown');
  equal([asked, await page.locator('.cards h2').count()], [0, 6], 'a token of one tenant does not ask for the whole service');
  check(await page.isVisible('.ready'), '  and sees that its own is well');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// No word of a card is broken, nor a number parted from its unit where the card has room, with values of a service in use: at 100% and
// 200% of a laptop's window, and on a phone.
async function keepWords(browser) {
  for (const [width, height] of [[1440, 900], [1280, 800], [720, 450], [360, 740]]) {
    const page = await openPage(browser, address({ view: 'status' }), { width, height });
    await ready(page);
    await page.route('**/api/v1/status', async route => {
      const json = await (await route.fetch()).json();
      Object.assign(json.resymbolization, { unresolved_locations: 4740, locations_all: 1234567, requests_running: 1, locations_done: 7654 });
      Object.assign(json.queue, { batches: 12345, bytes: 987654321, quarantined_batches: 12, quarantined_bytes: 123456 });
      json.retention = { ...json.retention, age_s: 0, size_bytes: 0, rules: [{ selector: '{env="production"}', age_s: 600 }] };
      await route.fulfill({ json });
    });
    await page.route('**/api/v1/status/service', async route => {
      const json = await (await route.fetch()).json(), set = { cairn_resymbolize_locations_total: 4740, cairn_resymbolize_delays_total: 10, cairn_resymbolize_delay_seconds_total: 9.862 };
      json.metrics = [...json.metrics.filter(m => !(m.name in set)), ...Object.entries(set).map(([name, value]) => ({ name, value }))];
      await route.fulfill({ json });
    });
    await page.click('#refresh');
    await ready(page);
    const { words, broken, parted } = await page.$$eval('.card dt, .card dd', all => {
      const found = { words: 0, broken: [], parted: [] }, range = document.createRange();
      const lines = (node, from, to) => { range.setStart(node, from); range.setEnd(node, to); return new Set([...range.getClientRects()].map(r => Math.round(r.bottom))).size; };
      for (const e of all)
        for (let w = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), node = w.nextNode(); node; node = w.nextNode()) {
          for (const m of node.data.matchAll(/[^\s-]{1,20}-?/g)) {
            found.words++;
            if (lines(node, m.index, m.index + m[0].length) > 1) found.broken.push(node.data);
          }
          if (e.tagName === 'DD') for (const m of node.data.matchAll(/\d[\d.,]* (B|KiB|MiB|GiB|ms|s|min|h|d)\b/g)) if (lines(node, m.index, m.index + m[0].length) > 1) found.parted.push(node.data);
        }
      return found;
    });
    equal([words > 100, broken, parted], [true, [], []], `at ${width}x${height} no word of a card is broken, and no number parted from its unit`);
    match(await page.textContent('.card:has(h2:text-is("Re-symbolization"))'), /4,740 addresses.*986\.2 ms \(average\)/, '  of long values');
    await noProblems(page, '  no console error, no policy violation');
    await page.context().close();
  }
}

async function look(browser) {
  const parts = [['missing', { view: 'debuginfo' }], ['objects', { view: 'debuginfo', panel: 'objects' }], ['upstreams', { view: 'debuginfo', panel: 'upstreams' }],
    ['why', { view: 'debuginfo', panel: 'why', build_id: data.full, address: data.full_address, second: '1' }], ['status', { view: 'status' }]];
  for (const [name, options] of LOOKS) {
    const page = await openPage(browser, address(parts[0][1]), options);
    for (const [part, keys] of parts) {
      await show(page, keys);
      check(await page.isHidden('#error'), `${part}, ${name}: without an error`, await page.textContent('#error'));
      await axe(page, '  axe has no complaint');
      await fitsWidth(page, '  it fits the window');
      if (page.viewportSize().width >= 700)
        check(await page.evaluate(() => document.documentElement.scrollHeight <= innerHeight), '  whose only scrolled part is the view');
      await screenshot(page, `debuginfo-${part}-${name}`);
    }
    await noProblems(page, `${name}: no console error, no policy violation`);
    await page.context().close();
  }
}

run(async browser => {
  await tryMissing(browser);
  await tryObjects(browser);
  await tryUpstreams(browser);
  await tryWhy(browser);
  await tryStatus(browser);
  await keepWords(browser);
  await look(browser);
});
