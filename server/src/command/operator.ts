import { type CompanyId, randomHex } from '../platform/id.ts'

/** The operator as the actor of an audit entry. */
export function operatorOf(companyId: CompanyId) {
  const who = { userId: null, email: 'operator', role: null, address: 'command line' }
  return { companyId, ...who, traceId: randomHex(16) }
}
