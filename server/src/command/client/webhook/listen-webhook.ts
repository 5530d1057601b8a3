import { once } from 'node:events'
import { AnnalsApiError } from '../../../../../sdk/src/client/errors.ts'
import { OperatorError } from '../../../errors.ts'
import { systemClock as clock } from '../../../platform/time/clock.ts'
import { checkDelivery, DELIVERY_COLUMNS, type ListenedDelivery } from './check-delivery.ts'
import { findWorkspace } from '../find-workspace.ts'
import { forwardDelivery } from './forward-delivery.ts'
import { MissedDeliveries } from './missed-deliveries.ts'
import { type ClientCommand, missingKeyError } from '../run-client.ts'
import { isOnThisMachine } from '../target.ts'
import { openReceiver, type ReceivedRequest } from './webhook-receiver.ts'

/** Its name in the dashboard. */
const WEBHOOK_NAME = 'annals webhooks listen'
const DELETE_MS_MAX = 5_000

export type ListenOptions = {
  port: number
  url?: string
  forwardTo?: string
  webhook?: string
  workspace?: string
}

/** The webhook whose deliveries are expected. `id` is null if only its secret is known. */
type Session = AsyncDisposable & { id: string | null; secret: string; isNew: boolean }

/** `annals webhooks listen`: prints the deliveries of a webhook until Ctrl-C. */
export async function listenForDeliveries(
  command: ClientCommand,
  options: ListenOptions & { secret: string | null },
): Promise<void> {
  const { output, annals, signal } = command
  requireHttp('--forward-to', options.forwardTo)
  requireHttp('--url', options.url)
  const print = output.rows(DELIVERY_COLUMNS)
  // Deliveries that arrive before the session is known wait for it.
  const ready = Promise.withResolvers<{ session: Session; missed: MissedDeliveries }>()
  await using receiver = await openReceiver(options.port, async (request) => {
    const { session, missed } = await ready.promise
    const listened = await receive(request, { session, missed }, command, options)
    await print([listened])
    if (listened.sequence !== null) missed.add(listened.sequence)
    return listened.status ?? 500
  })
  await using session = await openSession(command, options, options.url ?? receiver.url)
  using missed = new MissedDeliveries({
    annals,
    webhookId: session.id,
    isNew: session.isNew,
    signal,
    note: (sentence) => output.note(sentence),
    show: async ({ id, sequence, attempt }, event) => {
      const replayed = { signatures: null, status: null, isReplayed: true, event }
      await print([{ receivedAt: now(), sequence, attempt, deliveryId: id, ...replayed }])
    },
  })
  ready.resolve({ session, missed })
  output.note(`Listening on ${receiver.url}. Press Ctrl-C to stop.`)
  if (session.isNew && options.forwardTo !== undefined) {
    output.note(`The signing secret of this session is ${session.secret}`)
  }
  if (!signal.aborted) await once(signal, 'abort')
}

function requireHttp(name: string, url: string | undefined): void {
  if (url === undefined || (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))) return
  throw new OperatorError(`${name} must be an address such as http://127.0.0.1:3000/webhooks.`)
}

async function receive(
  request: ReceivedRequest,
  { session, missed }: { session: Session; missed: MissedDeliveries },
  { output }: ClientCommand,
  { forwardTo }: ListenOptions,
): Promise<ListenedDelivery> {
  const { signatures, delivery, error } = await checkDelivery(request, session.secret)
  const facts = { receivedAt: now(), signatures, isReplayed: false }
  if (delivery === null || !missed.accepts(delivery.sequence)) {
    const reason = error?.message ?? 'The x-service-sequence header has an impossible number.'
    output.note(`annals: A delivery was refused: ${reason}`)
    const unknown = { sequence: null, attempt: null, deliveryId: null, event: null }
    return { ...facts, ...unknown, status: 401 }
  }
  const { sequence, attempt, deliveryId, event } = delivery
  const status = forwardTo === undefined ? 200 : await forward(forwardTo, request, output)
  return { ...facts, sequence, attempt, deliveryId, status, event }
}

/** An answer that Annals takes for a failure makes it send the delivery again. */
async function forward(
  url: string,
  request: ReceivedRequest,
  output: ClientCommand['output'],
): Promise<number> {
  try {
    return await forwardDelivery(url, request)
  } catch {
    output.note(`annals: ${url} didn't respond. Annals will send the delivery again.`)
    return 502
  }
}

async function openSession(
  command: ClientCommand,
  { secret, webhook, workspace, url: ownUrl }: ListenOptions & { secret: string | null },
  url: string,
): Promise<Session> {
  const { annals, target, output, signal } = command
  if (target.apiKey === '' && (secret === null || webhook !== undefined)) throw missingKeyError()
  if (secret !== null) {
    const id = webhook === undefined ? null : (await annals.webhooks.get(webhook, { signal })).id
    return { id, secret, isNew: false, [Symbol.asyncDispose]: async () => {} }
  }
  if (webhook !== undefined) {
    throw new OperatorError(
      'To listen for an existing webhook, set its secret in ANNALS_WEBHOOK_SECRET.',
    )
  }
  if (ownUrl === undefined && !isOnThisMachine(target)) {
    throw new OperatorError(
      `${target.url} can't reach the loopback address of this machine. Open a tunnel to it, and pass its address with --url and its port with --port.`,
    )
  }
  const workspaceId = await findWorkspace(annals, workspace, signal)
  const created = await create(command, workspaceId, url)
  return {
    ...created,
    isNew: true,
    [Symbol.asyncDispose]: async () => {
      const limits = { timeoutMs: DELETE_MS_MAX, retriesMax: 1 }
      try {
        await annals.webhooks.delete(created.id, limits)
      } catch {
        output.note(
          `annals: The webhook ${created.id} could not be deleted. Delete it in the dashboard.`,
        )
      }
    },
  }
}

/** Without the signal: a webhook that was created must also be deleted. */
async function create(
  { annals }: ClientCommand,
  workspaceId: string,
  url: string,
): Promise<{ id: string; secret: string }> {
  try {
    return await annals.webhooks.create(workspaceId, { url, name: WEBHOOK_NAME })
  } catch (error) {
    if (!(error instanceof AnnalsApiError) || error.status !== 400) throw error
    if (!error.details.some(({ path }) => path.endsWith('url'))) throw error
    throw new OperatorError(
      `The service doesn't send webhooks to ${url}. For development, start it with ANNALS_WEBHOOK_DESTINATIONS=any.`,
      { cause: error },
    )
  }
}

function now(): string {
  return new Date(clock()).toISOString()
}
