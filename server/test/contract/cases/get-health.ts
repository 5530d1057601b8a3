import type { OperationCases } from '../driver.ts'

export const getHealth: OperationCases = {
  cases: [
    { status: 200, when: 'the process is running', send: ({ call }) => call('GET', '/health') },
    {
      status: 200,
      when: 'the process is running but its database is down',
      send: ({ callBroken }) => callBroken && callBroken('GET', '/health'),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a parameter is unknown',
      send: ({ call }) => call('GET', '/health?verbose=1'),
    },
  ],
}
