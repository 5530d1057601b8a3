import { ApiError, statusOf } from '../../../errors.ts'
import { parseIpAddress } from '../../../tenancy/allowlist.ts'
import { getCompanyKey } from '../../../tenancy/key/company-key-store.ts'
import { findKeyByKid } from '../../../tenancy/key/key-store.ts'
import { uncachedKey } from '../../auth/key-cache.ts'
import { defineRoute } from '../../define-route.ts'
import { KeyPreflight, keyPreflightInput } from '../../schema/dashboard/key.ts'
import { OPERATION_GATES } from '../../v1/routes.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { checkAccess, describeRateLimit } from './check-access.ts'
import { readKeyId } from './key-record.ts'

/** POST /dashboard/keys/preflight: checks whether a key could call an operation from an address. */
export const preflightKey = defineRoute({
  method: 'POST',
  path: '/dashboard/keys/preflight',
  member: 'keys.read',
  summary: 'Check access',
  description:
    'Runs the checks that a request with the key would go through, in their order, without sending it. The content of the request is not checked.',
  body: keyPreflightInput([...OPERATION_GATES.keys()]),
  errors: ['not_found'],
  response: KeyPreflight,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'hasRateLimits'>) =>
    async ({ viewer, body, clientAddress }) => {
      const target = { companyId: viewer.companyId, keyId: readKeyId(body.keyId) }
      const gate = OPERATION_GATES.get(body.operation)
      if (gate === undefined) throw new ApiError('invalid_request')
      const address = readAddress(body.address) ?? clientAddress
      const { kid } = await getCompanyKey(deps.db, target)
      // Read the key the same way as a call does.
      const stored = await findKeyByKid(deps.db, kid)
      if (!stored) throw new ApiError('not_found')
      const verdicts = checkAccess(uncachedKey(stored), { gate, address, nowMs: deps.clock() })
      const failed = verdicts.find(({ code }) => code !== null)
      return {
        allowed: failed === undefined,
        operation: body.operation,
        address,
        refusal: failed?.code
          ? {
              gate: failed.name,
              status: statusOf(failed.code),
              code: failed.code,
              message: failed.message,
            }
          : null,
        gates: verdicts.map(({ name, code, message }) => ({ name, ok: code === null, message })),
        rateLimit: describeRateLimit(viewer.plan, deps.hasRateLimits),
      }
    },
})

function readAddress(text: string | undefined): string | undefined {
  const address = text === undefined ? undefined : parseIpAddress(text)
  if (address !== null) return address?.toString()
  const message = 'must be an IP address'
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: /address ${message}.`,
    details: [{ path: '/address', message }],
  })
}
