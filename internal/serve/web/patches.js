'use strict';

// The patches of training backends, and which of them an experiment gets. They stay as they were at the start of the service.

const planned = document.body.dataset.planned === 'true';

let patches = null; // null until they are asked for

// searched returns what the words of a search are looked for in.
function searched(p) {
  const c = p.condition || { keys: [], env: [], words: '' };
  return [p.id, ...p.symbols, ...(p.effects || []).map(e => e.target), ...c.keys, ...c.env, c.words, p.description, p.doc || '', p.file, ...p.tags].join('\n').toLowerCase();
}

// judge gives each patch that the plan is about its verdicts: one, or one a phase where it is for any.
function judge(plan) {
  const verdicts = new Map();
  for (const d of plan.patches) verdicts.set(d.patch, [...(verdicts.get(d.patch) || []), d]);
  for (const p of patches) p.verdicts = p.source === plan.source && p.effective ? verdicts.get(p.id) || [] : [];
  $('patches-plan').textContent = `${plan.config}: framework ${plan.framework}, version ${plan.version || 'unknown'}.` +
    (plan.unknown ? ` ${plan.unknown}.` : '') + plan.problems.map(problem => ` Problem: ${problem}.`).join('');
}

async function loadPatches() {
  if (patches || !$('patches-body').open) return;
  try {
    const [all, plan] = await Promise.all([ask('v1/patches'), planned ? ask('v1/patches/plan') : null]);
    patches = all.map(p => ({ ...p, text: searched(p), verdicts: [] }));
    if (plan) judge(plan);
    $('patches-source-label').hidden = new Set(patches.map(p => p.source)).size < 2;
    showPatches();
  } catch (fault) {
    $('patches-count').textContent = fault.message;
  }
}

function showPatches() {
  if (!patches) return;
  const words = $('patches-words').value.toLowerCase().split(/\s+/).filter(Boolean), source = $('patches-source').value, verdict = $('patches-verdict').value;
  const shown = patches.filter(p => words.every(w => p.text.includes(w)) && (!source || p.source === source) &&
    (!verdict || p.verdicts.some(d => d.verdict === verdict)));
  $('patches-count').textContent = `${shown.length} of ${patches.length} patches`;
  $('patches-table').tBodies[0].replaceChildren(...shown.map(patchRow));
}

function patchRow(p) {
  const column = (name, ...children) => element('td', { 'data-name': name }, ...children);
  const row = element('tr', { 'data-patch': p.id }, element('th', { scope: 'row' }, patchDetails(p)), column('backend', p.backend || 'any'), column('phase', p.phase || 'any'),
    column('priority', String(p.priority)), column('when', p.condition ? p.condition.words : 'always'));
  if (planned) row.append(column('applies', ...verdictsOf(p)));
  return row;
}

// patchDetails returns the id of a patch, which opens to what the patch is and changes.
function patchDetails(p) {
  const changes = [...new Set((p.effects || []).filter(e => e.style).map(e => `${e.style} ${e.target}`))];
  const versions = p.backend_versions.length ? [`backend version ${p.backend_versions.join(' or ')}`] : [];
  const tags = [p.effective ? '' : 'replaced', p.source === 'program' && !$('patches-source-label').hidden ? 'this program' : ''].filter(Boolean);
  return element('details', {}, element('summary', {}, p.id, ...tags.map(t => element('span', { class: 'tag' }, t))),
    element('p', {}, p.description), element('ul', {}, ...[...changes, ...versions, ...p.tags.map(t => `tag ${t}`)].map(c => element('li', {}, c))),
    element('p', { class: 'quiet' }, `${p.file}:${p.line}`));
}

function verdictsOf(p) {
  if (!p.effective) return ['no: a later registration has its id'];
  if (!p.verdicts.length) return ['–'];
  const differ = new Set(p.verdicts.map(d => `${d.verdict} ${d.reason}`)).size > 1;
  const why = d => d.reason.startsWith('depends ') ? d.reason.slice('depends'.length) : d.reason && `: ${d.reason}`;
  return (differ ? p.verdicts : p.verdicts.slice(0, 1)).map(d => element('div', {}, element('span', { class: `verdict ${d.verdict}` }, d.verdict),
    `${differ ? ` in ${d.phase}` : ''}${why(d)}`));
}

function openPatches() {
  if (location.hash === '#patches') $('patches-body').open = true;
}

$('patches-body').addEventListener('toggle', loadPatches);
$('patches-filters').addEventListener('input', showPatches);
$('patches-filters').addEventListener('submit', event => event.preventDefault());
addEventListener('hashchange', openPatches);
openPatches();
