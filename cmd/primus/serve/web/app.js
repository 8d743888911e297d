'use strict';

const $ = id => document.getElementById(id);

// element returns an element with attributes and children; text is never read as markup.
function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

const marks = { selected: '●', candidate: '○', on_trial: '◐', rejected: '✕', quarantined: '❚❚', unavailable: '–' };

// ask returns what a path answers, and throws the problem of the answer if it is none.
async function ask(path, options) {
  const response = await fetch(path, options);
  const body = await response.json();
  if (!response.ok) {
    const places = (body.errors || []).map(e => `${e.location ? e.location.replace('body:', 'line ') + ': ' : ''}${e.message}`);
    throw new Error([body.detail, ...places].join('\n'));
  }
  return body;
}

const figure = (v, digits = 4) => v === null || v === undefined ? '–' : v.toLocaleString('en', { maximumSignificantDigits: digits, notation: v < 1e4 ? 'standard' : 'compact' });

function duration(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const s = Math.round(seconds);
  if (s < 90) return `${s} s`;
  return s < 5400 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`;
}

// Run.

let points = [], curveOf = '';

async function showRun() {
  const [run] = await ask('v1/runs');
  $('run-none').hidden = Boolean(run);
  $('run-body').hidden = !run;
  if (!run) return;
  $('run-name').textContent = run.name;
  $('run-state').textContent = run.state;
  $('run-state').className = 'tag ' + run.state;
  $('run-about').textContent = `${run.model} · ${figure(run.parameters, 3)} parameters` + (run.error ? ` · ${run.error}` : '');
  $('run-progress').value = run.steps ? run.step / run.steps : 0;
  const tiles = {
    'step': `${run.step} / ${run.steps}`, 'loss': figure(run.loss), 'valid loss': figure(run.valid_loss),
    'learning rate': figure(run.lr, 3), 'grad norm': figure(run.grad_norm, 3), 'tokens/s': figure(run.tokens_per_second, 3),
    'time left': duration(run.eta_seconds),
  };
  $('run-tiles').replaceChildren(...Object.entries(tiles).map(([name, value]) =>
    element('div', {}, element('dt', {}, name), element('dd', {}, value))));
  if (curveOf !== run.started || points.length > 4096) {
    points = [];
    curveOf = run.started;
  }
  const from = points.length ? points[points.length - 1].step + 1 : 0;
  points.push(...await ask(`v1/runs/${encodeURIComponent(run.name)}/steps?from=${from}`));
  draw($('loss'), 'Loss', points, p => p.loss, p => p.valid_loss);
  draw($('speed'), 'Throughput', points, p => p.tokens_per_second, () => undefined);
}

// draw plots a value of points over their steps, with marks where a second value is there.
function draw(svg, name, points, value, second) {
  const known = points.filter(p => typeof value(p) === 'number');
  const node = (tag, attributes, text) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    if (text !== undefined) e.textContent = text;
    return e;
  };
  if (!known.length) {
    svg.replaceChildren();
    svg.setAttribute('aria-label', `${name}: no steps yet`);
    return;
  }
  const first = known[0], last = known[known.length - 1];
  svg.setAttribute('aria-label', `${name}: ${figure(value(first))} at step ${first.step}, ${figure(value(last))} at step ${last.step}`);
  const values = known.flatMap(p => [value(p), second(p)]).filter(v => typeof v === 'number');
  const low = Math.min(...values), high = Math.max(...values);
  const x = p => 72 + 518 * (p.step - first.step) / Math.max(1, last.step - first.step);
  const y = v => 150 - 135 * (v - low) / ((high - low) || 1);
  const path = known.map((p, i) => `${i ? 'L' : 'M'}${x(p).toFixed(1)} ${y(value(p)).toFixed(1)}`).join('');
  svg.replaceChildren(
    node('path', { class: 'axis', d: 'M72 10V150H590', fill: 'none' }),
    node('text', { x: 66, y: 20, 'text-anchor': 'end' }, figure(high, 3)),
    node('text', { x: 66, y: 152, 'text-anchor': 'end' }, figure(low, 3)),
    node('text', { x: 72, y: 172 }, `step ${first.step}`),
    node('text', { x: 590, y: 172, 'text-anchor': 'end' }, `step ${last.step}`),
    node('path', { class: 'curve', d: path }),
    ...known.filter(p => typeof second(p) === 'number').map(p => node('circle', { class: 'valid', r: 3.5, cx: x(p), cy: y(second(p)) })),
  );
}

// Ops and impls.

let impls = [];

async function showImpls() {
  impls = await ask('v1/impls');
  showShare();
  showMatrix();
}

function showShare() {
  const total = impls.reduce((sum, i) => sum + i.nanos, 0);
  const top = impls.filter(i => i.nanos > 0).sort((a, b) => b.nanos - a.nanos).slice(0, 8);
  if (!top.length) {
    $('share').replaceChildren(element('li', { class: 'quiet' }, 'No op has been called.'));
    return;
  }
  $('share').replaceChildren(...top.map(i => {
    const share = i.nanos / total;
    return element('li', {}, element('span', {}, `${i.op} `, element('span', { class: 'quiet' }, i.impl_id)),
      element('meter', { value: share, max: 1, 'aria-label': `${i.op} by ${i.impl_id}` }), element('span', {}, `${(100 * share).toFixed(1)} %`));
  }));
}

function showMatrix() {
  const words = $('filter').value.trim().toLowerCase(), state = $('state').value;
  const calls = {};
  for (const i of impls) calls[i.op] = (calls[i.op] || 0) + i.calls;
  const shown = impls.filter(i => (!words || i.op.includes(words) || i.impl_id.toLowerCase().includes(words)) &&
    (!state || i.state === state) && (!$('called').checked || calls[i.op] > 0));
  const columns = [...new Set(impls.map(i => i.impl_id))].sort();
  const rows = new Map();
  for (const i of shown) rows.set(i.op, { ...rows.get(i.op), [i.impl_id]: i });
  const ops = [...rows.keys()].sort((a, b) => calls[b] - calls[a] || a.localeCompare(b));
  $('count').textContent = `${ops.length} ops`;
  $('matrix').tHead.replaceChildren(element('tr', {}, element('th', { scope: 'col' }, 'op'), ...columns.map(c => element('th', { scope: 'col' }, c))));
  const focused = document.activeElement && document.activeElement.dataset.cell;
  $('matrix').tBodies[0].replaceChildren(...ops.map(op => element('tr', { 'data-op': op }, element('th', { scope: 'row' }, op),
    ...columns.map(c => element('td', {}, ...cell(rows.get(op)[c]))))));
  if (focused) document.querySelector(`[data-cell="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

function cell(i) {
  if (!i) return [];
  const text = i.calls ? `${marks[i.state]} ${figure(i.calls, 3)}` : marks[i.state];
  const label = `${i.op}, ${i.impl_id}: ${i.state.replace('_', ' ')}, ${i.calls} calls` + (i.reason ? `, ${i.reason}` : '');
  const button = element('button', { type: 'button', class: i.state, 'aria-label': label, title: i.reason || i.state, 'data-cell': `${i.op} ${i.impl_id}` }, text);
  button.addEventListener('click', () => explain(i.op));
  return [button];
}

// Explanation.

let explained = '';

async function explain(op) {
  explained = op;
  $('explain-title').textContent = op;
  if (!$('explain').open) $('explain').showModal();
  const query = new URLSearchParams();
  for (const name of ['dtype', 'shape', 'layer', 'phase']) {
    if ($(name).value.trim()) query.set(name, $(name).value.trim());
  }
  try {
    const e = await ask(`v1/ops/${encodeURIComponent(op)}/explain?${query}`);
    $('explain-fault').textContent = '';
    $('explain-verdict').textContent = e.selected ? `served by ${e.selected}` : 'no impl can be selected, so calls fail';
    $('explain-order').textContent = `order: ${e.tokens} (${e.source})` + (e.follows ? `; ranked as ${e.follows}, with which it shares saved state` : '') + (e.rules ? `; ${e.rules}` : '');
    const row = (rank, s) => element('tr', {}, element('td', {}, String(rank)), element('th', { scope: 'row' }, s.impl_id), element('td', {}, s.kind),
      element('td', {}, String(s.priority)), element('td', {}, s.supports || ''), element('td', {}, s.reason || ''));
    $('standings').tBodies[0].replaceChildren(...e.order.map((s, i) => row(i + 1, s)), ...e.rejected.map(s => row('–', s)));
  } catch (fault) {
    $('explain-fault').textContent = fault.message;
  }
}

// Policy.

let generation = 0, edited = false;

async function showPolicy() {
  const state = await ask('v1/policy');
  generation = state.generation;
  $('generation').textContent = generation;
  const { sources, ...fields } = state.policy;
  const text = v => v === null ? 'all' : Array.isArray(v) ? (v.map(x => typeof x === 'object' ? JSON.stringify(x) : x).join(', ') || 'none')
    : typeof v === 'object' ? (Object.entries(v).map(([k, x]) => `${k}: ${Array.isArray(x) ? x.join('|') : x === null ? 'all' : x}`).join(', ') || 'none') : String(v);
  $('fields').tBodies[0].replaceChildren(...Object.entries(fields).map(([name, v]) =>
    element('tr', {}, element('th', { scope: 'row' }, name), element('td', {}, text(v)), element('td', { class: 'quiet' }, sources[name] || ''))));
  $('warnings').replaceChildren(...state.warnings.map(w => element('li', {}, w)));
  if (!edited) $('document').value = state.document;
  $('withdraw').disabled = !state.document || document.body.dataset.writable !== 'true';
  const aside = await ask('v1/quarantine');
  $('aside-none').hidden = aside.length > 0;
  $('aside').replaceChildren(...aside.map(q => {
    const button = element('button', { type: 'button', 'aria-label': `Use ${q.impl_id} of ${q.op} again` }, 'use again');
    button.addEventListener('click', () => decide(() => write('DELETE', `v1/quarantine?${new URLSearchParams({ op: q.op, impl_id: q.impl_id })}`),
      () => `${q.impl_id} is used for ${q.op} again`));
    return element('li', {}, `${q.op} ${q.impl_id}: ${q.state.replace('_', ' ')}, ${q.failures} failures, until ${q.until}: ${q.cause} `, button);
  }));
}

const write = (method, path, body) => ask(path, {
  method, body, headers: { 'Authorization': `Bearer ${$('token').value}`, 'Content-Type': 'application/yaml' },
});

// decide asks for something and shows what came of it.
async function decide(request, sentence) {
  try {
    const answer = await request();
    $('verdict').className = '';
    $('verdict').textContent = sentence(answer);
    showDiff(answer);
    refresh();
    return answer;
  } catch (fault) {
    $('verdict').className = 'bad';
    $('verdict').textContent = fault.message;
    $('diff').replaceChildren();
  }
}

function showDiff(answer) {
  $('diff').replaceChildren(
    ...(answer.changes || []).map(c => element('li', {}, `${c.op}${c.where ? ` (${c.where})` : ''}: `, element('del', {}, c.from || 'none'), ' → ',
      element('ins', {}, c.to || 'none, calls fail'), c.reason ? ` – ${c.reason}` : '')),
    ...(answer.warnings || []).map(w => element('li', { class: 'warnings' }, w)));
}

const counted = n => n === 1 ? '1 op' : `${n} ops`;
let seen = 0; // the generation at which the proposal was made

$('editor').addEventListener('submit', async event => {
  event.preventDefault();
  const answer = await decide(() => write('POST', 'v1/policy/proposal', $('document').value), a => `This would change what serves ${counted(a.changes.length)}.`);
  seen = answer ? answer.generation : 0;
  $('apply').disabled = !answer || document.body.dataset.writable !== 'true';
});
$('document').addEventListener('input', () => {
  edited = true;
  $('apply').disabled = true;
});
$('apply').addEventListener('click', async () => {
  const answer = await decide(() => write('PUT', `v1/policy?expected_generation=${seen}`, $('document').value), a => `In force since generation ${a.generation}: ${counted(a.changes.length)} changed.`);
  if (answer) edited = false;
  $('apply').disabled = true;
});
$('withdraw').addEventListener('click', () => decide(() => write('DELETE', `v1/policy?expected_generation=${generation}`), a => {
  edited = false;
  return `Withdrawn in generation ${a.generation}: ${counted(a.changes.length)} changed.`;
}));

// Events.

const mostLines = 300;

function sentence(e) {
  switch (e.type) {
    case 'registered': return `${e.count} impls are registered`;
    case 'selected': return `${e.op}: served by ${e.impl_id}`;
    case 'switched': return `${e.op}: ${e.from} → ${e.impl_id}`;
    case 'fell_back': return `${e.op}: fell back from ${e.from} to ${e.impl_id}, ${e.count}×: ${e.cause}`;
    case 'failed': case 'declined': return `${e.op}: ${e.impl_id} ${e.type}, ${e.count}×: ${e.cause}`;
    case 'quarantined': return `${e.op}: ${e.impl_id} is set aside until ${e.until}: ${e.cause}`;
    case 'released': return `${e.op}: ${e.impl_id} is used again`;
    case 'policy_changed': return `another policy is in force, generation ${e.generation}`;
    case 'verification_failed': return `${e.op}: ${e.impl_id}: ${e.cause}`;
    case 'lost': return `${e.count} events are not kept any more`;
    default: return `${e.run || ''}`;
  }
}

let source;

function showLink() {
  $('link').textContent = source.readyState === EventSource.OPEN ? 'live' : 'connection lost, trying again';
}

function follow() {
  source = new EventSource('v1/events');
  source.onopen = source.onerror = showLink;
  const add = message => {
    const e = JSON.parse(message.data);
    const line = element('li', { class: e.type }, element('time', { datetime: e.time }, new Date(e.time).toLocaleTimeString('en-GB')), `${e.type.replaceAll('_', ' ')} `, sentence(e));
    $('log').prepend(line);
    while ($('log').children.length > mostLines) $('log').lastChild.remove();
    if (['policy_changed', 'quarantined', 'released', 'run_started', 'run_ended'].includes(e.type)) refreshSoon();
  };
  for (const type of ['registered', 'selected', 'switched', 'fell_back', 'failed', 'declined', 'quarantined', 'released', 'policy_changed',
    'verification_failed', 'run_started', 'run_ended', 'lost']) source.addEventListener(type, add);
}

// Refreshing.

let soon = 0;

function refreshSoon() {
  clearTimeout(soon);
  soon = setTimeout(refresh, 150);
}

let fault = '', refreshing = false, again = false; // of two at once, each would add the same steps to the curve

async function refresh() {
  again = refreshing;
  if (refreshing) return;
  refreshing = true;
  try {
    await Promise.all([showRun(), showImpls(), showPolicy()]);
    if (fault) showLink();
    fault = '';
  } catch (e) {
    fault = e.message;
    $('link').textContent = fault;
  }
  refreshing = false;
  if (again) refresh();
}

$('legend').replaceChildren(...Object.entries(marks).map(([state, mark]) => element('li', { class: state }, `${mark} ${state.replace('_', ' ')}`)));
$('filters').addEventListener('input', showMatrix);
$('filters').addEventListener('submit', event => event.preventDefault());
$('about').addEventListener('submit', event => {
  event.preventDefault();
  explain(explained);
});
if (document.body.dataset.writable !== 'true') {
  $('token').disabled = true;
  $('token').placeholder = 'this service was started without a token file';
}
refresh();
follow();
setInterval(() => { if (!document.hidden) refresh(); }, 2000);
