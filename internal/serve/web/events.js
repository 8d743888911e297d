'use strict';

// What happens, as the service tells it.

const mostLines = 300;

function sentence(e) {
  switch (e.type) {
    case 'registered': return `${e.count} impls are registered`;
    case 'selected': return `${e.op}: served by ${e.impl_id}`;
    case 'switched': return `${e.op}: ${e.from} → ${e.impl_id}`;
    case 'fell_back': return `${e.op}: fell back from ${e.from} to ${e.impl_id}, ${e.count}×: ${e.cause}`;
    case 'failed': case 'declined': return `${e.op}: ${e.impl_id} ${e.type}, ${e.count}×: ${e.cause}`;
    case 'quarantined': return `${e.op}: ${e.impl_id} is in quarantine until ${e.until || 'it is cleared'}: ${e.cause}`;
    case 'released': return `${e.op}: ${e.impl_id} is used again`;
    case 'policy_changed': return `another policy is in force, generation ${e.generation}`;
    case 'canary': return `${e.op}: canary ${e.cause}`;
    case 'verification_failed': return `${e.op}: ${e.impl_id}: ${e.cause}`;
    case 'checkpoint_saved': return `step ${e.checkpoint}`;
    case 'policy_put_back': case 'stalled': case 'spike': case 'skipped': case 'rewound': case 'diverged': case 'recovered': return e.cause;
    case 'lost': return `${e.count} events are not kept any more`;
    default: return `${e.run || ''}`;
  }
}

function follow() {
  const source = new EventSource('v1/events');
  live = () => source.readyState === EventSource.OPEN;
  source.onopen = source.onerror = showLink;
  const add = message => {
    const e = JSON.parse(message.data);
    const line = element('li', { class: e.type }, element('time', { datetime: e.time }, new Date(e.time).toLocaleTimeString('en-GB')), `${e.type.replaceAll('_', ' ')} `, sentence(e));
    $('log').prepend(line);
    while ($('log').children.length > mostLines) $('log').lastChild.remove();
    if (['policy_changed', 'policy_put_back', 'quarantined', 'released', 'run_started', 'checkpoint_saved', 'stalled', 'resumed', 'skipped', 'rewound', 'diverged', 'recovered', 'run_ended'].includes(e.type)) refreshSoon();
  };
  for (const type of ['registered', 'selected', 'switched', 'fell_back', 'failed', 'declined', 'quarantined', 'released', 'policy_changed', 'policy_put_back',
    'canary', 'verification_failed', 'run_started', 'checkpoint_saved', 'stalled', 'resumed', 'spike', 'skipped', 'rewound', 'diverged',
    'recovered', 'run_ended', 'lost']) source.addEventListener(type, add);
}

follow();
