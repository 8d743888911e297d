'use strict';

// Charts of curves over steps, with grid and legend, and the values of the step that the pointer or the arrow keys are at.

const svgNode = (tag, attributes, text) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
};

// ticks returns round numbers from low to high, about as many as asked for.
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(m => m * power >= rough);
  const all = [];
  for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-12); i++) all.push(i * step);
  return all;
}

const chartHeight = 200, chartLeft = 62, chartRight = 10, chartTop = 10, chartBottom = 26;
const charts = new Map(); // by the id of the svg: what it shows, where, and the step that is looked at

// draw shows series in the svg with an id. Each has a label, a class, its points, the value of a point, and whether it is
// drawn as single dots. A chart from zero has 0 at its lower edge.
function draw(id, name, series, fromZero) {
  const chart = charts.get(id) || watch(id);
  Object.assign(chart, { name, series: series.map(s => ({ ...s, points: s.points.filter(p => typeof s.value(p) === 'number') })).filter(s => s.points.length), fromZero });
  const svg = $(id);
  $(`${id}-legend`).replaceChildren(...chart.series.map(s => element('li', {}, element('span', { class: `swatch ${s.kind}` }), s.label)));
  if (!chart.series.length) {
    svg.replaceChildren();
    svg.setAttribute('aria-label', `${name}: no steps yet`);
    $(`${id}-value`).textContent = '';
    return;
  }
  const { points, value } = chart.series[0], first = points[0], last = points[points.length - 1];
  svg.setAttribute('aria-label', `${name}: ${figure(value(first))} at step ${first.step}, ${figure(value(last))} at step ${last.step}`);
  paint(chart);
}

function paint(chart) {
  const svg = chart.svg, width = Math.max(svg.clientWidth, 200);
  const steps = chart.series.flatMap(s => [s.points[0].step, s.points[s.points.length - 1].step]);
  const firstStep = Math.min(...steps), lastStep = Math.max(...steps);
  let low = chart.fromZero ? 0 : Infinity, high = -Infinity;
  for (const s of chart.series) {
    for (const p of s.points) {
      low = Math.min(low, s.value(p));
      high = Math.max(high, s.value(p));
    }
  }
  if (low === high) [low, high] = [low - 1, high + 1];
  const x = step => chartLeft + (width - chartLeft - chartRight) * (step - firstStep) / Math.max(1, lastStep - firstStep);
  const y = v => chartHeight - chartBottom - (chartHeight - chartTop - chartBottom) * (v - low) / (high - low);
  Object.assign(chart, { x, y, firstStep, lastStep, width });
  const nodes = [];
  for (const v of ticks(low, high, 5)) {
    nodes.push(svgNode('path', { class: 'grid', d: `M${chartLeft} ${y(v)}H${width - chartRight}` }),
      svgNode('text', { x: chartLeft - 6, y: y(v) + 4, 'text-anchor': 'end' }, figure(v, 3)));
  }
  for (const step of ticks(firstStep, lastStep, width / 110).filter(Number.isInteger)) {
    nodes.push(svgNode('path', { class: 'grid', d: `M${x(step)} ${chartTop}V${chartHeight - chartBottom}` }),
      svgNode('text', { x: x(step), y: chartHeight - 8, 'text-anchor': x(step) > width - 40 ? 'end' : 'middle' }, figure(step)));
  }
  nodes.push(svgNode('path', { class: 'axis', d: `M${chartLeft} ${chartTop}V${chartHeight - chartBottom}H${width - chartRight}` }));
  for (const s of chart.series) {
    if (s.dots) nodes.push(...s.points.map(p => svgNode('circle', { class: s.kind, r: 3, cx: x(p.step), cy: y(s.value(p)) })));
    else nodes.push(svgNode('path', { class: `curve ${s.kind}`, d: s.points.map((p, i) => `${i ? 'L' : 'M'}${x(p.step).toFixed(1)} ${y(s.value(p)).toFixed(1)}`).join('') }));
  }
  chart.cursor = svgNode('g', { class: 'cursor' });
  svg.setAttribute('viewBox', `0 0 ${width} ${chartHeight}`);
  svg.replaceChildren(...nodes, chart.cursor);
  look(chart);
}

// nearest returns the point of a series whose step is nearest to one.
function nearest(points, step) {
  let low = 0, high = points.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle].step < step) low = middle + 1; else high = middle;
  }
  return low > 0 && step - points[low - 1].step < points[low].step - step ? points[low - 1] : points[low];
}

// look shows the values at the step that is looked at, if there is one.
function look(chart) {
  const out = $(`${chart.svg.id}-value`);
  if (chart.step === null || !chart.series.length) {
    chart.cursor?.replaceChildren();
    out.textContent = '';
    return;
  }
  const step = nearest(chart.series[0].points, chart.step).step, at = chart.x(step);
  const found = chart.series.map(s => ({ s, p: nearest(s.points, step) }));
  chart.cursor.replaceChildren(svgNode('path', { d: `M${at} ${chartTop}V${chartHeight - chartBottom}` }),
    ...found.map(({ s, p }) => svgNode('circle', { class: s.kind, r: 4, cx: chart.x(p.step), cy: chart.y(s.value(p)) })));
  out.textContent = `step ${step}: ` + found.map(({ s, p }) => `${s.label} ${figure(s.value(p))}` + (p.step === step ? '' : ` (step ${p.step})`)).join(', ');
}

// watch begins to show values in an svg.
function watch(id) {
  const svg = $(id), chart = { svg, series: [], step: null };
  charts.set(id, chart);
  const to = step => {
    chart.step = step;
    if (chart.cursor) look(chart);
  };
  svg.addEventListener('pointermove', event => {
    if (!chart.series.length) return;
    const share = (event.clientX - svg.getBoundingClientRect().left) / svg.clientWidth * chart.width;
    to(chart.firstStep + (share - chartLeft) / (chart.width - chartLeft - chartRight) * (chart.lastStep - chart.firstStep));
  });
  svg.addEventListener('pointerleave', () => to(null));
  svg.addEventListener('blur', () => to(null));
  svg.addEventListener('keydown', event => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !chart.series.length) return;
    event.preventDefault();
    const points = chart.series[0].points;
    const i = chart.step === null ? points.length - 1 : points.indexOf(nearest(points, chart.step)) + by * Math.max(1, Math.round(points.length / 100));
    to(points[Math.min(Math.max(i, 0), points.length - 1)].step);
  });
  new ResizeObserver(() => { if (chart.series.length) paint(chart); }).observe(svg);
  return chart;
}
