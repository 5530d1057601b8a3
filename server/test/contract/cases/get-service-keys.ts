import type { OperationCases } from '../driver.ts'

const PATH = '/.well-known/annals.json'

export const getServiceKeys: OperationCases = {
  cases: [
    { status: 200, when: 'anyone asks', send: ({ call }) => call('GET', PATH) },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a parameter is unknown',
      send: ({ call }) => call('GET', `${PATH}?verbose=1`),
    },
    {
      status: 503,
      code: 'unavailable',
      when: 'neither the storage nor the database can be read',
      send: ({ callBroken }) => callBroken && callBroken('GET', PATH),
    },
  ],
}
