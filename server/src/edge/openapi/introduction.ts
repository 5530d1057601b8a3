const LEGAL = {
  contact: { name: 'Annals', email: 'support@annals.example' },
  license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
}

const SERVERS = [
  { url: '/', description: 'The server that serves this document.' },
  { url: 'http://127.0.0.1:8080', description: 'Annals on your machine, after `npm start`.' },
]

/** Everything in the API's document apart from the routes and what they share. */
export const V1_INTRODUCTION = {
  info: {
    title: 'Annals',
    version: '1.0.0',
    description: [
      'Annals stores audit events in a tamper-evident ledger that you can query, stream to signed webhooks, and export as JSONL or CSV.',
      'Send an API key with every request: `Authorization: Bearer <key>`. Bodies are JSON in UTF-8. Unknown fields and parameters are refused. An ID that belongs to another company gets the same response as an ID that does not exist.',
      'A key can be limited to permissions, and each operation says which one it requires. Anything in the system workspace also requires `audit`.',
      'All errors have the same body. Programs can rely on `code`. Any request can also get 404 `not_found`, 405 `method_not_allowed`, 408 `request_timeout`, 431 `headers_too_large` or 500 `internal`. Responses with status 429 and 503 have a `Retry-After` header.',
    ].join('\n\n'),
    ...LEGAL,
  },
  servers: SERVERS,
  tags: [
    { name: 'Events', description: 'Send and query audit events.' },
    { name: 'Workspaces', description: 'List the workspaces and projects that a key can see.' },
    {
      name: 'Proofs',
      description: 'Signed checkpoints and proofs, which anyone can check offline.',
    },
    { name: 'Keys', description: 'Check the key that you use.' },
    { name: 'Webhooks', description: 'Send new events to your endpoints, signed.' },
    { name: 'Exports', description: 'Download events as JSONL or CSV.' },
    { name: 'Health', description: 'Checks for load balancers and operators.' },
  ],
  securitySchemes: {
    apiKey: {
      type: 'http',
      scheme: 'bearer',
      description: 'An API key, which members create in the dashboard.',
    },
  },
  security: [{ apiKey: [] }],
}

/** The top-level fields of the dashboard's document. */
export const DASHBOARD_INTRODUCTION = {
  info: {
    title: 'Annals dashboard',
    version: '1.0.0',
    description:
      'The API of the dashboard. It is not part of the public contract and can change with any release.',
    ...LEGAL,
  },
  servers: SERVERS,
  tags: [
    { name: 'Session', description: 'Sign in and out, passwords and one-time links.' },
    { name: 'OpenID Connect', description: 'Sign in with an identity provider.' },
    { name: 'Explorer', description: 'Query events, suggest filters, and stream new events.' },
    { name: 'Views', description: 'Saved explorer queries.' },
    { name: 'Exports', description: 'Download events as JSONL or CSV.' },
    { name: 'Templates', description: 'Saved export settings.' },
    { name: 'Webhooks', description: 'Send new events to endpoints, and inspect deliveries.' },
    { name: 'Keys', description: 'Manage API keys.' },
    { name: 'Integrity', description: 'Chain heads and verification runs.' },
    { name: 'Notices', description: 'What needs the attention of members.' },
    { name: 'Company', description: 'Workspaces, projects, members, plan and usage.' },
  ],
  securitySchemes: {
    session: {
      type: 'apiKey',
      in: 'cookie',
      name: '__Host-annals_session',
      description: 'The session of a signed-in member.',
    },
  },
  security: [{ session: [] }],
}
