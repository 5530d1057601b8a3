/** Everything in the API's document apart from the routes and what they share. */
export const V1_INTRODUCTION = {
  info: {
    title: 'Annals',
    version: '1.0.0',
    description:
      'Audit events: ingestion into a tamper-evident ledger, queries, signed webhooks, and exports.',
  },
  tags: [
    { name: 'Events', description: 'Send and query audit events.' },
    { name: 'Keys', description: 'Check the key that you use.' },
    { name: 'Webhooks', description: 'Send new events to your endpoints, signed.' },
    { name: 'Exports', description: 'Download events as JSONL or CSV.' },
    { name: 'Health', description: 'Checks for load balancers and operators.' },
  ],
  securitySchemes: { apiKey: { type: 'http', scheme: 'bearer' } },
  security: [{ apiKey: [] }],
}

/** The same for the dashboard's document. */
export const DASHBOARD_INTRODUCTION = {
  info: {
    title: 'Annals dashboard',
    version: '1.0.0',
    description:
      'The API of the dashboard. It is not part of the public contract and can change with any release.',
  },
  tags: [
    { name: 'Session', description: 'Sign in and out, passwords and one-time links.' },
    { name: 'Explorer', description: 'Query events, suggest filters, and stream new events.' },
    { name: 'Views', description: 'Saved explorer queries.' },
    { name: 'Exports', description: 'Download events as JSONL or CSV.' },
    { name: 'Templates', description: 'Saved export settings.' },
    { name: 'Webhooks', description: 'Send new events to endpoints, and inspect deliveries.' },
    { name: 'Keys', description: 'Manage API keys.' },
    { name: 'Integrity', description: 'Chain heads and verification runs.' },
    { name: 'Company', description: 'Workspaces, projects, members, plan and usage.' },
  ],
  securitySchemes: {
    session: { type: 'apiKey', in: 'cookie', name: '__Host-annals_session' },
  },
  security: [{ session: [] }],
}
