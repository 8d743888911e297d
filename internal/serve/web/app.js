'use strict';

const $ = id => document.getElementById(id);

// element returns an element with attributes and children; text is never read as markup.
function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

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
  if (s < 5400) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${(s / 3600).toFixed(1)} h` : `${(s / 86400).toFixed(1)} d`;
}

const bytes = v => v === null || v === undefined ? '–' : v < 2 ** 30 ? `${Math.round(v / 2 ** 20)} MiB` : `${(v / 2 ** 30).toFixed(2)} GiB`;

// Changes need a token, and a service that was started with some.

const writable = document.body.dataset.writable === 'true';

const write = (method, path, body) => ask(path, {
  method, body, headers: { 'Authorization': `Bearer ${$('token').value}`, 'Content-Type': 'application/yaml' },
});

if ($('token') && !writable) {
  $('token').disabled = true;
  $('token').placeholder = 'no token file';
  $('token').title = 'this service was started without a token file';
}

// The parts of the page are functions that show the present state; those of other files are added to them.

const parts = [];
let live = () => true; // whether the stream of events is connected, where there is one

function showLink() {
  $('link').textContent = live() ? 'live' : 'connection lost, trying again';
}

let soon = 0;

function refreshSoon() {
  clearTimeout(soon);
  soon = setTimeout(refresh, 150);
}

let fault = '', refreshing = false, again = false; // of two at once, each would add the same steps to a curve

async function refresh() {
  again = refreshing;
  if (refreshing) return;
  refreshing = true;
  try {
    await Promise.all(parts.map(show => show()));
    if (fault || document.body.dataset.archive === 'true') showLink();
    fault = '';
  } catch (e) {
    fault = e.message;
    $('link').textContent = fault;
  }
  refreshing = false;
  if (again) refresh();
}

addEventListener('DOMContentLoaded', refresh); // when all files have added their parts
setInterval(() => { if (!document.hidden) refresh(); }, 2000);
