import type { OperationCases } from '../driver.ts'

export const getHealth: OperationCases = {
  cases: [
    { status: 200, when: 'the process is running', send: ({ ask }) => ask('GET', '/health') },
    {
      status: 200,
      when: 'the process is running but its database is down',
      send: ({ askBroken }) => askBroken && askBroken('GET', '/health'),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a parameter is unknown',
      send: ({ ask }) => ask('GET', '/health?verbose=1'),
    },
  ],
}
