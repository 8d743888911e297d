'use strict';

// The run, or the runs of an archive: how they stand, their curves, what their impls did, and their log.

const maxCompared = 6; // curves that can be told apart
const curves = new Map(); // by the id of the run: when it started, and its points
const compared = new Set();
let shown = '';

async function showRuns() {
  const all = await ask('v1/runs');
  const run = all.find(r => r.id === shown) || all[0];
  shown = run ? run.id : '';
  $('run-none').hidden = Boolean(run);
  for (const part of document.querySelectorAll('#run-body, #output, [href="#output"]')) part.hidden = !run;
  if ($('runs')) listRuns(all);
  if (!run) return;
  const path = `v1/runs/${encodeURIComponent(run.id)}`;
  const others = all.filter(r => compared.has(r.id) && r.id !== run.id);
  const [used, text, taken, ...points] = await Promise.all([ask(`${path}/impls`), fetch(`${path}/log?lines=200`).then(r => r.text()),
    $('save') ? ask('v1/process') : null, ...[run, ...others].map(pointsOf)]);
  showRun(run, taken);
  showShare(used);
  showLog(text);
  showCurves([run, ...others], points);
}

// pointsOf returns the points of a run, of which it asks for those that are new.
async function pointsOf(run) {
  let curve = curves.get(run.id);
  if (!curve || curve.started !== run.started || curve.points.length > 4096) {
    curve = { started: run.started, points: [] };
    curves.set(run.id, curve);
  }
  const last = curve.points[curve.points.length - 1];
  curve.points.push(...await ask(`v1/runs/${encodeURIComponent(run.id)}/steps?from=${last ? last.step + 1 : 0}`));
  return curve.points;
}

function showCurves(list, points) {
  const loss = [], speed = [];
  list.forEach((run, i) => {
    const one = list.length === 1, kind = `s${i}`;
    loss.push({ label: one ? 'training' : run.id, kind, points: points[i], value: p => p.loss });
    speed.push({ label: one ? 'tokens/s' : run.id, kind, points: averaged(points[i], p => p.tokens_per_second), value: p => p.mean });
    if (one) loss.push({ label: 'validation', kind: 'valid', points: points[i], value: p => p.valid_loss, dots: true });
  });
  const units = new Set(list.map(run => run.loss_unit));
  $('loss-name').textContent = units.size === 1 ? `Loss, ${list[0].loss_unit}` : 'Loss';
  draw('loss', 'Loss', loss, false);
  draw('speed', 'Throughput', speed, true);
}

// averaged returns points with the mean of a value over a fiftieth of all points on each side: single steps differ too much
// to be read as a curve.
function averaged(points, value) {
  const known = points.filter(p => typeof value(p) === 'number'), reach = Math.floor(known.length / 50);
  const sums = [0];
  for (const p of known) sums.push(sums[sums.length - 1] + value(p));
  return known.map((p, i) => {
    const from = Math.max(0, i - reach), to = Math.min(known.length, i + reach + 1);
    return { step: p.step, mean: (sums[to] - sums[from]) / (to - from) };
  });
}

let before = null; // the figures of the process when they were asked for last

// busy returns how many CPUs the process has kept busy since it was asked last.
function busy(taken) {
  const now = performance.now(), last = before;
  before = { now, pid: taken.pid, seconds: taken.cpu_seconds };
  if (!last || last.pid !== taken.pid || taken.cpu_seconds === null) return null;
  return Math.max(0, (taken.cpu_seconds - last.seconds) / ((now - last.now) / 1000));
}

function showRun(run, taken) {
  $('run-name').textContent = run.name;
  $('run-state').textContent = run.state;
  $('run-state').className = 'tag ' + run.state;
  $('run-about').textContent = `${run.model}` + (run.parameters ? ` · ${figure(run.parameters, 3)} parameters` : '') + (run.error ? ` · ${run.error}` : '');
  $('run-where').textContent = `host ${run.host || 'unknown'} · rank ${run.rank} of ${run.world_size} · process ${run.pid} · started ${when(run.started)}` + (run.ended ? ` · ended ${when(run.ended)}` : '');
  $('run-dir').textContent = run.dir;
  $('run-progress').value = run.steps ? run.step / run.steps : 0;
  const age = run.checkpoint_age_seconds;
  const tiles = [
    ['step', run.steps ? `${run.step} / ${run.steps}` : String(run.step)], ['loss', figure(run.loss)], ['valid loss', figure(run.valid_loss)],
    ['tokens/s', figure(run.tokens_per_second, 3)], ['elapsed', duration(run.elapsed_seconds)], ['time left', duration(run.eta_seconds)],
    ['last checkpoint', run.checkpoint_step ? `step ${run.checkpoint_step}` + (age === null ? '' : `, ${duration(age)} ago`) : 'none'],
    ['fallbacks', figure(run.fallbacks), run.fallbacks ? 'warn' : ''], ['errors of impls', figure(run.errors), run.errors ? 'bad' : ''],
    ['learning rate', figure(run.lr, 3)], ['grad norm', figure(run.grad_norm, 3)],
  ];
  if (run.ranks) {
    const { slowest, skew, wait_seconds, compute_seconds } = run.ranks, percent = share => `${Math.round(100 * share)} %`;
    tiles.push(['slowest rank', `${slowest}, ${percent(skew)} above the mean`, skew > 0.2 ? 'warn' : ''],
      ['waiting for ranks', percent(wait_seconds / (wait_seconds + compute_seconds[0]))]);
  }
  if (run.tflops_per_device) tiles.push(['TFLOP/s per device', figure(run.tflops_per_device, 3)]);
  if (run.memory_bytes) tiles.push(['memory per device', bytes(run.memory_bytes)]);
  if (taken) {
    const cpus = busy(taken);
    tiles.push(['memory', bytes(taken.resident_bytes)], ['CPUs busy', cpus === null ? '–' : `${cpus.toFixed(1)} of ${taken.cpus}`]);
  }
  $('run-tiles').replaceChildren(...tiles.map(([name, value, kind]) =>
    element('div', { class: kind || '' }, element('dt', {}, name), element('dd', {}, value))));
  $('run-notes').replaceChildren(...notes(run).map(text => element('li', {}, text)));
  if ($('save')) {
    $('save').disabled = $('stop').disabled = !writable || run.ended;
    $('save').title = $('stop').title = writable ? '' : 'this service was started without a token file';
  }
}

