import assert from 'node:assert/strict'
import type { Member } from '../../../server/test/harness/dashboard/dashboard.ts'
import { eventually } from '../../../server/test/harness/timing/eventually.ts'
import { openDashboardDownload } from '../../../server/test/harness/dashboard/console.ts'
import { learnAllEventTypes } from '../../../server/test/harness/event/event-types.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { enter } from '../../../server/test/harness/sign-in/login.ts'
import type { Receiver } from '../../../server/test/harness/webhook/receiver.ts'
import type { TestApp } from '../../../server/test/harness/app/start-app.ts'
import type { CreatedCompany } from '../../../server/src/tenancy/create-company.ts'
import { demoEvents } from './demo-events.ts'

type Owner = Pick<Member, 'email' | 'cookie' | 'call'>

export type DemoCompany = CreatedCompany & {
  owner: Owner
  webhookId: string
  /** The id of one of the events. */
  eventId: string
  /** The path of an invitation's page. */
  invitationPath: string
  /** The path of the certificate of a verification. */
  certificatePath: string
}

type DemoOptions = {
  count: number
  endMs: number
  /** How many of the last events are delivered to the webhook. */
  deliveredCount?: number
  /** How many of the last events happened in the last minutes, so that they aren't marked as late. */
  recentCount?: number
  email?: string | null
}

const RECENT_EVERY_MS = 13_337

/** Creates a company with some of everything that a page can show. */
export async function createDemo(
  annals: TestApp,
  receiver: Receiver,
  { count, endMs, deliveredCount = 5, recentCount = 0, email = null }: DemoOptions,
): Promise<DemoCompany> {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'], email })
  const owner = { email: company.user.email, ...(await enter(annals, company.user)) }
  const make = async (path: string, body: object) => {
    const { status, json, text } = await owner.call('POST', `/dashboard/${path}`, { body })
    assert(status >= 200 && status < 300, `${path}: ${text}`)
    return json
  }
  const workspaceId = company.workspace.id
  const events = demoEvents({ count, endMs }).map((event, index) => ({
    ...event,
    ...(event.category === 'billing' && { projectId: company.project.id }),
    ...(index >= count - recentCount && {
      timestamp: new Date(endMs - (count - index) * RECENT_EVERY_MS).toISOString(),
    }),
  }))
  // The last events are sent after the webhook is created, so that it has deliveries.
  await storeEvents(annals, company.workspaceKey, events.slice(0, -deliveredCount))
  const webhook = await make('webhooks', { workspaceId, url: receiver.url, secretLabel: 'vault' })
  await storeEvents(annals, company.workspaceKey, events.slice(-deliveredCount))
  await receiver.waitFor(deliveredCount)
  await learnAllEventTypes(annals.app.database.db, workspaceId)
  await make('explorer/views', {
    name: 'Deleted invoices',
    visibility: 'WORKSPACE',
    workspaceId,
    query: { action: 'invoice.deleted', range: '30d' },
  })
  const filters = { workspaceId, category: 'billing', range: '7d' }
  await make('export-templates', {
    name: 'Billing of the week',
    body: { source: 'HOT', format: 'CSV', filters },
  })
  await exportOnce(annals, owner, await make('exports', { source: 'HOT', format: 'CSV', filters }))
  await make('exports', { source: 'HOT', format: 'JSONL', filters: { workspaceId } })
  const invitation = await make('invitations', {
    email: `gina-${workspaceId.slice(-6)}@acme.example`,
    role: 'ANALYST',
    workspaceIds: [workspaceId],
  })
  const runId = await verifyOnce(owner, workspaceId)
  const newest = await owner.call('GET', `/dashboard/events?workspaceId=${workspaceId}&limit=10`)
  assert.equal(newest.status, 200, newest.text)
  return {
    ...company,
    owner,
    webhookId: webhook.id,
    eventId: newest.json.data[0].id,
    invitationPath: new URL(invitation.link).href.replace(annals.url, ''),
    certificatePath: `/app/integrity/certificate/${runId}`,
  }
}

async function exportOnce(annals: TestApp, owner: Owner, job: { id: string }): Promise<void> {
  const opened = await openDashboardDownload(annals, owner, job.id)
  await opened.rest()
}

async function verifyOnce(owner: Owner, workspaceId: string): Promise<string> {
  const { json } = await owner.call('POST', '/dashboard/integrity/runs', { body: { workspaceId } })
  return await eventually(async () => {
    const run = await owner.call('GET', `/dashboard/integrity/runs/${json.id}`)
    assert.equal(run.json.status, 'HOLDS')
    return run.json.id
  })
}
