'use strict';

// The ops and their impls, and why an op is served as it is.

const marks = { selected: '●', candidate: '○', on_trial: '◐', rejected: '✕', quarantined: '❚❚', unavailable: '–' };

let impls = [];

async function showImpls() {
  impls = await ask('v1/impls');
  showMatrix();
}

function showMatrix() {
  const words = $('filter').value.trim().toLowerCase(), state = $('state').value;
  const calls = {};
  for (const i of impls) calls[i.op] = (calls[i.op] || 0) + i.calls;
  const shown = impls.filter(i => (!words || i.op.includes(words) || i.impl_id.toLowerCase().includes(words)) &&
    (!state || i.state === state) && (!$('called').checked || calls[i.op] > 0));
  const columns = [...new Set(shown.map(i => i.impl_id))].sort();
  const rows = new Map();
  for (const i of shown) rows.set(i.op, { ...rows.get(i.op), [i.impl_id]: i });
  const ops = [...rows.keys()].sort((a, b) => calls[b] - calls[a] || a.localeCompare(b));
  $('count').textContent = `${ops.length} ops`;
  $('matrix').tHead.replaceChildren(element('tr', {}, element('th', { scope: 'col' }, 'op'), ...columns.map(c => element('th', { scope: 'col' }, c))));
  const focused = document.activeElement && document.activeElement.dataset.cell;
  $('matrix').tBodies[0].replaceChildren(...ops.map(op => element('tr', { 'data-op': op }, element('th', { scope: 'row' }, op),
    ...columns.map(c => element('td', { 'data-impl': c }, ...cell(rows.get(op)[c]))))));
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

$('legend').replaceChildren(...Object.entries(marks).map(([state, mark]) => element('li', { class: state }, `${mark} ${state.replace('_', ' ')}`)));
$('filters').addEventListener('input', showMatrix);
$('filters').addEventListener('submit', event => event.preventDefault());
$('about').addEventListener('submit', event => {
  event.preventDefault();
  explain(explained);
});
parts.push(showImpls);
