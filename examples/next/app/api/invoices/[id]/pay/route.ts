import { recordNext } from '@annals/sdk/next'
import { recorder } from '../../../../../lib/annals.ts'

// On a serverless platform, also pass `after` of `next/server`.
export const POST = recordNext(recorder, async () => Response.json({ paid: true }), {
  route: '/invoices/:id/pay',
  actor: ({ headers }) => ({ id: headers.get('x-user') ?? 'unknown' }),
})
