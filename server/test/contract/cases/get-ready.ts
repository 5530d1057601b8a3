import type { OperationCases } from '../driver.ts'

export const getReady: OperationCases = {
  cases: [
    { status: 200, when: 'the node is ready', send: ({ ask }) => ask('GET', '/ready') },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a parameter is unknown',
      send: ({ ask }) => ask('GET', '/ready?verbose=1'),
    },
    {
      status: 503,
      code: 'unavailable',
      when: 'the database is unreachable',
      send: ({ askBroken }) => askBroken && askBroken('GET', '/ready'),
    },
  ],
}
