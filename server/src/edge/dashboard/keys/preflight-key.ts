import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError, statusOf } from '../../../errors.ts'
import { compileRanges, parseIpAddress } from '../../../tenancy/allowlist.ts'
import { getCompanyKey } from '../../../tenancy/company-key-store.ts'
import { findKeyByKid } from '../../../tenancy/key-store.ts'
import { KeyPreflight, keyPreflightInput } from '../../schema/dashboard/key.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { checkAccess, describeRateLimit } from './check-access.ts'
import { readKeyId } from './key-record.ts'

/** POST /dashboard/keys/preflight: checks whether a key could call an operation from an address. */
export const preflightKey =
  (
    deps: Pick<DashboardDeps, 'db' | 'clock' | 'signedIn' | 'operationGates' | 'hasRateLimits'>,
  ): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/dashboard/keys/preflight',
      {
        ...deps.signedIn('keys.read'),
        schema: {
          operationId: 'preflightKey',
          summary: 'Check access',
          description:
            'Runs the checks that a request with the key would go through, in their order, without sending it. The content of the request is not checked.',
          tags: ['Keys'],
          body: keyPreflightInput([...deps.operationGates.keys()]),
          errors: ['not_found'],
          response: { 200: KeyPreflight },
        },
      },
      async ({ viewer, body, clientAddress }) => {
        const place = { companyId: viewer.companyId, keyId: readKeyId(body.keyId) }
        const gate = deps.operationGates.get(body.operation)
        if (gate === undefined) throw new ApiError('invalid_request')
        const address = readAddress(body.address) ?? clientAddress
        const { kid } = await getCompanyKey(deps.db, place)
        // Read the key the same way as a call does.
        const stored = await findKeyByKid(deps.db, kid)
        if (!stored) throw new ApiError('not_found')
        const key = { ...stored, ranges: compileRanges(stored.allowlist), provenText: null }
        const verdicts = checkAccess(key, { gate, address, nowMs: deps.clock() })
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
    )
  }

function readAddress(text: string | undefined): string | undefined {
  const address = text === undefined ? undefined : parseIpAddress(text)
  if (address !== null) return address?.toString()
  const message = 'must be an IP address'
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: /address ${message}.`,
    details: [{ path: '/address', message }],
  })
}
