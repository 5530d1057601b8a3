import type { OperationCases } from '../driver.ts'

export const getReady: OperationCases = {
  cases: [
    { status: 200, when: 'the node is ready', send: ({ call }) => call('GET', '/ready') },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a parameter is unknown',
      send: ({ call }) => call('GET', '/ready?verbose=1'),
    },
    {
      status: 503,
      code: 'unavailable',
      when: 'the database is unreachable',
      send: ({ callBroken }) => callBroken && callBroken('GET', '/ready'),
    },
  ],
}