const when = time => new Date(time).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

// notes returns what holds up or slows down a run and is easily overlooked.
function notes(run) {
  const of = !run.ended ? 'of a step' : 'of the run';
  const hangs = [run.stalled, run.diverged].filter(Boolean);
  return hangs.concat((run.reference || []).map(c => `${c.op} took ${Math.round(100 * c.share)} % of the time ${of} on ${c.impl_id}: ${c.reason}.`));
}

function showShare(used) {
  const total = used.reduce((sum, u) => sum + u.nanos, 0);
  const top = used.filter(u => u.nanos > 0).sort((a, b) => b.nanos - a.nanos).slice(0, 8);
  if (!top.length) {
    $('share').replaceChildren(element('li', { class: 'quiet' }, 'No op has been called.'));
    return;
  }
  $('share').replaceChildren(...top.map(u => {
    const share = u.nanos / total;
    return element('li', {}, element('span', {}, `${u.op} `, element('span', { class: 'quiet' }, u.impl_id)),
      element('meter', { value: share, max: 1, 'aria-label': `${u.op} by ${u.impl_id}` }), element('span', {}, `${(100 * share).toFixed(1)} %`));
  }));
}

let following = true; // the log is shown at its end, unless somebody has scrolled up

function toEnd() {
  if (following) $('tail').scrollTop = $('tail').scrollHeight;
}

function showLog(text) {
  if ($('tail').textContent !== text) $('tail').textContent = text;
  toEnd();
}

// listRuns shows the runs of an archive.
function listRuns(all) {
  const focused = document.activeElement && document.activeElement.dataset.run;
  $('runs').tBodies[0].replaceChildren(...all.map(run => {
    const box = element('input', { type: 'checkbox', 'aria-label': `compare ${run.id}`, 'data-run': `compare ${run.id}` });
    box.checked = run.id === shown || compared.has(run.id);
    box.disabled = run.id === shown || !box.checked && compared.size >= maxCompared - 1;
    box.addEventListener('change', () => {
      if (box.checked) compared.add(run.id); else compared.delete(run.id);
      refresh();
    });
    const name = element('button', { type: 'button', 'data-run': run.id, 'aria-pressed': String(run.id === shown) }, run.id);
    name.addEventListener('click', () => {
      shown = run.id;
      refresh();
    });
    const figures = {
      step: run.steps ? `${run.step} / ${run.steps}` : String(run.step), loss: figure(run.loss), 'valid loss': figure(run.valid_loss),
      'tokens/s': figure(run.tokens_per_second, 3), started: when(run.started),
    };
    return element('tr', { class: run.id === shown ? 'shown' : '' }, element('td', {}, box), element('th', { scope: 'row' }, name),
      element('td', {}, element('span', { class: `tag ${run.state}` }, run.state)),
      ...Object.entries(figures).map(([name, value]) => element('td', { 'data-name': name }, value)));
  }));
  if (focused) document.querySelector(`[data-run="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

// askFor asks something of the run, after a question.
function askFor(what, question, answer) {
  $('confirm-question').textContent = question;
  $('confirm-yes').textContent = answer;
  $('confirm').returnValue = '';
  $('confirm').showModal();
  $('confirm').onclose = async () => {
    if ($('confirm').returnValue !== 'yes') return;
    try {
      await write('POST', `v1/runs/${encodeURIComponent(shown)}/${what}`);
      $('asked').className = '';
      $('asked').textContent = { save: 'A checkpoint is saved after the current step.', stop: 'The run finishes the current step, saves and ends.' }[what];
    } catch (fault) {
      $('asked').className = 'bad';
      $('asked').textContent = fault.message;
    }
    refresh();
  };
}

$('tail').addEventListener('scroll', () => {
  following = $('tail').scrollHeight - $('tail').scrollTop - $('tail').clientHeight < 20;
});
new ResizeObserver(toEnd).observe($('tail'));
if ($('save')) {
  $('save').addEventListener('click', () => askFor('save', `Save a checkpoint of ${shown} after the current step?`, 'Save'));
  $('stop').addEventListener('click', () => askFor('stop', `Stop ${shown}? It finishes the current step, saves and ends.`, 'Stop the run'));
}
parts.push(showRuns);
