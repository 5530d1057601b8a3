import type { OperationCases } from '../driver.ts'

export const getHealth: OperationCases = {
  cases: [
    { status: 200, when: 'the process answers', send: ({ ask }) => ask('GET', '/health') },
    {
      status: 200,
      when: 'the process answers, though its database does not',
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
